//! `keyway quic serve`: the files of a folder, and the other end of `keyway quic perf`.

use super::arguments::Serve;
use super::host;
use crate::authority::{self, Identity};
use crate::data::Folder;
use crate::failure::{Failure, plain};
use crate::host::Names;
use crate::listeners;
use crate::output::{self, grouped, shell};
use crate::own_keys::{self, PrivateKey};
use crate::signals::Signals;
use crate::timestamp::Timestamp;
use keyway_quic::{Served, Server};
use serde_json::json;
use std::net::UdpSocket;

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
    let identity = {
        let data = Folder::open(&arguments.data, Timestamp::now())?;
        if own_keys::are_held(data.path()) {
            return Err(are_held());
        }
        authority::identity(&engine, &data, None, &Names::new(&[], &[address]), Timestamp::now())?
    };
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
        let PrivateKey::File(key, _) = key else { return Err(are_held()) };
        let endpoint = host.server(chain, key, &Server::PROTOCOLS, socket)?;
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

fn are_held() -> Failure {
    Failure::new(
        "the keys of this data folder are in its cryptod, for keyway up; name another folder with \
         --data DIR",
    )
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
