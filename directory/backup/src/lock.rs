//! Who writes to a repository, and who reads.
//!
//! Locks are `flock`'s, so a process that is killed leaves none. One that writes has [`name::LOCK`]; its id and
//! host are in that file, for people. Readers share [`name::READERS`], which one that removes files needs for
//! itself: nothing is removed below a restore. A create and readers do not disturb each other.

use crate::disk;
use crate::error::Error;
use crate::limits::{LOCK_LOOK_EVERY, LOCK_OF_THE_DEAD_WAIT, LOCK_WAIT, SEGMENT_LOCK_WAIT};
use crate::name;
use keyway_host::failure::is_disk_full;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::system::uname;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::thread;
use std::time::Instant;

/// A lock, until it is dropped.
pub(crate) struct Lock {
    _file: File,
}

/// Takes the repository for one that writes.
pub(crate) fn writer(folder: &Path) -> Result<Lock, Error> {
    let path = folder.join(name::LOCK);
    let refused = |why| Error::system(folder, "lock", &path, why);
    let mut file = disk::open_lock(&path).map_err(refused)?;
    let begun = Instant::now();
    while !is_locked(&file).map_err(refused)? {
        let holder = Holder::read(&mut file);
        // A process that was killed is not gone at once, and its children hold the lock a little longer.
        let wait = match holder.as_ref().is_some_and(Holder::is_dead) {
            true => LOCK_OF_THE_DEAD_WAIT,
            false => LOCK_WAIT,
        };
        if begun.elapsed() >= wait {
            let by = holder.map_or_else(|| "another process".to_owned(), |it| it.called());
            return Err(Error::InUse { folder: folder.to_owned(), by });
        }
        thread::sleep(LOCK_LOOK_EVERY);
    }
    // The id is for people. A full disk is no reason not to remove old backups.
    match Holder::ours().write(&mut file) {
        Err(why) if !is_disk_full(&why) => Err(refused(why)),
        _ => Ok(Lock { _file: file }),
    }
}

/// Takes the pieces of the feed for one that stores one or removes some; waits for another that does.
pub(crate) fn segments(folder: &Path) -> Result<Lock, Error> {
    let path = folder.join(name::SEGMENTS_LOCK);
    let refused = |why| Error::system(folder, "lock", &path, why);
    let file = disk::open_lock(&path).map_err(refused)?;
    let begun = Instant::now();
    while !is_locked(&file).map_err(refused)? {
        if begun.elapsed() >= SEGMENT_LOCK_WAIT {
            let by = "another process".to_owned();
            return Err(Error::InUse { folder: folder.to_owned(), by });
        }
        thread::sleep(LOCK_LOOK_EVERY);
    }
    Ok(Lock { _file: file })
}

/// Keeps files from being removed. `None` where this process may not write: then no lock can be had.
pub(crate) fn reader(folder: &Path) -> Result<Option<Lock>, Error> {
    let path = folder.join(name::READERS);
    let refused = |why| Error::system(folder, "lock", &path, why);
    let file = match disk::open_lock(&path) {
        Err(why)
            if matches!(
                why.kind(),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            return Ok(None);
        }
        file => file.map_err(refused)?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(Errno::WOULDBLOCK) => {
            let by = "another process, which removes old backups,".to_owned();
            Err(Error::InUse { folder: folder.to_owned(), by })
        }
        Err(why) => Err(refused(why.into())),
    }
}

/// That no process reads, and none begins to.
pub(crate) fn no_readers(folder: &Path) -> Result<Lock, Error> {
    let path = folder.join(name::READERS);
    let refused = |why| Error::system(folder, "lock", &path, why);
    let file = disk::open_lock(&path).map_err(refused)?;
    match is_locked(&file).map_err(refused)? {
        true => Ok(Lock { _file: file }),
        false => Err(Error::BeingRead(folder.to_owned())),
    }
}

/// Tries to lock a file for this process alone.
fn is_locked(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(why) => Err(why.into()),
    }
}

/// The process that has a lock, as it is in its file: id and host.
struct Holder {
    process: u32,
    host: String,
}

impl Holder {
    fn ours() -> Holder {
        let host = uname().nodename().to_string_lossy().into_owned();
        Holder { process: std::process::id(), host }
    }

    /// It may not have got to writing it yet.
    fn read(file: &mut File) -> Option<Holder> {
        let mut text = String::new();
        file.rewind().ok()?;
        file.take(300).read_to_string(&mut text).ok()?;
        let (process, host) = text.split_once(' ')?;
        Some(Holder { process: process.parse().ok()?, host: host.trim_end().to_owned() })
    }

    fn write(&self, file: &mut File) -> io::Result<()> {
        let text = format!("{} {}\n", self.process, self.host);
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        file.set_len(text.len() as u64)
    }

    fn called(&self) -> String {
        let host: String = self.host.chars().filter(|char| !char.is_control()).collect();
        format!("process {} on {host}", self.process)
    }

    /// Whether the process has ended, even if its parent has not waited for it.
    fn is_dead(&self) -> bool {
        if self.host != Holder::ours().host {
            return false;
        }
        match fs::read_to_string(format!("/proc/{}/stat", self.process)) {
            // The state is behind the name, which is in brackets.
            Ok(stat) => {
                let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
                matches!(state, Some('Z' | 'X'))
            }
            Err(why) => why.kind() == ErrorKind::NotFound,
        }
    }
}
