//! Numbers that are given out: `uidNumber`, `gidNumber` and their like.
//!
//! The next number of a range is a row of the store, changed in the commit that gives the number
//! out, so that none is given twice. It only ever rises: numbers of entries that are gone, or were
//! never made, stay free.

use super::range::Range;
use crate::failure::{Failure, Result};
use crate::limits::NUMBERS_TRIED_MAX;
use crate::state::Snapshot;
use crate::write::edit;
use keyway_codec::message::ResultCode;
use keyway_schema::EntryAttributes;
use keyway_store::Write;

/// The value that an entry has while it is checked that it may have a number.
const PLACEHOLDER: &str = "0";

impl Snapshot {
    /// The ranges of which this entry is to get a number, by their places. It gets something that
    /// passes for a number until then.
    pub fn wanted_numbers(&self, attributes: &mut EntryAttributes) -> Vec<usize> {
        let mut wanted = Vec::new();
        for (place, range) in self.integrity.ranges.iter().enumerate() {
            if range.is_wanted(&self.schema, attributes) {
                edit::set(attributes, &range.attribute, PLACEHOLDER);
                wanted.push(place);
            }
        }
        wanted
    }

    /// The canonical names of the attributes of these ranges.
    pub fn numbered<'a>(&'a self, ranges: &'a [usize]) -> impl Iterator<Item = &'a str> {
        ranges
            .iter()
            .filter_map(|place| Some(self.integrity.ranges.get(*place)?.attribute.as_str()))
    }

    /// Gives the entry its numbers. Nothing may refuse the change after this.
    ///
    /// # Errors
    /// `adminLimitExceeded` if a range is used up, or the store's.
    pub fn give_numbers(
        &self,
        write: &mut Write<'_>,
        ranges: &[usize],
        attributes: &mut EntryAttributes,
    ) -> Result<()> {
        for range in ranges.iter().filter_map(|place| self.integrity.ranges.get(*place)) {
            let number = self.next_free(write, range)?;
            write.meta_put(&range.row(), &(number + 1).to_be_bytes())?;
            edit::set(attributes, &range.attribute, &number.to_string());
        }
        Ok(())
    }

    fn next_free(&self, write: &Write<'_>, range: &Range) -> Result<u64> {
        let view = write.view();
        let row = view.meta_get(&range.row())?.and_then(|row| row.try_into().ok());
        let first = row.map_or(range.from, u64::from_be_bytes).max(range.from);
        let rule = self.schema.attribute(&range.attribute).and_then(|known| known.equality());
        let tried = usize::try_from(range.to.saturating_sub(first)).unwrap_or(NUMBERS_TRIED_MAX);
        for number in (first..=range.to).take(tried.saturating_add(1).min(NUMBERS_TRIED_MAX)) {
            let value = number.to_string();
            let normal = rule.and_then(|rule| self.schema.normalize(rule, value.as_bytes()));
            let key = normal.and_then(|normal| self.indexes.equality(&range.attribute, &normal));
            // An entry may have it already, by its client's choice.
            match key {
                Some(key) if view.count_at_most(&key, 1)? > 0 => {}
                _ => return Ok(number),
            }
        }
        let text = format!(
            "no number from {first} to {} is free for attribute {}: set a larger range in \
             [[integrity.allocate]]",
            range.to, range.attribute
        );
        Err(Failure::new(ResultCode::AdminLimitExceeded, text))
    }
}
