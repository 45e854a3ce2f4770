//! Where an agent listens.

use keyway_folder::unix_socket;
use keyway_host::failure::{Failure, plain};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The socket's name in the folder of this user's session.
const NAME: &str = "keyway-ssh-agent.sock";
/// Its name in a folder of its own.
const OWN_NAME: &str = "agent.sock";
/// The mode of a folder of its own.
const FOLDER_MODE: u32 = 0o700;
/// The mode of the socket.
const SOCKET_MODE: u32 = 0o600;
/// How many names a folder of its own is tried under.
const TRIES_MAX: usize = 8;

/// A socket that is listened on. Its file is removed with it.
pub struct Place {
    listener: UnixListener,
    path: PathBuf,
    /// The file, to be told from one that came after it.
    file: (u64, u64),
    /// A folder that was made for it alone.
    folder: Option<PathBuf>,
}

impl Place {
    /// At this path. Its folder is made if it is not there, for this user alone.
    ///
    /// # Errors
    /// If another agent listens there, or the system refuses.
    pub fn at(path: &Path) -> Result<Place, Failure> {
        let path = std::path::absolute(path).map_err(|why| refused(path, &plain(&why)))?;
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            let made = DirBuilder::new().mode(FOLDER_MODE).create(folder);
            made.map_err(|why| Failure::system("make the folder", folder, &why))?;
        }
        Place::listen(path, None)
    }

    /// In the folder of this user's session (`XDG_RUNTIME_DIR`), if there is one and the place is to be found again by
    /// others, else in a folder of its own.
    ///
    /// # Errors
    /// As [`Place::at`]'s.
    pub fn choose(is_shared: bool) -> Result<Place, Failure> {
        let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let session = session.filter(|folder| folder.is_absolute() && is_private(folder));
        match session {
            Some(folder) if is_shared => Place::listen(folder.join(NAME), None),
            session => {
                let folder = own_folder(&session.unwrap_or_else(std::env::temp_dir))?;
                Place::listen(folder.join(OWN_NAME), Some(folder))
            }
        }
    }

    fn listen(path: PathBuf, folder: Option<PathBuf>) -> Result<Place, Failure> {
        unix_socket::check(&path).map_err(|why| refused(&path, &why))?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        let lock = File::open(parent).map_err(|why| Failure::system("open", parent, &why))?;
        // Two agents that find the same socket dead would each take the other's place.
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(refused(&path, "another agent is being started in its folder; try again"));
        }
        if UnixStream::connect(&path).is_ok() {
            let why = "another agent listens there; use that one, or name another --socket PATH";
            return Err(refused(&path, why));
        }
        let made = unix_socket::make(&path, SOCKET_MODE).and_then(|listener| {
            let file = identity(&fs::symlink_metadata(&path)?);
            Ok((listener, file))
        });
        let (listener, file) = made.map_err(|why| refused(&path, &plain(&why)))?;
        Ok(Place { listener, path, file, folder })
    }

    /// Its path, from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The listener, once more.
    ///
    /// # Errors
    /// The system's.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let is_its = fs::symlink_metadata(&self.path).is_ok_and(|it| identity(&it) == self.file);
        if is_its {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn refused(path: &Path, why: &str) -> Failure {
    Failure::new(format!("cannot listen on {}: {why}", path.display()))
}

/// Whether no other user gets into a folder.
fn is_private(folder: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::metadata(folder).is_ok_and(|it| it.is_dir() && it.uid() == own && it.mode() & 0o077 == 0)
}

/// Makes a folder that no other user gets into, under a name that no other user foresees.
fn own_folder(below: &Path) -> Result<PathBuf, Failure> {
    let cannot = |why: &io::Error| Failure::system("make a folder in", below, why);
    for _ in 0..TRIES_MAX {
        let mut random = [0; 8];
        keyway_drivers::engine().random(&mut random).map_err(Failure::new)?;
        let folder = below.join(format!("keyway-ssh-{:016x}", u64::from_ne_bytes(random)));
        match DirBuilder::new().mode(FOLDER_MODE).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
            Err(why) => return Err(cannot(&why)),
        }
    }
    Err(cannot(&ErrorKind::AlreadyExists.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_dead_socket_gives_way_and_a_live_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/agent");
        let first = Place::at(&path).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let why = Place::at(&path).err().unwrap().to_string();
        assert!(why.contains("another agent listens there"), "{why}");
        drop(first);
        assert!(!path.exists());
        // A killed process leaves its file.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let second = Place::at(&path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        // A file that came after it stays.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(second);
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        let why = Place::at(&path).err().unwrap().to_string();
        assert!(why.contains("no socket"), "{why}");
    }

    #[test]
    fn a_folder_of_its_own_goes_with_it() {
        let below = tempfile::tempdir().unwrap();
        let (one, other) = (own_folder(below.path()).unwrap(), own_folder(below.path()).unwrap());
        assert_ne!(one, other);
        assert!(is_private(&one));
        drop(Place::listen(one.join(OWN_NAME), Some(one.clone())).unwrap());
        assert!(!one.exists() && other.exists());
    }
}
