//! The page's certificate: one that was given, or that of the data folder's server.

use super::arguments::Web;
use crate::authority::{self, malformed};
use crate::control::Control;
use crate::cryptod;
use crate::data::name;
use crate::failure::Failure;
use crate::own_keys::{self, PrivateKey, Which};
use keyway_codec::certificate::{Certificate, Name};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{Engine, Selection};
use keyway_tls::{Certified, ServerOptions, server_config_with};
use rustls_pki_types::CertificateDer;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// What browsers are accepted with.
pub struct Tls {
    pub acceptor: TlsAcceptor,
    /// Hosts that the certificate names.
    pub names: Vec<String>,
    /// Holds the key, if it is not here; connected as long as it is kept.
    _cryptod: Option<Remote>,
}

/// Makes it.
///
/// # Errors
/// What is wrong with which file, or that the daemon that holds the key does not let us use it.
pub fn open(arguments: &Web, engine: &Engine) -> Result<Tls, Failure> {
    let options = ServerOptions::new(engine).map_err(Failure::new)?;
    let (certificate, key) = match (&arguments.certificate, &arguments.key) {
        (Some(certificate), Some(key)) => (certificate.clone(), Some(key.clone())),
        _ => {
            let folder = &arguments.data.folder;
            let key = folder.join(name::SERVER_KEY);
            (folder.join(name::SERVER_CERTIFICATE), key.exists().then_some(key))
        }
    };
    let (chain, _) = authority::chain(&certificate)?;
    let names = names(&chain);
    let (certified, cryptod) = match key {
        Some(key) => {
            let PrivateKey::File(der, _) = authority::read(&certificate, &key)?.key else {
                return Err(malformed(&key, "it is no private key"));
            };
            let certified = Certified::new(&options.provider, chain, der, &[]);
            (certified.map_err(|why| malformed(&key, why))?, None)
        }
        None => held(&arguments.data.folder, engine, &certificate, &chain)?,
    };
    let mut config = server_config_with(&options, &[certified]).map_err(Failure::new)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), names, _cryptod: cryptod })
}

/// With the key of the folder's server, which its cryptod holds.
fn held(
    folder: &Path,
    engine: &Engine,
    certificate: &Path,
    chain: &[CertificateDer<'static>],
) -> Result<(Certified, Option<Remote>), Failure> {
    let no_key = |why: &dyn std::fmt::Display| {
        malformed(
            certificate,
            format!("its key cannot be used: {why}; give others with --certificate and --key"),
        )
    };
    let socket = cryptod::socket_at(folder);
    let keys = Control::connect(&socket, "keyway web").and_then(|control| control.keys());
    let keys = keys.map_err(|why| no_key(&why))?;
    let options = RemoteOptions {
        name: "cryptod".to_owned(),
        // What takes none of its keys is done here.
        selection: Selection::Named,
        ..RemoteOptions::new(&socket, "keyway web")
    };
    let remote = Remote::connect(engine, options).map_err(|why| no_key(&why))?;
    let mut last = "it is in no file, and cryptod holds no key of a server".to_owned();
    for key in keys.iter().filter(|key| own_keys::is_named(Which::Server, &key.name)) {
        match Certified::held(engine, chain.to_vec(), &key.name, &[]) {
            Ok(certified) => return Ok((certified, Some(remote))),
            Err(why) => last = why.to_string(),
        }
    }
    Err(no_key(&last))
}

/// The hosts that a certificate is for, as a browser names them.
fn names(chain: &[CertificateDer<'_>]) -> Vec<String> {
    let own = chain.first().and_then(|der| Certificate::read(der).ok());
    let names = own.map(|certificate| certificate.names).unwrap_or_default();
    let shown = names.iter().map(|name| match name {
        Name::Dns(host) => host.clone(),
        Name::Ip(address) if address.is_ipv6() => format!("[{address}]"),
        Name::Ip(address) => address.to_string(),
    });
    shown.collect()
}
