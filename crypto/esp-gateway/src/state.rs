//! The state folder: records that outlive the process, and the lock that keeps other gateways out of them.

use crate::limits::RECORD_BYTES_MAX;
use crate::record::Steps;
use keyway_host::failure::{Failure, plain};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Locked while a gateway uses the folder.
const LOCK: &str = "lock";

/// The folder, locked.
pub struct StateFolder {
    folder: File,
    /// Its lock goes with the process, however that ends.
    _lock: File,
}

impl StateFolder {
    /// Opens it, and makes it if need be.
    ///
    /// # Errors
    /// If another gateway uses it, others may write there, or the system refuses.
    pub fn open(path: &Path) -> Result<StateFolder, Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|why| Failure::system("make the folder", path, &why))?;
        let open = || {
            let mut options = File::options();
            options.read(true).custom_flags((OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32);
            let folder = options.open(path)?;
            Ok((folder.metadata()?, folder))
        };
        let opened = open().map_err(|why: io::Error| Failure::system("open", path, &why));
        let (found, folder) = opened?;
        let shown = path.display();
        if found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
            return Err(Failure::new(format!(
                "{shown} is not this user's alone (owner {}, mode {:o}): others who write there \
                 could \
                 have numbers used twice; chown and chmod 700 it, or name another folder with \
                 --state",
                found.uid(),
                found.mode() & 0o777
            )));
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = openat(&folder, LOCK, flags, Mode::RUSR | Mode::WUSR);
        let lock = lock.map_err(|why| Failure::system("open", &path.join(LOCK), &why.into()))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(StateFolder { folder, _lock: lock.into() }),
            Err(Errno::WOULDBLOCK) => Err(Failure::new(format!(
                "another gateway uses {shown}; stop it, or give this one a folder of its own \
                 (--state)"
            ))),
            Err(why) => Err(Failure::new(format!("cannot lock {shown}: {}", plain(&why.into())))),
        }
    }
}

impl Steps for StateFolder {
    type Draft = File;

    fn draft(&self, name: &str, bytes: &[u8]) -> io::Result<File> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(why) => return Err(why.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(bytes)?;
        Ok(file)
    }

    fn sync(&self, draft: &File) -> io::Result<()> {
        draft.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, from, &self.folder, to)?)
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(fsync(&self.folder)?)
    }

    fn bytes(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(why) => return Err(why.into()),
        };
        let mut bytes = Vec::new();
        file.take(RECORD_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > RECORD_BYTES_MAX {
            true => Err(io::Error::other("it is too long")),
            false => Ok(Some(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Records;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn one_gateway_has_the_folder_and_others_cannot_write_there() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("deep/state");
        let state = StateFolder::open(&path).unwrap();
        assert_eq!(state.read("a").unwrap(), None);
        fs::write(path.join("a.new"), "left").unwrap();
        state.write("a", b"one").unwrap();
        state.write("a", b"two").unwrap();
        assert_eq!(state.read("a").unwrap().as_deref(), Some(&b"two"[..]));
        let why = StateFolder::open(&path).err().unwrap().to_string();
        assert!(why.contains("another gateway uses"), "{why}");
        drop(state);
        StateFolder::open(&path).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        let why = StateFolder::open(&path).err().unwrap().to_string();
        assert!(why.contains("chmod 700"), "{why}");
    }
}
