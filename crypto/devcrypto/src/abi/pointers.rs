//! Arguments of functions that a program calls, and pointers in structures that it passes.

use super::errno::errno;
use rustix::io::Errno;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use zeroize::Zeroizing;

/// The path of a file to open.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Path(pub(super) *const c_char);

impl Path {
    /// Whether it is that path, byte for byte; only of one that the kernel has read.
    pub(super) fn is(self, wanted: &CStr) -> bool {
        // SAFETY: the kernel has read it, up to a zero byte.
        unsafe { CStr::from_ptr(self.0) == wanted }
    }

    /// Whether the kernel can read it: it does so before it looks for a file.
    pub(super) fn is_readable(self) -> bool {
        // SAFETY: the kernel looks whether there is such a path.
        let status = unsafe { libc::access(self.0, libc::F_OK) };
        status == 0 || path_was_read(errno())
    }
}

/// Whether a call that looks for a file has read its path, since it found why there is none that it may have. Others
/// come before.
pub(super) fn path_was_read(why: c_int) -> bool {
    let after = [libc::ENOENT, libc::EACCES, libc::ENXIO, libc::ENODEV, libc::EBUSY, libc::ENOTDIR];
    after.contains(&why)
}

/// A number that the program takes for a descriptor's.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Descriptor(pub(super) c_int);

impl Descriptor {
    /// Its file: device and number there, if it is a pipe's.
    pub fn pipe(self) -> Option<(u64, u64)> {
        let mut found = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: there is room for what it writes, and any number may be asked for.
        let status = unsafe { libc::fstat(self.0, found.as_mut_ptr()) };
        if status != 0 {
            return None;
        }
        // SAFETY: it has written all of it, as it says.
        let found = unsafe { found.assume_init() };
        (found.st_mode & libc::S_IFMT == libc::S_IFIFO).then_some((found.st_dev, found.st_ino))
    }

    /// Another descriptor of its file, for the program.
    pub fn duplicate(self) -> Result<c_int, Errno> {
        // SAFETY: any number may be asked for, and the program closes what it gets.
        let copy = unsafe { libc::dup(self.0) };
        if copy < 0 { Err(Errno::BADF) } else { Ok(copy) }
    }
}

/// Types of which any bytes are a value.
///
/// # Safety
/// Any bytes are a value of it.
pub unsafe trait Raw: Copy {}

/// The last argument of `ioctl`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Argument(pub(super) *mut c_void);

impl Argument {
    /// The structure that it points to.
    pub fn read<T: Raw>(self) -> Result<T, Errno> {
        let mut value = MaybeUninit::<T>::uninit();
        copy(self.0.cast(), value.as_mut_ptr().cast(), size_of::<T>())?;
        // SAFETY: all of it has been written, and any bytes are a value.
        Ok(unsafe { value.assume_init() })
    }

    /// Answers with a structure.
    pub fn write<T: Raw>(self, value: T) -> Result<(), Errno> {
        copy((&raw const value).cast(), self.0.cast(), size_of::<T>())
    }
}

/// Copies between the program's memory and this library's own, which the caller vouches for, within one process. The
/// kernel does it: where the program has no such memory, it says so and sends no signal.
fn copy(from: *const u8, to: *mut u8, bytes: usize) -> Result<(), Errno> {
    if from.is_null() || to.is_null() {
        return Err(Errno::FAULT);
    }
    let there = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: bytes };
    let here = libc::iovec { iov_base: to.cast(), iov_len: bytes };
    // SAFETY: it only asks for a number.
    let process = unsafe { libc::getpid() };
    // SAFETY: both are in this process. It writes to what the program has passed as room, or this library's own.
    let copied =
        unsafe { libc::process_vm_readv(process, &raw const here, 1, &raw const there, 1, 0) };
    match usize::try_from(copied) {
        Ok(copied) if copied == bytes => Ok(()),
        // As far as there is memory.
        Ok(_) => Err(Errno::FAULT),
        Err(_) if !matches!(errno(), libc::ENOSYS | libc::EPERM) => Err(Errno::FAULT),
        // A filter of system calls does not let it.
        Err(_) => {
            // SAFETY: the program passes the start and the length of the same bytes, and this library's are as long.
            unsafe { ptr::copy(from, to, bytes) };
            Ok(())
        }
    }
}

/// The start of bytes, or of room for bytes.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Bytes(*mut u8);

impl Bytes {
    /// Whether there are none.
    pub fn is_none(self) -> bool {
        self.0.is_null()
    }

    /// The start of those behind so many.
    pub fn behind(self, length: usize) -> Bytes {
        Bytes(self.0.wrapping_add(length))
    }

    /// A copy of so many.
    pub fn read(self, length: usize) -> Result<Zeroizing<Vec<u8>>, Errno> {
        let mut bytes = Zeroizing::new(Vec::new());
        if length == 0 {
            return Ok(bytes);
        }
        bytes.try_reserve_exact(length).map_err(|_| Errno::NOMEM)?;
        bytes.resize(length, 0);
        copy(self.0, bytes.as_mut_ptr(), length)?;
        Ok(bytes)
    }

    /// Writes these.
    pub fn write(self, bytes: &[u8]) -> Result<(), Errno> {
        if bytes.is_empty() {
            return Ok(());
        }
        copy(bytes.as_ptr(), self.0, bytes.len())
    }
}
