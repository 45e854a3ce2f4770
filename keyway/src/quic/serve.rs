//! `keyway quic serve`: the files of a folder, and the other end of `keyway quic perf`.

use super::arguments::{Place, Serve};
use super::host;
use crate::quic::failed::failed;
use keyway_engine::Engine;
use keyway_folder::authority::{self, Identity};
use keyway_folder::data::{Folder, name};
use keyway_folder::folder_keys::{self, PrivateKey, Which};
use keyway_folder::host_names::Names;
use keyway_folder::pem::malformed;
use keyway_host::failure::{Failure, plain};
use keyway_host::listeners;
use keyway_host::output::{self, grouped, shell};
use keyway_host::signals::Signals;
use keyway_host::timestamp::Timestamp;
use keyway_quic::{Served, Server};
use keyway_service::client::{self, Daemon};
use keyway_tls::Certified;
use serde_json::json;
use std::net::{SocketAddr, UdpSocket};
use std::path::absolute;

/// Serves until it is told to stop.
///
/// # Errors
/// Whatever keeps it from serving.
pub fn run(arguments: &Serve) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let root = folder.canonicalize().map_err(|why| Failure::system("serve", folder, &why))?;
    if !root.is_dir() {
        let folder = folder.display();
        return Err(Failure::usage(format!("{folder} is not a folder; its folder can be served")));
    }
    let socket = UdpSocket::bind(arguments.listen)
        .map_err(|why| listeners::refused(arguments.listen, "--listen", &why))?;
    let address = socket.local_addr();
    let address =
        address.map_err(|why| Failure::new(format!("cannot ask for my address: {why}")))?;
    let engine = keyway_drivers::engine();
    let identity = identity(arguments, &engine, address)?;
    let ca = identity.trust.clone();
    let url = format!("https://{}", listeners::at_home(address));
    let ready = json!({
        "event": "ready",
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "url": url,
        "folder": root.display().to_string(),
        "ca_certificate": ca.as_ref().map(|ca| ca.display().to_string()),
        "protocols": ["hq-interop", "perf"],
    });
    host::runtime(&arguments.transport)?.block_on(async {
        let mut signals = Signals::catch()?;
        let host = host::host(&engine, &arguments.transport, None, None)?;
        let Identity { chain, key, .. } = identity;
        // Keeps the way to the key open.
        let (endpoint, _cryptod) = match key {
            PrivateKey::File(key, _) => {
                (host.server(chain, key, &Server::PROTOCOLS, socket).map_err(|why| failed(&why))?, None)
            }
            PrivateKey::Held(name) => {
                let socket_of = cryptod_of(arguments)?;
                let remote = client::connect(&engine, Some(&socket_of), |_| {})?;
                let certified = Certified::held(&engine, chain, &name, &[]);
                let certified = certified.map_err(|why| {
                    Failure::new(format!(
                        "the key {name} of the cryptod at {} cannot be used for the certificate: {why}; it has \
                         to be that certificate's, and for this user (keyway key allow)",
                        socket_of.socket.display()
                    ))
                })?;
                (host.server_with(certified.resolver(), &Server::PROTOCOLS, socket).map_err(|why| failed(&why))?, remote)
            }
        };
        if arguments.json {
            output::json(&ready)?;
        } else {
            let ca = ca.map(|ca| format!(" --ca {}", shell(&ca.to_string_lossy())));
            let (root, ca) = (root.display(), ca.unwrap_or_default());
            output::text(format_args!(
                "Serves {root} at {url} (QUIC, hq-interop and perf)\n\nTry, in another terminal:\n\n  \
                 keyway quic get {url}/FILE{ca}\n  keyway quic perf {}{ca}\n\nCtrl-C \
                 stops it.",
                listeners::at_home(address)
            ))?;
        }
        let server = Server::new(root, |file, why| {
            output::note(format_args!("cannot read {}: {}", file.display(), plain(why)));
        });
        tokio::select! {
            () = signals.end() => {}
            () = server.serve(&endpoint) => {}
        }
        tokio::spawn(signals.end_at_next());
        keyway_quic::close(&endpoint).await;
        say(server.served(), arguments.json)
    })
}

/// The certificate and its key: those that are named, or those of the data folder, which are made if they are not
/// there. One whose keys a cryptod holds is a directory's, and used as it is.
fn identity(arguments: &Serve, engine: &Engine, address: SocketAddr) -> Result<Identity, Failure> {
    if let (Some(certificate), Some(key)) = (&arguments.certificate, &arguments.key) {
        return match key {
            Place::File(key) => authority::read(certificate, key),
            Place::Held(name) => {
                let (chain, trust) = authority::chain(certificate)?;
                Ok(Identity { chain, key: PrivateKey::Held(name.clone()), trust, ca_key: None })
            }
        };
    }
    if !folder_keys::are_held(&arguments.data) {
        let data = Folder::open(&arguments.data, Timestamp::now())?;
        let names = Names::new(&[], &[address]);
        return authority::identity(engine, &data, None, &names, Timestamp::now());
    }
    let file = arguments.data.join(name::SERVER_CERTIFICATE);
    let (chain, trust) = authority::chain(&file)?;
    let ca = arguments.data.join(name::CA_CERTIFICATE);
    let socket = cryptod_of(arguments)?.socket;
    let key = folder_keys::held(&socket, Which::Server, &folder_keys::public_key_in(&file)?)?;
    let (name, _) = key.ok_or_else(|| malformed(&file, "cryptod does not hold its key"))?;
    let trust = trust.or_else(|| ca.exists().then_some(ca));
    Ok(Identity { chain, key: PrivateKey::Held(name), trust, ca_key: None })
}

/// The daemon that holds the key.
fn cryptod_of(arguments: &Serve) -> Result<Daemon, Failure> {
    let mut daemon = Daemon::of_folder(&arguments.data);
    if let Some(socket) = &arguments.cryptod {
        let found = absolute(socket).map_err(|why| Failure::system("find", socket, &why));
        daemon.socket = found?;
    }
    Ok(daemon)
}

fn say(served: Served, json: bool) -> Result<(), Failure> {
    let Served { connections, files, bytes } = served;
    if json {
        let stopped = json!({
            "event": "stopped", "connections": connections, "files": files, "bytes": bytes,
        });
        return output::json(&stopped);
    }
    output::text(format_args!(
        "stopped after {} connections, {} files, {} bytes",
        grouped(connections),
        grouped(files),
        grouped(bytes)
    ))
}
