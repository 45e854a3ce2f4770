//! Files of a data folder, opened as what they are taken for.

use keyway_host::failure::Failure;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Opens a plain file, and gives its rights; `None` if it is gone, or is something else by now. The folder may belong to
/// another user than this process, who can put a link or a pipe in a file's place at any moment.
///
/// # Errors
/// If the system does not let it be opened.
pub fn open(path: &Path) -> Result<Option<(File, u32)>, Failure> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = File::options().read(true).custom_flags(flags.bits() as i32).open(path);
    let system = |why: io::Error| Failure::system("read", path, &why);
    let file = match opened {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) if why.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => return Ok(None),
        opened => opened.map_err(system)?,
    };
    let metadata = file.metadata().map_err(system)?;
    Ok(metadata.is_file().then(|| (file, metadata.permissions().mode() & 0o777)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// What stands in a file's place by the time it is opened: nothing waits for it, and no link is followed.
    #[test]
    fn links_pipes_and_folders_in_the_place_of_files_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RUSR).unwrap();
        assert!(open(&at("file")).unwrap().is_some());
        for name in ["link", "pipe", "none", "."] {
            assert!(open(&at(name)).unwrap().is_none(), "{name}");
        }
    }
}
