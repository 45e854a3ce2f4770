//! Files that this process was started with.

use keyway_lock::Unpoisoned;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Mutex;

/// Held from the look at a file until it has an owner.
static TAKING: Mutex<()> = Mutex::new(());

/// Takes a file that the parent of this process left open for it under that number, as systemd
/// does with sockets. It is closed in programs that this process starts.
///
/// A file is taken once: afterwards, its number is refused. So are the files that this process has opened
/// itself, which are close-on-exec; one that came through an `exec` cannot have been.
///
/// # Errors
/// The system's, if no such file is open; `InvalidInput` if it is one of the three standard ones, or is
/// close-on-exec.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let _taking = TAKING.lock().unpoisoned();
    std::fs::symlink_metadata(format!("/proc/self/fd/{number}"))?;
    // SAFETY: it was just seen to be open, and is only asked for its flags.
    let seen = unsafe { BorrowedFd::borrow_raw(number) };
    if fcntl_getfd(seen)?.contains(FdFlags::CLOEXEC) {
        let why = "it was taken before, or this process has opened it itself";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    fcntl_setfd(seen, FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and has no owner yet: this process marks all that it opens close-on-exec, as
    // the standard library does, and this one was not marked. It is now, so that it gets no second owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, IntoRawFd};

    #[test]
    fn a_file_is_taken_once_and_only_if_it_came_through_an_exec() {
        let ours = std::fs::File::open("/proc/self/exe").unwrap();
        let refused = |number| inherited(number).map_err(|why| why.kind()).err();
        assert_eq!(refused(ours.as_raw_fd()), Some(io::ErrorKind::InvalidInput));
        // As a parent leaves it open.
        fcntl_setfd(&ours, FdFlags::empty()).unwrap();
        let number = ours.into_raw_fd();
        let taken = inherited(number).unwrap();
        assert_eq!(taken.as_raw_fd(), number);
        assert!(fcntl_getfd(&taken).unwrap().contains(FdFlags::CLOEXEC));
        assert_eq!(refused(number), Some(io::ErrorKind::InvalidInput));
        assert_eq!(refused(2), Some(io::ErrorKind::InvalidInput));
        assert_eq!(refused(1 << 20), Some(io::ErrorKind::NotFound));
    }
}
