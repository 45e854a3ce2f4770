//! Arguments of functions that a program calls, and pointers in structures that it passes.

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
    /// Whether it is that path, byte for byte.
    pub fn is(&self, wanted: &CStr) -> bool {
        // SAFETY: the program passes none, or text that ends with a zero byte.
        !self.0.is_null() && unsafe { CStr::from_ptr(self.0) } == wanted
    }
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
        if self.0.is_null() {
            return Err(Errno::FAULT);
        }
        // SAFETY: the program passes the address of what belongs to the request, and any bytes are a value.
        Ok(unsafe { self.0.cast::<T>().read_unaligned() })
    }

    /// Answers with a structure.
    pub fn write<T: Raw>(self, value: T) -> Result<(), Errno> {
        if self.0.is_null() {
            return Err(Errno::FAULT);
        }
        // SAFETY: the program passes room for what belongs to the request.
        unsafe { self.0.cast::<T>().write_unaligned(value) };
        Ok(())
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
        let mut copy = Zeroizing::new(Vec::new());
        if length == 0 {
            return Ok(copy);
        }
        if self.0.is_null() {
            return Err(Errno::FAULT);
        }
        copy.try_reserve_exact(length).map_err(|_| Errno::NOMEM)?;
        copy.resize(length, 0);
        // SAFETY: the program passes the start and the length of the same bytes, and the copy is as long.
        unsafe { ptr::copy(self.0, copy.as_mut_ptr(), length) };
        Ok(copy)
    }

    /// Writes these.
    pub fn write(self, bytes: &[u8]) -> Result<(), Errno> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.0.is_null() {
            return Err(Errno::FAULT);
        }
        // SAFETY: the program passes the start of room for as many bytes as the request puts out.
        unsafe { ptr::copy(bytes.as_ptr(), self.0, bytes.len()) };
        Ok(())
    }
}
