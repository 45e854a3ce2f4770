//! Pointers that are arguments of functions which a program calls.

use super::numbers::{ARGUMENTS_BAD, BUFFER_TOO_SMALL};
use super::{Rv, Ulong};
use std::ffi::c_void;
use std::ptr;

/// The start of bytes to read.
#[repr(transparent)]
pub struct Input(*const u8);

impl Input {
    /// As many bytes, which have to be there.
    pub fn bytes(&self, length: Ulong) -> Result<&[u8], Rv> {
        let length = usize::try_from(length).map_err(|_| ARGUMENTS_BAD)?;
        match (self.0.is_null(), length) {
            (_, 0) => Ok(&[]),
            (true, _) => Err(ARGUMENTS_BAD),
            (false, _) if isize::try_from(length).is_err() => Err(ARGUMENTS_BAD),
            // SAFETY: the program passes the start and the length of the same bytes.
            (false, _) => Ok(unsafe { std::slice::from_raw_parts(self.0, length) }),
        }
    }
}

/// Room for a value, or none.
#[repr(transparent)]
pub struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.0.is_null()
    }

    /// Puts a value there.
    pub fn put(&mut self, value: T) -> Result<(), Rv> {
        if self.0.is_null() {
            return Err(ARGUMENTS_BAD);
        }
        // SAFETY: the program passes room for such a value.
        unsafe { self.0.write(value) };
        Ok(())
    }
}

impl Place<Ulong> {
    /// The number that is there.
    pub fn get(&self) -> Result<Ulong, Rv> {
        // SAFETY: the program passes none, or a number.
        unsafe { self.0.as_ref() }.copied().ok_or(ARGUMENTS_BAD)
    }
}

impl Place<super::Version> {
    /// The version that is there, if one is.
    pub fn version(&self) -> Option<super::Version> {
        // SAFETY: the program passes none, or a version.
        unsafe { self.0.as_ref() }.copied()
    }
}

/// The start of room for values, whose length is in a [`Place`].
#[repr(transparent)]
pub struct Array<T>(*mut T);

/// The start of room for bytes.
pub type Output = Array<u8>;

impl<T: Copy> Array<T> {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.0.is_null()
    }

    /// Whether so many values go there: no if the program only asks how many there are, which it is told.
    ///
    /// # Errors
    /// If there is too little room; the program is told how much is needed.
    pub fn takes(&self, count: &mut Place<Ulong>, needed: usize) -> Result<bool, Rv> {
        let room = count.get()?;
        let needed = Ulong::try_from(needed).map_err(|_| ARGUMENTS_BAD)?;
        if self.0.is_null() {
            count.put(needed)?;
            return Ok(false);
        }
        if room < needed {
            count.put(needed)?;
            return Err(BUFFER_TOO_SMALL);
        }
        Ok(true)
    }

    /// Answers with these values, as [`Array::takes`] says.
    pub fn put(&mut self, count: &mut Place<Ulong>, values: &[T]) -> Result<(), Rv> {
        if self.takes(count, values.len())? {
            // SAFETY: the program passes the start of room for `count` values, which are enough.
            unsafe { ptr::copy_nonoverlapping(values.as_ptr(), self.0, values.len()) };
            count.put(values.len() as Ulong)?;
        }
        Ok(())
    }
}

impl Array<u8> {
    /// Fills so many bytes.
    pub fn fill(&mut self, length: Ulong, fill: impl FnOnce(&mut [u8])) -> Result<(), Rv> {
        let length = usize::try_from(length).map_err(|_| ARGUMENTS_BAD)?;
        if length == 0 {
            return Ok(());
        }
        if self.0.is_null() || isize::try_from(length).is_err() {
            return Err(ARGUMENTS_BAD);
        }
        // SAFETY: the program passes the start and the length of the same room.
        unsafe { ptr::write_bytes(self.0, 0, length) };
        // SAFETY: as above, and every byte has a value.
        fill(unsafe { std::slice::from_raw_parts_mut(self.0, length) });
        Ok(())
    }
}

/// A pointer of the program's that this module does nothing with.
#[repr(transparent)]
pub struct Opaque(*mut c_void);

impl Opaque {
    pub fn is_none(&self) -> bool {
        self.0.is_null()
    }
}
