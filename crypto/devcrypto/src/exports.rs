//! The functions of libc that this library stands in front of.
//!
//! C declares `open`, `openat` and `ioctl` with a variable number of arguments. In the calling conventions of Linux on
//! x86-64 and AArch64, an integer or pointer in the place of the first variable argument is where the next fixed one
//! would be, so that a function with that many fixed ones reads it. Where a program passes none, it reads what happens
//! to be there, and hands it on to libc, which does not look at it.

use crate::abi::{self, Argument, Descriptor, Next, Path};
use crate::{device, requests};
use std::ffi::{c_int, c_uint, c_ulong};

/// Opens the device, or another file with libc's function.
fn opened(path: Path, flags: c_int, libcs: impl FnOnce() -> c_int) -> c_int {
    abi::open_or(device::PATH, path, flags, libcs, || device::open(flags))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn open(path: Path, flags: c_int, mode: c_uint) -> c_int {
    static NEXT: Next = Next::of(c"open");
    opened(path, flags, || abi::open(&NEXT, path, flags, mode))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn open64(path: Path, flags: c_int, mode: c_uint) -> c_int {
    static NEXT: Next = Next::of(c"open64");
    opened(path, flags, || abi::open(&NEXT, path, flags, mode))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn __open_2(path: Path, flags: c_int) -> c_int {
    static NEXT: Next = Next::of(c"__open_2");
    opened(path, flags, || abi::open_checked(&NEXT, path, flags))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn __open64_2(path: Path, flags: c_int) -> c_int {
    static NEXT: Next = Next::of(c"__open64_2");
    opened(path, flags, || abi::open_checked(&NEXT, path, flags))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn openat(folder: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int {
    static NEXT: Next = Next::of(c"openat");
    opened(path, flags, || abi::openat(&NEXT, folder, path, flags, mode))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn openat64(folder: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int {
    static NEXT: Next = Next::of(c"openat64");
    opened(path, flags, || abi::openat(&NEXT, folder, path, flags, mode))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn __openat_2(folder: c_int, path: Path, flags: c_int) -> c_int {
    static NEXT: Next = Next::of(c"__openat_2");
    opened(path, flags, || abi::openat_checked(&NEXT, folder, path, flags))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn __openat64_2(folder: c_int, path: Path, flags: c_int) -> c_int {
    static NEXT: Next = Next::of(c"__openat64_2");
    opened(path, flags, || abi::openat_checked(&NEXT, folder, path, flags))
}

#[unsafe(no_mangle)]
extern "C-unwind" fn ioctl(descriptor: Descriptor, request: c_ulong, argument: Argument) -> c_int {
    // Some programs keep a request as an `int`, which has become a long number with all bits above set.
    let number = request as u32;
    let own = requests::has_letter(number)
        .then(|| abi::guard(|| requests::answer(descriptor, number, argument)));
    match own {
        Some(Ok(Some(result))) => abi::answer(result),
        Some(Err(panicked)) => abi::answer(Err(panicked)),
        None | Some(Ok(None)) => abi::ioctl(descriptor, request, argument),
    }
}

#[unsafe(no_mangle)]
extern "C-unwind" fn close(descriptor: Descriptor) -> c_int {
    // Other files are closed as they were.
    let pipe = device::are_there().then(|| descriptor.pipe()).flatten();
    let own = pipe.filter(|pipe| abi::guard(|| device::is_one(*pipe)).unwrap_or(false));
    let closed = abi::close(descriptor);
    if let Some(identity) = own {
        abi::quietly(|| abi::guard(|| device::release(identity)).unwrap_or_default());
    }
    closed
}
