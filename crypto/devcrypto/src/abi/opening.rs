//! Opening a file that this library may stand in the place of.

use super::errno::{answer, errno, set_errno};
use super::next::close_own;
use super::pointers::{Path, path_was_read};
use super::undisturbed::guard;
use rustix::io::Errno;
use std::ffi::{CStr, c_int};

/// Opens a file, if need be with this for the one of that path. A program may pass any address for the path, also one
/// that it has no memory at. So the kernel looks first, which costs other files nothing.
///
/// `libcs` is what the program has called; a thread may be cancelled in it.
pub fn open_or(
    wanted: &CStr,
    path: Path,
    flags: c_int,
    libcs: impl FnOnce() -> c_int,
    own: impl FnOnce() -> Result<c_int, Errno>,
) -> c_int {
    let before = errno();
    // It must not make a file there.
    if flags & libc::O_CREAT != 0 {
        let is_ours = path.is_readable() && path.is(wanted);
        set_errno(before);
        return if is_ours { answer(guard(own).and_then(|opened| opened)) } else { libcs() };
    }
    let opened = libcs();
    let was_read = opened >= 0 || path_was_read(errno());
    if !was_read || !path.is(wanted) {
        return opened;
    }
    if opened >= 0 {
        close_own(opened);
    }
    set_errno(before);
    answer(guard(own).and_then(|opened| opened))
}
