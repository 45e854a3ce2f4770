//! The files of a data folder that go with its store. The folder may belong to another user than this process, who can put
//! a link or a pipe in a file's place at any moment.

use super::meta::With;
use keyway_folder::data::name;
use keyway_host::failure::Failure;
use rustix::fs::{Mode, OFlags, fstat, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Take};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The store's file in a backup.
pub(crate) const STORE_FILE: &str = "store/data.mdb";

/// Names in a data folder that are of the process which uses it, or of the store.
const NEVER: [&str; 12] = [
    name::VERSION,
    name::LOCK,
    name::HISTORY,
    name::RUNNING,
    name::METER,
    name::REINDEX,
    name::LOG,
    name::STORE,
    name::FEED_CHECK,
    name::SNAPSHOTS,
    name::EXPORTS,
    // Two servers with one identity would be taken for one.
    name::CLUSTER,
];
/// How the name of a store begins that was kept when another one took its place.
pub(crate) const BEFORE_REJOIN: &str = "store.before-rejoin-";
/// Names that the configuration is in; all others are taken for keys. A server does not start with a certificate
/// without its key, so that these go together.
const CONFIG: [&str; 3] = [name::CONFIGURATION, name::ACCEPTED, name::SCHEMA];
/// Levels of folders that are looked into.
const DEPTH_MAX: usize = 8;
/// Links that lead to links are followed so far.
const LINKS_MAX: usize = 8;
/// A larger file is none of a data folder: a backup of it would take the repository's room, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A file, opened.
pub(crate) enum Opened {
    /// A plain file, and its rights.
    Plain(Take<File>, u32),
    /// It is not there any more.
    Gone,
    /// It cannot be taken along, for this reason.
    Other(&'static str),
}

/// Says that a file is not there.
pub(crate) fn missing(name: &str) -> String {
    format!("{name}: it is not there")
}

/// The files that are to go with the store, by their paths in the folder; and those that cannot, each with the reason.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn choose(
    folder: &Path,
    repository: &Path,
    with: With,
) -> Result<(Vec<String>, Vec<String>), Failure> {
    let repository = fs::metadata(repository).ok().map(|it| (it.dev(), it.ino()));
    let mut found = Found { repository, ..Found::default() };
    for name in names(folder, &mut found.left_out)? {
        let is_config = CONFIG.contains(&name.as_str());
        let is_wanted = if is_config { with.config } else { with.keys };
        if is_wanted && !NEVER.contains(&name.as_str()) && !name.starts_with(BEFORE_REJOIN) {
            found.gather(folder, name, DEPTH_MAX)?;
        }
    }
    if with.config && !found.files.iter().any(|name| name == name::CONFIGURATION) {
        found.left_out.push(missing(name::CONFIGURATION));
    }
    found.files.sort_unstable();
    Ok((found.files, found.left_out))
}

/// Opens one of them. A link is followed if it is this process's user's own or root's, as that is which a package makes
/// of `keyway.toml`: another user cannot have a file read by it that only this process may read.
///
/// # Errors
/// If it is there and cannot be read.
pub(crate) fn open(path: &Path) -> Result<Opened, Failure> {
    let system = |why: io::Error| Failure::system("read", path, &why);
    let mut place = path.to_owned();
    for _ in 0..LINKS_MAX {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = File::options().read(true).custom_flags(flags.bits() as i32).open(&place);
        let file = match opened {
            Err(why) if why.kind() == io::ErrorKind::NotFound && place == path => {
                return Ok(Opened::Gone);
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                return Ok(Opened::Other("it is a link to what is not there"));
            }
            Err(why) if why.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                match target(&place) {
                    Ok(Some(target)) => place = target,
                    Ok(None) => return Ok(Opened::Other("it is a link of another user")),
                    // It is another thing by now.
                    Err(_) => return Ok(Opened::Gone),
                }
                continue;
            }
            // A socket.
            Err(why) if why.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                return Ok(Opened::Other("it is no plain file"));
            }
            opened => opened.map_err(system)?,
        };
        let metadata = file.metadata().map_err(system)?;
        return Ok(match metadata.len() {
            _ if !metadata.is_file() => Opened::Other("it is no plain file"),
            length if length > FILE_BYTES_MAX => Opened::Other("it is larger than 1 GiB"),
            _ => Opened::Plain(file.take(FILE_BYTES_MAX), metadata.permissions().mode() & 0o777),
        });
    }
    Ok(Opened::Other("it is a link that leads round"))
}

/// The path that a link leads to; `None` if another user has made it. The link that is looked at is the one that is read.
fn target(link: &Path) -> io::Result<Option<PathBuf>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(link, flags, Mode::empty())?;
    let owner = fstat(&opened)?.st_uid;
    if owner != 0 && owner != geteuid().as_raw() {
        return Ok(None);
    }
    let target = readlinkat(&opened, "", Vec::new())?;
    let target = OsString::from_vec(target.into_bytes());
    Ok(Some(link.parent().unwrap_or(Path::new("/")).join(target)))
}

#[derive(Default)]
struct Found {
    /// The device and the inode of the repository, which may be mounted in the folder.
    repository: Option<(u64, u64)>,
    files: Vec<String>,
    left_out: Vec<String>,
}

impl Found {
    fn gather(&mut self, folder: &Path, name: String, levels: usize) -> Result<(), Failure> {
        let path = folder.join(&name);
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            // It was removed or replaced meanwhile.
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(Failure::system("look at", &path, &why)),
        };
        let kind = metadata.file_type();
        if self.repository == Some((metadata.dev(), metadata.ino())) {
            self.left_out.push(format!("{name}: it is this repository"));
        } else if kind.is_dir() && levels > 0 {
            for below in names(&path, &mut self.left_out)? {
                self.gather(folder, format!("{name}/{below}"), levels - 1)?;
            }
        } else if kind.is_dir() {
            self.left_out.push(format!("{name}: it lies too deep"));
        } else if kind.is_file() || kind.is_symlink() {
            // Pages of counters are the process's that uses the folder, as sockets are.
            if !name.ends_with("/meter") {
                self.files.push(name);
            }
        } else if !kind.is_socket() {
            self.left_out.push(format!("{name}: it is no plain file"));
        }
        Ok(())
    }
}

/// The names in a folder but for those that begin with a dot, which files have for a moment that are being written.
/// Names that no backup has are left out.
fn names(folder: &Path, left_out: &mut Vec<String>) -> Result<Vec<String>, Failure> {
    let system = |why: io::Error| Failure::system("read", folder, &why);
    let mut names = Vec::new();
    for found in fs::read_dir(folder).map_err(system)? {
        let name = found.map_err(system)?.file_name();
        match name.into_string() {
            Ok(name) if name.starts_with('.') => {}
            Ok(name) if !name.chars().any(char::is_control) => names.push(name),
            Ok(name) => left_out.push(format!("{name:?}: its name has control characters")),
            Err(name) => left_out.push(format!("{name:?}: its name is not UTF-8")),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, lchown, symlink};

    fn is_plain(path: &Path) -> bool {
        matches!(open(path).unwrap(), Opened::Plain(..))
    }

    #[test]
    fn nothing_waits_for_pipes_and_links_of_others_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), Mode::RUSR).unwrap();
        symlink("file", at("link")).unwrap();
        symlink(at("link"), at("second")).unwrap();
        symlink("nothing", at("dangling")).unwrap();
        symlink("round", at("round")).unwrap();
        symlink("pipe", at("to-pipe")).unwrap();
        for name in ["file", "link", "second"] {
            assert!(is_plain(&at(name)), "{name}");
        }
        for name in ["pipe", ".", "dangling", "round", "to-pipe"] {
            assert!(matches!(open(&at(name)).unwrap(), Opened::Other(_)), "{name}");
        }
        assert!(matches!(open(&at("none")).unwrap(), Opened::Gone));
        File::create(at("huge")).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(open(&at("huge")).unwrap(), Opened::Other(_)));
        if geteuid().is_root() {
            lchown(at("link"), Some(12_345), None).unwrap();
            chown(at("file"), Some(12_345), None).unwrap();
            assert!(is_plain(&at("file")) && !is_plain(&at("link")) && !is_plain(&at("second")));
        }
    }

    #[test]
    fn what_is_left_out_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("cryptod")).unwrap();
        fs::create_dir(at("repository")).unwrap();
        fs::write(at("repository/x"), "").unwrap();
        for name in ["server.pem", "cryptod/keys", "cryptod/meter", "a\nb", ".hidden", "lock"] {
            fs::write(at(name), "").unwrap();
        }
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), Mode::RUSR).unwrap();
        let (files, left_out) =
            choose(folder.path(), &at("repository"), With { config: true, keys: true }).unwrap();
        assert_eq!(files, ["cryptod/keys", "server.pem"]);
        let names: Vec<_> = left_out.iter().filter_map(|one| one.split(": ").next()).collect();
        assert_eq!(names.len(), 4, "{left_out:?}");
        for name in ["\"a\\nb\"", "pipe", "keyway.toml", "repository"] {
            assert!(names.contains(&name), "{left_out:?}");
        }
    }
}
