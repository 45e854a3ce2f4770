//! The keys of the certificates that are made for a data folder: in files of it, or in cryptod, which
//! alone sees them. Key files that are there although cryptod is to hold them are given to it, and
//! removed when it has them.

use crate::authority::{certificates, malformed};
use crate::control::{Control, nonsense};
use crate::data::{self, Folder, name};
use crate::failure::Failure;
use crate::output;
use crate::signing::{self, SigningKey};
use keyway_codec::certificate::Certificate;
use keyway_engine::{Algorithm, Engine};
use keyway_ring::control::{Answer, Ask, KeyAsk, KeyInfo, KeyPolicy, Secret};
use rcgen::PublicKeyData;
use rustix::process::getuid;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Which of them.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    /// The certificate authority's.
    Authority,
    /// The server's.
    Server,
}

impl Which {
    /// Its file, where it is in one.
    pub fn file(self) -> &'static str {
        match self {
            Which::Authority => name::CA_KEY,
            Which::Server => name::SERVER_KEY,
        }
    }

    /// The certificate that it belongs to.
    fn certificate(self) -> &'static str {
        match self {
            Which::Authority => name::CA_CERTIFICATE,
            Which::Server => name::SERVER_CERTIFICATE,
        }
    }

    /// What cryptod calls it; those that come after one that stays are `NAME-2` and so on.
    fn name(self) -> &'static str {
        match self {
            Which::Authority => "tls-ca",
            Which::Server => "tls-server",
        }
    }

    /// Whether one of that name is among them.
    fn has_name(self, name: &str) -> bool {
        let number =
            |rest: &str| rest.strip_prefix('-').is_some_and(|it| it.parse::<u32>().is_ok());
        name.strip_prefix(self.name()).is_some_and(|rest| rest.is_empty() || number(rest))
    }
}

/// Whether a key of cryptod has a name that one of them has.
pub fn is_named(which: Which, name: &str) -> bool {
    which.has_name(name)
}

/// A private key, or where it is.
pub enum PrivateKey {
    /// From this file.
    File(PrivateKeyDer<'static>, PathBuf),
    /// In cryptod, under this name.
    Held(String),
}

/// Whether cryptod holds keys of this folder's certificates, as far as files say.
pub fn are_held(data: &Path) -> bool {
    let Ok(files) = std::fs::read_dir(crate::cryptod::keys_at(data)) else { return false };
    files.flatten().any(|file| {
        let file = file.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(".key"));
        name.is_some_and(|name| Which::Server.has_name(name) || Which::Authority.has_name(name))
    })
}

/// What the cryptod that listens there calls the key with this public half, and what it signs with, if it
/// holds it.
///
/// # Errors
/// If it does not answer.
pub fn held(
    cryptod: &Path,
    which: Which,
    public_key: &[u8],
) -> Result<Option<(String, Vec<Algorithm>)>, Failure> {
    let held = Held::open(cryptod)?;
    let key = held.find(which, Some(public_key));
    Ok(key.map(|key| (key.name.clone(), key.algorithms.clone())))
}

/// The keys of a data folder.
pub struct OwnKeys<'a> {
    engine: &'a Engine,
    folder: &'a Folder,
    held: Option<Held>,
}

/// Those that cryptod holds.
struct Held {
    daemon: Control,
    /// All that have such a name, in order.
    keys: Vec<HeldKey>,
}

struct HeldKey {
    name: String,
    algorithms: Vec<Algorithm>,
    public_key: Vec<u8>,
    is_active: bool,
}

impl<'a> OwnKeys<'a> {
    /// Those in files of the folder; or, if a cryptod's socket is given, those that it holds. It is the one
    /// that the engine is connected to.
    ///
    /// # Errors
    /// If the daemon does not answer, or a file in the folder is no key, or not that of its certificate.
    pub fn open(
        engine: &'a Engine,
        folder: &'a Folder,
        cryptod: Option<&Path>,
    ) -> Result<OwnKeys<'a>, Failure> {
        let Some(socket) = cryptod else { return Ok(OwnKeys { engine, folder, held: None }) };
        let held = Held::open(socket)?;
        let mut keys = OwnKeys { engine, folder, held: Some(held) };
        for which in [Which::Authority, Which::Server] {
            keys.give_away(which)?;
        }
        Ok(keys)
    }

    /// Whether it is there; where cryptod holds several, the one with this public half.
    pub fn has(&self, which: Which, public_key: Option<&[u8]>) -> bool {
        match &self.held {
            None => self.folder.has(which.file()),
            Some(held) => held.find(which, public_key).is_some(),
        }
    }

    /// Loads it, if it is there.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn load(
        &self,
        which: Which,
        public_key: Option<&[u8]>,
    ) -> Result<Option<SigningKey>, Failure> {
        let Some(held) = &self.held else {
            let file = self.folder.file(which.file());
            return self.folder.has(which.file()).then(|| self.read(&file)).transpose();
        };
        let Some(key) = held.find(which, public_key) else { return Ok(None) };
        let loaded = SigningKey::held(self.engine, &key.name, &key.algorithms);
        loaded.map(Some).map_err(|why| {
            Failure::new(format!("the key {} of cryptod cannot be used: {why}", key.name))
        })
    }

    /// Makes a new one, on P-256, which is kept.
    ///
    /// # Errors
    /// If it cannot be made or kept.
    pub fn make(&mut self, which: Which) -> Result<SigningKey, Failure> {
        let Some(held) = &mut self.held else {
            let made = SigningKey::generate(self.engine);
            let (key, der) =
                made.map_err(|why| Failure::new(format!("cannot make a key: {why}")))?;
            let der = Zeroizing::new(der);
            self.folder.write_secret(which.file(), signing::pem(&der).as_bytes())?;
            return Ok(key);
        };
        let name = held.free_name(which);
        let policy = policy(&[Algorithm::EcdsaP256Sha256]);
        held.change(KeyAsk::Generate { name: name.clone(), policy }, &name)?;
        let made = SigningKey::held(self.engine, &name, &[Algorithm::EcdsaP256Sha256]);
        made.map_err(|why| Failure::new(format!("the new key {name} of cryptod: {why}")))
    }

    /// The key of a certificate with this public half, for a server.
    ///
    /// # Errors
    /// If it is not there or cannot be used.
    pub fn private_key(&self, which: Which, public_key: &[u8]) -> Result<PrivateKey, Failure> {
        let file = self.folder.file(which.file());
        let Some(held) = &self.held else {
            return Ok(PrivateKey::File(read(&file)?, file));
        };
        match held.find(which, Some(public_key)) {
            Some(key) => Ok(PrivateKey::Held(key.name.clone())),
            None => Err(malformed(
                &self.folder.file(which.certificate()),
                format!("cryptod does not hold its key; put that at {}", file.display()),
            )),
        }
    }

    /// Where it is, if it is there: a file, or `cryptod:NAME`.
    pub fn place(&self, which: Which, public_key: Option<&[u8]>) -> Option<String> {
        let file = || self.folder.file(which.file()).display().to_string();
        match &self.held {
            None => self.has(which, public_key).then(file),
            Some(held) => Some(format!("cryptod:{}", held.find(which, public_key)?.name)),
        }
    }

    /// Where the authority's key has to be for one start, in words.
    pub fn place_of_authority(&self) -> String {
        let file = self.folder.file(name::CA_KEY);
        match &self.held {
            None => format!("put it at {} for one start, and take it away again", file.display()),
            Some(_) => {
                let sealed = crate::cryptod::keys_at(self.folder.path())
                    .join(format!("{}.key", Which::Authority.name()));
                format!(
                    "put it back at {} (or, as PEM, at {}, for cryptod to keep), and start again",
                    sealed.display(),
                    file.display()
                )
            }
        }
    }

    /// Gives a key file to cryptod. Killed at any point, the next start goes on with it.
    fn give_away(&mut self, which: Which) -> Result<(), Failure> {
        if !self.folder.has(which.file()) {
            return Ok(());
        }
        let file = self.folder.file(which.file());
        let key = self.read(&file)?;
        let certificate = self.folder.file(which.certificate());
        if certificate.exists() && public_key_in(&certificate)? != key.der_bytes() {
            let why = format!("it is not the key of {}", certificate.display());
            return Err(malformed(&file, why));
        }
        let Some(held) = &mut self.held else { return Ok(()) };
        if held.find(which, Some(key.der_bytes())).is_none() {
            let name = held.free_name(which);
            let pem = data::read_secret(&file)?;
            let (policy, material) = (policy(key.algorithms()), Secret::from(pem.as_bytes()));
            held.change(KeyAsk::Import { name: name.clone(), policy, material }, &name)?;
        }
        if let Some(kept) = held.find(which, Some(key.der_bytes())) {
            self.folder.remove(which.file())?;
            output::note(format_args!(
                "{} is removed: cryptod holds that key now, as {}",
                file.display(),
                kept.name
            ));
        }
        Ok(())
    }

    fn read(&self, file: &Path) -> Result<SigningKey, Failure> {
        let der = Zeroizing::new(read(file)?);
        SigningKey::load(self.engine, &der).map_err(|why| malformed(file, why))
    }
}

/// Reads a private key from a file, PEM.
///
/// # Errors
/// If it is none, is encrypted, or others can read it.
pub fn read(file: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    let pem = data::read_secret(file)?;
    if pem.contains("ENCRYPTED") {
        let file = file.display();
        return Err(Failure::new(format!(
            "{file} is encrypted, and nobody is there to be asked for its passphrase; decrypt it \
             with: openssl pkey -in {file} -out FILE (readable by its owner only)"
        )));
    }
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|why| malformed(file, why))
}

/// The public key of the first certificate in a file.
///
/// # Errors
/// If there is none.
pub fn public_key_in(certificate: &Path) -> Result<Vec<u8>, Failure> {
    let chain = certificates(certificate)?;
    let first = chain.first().and_then(|der| Certificate::read(der).ok());
    let first = first.ok_or_else(|| malformed(certificate, "it is not a certificate"))?;
    Ok(first.public_key)
}

/// To sign with, for this user.
fn policy(algorithms: &[Algorithm]) -> KeyPolicy {
    KeyPolicy {
        algorithms: algorithms.iter().map(|it| it.name().to_owned()).collect(),
        purposes: vec!["sign".to_owned()],
        callers: vec![this_user()],
    }
}

/// Whether it was made when the folder belonged to other users, for them alone.
fn is_anothers(policy: &KeyPolicy) -> bool {
    // As in "uid 0 to sign".
    let user =
        |caller: &String| caller.split(" to ").next()?.strip_prefix("uid ")?.parse::<u32>().ok();
    let own = getuid().as_raw();
    policy.callers.iter().all(|caller| user(caller).is_some_and(|user| user != own))
}

/// This user as cryptod knows him.
fn this_user() -> String {
    format!("user:{}", getuid().as_raw())
}

/// The state of a key that can be used.
const ACTIVE: &str = "active";

impl Held {
    fn open(socket: &Path) -> Result<Held, Failure> {
        let mut held =
            Held { daemon: Control::connect(socket, "keyway directory")?, keys: Vec::new() };
        held.look()?;
        Ok(held)
    }

    fn look(&mut self) -> Result<(), Failure> {
        let mut keys = Vec::new();
        for key in self.daemon.keys()? {
            if Which::Authority.has_name(&key.name) || Which::Server.has_name(&key.name) {
                keys.push(self.look_at(key)?);
            }
        }
        self.keys = keys;
        Ok(())
    }

    fn look_at(&self, key: KeyInfo) -> Result<HeldKey, Failure> {
        let KeyInfo { name, policy, state, .. } = key;
        if state == ACTIVE && is_anothers(&policy) {
            let ask = KeyAsk::Allow { name: name.clone(), callers: vec![this_user()] };
            if !matches!(self.daemon.ask(&Ask::Keys(ask))?, Answer::Done) {
                return Err(nonsense());
            }
        }
        let ask = Ask::Keys(KeyAsk::Public { name: name.clone() });
        let Answer::Public { key: public_key, .. } = self.daemon.ask(&ask)? else {
            return Err(nonsense());
        };
        let algorithms = policy.algorithms.iter().filter_map(|it| it.parse().ok()).collect();
        Ok(HeldKey { name, algorithms, public_key, is_active: state == ACTIVE })
    }

    /// Has the daemon make or take a key.
    fn change(&mut self, ask: KeyAsk, name: &str) -> Result<(), Failure> {
        match self.daemon.ask(&Ask::Keys(ask)) {
            Ok(Answer::Done) => self.look(),
            Ok(_) => Err(nonsense()),
            Err(why) => Err(Failure::new(format!("cryptod does not take the key {name}: {why}"))),
        }
    }

    fn find(&self, which: Which, public_key: Option<&[u8]>) -> Option<&HeldKey> {
        let is_it = |key: &&HeldKey| public_key.is_none_or(|public| key.public_key == public);
        let active = self.keys.iter().filter(|key| key.is_active && which.has_name(&key.name));
        active.into_iter().find(is_it)
    }

    fn free_name(&self, which: Which) -> String {
        let numbered = (2_u32..).map(|number| format!("{}-{number}", which.name()));
        let mut names = std::iter::once(which.name().to_owned()).chain(numbered);
        let is_free = |name: &String| self.keys.iter().all(|key| key.name != *name);
        names.find(is_free).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys() {
        for name in ["tls-server", "tls-server-2", "tls-server-17"] {
            assert!(Which::Server.has_name(name) && !Which::Authority.has_name(name), "{name}");
        }
        for name in ["tls-servers", "tls-server-", "tls-server-x", "tls", "tls-ca"] {
            assert!(!Which::Server.has_name(name), "{name}");
        }
    }
}
