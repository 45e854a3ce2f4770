//! The Unix socket that a directory listens on, if it does.

use crate::data::Folder;
use keyway_host::failure::{Failure, plain};
use std::fmt::Write;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Where it is, and who may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its file, which begins at the data folder unless it begins with `/`; `None` for no socket.
    pub path: Option<PathBuf>,
    /// The file's mode.
    pub mode: u32,
}

/// Where a flag or the file wants it; `None` for no socket.
pub type Wanted = Option<PathBuf>;

/// Longest path of a socket that the system takes, in bytes.
const PATH_BYTES_MAX: usize = 107;

/// Reads a path; `off` is none.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn path(text: &str) -> Result<Wanted, String> {
    match text {
        "off" => Ok(None),
        "" => Err("it must be a path, or \"off\"".into()),
        path => Ok(Some(path.into())),
    }
}

/// Reads a mode: who may connect needs the right to write.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8)
        .map_err(|_| format!("\"{text}\" is no mode, like \"0600\" or \"0660\""))?;
    match mode {
        0o600 | 0o660 | 0o666 => Ok(mode),
        _ => Err(format!("\"{text}\" is not one of \"0600\", \"0660\" and \"0666\"")),
    }
}

/// Its file.
pub fn file(folder: &Folder, settings: &Settings) -> Option<PathBuf> {
    settings.path.as_ref().map(|path| folder.file_at(path))
}

/// Its URL for clients.
pub fn url(file: &Path) -> String {
    let mut url = "ldapi://".to_owned();
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                url.push(char::from(*byte));
            }
            // Writing to a String cannot fail.
            other => drop(write!(url, "%{other:02X}")),
        }
    }
    url
}

/// Listens on the socket, if there is to be one. A socket that an earlier process left gives way;
/// a directory that still listens there does not.
///
/// # Errors
/// Why it cannot be made.
pub fn listen(folder: &Folder, settings: &Settings) -> Result<Option<UnixListener>, Failure> {
    let Some(path) = file(folder, settings) else { return Ok(None) };
    let refused = |why: &str| {
        Failure::new(format!("cannot listen on {} (listen_unix): {why}", path.display()))
    };
    check(&path).map_err(|why| refused(&why))?;
    if UnixStream::connect(&path).is_ok() {
        return Err(refused("another program listens there"));
    }
    make(&path, settings.mode).map(Some).map_err(|why| refused(&plain(&why)))
}

/// Whether there could be a socket at a path.
///
/// # Errors
/// Why not, in words.
pub fn check(path: &Path) -> Result<(), String> {
    if path.as_os_str().len() + NEW.len() > PATH_BYTES_MAX {
        return Err(format!(
            "a socket's path has {PATH_BYTES_MAX} bytes at most; name a shorter one"
        ));
    }
    if fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket()) {
        return Err("there is a file of that name, and it is no socket".into());
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(format!("there is no folder {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// The suffix of its name until its mode is set.
const NEW: &str = ".new";

/// Listens on a socket of this mode. It is made under another name, so that no client connects before its mode is
/// set, and takes the place of one that is there.
///
/// # Errors
/// The system's.
pub fn make(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let mut new = path.as_os_str().to_owned();
    new.push(NEW);
    let new = PathBuf::from(new);
    match fs::remove_file(&new) {
        Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    let listener = UnixListener::bind(&new)?;
    fs::set_permissions(&new, Permissions::from_mode(mode))?;
    fs::rename(&new, path)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_paths() {
        assert_eq!(mode("0660"), Ok(0o660));
        assert_eq!(mode("600"), Ok(0o600));
        assert!(mode("0777").is_err() && mode("8").is_err() && mode("").is_err());
        assert_eq!(path("off"), Ok(None));
        assert_eq!(path("ldapi"), Ok(Some("ldapi".into())));
    }
}
