//! The attributes in the stored form of an entry, read in place. A record is walked once when it is decoded,
//! which checks it, and then again for each use; those walks find it checked.

use crate::parts::{RecordError, slice, text, varint};

/// Iterator over the attributes of an entry.
///
/// `Attributes::check` alone makes one that is not empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'t> {
    count: u64,
    rest: &'t [u8],
}

impl<'t> Attributes<'t> {
    /// Checks so many attributes and takes them off the front of `rest`.
    pub(crate) fn check(count: u64, rest: &mut &'t [u8]) -> Result<Attributes<'t>, RecordError> {
        let all = Attributes { count, rest };
        for _ in 0..count {
            text(rest)?;
            let values = varint(rest).ok_or(RecordError::Length)?;
            for _ in 0..values {
                slice(rest).ok_or(RecordError::Length)?;
            }
        }
        Ok(all)
    }

    /// The bytes from its next attribute to the record's end.
    pub(crate) fn bytes(&self) -> usize {
        self.rest.len()
    }
}

impl<'t> Iterator for Attributes<'t> {
    type Item = (&'t str, Values<'t>);

    #[allow(unsafe_code)]
    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let name = slice(&mut self.rest)?;
        // SAFETY: `check`, before it made this iterator, walked over these bytes as this does and found that the
        // slice here is UTF-8. They are borrowed since, and cannot have changed.
        let name = unsafe { str::from_utf8_unchecked(name) };
        let count = varint(&mut self.rest)?;
        let values = Values { count, rest: self.rest };
        for _ in 0..count {
            slice(&mut self.rest)?;
        }
        Some((name, values))
    }
}

/// Iterator over the values of one attribute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'t> {
    count: u64,
    rest: &'t [u8],
}

impl<'t> Iterator for Values<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        self.count = self.count.checked_sub(1)?;
        slice(&mut self.rest)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        (count, Some(count))
    }
}

impl ExactSizeIterator for Values<'_> {}
