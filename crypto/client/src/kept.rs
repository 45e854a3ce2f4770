//! Descriptors in programs that close those that they do not know, and have files of their own under these numbers
//! then: daemons do so when they begin.

use rustix::io::fcntl_dupfd_cloexec;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// A descriptor with the identity of its file: it is used, and closed, only if the file still is that one.
pub struct Kept<F: AsFd> {
    /// There until it is dropped.
    file: Option<F>,
    identity: Identity,
}

/// Sockets and folders have numbers of their own. An event counter has its type only, so that its owner looks at its
/// socket too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    mode: u32,
}

impl Identity {
    fn of(file: impl AsFd) -> io::Result<Identity> {
        let stat = rustix::fs::fstat(file)?;
        Ok(Identity { device: stat.st_dev, inode: stat.st_ino, mode: stat.st_mode })
    }
}

impl<F: AsFd> Kept<F> {
    /// Keeps it, with the identity that it has now.
    ///
    /// # Errors
    /// The system's.
    pub fn new(file: F) -> io::Result<Kept<F>> {
        let identity = Identity::of(&file)?;
        Ok(Kept { file: Some(file), identity })
    }

    /// The file, if it is still there.
    pub fn get(&self) -> Option<&F> {
        let file = self.file.as_ref()?;
        Identity::of(file).is_ok_and(|now| now == self.identity).then_some(file)
    }
}

impl<F: AsFd> Drop for Kept<F> {
    fn drop(&mut self) {
        let is_there = self.get().is_some();
        match self.file.take() {
            Some(file) if is_there => drop(file),
            // The number is that of a file of the program's.
            other => std::mem::forget(other),
        }
    }
}

impl<F: AsFd> fmt::Debug for Kept<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// A descriptor under a number that no standard stream has: where a program has closed those, it would read a socket,
/// and write its messages into a ring.
///
/// # Errors
/// The system's.
pub fn above_standard(file: OwnedFd) -> io::Result<OwnedFd> {
    const FIRST: i32 = 3;
    match file.as_raw_fd() {
        0..FIRST => Ok(fcntl_dupfd_cloexec(&file, FIRST)?),
        _ => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::dup2;
    use std::fs::File;

    #[test]
    fn another_file_of_that_number_is_neither_used_nor_closed() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| OwnedFd::from(File::create(place.path().join(name)).unwrap());
        let (own, theirs) = (file("own"), file("theirs"));
        let kept = Kept::new(own.try_clone().unwrap()).unwrap();
        assert!(kept.get().is_some());
        // As a program that has closed the one and opened the other.
        let mut number = kept.file.as_ref().map(|file| file.try_clone().unwrap()).unwrap();
        dup2(&theirs, &mut number).unwrap();
        let replaced = Kept { file: Some(number), identity: kept.identity };
        assert!(replaced.get().is_none());
        let raw = replaced.file.as_ref().unwrap().as_raw_fd();
        drop(replaced);
        let link = std::fs::read_link(format!("/proc/self/fd/{raw}")).unwrap();
        assert_eq!(link.file_name().unwrap(), "theirs");
    }

    #[test]
    fn no_number_is_that_of_a_standard_stream() {
        let file = OwnedFd::from(File::open("/dev/null").unwrap());
        assert!(above_standard(file).unwrap().as_raw_fd() > 2);
    }
}
