//! OSSL_PARAM: lists of named values.

use super::numbers::*;
use super::pointers::{Callback, Opaque};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::{ptr, slice};

/// OSSL_PARAM: a name, and where a value is or is to be put.
#[repr(C)]
pub struct Param {
    pub(super) key: *const c_char,
    pub(super) data_type: c_uint,
    pub(super) data: *mut c_void,
    pub(super) data_size: usize,
    pub(super) return_size: usize,
}

/// An entry of a constant list of names, which tells what may be asked or set.
#[repr(transparent)]
pub struct Settable(Param);

// SAFETY: it has a name that is a constant, and no data.
unsafe impl Sync for Settable {}

impl Settable {
    /// The last of a list.
    pub const END: Settable = Settable(Param::END);

    pub const fn new(name: &'static CStr, data_type: c_uint) -> Settable {
        Settable(Param { key: name.as_ptr(), data_type, ..Param::END })
    }
}

impl Param {
    const END: Param = Param {
        key: ptr::null(),
        data_type: 0,
        data: ptr::null_mut(),
        data_size: 0,
        return_size: PARAM_UNMODIFIED,
    };

    fn bytes(&self) -> Option<&[u8]> {
        self.bytes_of(self.data_size)
    }

    fn bytes_of(&self, length: usize) -> Option<&[u8]> {
        if self.data.is_null() || isize::try_from(length).is_err() {
            return None;
        }
        // SAFETY: libcrypto passes the start and the length of the same bytes.
        Some(unsafe { slice::from_raw_parts(self.data.cast(), length) })
    }

    /// An integer of either sign.
    pub fn integer(&self) -> Option<i64> {
        let bytes = self.bytes()?;
        match (self.data_type, bytes.len()) {
            (PARAM_INTEGER, 4) => Some(i32::from_ne_bytes(bytes.try_into().ok()?).into()),
            (PARAM_UNSIGNED_INTEGER, 4) => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
            (PARAM_INTEGER | PARAM_UNSIGNED_INTEGER, 8) => {
                Some(i64::from_ne_bytes(bytes.try_into().ok()?))
            }
            _ => None,
        }
    }

    /// An unsigned integer of any length, the most significant byte first.
    pub fn big_integer(&self) -> Option<Vec<u8>> {
        let mut bytes = self.bytes().filter(|_| self.data_type == PARAM_UNSIGNED_INTEGER)?.to_vec();
        if cfg!(target_endian = "little") {
            bytes.reverse();
        }
        Some(bytes)
    }

    pub fn text(&self) -> Option<&str> {
        let bytes = self.bytes().filter(|_| self.data_type == PARAM_UTF8_STRING)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).ok()
    }

    pub fn octets(&self) -> Option<&[u8]> {
        self.bytes().filter(|_| self.data_type == PARAM_OCTET_STRING)
    }

    /// Bytes whose length is the caller's to know: the entry says -1, as it may of an initialization vector.
    pub fn octets_of(&self, length: usize) -> Option<&[u8]> {
        let is_one = self.data_type == PARAM_OCTET_STRING && self.data_size == usize::MAX;
        self.bytes_of(length).filter(|_| is_one)
    }

    /// Bytes of room.
    pub fn room(&self) -> usize {
        self.data_size
    }

    /// Puts bytes there if there is room; if there is none at all, only their length is told.
    fn put(&mut self, bytes: &[u8]) -> bool {
        self.return_size = bytes.len();
        if self.data.is_null() {
            return true;
        }
        if self.data_size < bytes.len() {
            return false;
        }
        // SAFETY: libcrypto passes the start and the length of the same room.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.data.cast(), bytes.len()) };
        true
    }

    pub fn put_integer(&mut self, value: i64) -> bool {
        if !matches!(self.data_type, PARAM_INTEGER | PARAM_UNSIGNED_INTEGER) {
            return false;
        }
        match (self.data.is_null(), self.data_size) {
            (false, 4) => i32::try_from(value).is_ok_and(|value| self.put(&value.to_ne_bytes())),
            _ => self.put(&value.to_ne_bytes()),
        }
    }

    pub fn put_big_integer(&mut self, value: &[u8]) -> bool {
        if self.data_type != PARAM_UNSIGNED_INTEGER {
            return false;
        }
        let mut bytes = value.to_vec();
        if !self.data.is_null() && self.data_size > bytes.len() {
            // All of the room is the number.
            let mut padded = vec![0; self.data_size - bytes.len()];
            padded.append(&mut bytes);
            bytes = padded;
        }
        if cfg!(target_endian = "little") {
            bytes.reverse();
        }
        self.put(&bytes)
    }

    pub fn put_text(&mut self, text: &str) -> bool {
        if self.data_type != PARAM_UTF8_STRING {
            return false;
        }
        let with_end = [text.as_bytes(), &[0]].concat();
        let fits = self.put(if self.data_size > text.len() { &with_end } else { text.as_bytes() });
        self.return_size = text.len();
        fits
    }

    /// A constant string, where a pointer to one is wanted.
    pub fn put_pointer(&mut self, text: &'static CStr) -> bool {
        if self.data_type != PARAM_UTF8_PTR {
            return false;
        }
        self.return_size = text.count_bytes();
        // SAFETY: libcrypto passes none, or room for a pointer.
        if let Some(place) = unsafe { self.data.cast::<*const c_char>().as_mut() } {
            *place = text.as_ptr();
        }
        true
    }

    /// Bytes of a context, which lasts longer than the program uses them, where a pointer to them is wanted.
    pub fn put_octet_pointer(&mut self, bytes: &[u8]) -> bool {
        if self.data_type != PARAM_OCTET_PTR {
            return false;
        }
        self.return_size = bytes.len();
        // SAFETY: libcrypto passes none, or room for a pointer.
        if let Some(place) = unsafe { self.data.cast::<*const u8>().as_mut() } {
            *place = if bytes.is_empty() { ptr::null() } else { bytes.as_ptr() };
        }
        true
    }

    /// As [`Param::put_octets`], for an entry whose length 0 says that there is room for all.
    pub fn put_octets_if_any(&mut self, bytes: &[u8]) -> bool {
        if self.data_size == 0 {
            self.data_size = bytes.len();
        }
        self.put_octets(bytes)
    }

    pub fn put_octets(&mut self, bytes: &[u8]) -> bool {
        self.data_type == PARAM_OCTET_STRING && self.put(bytes)
    }
}

/// A list that libcrypto passes, or none.
#[repr(transparent)]
pub struct Params(*mut Param);

impl Params {
    /// The entry of a name.
    pub fn get(&self, name: &CStr) -> Option<&Param> {
        let found = self.find(name)?;
        // SAFETY: `find` gives an entry of the list, which lasts as long as the call.
        unsafe { found.as_ref() }
    }

    /// The entry of a name, to be filled.
    pub fn get_mut(&mut self, name: &CStr) -> Option<&mut Param> {
        let found = self.find(name)?;
        // SAFETY: as in `get`; no other reference to it is there, since this borrows the list.
        unsafe { found.as_mut() }
    }

    /// Puts each number where its name is asked for; whether all fit.
    pub fn put_integers(&mut self, values: &[(&CStr, i64)]) -> bool {
        let mut put = |(name, value): &(&CStr, i64)| {
            self.get_mut(name).is_none_or(|param| param.put_integer(*value))
        };
        values.iter().all(&mut put)
    }

    fn find(&self, name: &CStr) -> Option<*mut Param> {
        let mut next = self.0;
        loop {
            // SAFETY: the list is none, or has an end, which is not gone beyond.
            let param = unsafe { next.as_ref() }?;
            if param.key.is_null() {
                return None;
            }
            if is_named(param.key, name) {
                return Some(next);
            }
            next = next.wrapping_add(1);
        }
    }
}

/// Whether a name that ends with a zero is this one. Most differ in their first byte: ciphers are asked for their
/// lengths for each message.
fn is_named(key: *const c_char, name: &CStr) -> bool {
    name.to_bytes_with_nul().iter().enumerate().all(|(at, byte)| {
        // SAFETY: all bytes before this one are those of `name`, so that the zero was not one of them.
        let of_key = unsafe { key.wrapping_add(at).read() };
        of_key.cast_unsigned() == *byte
    })
}

/// A list of this module's, for a callback of libcrypto's.
#[derive(Default)]
pub struct ParamList {
    entries: Vec<(&'static CStr, c_uint, Vec<u8>)>,
}

impl ParamList {
    pub fn integer(&mut self, name: &'static CStr, value: c_int) -> &mut Self {
        self.add(name, PARAM_INTEGER, value.to_ne_bytes().to_vec())
    }

    /// The most significant byte of the value is the first.
    pub fn big_integer(&mut self, name: &'static CStr, value: &[u8]) -> &mut Self {
        let mut bytes = value.to_vec();
        if cfg!(target_endian = "little") {
            bytes.reverse();
        }
        self.add(name, PARAM_UNSIGNED_INTEGER, bytes)
    }

    pub fn text(&mut self, name: &'static CStr, value: &str) -> &mut Self {
        self.add(name, PARAM_UTF8_STRING, value.as_bytes().to_vec())
    }

    pub fn octets(&mut self, name: &'static CStr, value: &[u8]) -> &mut Self {
        self.add(name, PARAM_OCTET_STRING, value.to_vec())
    }

    fn add(&mut self, name: &'static CStr, data_type: c_uint, value: Vec<u8>) -> &mut Self {
        self.entries.push((name, data_type, value));
        self
    }

    /// Calls with the list; a callback may write into its values, and gives its result. The value of the entry
    /// `back` afterwards is the second result.
    pub fn call(mut self, callback: Callback, argument: Opaque, back: &CStr) -> (c_int, Vec<u8>) {
        let mut params: Vec<Param> = Vec::new();
        for (name, data_type, value) in &mut self.entries {
            let data_size = value.len();
            // Strings end with a zero that does not count.
            value.push(0);
            params.push(Param {
                key: name.as_ptr(),
                data_type: *data_type,
                data: value.as_mut_ptr().cast(),
                data_size,
                return_size: PARAM_UNMODIFIED,
            });
        }
        params.push(Param::END);
        let result = callback.call(params.as_ptr(), argument);
        drop(params);
        let entry = self.entries.into_iter().find(|(name, ..)| *name == back);
        let value = entry.map_or_else(Vec::new, |(_, _, mut value)| {
            value.pop();
            value
        });
        (result, value)
    }
}
