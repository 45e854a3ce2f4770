//! The allocator, whose free memory goes back to the system although the process has locked its memory.
//!
//! mimalloc hands free pages back with `madvise(MADV_DONTNEED)`, which the system refuses for memory that is
//! locked (`mlockall`). Linux 5.18 has an advice for such memory, `MADV_DONTNEED_LOCKED`, which mimalloc does not
//! know: so the C library's [`madvise`] is replaced in programs that have this crate. On an older system free
//! memory stays with the process for later use.

use libc::{EINVAL, MADV_DONTNEED, MADV_DONTNEED_LOCKED, SYS_madvise, c_int, c_void, size_t};
use std::io;

/// mimalloc.
pub use mimalloc::MiMalloc;

/// madvise(2), but that pages which are not needed are given back also where they are locked.
///
/// # Safety
/// As the system's call: nothing may rely on what is in pages that are given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, bytes: size_t, advice: c_int) -> c_int {
    let advise = |advice: c_int| {
        // SAFETY: the call takes no memory of ours but that of which the caller says that it may be given back;
        // the system checks its bounds.
        unsafe { libc::syscall(SYS_madvise, address, bytes, advice) as c_int }
    };
    match advise(advice) {
        -1 if advice == MADV_DONTNEED
            && io::Error::last_os_error().raw_os_error() == Some(EINVAL) =>
        {
            advise(MADV_DONTNEED_LOCKED)
        }
        result => result,
    }
}
