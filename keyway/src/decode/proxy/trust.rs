//! The certificate that clients see, and which server is believed.

use crate::decode::arguments::Proxy;
use keyway_drivers::remote::Remote;
use keyway_engine::Engine;
use keyway_folder::authority;
use keyway_folder::data::{Folder, name};
use keyway_folder::folder_keys::{self, PrivateKey, Which};
use keyway_folder::host_names::Names;
use keyway_folder::pem::{malformed, words};
use keyway_folder::trust;
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_load::Trust;
use keyway_service::client::{self, Daemon};
use keyway_tls::{Certified, ServerOptions, client_config, server_config_with};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::{Path, absolute};
use std::sync::Arc;

/// The configuration with which TLS of clients is accepted, if it is: with a certificate that was given, or
/// one of the folder's authority. Connections that have to live as long as it go to `keeps`.
pub fn with_clients(
    proxy: &Proxy,
    engine: &Engine,
    address: SocketAddr,
    keeps: &mut Vec<Remote>,
) -> Result<Option<Arc<ServerConfig>>, Failure> {
    let options = ServerOptions::new(engine).map_err(Failure::new)?;
    let certified = match (&proxy.certificate, &proxy.key, &proxy.data) {
        (Some(certificate), Some(key), _) => {
            let chain = keyway_folder::pem::certificates(certificate)?;
            let key =
                PrivateKeyDer::from_pem_file(key).map_err(|why| malformed(key, words(&why)))?;
            Certified::new(&options.provider, chain, key, &[])
        }
        (_, _, Some(data)) => {
            let own = own(data, engine, address)?;
            keeps.extend(own.remote);
            match own.key {
                PrivateKey::File(key, _) => Certified::new(&options.provider, own.chain, key, &[]),
                PrivateKey::Held(name) => Certified::held(engine, own.chain, &name, &[]),
            }
        }
        _ if proxy.tls => {
            return Err(Failure::usage(
                "--tls: clients are to see a certificate; name one with --certificate FILE and --key FILE, or a \
                 data folder whose authority issues one with --data DIR",
            ));
        }
        _ => return Ok(None),
    };
    let config = server_config_with(&options, &[certified.map_err(Failure::new)?]);
    Ok(Some(Arc::new(config.map_err(Failure::new)?)))
}

/// A folder's certificate, and its key.
struct Own {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKey,
    /// The way to the cryptod that holds the key, if one does.
    remote: Option<Remote>,
}

/// Has the folder's authority issue one if there is none yet. One whose keys are in a cryptod is a
/// directory's own, which may be served: it is used as it is, and never issued again from here.
fn own(data: &Path, engine: &Engine, address: SocketAddr) -> Result<Own, Failure> {
    if folder_keys::are_held(data) {
        return held(data, engine);
    }
    let folder = Folder::open(data, Timestamp::now())?;
    let names = Names::new(&[], &[address]);
    let identity = authority::identity(engine, &folder, None, &names, Timestamp::now())?;
    Ok(Own { chain: identity.chain, key: identity.key, remote: None })
}

fn held(data: &Path, engine: &Engine) -> Result<Own, Failure> {
    let data = absolute(data).map_err(|why| Failure::system("find", data, &why))?;
    let daemon = Daemon::of_folder(&data);
    let remote = client::connect(engine, Some(&daemon), |_| {})?;
    let file = data.join(name::SERVER_CERTIFICATE);
    let (chain, _) = authority::chain(&file)?;
    let key =
        folder_keys::held(&daemon.socket, Which::Server, &folder_keys::public_key_in(&file)?)?;
    let key = key.ok_or_else(|| malformed(&file, "cryptod does not hold its key"))?;
    Ok(Own { chain, key: PrivateKey::Held(key.0), remote })
}

/// How TLS is spoken with the server. Without --ca the system's authorities are believed, and the folder's
/// own. Where there are none at all, no server is trusted, and one that has TLS is not spoken to.
pub fn with_server(proxy: &Proxy, engine: &Engine) -> Result<Arc<ClientConfig>, Failure> {
    trust::warn(proxy.insecure);
    let own_ca = proxy.data.as_ref().map(|data| data.join(name::CA_CERTIFICATE));
    let provider = keyway_tls::provider(engine);
    let wanted = Trust {
        ca: proxy.ca.clone(),
        own_ca: Some(own_ca.unwrap_or_else(trust::usual_authority)),
        insecure: proxy.insecure,
        ..Trust::default()
    };
    match wanted.config(&provider) {
        Err(_) if proxy.ca.is_none() && !proxy.to.tls => {
            let no_trust = client_config(&provider, RootCertStore::empty());
            Ok(Arc::new(no_trust.map_err(Failure::new)?))
        }
        config => config.map_err(Failure::from),
    }
}
