//! Files that are written, and errors of the decoder as failures of a process.

use crate::Error;
use keyway_host::failure::{Failure, plain};
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Creates a file that only its owner reads: requests to a directory are their users' own. One that is
/// among these captures is left as it is: to open it would empty what is about to be read.
///
/// # Errors
/// If it is one of the captures, or the system refuses.
pub fn create(file: &Path, captures: &[PathBuf]) -> Result<fs::File, Failure> {
    let same = |one: &fs::Metadata, other: &fs::Metadata| {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    if let Ok(there) = fs::metadata(file) {
        let read = |capture: &PathBuf| fs::metadata(capture).is_ok_and(|read| same(&read, &there));
        if let Some(capture) = captures.iter().find(|capture| there.is_file() && read(capture)) {
            return Err(Failure::usage(format!(
                "{} is the capture {} that is read: write to another file",
                file.display(),
                capture.display()
            )));
        }
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file).map_err(|why| Failure::system("write", file, &why))
}

/// An error of the decoder as a failure; nothing where the reader of the output has left.
#[must_use]
pub fn failure(why: Error) -> Option<Failure> {
    match why {
        Error::Write(why) if why.kind() == ErrorKind::BrokenPipe => None,
        Error::Write(why) => Some(Failure::new(format!("cannot write: {}", plain(&why)))),
        Error::Read(why) => Some(Failure::new(format!("cannot read it: {}", plain(&why)))),
        why => Some(Failure::new(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_capture_is_not_written_over_whatever_it_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let capture = folder.path().join("a.pcap");
        fs::write(&capture, "packets").unwrap();
        let other = folder.path().join("b.pcap");
        fs::hard_link(&capture, &other).unwrap();
        let refused = create(&other, std::slice::from_ref(&capture)).unwrap_err();
        assert!(refused.to_string().contains("is the capture"), "{refused}");
        assert_eq!(fs::read(&capture).unwrap(), b"packets");
        let created = create(&folder.path().join("c.pcap"), &[capture]).unwrap();
        assert_eq!(created.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
