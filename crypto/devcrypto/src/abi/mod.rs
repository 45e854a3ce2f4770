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

pub use next::{Next, close, ioctl, open, open_checked, openat, openat_checked};
pub use numbers::*;
pub use pointers::{Argument, Descriptor, Path};
pub use structures::{AlgorithmName, AuthOp, CopyHashOp, CryptOp, SessionInfo, SessionOp};

use rustix::io::Errno;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a function that a program calls: no panic goes on there.
pub fn guard<T>(body: impl FnOnce() -> T) -> Result<T, Errno> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|_| Errno::IO)
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
    let before = std::io::Error::last_os_error();
    action();
    set_errno(before.raw_os_error().unwrap_or(0));
}

fn set_errno(value: c_int) {
    // SAFETY: it only says where this thread's is.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is this thread's own, for as long as the thread lives.
    unsafe { *place = value };
}
