//! A base: a store in one state and the files that go with it, as the server sends it to one that joins.

use super::limits::{BASE_FILES_BYTES_MAX, BASE_PIECE_BYTES};
use crate::backup::files::{self, Opened};
use crate::backup::{STORE_FILE, With};
use keyway_cluster::message::{BaseFile, Digest};
use keyway_folder::data::name;
use keyway_host::failure::Failure;
use keyway_store::{Snapshot, Store};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use zeroize::Zeroizing;

/// The server's certificate and its key, and room that cryptod keeps for a full disk.
const OF_THIS_HOST: [&str; 3] = [name::SERVER_CERTIFICATE, name::SERVER_KEY, "cryptod/reserve"];

/// A base that is read from its beginning to its end. It keeps a state of the store.
pub struct Base {
    files: Vec<BaseFile>,
    /// Those beside the store, one behind the other: they come first.
    small: Zeroizing<Vec<u8>>,
    sent: usize,
    snapshot: Snapshot,
    left: u64,
    hash: Sha256,
}

impl Base {
    /// Begins with the store as it is now. Without `beside` it is the store alone.
    ///
    /// # Errors
    /// If something cannot be read, or not be sent.
    pub fn begin(folder: &Path, store: &Store, beside: bool) -> Result<Base, Failure> {
        let (mut files, mut small) = (Vec::new(), Zeroizing::new(Vec::new()));
        if beside {
            gather(folder, &mut files, &mut small)?;
        }
        let unreadable = |why| Failure::new(format!("cannot read the store: {why}"));
        let snapshot = store.snapshot().map_err(unreadable)?;
        let left = snapshot.length();
        files.push(BaseFile { path: STORE_FILE.to_owned(), mode: 0o600, bytes: left });
        Ok(Base { files, small, sent: 0, snapshot, left, hash: Sha256::new() })
    }

    /// The files, in their order.
    pub fn files(&self) -> Vec<BaseFile> {
        self.files.clone()
    }

    /// The next octets of it; none at its end.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn next(&mut self) -> io::Result<Vec<u8>> {
        let beside = self.small.get(self.sent..).unwrap_or_default();
        let piece = if beside.is_empty() {
            let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(BASE_PIECE_BYTES);
            let mut piece = vec![0; wanted];
            self.snapshot.read_exact(&mut piece)?;
            self.left -= wanted as u64;
            piece
        } else {
            let piece = beside.get(..BASE_PIECE_BYTES.min(beside.len())).unwrap_or_default();
            self.sent += piece.len();
            piece.to_vec()
        };
        self.hash.update(&piece);
        Ok(piece)
    }

    /// The digest of all octets that were given out.
    pub fn digest(self) -> Digest {
        Digest(self.hash.finalize().into())
    }
}

/// Reads the files that a server needs beside the store, but for those of this host alone.
fn gather(
    folder: &Path,
    files: &mut Vec<BaseFile>,
    small: &mut Zeroizing<Vec<u8>>,
) -> Result<(), Failure> {
    may_read_keys(folder)?;
    // A repository in the folder is not known here; what is too large is refused below.
    let (found, _) = files::choose(folder, Path::new(""), With { config: true, keys: true })?;
    for path in found.into_iter().filter(|path| !OF_THIS_HOST.contains(&path.as_str())) {
        let Opened::Plain(mut open, mode) = files::open(&folder.join(&path))? else { continue };
        let before = small.len();
        let room = BASE_FILES_BYTES_MAX.saturating_sub(before as u64);
        let read = (&mut open).take(room + 1).read_to_end(small);
        let read = read.map_err(|why| Failure::system("read", &folder.join(&path), &why))?;
        if read as u64 > room {
            return Err(Failure::new(format!(
                "the files of the data folder beside the store have more than {BASE_FILES_BYTES_MAX} bytes; move \
                 away what is none of Keyway's ({path} was looked at last)"
            )));
        }
        if !path.bytes().all(|c| c.is_ascii_graphic()) {
            return Err(Failure::new(format!(
                "{path:?} has a name that cannot be sent; give it one of letters, digits, '-', '_' and '.'"
            )));
        }
        files.push(BaseFile { path, mode, bytes: read as u64 });
    }
    Ok(())
}

/// Refuses where cryptod is another user: its keys are closed to this one.
fn may_read_keys(folder: &Path) -> Result<(), Failure> {
    match fs::read_dir(folder.join(name::CRYPTOD)) {
        Err(why) if why.kind() == io::ErrorKind::PermissionDenied => Err(Failure::new(
            "the keys of this server's cryptod are another user's, and closed to the server: a follower cannot be given \
             them over the network; run both as one user, or restore a backup with keys on the other host",
        )),
        _ => Ok(()),
    }
}
