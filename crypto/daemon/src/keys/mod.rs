//! The key store: keys that are named by clients and seen by nobody.
//!
//! ```
//! use keyway_daemon::keys::*;
//! use keyway_engine::Algorithm;
//! use std::time::SystemTime;
//!
//! # let place = tempfile::tempdir().unwrap();
//! # let (folder, file) = (place.path().join("keys"), place.path().join("master"));
//! # let caller = Caller { uid: 1000, gid: 1000, groups: vec![], pid: 1, executable: None };
//! let (engine, now) = (keyway_drivers::engine(), SystemTime::now());
//! let master = MasterKey::create_file(&file, &engine)?;
//! let store = KeyStore::create(&folder, Master::Key(&master), &engine, |what| eprintln!("{what}"))?;
//!
//! let algorithm = Algorithm::EcdsaP256Sha256;
//! let spec = Spec { algorithms: &[algorithm], purposes: Purpose::Sign.into() };
//! store.add("tls.server", spec, Material::NEW, &caller, now)?;
//! let who = Who { uid: Some(1000), ..Who::EVERYBODY };
//! store.allow("tls.server", &who, Purpose::Sign.into(), &caller, now)?;
//!
//! let wanted = Wanted::new(algorithm, Purpose::Sign.into());
//! let key = store.session("tls.server", &caller, wanted, now)?;
//! let signature = key.session().sign(b"text")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # On disk
//!
//! A folder (0700) with these files (0600):
//!
//! - `store`: whose it is and how its master key is made ([`Header`]);
//! - `NAME.key`: a key with its versions and grants, sealed under the master key ([`SealedFile`],
//!   [`Record`]);
//! - `audit.log`: who changed what, and who was refused;
//! - `lock`: keeps a second process out.
//!
//! A file is written beside its place, synced, and renamed: after a crash each key is as it was before
//! a change or after it. A file that is not what the store wrote makes [`KeyStore::open`] fail with
//! its name, and stays as it is. Where to put an older file back is an attack, the folder must be out of
//! the attacker's reach: sealing does not show it.
//!
//! # Who may do what
//!
//! A key has *purposes*, and *grants* say who may use it for which of them; at first, nobody may. Those
//! who create, change, list and delete keys are managers: the store does as they say, and writes down
//! who it was; that they are managers, its caller has to know.
//!
//! Who asks for a key that is not there, or not for him, is told [`Error::Refused`] in either case. The
//! audit log has the reason.
//!
//! # Versions
//!
//! [`KeyStore::rotate`] gives a key a new version. Only the newest signs, seals and wraps; older ones
//! open, decrypt, unwrap, agree and derive, and make the MACs that verification compares with. Sessions
//! that are open when a key is rotated, revoked, deleted or taken from somebody have *ended*
//! ([`KeySession::permits`]): their client opens new ones.
//!
//! # Usage counts
//!
//! Who works with a [`KeySession`] counts the requests there. The counts reach the disk with each
//! change of the key and with [`KeyStore::save_usage`]; a crash forgets those since. Nothing depends on
//! them.

mod access;
mod audit;
mod disk;
mod error;
mod header;
mod master;
mod material;
mod record;
mod sealed;
mod tpm;

pub use access::{Caller, Grant, Purpose, Purposes, UnknownPurpose, Who};
pub use error::Error;
pub use header::{Header, PassphraseHeader};
pub use master::{Master, MasterKey, Passphrase};
pub use material::{Material, decode_pem};
pub use record::{Encoding, Record};
pub use sealed::SealedFile;

use crate::limits;
use audit::{Asked, Audit, unix_s};
use keyway_engine::{Algorithm, Engine, Kind, Nonces, Parameters, Request, Session, Usage};
use record::Version;
use sealed::Vault;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const HEADER: &str = "store";
const HEADER_BYTES_MAX: usize = 1_024;
const AUDIT: &str = "audit.log";
const KEY_SUFFIX: &str = ".key";

/// An open key store. All threads may use it at once; changes are made one after the other.
pub struct KeyStore {
    folder: PathBuf,
    engine: Engine,
    vault: Vault,
    keys: RwLock<BTreeMap<String, Arc<Entry>>>,
    /// Held by who changes something. Readers wait only while the map is changed, not for the disk.
    changes: Mutex<()>,
    audit: Audit,
    lock: File,
    /// Whether another process has it now.
    given_up: AtomicBool,
}

/// A key as it is on the disk. A change puts another in its place.
struct Entry {
    record: Record,
    /// How often it was written.
    revision: u64,
    /// Set when sessions that were opened with it must not go on.
    ended: Arc<AtomicBool>,
}

/// What a key is to be for.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    /// One, or several of RSA's.
    pub algorithms: &'a [Algorithm],
    /// Those of [`Purposes::of`] of its algorithms that it is to serve.
    pub purposes: Purposes,
}

/// What a client wants to do with a key.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// One of the key's.
    pub algorithm: Algorithm,
    /// What for; the session permits these and nothing else.
    pub purposes: Purposes,
    /// With which version; the newest if none is given.
    pub version: Option<u32>,
    /// Whom the work is for, in the meters ([`Parameters::client`]).
    pub client: Option<&'a str>,
}

impl Wanted<'_> {
    /// With the newest version, and for nobody in the meters.
    pub const fn new(algorithm: Algorithm, purposes: Purposes) -> Self {
        Wanted { algorithm, purposes, version: None, client: None }
    }
}

/// One for each of these callers, for these purposes.
fn grants(callers: &[Who], purposes: Purposes) -> Result<Vec<Grant>, Error> {
    let mut grants: Vec<Grant> = Vec::new();
    for who in callers {
        if grants.iter().all(|grant| grant.who != *who) {
            grants.push(Grant { who: who.clone(), purposes });
        }
    }
    if grants.len() > limits::GRANTS_MAX {
        return Err(Error::Limit { of: "grants of a key", most: limits::GRANTS_MAX });
    }
    Ok(grants)
}

/// What may be known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub algorithms: Vec<Algorithm>,
    /// What it may be used for.
    pub purposes: Purposes,
    /// By whom.
    pub grants: Vec<Grant>,
    /// When it was made or imported, in seconds since 1970.
    pub created_s: u64,
    /// When it was revoked, if it is, in seconds since 1970.
    pub revoked_s: Option<u64>,
    /// Its versions, the newest last.
    pub versions: Vec<VersionInfo>,
}

/// What may be known of one version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionInfo {
    /// From 1 on.
    pub number: u32,
    /// When it was made or imported, in seconds since 1970.
    pub created_s: u64,
    /// Its public half, as [`Session::public_key`] gives it; empty if there is none.
    pub public_key: Vec<u8>,
    /// Requests that were done under it.
    pub uses: u64,
}

/// A session of the engine with a key of the store, and what may be done on it. Clones count and end
/// together.
#[derive(Clone, Debug)]
pub struct KeySession {
    session: Session,
    version: u32,
    purposes: Purposes,
    uses: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl KeySession {
    /// The session. It would do more than is permitted: every request has to be asked about with
    /// [`KeySession::permits`]. Of an AEAD it makes its own nonces ([`Nonces::Salted`]).
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Which version of the key it has.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Whether a request may be done: the session has not ended, and was opened for that. Costs two
    /// comparisons.
    #[inline]
    pub fn permits(&self, request: &Request<'_>) -> bool {
        !self.is_ended() && Purpose::of(request).is_none_or(|it| self.purposes.contains(it))
    }

    /// Whether its key was rotated, revoked, deleted, or taken from somebody since.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Counts requests that were done.
    #[inline]
    pub fn count(&self, requests: u64) {
        self.uses.fetch_add(requests, Ordering::Relaxed);
    }
}

impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStore").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl KeyStore {
    /// Makes an empty store in a folder, which is made if it is not there, and opens it. `report` is
    /// told, from any thread, that the audit log cannot be written and that it can be written again.
    ///
    /// # Errors
    /// [`Error::StoreExists`]; [`Error::Damaged`] if there are keys without a header; else those of
    /// [`KeyStore::open`].
    pub fn create(
        folder: &Path,
        master: Master<'_>,
        engine: &Engine,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        disk::make_folder(folder)?;
        let lock = disk::lock(folder)?;
        let path = folder.join(HEADER);
        if disk::read(&path, HEADER_BYTES_MAX)?.is_some() {
            return Err(Error::StoreExists(folder.to_owned()));
        }
        if names(folder)?.iter().any(|name| name.ends_with(KEY_SUFFIX)) {
            return Err(Error::damaged(&path, "it is not there, but keys are"));
        }
        let mut header = Header { id: Default::default(), passphrase: None, check: [0; 32] };
        engine.random(&mut header.id)?;
        if let Master::Passphrase(_) = master {
            let mut salt = [0; header::SALT_BYTES];
            engine.random(&mut salt)?;
            header.passphrase = Some(PassphraseHeader {
                salt,
                memory_kib: limits::PASSPHRASE_MEMORY_KIB,
                passes: limits::PASSPHRASE_PASSES,
                lanes: limits::PASSPHRASE_LANES,
            });
        }
        let vault = unlock(folder, &header, master, engine)?;
        header.check = *vault.check()?;
        disk::put_new(&path, &header.to_bytes()?)?;
        Ok(Self::new(folder, engine, vault, lock, Box::new(report)))
    }

    /// Opens the store in a folder, and takes every key out of its seal. With a passphrase that takes
    /// a few tenths of a second and 64 MiB. `report` as for [`KeyStore::create`].
    ///
    /// # Errors
    /// [`Error::WrongMaster`]; [`Error::Damaged`] with the file that is spoilt or none of ours;
    /// [`Error::Exposed`] where others have rights; [`Error::InUse`]; [`Error::System`];
    /// [`Error::Engine`].
    pub fn open(
        folder: &Path,
        master: Master<'_>,
        engine: &Engine,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        disk::private_folder(folder)?;
        let lock = disk::lock(folder)?;
        let path = folder.join(HEADER);
        let none = || Error::system("open", &path)(std::io::ErrorKind::NotFound.into());
        let header = disk::read(&path, HEADER_BYTES_MAX)?.ok_or_else(none)?;
        let header = Header::parse(&header).map_err(|what| Error::damaged(&path, what))?;
        let vault = unlock(folder, &header, master, engine)?;
        if !bool::from(vault.check()?.ct_eq(&header.check)) {
            return Err(Error::WrongMaster(folder.to_owned()));
        }
        let mut store = Self::new(folder, engine, vault, lock, Box::new(report));
        let keys = store.load()?;
        store.keys = RwLock::new(keys);
        Ok(store)
    }

    /// Whether there is a store in the folder. If it cannot be looked at, there is none.
    pub fn exists(folder: &Path) -> bool {
        folder.join(HEADER).exists()
    }

    fn new(
        folder: &Path,
        engine: &Engine,
        vault: Vault,
        lock: File,
        report: audit::Report,
    ) -> Self {
        KeyStore {
            folder: folder.to_owned(),
            engine: engine.clone(),
            vault,
            keys: RwLock::default(),
            changes: Mutex::default(),
            audit: Audit::new(folder.join(AUDIT), report),
            lock,
            given_up: AtomicBool::new(false),
        }
    }

    fn load(&self) -> Result<BTreeMap<String, Arc<Entry>>, Error> {
        let mut keys = BTreeMap::new();
        for file in names(&self.folder)? {
            let path = self.folder.join(&file);
            if let Some(unfinished) = file.strip_suffix(disk::DRAFT)
                && (unfinished == HEADER || unfinished.ends_with(KEY_SUFFIX))
            {
                disk::remove(&path)?;
            }
            let Some(name) = file.strip_suffix(KEY_SUFFIX) else { continue };
            if !keyway_engine::is_key_name(name) {
                return Err(Error::damaged(&path, "it is not named like a file of a key store"));
            }
            if keys.len() == limits::KEYS_MAX {
                return Err(TOO_MANY_KEYS);
            }
            let damaged = |what| Error::damaged(&path, what);
            // It was there a moment ago.
            let Some(bytes) = disk::read(&path, limits::FILE_BYTES_MAX)? else { continue };
            let (revision, bytes) = self.vault.open(&path, name, &bytes)?;
            let record = Record::decode(name, &bytes).map_err(damaged)?;
            keys.insert(
                name.to_owned(),
                Arc::new(Entry { record, revision, ended: Arc::default() }),
            );
        }
        Ok(keys)
    }

    /// Makes a key, or imports one. At first nobody may use it ([`KeyStore::allow`]). The engine must
    /// take it for every algorithm.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Exists`], [`Error::Unfit`], [`Error::Limit`], [`Error::Material`],
    /// [`Error::Engine`] if it takes no such key, [`Error::System`].
    pub fn add(
        &self,
        name: &str,
        spec: Spec<'_>,
        material: Material<'_>,
        by: &Caller,
        now: SystemTime,
    ) -> Result<(), Error> {
        self.add_for(name, spec, material, &[], by, now)
    }

    /// The same for these callers from the beginning, for all its purposes.
    ///
    /// # Errors
    /// As [`KeyStore::add`].
    pub fn add_for(
        &self,
        name: &str,
        spec: Spec<'_>,
        material: Material<'_>,
        callers: &[Who],
        by: &Caller,
        now: SystemTime,
    ) -> Result<(), Error> {
        let action = if material.is_generated() { "generate" } else { "import" };
        let whom: Vec<_> =
            callers.iter().map(|who| format!("{} to {who}", spec.purposes)).collect();
        let detail = Some(whom.join(", ")).filter(|whom| !whom.is_empty());
        self.change(Asked { action, key: name, by, now }, detail.as_deref(), || {
            if !keyway_engine::is_key_name(name) {
                return Err(Error::Name);
            }
            record::check_use(spec.algorithms, spec.purposes).map_err(Error::Unfit)?;
            callers.iter().try_for_each(record::check_who).map_err(Error::Unfit)?;
            let grants = grants(callers, spec.purposes)?;
            {
                let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
                if keys.contains_key(name) {
                    return Err(Error::Exists(name.to_owned()));
                }
                if keys.len() >= limits::KEYS_MAX {
                    return Err(TOO_MANY_KEYS);
                }
            }
            let version = self.version(1, spec.algorithms, material, now)?;
            let record = Record {
                name: name.to_owned(),
                algorithms: spec.algorithms.to_vec(),
                purposes: spec.purposes,
                grants,
                created_s: unix_s(now),
                revoked_s: None,
                versions: vec![Arc::new(version)],
            };
            self.save(None, record, false)?;
            Ok((Some(1), ()))
        })
    }

    /// Gives a key a new version, made or imported, and returns its number. Open sessions of the key
    /// end.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Revoked`], and those of [`KeyStore::add`].
    pub fn rotate(
        &self,
        name: &str,
        material: Material<'_>,
        by: &Caller,
        now: SystemTime,
    ) -> Result<u32, Error> {
        self.change(Asked { action: "rotate", key: name, by, now }, None, || {
            let entry = self.active(name)?;
            let mut record = entry.record.clone();
            let (most, of) = (limits::VERSIONS_MAX, "versions of a key");
            if record.versions.len() >= most {
                return Err(Error::Limit { of, most });
            }
            let number = record.newest().map_or(0, |version| version.number);
            let number = number.checked_add(1).ok_or(Error::Limit { of, most })?;
            let version = self.version(number, &record.algorithms, material, now)?;
            record.versions.push(Arc::new(version));
            self.save(Some(&entry), record, true)?;
            Ok((Some(number), number))
        })
    }

    /// Ends all use of a key, for good. It stays listed until it is deleted.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Revoked`] if it is already, [`Error::System`].
    pub fn revoke(&self, name: &str, by: &Caller, now: SystemTime) -> Result<(), Error> {
        self.change(Asked { action: "revoke", key: name, by, now }, None, || {
            let entry = self.active(name)?;
            let record = Record { revoked_s: Some(unix_s(now)), ..entry.record.clone() };
            self.save(Some(&entry), record, true)?;
            Ok((None, ()))
        })
    }

    /// Forgets a key that is revoked. What was sealed under it is lost.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::NotRevoked`], [`Error::System`].
    pub fn delete(&self, name: &str, by: &Caller, now: SystemTime) -> Result<(), Error> {
        self.change(Asked { action: "delete", key: name, by, now }, None, || {
            let entry = self.entry(name)?;
            if entry.record.revoked_s.is_none() {
                return Err(Error::NotRevoked(name.to_owned()));
            }
            disk::remove(&self.path(name))?;
            self.keys.write().unwrap_or_else(PoisonError::into_inner).remove(name);
            Ok((None, ()))
        })
    }

    /// Allows somebody to use a key for some of its purposes, beside what he may already.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Revoked`], [`Error::Unfit`] if there is no purpose or one that is
    /// not the key's, [`Error::Limit`], [`Error::System`].
    pub fn allow(
        &self,
        name: &str,
        who: &Who,
        purposes: Purposes,
        by: &Caller,
        now: SystemTime,
    ) -> Result<(), Error> {
        let detail = format!("{purposes} to {who}");
        self.change(Asked { action: "allow", key: name, by, now }, Some(&detail), || {
            let entry = self.active(name)?;
            let mut record = entry.record.clone();
            record::check_who(who).map_err(Error::Unfit)?;
            if purposes.is_empty() || !record.purposes.covers(purposes) {
                return Err(Error::Unfit("the key has no such purpose"));
            }
            record::check_grantable(&record.algorithms, purposes).map_err(Error::Unfit)?;
            let count = record.grants.len();
            match record.grants.iter_mut().find(|grant| grant.who == *who) {
                Some(grant) => grant.purposes = grant.purposes.and(purposes),
                None if count >= limits::GRANTS_MAX => {
                    return Err(Error::Limit { of: "grants of a key", most: limits::GRANTS_MAX });
                }
                None => record.grants.push(Grant { who: who.clone(), purposes }),
            }
            self.save(Some(&entry), record, false)?;
            Ok((None, ()))
        })
    }

    /// Takes purposes from a grant; says whether it had one of them. It is the grant for exactly
    /// `who` that is changed: others may be for the same callers. Open sessions of the key end.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Revoked`], [`Error::Unfit`] if what is left could not be allowed,
    /// [`Error::System`].
    pub fn forbid(
        &self,
        name: &str,
        who: &Who,
        purposes: Purposes,
        by: &Caller,
        now: SystemTime,
    ) -> Result<bool, Error> {
        let detail = format!("{purposes} to {who}");
        self.change(Asked { action: "forbid", key: name, by, now }, Some(&detail), || {
            let entry = self.active(name)?;
            let mut record = entry.record.clone();
            let grant = record.grants.iter_mut().find(|grant| grant.who == *who);
            let Some(grant) = grant.filter(|it| it.purposes.without(purposes) != it.purposes)
            else {
                return Ok((None, false));
            };
            grant.purposes = grant.purposes.without(purposes);
            if !grant.purposes.is_empty() {
                record::check_grantable(&record.algorithms, grant.purposes)
                    .map_err(Error::Unfit)?;
            }
            record.grants.retain(|grant| !grant.purposes.is_empty());
            self.save(Some(&entry), record, true)?;
            Ok((None, true))
        })
    }

    /// All keys, by name.
    pub fn list(&self) -> Vec<KeyInfo> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.values().map(|entry| KeyInfo::of(&entry.record)).collect()
    }

    /// One key, with its public halves.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`].
    pub fn show(&self, name: &str) -> Result<KeyInfo, Error> {
        self.entry(name).map(|entry| KeyInfo::of(&entry.record))
    }

    /// What a client may have done with a key by this algorithm: nothing, if it may not or there is no
    /// such key. Wrapping is apart ([`KeyStore::wrap`]).
    pub fn granted(&self, name: &str, caller: &Caller, algorithm: Algorithm) -> Purposes {
        let Ok(entry) = self.entry(name) else { return Purposes::NONE };
        let granted = entry.record.granted(caller);
        let does = |purpose: &Purpose| {
            *purpose != Purpose::Wrap && Purposes::of(algorithm).contains(*purpose)
        };
        granted.iter().filter(does).collect()
    }

    /// Opens a session with a key for a client.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such key, or none for this caller. To one who may use it:
    /// [`Error::Revoked`]; [`Error::Unfit`] if he wants what he may not, or what the key or the version
    /// is not for; [`Error::Engine`].
    pub fn session(
        &self,
        name: &str,
        caller: &Caller,
        wanted: Wanted<'_>,
        now: SystemTime,
    ) -> Result<KeySession, Error> {
        let asked = Asked { action: "session", key: name, by: caller, now };
        self.open_session(name, caller, wanted).map_err(|why| self.refused(asked, why))
    }

    /// Wraps bytes, at most [`WRAPPED_BYTES_MAX`](limits::WRAPPED_BYTES_MAX), under the newest version
    /// of a key whose purpose that is, with AES-256-GCM. The same `context` has to be given to unwrap
    /// them. They become 32 bytes longer.
    ///
    /// # Errors
    /// Those of [`KeyStore::session`], and [`Error::Limit`].
    pub fn wrap(
        &self,
        name: &str,
        caller: &Caller,
        context: &[u8],
        bytes: &[u8],
        now: SystemTime,
    ) -> Result<Vec<u8>, Error> {
        let asked = Asked { action: "wrap", key: name, by: caller, now };
        let wrapped = || {
            let (_, version) = self.usable(name, caller, Self::wrapping())?;
            within(bytes.len(), limits::WRAPPED_BYTES_MAX)?;
            let key = version.encoding.key(&version.material);
            version.uses.fetch_add(1, Ordering::Relaxed);
            sealed::wrap(&self.engine, (version.number, key), [name.as_bytes(), context], bytes)
        };
        wrapped().map_err(|why| self.refused(asked, why))
    }

    /// Takes out what [`KeyStore::wrap`] has wrapped, under the version that it did it with.
    ///
    /// # Errors
    /// Those of [`KeyStore::session`], and [`Error::Unwrap`].
    pub fn unwrap(
        &self,
        name: &str,
        caller: &Caller,
        context: &[u8],
        wrapped: &[u8],
        now: SystemTime,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        let asked = Asked { action: "unwrap", key: name, by: caller, now };
        let unwrapped = || {
            let (entry, _) = self.usable(name, caller, Self::wrapping())?;
            within(wrapped.len(), limits::WRAPPED_BYTES_MAX + sealed::WRAPPING_BYTES)?;
            let number = sealed::wrapped_version(wrapped)?;
            let versions = &entry.record.versions;
            let version = versions.iter().find(|version| version.number == number);
            let version = version.ok_or(Error::Unwrap)?;
            let key = version.encoding.key(&version.material);
            version.uses.fetch_add(1, Ordering::Relaxed);
            sealed::unwrap(&self.engine, (number, key), [name.as_bytes(), context], wrapped)
        };
        unwrapped().map_err(|why| self.refused(asked, why))
    }

    /// Saves what is unsaved and lets another process open the store, which this one changes no more.
    /// Sessions that are open go on.
    ///
    /// # Errors
    /// Those of [`KeyStore::save_usage`]; the store stays this process's then.
    pub fn give_up(&self) -> Result<(), Error> {
        self.save_usage()?;
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.given_up.store(true, Ordering::Release);
        self.lock.unlock().map_err(Error::system("unlock", &self.folder))
    }

    /// Takes the store again that was given up, if no other process has it.
    ///
    /// # Errors
    /// [`Error::InUse`].
    pub fn take_back(&self) -> Result<(), Error> {
        let in_use = |_| Error::InUse(self.folder.clone());
        self.lock.try_lock().map_err(in_use)?;
        self.given_up.store(false, Ordering::Release);
        Ok(())
    }

    fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Saves the usage counts that have changed. To be called every
    /// [`USAGE_SAVE_S`](limits::USAGE_SAVE_S) seconds; when the store is dropped it does it itself.
    ///
    /// # Errors
    /// The first that was met; the others were saved nevertheless.
    pub fn save_usage(&self) -> Result<(), Error> {
        if self.is_given_up() {
            return Ok(());
        }
        let names: Vec<String> = {
            let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
            let used = keys.values().filter(|entry| entry.record.has_unsaved_uses());
            used.map(|entry| entry.record.name.clone()).collect()
        };
        let save = |name: &String| {
            let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            match self.entry(name) {
                Ok(entry) => self.save(Some(&entry), entry.record.clone(), false),
                // Deleted since.
                Err(_) => Ok(()),
            }
        };
        names.iter().map(save).fold(Ok(()), Result::and)
    }

    /// Does a change, alone, and writes down what became of it.
    fn change<T>(
        &self,
        asked: Asked<'_>,
        detail: Option<&str>,
        work: impl FnOnce() -> Result<(Option<u32>, T), Error>,
    ) -> Result<T, Error> {
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match self.is_given_up() {
            true => Err(Error::InUse(self.folder.clone())),
            false => work(),
        };
        self.audit.change(asked, detail, result.as_ref().map(|(version, _)| *version));
        result.map(|(_, value)| value)
    }

    /// Puts a key on the disk and then in the place of what it was. The caller holds `changes`.
    fn save(&self, before: Option<&Entry>, record: Record, ends: bool) -> Result<(), Error> {
        for version in &record.versions {
            version.saved_uses.store(version.uses.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let revision = before.map_or(0, |entry| entry.revision) + 1;
        let written = (|| {
            let file = self.vault.seal(&record.name, revision, &record.encode()?)?;
            within(file.len(), limits::FILE_BYTES_MAX)?;
            disk::put(&self.path(&record.name), &file)
        })();
        if written.is_err() {
            let unsaved =
                |version: &Arc<Version>| version.saved_uses.store(u64::MAX, Ordering::Relaxed);
            record.versions.iter().for_each(unsaved);
            return written;
        }
        let ended = match before {
            Some(before) if !ends => before.ended.clone(),
            _ => Arc::default(),
        };
        let name = record.name.clone();
        let entry = Arc::new(Entry { record, revision, ended });
        self.keys.write().unwrap_or_else(PoisonError::into_inner).insert(name, entry);
        // After the new one is in place: who finds the old one from now on has ended before he begins.
        if let (Some(before), true) = (before, ends) {
            before.ended.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn version(
        &self,
        number: u32,
        algorithms: &[Algorithm],
        material: Material<'_>,
        now: SystemTime,
    ) -> Result<Version, Error> {
        let checked = material::check(material, algorithms, &self.engine)?;
        Ok(Version {
            number,
            created_s: unix_s(now),
            encoding: checked.encoding,
            material: checked.material,
            public: checked.public,
            uses: Arc::default(),
            saved_uses: AtomicU64::default(),
        })
    }

    fn open_session(
        &self,
        name: &str,
        caller: &Caller,
        wanted: Wanted<'_>,
    ) -> Result<KeySession, Error> {
        let (entry, version) = self.usable(name, caller, wanted)?;
        if wanted.purposes.contains(Purpose::Wrap) {
            return Err(Error::Unfit("a key that wraps does nothing else"));
        }
        let key = version.encoding.key(&version.material);
        let mut parameters = Parameters::new(wanted.algorithm, key);
        parameters.client = wanted.client;
        if wanted.algorithm.kind() == Kind::Aead {
            parameters = parameters.nonces(Nonces::Salted).usage(Usage::RANDOM_NONCES);
        }
        Ok(KeySession {
            session: self.engine.session(parameters)?,
            version: version.number,
            purposes: wanted.purposes,
            uses: version.uses.clone(),
            ended: entry.ended.clone(),
        })
    }

    /// A key that a caller may use as he wants to, for its true reason if not.
    fn usable(
        &self,
        name: &str,
        caller: &Caller,
        wanted: Wanted<'_>,
    ) -> Result<(Arc<Entry>, Arc<Version>), Error> {
        let entry = self.entry(name)?;
        let record = &entry.record;
        let granted = record.granted(caller);
        if granted.is_empty() {
            return Err(Error::NotAllowed(name.to_owned()));
        }
        if record.revoked_s.is_some() {
            return Err(Error::Revoked(name.to_owned()));
        }
        if !record.algorithms.contains(&wanted.algorithm) {
            return Err(Error::Unfit("the key is not for this algorithm"));
        }
        if wanted.purposes.is_empty() {
            return Err(Error::Unfit("a session has one purpose at least"));
        }
        if !granted.covers(wanted.purposes) {
            return Err(Error::Unfit("the caller may use the key, but not for this"));
        }
        if !Purposes::of(wanted.algorithm).covers(wanted.purposes) {
            return Err(Error::Unfit("the algorithm does nothing of the kind"));
        }
        let newest = record.newest().ok_or(Error::Unfit("the key has no version"))?;
        let version = match wanted.version {
            None => newest,
            Some(number) => {
                let version = record.versions.iter().find(|version| version.number == number);
                version.ok_or(Error::Unfit("the key has no such version"))?
            }
        };
        let new = wanted.purposes.iter().any(Purpose::needs_newest);
        if new && version.number != newest.number {
            return Err(Error::Unfit("only a key's newest version signs, encrypts and wraps"));
        }
        let version = version.clone();
        Ok((entry, version))
    }

    /// Writes a refusal down, and tells the caller no more than he may know.
    fn refused(&self, asked: Asked<'_>, why: Error) -> Error {
        self.audit.refusal(asked, &why);
        match why {
            Error::NoSuchKey(_) | Error::NotAllowed(_) => Error::Refused,
            why => why,
        }
    }

    fn entry(&self, name: &str) -> Result<Arc<Entry>, Error> {
        if !keyway_engine::is_key_name(name) {
            return Err(Error::Name);
        }
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(name).cloned().ok_or_else(|| Error::NoSuchKey(name.to_owned()))
    }

    fn active(&self, name: &str) -> Result<Arc<Entry>, Error> {
        let entry = self.entry(name)?;
        match entry.record.revoked_s {
            None => Ok(entry),
            Some(_) => Err(Error::Revoked(name.to_owned())),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{KEY_SUFFIX}"))
    }

    fn wrapping() -> Wanted<'static> {
        Wanted::new(Algorithm::Aes256Gcm, Purpose::Wrap.into())
    }
}

impl Drop for KeyStore {
    /// There is nobody to tell that it failed.
    fn drop(&mut self) {
        let _ = self.save_usage();
    }
}

impl KeyInfo {
    fn of(record: &Record) -> Self {
        let version = |version: &Arc<Version>| VersionInfo {
            number: version.number,
            created_s: version.created_s,
            public_key: version.public.clone(),
            uses: version.uses.load(Ordering::Relaxed),
        };
        KeyInfo {
            name: record.name.clone(),
            algorithms: record.algorithms.clone(),
            purposes: record.purposes,
            grants: record.grants.clone(),
            created_s: record.created_s,
            revoked_s: record.revoked_s,
            versions: record.versions.iter().map(version).collect(),
        }
    }
}

/// The master key, and what is derived from it; whether it is the right one, `check` says.
fn unlock(
    folder: &Path,
    header: &Header,
    master: Master<'_>,
    engine: &Engine,
) -> Result<Vault, Error> {
    match (master, &header.passphrase) {
        (Master::Key(key), None) => Vault::new(engine, header.id, key),
        (Master::Passphrase(Passphrase(password)), Some(how)) => {
            if password.is_empty() {
                return Err(Error::Unfit("the passphrase is empty"));
            }
            let (cost, salt) = (how.cost(), &how.salt);
            let derived = MasterKey::filled(|out| {
                let mut request = Request::Derive { cost, password, salt, out };
                engine.run(Algorithm::Argon2id, &mut request)?;
                Ok(())
            });
            Vault::new(engine, header.id, &derived?)
        }
        // A store that was made with the other kind.
        _ => Err(Error::WrongMaster(folder.to_owned())),
    }
}

/// The names of a folder's files that a store could have, sorted.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let listed = fs::read_dir(folder).and_then(|files| {
        let names = files.map(|file| Ok(file?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect::<std::io::Result<Vec<_>>>()
    });
    let mut names = listed.map_err(Error::system("list", folder))?;
    names.sort();
    Ok(names)
}

fn within(bytes: usize, most: usize) -> Result<(), Error> {
    if bytes <= most { Ok(()) } else { Err(Error::Limit { of: "bytes", most }) }
}

const TOO_MANY_KEYS: Error = Error::Limit { of: "keys", most: limits::KEYS_MAX };
