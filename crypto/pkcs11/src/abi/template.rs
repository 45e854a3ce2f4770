//! CK_ATTRIBUTE: attributes that a program looks for, or asks for.

use super::numbers::{ARGUMENTS_BAD, BUFFER_TOO_SMALL, OK, UNAVAILABLE};
use super::{Rv, Ulong};
use std::ffi::c_void;
use std::ptr;

/// CK_ATTRIBUTE.
#[repr(C)]
pub(super) struct RawAttribute {
    pub kind: Ulong,
    pub value: *mut c_void,
    pub value_len: Ulong,
}

/// The start of attributes, or none.
#[repr(transparent)]
pub struct Template(*mut RawAttribute);

impl Template {
    /// The attributes, by their types and values.
    pub fn read(&self, count: Ulong) -> Result<Vec<(Ulong, Vec<u8>)>, Rv> {
        let mut read = Vec::new();
        for at in 0..self.length(count)? {
            // SAFETY: the program passes so many attributes.
            let raw = unsafe { &*self.0.wrapping_add(at) };
            let length = usize::try_from(raw.value_len).map_err(|_| ARGUMENTS_BAD)?;
            let value = match (raw.value.is_null(), length) {
                (_, 0) => Vec::new(),
                (true, _) => return Err(ARGUMENTS_BAD),
                (false, _) if isize::try_from(length).is_err() => return Err(ARGUMENTS_BAD),
                (false, _) => {
                    // SAFETY: the program passes the start and the length of the same bytes.
                    unsafe { std::slice::from_raw_parts(raw.value.cast::<u8>(), length) }.to_vec()
                }
            };
            read.push((raw.kind, value));
        }
        Ok(read)
    }

    /// Answers each attribute with its value, or says why there is none. All of them are answered (PKCS #11 § 5.7.5).
    pub fn answer<'v>(
        &mut self,
        count: Ulong,
        value_of: impl Fn(Ulong) -> Result<&'v [u8], Rv>,
    ) -> Result<(), Rv> {
        let mut all = OK;
        for at in 0..self.length(count)? {
            // SAFETY: the program passes so many attributes, for this thread to write to.
            let raw = unsafe { &mut *self.0.wrapping_add(at) };
            if let Err(why) = value_of(raw.kind).and_then(|value| raw.put(value)) {
                raw.value_len = UNAVAILABLE;
                all = why;
            }
        }
        if all == OK { Ok(()) } else { Err(all) }
    }

    fn length(&self, count: Ulong) -> Result<usize, Rv> {
        if self.0.is_null() && count != 0 {
            return Err(ARGUMENTS_BAD);
        }
        let most = isize::MAX as usize / size_of::<RawAttribute>();
        usize::try_from(count).ok().filter(|count| *count <= most).ok_or(ARGUMENTS_BAD)
    }
}

impl RawAttribute {
    fn put(&mut self, value: &[u8]) -> Result<(), Rv> {
        let length = value.len() as Ulong;
        if !self.value.is_null() {
            if self.value_len < length {
                return Err(BUFFER_TOO_SMALL);
            }
            // SAFETY: the program passes the start and the length of the same room, which is enough.
            unsafe { ptr::copy_nonoverlapping(value.as_ptr(), self.value.cast(), value.len()) };
        }
        self.value_len = length;
        Ok(())
    }
}
