//! References that follow the entries which they name: the server changes them by itself when an entry gets another
//! name or goes.

use crate::changes::{Names, is_same};
use keyway_schema::{EntryName, Schema, base};
use std::collections::{BTreeMap, HashSet};

/// An entry's attributes and their values.
pub(super) type Attributes = BTreeMap<String, Vec<Vec<u8>>>;

/// The names that a plan changes, in the order in which it does.
#[derive(Default)]
pub(super) struct References {
    /// The attributes that follow.
    attributes: Vec<String>,
    /// Names before and after; none after for an entry that goes.
    changed: Vec<Names>,
}

impl References {
    /// Those of the attributes that the configuration lists.
    pub fn new(attributes: Vec<String>) -> References {
        References { attributes, changed: Vec::new() }
    }

    /// The attributes that follow.
    pub fn attributes(&self) -> &[String] {
        &self.attributes
    }

    /// An entry gets another name, or goes.
    pub fn note(&mut self, names: Names) {
        self.changed.push(names);
    }

    /// The value that the server makes of one, all that was noted being done; `None` if it goes.
    pub fn follow(&self, schema: &Schema, attribute: &str, value: &[u8]) -> Option<Vec<u8>> {
        let is_one = |name: &String| name.eq_ignore_ascii_case(base(attribute));
        let text = str::from_utf8(value).ok().filter(|_| !self.changed.is_empty());
        let name = text.and_then(|text| EntryName::parse(schema, text).ok());
        let Some(mut name) = name.filter(|_| self.attributes.iter().any(is_one)) else {
            return Some(value.to_vec());
        };
        let mut has_changed = false;
        for names in &self.changed {
            match (&names.before, &names.after) {
                (Some(before), None) if is_same(before, &name) => return None,
                (Some(_), Some(_)) => {
                    if let Some(new) = names.follow(&name) {
                        (name, has_changed) = (new, true);
                    }
                }
                _ => {}
            }
        }
        Some(if has_changed { name.text().into_bytes() } else { value.to_vec() })
    }

    /// All values of an entry likewise.
    pub fn follow_all(&self, schema: &Schema, attributes: &mut Attributes) {
        for (name, values) in attributes.iter_mut() {
            let followed = values.iter().filter_map(|value| self.follow(schema, name, value));
            let followed: Vec<Vec<u8>> = followed.collect();
            if followed != *values {
                // Two may have become one.
                let mut seen = HashSet::new();
                *values = followed.into_iter().filter(|value| seen.insert(value.clone())).collect();
            }
        }
        attributes.retain(|_, values| !values.is_empty());
    }
}
