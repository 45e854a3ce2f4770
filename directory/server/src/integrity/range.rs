//! A range of numbers that entries of a class get.

use super::setting::Allocate;
use crate::write::edit;
use keyway_codec::syntax::Syntax;
use keyway_schema::{EntryAttributes, OBJECT_CLASS, Schema};

/// A range of numbers.
#[derive(Clone)]
pub(super) struct Range {
    /// The canonical name of the attribute that gets a number.
    pub attribute: String,
    /// The OID of the class whose entries get one.
    pub class: String,
    pub from: u64,
    pub to: u64,
    pub magic: Option<String>,
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
    pub fn row(&self) -> String {
        format!("next-number {} {}", self.attribute, self.from)
    }

    /// Whether an entry is to get one of its numbers.
    pub fn is_wanted(&self, schema: &Schema, attributes: &EntryAttributes) -> bool {
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
