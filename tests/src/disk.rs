//! File systems of a test's own, in files, mounted by loop.

use crate::available;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A file system in a file, mounted until this is dropped.
pub struct Disk {
    /// Where it is mounted.
    pub at: PathBuf,
    _place: TempDir,
}

impl Disk {
    /// One of this kind (`ext4`) and so many MiB. `None`, which is said, without `mkfs` for it or the rights to mount it.
    ///
    /// # Panics
    /// If it cannot be made or mounted; in CI, where nothing may be skipped, also in place of `None`.
    pub fn new(kind: &str, mib: u64) -> Option<Disk> {
        if !available(&[&format!("mkfs.{kind}"), "mount"]) {
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
            assert!(!ci, "nothing may be skipped in CI, but to mount a file system takes root");
            eprintln!("skipped: to mount a file system takes root");
            return None;
        }
        let place = tempfile::tempdir().expect("a folder");
        let (image, at) = (place.path().join("image"), place.path().join("disk"));
        let made = File::create(&image).and_then(|image| image.set_len(mib << 20));
        made.and_then(|()| fs::create_dir(&at)).expect("a file for it");
        let run = |command: &mut Command| {
            let done = command.output().expect("it starts");
            let why = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{command:?}: {why}");
        };
        run(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image));
        run(Command::new("mount").args(["-o", "loop"]).args([&image, &at]));
        Some(Disk { at, _place: place })
    }

    /// Takes all room that there is, for files of any size, and for their names.
    ///
    /// # Panics
    /// If its folder cannot be opened.
    pub fn fill(&self, round: u32) {
        let folder = self.at.join("fill");
        let _ = fs::create_dir_all(&folder);
        let mut number = 0;
        for bytes in [1 << 20, 64 << 10, 4 << 10, 512, 1] {
            let (text, mut failed) = (vec![7; bytes], 0);
            while failed < 3 {
                number += 1;
                let written = File::create(folder.join(format!("{round}-{number}")))
                    .and_then(|mut file| file.write_all(&text));
                failed += u32::from(written.is_err());
            }
            // The system may find only here, as it writes, that a file has no room.
            self.sync().unwrap_or(());
        }
    }

    /// Removes what [`Disk::fill`] has written.
    ///
    /// # Panics
    /// If it cannot be removed.
    pub fn make_room(&self) {
        fs::remove_dir_all(self.at.join("fill")).expect("removed");
        self.sync().expect("synced");
    }

    fn sync(&self) -> rustix::io::Result<()> {
        rustix::fs::syncfs(File::open(&self.at).expect("its folder"))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}
