//! Numbers that are given out: `uidNumber`, `gidNumber` and their like.
//!
//! The next number of a range is a row of the store, changed in the commit that gives the number
//! out, so that none is given twice. It only ever rises: numbers of entries that are gone, or were
//! never made, stay free.

use super::setting::Allocate;
use crate::directory::Core;
use crate::failure::{Failure, Result};
use crate::limits::NUMBERS_TRIED_MAX;
use crate::write::edit;
use keyway_codec::message::ResultCode;
use keyway_codec::syntax::Syntax;
use keyway_schema::{EntryAttributes, OBJECT_CLASS, Schema};
use keyway_store::Write;

/// What an entry has while it is checked that it may have a number.
const PLACEHOLDER: &str = "0";

/// A range of numbers.
#[derive(Clone)]
pub(super) struct Range {
    /// The canonical name of the attribute that gets a number.
    pub attribute: String,
    /// The OID of the class whose entries get one.
    class: String,
    from: u64,
    to: u64,
    magic: Option<String>,
}

impl Range {
    pub fn new(schema: &Schema, setting: &Allocate) -> Result<Range, String> {
        let wrong = |why: String| format!("[[integrity.allocate]]: {why}");
        let Allocate { attribute, class, from, to, magic } = setting;
        let known = schema.attribute(attribute);
        let known = known.ok_or_else(|| wrong(format!("attribute {attribute} is not known")))?;
        if known.syntax() != Syntax::Integer {
            return Err(wrong(format!("attribute {attribute} is no integer")));
        }
        let class = schema
            .class(class)
            .ok_or_else(|| wrong(format!("object class {class} is not known")))?;
        if from > to {
            return Err(wrong(format!("from ({from}) is greater than to ({to})")));
        }
        Ok(Range {
            attribute: known.name().to_owned(),
            class: class.oid().to_owned(),
            from: *from,
            to: *to,
            magic: magic.clone(),
        })
    }

    /// The row of the next number.
    fn row(&self) -> String {
        format!("next-number {} {}", self.attribute, self.from)
    }

    /// Whether an entry is to get one of its numbers.
    fn is_wanted(&self, schema: &Schema, attributes: &EntryAttributes) -> bool {
        let classes = edit::values(attributes, OBJECT_CLASS).map_or(&[][..], Vec::as_slice);
        let is_of_class = classes.iter().any(|name| {
            let class = std::str::from_utf8(name).ok().and_then(|name| schema.class(name));
            class.is_some_and(|class| class.oid() == self.class)
        });
        is_of_class
            && match edit::values(attributes, &self.attribute).map(Vec::as_slice) {
                None | Some([]) => true,
                Some([value]) => self.magic.as_ref().is_some_and(|magic| magic.as_bytes() == value),
                Some(_) => false,
            }
    }
}

impl Core {
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
            // Somebody may have chosen it himself.
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
