//! The interface between a program and the device, by hand: the functions of libc that lead there, and the numbers and
//! structures of cryptodev-linux (`crypto/cryptodev.h`, on machines of 64 bits).
//!
//! All of this crate's unsafe code is here, but for the names that `exports` gives functions. Types that stand for an
//! argument ([`Path`], [`Descriptor`], [`Argument`]) or a pointer in a structure ([`Bytes`]) cannot be made of an
//! address by other modules: their values are those that a program passes, and are valid as long as its call lasts.
//! What they point to is only ever copied: another thread of the program may change it.

mod next;
mod numbers;
mod pointers;
mod structures;
mod undisturbed;

pub use next::{Next, close, ioctl, open, open_checked, openat, openat_checked};
pub use numbers::*;
pub use pointers::{Argument, Descriptor, Path};
pub use structures::{AlgorithmName, AuthOp, CopyHashOp, CryptOp, SessionInfo, SessionOp};

use rustix::io::Errno;
use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use undisturbed::Undisturbed;

/// Runs the body of a function that a program calls: no panic goes on there, and neither the end of the thread nor a
/// handler of signals comes between ([`undisturbed`]).
pub fn guard<T>(body: impl FnOnce() -> T) -> Result<T, Errno> {
    let before = Undisturbed::begin();
    let done = catch_unwind(AssertUnwindSafe(body)).map_err(|_| Errno::IO);
    before.end();
    done
}

/// Answers a program: a number, or -1 and why in `errno`.
pub fn answer(result: Result<c_int, Errno>) -> c_int {
    match result {
        Ok(number) => number,
        Err(why) => {
            set_errno(why.raw_os_error());
            -1
        }
    }
}

/// Does something that leaves the program's `errno` as it is.
pub fn quietly(action: impl FnOnce()) {
    let before = errno();
    action();
    set_errno(before);
}

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Whether a call that looks for a file has read its path, since it found why there is none that it may have. Others
/// come before.
fn path_was_read(why: c_int) -> bool {
    let after = [libc::ENOENT, libc::EACCES, libc::ENXIO, libc::ENODEV, libc::EBUSY, libc::ENOTDIR];
    after.contains(&why)
}

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

/// Closes what the program has not been told of.
pub fn close_own(descriptor: c_int) {
    close(Descriptor(descriptor));
}

fn set_errno(value: c_int) {
    // SAFETY: it only says where this thread's is.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is this thread's own, for as long as the thread lives.
    unsafe { *place = value };
}
