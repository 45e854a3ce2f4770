//! From the names and OIDs of definitions to their positions.

use crate::error::SchemaError;
use crate::limits::DESCRIPTOR_BYTES_MAX;
use keyway_codec::definitions::nearest;
use rustc_hash::FxBuildHasher;
use std::collections::HashMap;

/// The keys that a definition is found by: its OID and its names, in lower case.
fn keys(oid: &str, names: &[String]) -> Vec<Box<str>> {
    let names = names.iter().map(String::as_str);
    std::iter::once(oid).chain(names).map(|key| key.to_ascii_lowercase().into()).collect()
}

/// From names and OIDs in lower case, as octets, to positions. Names in an index are the schema's
/// own, so no client can choose them to collide.
pub(crate) type Index = HashMap<Box<[u8]>, usize, FxBuildHasher>;

/// From what every definition is found by to its place.
pub(crate) fn index<'d>(
    definitions: impl Iterator<Item = (&'d str, &'d [String])>,
) -> Result<Index, SchemaError> {
    let mut index = Index::default();
    for (position, (oid, names)) in definitions.enumerate() {
        for key in keys(oid, names) {
            if index.insert(key.as_bytes().into(), position).is_some() {
                return Err(SchemaError::new(&key, "is defined twice"));
            }
        }
    }
    Ok(index)
}

/// The message about a name that is not known: with the one that was meant, perhaps.
pub(crate) fn unknown(what: &str, name: &str, index: &Index) -> String {
    let known = index.keys().filter_map(|key| std::str::from_utf8(key).ok());
    let near = nearest(name, known);
    let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    format!("{what} {name} is not known{near}")
}

/// Looks a name up in any case, without allocating.
pub(crate) fn lookup(index: &Index, name: &str) -> Option<usize> {
    let mut buffer = [0; DESCRIPTOR_BYTES_MAX];
    let folded = buffer.get_mut(..name.len())?;
    folded.copy_from_slice(name.as_bytes());
    folded.make_ascii_lowercase();
    index.get(&*folded).copied()
}
