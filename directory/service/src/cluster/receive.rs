//! A base, as one that joins takes it: into a folder of its own, checked, and on the disk.

use super::limits::{BASE_FILES_BYTES_MAX, BASE_STORE_BYTES_MAX};
use super::link::Link;
use crate::backup::STORE_FILE;
use keyway_cluster::message::{Answer, BaseFile, Digest, Frame, Request};
use keyway_folder::data::name;
use keyway_host::failure::Failure;
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Octets that are gathered before the system is called.
const BUFFER_BYTES: usize = 1 << 20;
/// Names that a folder has for itself, and that none can send.
const OWN: [&str; 4] = [name::VERSION, name::LOCK, name::CLUSTER, name::RUNNING];

/// Asks for a base and writes it into a folder, on the disk. `progress` hears of octets, and how many there are.
///
/// # Errors
/// If it is refused, damaged, or cannot be written. What is there then is not whole.
pub fn receive(
    link: &mut Link,
    folder: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Failure> {
    let Answer::Base { files } = link.ask(Request::Base {})? else {
        return Err(link.unexpected());
    };
    check(&files)?;
    link.allow_large();
    let total: u64 = files.iter().map(|file| file.bytes).sum();
    let (mut done, mut hash) = (0, Sha256::new());
    // Octets of the last frame that are of the next file.
    let mut octets: Vec<u8> = Vec::new();
    for file in &files {
        let mut open = Open::new(folder, file)?;
        let mut left = file.bytes;
        while left > 0 {
            if octets.is_empty() {
                octets = match link.next_frame()? {
                    Frame::Data(octets) if !octets.is_empty() => octets,
                    _ => return Err(damaged("it ended early")),
                };
                hash.update(&octets);
            }
            let here = usize::try_from(left).unwrap_or(usize::MAX).min(octets.len());
            let rest = octets.split_off(here);
            open.write(&octets)?;
            (left, done) = (left - here as u64, done + here as u64);
            progress(done, total);
            octets = rest;
        }
        open.sync()?;
    }
    let digest = Digest(hash.finalize().into());
    match link.next_frame()? {
        Frame::End { sha256 } if sha256 == digest && octets.is_empty() => Ok(()),
        Frame::End { .. } => Err(damaged("its digest is another one")),
        _ => Err(damaged("more came than its files have")),
    }
}

fn damaged(why: &str) -> Failure {
    Failure::new(format!("the base did not come as it was sent: {why}; try again"))
}

/// That it is a base, and no more than one may be.
fn check(files: &[BaseFile]) -> Result<(), Failure> {
    let wrong = |why: String| Failure::new(format!("the base cannot be taken: {why}"));
    let mut paths = HashSet::new();
    let mut beside = 0_u64;
    for BaseFile { path, bytes, .. } in files {
        let first = path.split('/').next().unwrap_or_default();
        let is_own = OWN.contains(&first) || first.starts_with('.');
        if is_own || (first == name::STORE && path != STORE_FILE) || !paths.insert(path) {
            return Err(wrong(format!("{path:?} is none of its files")));
        }
        match path == STORE_FILE {
            true if *bytes > BASE_STORE_BYTES_MAX => {
                return Err(wrong(format!("its store has {bytes} bytes")));
            }
            true => {}
            false => beside = beside.saturating_add(*bytes),
        }
    }
    match paths.contains(&STORE_FILE.to_owned()) {
        _ if beside > BASE_FILES_BYTES_MAX => {
            Err(wrong(format!("its files beside the store have {beside} bytes")))
        }
        true => Ok(()),
        false => Err(wrong("it has no store".to_owned())),
    }
}

/// A file that is being written.
struct Open {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Open {
    fn new(folder: &Path, file: &BaseFile) -> Result<Open, Failure> {
        let path = folder.join(&file.path);
        let system = |why: io::Error| Failure::system("write", &path, &why);
        let above = path.parent().unwrap_or(folder);
        DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(system)?;
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(file.mode & 0o777);
        let open = options.open(&path).map_err(system)?;
        // Whatever the umask is.
        let mode = Permissions::from_mode(file.mode & 0o777);
        open.set_permissions(mode).map_err(system)?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, open);
        Ok(Open { path, out })
    }

    fn write(&mut self, octets: &[u8]) -> Result<(), Failure> {
        self.out.write_all(octets).map_err(|why| Failure::system("write", &self.path, &why))
    }

    fn sync(self) -> Result<(), Failure> {
        let system = |why: io::Error| Failure::system("write", &self.path, &why);
        let file = self.out.into_inner().map_err(|why| system(why.into_error()))?;
        file.sync_all().map_err(system)?;
        let above = self.path.parent().unwrap_or(Path::new("/"));
        File::open(above).and_then(|above| above.sync_all()).map_err(system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, bytes: u64) -> BaseFile {
        BaseFile { path: path.to_owned(), mode: 0o600, bytes }
    }

    #[test]
    fn a_base_has_a_store_and_nothing_of_the_folders_own() {
        let store = file(STORE_FILE, 1 << 30);
        let good = [file("keyway.toml", 5), file("cryptod/keys/tls-ca.key", 9), store.clone()];
        check(&good).unwrap();
        for bad in [
            vec![file("keyway.toml", 5)],
            vec![store.clone(), store.clone()],
            vec![store.clone(), file("cluster/member.key", 1)],
            vec![store.clone(), file("store/lock.mdb", 1)],
            vec![store.clone(), file("version", 1)],
            vec![store.clone(), file(".joining/x", 1)],
            vec![store.clone(), file("large", BASE_FILES_BYTES_MAX + 1)],
            vec![file(STORE_FILE, u64::MAX)],
        ] {
            assert!(check(&bad).is_err(), "{bad:?}");
        }
    }
}
