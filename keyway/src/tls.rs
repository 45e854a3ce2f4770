//! The server's TLS: made from files and configuration when it starts, and again whenever it is to
//! read them anew.

use crate::authority::{self, Identity, malformed};
use crate::data::{Folder, name};
use crate::failure::Failure;
use crate::host::Names;
use crate::limits::REVOCATION_LIST_BYTES_MAX;
use crate::output;
use crate::own_keys::PrivateKey;
use crate::timestamp::Timestamp;
use keyway_codec::certificate::{Certificate, Name, RevocationList};
use keyway_engine::Engine;
use keyway_tls::{ClientVerifier, ConfigError, ServerOptions, Tickets};
use rustix::process::getuid;
use rustls::server::NoClientAuth;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// `[tls]`, checked. Paths that are relative begin at the data folder.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's certificate and its key, if they are not the data folder's own.
    pub files: Option<(PathBuf, ServerKey)>,
    /// What else the certificate is to name.
    pub names: Vec<Name>,
    /// Whether clients are asked for a certificate.
    pub clients: Clients,
    /// Files of the authorities that issue to clients; none: the data folder's own.
    pub client_ca: Vec<PathBuf>,
    /// Files of what these have revoked.
    pub client_crls: Vec<PathBuf>,
}

/// Where the server's key is.
#[derive(Clone, Debug)]
pub enum ServerKey {
    /// In a file.
    File(PathBuf),
    /// In cryptod, under this name.
    Held(String),
}

/// Whether clients are asked for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// No.
    Off,
    /// They may have one.
    Optional,
    /// They must have one.
    Required,
}

/// What the server's configurations have in common.
pub struct Tls {
    engine: Engine,
    /// The socket of the cryptod that holds the keys of the folder's own certificates, if one does.
    cryptod: Option<PathBuf>,
    options: ServerOptions,
    trusted: Option<Trusted>,
}

/// What decides which clients are taken.
#[derive(PartialEq)]
struct Trusted {
    required: bool,
    authorities: Vec<CertificateDer<'static>>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    /// Which file each of the lists is from.
    list_files: Vec<PathBuf>,
}

/// A configuration that was made.
pub struct Made {
    /// What connections are accepted with.
    pub config: Arc<ServerConfig>,
    /// The file that makes a client trust the certificate, if we have one.
    pub trust: Option<PathBuf>,
    /// What the certificate names.
    pub names: Vec<Name>,
    /// Where the key of our own authority is, if it is here: a file, or `cryptod:NAME`.
    pub ca_key: Option<String>,
}

impl Tls {
    /// With tickets of its own. The keys of the folder's own certificates are in files, or in the cryptod
    /// that listens there, to which the engine is connected.
    ///
    /// # Errors
    /// If the engine gives no key for them.
    pub fn new(engine: &Engine, cryptod: Option<PathBuf>) -> Result<Tls, Failure> {
        let options = ServerOptions::new(engine).map_err(Failure::new)?;
        Ok(Tls { engine: engine.clone(), cryptod, options, trusted: None })
    }

    /// Reads all files and makes a configuration of what is in them now, for a server that listens
    /// there. Tickets stay good from one to the next, unless other clients are trusted: a session
    /// that is resumed is not verified again.
    ///
    /// # Errors
    /// What is wrong with which file. Then nothing has changed.
    pub fn make(
        &mut self,
        folder: &Folder,
        settings: &Settings,
        listen: &[SocketAddr],
        now: Timestamp,
    ) -> Result<Made, Failure> {
        let certificate = match &settings.files {
            Some((certificate, _)) => folder.file_at(certificate),
            None => folder.file(name::SERVER_CERTIFICATE),
        };
        let Identity { chain, key, trust, ca_key } = match &settings.files {
            Some((_, ServerKey::Held(name))) => {
                let (chain, trust) = authority::chain(&certificate)?;
                Identity { chain, key: PrivateKey::Held(name.clone()), trust, ca_key: None }
            }
            Some((_, ServerKey::File(key))) => authority::read(&certificate, &folder.file_at(key))?,
            None => {
                let names = Names::new(&settings.names, listen);
                authority::identity(&self.engine, folder, self.cryptod.as_deref(), &names, now)?
            }
        };
        let names = chain.first().and_then(|der| Certificate::read(der).ok());
        let names = names.map(|certificate| certificate.names).unwrap_or_default();
        let uncovered = |wanted: &&Name| !names.iter().any(|name: &Name| name.covers(wanted));
        for name in settings.names.iter().filter(uncovered) {
            let file = certificate.display();
            output::note(format_args!(
                "{file} does not name {name}, and is not ours to issue again; clients that call \
                 the server so will refuse it"
            ));
        }
        let trusted = trusted(folder, settings, now)?;
        let mut options = self.options.clone();
        if trusted != self.trusted {
            options.clients = match &trusted {
                None => Arc::new(NoClientAuth),
                Some(trusted) => Arc::new(trusted.verifier(&options)?),
            };
            let tickets = Tickets::new(self.engine.clone(), Instant::now());
            options.tickets = Arc::new(tickets.map_err(Failure::new)?);
        }
        let config = match key {
            PrivateKey::File(key, file) => keyway_tls::server_config(&options, chain, key)
                .map_err(|why| not_made(&certificate, &file, why)),
            PrivateKey::Held(name) => {
                keyway_tls::server_config_with_held_key(&options, &self.engine, chain, &name)
                    .map_err(|why| not_made_with_held(&certificate, &name, why))
            }
        }?;
        (self.options, self.trusted) = (options, trusted);
        Ok(Made { config: Arc::new(config), trust, names, ca_key })
    }
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

/// The same with a key that cryptod holds.
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

impl Trusted {
    fn verifier(&self, options: &ServerOptions) -> Result<ClientVerifier, Failure> {
        let mut roots = RootCertStore::empty();
        for certificate in &self.authorities {
            roots.add(certificate.clone()).map_err(|why| {
                Failure::new(format!("an authority for clients cannot be used: {why}"))
            })?;
        }
        ClientVerifier::new(&options.provider, roots, &self.lists, self.required).map_err(|why| {
            match why {
                ConfigError::RevocationList(index, why) => match self.list_files.get(index) {
                    Some(file) => malformed(file, why),
                    None => Failure::new(why),
                },
                why => Failure::new(why),
            }
        })
    }
}

/// Who is trusted to issue to clients; `None` if no client is asked.
fn trusted(
    folder: &Folder,
    settings: &Settings,
    now: Timestamp,
) -> Result<Option<Trusted>, Failure> {
    let required = match settings.clients {
        Clients::Off => return Ok(None),
        Clients::Optional => false,
        Clients::Required => true,
    };
    let own = folder.file(name::CA_CERTIFICATE);
    let files = match &settings.client_ca[..] {
        [] if !own.exists() && required => {
            return Err(Failure::new(format!(
                "client certificates are required, and there is no authority to check them \
                 against: name its file as client_ca in {}",
                folder.file(name::CONFIGURATION).display()
            )));
        }
        [] if !own.exists() => return Ok(None),
        [] => vec![own],
        files => files.iter().map(|file| folder.file_at(file)).collect(),
    };
    let mut authorities = Vec::new();
    for file in &files {
        authorities.extend(authority::certificates(file)?);
    }
    let (mut lists, mut list_files) = (Vec::new(), Vec::new());
    for file in settings.client_crls.iter().map(|file| folder.file_at(file)) {
        let all = revocation_lists(&file, now)?;
        list_files.extend(all.iter().map(|_| file.clone()));
        lists.extend(all);
    }
    if !lists.is_empty() {
        every_authority_has_one(&authorities, &lists)?;
    }
    Ok(Some(Trusted { required, authorities, lists, list_files }))
}

/// The lists in a file, PEM or DER; at least one, and none out of date.
fn revocation_lists(
    file: &Path,
    now: Timestamp,
) -> Result<Vec<CertificateRevocationListDer<'static>>, Failure> {
    let system = |why| Failure::system("read", file, &why);
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(system)?;
    opened.take(REVOCATION_LIST_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(system)?;
    if bytes.len() as u64 > REVOCATION_LIST_BYTES_MAX {
        let why = format!("it is longer than {REVOCATION_LIST_BYTES_MAX} bytes");
        return Err(malformed(file, why));
    }
    let lists = if bytes.starts_with(&[DER_SEQUENCE]) {
        vec![CertificateRevocationListDer::from(bytes)]
    } else {
        let all: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&bytes).collect();
        all.map_err(|why| malformed(file, why))?
    };
    if lists.is_empty() {
        return Err(malformed(file, "there is no certificate revocation list in it"));
    }
    for list in &lists {
        let Ok(list) = RevocationList::read(list) else {
            return Err(malformed(file, "it is no certificate revocation list"));
        };
        let due = list.next_update_unix_s.map(Timestamp::from_unix_s);
        if let Some(due) = due.filter(|due| *due < now) {
            let why = format!(
                "a newer one was due at {due}; fetch it from the authority, then start again or \
                 send SIGHUP"
            );
            return Err(malformed(file, why));
        }
    }
    Ok(lists)
}

/// How DER begins, and PEM does not.
const DER_SEQUENCE: u8 = 0x30;

/// One without would have all of its clients refused, and nobody would know why.
fn every_authority_has_one(
    authorities: &[CertificateDer<'_>],
    lists: &[CertificateRevocationListDer<'_>],
) -> Result<(), Failure> {
    let issuers: Vec<_> =
        lists.iter().filter_map(|list| Some(RevocationList::read(list).ok()?.issuer)).collect();
    let without = authorities
        .iter()
        .filter_map(|der| Certificate::read(der).ok())
        .position(|authority| !issuers.contains(&authority.subject));
    match without {
        None => Ok(()),
        Some(index) => Err(Failure::new(format!(
            "client_crls has no list of authority {} of client_ca, so that all its clients would \
             be refused; name its list too, or take the authority out",
            index + 1
        ))),
    }
}
