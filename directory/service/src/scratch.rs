//! Folders of a process's own, for as long as it needs them.

use keyway_host::failure::Failure;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A folder that goes with this. It is named by its process, in a place that others may share.
pub struct Scratch(PathBuf);

impl Scratch {
    /// The name of one below `place`, which is made if it is not there; what processes that were killed have left
    /// there is removed.
    ///
    /// # Errors
    /// If the place cannot be made or read.
    pub fn make(place: &Path) -> Result<Scratch, Failure> {
        let scratch = Scratch(place.join(std::process::id().to_string()));
        let made = match DirBuilder::new().mode(0o700).create(place) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
        let left = made.and_then(|()| fs::read_dir(place));
        for left in left.map_err(|why| Failure::system("make", place, &why))?.flatten() {
            let process = left.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            let has_ended = |process| !Path::new(&format!("/proc/{process}")).exists();
            if process.is_some_and(has_ended) || left.path() == scratch.0 {
                // If it cannot be removed, it is in no other's way.
                let _ = fs::remove_dir_all(left.path());
            }
        }
        Ok(scratch)
    }

    /// The folder, which may not be there yet.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        // Another process may have its own there.
        let _ = self.0.parent().map(fs::remove_dir);
    }
}
