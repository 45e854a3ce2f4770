//! Keeping files of clients off a socket, and locks on a byte of a file.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `SOL_SOCKET` and `SO_PASSRIGHTS` on all processors that Keyway runs on.
const SOCKETS: c_int = 1;
const PASS_RIGHTS: c_int = 83;

/// Has the system refuse messages with files to this socket, and to those that are accepted from it. A
/// message that brings any is then an error of who sends it.
///
/// # Errors
/// The system's; Linux before 6.16 knows of no such thing.
pub fn refuse_files(socket: impl AsFd) -> io::Result<()> {
    let (off, bytes) = (0, size_of::<c_int>() as u32);
    let value: *const c_int = &off;
    // SAFETY: the descriptor is open as long as it is borrowed, and the value is as long as is said.
    let set = unsafe {
        setsockopt(socket.as_fd().as_raw_fd(), SOCKETS, PASS_RIGHTS, value.cast(), bytes)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

// SAFETY: as POSIX and the C library declare it.
unsafe extern "C" {
    fn setsockopt(
        socket: c_int,
        level: c_int,
        option: c_int,
        value: *const c_void,
        bytes: u32,
    ) -> c_int;
}

/// Locks a byte of a file for this opening of it, or gives it back: whether that could be. The lock ends with the last
/// process that has the opening (an open file description lock).
///
/// # Errors
/// The system's.
pub fn lock_byte(file: impl AsFd, byte: usize, is_lock: bool) -> io::Result<bool> {
    // SAFETY: zeros are a lock of the whole file for no one.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = if is_lock { libc::F_WRLCK } else { libc::F_UNLCK } as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    (lock.l_start, lock.l_len) = (byte as libc::off_t, 1);
    // SAFETY: the descriptor is open as long as it is borrowed, and the lock is one.
    let done = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    match io::Error::last_os_error() {
        _ if done == 0 => Ok(true),
        why if matches!(why.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        why => Err(why),
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::Socket;

    #[test]
    fn files_are_kept_off_where_the_system_can() {
        let (one, other) = Socket::pair().unwrap();
        if refuse_files(&other).is_err() {
            return;
        }
        assert!(one.send(b"with", &[one.as_fd()]).is_err());
        one.send(b"without", &[]).unwrap();
        assert_eq!(**other.try_receive_plain().unwrap().unwrap(), *b"without");
        other.send(b"back", &[one.as_fd()]).unwrap();
    }
}
