//! The store's files as they are found at a start: which keys are in use, and which are not, for what reason.
//!
//! A file that cannot be relied on disables its own key and no other.

use super::disk;
use super::error::Error;
use super::index::{self, Found, Index};
use super::name::is_lookable;
use super::record::Record;
use super::sealed;
use super::store::{Disabled, Entry, HEADER, KEY_SUFFIX, KeyStore, Keys, TOO_MANY_KEYS, names};
use crate::limits;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The content of a key's file.
pub(super) struct Opened {
    pub record: Record,
    pub revision: u64,
    /// Whether the store had an index when it was written.
    is_indexed: bool,
}

impl KeyStore {
    /// Takes every key out of its seal. Writes the index where an earlier version of this program has written
    /// none.
    pub(super) fn load(&self) -> Result<Keys, Error> {
        let mut opened = BTreeMap::new();
        let mut disabled = BTreeMap::new();
        for file in names(&self.folder)? {
            let path = self.folder.join(&file);
            if let Some(unfinished) = file.strip_suffix(disk::DRAFT)
                && ([HEADER, index::FILE].contains(&unfinished) || unfinished.ends_with(KEY_SUFFIX))
            {
                disk::remove(&path)?;
            }
            let Some(name) = file.strip_suffix(KEY_SUFFIX) else { continue };
            if !is_lookable(name) {
                self.audit.report(&format!(
                    "{}: it is not named like a file of a key store, and left alone",
                    path.display()
                ));
                continue;
            }
            if opened.len() + disabled.len() == limits::KEYS_MAX {
                return Err(TOO_MANY_KEYS);
            }
            match self.open_key(&path, name) {
                // It was there a moment ago.
                Ok(None) => {}
                Ok(Some(key)) => drop(opened.insert(name.to_owned(), key)),
                Err(Error::Engine(why)) => return Err(Error::Engine(why)),
                Err(why) => {
                    let key = Disabled { why: why.to_string(), indexed: None };
                    disabled.insert(name.to_owned(), key);
                }
            }
        }
        self.sort_out(opened, disabled)
    }

    /// Reads the file of a key.
    pub(super) fn open_key(&self, path: &Path, name: &str) -> Result<Option<Opened>, Error> {
        let Some(bytes) = disk::read(path, limits::FILE_BYTES_MAX)? else { return Ok(None) };
        let file = self.vault.open(path, name, &bytes)?;
        let record = Record::decode(name, &file.bytes);
        let record = record.map_err(|what| Error::damaged(path, what))?;
        let is_indexed = file.version >= sealed::INDEXED;
        Ok(Some(Opened { record, revision: file.revision, is_indexed }))
    }

    /// Holds what was opened against the index.
    fn sort_out(
        &self,
        opened: BTreeMap<String, Opened>,
        mut disabled: BTreeMap<String, Disabled>,
    ) -> Result<Keys, Error> {
        let (found, has_any) =
            (Index::find(&self.folder, &self.vault)?, opened.values().any(|it| it.is_indexed));
        let highest = opened.values().map(|it| it.revision).max().unwrap_or(0);
        let (index, doubt) = match found {
            Found::Good(index) => (Some(index), None),
            // A store of an earlier version of this program.
            Found::None if !has_any => (None, None),
            Found::None => {
                let path = self.folder.join(index::FILE);
                (None, Some(format!("{}: it is not there", path.display())))
            }
            Found::Bad(why) => (None, Some(why)),
        };
        let is_new = index.is_none() && doubt.is_none();
        let index = index.unwrap_or_default();
        let mut keys = Keys { generation: highest.max(index.generation), ..Keys::default() };
        for (name, Opened { record, revision, .. }) in opened {
            let why = match &doubt {
                Some(doubt) => Some(format!(
                    "whether its file is the newest is not known, since the store's index cannot be relied \
                     on ({doubt})"
                )),
                None if is_new => None,
                None => index.refuses(&name, revision),
            };
            match why {
                None => {
                    let entry = Entry { record, revision, ended: Arc::default() };
                    keys.live.insert(name, Arc::new(entry));
                }
                Some(why) => {
                    let path = self.path(&name);
                    let why = format!("{}: {why}", path.display());
                    disabled.insert(name, Disabled { why, indexed: None });
                }
            }
        }
        for (name, revision) in &index.keys {
            let missing = || Disabled {
                why: format!("{}: its file is missing", self.path(name).display()),
                indexed: None,
            };
            if !keys.live.contains_key(name) {
                disabled.entry(name.clone()).or_insert_with(missing).indexed = Some(*revision);
            }
        }
        for (name, Disabled { why, .. }) in &disabled {
            self.audit.report(&format!("key `{name}` is disabled: {why}"));
        }
        keys.disabled = disabled;
        keys.indexed = index.generation;
        if is_new {
            keys.indexed = keys.generation;
            keys.index().save(&self.folder, &self.vault)?;
        }
        Ok(keys)
    }
}
