//! Use of keys by clients: sessions are opened for them, and bytes wrapped, if a grant says so.

use super::access::{Caller, Purpose, Purposes};
use super::audit::Asked;
use super::error::Error;
use super::record::{Record, Version};
use super::sealed;
use super::session::KeySession;
use super::store::{Entry, KeyStore, within};
use super::tokens::held_name;
use crate::limits;
use keyway_engine::{Algorithm, Demand, Kind, Nonces, Parameters, Usage};
use keyway_lock::Unpoisoned;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;
use zeroize::Zeroizing;

/// The use of a key that a client wants.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// One of the key's.
    pub algorithm: Algorithm,
    /// The purposes; the session permits these and nothing else.
    pub purposes: Purposes,
    /// With which version; the newest if none is given.
    pub version: Option<u32>,
    /// The client that the work is for, in the meters ([`Parameters::client`]).
    pub client: Option<&'a str>,
}

/// A key that a client may use, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usable {
    /// Its name.
    pub name: String,
    /// Its algorithms.
    pub algorithms: Vec<Algorithm>,
    /// The client's purposes for it: one at least.
    pub purposes: Purposes,
    /// Its newest version.
    pub version: u32,
    /// Whether that version has certificates.
    pub has_certificates: bool,
    /// The public half of that version, as [`Session::public_key`](keyway_engine::Session::public_key) gives
    /// it; empty if there is none.
    pub public_key: Vec<u8>,
}

impl Usable {
    fn of(record: &Record, caller: &Caller) -> Result<Usable, Error> {
        let (purposes, newest) = (record.usable_by(caller)?, record.newest());
        Ok(Usable {
            name: record.name.clone(),
            algorithms: record.algorithms.clone(),
            purposes,
            version: newest.map_or(0, |version| version.number),
            has_certificates: !record.certificates().is_empty(),
            public_key: newest.map_or_else(Vec::new, |version| version.public.clone()),
        })
    }
}

impl Wanted<'_> {
    /// With the newest version, and for no client in the meters.
    pub const fn new(algorithm: Algorithm, purposes: Purposes) -> Self {
        Wanted { algorithm, purposes, version: None, client: None }
    }
}

impl KeyStore {
    /// The purposes that a client may use a key for with this algorithm: none, if it may not or
    /// there is no such key. Wrapping is apart ([`KeyStore::wrap`]).
    pub fn granted(&self, name: &str, caller: &Caller, algorithm: Algorithm) -> Purposes {
        let Ok(entry) = self.entry(name) else { return Purposes::NONE };
        let granted = entry.record.granted(caller);
        let does = |purpose: &Purpose| {
            *purpose != Purpose::Wrap && Purposes::of(algorithm).contains(*purpose)
        };
        granted.iter().filter(does).collect()
    }

    /// Says what a client may do with a key.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Unusable`]; to one who may use it, [`Error::Revoked`].
    pub fn usable_by(&self, name: &str, caller: &Caller, now: SystemTime) -> Result<Usable, Error> {
        let asked = Asked { action: "look", key: name, by: caller, now };
        let looked = self.entry(name).and_then(|entry| Usable::of(&entry.record, caller));
        looked.map_err(|why| self.refused(asked, why))
    }

    /// The certificates of a key that a client may use: of its newest version, each in DER, its own first. None if
    /// the key has none.
    ///
    /// # Errors
    /// As [`KeyStore::usable_by`].
    pub fn certificates_for(
        &self,
        name: &str,
        caller: &Caller,
        now: SystemTime,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let asked = Asked { action: "look", key: name, by: caller, now };
        let certificates = || {
            let entry = self.entry(name)?;
            entry.record.usable_by(caller)?;
            Ok(entry.record.certificates().to_vec())
        };
        certificates().map_err(|why| self.refused(asked, why))
    }

    /// The keys that a client may use, behind this name and in order of their names: so many at most, and
    /// whether there are more. No other key shows in the answer, and none in the audit log.
    pub fn all_usable_by(&self, caller: &Caller, after: &str, most: usize) -> (Vec<Usable>, bool) {
        let keys = self.keys.read().unpoisoned();
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let usable = keys.live.range::<str, _>(behind);
        let mut usable = usable.filter_map(|(_, entry)| Usable::of(&entry.record, caller).ok());
        let first: Vec<_> = usable.by_ref().take(most).collect();
        let more = usable.next().is_some();
        (first, more)
    }

    /// Opens a session with a key for a client.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such key, or none for this caller; [`Error::Unusable`] if it is
    /// disabled. To one who may use it: [`Error::Revoked`]; [`Error::Unfit`] if the caller wants a use
    /// that it is not granted, or that the key or the version is not for; [`Error::Engine`].
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

    /// Wraps bytes, at most [`WRAPPED_BYTES_MAX`](limits::WRAPPED_BYTES_MAX), under the newest
    /// version of a key whose purpose that is, with AES-256-GCM. The same `context` has to be given
    /// to unwrap them. They become 32 bytes longer.
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
            let key = version.encoding.key(&version.material, "");
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
            let key = version.encoding.key(&version.material, "");
            version.uses.fetch_add(1, Ordering::Relaxed);
            sealed::unwrap(&self.engine, (number, key), [name.as_bytes(), context], wrapped)
        };
        unwrapped().map_err(|why| self.refused(asked, why))
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
        let (held, token) = match &version.token {
            Some(reference) => (held_name(name, version.number), Some(self.token_of(reference)?)),
            None => (String::new(), None),
        };
        let key = version.encoding.key(&version.material, &held);
        let mut parameters = Parameters::new(wanted.algorithm, key);
        parameters.client = wanted.client;
        if token.is_some() {
            parameters.demand = Demand::Named(keyway_token::NAME);
        }
        if wanted.algorithm.kind() == Kind::Aead && !wanted.purposes.contains(Purpose::Esp) {
            parameters = parameters.nonces(Nonces::Salted).usage(Usage::RANDOM_NONCES);
        }
        Ok(KeySession {
            session: self.engine.session(parameters)?,
            version: version.number,
            purposes: wanted.purposes,
            uses: version.uses.clone(),
            ended: entry.ended.clone(),
            token,
        })
    }

    /// A key that a caller may use in the wanted way, or the true reason why not.
    fn usable(
        &self,
        name: &str,
        caller: &Caller,
        wanted: Wanted<'_>,
    ) -> Result<(Arc<Entry>, Arc<Version>), Error> {
        let entry = self.entry(name)?;
        let record = &entry.record;
        let granted = record.usable_by(caller)?;
        if !record.is_for(wanted.algorithm) {
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

    /// Writes down that a client that is no manager wanted to change a key.
    pub fn refuse_change(&self, action: &'static str, name: &str, by: &Caller, now: SystemTime) {
        self.audit.refusal(Asked { action, key: name, by, now }, &Error::NotManaged);
    }

    /// Whether the audit log is so long that only administrators may change keys.
    pub fn audit_is_full(&self) -> bool {
        self.audit.is_full()
    }

    /// Writes a refusal down, and tells the caller no more than it may know.
    fn refused(&self, asked: Asked<'_>, why: Error) -> Error {
        self.audit.refusal(asked, &why);
        match why {
            Error::NoSuchKey(_) | Error::NotAllowed(_) => Error::Refused,
            Error::Disabled { name, .. } => Error::Unusable(name),
            why => why,
        }
    }

    fn wrapping() -> Wanted<'static> {
        Wanted::new(Algorithm::Aes256Gcm, Purpose::Wrap.into())
    }
}
