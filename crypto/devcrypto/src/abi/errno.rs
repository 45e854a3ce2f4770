//! A thread's `errno`, and answers of functions that set it.

use rustix::io::Errno;
use std::ffi::c_int;

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

/// Why the last call of libc's failed, if it did.
pub fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Sets what a program finds there.
pub fn set_errno(value: c_int) {
    // SAFETY: it only says where this thread's is.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is this thread's own, for as long as the thread lives.
    unsafe { *place = value };
}
