//! Folders of a process's own, for as long as it needs them.

use keyway_host::failure::Failure;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How often a place is made that other processes remove.
const TRIES_MAX: u32 = 1_000;

/// A folder that goes with this. It is named by its process, in a place that this user's other processes share.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes an empty one below `place`, which is made if it is not there; what processes that were killed have left
    /// there is removed.
    ///
    /// # Errors
    /// If the place cannot be made or read, or is not this user's alone: where all may write, as in `/var/tmp`, another
    /// user may have made it, and would have what comes there.
    pub fn make(place: &Path) -> Result<Scratch, Failure> {
        let folder = place.join(std::process::id().to_string());
        let system = |why: io::Error| Failure::system("make", place, &why);
        let mut tries = 0;
        loop {
            tries += 1;
            match make_own(place, &folder) {
                Ok(true) => return Ok(Scratch(folder)),
                Ok(false) => {
                    return Err(Failure::new(format!(
                        "{} is another user's, or others may look into it; remove it, or use another folder",
                        place.display()
                    )));
                }
                // Another process that is done here removes the place, and it is made again.
                Err(why) if why.kind() == io::ErrorKind::NotFound && tries < TRIES_MAX => (),
                Err(why) => return Err(system(why)),
            }
        }
    }

    /// As [`Scratch::make`], in a folder of this name of a place where all may write: where another user has taken the
    /// name, it gets one that none can guess.
    ///
    /// # Errors
    /// As [`Scratch::make`].
    pub fn make_in(shared: &Path, name: &str) -> Result<Scratch, Failure> {
        Scratch::make(&shared.join(name)).or_else(|_| {
            let mut random = [0; 8];
            keyway_drivers::engine().random(&mut random).map_err(Failure::new)?;
            let random = u64::from_be_bytes(random);
            Scratch::make(&shared.join(format!("{name}-{random:016x}")))
        })
    }

    /// The folder, which is empty at first.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Makes `folder` in `place`; false if the place is not this user's alone.
fn make_own(place: &Path, folder: &Path) -> io::Result<bool> {
    make_folder(place)?;
    let found = fs::symlink_metadata(place)?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
        return Ok(false);
    }
    for left in fs::read_dir(place)?.flatten() {
        let process = left.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let has_ended = |process| !Path::new(&format!("/proc/{process}")).exists();
        if process.is_some_and(has_ended) || left.path() == folder {
            // If it cannot be removed, it is in no other's way.
            let _ = fs::remove_dir_all(left.path());
        }
    }
    make_folder(folder)?;
    Ok(true)
}

fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        // Another process may have its own there.
        let _ = self.0.parent().map(fs::remove_dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_place_that_others_made_or_may_look_into_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("place");
        let scratch = Scratch::make(&place).unwrap();
        assert!(scratch.path().is_dir());
        drop(scratch);
        assert!(!place.exists());
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, Permissions::from_mode(0o777)).unwrap();
        assert!(Scratch::make(&place).is_err());
        fs::set_permissions(&place, Permissions::from_mode(0o700)).unwrap();
        drop(Scratch::make(&place).unwrap());
        let elsewhere = folder.path().join("elsewhere");
        let nowhere = folder.path().join("nowhere/place");
        assert!(Scratch::make(&nowhere).is_err());
        fs::create_dir(&elsewhere).unwrap();
        fs::set_permissions(&elsewhere, Permissions::from_mode(0o700)).unwrap();
        symlink(&elsewhere, &place).unwrap();
        assert!(Scratch::make(&place).is_err(), "a link leads anywhere");
        let beside = Scratch::make_in(folder.path(), "place").unwrap();
        assert!(beside.path().starts_with(folder.path()) && !beside.path().starts_with(&place));
    }
}
