//! The server's TLS: made from files and configuration when it starts, and again whenever they have
//! changed.

mod ends;
mod settings;
mod trusted;
mod watch;

use crate::authority::{self, Identity};
use crate::data::{Folder, name};
use crate::folder_keys::PrivateKey;
use crate::host_names::Names;
use crate::pem::malformed;
pub use ends::Ends;
use keyway_codec::certificate::{Certificate, Name};
use keyway_engine::Engine;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::timestamp::Timestamp;
use keyway_tls::{Certified, ConfigError, ServerOptions, Tickets, VERSIONS, server_config_with};
use rustix::process::getuid;
use rustls::crypto::CryptoProvider;
use rustls::server::NoClientAuth;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ServerConfig, SupportedProtocolVersion};
use rustls_pki_types::CertificateDer;
pub use settings::{Clients, Pair, ServerKey, Settings, Versions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use trusted::{Trusted, trusted};
pub use watch::{Look, Watch};

/// The parts that the server's configurations share.
pub struct Tls {
    engine: Engine,
    /// The socket of the cryptod that holds the keys of the folder's own certificates, if one does.
    cryptod: Option<PathBuf>,
    /// All that the engine can do.
    provider: Arc<CryptoProvider>,
    options: ServerOptions,
    trusted: Option<Trusted>,
}

/// A configuration that was made.
pub struct Made {
    /// The configuration that connections are accepted with.
    pub config: Arc<ServerConfig>,
    /// The file that makes a client trust the certificate, if we have one.
    pub trust: Option<PathBuf>,
    /// The names in the certificate.
    pub names: Vec<Name>,
    /// Where the key of our own authority is, if it is here: a file, or `cryptod:NAME`.
    pub ca_key: Option<String>,
    /// When the certificates end.
    pub ends: Vec<Ends>,
}

/// The result of reading a certificate's file.
struct Read {
    certified: Certified,
    names: Vec<Name>,
    ends: Ends,
}

const ONLY_TLS13: &[&SupportedProtocolVersion] = &[&TLS13];
const ONLY_TLS12: &[&SupportedProtocolVersion] = &[&TLS12];

impl Versions {
    fn supported(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Versions::Both => VERSIONS,
            Versions::Tls13 => ONLY_TLS13,
            Versions::Tls12 => ONLY_TLS12,
        }
    }
}

impl Tls {
    /// With tickets of its own. The keys of the folder's own certificates are in files, or in the cryptod
    /// that listens there, to which the engine is connected.
    ///
    /// # Errors
    /// If the engine gives no key for them.
    pub fn new(engine: &Engine, cryptod: Option<PathBuf>) -> Result<Tls, Failure> {
        let options = ServerOptions::new(engine).map_err(Failure::new)?;
        let provider = options.provider.clone();
        Ok(Tls { engine: engine.clone(), cryptod, provider, options, trusted: None })
    }

    /// Reads all files and makes a configuration of what is in them now, for a server that listens
    /// there. Tickets stay good from one to the next, unless other clients are trusted: a session
    /// that is resumed is not verified again.
    ///
    /// # Errors
    /// The file and its error. Then nothing has changed.
    pub fn make(
        &mut self,
        folder: &Folder,
        settings: &Settings,
        listen: &[SocketAddr],
        now: Timestamp,
    ) -> Result<Made, Failure> {
        let (file, own) = match &settings.files {
            Some(pair) => read_pair(folder, pair)?,
            None => {
                let names = Names::new(&settings.names, listen);
                let cryptod = self.cryptod.as_deref();
                let own = authority::identity(&self.engine, folder, cryptod, &names, now)?;
                (folder.file(name::SERVER_CERTIFICATE), own)
            }
        };
        let (trust, ca_key) = (own.trust.clone(), own.ca_key.clone());
        let mut found = vec![(file, own)];
        for pair in &settings.additional {
            found.push(read_pair(folder, pair)?);
        }
        note_uncovered(&settings.names, &found);
        let read = |(at, (file, identity))| self.read(file, identity, at > 0);
        let all = found.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        let trusted = trusted(folder, settings, now)?;
        let mut options = self.options.clone();
        options.versions = settings.versions.supported();
        options.provider = limited(&self.provider, &settings.ciphers);
        if trusted != self.trusted {
            options.clients = match &trusted {
                None => Arc::new(NoClientAuth),
                Some(trusted) => Arc::new(trusted.verifier(&options)?),
            };
            let tickets = Tickets::new(self.engine.clone(), Instant::now());
            options.tickets = Arc::new(tickets.map_err(Failure::new)?);
        }
        let certified: Vec<_> = all.iter().map(|read| read.certified.clone()).collect();
        let config = server_config_with(&options, &certified).map_err(Failure::new)?;
        (self.options, self.trusted) = (options, trusted);
        let names = all.first().map(|first| first.names.clone()).unwrap_or_default();
        let ends = all.into_iter().map(|read| read.ends).collect();
        Ok(Made { config: Arc::new(config), trust, names, ca_key, ends })
    }

    /// Puts a certificate and its key together; whether it has to be for a host.
    fn read(&self, file: PathBuf, identity: Identity, for_host: bool) -> Result<Read, Failure> {
        let Identity { chain, key, .. } = identity;
        let (names, ends) = (names(&chain), Ends::of(&file, &chain)?);
        let hosts = hosts(&names);
        if for_host && hosts.is_empty() {
            let why = "it names no host, so that no client could ask for it";
            return Err(malformed(&file, why));
        }
        let certified = match key {
            PrivateKey::File(key, key_file) => Certified::new(&self.provider, chain, key, &hosts)
                .map_err(|why| not_made(&file, &key_file, why)),
            PrivateKey::Held(name) => Certified::held(&self.engine, chain, &name, &hosts)
                .map_err(|why| not_made_with_held(&file, &name, why)),
        }?;
        Ok(Read { certified, names, ends })
    }
}

/// Reads the files of a certificate; those of a key that cryptod holds are none.
fn read_pair(folder: &Folder, pair: &Pair) -> Result<(PathBuf, Identity), Failure> {
    let certificate = folder.file_at(&pair.certificate);
    let identity = match &pair.key {
        ServerKey::Held(name) => {
            let (chain, trust) = authority::chain(&certificate)?;
            Identity { chain, key: PrivateKey::Held(name.clone()), trust, ca_key: None }
        }
        ServerKey::File(key) => authority::read(&certificate, &folder.file_at(key))?,
    };
    Ok((certificate, identity))
}

/// The names in the server's own certificate of a chain.
fn names(chain: &[CertificateDer<'_>]) -> Vec<Name> {
    let own = chain.first().and_then(|der| Certificate::read(der).ok());
    own.map(|certificate| certificate.names).unwrap_or_default()
}

/// The DNS names among those of a certificate.
fn hosts(names: &[Name]) -> Vec<&str> {
    let mut hosts = Vec::new();
    for name in names {
        if let Name::Dns(host) = name {
            hosts.push(host.as_str());
        }
    }
    hosts
}

/// Names that were asked for and that no certificate has.
fn note_uncovered(wanted: &[Name], found: &[(PathBuf, Identity)]) {
    let all: Vec<Name> = found.iter().flat_map(|(_, identity)| names(&identity.chain)).collect();
    let is_covered = |wanted: &&Name| all.iter().any(|name| name.covers(wanted));
    for name in wanted.iter().filter(|wanted| !is_covered(wanted)) {
        let file = found.first().map(|(file, _)| file.display().to_string()).unwrap_or_default();
        output::note(format_args!(
            "{file} does not name {name}, and is not ours to issue again; clients that call the \
             server so will refuse it"
        ));
    }
}

/// A provider with these suites only; none are all of them.
fn limited(provider: &Arc<CryptoProvider>, ciphers: &[CipherSuite]) -> Arc<CryptoProvider> {
    if ciphers.is_empty() {
        return provider.clone();
    }
    let mut limited = CryptoProvider::clone(provider);
    limited.cipher_suites.retain(|suite| ciphers.contains(&suite.suite()));
    Arc::new(limited)
}

/// Why there is no configuration with a certificate and a key from files.
fn not_made(certificate: &Path, key: &Path, why: ConfigError) -> Failure {
    match why {
        ConfigError::Certificate(rustls::Error::InconsistentKeys(_)) => {
            malformed(key, format!("it is not the key of {}", certificate.display()))
        }
        ConfigError::Certificate(why) => {
            malformed(certificate, format!("with its key {}: {why}", key.display()))
        }
        why => Failure::new(why),
    }
}

/// The configuration with a key that cryptod holds.
fn not_made_with_held(certificate: &Path, key: &str, why: ConfigError) -> Failure {
    let advice = format!(
        "give cryptod the key of the certificate, for this user: keyway key import {key} FILE \
         --algorithm ALGORITHM --for user:{} (keyway key list shows what it has)",
        getuid().as_raw()
    );
    match why {
        ConfigError::Certificate(rustls::Error::InconsistentKeys(_)) => {
            malformed(certificate, format!("{key} of cryptod is not its key; {advice}"))
        }
        ConfigError::Certificate(rustls::Error::General(why)) => {
            malformed(certificate, format!("{why}; {advice}"))
        }
        ConfigError::Certificate(why) => malformed(certificate, why),
        why => Failure::new(why),
    }
}
