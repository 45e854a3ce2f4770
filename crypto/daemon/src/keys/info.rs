//! Facts about the keys that may be known.

use super::access::{Caller, Grant, Purposes};
use super::error::Error;
use super::record::{Record, Version};
use super::reference::TokenReference;
use super::store::KeyStore;
use keyway_engine::Algorithm;
use keyway_lock::Unpoisoned;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Facts about a key that may be known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyInfo {
    /// Its name.
    pub name: String,
    /// The algorithms it is for.
    pub algorithms: Vec<Algorithm>,
    /// The purposes it may serve.
    pub purposes: Purposes,
    /// The grants, which say by which callers.
    pub grants: Vec<Grant>,
    /// When it was made or imported, in seconds since 1970.
    pub created_s: u64,
    /// When it was revoked, if it is, in seconds since 1970.
    pub revoked_s: Option<u64>,
    /// Its versions, the newest last.
    pub versions: Vec<VersionInfo>,
    /// Why it may not be used, if its file cannot be relied on. Then nothing else is known of it.
    pub disabled: Option<String>,
}

/// Facts about one version of a key that may be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionInfo {
    /// From 1 on.
    pub number: u32,
    /// When it was made or imported, in seconds since 1970.
    pub created_s: u64,
    /// Its public half, as [`Session::public_key`](keyway_engine::Session::public_key) gives it;
    /// empty if there is none.
    pub public_key: Vec<u8>,
    /// Requests that were done under it.
    pub uses: u64,
    /// The labels of the tokens that it lives in; none if the store holds it.
    pub tokens: Vec<String>,
}

impl KeyStore {
    /// All keys, by name.
    pub fn list(&self) -> Vec<KeyInfo> {
        let keys = self.keys.read().unpoisoned();
        let live = keys.live.values().map(|entry| KeyInfo::of(&entry.record));
        let disabled = keys.disabled.iter().map(|(name, it)| KeyInfo {
            name: name.clone(),
            disabled: Some(it.why.clone()),
            ..KeyInfo::default()
        });
        let mut all: Vec<_> = live.chain(disabled).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// How many keys there are whose names begin so, with those that may not be used.
    pub fn count(&self, prefix: &str) -> usize {
        let keys = self.keys.read().unpoisoned();
        let names = keys.live.keys().chain(keys.disabled.keys());
        names.filter(|name| name.starts_with(prefix)).count()
    }

    /// The keys that a caller has a grant for, revoked ones too, by name, with only those grants.
    pub fn list_for(&self, caller: &Caller) -> Vec<KeyInfo> {
        let keys = self.keys.read().unpoisoned();
        let records = keys.live.values().map(|entry| &entry.record);
        let mut its: Vec<_> =
            records.filter(|record| !record.granted(caller).is_empty()).map(KeyInfo::of).collect();
        for key in &mut its {
            key.grants.retain(|grant| grant.who.is(caller));
        }
        its
    }

    /// One key, with its public halves.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Disabled`].
    pub fn show(&self, name: &str) -> Result<KeyInfo, Error> {
        self.entry(name).map(|entry| KeyInfo::of(&entry.record))
    }
}

impl KeyStore {
    /// The certificates of a key: of its newest version, each in DER, its own first. None if the key has none.
    ///
    /// # Errors
    /// [`Error::NoSuchKey`], [`Error::Disabled`].
    pub fn certificates(&self, name: &str) -> Result<Vec<Vec<u8>>, Error> {
        self.entry(name).map(|entry| entry.record.certificates().to_vec())
    }
}

impl KeyInfo {
    fn of(record: &Record) -> Self {
        let version = |version: &Arc<Version>| VersionInfo {
            number: version.number,
            created_s: version.created_s,
            public_key: version.public.clone(),
            uses: version.uses.load(Ordering::Relaxed),
            tokens: version.token.iter().flat_map(TokenReference::labels).collect(),
        };
        KeyInfo {
            name: record.name.clone(),
            algorithms: record.algorithms.clone(),
            purposes: record.purposes,
            grants: record.grants.clone(),
            created_s: record.created_s,
            revoked_s: record.revoked_s,
            versions: record.versions.iter().map(version).collect(),
            disabled: None,
        }
    }
}
