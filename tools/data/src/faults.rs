//! Faults of a template's entries: each once, and how many entries have it.

use crate::limits::FAULTS_SAID_MAX;
use crate::maker::View;
use crate::plan::Plan;
use crate::template::Place;
use keyway_host::output::grouped;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Characters of a value that are shown.
const SHOWN_CHARS: usize = 60;

/// The faults of entries.
#[derive(Debug, Default)]
pub struct EntryFaults {
    known: BTreeMap<Key, Fault>,
    /// Whether more things are wrong than are kept.
    pub is_cut: bool,
    /// How many entries have something wrong, and the last of them.
    pub entries: u64,
    last: Option<u64>,
}

/// A thing that is wrong: where the template says it, what about, and why.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    place: Place,
    attribute: String,
    why: String,
}

/// The entries that have it.
#[derive(Debug)]
struct Fault {
    /// The first entry, and its value if one is wrong.
    dn: String,
    value: Option<Vec<u8>>,
    entries: u64,
    last: u64,
}

impl EntryFaults {
    /// An entry has something wrong, which the template says at this place.
    pub fn add(
        &mut self,
        view: &View<'_>,
        place: Place,
        (attribute, value): (&str, Option<&[u8]>),
        why: String,
    ) {
        let index = view.index();
        if self.last.replace(index) != Some(index) {
            self.entries += 1;
        }
        let key = Key { place, attribute: attribute.to_owned(), why };
        if let Some(fault) = self.known.get_mut(&key) {
            fault.entries += u64::from(fault.last != index);
            fault.last = index;
        } else if self.known.len() < FAULTS_SAID_MAX {
            let (dn, value) = (view.dn().to_owned(), value.map(<[u8]>::to_vec));
            self.known.insert(key, Fault { dn, value, entries: 1, last: index });
        } else {
            self.is_cut = true;
        }
    }

    /// How many things are wrong.
    #[must_use]
    pub fn kinds(&self) -> usize {
        self.known.len()
    }

    /// For people, a line each, in the order of the template.
    pub fn lines(&self, plan: &Plan) -> impl Iterator<Item = String> {
        self.known.iter().map(|(Key { place, attribute, why }, fault)| {
            let (file, line) = (plan.file(*place), place.line);
            let value = fault.value.as_deref().map(|value| {
                format!("value {:?} of attribute {attribute} is not valid: ", shown(value))
            });
            let more = match fault.entries - 1 {
                0 => String::new(),
                1 => " and another entry".to_owned(),
                more => format!(" and {} more entries", grouped(more)),
            };
            let value = value.unwrap_or_default();
            format!("{file}, line {line}: {value}{why} ({}{more})", fault.dn)
        })
    }

    /// For programs.
    #[must_use]
    pub fn json(&self, plan: &Plan) -> Vec<Value> {
        let one = |(Key { place, attribute, why }, fault): (&Key, &Fault)| {
            json!({
                "file": plan.file(*place), "line": place.line, "attribute": attribute, "why": why,
                "value": fault.value.as_deref().map(shown),
                "entry": fault.dn, "entries": fault.entries,
            })
        };
        self.known.iter().map(one).collect()
    }
}

/// A value as it can be shown.
fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_at_characters() {
        assert_eq!(shown(b"short"), "short");
        let long = "\u{17d}".repeat(SHOWN_CHARS + 1);
        assert_eq!(shown(long.as_bytes()), "\u{17d}".repeat(SHOWN_CHARS) + "...");
        assert_eq!(shown(&[0xff]), "\u{fffd}");
    }
}
