//! The store's record of its keys' files, in one more file. By it an older file of a key that is
//! put back in its place is noticed: the older file is sealed as well as the new one.
//!
//! All files of a store share one counter, its *generation*: each that is written has a higher number than
//! all before it. The index has the number of each key's file, and the highest of all. So a key's file is as
//! new as its entry here, or newer if only usage counts were saved or a crash came before the index; one that
//! has no entry is newer than all, or was deleted.
//!
//! The file `index` is sealed like a key's file under a name that no key has. An attacker who puts back an
//! older index together with older keys is not noticed by these two, but by the audit log, which has the
//! generation of each change.

use super::audit;
use super::disk;
use super::error::Error;
use super::sealed::Vault;
use crate::limits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The file, in the store's folder.
pub(super) const FILE: &str = "index";
/// The name that it is sealed under: no key can be called so.
const SEALED_AS: &str = "/index";

/// The numbers of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Those of the keys, by name.
    pub keys: BTreeMap<String, u64>,
    /// The highest of all.
    #[serde(skip)]
    pub generation: u64,
}

/// An index, as it was found.
#[derive(Debug)]
pub(super) enum Found {
    Good(Index),
    /// None was ever written, or it was taken away.
    None,
    /// It cannot be relied on, for this reason.
    Bad(String),
}

impl Index {
    /// Reads what was sealed.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn decode(generation: u64, bytes: &[u8]) -> Result<Index, &'static str> {
        match postcard::take_from_bytes::<Index>(bytes) {
            Ok((index, [])) if index.keys.len() <= limits::KEYS_MAX => {
                Ok(Index { generation, ..index })
            }
            _ => Err("what it holds is spoilt"),
        }
    }

    /// Looks for the one of a store.
    ///
    /// # Errors
    /// The engine's.
    pub(super) fn find(folder: &Path, vault: &Vault) -> Result<Found, Error> {
        let path = folder.join(FILE);
        let read = || {
            let Some(bytes) = disk::read(&path, limits::FILE_BYTES_MAX)? else { return Ok(None) };
            let file = vault.open(&path, SEALED_AS, &bytes)?;
            let index = Index::decode(file.revision, &file.bytes);
            Ok(Some(index.map_err(|what| Error::damaged(&path, what))?))
        };
        Ok(match read() {
            Ok(None) => Found::None,
            Ok(Some(index)) => match audit::last_generation(folder) {
                Some(logged) if logged > index.generation => Found::Bad(format!(
                    "{}: it is of an older state than the audit log, whose last change has number {logged} \
                     and its own {}",
                    path.display(),
                    index.generation
                )),
                _ => Found::Good(index),
            },
            Err(Error::Engine(why)) => return Err(Error::Engine(why)),
            Err(why) => Found::Bad(why.to_string()),
        })
    }

    /// Puts it on the disk.
    ///
    /// # Errors
    /// [`Error::System`], [`Error::Engine`].
    pub(super) fn save(&self, folder: &Path, vault: &Vault) -> Result<(), Error> {
        let bytes = postcard::to_extend(self, Vec::new()).map_err(|_| Error::Unwritten)?;
        let file = vault.seal(SEALED_AS, self.generation, &bytes)?;
        disk::put(&folder.join(FILE), &file)
    }

    /// Why a key's file is not the one that was written last, if it is not.
    pub(super) fn refuses(&self, name: &str, revision: u64) -> Option<String> {
        match self.keys.get(name) {
            Some(written) if revision < *written => Some(format!(
                "an older file of it was put back, number {revision} of {written}: it may have been revoked, \
                 rotated or taken from a caller since"
            )),
            None if revision <= self.generation => {
                Some("a file of it was put back although the key was deleted".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_files_and_those_of_deleted_keys_are_refused() {
        let keys = [("a".to_owned(), 5)].into();
        let index = Index { keys, generation: 9 };
        assert!(index.refuses("a", 4).is_some() && index.refuses("deleted", 9).is_some());
        for (name, revision) in [("a", 5), ("a", 9), ("a", 12), ("new", 10)] {
            assert_eq!(index.refuses(name, revision), None);
        }
        let bytes = postcard::to_extend(&index, Vec::new()).unwrap();
        assert_eq!(Index::decode(9, &bytes), Ok(index));
        assert!(Index::decode(9, &bytes[1..]).is_err() && Index::decode(9, &[]).is_err());
    }
}
