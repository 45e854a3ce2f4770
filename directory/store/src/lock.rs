//! The file that keeps a second process out.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::error::is_disk_full;
use crate::{OpenError, disk};

/// First line of the file: says that the folder is a store of ours.
const SIGNATURE: &str = "keyway-store";

/// Held for as long as the store's files are open; the system lets go when the process dies.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock in `path` and writes this process into it.
    pub(crate) fn take(path: &Path) -> Result<Lock, OpenError> {
        let attempt = "taking the store's lock";
        let mut file = disk::create(path).map_err(|e| OpenError::system(attempt, e))?;
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error == rustix::io::Errno::WOULDBLOCK {
                return Err(OpenError::Locked { pid: holder(&mut file) });
            }
            return Err(OpenError::system(attempt, error.into()));
        }
        let signed = is_signed(&mut file);
        sign(&mut file, signed).map_err(|e| OpenError::system(attempt, e))?;
        if !signed {
            disk::sync_folder(path.parent().unwrap_or(Path::new(".")))?;
        }
        Ok(Lock { _file: file })
    }

    /// Whether the file at `path` was written by a store.
    pub(crate) fn is_signed(path: &Path) -> bool {
        File::open(path).is_ok_and(|mut file| is_signed(&mut file))
    }
}

fn is_signed(file: &mut File) -> bool {
    let mut text = String::new();
    let read = file.take(64).read_to_string(&mut text);
    read.is_ok() && text.lines().next() == Some(SIGNATURE)
}

/// The signature stays as it is where there is one: a cut cannot take it. One that is new has to be
/// on the disk before anything is made beside it.
fn sign(file: &mut File, signed: bool) -> io::Result<()> {
    let text = format!("{SIGNATURE}\n{}\n", std::process::id());
    file.rewind()?;
    match file.write_all(text.as_bytes()).and_then(|()| file.set_len(text.len() as u64)) {
        // The process id is for people, and a full disk is no reason not to open.
        Err(error) if signed && is_disk_full(&error) => Ok(()),
        Ok(()) if !signed => file.sync_all(),
        other => other,
    }
}

fn holder(file: &mut File) -> u32 {
    let mut text = String::new();
    match file.take(64).read_to_string(&mut text) {
        Ok(_) => text.lines().nth(1).and_then(|pid| pid.parse().ok()).unwrap_or(0),
        Err(_) => 0,
    }
}
