//! A backup's manifest: JSON, which is compressed and sealed.

use crate::error::{Error, Fault};
use crate::limits::{
    FILES_MAX, INLINE_NAMES_MAX, LEVELS_MAX, LIST_NAMES, META_BYTES_MAX, PATH_BYTES_MAX,
    PIECE_BYTES,
};
use crate::name::{Name, from_hex, hex};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The only version of the format.
const FORMAT: u16 = 1;

/// The contents of a backup, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// When it was begun, in seconds since 1970.
    pub created_unix_s: i64,
    /// The version of the program that made it.
    pub program: String,
    /// The bytes of its files together.
    pub bytes: u64,
    /// The pieces of its files together.
    pub pieces: u64,
    /// Where the feed of the store stood.
    pub feed: Option<FeedPosition>,
    /// Its files, in the order in which they were stored.
    pub files: Vec<StoredFile>,
    /// The maker's addition: any JSON.
    pub meta: Value,
}

/// A place in the feed of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedPosition {
    /// The store's incarnation.
    pub history: [u8; 16],
    /// The last change that is in the backup; 0 if there is none.
    pub position: u64,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Relative, with `/` between its parts; none of them is empty, `.` or `..`, and none has control characters.
    pub path: String,
    /// Its rights, as in `chmod`.
    pub mode: u32,
    /// Its length.
    pub bytes: u64,
    /// How many levels of lists lie between `names` and the file's pieces.
    pub(crate) levels: u8,
    pub(crate) names: Vec<Name>,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    format: u16,
    program: String,
    created_unix_s: i64,
    bytes: u64,
    pieces: u64,
    feed: Option<SavedFeed>,
    files: Vec<SavedFile>,
    meta: Value,
}

#[derive(Serialize, Deserialize)]
struct SavedFeed {
    history: String,
    position: u64,
}

#[derive(Serialize, Deserialize)]
struct SavedFile {
    path: String,
    mode: u32,
    bytes: u64,
    levels: u8,
    names: Vec<String>,
}

/// The part that every version has.
#[derive(Deserialize)]
struct Format {
    format: u16,
}

const WRONG: Fault = Fault::Unfit("its manifest is not what this program writes");

impl Manifest {
    /// Reads what was sealed.
    ///
    /// # Errors
    /// If it is no manifest, is of a later version, or contradicts itself.
    pub fn parse(text: &[u8]) -> Result<Manifest, Fault> {
        let Format { format } = serde_json::from_slice(text).map_err(|_| WRONG)?;
        if format != FORMAT {
            return Err(Fault::Unfit("a later version of this program made it; use that one"));
        }
        let saved: Saved = serde_json::from_slice(text).map_err(|_| WRONG)?;
        if saved.files.len() > FILES_MAX {
            return Err(WRONG);
        }
        let mut paths = Paths::default();
        let files: Vec<StoredFile> = saved
            .files
            .into_iter()
            .map(|file| {
                paths.add(&file.path).map_err(|_| WRONG)?;
                StoredFile::of(file).ok_or(WRONG)
            })
            .collect::<Result<_, _>>()?;
        let feed = match saved.feed {
            Some(SavedFeed { history, position }) => {
                let history = from_hex(&history).ok_or(WRONG)?;
                Some(FeedPosition { history, position })
            }
            None => None,
        };
        let sum = |of: fn(&StoredFile) -> u64| {
            files.iter().try_fold(0_u64, |sum, file| sum.checked_add(of(file)))
        };
        if sum(|file| file.bytes) != Some(saved.bytes)
            || sum(StoredFile::pieces) != Some(saved.pieces)
        {
            return Err(WRONG);
        }
        Ok(Manifest {
            created_unix_s: saved.created_unix_s,
            program: saved.program,
            bytes: saved.bytes,
            pieces: saved.pieces,
            feed,
            files,
            meta: saved.meta,
        })
    }

    /// The text to seal.
    ///
    /// # Errors
    /// [`Error::Limit`] if its metadata is too long.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let unwritten = |why| Error::Unfit(format!("the metadata cannot be written: {why}"));
        if serde_json::to_vec(&self.meta).map_err(unwritten)?.len() > META_BYTES_MAX {
            return Err(Error::Limit { of: "bytes of metadata", most: META_BYTES_MAX });
        }
        let files = self.files.iter().map(|file| SavedFile {
            path: file.path.clone(),
            mode: file.mode,
            bytes: file.bytes,
            levels: file.levels,
            names: file.names.iter().map(Name::to_string).collect(),
        });
        let feed = self.feed.map(|FeedPosition { history, position }| {
            let history = hex(&history);
            SavedFeed { history, position }
        });
        let saved = Saved {
            format: FORMAT,
            program: self.program.clone(),
            created_unix_s: self.created_unix_s,
            bytes: self.bytes,
            pieces: self.pieces,
            feed,
            files: files.collect(),
            meta: self.meta.clone(),
        };
        serde_json::to_vec(&saved).map_err(unwritten)
    }
}

/// How many pieces lie below one name of this level.
pub(crate) const fn span(level: u8) -> u64 {
    (LIST_NAMES as u64).pow(level as u32)
}

impl StoredFile {
    /// How many pieces it has.
    pub(crate) fn pieces(&self) -> u64 {
        self.bytes.div_ceil(PIECE_BYTES as u64)
    }

    fn of(saved: SavedFile) -> Option<StoredFile> {
        let SavedFile { path, mode, bytes, levels, names } = saved;
        let names =
            names.iter().map(|name| from_hex(name).map(Name)).collect::<Option<Vec<_>>>()?;
        let file = StoredFile { path, mode, bytes, levels, names };
        let fits = mode <= 0o7777
            && levels <= LEVELS_MAX
            && file.names.len() <= INLINE_NAMES_MAX
            && file.names.len() as u64 == file.pieces().div_ceil(span(levels));
        fits.then_some(file)
    }
}

/// The paths of the files of a backup: each can be restored beside the others, and below one folder.
#[derive(Default)]
pub(crate) struct Paths {
    known: BTreeSet<String>,
}

impl Paths {
    /// Adds one.
    pub fn add(&mut self, path: &str) -> Result<(), Error> {
        let refused =
            |why| Err(Error::Unfit(format!("a backup cannot have a file {path:?}: {why}")));
        let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
        if path.len() > PATH_BYTES_MAX {
            return refused("its path is too long");
        }
        if !path.split('/').all(is_part) || path.chars().any(char::is_control) {
            return refused(
                "its path has to be relative, without `.`, `..` and control characters",
            );
        }
        let is_folder_of =
            |file: &String| file.strip_prefix(path).is_some_and(|it| it.starts_with('/'));
        let below = format!("{path}/");
        if self.known.range(below..).next().is_some_and(is_folder_of) {
            return refused("it is a folder of another one");
        }
        let mut above = path.match_indices('/').map(|(at, _)| &path[..at]);
        if above.any(|folder| self.known.contains(folder)) {
            return refused("a folder of it is a file");
        }
        match self.known.insert(path.to_owned()) {
            true => Ok(()),
            false => refused("it has one of this name"),
        }
    }
}
