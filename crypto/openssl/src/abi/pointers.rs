//! Pointers that are arguments of functions which libcrypto calls.

use super::guard;
use super::params::Param;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// A value of this module's that libcrypto holds, or none.
#[repr(transparent)]
pub struct Handle<T>(*mut T);

impl<T> Handle<T> {
    pub const NONE: Handle<T> = Handle(ptr::null_mut());

    pub fn new(value: T) -> Handle<T> {
        Handle(Box::into_raw(Box::new(value)))
    }

    pub fn get(&self) -> Option<&T> {
        // SAFETY: it is none, or of `new`, and libcrypto frees it once, when no other call has it.
        unsafe { self.0.as_ref() }
    }

    /// For a value that libcrypto uses on one thread at a time.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: as in `get`; contexts of operations, and keys that are being made, are used by one thread at a time.
        unsafe { self.0.as_mut() }
    }

    /// The value itself, which libcrypto holds no more.
    pub fn take(self) -> Option<Box<T>> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: it is of `new`, and libcrypto frees it once.
        Some(unsafe { Box::from_raw(self.0) })
    }

    /// Its bytes as a reference to an object, which libcrypto hands to the function that loads it.
    pub fn into_reference(self) -> [u8; size_of::<usize>()] {
        self.0.expose_provenance().to_ne_bytes()
    }

    /// The value of a reference, which has to be one of this module's.
    pub fn from_reference(reference: &[u8]) -> Handle<T> {
        let address = reference.try_into().map_or(0, usize::from_ne_bytes);
        Handle(ptr::with_exposed_provenance_mut(address))
    }
}

/// libcrypto holds a value no more.
pub extern "C" fn free<T>(value: Handle<T>) {
    guard((), || drop(value.take()));
}

/// libcrypto wants a copy of a value.
pub extern "C" fn dup<T: Clone>(value: Handle<T>) -> Handle<T> {
    guard(Handle::NONE, || value.get().map_or(Handle::NONE, |it| Handle::new(it.clone())))
}

/// A string that ends with a zero, or none.
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    pub const NONE: Text = Text(ptr::null());

    /// None if it is no UTF-8 either.
    pub fn as_str(&self) -> Option<&str> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: libcrypto passes strings that end with a zero.
        unsafe { CStr::from_ptr(self.0) }.to_str().ok()
    }
}

/// The start of bytes to read.
#[repr(transparent)]
pub struct Input(*const u8);

impl Input {
    pub fn is_none(&self) -> bool {
        self.0.is_null()
    }

    /// The place so many bytes further on.
    pub fn at(&self, offset: usize) -> Input {
        Input(self.0.wrapping_add(offset))
    }

    /// For a library that reads by itself.
    pub fn as_ptr(&self) -> *const u8 {
        self.0
    }

    pub fn bytes(&self, length: usize) -> Option<&[u8]> {
        match (self.0.is_null(), length) {
            (_, 0) => Some(&[]),
            (true, _) => None,
            // SAFETY: libcrypto passes the start and the length of the same bytes.
            (false, _) => Some(unsafe { std::slice::from_raw_parts(self.0, length) }),
        }
    }
}

/// The start of room for bytes.
#[repr(transparent)]
pub struct Output(*mut u8);

impl Output {
    pub fn is_none(&self) -> bool {
        self.0.is_null()
    }

    /// Whether it is the place of this input.
    pub fn is_place_of(&self, input: &Input) -> bool {
        ptr::eq(self.0, input.0)
    }

    /// The place so many bytes further on.
    pub fn at(&self, offset: usize) -> Output {
        Output(self.0.wrapping_add(offset))
    }

    /// For a library that writes by itself.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.0
    }

    /// Fills room of so many bytes with these; whether they fit.
    pub fn put(&mut self, room: usize, bytes: &[u8]) -> bool {
        if self.0.is_null() || room < bytes.len() {
            return false;
        }
        // SAFETY: libcrypto passes the start and the length of the same room, and `bytes` is this module's.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, bytes.len()) };
        true
    }
}

impl Output {
    /// Has so many bytes of room filled; whether that was done.
    pub fn fill(&mut self, bytes: usize, fill: impl FnOnce(&mut [u8]) -> bool) -> bool {
        if self.0.is_null() || isize::try_from(bytes).is_err() {
            return bytes == 0;
        }
        // The room may have held nothing until now.
        // SAFETY: libcrypto passes the start and the length of the same room.
        unsafe { ptr::write_bytes(self.0, 0, bytes) };
        // SAFETY: as above, and no other reference to it is there as long as the call lasts.
        fill(unsafe { std::slice::from_raw_parts_mut(self.0, bytes) })
    }

    /// Takes bytes out, and leaves zeros.
    pub fn replace_with_zeros(&mut self, bytes: usize) -> Option<Vec<u8>> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: libcrypto passes the start and the length of the bytes that this module has handed out.
        let place = unsafe { std::slice::from_raw_parts_mut(self.0, bytes) };
        let taken = place.to_vec();
        place.fill(0);
        Some(taken)
    }
}

/// Room for a flag.
#[repr(transparent)]
pub struct Flag(*mut c_int);

impl Flag {
    pub fn clear(&mut self) {
        // SAFETY: libcrypto passes none, or room for an `int`.
        if let Some(place) = unsafe { self.0.as_mut() } {
            *place = 0;
        }
    }
}

/// Room for a length.
#[repr(transparent)]
pub struct Length(*mut usize);

impl Length {
    pub fn put(&mut self, length: usize) {
        // SAFETY: libcrypto passes none, or room for a `size_t`.
        if let Some(place) = unsafe { self.0.as_mut() } {
            *place = length;
        }
    }
}

/// libcrypto's own, to be handed back.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Opaque(*mut c_void);

/// A function of libcrypto's that takes an object or exported parameters.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Callback(Option<unsafe extern "C" fn(*const Param, *mut c_void) -> c_int>);

impl Callback {
    pub(super) fn call(self, params: *const Param, argument: Opaque) -> c_int {
        let Some(function) = self.0 else { return 0 };
        // SAFETY: libcrypto has passed function and argument together; the list has an end, and lasts.
        unsafe { function(params, argument.0) }
    }
}
