//! The ways in which an import differs from its input without a loss: for people, by reason.

use crate::limits::IMPORT_NOTED_ENTRIES_MAX;
use std::collections::BTreeMap;
use std::fmt;

/// A reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// An entry had a value twice; it is kept once.
    ValueTwice,
    /// An entry was there twice with the same values.
    EntryTwice,
    /// An entry came before the one above it.
    BeforeParent,
    /// A tree begins with a container, since the entry above that never came.
    Top,
    /// Values are not of their attribute's syntax.
    Malformed,
    /// An entry's structural classes do not derive from each other, or there is none.
    Structural,
    /// Values of an attribute that has an effect in the server they come from, and none here.
    NoEffect(&'static str),
    /// Values of an attribute that means something only to the server that wrote them.
    LeftOut(&'static str),
    /// An attribute of an extensibleObject that had no definition. Its name is noted.
    Defined,
    /// A deleted entry that the other server had not forgotten yet.
    Tombstone,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::ValueTwice => f.write_str("values given twice in an entry, kept once"),
            Note::EntryTwice => f.write_str("entries given twice with the same values, kept once"),
            Note::BeforeParent => f.write_str("entries that came before the one above them, kept"),
            Note::Top => f.write_str(
                "entries without the one above them, which begin a tree of their own (a naming context)",
            ),
            Note::Malformed => {
                f.write_str("values that are not of their attribute's syntax, kept as they are")
            }
            Note::Structural => f.write_str(
                "entries without one structural object class, or with several, kept as they are",
            ),
            Note::NoEffect(name) => write!(f, "values of {name}, kept, without effect here"),
            Note::LeftOut(name) => {
                write!(f, "values of {name}, left out: they mean something to their server only")
            }
            Note::Defined => f.write_str(
                "attributes of extensibleObject entries that had no definition, defined as text",
            ),
            Note::Tombstone => f.write_str("deleted entries (tombstones), left out"),
        }
    }
}

/// How often something was noted, and where first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// How often.
    pub count: u64,
    /// The first entries, up to [`IMPORT_NOTED_ENTRIES_MAX`].
    pub first: Vec<String>,
}

/// All that was noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(pub BTreeMap<Note, Noted>);

impl Notes {
    /// Notes something of an entry, `count` times.
    pub(super) fn add(&mut self, note: Note, count: u64, dn: &str) {
        if count == 0 {
            return;
        }
        let noted = self.0.entry(note).or_default();
        noted.count += count;
        if noted.first.len() < IMPORT_NOTED_ENTRIES_MAX && noted.first.iter().all(|one| one != dn) {
            noted.first.push(dn.to_owned());
        }
    }

    /// Forgets what was noted of an entry once, if anything was noted at all.
    pub(super) fn take_back(&mut self, note: Note, dn: &str) {
        let Some(noted) = self.0.get_mut(&note) else { return };
        noted.count = noted.count.saturating_sub(1);
        noted.first.retain(|one| one != dn);
        if noted.count == 0 {
            self.0.remove(&note);
        }
    }

    /// Takes what others noted.
    pub(super) fn extend(&mut self, others: Notes) {
        for (note, Noted { count, first }) in others.0 {
            let noted = self.0.entry(note).or_default();
            noted.count += count;
            let room = IMPORT_NOTED_ENTRIES_MAX.saturating_sub(noted.first.len());
            noted.first.extend(first.into_iter().take(room));
        }
    }
}
