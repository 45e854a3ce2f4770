//! Changes that managers make: each change is alone, on the disk before it is in use, and in the
//! audit log. Keys are made and destroyed before that, beside other changes: it may take seconds, and a
//! token may not answer at all.

use super::access::{Caller, Grant, Purposes, Who};
use super::audit::{Asked, unix_s};
use super::certificate;
use super::disk;
use super::error::Error;
use super::material::{self, Material};
use super::record::{self, Chain, Record, Version};
use super::store::{Entry, KeyStore, TOO_MANY_KEYS};
use crate::limits;
use keyway_engine::Algorithm;
use keyway_lock::Unpoisoned;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

/// The context that exported keys are bound to, so that nothing else that is wrapped passes for one.
const EXPORTED: &[u8] = b"keyway key 1";

/// The use that a key is made for.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    /// One, or several of RSA's, or of ECDSA's and ECDH's on one curve.
    pub algorithms: &'a [Algorithm],
    /// Those of [`Purposes::of`] of its algorithms that it is to serve.
    pub purposes: Purposes,
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

/// A version of a key that is in none yet.
struct Made<'a> {
    version: Arc<Version>,
    /// Those of a new key.
    grants: Vec<Grant>,
    _working: Working<'a>,
}

/// The right to work on a key.
struct Working<'a> {
    store: &'a KeyStore,
    name: &'a str,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.store.working.lock().unpoisoned().remove(self.name);
    }
}

impl KeyStore {
    /// Makes a key, or imports one. At first no caller may use it ([`KeyStore::allow`]). The engine
    /// must take it for every algorithm.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Exists`], [`Error::Unfit`], [`Error::Limit`], [`Error::Material`],
    /// [`Error::Engine`] if it takes no such key, [`Error::Token`], [`Error::System`].
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

    /// As [`KeyStore::add`], with these callers allowed from the beginning, for all its purposes.
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
        let granted = callers.iter().map(|who| format!("{} to {who}", spec.purposes));
        let detail: Vec<_> = material.tokens().into_iter().chain(granted).collect();
        let detail = Some(detail.join(", ")).filter(|detail| !detail.is_empty());
        let make = || {
            if !keyway_engine::is_key_name(name) {
                return Err(Error::Name);
            }
            record::check_use(spec.algorithms, spec.purposes).map_err(Error::Unfit)?;
            callers.iter().try_for_each(record::check_who).map_err(Error::Unfit)?;
            let grants = grants(callers, spec.purposes)?;
            let working = self.working_on(name)?;
            self.has_room_for(name)?;
            let version = Arc::new(self.version((name, 1), spec, material, now)?);
            Ok(Made { version, grants, _working: working })
        };
        let asked = Asked { action, key: name, by, now };
        self.make_and_change(asked, detail.as_deref(), make, |made| {
            self.has_room_for(name)?;
            let record = Record {
                name: name.to_owned(),
                algorithms: spec.algorithms.to_vec(),
                purposes: spec.purposes,
                grants: made.grants.clone(),
                created_s: unix_s(now),
                revoked_s: None,
                versions: vec![made.version.clone()],
                chain: None,
            };
            self.save(None, record, false)?;
            Ok((Some(1), ()))
        })
    }

    /// A key with all its versions and certificates, wrapped under another key, for a store that has that key too. Its
    /// grants are left out: the other store's manager gives them.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Revoked`], [`Error::Unfit`] for a key that lives in a token, and those of
    /// [`KeyStore::wrap`].
    pub fn export(
        &self,
        name: &str,
        under: &str,
        by: &Caller,
        now: SystemTime,
    ) -> Result<Vec<u8>, Error> {
        let detail = format!("wrapped under {under}");
        self.change(Asked { action: "export", key: name, by, now }, Some(&detail), || {
            let entry = self.active(name)?;
            if entry.record.versions.iter().any(|version| version.token.is_some()) {
                return Err(Error::Unfit("a key that lives in a token does not leave it"));
            }
            let record = Record { grants: Vec::new(), ..entry.record.clone() };
            let wrapped = self.wrap(under, by, EXPORTED, &record.encode()?, now)?;
            Ok((None, wrapped))
        })
    }

    /// Takes in a key that another store has [exported](KeyStore::export), with these callers allowed, for all its
    /// purposes.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Exists`], [`Error::Unfit`], [`Error::Limit`], [`Error::System`], and those of
    /// [`KeyStore::unwrap`].
    pub fn import_wrapped(
        &self,
        name: &str,
        under: &str,
        wrapped: &[u8],
        callers: &[Who],
        by: &Caller,
        now: SystemTime,
    ) -> Result<(), Error> {
        let detail = format!("wrapped under {under}");
        self.change(Asked { action: "import", key: name, by, now }, Some(&detail), || {
            if !keyway_engine::is_key_name(name) {
                return Err(Error::Name);
            }
            callers.iter().try_for_each(record::check_who).map_err(Error::Unfit)?;
            let bytes = self.unwrap(under, by, EXPORTED, wrapped, now)?;
            self.has_room_for(name)?;
            let record = Record::decode(name, &bytes).map_err(Error::Unfit)?;
            if record.versions.iter().any(|version| version.token.is_some()) {
                return Err(Error::Unfit("a key that lives in a token does not leave it"));
            }
            let grants = grants(callers, record.purposes)?;
            let number = record.newest().map(|version| version.number);
            self.save(None, Record { grants, ..record }, false)?;
            Ok((number, ()))
        })
    }

    fn has_room_for(&self, name: &str) -> Result<(), Error> {
        let keys = self.keys.read().unpoisoned();
        match keys.has(name) {
            true => Err(Error::Exists(name.to_owned())),
            false if keys.len() >= limits::KEYS_MAX => Err(TOO_MANY_KEYS),
            false => Ok(()),
        }
    }

    /// Gives a key a new version, made or imported, and returns its number. Open sessions of the
    /// key end.
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
        let (most, of) = (limits::VERSIONS_MAX, "versions of a key");
        let make = || {
            let working = self.working_on(name)?;
            let record = &self.active(name)?.record;
            if record.versions.len() >= most {
                return Err(Error::Limit { of, most });
            }
            let newest = record.newest().map(|version| &**version);
            let number = newest.map_or(0, |version| version.number);
            let number = number.checked_add(1).ok_or(Error::Limit { of, most })?;
            let material = Self::successor(newest, material)?;
            let spec = Spec { algorithms: &record.algorithms, purposes: record.purposes };
            let version = Arc::new(self.version((name, number), spec, material, now)?);
            Ok(Made { version, grants: Vec::new(), _working: working })
        };
        let asked = Asked { action: "rotate", key: name, by, now };
        self.make_and_change(asked, None, make, |made| {
            let entry = self.active(name)?;
            let mut record = entry.record.clone();
            let number = made.version.number;
            // No other version was made meanwhile; but the key may be another one of that name.
            if record.newest().is_none_or(|newest| newest.number.checked_add(1) != Some(number)) {
                return Err(Error::Busy(name.to_owned()));
            }
            record.versions.push(made.version.clone());
            self.save(Some(&entry), record, true)?;
            Ok((Some(number), number))
        })
    }

    /// Keeps these certificates with a key's newest version, in place of those that it had; no certificate takes
    /// them away. The first is that of the key; each of the others certifies the one before it, which is not
    /// checked here.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Revoked`], [`Error::Certificate`] if the first is of another key or one is
    /// none, [`Error::Limit`], [`Error::System`].
    pub fn certify(
        &self,
        name: &str,
        certificates: &[Vec<u8>],
        by: &Caller,
        now: SystemTime,
    ) -> Result<(), Error> {
        self.change(Asked { action: "certify", key: name, by, now }, None, || {
            let entry = self.active(name)?;
            let mut record = entry.record.clone();
            let newest = record.newest().ok_or(Error::Unfit("the key has no version"))?;
            let number = newest.number;
            certificate::check(&record.algorithms, &newest.public, certificates)?;
            record.chain = (!certificates.is_empty())
                .then(|| Chain { version: number, certificates: certificates.to_vec() });
            self.save(Some(&entry), record, false)?;
            Ok((Some(number), ()))
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
            self.enforce(&entry, record)?;
            Ok((None, ()))
        })
    }

    /// Forgets a key that is revoked or disabled. Data that was sealed under it is lost. Keys that the store has made
    /// for it in tokens are destroyed there.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::NotRevoked`], [`Error::Token`], [`Error::System`].
    pub fn delete(&self, name: &str, by: &Caller, now: SystemTime) -> Result<(), Error> {
        let may_be_deleted = || match self.entry(name) {
            Ok(entry) if entry.record.revoked_s.is_none() => {
                Err(Error::NotRevoked(name.to_owned()))
            }
            Ok(entry) => Ok(Some(entry)),
            Err(Error::Disabled { .. }) => Ok(None),
            Err(why) => Err(why),
        };
        let destroy = || {
            let working = self.working_on(name)?;
            // Before its file, which says where it is.
            if let Some(entry) = may_be_deleted()? {
                self.destroy_in_tokens(&entry.record)?;
            }
            Ok(working)
        };
        let asked = Asked { action: "delete", key: name, by, now };
        self.prepare_and_change(asked, None, destroy, |_| {
            may_be_deleted()?;
            disk::remove_any(&self.path(name))?;
            let index = {
                let mut keys = self.keys.write().unpoisoned();
                keys.live.remove(name);
                keys.disabled.remove(name);
                keys.index()
            };
            self.save_index(&index)?;
            Ok((None, ()))
        })
    }

    /// Takes a disabled key into use with the file that is there, although it may be older than it
    /// should be: a revocation since then is undone, and so is a permission that was taken from a
    /// user.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`]; [`Error::Unfit`] if it is not disabled; [`Error::Damaged`],
    /// [`Error::Exposed`] or [`Error::System`] if the file cannot be used.
    pub fn accept(&self, name: &str, by: &Caller, now: SystemTime) -> Result<(), Error> {
        self.change(Asked { action: "accept", key: name, by, now }, None, || {
            match self.entry(name) {
                Ok(_) => return Err(Error::Unfit("the key is not disabled")),
                Err(Error::Disabled { .. }) => {}
                Err(why) => return Err(why),
            }
            let path = self.path(name);
            let none = || {
                let why = "there is no such file; put it back from a backup, or delete the key";
                Error::system("open", &path)(io::Error::new(io::ErrorKind::NotFound, why))
            };
            let opened = self.open_key(&path, name)?.ok_or_else(none)?;
            self.save(None, opened.record, false)?;
            Ok((None, ()))
        })
    }

    /// Allows callers to use a key for some of its purposes, beside those that they have already.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Revoked`], [`Error::Unfit`] if there is no purpose or one
    /// that is not the key's, [`Error::Limit`], [`Error::System`].
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
    /// [`Error::NoSuchKey`], [`Error::Revoked`], [`Error::Unfit`] if what is left could not be
    /// allowed, [`Error::System`].
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
            self.enforce(&entry, record)?;
            Ok((None, true))
        })
    }

    /// Does a change, alone, and writes down what became of it.
    fn change<T>(
        &self,
        asked: Asked<'_>,
        detail: Option<&str>,
        work: impl FnOnce() -> Result<(Option<u32>, T), Error>,
    ) -> Result<T, Error> {
        self.prepare_and_change(asked, detail, || Ok(()), |_| work())
    }

    /// Makes a version of a key, then does a change with it; where that fails, takes the version back.
    fn make_and_change<'a, T>(
        &self,
        asked: Asked<'_>,
        detail: Option<&str>,
        make: impl FnOnce() -> Result<Made<'a>, Error>,
        work: impl FnOnce(&Made<'a>) -> Result<(Option<u32>, T), Error>,
    ) -> Result<T, Error> {
        let mut made = None;
        let place = &mut made;
        let make = move || make().map(|it| &*place.insert(it));
        let result = self.prepare_and_change(asked, detail, make, |made| work(made));
        if let (Err(_), Some(Made { version, .. })) = (&result, &made) {
            self.discard(asked.key, version);
        }
        result
    }

    /// Does what may take long, beside other changes, and then a change, alone; writes down what became of it.
    fn prepare_and_change<P, T>(
        &self,
        asked: Asked<'_>,
        detail: Option<&str>,
        prepare: impl FnOnce() -> Result<P, Error>,
        work: impl FnOnce(&P) -> Result<(Option<u32>, T), Error>,
    ) -> Result<T, Error> {
        let prepared = self.is_its_own().and_then(|()| prepare());
        let _changes = self.changes.lock().unpoisoned();
        let result = prepared.and_then(|prepared| {
            self.is_its_own()?;
            work(&prepared)
        });
        let generation = self.keys.read().unpoisoned().indexed;
        self.audit.change(asked, detail, generation, result.as_ref().map(|(version, _)| *version));
        result.map(|(_, value)| value)
    }

    fn is_its_own(&self) -> Result<(), Error> {
        if self.is_given_up() { Err(Error::InUse(self.folder.clone())) } else { Ok(()) }
    }

    /// Keeps a name from other work that takes long, until the result is dropped.
    fn working_on<'a>(&'a self, name: &'a str) -> Result<Working<'a>, Error> {
        match self.working.lock().unpoisoned().insert(name.to_owned()) {
            true => Ok(Working { store: self, name }),
            false => Err(Error::Busy(name.to_owned())),
        }
    }

    fn version(
        &self,
        (name, number): (&str, u32),
        Spec { algorithms, purposes }: Spec<'_>,
        material: Material<'_>,
        now: SystemTime,
    ) -> Result<Version, Error> {
        let named = (name, number);
        let made = self.version_in_token(named, algorithms, purposes, material, unix_s(now))?;
        if let Some(version) = made {
            return Ok(version);
        }
        let checked = material::check(material, algorithms, &self.engine)?;
        Ok(Version {
            number,
            created_s: unix_s(now),
            encoding: checked.encoding,
            material: checked.material,
            token: None,
            public: checked.public,
            uses: Arc::default(),
            saved_uses: AtomicU64::default(),
        })
    }

    fn active(&self, name: &str) -> Result<Arc<Entry>, Error> {
        let entry = self.entry(name)?;
        match entry.record.revoked_s {
            None => Ok(entry),
            Some(_) => Err(Error::Revoked(name.to_owned())),
        }
    }
}
