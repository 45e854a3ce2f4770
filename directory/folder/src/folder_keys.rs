//! The keys of the certificates that are made for a data folder: in files of it, or in cryptod, which
//! alone sees them. Key files that are there although cryptod is to hold them are given to it, and
//! removed when it has them.

use crate::control::{Control, nonsense};
use crate::data::{self, Folder, name};
use crate::pem::{certificates, malformed, words};
use crate::signing::{self, SigningKey};
use keyway_codec::certificate::Certificate;
use keyway_daemon::keys::{Caller, KeyStore, Material, Purpose, Spec, Who};
use keyway_daemon::witness::Witness;
use keyway_engine::{Algorithm, Engine};
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use keyway_ring::Socket;
use keyway_ring::control::{Answer, Ask, KeyAsk, KeyInfo, KeyPolicy, Secret};
use rcgen::PublicKeyData;
use rustix::process::getuid;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
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

    /// The name that cryptod has for it; those that come after one that stays are `NAME-2` and so on.
    fn name(self) -> &'static str {
        match self {
            Which::Authority => "tls-ca",
            Which::Server => "tls-server",
        }
    }

    /// The first of its names that none has.
    fn free_name(self, is_taken: impl Fn(&str) -> bool) -> String {
        let numbered = (2_u32..).map(|number| format!("{}-{number}", self.name()));
        let mut names = std::iter::once(self.name().to_owned()).chain(numbered);
        names.find(|name| !is_taken(name)).unwrap_or_default()
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
    let files = match std::fs::read_dir(name::keys_at(data)) {
        Ok(files) => files,
        // cryptod is another user, and holds them.
        Err(why) => return why.kind() == ErrorKind::PermissionDenied,
    };
    files.flatten().any(|file| {
        let file = file.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(".key"));
        name.is_some_and(|name| Which::Server.has_name(name) || Which::Authority.has_name(name))
    })
}

/// The name that the cryptod that listens there has for the key with this public half, and the algorithms
/// that it signs with, if it holds the key.
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

    /// Whether cryptod holds them.
    pub fn are_held(&self) -> bool {
        self.held.is_some()
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
                let sealed = name::keys_at(self.folder.path())
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

/// A private key that a cryptod of another user is to hold, from a file that was open.
pub struct Brought {
    which: Which,
    pem: Zeroizing<String>,
    public_key: Vec<u8>,
    algorithms: Vec<Algorithm>,
}

/// Reads a key file of a data folder that is open. One that is not its certificate's is left where it is, for
/// ldapd to say so.
///
/// # Errors
/// If it is none.
pub fn brought(
    engine: &Engine,
    data: &Path,
    which: Which,
    mut file: File,
) -> Result<Option<Brought>, Failure> {
    let path = data.join(which.file());
    let cannot = |why| Failure::system("read", &path, &why);
    let bytes = file.metadata().map_err(cannot)?.len().min(PEM_BYTES_MAX);
    let mut pem = Zeroizing::new(String::with_capacity(bytes as usize + 1));
    (&mut file).take(PEM_BYTES_MAX).read_to_string(&mut pem).map_err(cannot)?;
    let der = PrivateKeyDer::from_pem_slice(pem.as_bytes());
    let der = Zeroizing::new(der.map_err(|why| malformed(&path, words(&why)))?);
    let key = SigningKey::load(engine, &der).map_err(|why| malformed(&path, why))?;
    let (public_key, algorithms) = (key.der_bytes().to_vec(), key.algorithms().to_vec());
    let certificate = data.join(which.certificate());
    let fits = !certificate.exists() || public_key_in(&certificate)? == public_key;
    Ok(fits.then_some(Brought { which, pem, public_key, algorithms }))
}

/// Has cryptod's own store hold what a directory of another user needs, which looks after no keys: those that
/// it brings, else one of each, for it to sign with.
///
/// # Errors
/// If one cannot be made or kept.
pub fn provide(store: &KeyStore, directory: u32, brought: &[Brought]) -> Result<(), Failure> {
    let by = Socket::pair().and_then(|(one, _)| Caller::of(&one, &Witness::default()));
    let by = by.map_err(|why| Failure::new(format!("cannot make keys: {}", plain(&why))))?;
    let (now, grantees) = (SystemTime::now(), [Who { uid: Some(directory), ..Who::ANY }]);
    let cannot = |why| Failure::new(format!("cannot hold the directory's keys: {why}"));
    for which in [Which::Authority, Which::Server] {
        let add = |algorithms: &[Algorithm], material| {
            let keys = store.list();
            let name = which.free_name(|name| keys.iter().any(|key| key.name == name));
            let spec = Spec { algorithms, purposes: Purpose::Sign.into() };
            store.add_for(&name, spec, material, &grantees, &by, now).map(drop).map_err(cannot)
        };
        let newest = |key: &keyway_daemon::keys::KeyInfo| {
            key.versions.last().map(|version| version.public_key.clone())
        };
        for key in brought.iter().filter(|it| it.which.file() == which.file()) {
            let is_it = |held: &_| newest(held).as_ref() == Some(&key.public_key);
            if !store.list().iter().any(|held| which.has_name(&held.name) && is_it(held)) {
                add(&key.algorithms, Material::Pem(key.pem.as_bytes()))?;
            }
        }
        let mut active = store.list();
        active.retain(|key| which.has_name(&key.name) && key.revoked_s.is_none());
        let all = active.len();
        active.retain(|key| key.disabled.is_none());
        // Another authority is of no use to those who trust the one whose key is only disabled.
        if active.is_empty() && (all == 0 || which.file() == Which::Server.file()) {
            add(&[Algorithm::EcdsaP256Sha256], Material::NEW)?;
        }
        for key in active {
            // It was made for one that had the folder before, and for no other.
            let own = key.grants.iter().any(|grant| grant.who.uid == Some(directory));
            if !own && key.grants.iter().all(|grant| grant.who.uid.is_some()) {
                store.allow(&key.name, &grantees[0], key.purposes, &by, now).map_err(cannot)?;
            }
        }
    }
    Ok(())
}

/// More than a file of one private key has, in bytes.
const PEM_BYTES_MAX: u64 = 64 << 10;

/// Reads a private key from a file, PEM.
///
/// # Errors
/// If it is none, is encrypted, or others can read it.
pub fn read(file: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    data::plain_file(file)?;
    let pem = data::read_secret(file)?;
    if pem.contains("ENCRYPTED") {
        let file = file.display();
        return Err(Failure::new(format!(
            "{file} is encrypted, and the server cannot ask for its passphrase; decrypt it \
             with: openssl pkey -in {file} -out FILE (readable by its owner only)"
        )));
    }
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|why| malformed(file, words(&why)))
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
fn is_of_another(policy: &KeyPolicy) -> bool {
    // As in "uid 0 to sign".
    let user =
        |caller: &String| caller.split(" to ").next()?.strip_prefix("uid ")?.parse::<u32>().ok();
    let own = getuid().as_raw();
    policy.callers.iter().all(|caller| user(caller).is_some_and(|user| user != own))
}

/// This user as cryptod identifies it.
fn this_user() -> String {
    format!("user:{}", getuid().as_raw())
}

/// The state of a key that can be used.
const ACTIVE: &str = "active";
/// The state of a key that no client may use begins with this.
const DISABLED: &str = "disabled";

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
        if state.starts_with(DISABLED) {
            output::note(format_args!(
                "warning: cryptod does not use its key {name} (keyway key list shows why)"
            ));
            let (algorithms, public_key) = (Vec::new(), Vec::new());
            return Ok(HeldKey { name, algorithms, public_key, is_active: false });
        }
        if state == ACTIVE && is_of_another(&policy) {
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
        which.free_name(|name| self.keys.iter().any(|key| key.name == name))
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
