//! Files that this process was started with.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Takes a file that whoever started this process left open for it under that number, as systemd
/// does with sockets. It is closed in programs that this process starts.
///
/// Call it once for a number, before anything else in this process opens a file.
///
/// # Errors
/// The system's, if no such file is open, or if it is one of the three standard ones.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Seen to be open before it is taken to be ours.
    std::fs::symlink_metadata(format!("/proc/self/fd/{number}"))?;
    // SAFETY: it is open, and the caller says that nobody else in this process knows of it.
    let file = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::CLOEXEC)?;
    Ok(file)
}
