//! The stored form of an entry: compact, readable in place, and checked.
//!
//! `checksum (4 B LE) | varint parent | text rdn | varint attributes | attribute…`, where an
//! attribute is `text name | varint values | value…` and texts and values are a varint length and
//! their bytes. Varints are LEB128. The checksum is the CRC-32 of the entry's identifier
//! (8 B BE) and all that follows it: it notices spoiled bytes and a page in another's place.
//! LMDB itself checks nothing it reads.
//!
//! A part after the attributes is there only if some have so many values that these lie in a table of
//! their own (`large`): `varint such attributes | (text name | varint slot | varint values | varint
//! bytes of all values)…`.

use crate::attributes::{Attributes, Values};
use crate::large::{Large, LargeEdit};
use crate::limits::RECORD_BYTES_MAX;
use crate::parts::{RecordError, put_slice, put_varint, text, varint};
use crate::{Entry, EntryId, Error};

const CHECKSUM_BYTES: usize = 4;

/// An entry as it lies in the store, borrowed from a read transaction.
#[derive(Clone, Copy, Debug)]
pub struct EntryRef<'t> {
    parent: EntryId,
    rdn: &'t str,
    attributes: Attributes<'t>,
    large: LargeAttributes<'t>,
}

impl<'t> EntryRef<'t> {
    /// Checks and reads the stored form of the entry `id`.
    ///
    /// The whole of it is walked, so that reading its parts cannot fail afterwards.
    pub fn decode(id: EntryId, bytes: &'t [u8]) -> Result<EntryRef<'t>, RecordError> {
        let (sum, body) = bytes.split_at_checked(CHECKSUM_BYTES).ok_or(RecordError::Length)?;
        if sum != checksum(id, body) {
            return Err(RecordError::Checksum);
        }
        read_body(body)
    }

    /// The entry above; [`EntryId::ROOT`] for a topmost one.
    pub fn parent(&self) -> EntryId {
        self.parent
    }

    /// The relative name as text.
    pub fn rdn(&self) -> &'t str {
        self.rdn
    }

    /// About how many bytes its attributes take, large ones not counted.
    pub fn attributes_bytes(&self) -> usize {
        self.attributes.bytes()
    }

    /// Names and values of all attributes but the large ones, in the order they were written.
    pub fn attributes(&self) -> Attributes<'t> {
        self.attributes
    }

    /// The attributes whose values lie in a table of their own; `View::large_values` reads them.
    pub fn large(&self) -> LargeAttributes<'t> {
        self.large
    }

    /// The values of the attribute with exactly this name; none if it is not there or large.
    pub fn values(&self, name: &str) -> Values<'t> {
        self.attributes().find(|(found, _)| *found == name).map(|(_, v)| v).unwrap_or_default()
    }

    /// Whether there is an attribute with exactly this name, large or not.
    pub fn has(&self, name: &str) -> bool {
        self.attributes().any(|(found, _)| found == name)
            || self.large().any(|large| large.name == name)
    }

    /// A copy that can be changed and written again. Its large attributes stay as they are.
    pub fn to_entry(&self) -> Entry {
        Entry {
            rdn: self.rdn.to_owned(),
            attributes: self
                .attributes()
                .map(|(name, values)| (name.to_owned(), values.map(<[u8]>::to_vec).collect()))
                .collect(),
            large: self.large().map(|large| LargeEdit::none(large.name)).collect(),
        }
    }
}

/// Checks and reads the stored form without its checksum.
pub(crate) fn read_body(body: &[u8]) -> Result<EntryRef<'_>, RecordError> {
    let mut rest = body;
    let parent = EntryId(varint(&mut rest).ok_or(RecordError::Length)?);
    let rdn = text(&mut rest)?;
    let count = varint(&mut rest).ok_or(RecordError::Length)?;
    let attributes = Attributes::check(count, &mut rest)?;
    let large = match rest.is_empty() {
        true => LargeAttributes::default(),
        false => LargeAttributes::decode(rest)?,
    };
    Ok(EntryRef { parent, rdn, attributes, large })
}

/// The stored form without its checksum; empty for bytes that are too short.
pub(crate) fn body(record: &[u8]) -> &[u8] {
    record.get(CHECKSUM_BYTES..).unwrap_or_default()
}

/// Iterator over the large attributes of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct LargeAttributes<'t> {
    count: u64,
    rest: &'t [u8],
}

impl<'t> LargeAttributes<'t> {
    fn decode(mut rest: &'t [u8]) -> Result<LargeAttributes<'t>, RecordError> {
        let count = varint(&mut rest).filter(|count| *count > 0).ok_or(RecordError::Length)?;
        let all = LargeAttributes { count, rest };
        for _ in 0..count {
            large(&mut rest)?;
        }
        match rest.is_empty() {
            true => Ok(all),
            false => Err(RecordError::Length),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'t> Iterator for LargeAttributes<'t> {
    type Item = Large<'t>;

    #[inline]
    fn next(&mut self) -> Option<Large<'t>> {
        self.count = self.count.checked_sub(1)?;
        large(&mut self.rest).ok()
    }
}

fn large<'t>(rest: &mut &'t [u8]) -> Result<Large<'t>, RecordError> {
    let name = text(rest)?;
    let mut number = || varint(rest).ok_or(RecordError::Length);
    let slot = u32::try_from(number()?).map_err(|_| RecordError::Length)?;
    Ok(Large { name, slot, count: number()?, bytes: number()? })
}

impl Entry {
    /// The stored form of this entry as `id`, under `parent`, with what stands for its large
    /// attributes.
    ///
    /// Errors: [`Error::TooLarge`].
    pub fn encode(
        &self,
        id: EntryId,
        parent: EntryId,
        large: &[Large<'_>],
    ) -> Result<Vec<u8>, Error> {
        let mut out = self.begin(parent)?;
        finish(&mut out, id, large);
        Ok(out)
    }

    /// All of it but checksum and large attributes, for which there is room yet.
    pub(crate) fn begin(&self, parent: EntryId) -> Result<Vec<u8>, Error> {
        let mut out = vec![0; CHECKSUM_BYTES];
        put_varint(&mut out, parent.0);
        put_slice(&mut out, self.rdn.as_bytes());
        put_varint(&mut out, self.attributes.len() as u64);
        for (name, values) in &self.attributes {
            put_slice(&mut out, name.as_bytes());
            put_varint(&mut out, values.len() as u64);
            for value in values {
                put_slice(&mut out, value);
            }
        }
        let large = self.large.iter().map(|large| large.name.len() + LARGE_BYTES_MAX);
        let bytes = out.len() + large.sum::<usize>();
        match bytes > RECORD_BYTES_MAX {
            true => Err(Error::TooLarge { bytes, bytes_max: RECORD_BYTES_MAX }),
            false => Ok(out),
        }
    }
}

/// The bytes of a large attribute beside its name: four numbers, and how many there are.
const LARGE_BYTES_MAX: usize = 5 * 10;

/// Ends a record that was begun.
pub(crate) fn finish(record: &mut Vec<u8>, id: EntryId, large: &[Large<'_>]) {
    if !large.is_empty() {
        put_varint(record, large.len() as u64);
    }
    for one in large {
        put_slice(record, one.name.as_bytes());
        put_varint(record, one.slot.into());
        put_varint(record, one.count);
        put_varint(record, one.bytes);
    }
    let (sum, body) = record.split_at_mut(CHECKSUM_BYTES);
    sum.copy_from_slice(&checksum(id, body));
}

fn checksum(id: EntryId, body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&id.to_bytes());
    sum.update(body);
    sum.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let value = prop::collection::vec(any::<u8>(), 0..40);
        let attribute = ("[a-zA-Z;-]{0,12}", prop::collection::vec(value, 0..4));
        ("\\PC{0,20}", prop::collection::vec(attribute, 0..6)).prop_map(|(rdn, attributes)| Entry {
            rdn,
            attributes,
            large: Vec::new(),
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(entry in entry(), id in any::<u64>(), parent in any::<u64>()) {
            let bytes = entry.encode(EntryId(id), EntryId(parent), &[]).unwrap();
            let found = EntryRef::decode(EntryId(id), &bytes).unwrap();
            prop_assert_eq!(found.parent(), EntryId(parent));
            prop_assert_eq!(found.to_entry(), entry.clone());
            for (name, _) in &entry.attributes {
                let first = entry.attributes.iter().find(|(n, _)| n == name).unwrap();
                let values: Vec<_> = found.values(name).map(<[u8]>::to_vec).collect();
                prop_assert!(found.has(name));
                prop_assert_eq!(found.values(name).len(), values.len());
                prop_assert_eq!(&values, &first.1);
            }
            prop_assert!(!found.has("not there") && found.values("not there").next().is_none());
        }

        #[test]
        fn spoiled_bytes_and_wrong_places_are_noticed(
            entry in entry(), at in any::<prop::sample::Index>(), bit in 0..8u8,
        ) {
            let id = EntryId(7);
            let mut bytes = entry.encode(id, EntryId::ROOT, &[]).unwrap();
            let elsewhere = EntryRef::decode(EntryId(8), &bytes).err();
            prop_assert_eq!(elsewhere, Some(RecordError::Checksum));
            let at = at.index(bytes.len());
            prop_assert!(EntryRef::decode(id, &bytes[..at]).is_err());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(EntryRef::decode(id, &bytes).err(), Some(RecordError::Checksum));
        }

        #[test]
        fn large_attributes_are_read_as_written(
            entry in entry(), numbers in prop::collection::vec(any::<(u32, u64, u64)>(), 1..4),
        ) {
            let large: Vec<_> = numbers
                .iter()
                .map(|&(slot, count, bytes)| Large { name: "member", slot, count, bytes })
                .collect();
            let bytes = entry.encode(EntryId(1), EntryId::ROOT, &large).unwrap();
            let found = EntryRef::decode(EntryId(1), &bytes).unwrap();
            prop_assert_eq!(found.large().collect::<Vec<_>>(), large);
            prop_assert!(found.has("member") && found.values("member").next().is_none());
            prop_assert_eq!(found.to_entry().attributes, entry.attributes);
        }

        /// Behind a right checksum, any bytes at all.
        #[test]
        fn malformed_bodies_are_refused(body in prop::collection::vec(any::<u8>(), 0..60)) {
            let id = EntryId(1);
            let bytes = [checksum(id, &body).as_slice(), &body].concat();
            if let Ok(found) = EntryRef::decode(id, &bytes) {
                prop_assert!(found.attributes().count() <= body.len());
            }
        }
    }

    #[test]
    fn too_large_an_entry_is_refused() {
        let entry = Entry { rdn: "x".repeat(RECORD_BYTES_MAX), ..Entry::default() };
        let refused = entry.encode(EntryId(1), EntryId::ROOT, &[]);
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
    }
}
