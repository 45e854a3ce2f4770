//! The functions that a program would call if this library were not there: libc's, or those of another library that
//! was loaded before it.

use super::errno::answer;
use super::pointers::{Argument, Descriptor, Path};
use rustix::io::Errno;
use std::ffi::{CStr, c_int, c_uint, c_ulong, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function that is looked up when it is first called.
pub struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

// A thread may be cancelled in each of them, which unwinds it.
type Open = unsafe extern "C-unwind" fn(Path, c_int, ...) -> c_int;
type OpenChecked = unsafe extern "C-unwind" fn(Path, c_int) -> c_int;
type OpenAt = unsafe extern "C-unwind" fn(c_int, Path, c_int, ...) -> c_int;
type OpenAtChecked = unsafe extern "C-unwind" fn(c_int, Path, c_int) -> c_int;
type Ioctl = unsafe extern "C-unwind" fn(Descriptor, c_ulong, ...) -> c_int;
type Close = unsafe extern "C-unwind" fn(Descriptor) -> c_int;

impl Next {
    /// The function of that name.
    pub const fn of(name: &'static CStr) -> Next {
        Next { name, found: AtomicPtr::new(ptr::null_mut()) }
    }

    fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: it looks a name up behind this library.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// There is no such function: no program can have meant it.
fn missing() -> c_int {
    answer(Err(Errno::NOSYS))
}

/// `open` or `open64`, which `next` is.
pub fn open(next: &Next, path: Path, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: it is null or the address of such a function.
    match unsafe { transmute::<*mut c_void, Option<Open>>(next.get()) } {
        // SAFETY: the arguments are those of a program that has called this function.
        Some(open) => unsafe { open(path, flags, mode) },
        None => missing(),
    }
}

/// `__open_2` or `__open64_2`, which a compiler calls for `open` without a mode (`_FORTIFY_SOURCE`).
pub fn open_checked(next: &Next, path: Path, flags: c_int) -> c_int {
    // SAFETY: it is null or the address of such a function.
    match unsafe { transmute::<*mut c_void, Option<OpenChecked>>(next.get()) } {
        // SAFETY: the arguments are those of a program that has called this function.
        Some(open) => unsafe { open(path, flags) },
        None => missing(),
    }
}

/// `openat` or `openat64`, which `next` is.
pub fn openat(next: &Next, folder: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: it is null or the address of such a function.
    match unsafe { transmute::<*mut c_void, Option<OpenAt>>(next.get()) } {
        // SAFETY: the arguments are those of a program that has called this function.
        Some(openat) => unsafe { openat(folder, path, flags, mode) },
        None => missing(),
    }
}

/// `__openat_2` or `__openat64_2`, as [`open_checked`].
pub fn openat_checked(next: &Next, folder: c_int, path: Path, flags: c_int) -> c_int {
    // SAFETY: it is null or the address of such a function.
    match unsafe { transmute::<*mut c_void, Option<OpenAtChecked>>(next.get()) } {
        // SAFETY: the arguments are those of a program that has called this function.
        Some(openat) => unsafe { openat(folder, path, flags) },
        None => missing(),
    }
}

/// `ioctl`.
pub fn ioctl(descriptor: Descriptor, request: c_ulong, argument: Argument) -> c_int {
    static NEXT: Next = Next::of(c"ioctl");
    // SAFETY: it is null or the address of such a function.
    match unsafe { transmute::<*mut c_void, Option<Ioctl>>(NEXT.get()) } {
        // SAFETY: the arguments are those of a program that has called this function.
        Some(ioctl) => unsafe { ioctl(descriptor, request, argument) },
        None => missing(),
    }
}

/// `close`.
pub fn close(descriptor: Descriptor) -> c_int {
    static NEXT: Next = Next::of(c"close");
    // SAFETY: it is null or the address of such a function.
    match unsafe { transmute::<*mut c_void, Option<Close>>(NEXT.get()) } {
        // SAFETY: the argument is that of a program that has called this function.
        Some(close) => unsafe { close(descriptor) },
        None => missing(),
    }
}

/// Closes what the program has not been told of.
pub fn close_own(descriptor: c_int) {
    close(Descriptor(descriptor));
}
