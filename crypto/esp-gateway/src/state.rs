//! The state folder: records that outlive the process, each written whole, and the lock that keeps other gateways
//! out of them.

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
/// The end of a record's name until it is whole.
const DRAFT_END: &str = ".new";
/// Longest record, in bytes.
const RECORD_BYTES_MAX: u64 = 4096;

/// A place that keeps records by name. After a power cut a record is that of the last [`write`](Records::write) that
/// returned, or of one that was under way.
pub trait Records {
    /// The record of a name, if there is one.
    ///
    /// # Errors
    /// The system's.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Puts a record in the place of the one before. It is on the disk when this returns.
    ///
    /// # Errors
    /// The system's. Then either of the two may be there.
    fn write(&self, name: &str, record: &[u8]) -> io::Result<()>;
}

/// The steps of [`Records::write`], in their order; a test has them fail, and the power cut between any two.
pub trait Steps {
    /// Makes a file of a name with these bytes, in the place of a file that was left there.
    ///
    /// # Errors
    /// The system's.
    fn draft(&self, name: &str, bytes: &[u8]) -> io::Result<Self::Draft>;
    /// Has its bytes on the disk.
    ///
    /// # Errors
    /// The system's.
    fn sync(&self, draft: &Self::Draft) -> io::Result<()>;
    /// Gives it another name.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Has the names on the disk.
    ///
    /// # Errors
    /// The system's.
    fn sync_names(&self) -> io::Result<()>;
    /// The bytes of a file.
    ///
    /// # Errors
    /// The system's.
    fn bytes(&self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// A file that is being made.
    type Draft;
}

impl<S: Steps> Records for S {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.bytes(name)
    }

    fn write(&self, name: &str, record: &[u8]) -> io::Result<()> {
        let draft_name = format!("{name}{DRAFT_END}");
        let draft = self.draft(&draft_name, record)?;
        self.sync(&draft)?;
        self.rename(&draft_name, name)?;
        self.sync_names()
    }
}

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
        let (found, folder) = open().map_err(|why: io::Error| Failure::system("open", path, &why))?;
        let shown = path.display();
        if found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
            return Err(Failure::new(format!(
                "{shown} is not this user's alone (owner {}, mode {:o}): who writes there could have numbers used \
                 twice; chown and chmod 700 it, or name another folder with --state",
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
                "another gateway uses {shown}; stop it, or give this one a folder of its own with --state"
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
