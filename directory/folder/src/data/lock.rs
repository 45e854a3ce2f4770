//! The lock of a data folder: which process uses it.

use super::files::{SECRET_MODE, other_owner};
use super::name;
use crate::limits::{LOCK_LOOK_EVERY, LOCK_OF_THE_DEAD_WAIT};
use keyway_host::failure::{Failure, is_disk_full};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::Path;
use std::thread;
use std::time::Instant;

/// Takes the folder for this process, until the file that is returned is closed.
pub(super) fn lock(folder: &Path) -> Result<File, Failure> {
    let path = folder.join(name::LOCK);
    let refused = |why| Failure::system("write to the data folder", folder, &why);
    let mut file = open_lock(folder, &path).map_err(refused)?;
    let begun = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            // A process that was killed is not gone at once, and its children hold the lock a little longer.
            Err(Errno::WOULDBLOCK)
                if begun.elapsed() < LOCK_OF_THE_DEAD_WAIT && is_dead(holder(&mut file)) =>
            {
                thread::sleep(LOCK_LOOK_EVERY);
            }
            Err(Errno::WOULDBLOCK) => return Err(in_use(folder, &mut file)),
            Err(why) => return Err(Failure::system("lock", &path, &why.into())),
        }
    }
    file.rewind().map_err(refused)?;
    // The id is for people. A full disk, which may have no room for it, is no reason not to start.
    let id = std::process::id().to_string();
    match file.write_all(id.as_bytes()).and_then(|()| file.set_len(id.len() as u64)) {
        Err(why) if !is_disk_full(&why) => Err(refused(why)),
        _ => Ok(file),
    }
}

/// Opens the lock's file, made if there is none. No link is followed: root would write to what a folder's
/// owner has it lead to.
fn open_lock(folder: &Path, path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(SECRET_MODE).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    match options.clone().create_new(true).open(path) {
        Ok(file) => {
            if let Some((user, group)) = other_owner(folder)? {
                fchown(&file, Some(user), Some(group))?;
            }
            Ok(file)
        }
        Err(why) if why.kind() == ErrorKind::AlreadyExists => options.open(path),
        Err(why) => Err(why),
    }
}

/// The process that uses the folder, if one does and it is known.
pub fn user_id(folder: &Path) -> Option<u32> {
    let mut file = File::open(folder.join(name::LOCK)).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => holder(&mut file),
        _ => None,
    }
}

/// Which process uses the folder, in words; `None` if none does.
pub fn user(folder: &Path) -> Option<String> {
    let mut file = File::open(folder.join(name::LOCK)).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Some(called(holder(&mut file))),
        _ => None,
    }
}

/// The process that uses the folder, if it has got to writing its id.
pub fn holder_of(folder: &Path) -> Option<u32> {
    holder(&mut File::open(folder.join(name::LOCK)).ok()?)
}

/// The process that has the lock; it may not have got to writing its id yet.
fn holder(lock: &mut File) -> Option<u32> {
    let mut id = String::new();
    lock.rewind().ok()?;
    lock.take(20).read_to_string(&mut id).ok()?;
    id.trim().parse().ok()
}

fn called(process: Option<u32>) -> String {
    process.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"))
}

/// Whether a process has ended, even if its parent has not waited for it.
fn is_dead(process: Option<u32>) -> bool {
    let Some(id) = process else { return false };
    match fs::read_to_string(format!("/proc/{id}/stat")) {
        // The state is behind the name, which is in brackets.
        Ok(stat) => {
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            matches!(state, Some('Z' | 'X'))
        }
        Err(why) => why.kind() == ErrorKind::NotFound,
    }
}

fn in_use(folder: &Path, lock: &mut File) -> Failure {
    let (folder, process) = (folder.display(), called(holder(lock)));
    Failure::new(format!("{folder} is in use by {process}; stop it first, or name another folder"))
}
