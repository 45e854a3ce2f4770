//! From the names and OIDs of definitions to their positions.

use crate::error::SchemaError;
use crate::limits::DESCRIPTOR_BYTES_MAX;
use keyway_codec::definitions::nearest;
use rustc_hash::FxBuildHasher;
use std::collections::HashMap;

/// The keys that a definition is found by: its OID and its names.
fn keys<'d>(oid: &'d str, names: &'d [String]) -> impl Iterator<Item = &'d str> {
    std::iter::once(oid).chain(names.iter().map(String::as_str))
}

/// From names and OIDs, as octets, to positions: in lower case, and as their definitions write them, which is
/// how entries have them. Names in an index are the schema's own, so no client can choose them to collide.
pub(crate) type Index = HashMap<Box<[u8]>, usize, FxBuildHasher>;

/// From what every definition is found by to its place.
pub(crate) fn index<'d>(
    definitions: impl Iterator<Item = (&'d str, &'d [String])>,
) -> Result<Index, SchemaError> {
    let mut index = Index::default();
    let mut written = Vec::new();
    for (position, (oid, names)) in definitions.enumerate() {
        for key in keys(oid, names) {
            let folded = key.to_ascii_lowercase();
            if index.insert(folded.as_bytes().into(), position).is_some() {
                return Err(SchemaError::new(&folded, "is defined twice"));
            }
            written.push((key, position));
        }
    }
    index.extend(written.into_iter().map(|(key, position)| (key.as_bytes().into(), position)));
    Ok(index)
}

/// The message about a name that is not known: with the one that was meant, perhaps.
pub(crate) fn unknown(what: &str, name: &str, index: &Index) -> String {
    let folded = index.keys().filter(|key| !key.iter().any(u8::is_ascii_uppercase));
    let known = folded.filter_map(|key| std::str::from_utf8(key).ok());
    let near = nearest(name, known);
    let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    format!("{what} {name} is not known{near}")
}

/// Looks a name up in any case, without allocating.
pub(crate) fn lookup(index: &Index, name: &str) -> Option<usize> {
    // Mostly it is written as its definition has it.
    if let Some(position) = index.get(name.as_bytes()) {
        return Some(*position);
    }
    let mut buffer = [0; DESCRIPTOR_BYTES_MAX];
    let folded = buffer.get_mut(..name.len())?;
    folded.copy_from_slice(name.as_bytes());
    folded.make_ascii_lowercase();
    index.get(&*folded).copied()
}
