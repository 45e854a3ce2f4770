//! The file of a Unix socket that is listened on.

use keyway_host::failure::Failure;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A socket's file, for this user alone. It goes with this.
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode, by which it is known.
    identity: (u64, u64),
}

impl SocketFile {
    /// Has a socket bound at this path. A socket that is there, on which nothing listens any more, makes way; its folder
    /// is made if it is not there.
    ///
    /// # Errors
    /// If the file there is no socket, or the system refuses.
    pub fn make(path: &Path, bind: impl FnOnce() -> io::Result<()>) -> Result<SocketFile, Failure> {
        let refused = |why: &io::Error| Failure::system("listen on", path, why);
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
            made.map_err(|why| Failure::system("make the folder", folder, &why))?;
        }
        match fs::symlink_metadata(path) {
            Ok(file) if file.file_type().is_socket() => {
                fs::remove_file(path).map_err(|why| refused(&why))?;
            }
            Ok(_) => {
                return Err(Failure::new(format!(
                    "cannot listen on {}: a file that is no socket is there; name another, or remove it",
                    path.display()
                )));
            }
            Err(why) if why.kind() == ErrorKind::NotFound => {}
            Err(why) => return Err(refused(&why)),
        }
        bind().map_err(|why| refused(&why))?;
        let closed = fs::set_permissions(path, Permissions::from_mode(0o600));
        let file = closed.and_then(|()| fs::symlink_metadata(path));
        let file = file.map_err(|why| refused(&why))?;
        Ok(SocketFile { path: path.to_owned(), identity: (file.dev(), file.ino()) })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_it = |file: fs::Metadata| (file.dev(), file.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(is_it) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_file_that_is_no_socket_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("new/socket"), folder.path().join("key"));
        let bind = |path: PathBuf| move || UnixListener::bind(path).map(drop);
        fs::write(&other, "key").unwrap();
        assert!(SocketFile::make(&other, bind(other.clone())).is_err());
        assert!(SocketFile::make(folder.path(), bind(folder.path().to_owned())).is_err());
        assert_eq!(fs::read(&other).unwrap(), b"key");
        let file = SocketFile::make(&path, bind(path.clone())).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // What is left of one that was killed makes way.
        std::mem::forget(file);
        let file = SocketFile::make(&path, bind(path.clone())).unwrap();
        // Another file took its place.
        fs::rename(&other, &path).unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"key");
    }
}
