//! The store itself: a folder that one process has open, its keys in memory, and how they get to
//! the disk and back.

use super::audit::{self, Audit};
use super::disk;
use super::error::Error;
use super::header::Header;
use super::index::Index;
use super::master::{Master, MasterKey, Passphrase};
use super::name::is_lookable;
use super::record::{Record, Version};
use super::sealed::Vault;
use crate::limits;
use keyway_engine::{Algorithm, Engine, Request};
use keyway_lock::Unpoisoned;
use keyway_token::Tokens;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::SystemTime;
use subtle::ConstantTimeEq;

pub(super) const HEADER: &str = "store";
const HEADER_BYTES_MAX: usize = 1_024;
pub(super) const KEY_SUFFIX: &str = ".key";

/// An open key store. All threads may use it at once; changes are made one after the other.
pub struct KeyStore {
    pub(super) folder: PathBuf,
    pub(super) engine: Engine,
    pub(super) vault: Vault,
    pub(super) keys: RwLock<Keys>,
    /// Held by who changes something. Readers wait only while the map is changed, not for the disk.
    pub(super) changes: Mutex<()>,
    /// Names of keys that are being made or destroyed beside other changes.
    pub(super) working: Mutex<BTreeSet<String>>,
    pub(super) audit: Audit,
    pub(super) lock: File,
    /// Whether another process has it now.
    pub(super) given_up: AtomicBool,
    /// The tokens that keys may live in.
    pub(super) tokens: Option<Arc<Tokens>>,
}

/// Its keys, by name.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) live: BTreeMap<String, Arc<Entry>>,
    /// Those that may not be used.
    pub(super) disabled: BTreeMap<String, Disabled>,
    /// The number of the file that was written last.
    pub(super) generation: u64,
    /// The generation of the index that is on the disk.
    pub(super) indexed: u64,
}

impl Keys {
    /// The index of these keys.
    pub(super) fn index(&self) -> Index {
        let live = self.live.iter().map(|(name, entry)| (name, entry.revision));
        let disabled = self.disabled.iter().filter_map(|(name, it)| Some((name, it.indexed?)));
        let keys = live.chain(disabled).map(|(name, revision)| (name.clone(), revision));
        Index { keys: keys.collect(), generation: self.generation }
    }

    pub(super) fn len(&self) -> usize {
        self.live.len() + self.disabled.len()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.live.contains_key(name) || self.disabled.contains_key(name)
    }
}

/// A key as it is on the disk. A change puts another in its place.
pub(super) struct Entry {
    pub(super) record: Record,
    /// The number of its file.
    pub(super) revision: u64,
    /// Set when sessions that were opened with it must not go on.
    pub(super) ended: Arc<AtomicBool>,
}

/// A key that may not be used, since its file cannot be relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disabled {
    pub why: String,
    /// The number of its file in the index, if it has one.
    pub indexed: Option<u64>,
}

impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStore").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl KeyStore {
    /// Makes an empty store in a folder, which is made if it is not there, and opens it. `report`
    /// is told, from any thread, which keys are disabled, that the audit log cannot be written, and that it
    /// can be written again.
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
        let mut header = Header::new(engine, matches!(master, Master::Passphrase(_)))?;
        let store = Self::unlocked(folder, &header, master, engine, lock, Box::new(report))?;
        header.check = *store.vault.check()?;
        Index::default().save(folder, &store.vault)?;
        disk::put_new(&path, &header.to_bytes()?)?;
        Ok(store)
    }

    /// Opens the store in a folder, and takes every key out of its seal. One whose file is spoilt, exposed,
    /// older than it was, or missing is disabled. With a passphrase that takes a few tenths of a second and
    /// 64 MiB. `report` as for [`KeyStore::create`].
    ///
    /// # Errors
    /// [`Error::WrongMaster`]; [`Error::Damaged`] if the header is spoilt or none of ours;
    /// [`Error::Exposed`] where others have rights to folder or header; [`Error::InUse`]; [`Error::System`];
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
        let mut store = Self::unlocked(folder, &header, master, engine, lock, Box::new(report))?;
        if !bool::from(store.vault.check()?.ct_eq(&header.check)) {
            return Err(Error::WrongMaster(folder.to_owned()));
        }
        let keys = store.load()?;
        store.keys = RwLock::new(keys);
        Ok(store)
    }

    /// Whether there is a store in the folder. If it cannot be looked at, there is none.
    pub fn exists(folder: &Path) -> bool {
        folder.join(HEADER).exists()
    }

    /// Whether it is the right master key, its vault says ([`Vault::check`]).
    fn unlocked(
        folder: &Path,
        header: &Header,
        master: Master<'_>,
        engine: &Engine,
        lock: File,
        report: audit::Report,
    ) -> Result<Self, Error> {
        Ok(KeyStore {
            folder: folder.to_owned(),
            engine: engine.clone(),
            vault: unlock(folder, header, master, engine)?,
            keys: RwLock::default(),
            changes: Mutex::default(),
            working: Mutex::default(),
            audit: Audit::new(folder.join(audit::FILE), report),
            lock,
            given_up: AtomicBool::new(false),
            tokens: None,
        })
    }

    /// Saves what is unsaved and lets another process open the store, which this one changes no
    /// more. Sessions that are open go on.
    ///
    /// # Errors
    /// Those of [`KeyStore::save_usage`]; the store stays this process's then.
    pub fn give_up(&self) -> Result<(), Error> {
        self.save_usage()?;
        let _changes = self.changes.lock().unpoisoned();
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

    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Saves the usage counts that have changed, and writes down what the audit log has only counted. To be
    /// called every
    /// [`USAGE_SAVE_S`](limits::USAGE_SAVE_S) seconds; when the store is dropped it does it itself.
    ///
    /// # Errors
    /// The first that was met; the others were saved nevertheless.
    pub fn save_usage(&self) -> Result<(), Error> {
        self.audit.settle(SystemTime::now());
        if self.is_given_up() {
            return Ok(());
        }
        let names: Vec<String> = {
            let keys = self.keys.read().unpoisoned();
            let used = keys.live.values().filter(|entry| entry.record.has_unsaved_uses());
            used.map(|entry| entry.record.name.clone()).collect()
        };
        let save = |name: &String| {
            let _changes = self.changes.lock().unpoisoned();
            match self.entry(name) {
                // Usage counts alone are not worth an index.
                Ok(entry) => self.write(&entry.record).map(|revision| {
                    self.put(Some(&entry), entry.record.clone(), revision, false);
                }),
                // Deleted since.
                Err(_) => Ok(()),
            }
        };
        names.iter().map(save).fold(Ok(()), Result::and)
    }

    /// Puts a key on the disk and then in the place of what it was, and says the number of its file. The caller
    /// holds `changes`.
    pub(super) fn save(
        &self,
        before: Option<&Entry>,
        record: Record,
        ends: bool,
    ) -> Result<u64, Error> {
        let revision = self.write(&record)?;
        let mut index = self.indexed();
        index.keys.insert(record.name.clone(), revision);
        if let Err(why) = self.save_index(&index) {
            // A change that is not acknowledged must not come into force at the next start either.
            match before {
                Some(before) => drop(self.write(&before.record)),
                // One that is there already is not this program's to remove.
                None if self.is_disabled(&record.name) => {}
                None => drop(disk::remove(&self.path(&record.name))),
            }
            return Err(why);
        }
        self.put(before, record, revision, ends);
        Ok(revision)
    }

    /// Puts an index on the disk. The caller holds `changes`.
    pub(super) fn save_index(&self, index: &Index) -> Result<(), Error> {
        index.save(&self.folder, &self.vault)?;
        self.keys.write().unpoisoned().indexed = index.generation;
        Ok(())
    }

    /// The index of the keys as they are now.
    pub(super) fn indexed(&self) -> Index {
        self.keys.read().unpoisoned().index()
    }

    /// Writes the file of a key, and says its number. The caller holds `changes`.
    fn write(&self, record: &Record) -> Result<u64, Error> {
        for version in &record.versions {
            version.saved_uses.store(version.uses.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let revision = {
            let mut keys = self.keys.write().unpoisoned();
            keys.generation += 1;
            keys.generation
        };
        let written = (|| {
            let file = self.vault.seal(&record.name, revision, &record.encode()?)?;
            within(file.len(), limits::FILE_BYTES_MAX)?;
            disk::put(&self.path(&record.name), &file)
        })();
        if written.is_err() {
            let unsaved =
                |version: &Arc<Version>| version.saved_uses.store(u64::MAX, Ordering::Relaxed);
            record.versions.iter().for_each(unsaved);
        }
        written.map(|()| revision)
    }

    /// As [`KeyStore::save`] of a key whose uses are to end. Where that cannot be written it is in force nevertheless,
    /// and is tried again with the usage counts.
    pub(super) fn enforce(&self, before: &Entry, record: Record) -> Result<(), Error> {
        match self.save(Some(before), record.clone(), true) {
            Err(why @ Error::System { .. }) => {
                let name = record.name.clone();
                for version in &record.versions {
                    version.saved_uses.store(u64::MAX, Ordering::Relaxed);
                }
                self.put(Some(before), record, before.revision, true);
                Err(Error::Unsaved { name, why: Box::new(why) })
            }
            saved => saved.map(drop),
        }
    }

    fn put(&self, before: Option<&Entry>, record: Record, revision: u64, ends: bool) {
        let ended = match before {
            Some(before) if !ends => before.ended.clone(),
            _ => Arc::default(),
        };
        let name = record.name.clone();
        let entry = Arc::new(Entry { record, revision, ended });
        {
            let mut keys = self.keys.write().unpoisoned();
            keys.disabled.remove(&name);
            keys.live.insert(name, entry);
        }
        // After the new one is in place: a caller that finds the old one from now on has ended
        // before it begins.
        if let (Some(before), true) = (before, ends) {
            before.ended.store(true, Ordering::Release);
        }
    }

    fn is_disabled(&self, name: &str) -> bool {
        let keys = self.keys.read().unpoisoned();
        keys.disabled.contains_key(name)
    }

    /// A key that is in use.
    pub(super) fn entry(&self, name: &str) -> Result<Arc<Entry>, Error> {
        if !is_lookable(name) {
            return Err(Error::Name);
        }
        let keys = self.keys.read().unpoisoned();
        match (keys.live.get(name), keys.disabled.get(name)) {
            (Some(entry), _) => Ok(entry.clone()),
            (None, Some(Disabled { why, .. })) => {
                Err(Error::Disabled { name: name.to_owned(), why: why.clone() })
            }
            (None, None) => Err(Error::NoSuchKey(name.to_owned())),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{KEY_SUFFIX}"))
    }
}

impl Drop for KeyStore {
    /// There is no caller to tell that it failed.
    fn drop(&mut self) {
        let _ = self.save_usage();
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
pub(super) fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let listed = fs::read_dir(folder).and_then(|files| {
        let names = files.map(|file| Ok(file?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect::<std::io::Result<Vec<_>>>()
    });
    let mut names = listed.map_err(Error::system("list", folder))?;
    names.sort();
    Ok(names)
}

/// Refuses what is longer than it may be.
pub(super) fn within(bytes: usize, most: usize) -> Result<(), Error> {
    if bytes <= most { Ok(()) } else { Err(Error::Limit { of: "bytes", most }) }
}

pub(super) const TOO_MANY_KEYS: Error = Error::Limit { of: "keys", most: limits::KEYS_MAX };
