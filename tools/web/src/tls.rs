//! The page's certificate: one that was given, or that of the data folder's server. Files that change are read
//! again.

use keyway_codec::certificate::{Certificate, Name};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{Engine, Selection};
use keyway_folder::authority;
use keyway_folder::control::Control;
use keyway_folder::data::name;
use keyway_folder::folder_keys::{self, PrivateKey, Which};
use keyway_folder::pem::malformed;
use keyway_folder::tls::{Look, Watch};
use keyway_host::failure::Failure;
use keyway_tls::{Certified, ServerOptions, server_config_with};
use rustls_pki_types::CertificateDer;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch::{Receiver, Sender};
use tokio_rustls::TlsAcceptor;

/// The TLS that browsers are accepted with, as long as its files stay as they are.
pub struct PageTls {
    acceptor: Sender<TlsAcceptor>,
    /// The hosts that the certificate names.
    pub names: Vec<String>,
    certificate: PathBuf,
    /// The file of its key, unless a cryptod holds that.
    key: Option<PathBuf>,
    folder: PathBuf,
    engine: Engine,
    watch: Watch,
    /// Holds the key, if it is not here; connected as long as it is kept.
    cryptod: Option<Remote>,
}

/// Which certificate.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The files of a certificate and its key; without them it is that of the data folder's server.
    pub files: Option<(PathBuf, PathBuf)>,
    /// The data folder.
    pub folder: PathBuf,
}

impl PageTls {
    /// Reads the certificate and its key, or connects to the daemon that holds the key.
    ///
    /// # Errors
    /// If something is wrong with a file, or the daemon that holds the key does not let us use it.
    pub fn open(options: TlsOptions, engine: &Engine) -> Result<PageTls, Failure> {
        let TlsOptions { files, folder } = options;
        let (certificate, key) = match files {
            Some((certificate, key)) => (certificate, Some(key)),
            None => {
                let key = folder.join(name::SERVER_KEY);
                (folder.join(name::SERVER_CERTIFICATE), key.exists().then_some(key))
            }
        };
        // Looked at before they are read: what is written meanwhile is read again.
        let watch =
            Watch::of([Some(certificate.clone()), key.clone()].into_iter().flatten().collect());
        let mut cryptod = None;
        let engine = engine.clone();
        let read = read(&certificate, key.as_deref(), &folder, &engine, &mut cryptod)?;
        let (acceptor, names) = (Sender::new(read.acceptor), read.names);
        Ok(PageTls { acceptor, names, certificate, key, folder, engine, watch, cryptod })
    }

    /// The acceptor of the next browser.
    #[must_use]
    pub fn acceptor(&self) -> Receiver<TlsAcceptor> {
        self.acceptor.subscribe()
    }

    /// Looks whether the files have changed, and takes what is in them for browsers to come. Says what came
    /// of it, if they have.
    pub fn look(&mut self) -> Option<String> {
        let shown = |file: &Path| file.display().to_string();
        match self.watch.look() {
            Look::Wait => None,
            Look::Gone(file) => {
                let file = shown(&file);
                Some(format!("{file} is gone; what was read of it stays in use until it is back"))
            }
            Look::Changed(files) => {
                let files: Vec<String> = files.iter().map(|file| shown(file)).collect();
                let files = files.join(", ");
                let PageTls { certificate, key, folder, engine, cryptod, .. } = self;
                match read(certificate, key.as_deref(), folder, engine, cryptod) {
                    Ok(read) => {
                        self.acceptor.send_replace(read.acceptor);
                        let others = read.names.iter().any(|name| !self.names.contains(name));
                        let others =
                            if others { "; other names of it count after a new start" } else { "" };
                        Some(format!(
                            "{files} changed: new connections get what is in it now{others}"
                        ))
                    }
                    Err(why) => {
                        Some(format!("{files} changed, the certificate stays as it was: {why}"))
                    }
                }
            }
        }
    }
}

/// The content of the files.
struct Read {
    acceptor: TlsAcceptor,
    names: Vec<String>,
}

fn read(
    certificate: &Path,
    key: Option<&Path>,
    folder: &Path,
    engine: &Engine,
    cryptod: &mut Option<Remote>,
) -> Result<Read, Failure> {
    let options = ServerOptions::new(engine).map_err(Failure::new)?;
    let (chain, _) = authority::chain(certificate)?;
    let names = names(&chain);
    let certified = match key {
        Some(key) => {
            let PrivateKey::File(der, _) = authority::read(certificate, key)?.key else {
                return Err(malformed(key, "it is no private key"));
            };
            let certified = Certified::new(&options.provider, chain, der, &[]);
            certified.map_err(|why| malformed(key, why))?
        }
        None => held(folder, engine, certificate, &chain, cryptod)?,
    };
    let mut config = server_config_with(&options, &[certified]).map_err(Failure::new)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Read { acceptor: TlsAcceptor::from(Arc::new(config)), names })
}

/// With the key of the folder's server, which its cryptod holds; that is connected to once.
fn held(
    folder: &Path,
    engine: &Engine,
    certificate: &Path,
    chain: &[CertificateDer<'static>],
    cryptod: &mut Option<Remote>,
) -> Result<Certified, Failure> {
    let no_key = |why: &dyn std::fmt::Display| {
        malformed(
            certificate,
            format!("its key cannot be used: {why}; give others with --certificate and --key"),
        )
    };
    let socket = name::socket_at(folder);
    let keys = Control::connect(&socket, "keyway web").and_then(|control| control.keys());
    let keys = keys.map_err(|why| no_key(&why))?;
    if cryptod.is_none() {
        let options = RemoteOptions {
            name: "cryptod".to_owned(),
            // A request that takes none of its keys is done here.
            selection: Selection::Named,
            ..RemoteOptions::new(&socket, "keyway web")
        };
        *cryptod = Some(Remote::connect(engine, options).map_err(|why| no_key(&why))?);
    }
    let mut last = "it is in no file, and cryptod holds no key of a server".to_owned();
    for key in keys.iter().filter(|key| folder_keys::is_named(Which::Server, &key.name)) {
        match Certified::held(engine, chain.to_vec(), &key.name, &[]) {
            Ok(certified) => return Ok(certified),
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
