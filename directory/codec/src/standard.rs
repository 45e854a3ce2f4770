//! The standard schema: definitions of RFC 4512, 4519, 4523, 4524, 2798, 2307 and others.
//!
//! They are texts that a schema is built of: [`crate::description`] reads them.

/// A set of definitions beside the standard ones, for those who have such entries.
#[derive(Debug, PartialEq, Eq)]
pub struct Set {
    /// Its name.
    pub name: &'static str,
    /// The definitions, in the form of OpenLDAP's schema files.
    pub text: &'static str,
}

impl Set {
    /// The set of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<&'static Set> {
        SETS.iter().find(|set| set.name == name)
    }
}

macro_rules! sets {
    ($($name:literal),*) => {
        &[$(Set { name: $name, text: include_str!(concat!("standard/sets/", $name, ".schema")) },)*]
    };
}

/// The sets there are. None has an OID or a name of another one or of the standard definitions.
pub const SETS: &[Set] = sets![
    "389",
    "automount",
    "core",
    "corba",
    "cosine",
    "dua",
    "dyngroup",
    "eduperson",
    "host",
    "java",
    "kerberos",
    "mail",
    "namedobject",
    "openldap",
    "openssh",
    "rfc2307bis",
    "samba",
    "sudo"
];

const ATTRIBUTE_TYPE_TEXT: &str = include_str!("standard/attribute_types.schema");
const OBJECT_CLASS_TEXT: &str = include_str!("standard/object_classes.schema");

/// Descriptions of attribute types (RFC 4512 § 4.1.2). A description may refer to a later one.
pub const ATTRIBUTE_TYPES: &[&str] =
    &definitions::<{ count(ATTRIBUTE_TYPE_TEXT) }>(ATTRIBUTE_TYPE_TEXT);

/// Descriptions of object classes (RFC 4512 § 4.1.1). A description may refer to a later one.
pub const OBJECT_CLASSES: &[&str] = &definitions::<{ count(OBJECT_CLASS_TEXT) }>(OBJECT_CLASS_TEXT);

/// How many definitions there are. They are counted and cut when this is compiled.
const fn count(text: &str) -> usize {
    let mut count = 0;
    let mut rest = text;
    while let Some((_, after)) = next(rest) {
        count += 1;
        rest = after;
    }
    count
}

const fn definitions<const N: usize>(text: &str) -> [&str; N] {
    let mut found = [""; N];
    let mut rest = text;
    let mut index = 0;
    while let Some((definition, after)) = next(rest) {
        found[index] = definition;
        rest = after;
        index += 1;
    }
    found
}

/// The first definition, and what follows it: from a `(` at the start of a line to its last `)`
/// before an empty line or the end.
const fn next(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut start = 0;
    while start < bytes.len()
        && !(bytes[start] == b'(' && (start == 0 || bytes[start - 1] == b'\n'))
    {
        start += 1;
    }
    if start == bytes.len() {
        return None;
    }
    let mut end = start;
    while end + 1 < bytes.len() && !(bytes[end] == b'\n' && bytes[end + 1] == b'\n') {
        end += 1;
    }
    let (before, after) = text.split_at(end);
    Some((before.split_at(start).1.trim_ascii(), after))
}

#[cfg(test)]
mod tests;
