//! The sources of a schema: sets that come with the program, files, and changes made over LDAP.

use crate::error::SchemaError;
use keyway_codec::description::{AttributeTypeDescription, ObjectClassDescription};
use keyway_codec::standard::{SETS, Set};
use std::fmt::Write;
use std::sync::Arc;

/// Where definitions come from, beside the standard ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Definitions that the program needs for entries of its own. No client changes them.
    pub program: Vec<SourceFile>,
    /// Sets that are switched on.
    pub sets: Vec<&'static Set>,
    /// Files, in any order.
    pub files: Vec<SourceFile>,
}

impl Sources {
    /// The sources that `keyway up` starts with: all sets.
    pub fn defaults() -> Sources {
        Sources { sets: SETS.iter().collect(), ..Sources::default() }
    }
}

/// A file of definitions, in any form that `keyway_codec::definitions` reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name.
    pub name: String,
    /// Its content.
    pub bytes: Arc<[u8]>,
}

/// The changes made over LDAP. They are kept in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Attribute types that were added, or put in the place of others.
    pub attribute_types: Vec<AttributeTypeDescription>,
    /// Object classes likewise.
    pub object_classes: Vec<ObjectClassDescription>,
    /// OIDs of attribute types and object classes that files define and that are not to be.
    pub deleted: Vec<String>,
}

const ATTRIBUTE_TYPE: &str = "attributeTypes: ";
const OBJECT_CLASS: &str = "objectClasses: ";
const DELETED: &str = "deleted: ";

impl Changes {
    /// As text, a line each.
    pub fn to_text(&self) -> String {
        let mut text = to_text(&self.attribute_types, &self.object_classes);
        for oid in &self.deleted {
            // Writing into a string does not fail.
            let _ = writeln!(text, "{DELETED}{oid}");
        }
        text
    }

    /// From that text.
    ///
    /// # Errors
    /// The line that is not understood.
    pub fn from_text(text: &str) -> Result<Changes, SchemaError> {
        let mut changes = Changes::default();
        for line in text.lines() {
            let wrong = |why: &dyn std::fmt::Display| SchemaError::new(line, why.to_string());
            if let Some(text) = line.strip_prefix(ATTRIBUTE_TYPE) {
                let definition = AttributeTypeDescription::parse_stored(text);
                changes.attribute_types.push(definition.map_err(|why| wrong(&why))?);
            } else if let Some(text) = line.strip_prefix(OBJECT_CLASS) {
                let definition = ObjectClassDescription::parse_stored(text);
                changes.object_classes.push(definition.map_err(|why| wrong(&why))?);
            } else if let Some(oid) = line.strip_prefix(DELETED) {
                changes.deleted.push(oid.to_owned());
            } else {
                return Err(wrong(&"the store keeps it, and this version does not understand it"));
            }
        }
        Ok(changes)
    }
}

/// Definitions as text, a line each.
pub(crate) fn to_text<'d>(
    attribute_types: impl IntoIterator<Item = &'d AttributeTypeDescription>,
    object_classes: impl IntoIterator<Item = &'d ObjectClassDescription>,
) -> String {
    let mut text = String::new();
    // Writing into a string does not fail.
    for definition in attribute_types {
        let _ = writeln!(text, "{ATTRIBUTE_TYPE}{definition}");
    }
    for definition in object_classes {
        let _ = writeln!(text, "{OBJECT_CLASS}{definition}");
    }
    text
}
