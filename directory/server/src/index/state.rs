//! Which indexes a store has, and what is still to be done before they are those of the settings.

use super::IndexKind;
use crate::failure::{Failure, Result};
use keyway_codec::message::ResultCode;
use keyway_store::{EntryId, KeyRange, View, Write};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Indexes, by the canonical name of their attribute and their kind.
pub(crate) type Kinds = BTreeSet<(String, IndexKind)>;

/// Rows of the store's meta table: the indexes that searches may use; what is being done.
const META_WHOLE: &str = "indexes";
const META_WORK: &str = "indexes-work";

/// Changes whenever the same entry would get other keys of a kind.
const FORM: &str = "1";

/// The state of a store's indexes.
///
/// First what is to be dropped is, key by key; then all entries are listed in what is to be added.
/// Both go on where they were after a death. A write that changes an entry lists it in `whole` and `adding`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Every entry is listed in these; searches use them.
    pub whole: Kinds,
    /// Entries up to `after` are listed in these.
    pub adding: Kinds,
    /// Some entries are listed in these, rightly or not.
    pub dropping: Kinds,
    /// The last entry that was listed in what is being added.
    pub after: EntryId,
}

impl State {
    /// Reads it; `None` for a store that has none yet.
    ///
    /// # Errors
    /// The store's; rows of another version of this program.
    pub fn read(view: View<'_>) -> Result<Option<State>> {
        let text = |name: &str| -> Result<String> {
            let row = view.meta_get(name)?.unwrap_or_default();
            String::from_utf8(row.to_vec()).map_err(|_| unknown())
        };
        let whole = text(META_WHOLE)?;
        let Some((form, whole)) = whole.split_once('\n') else {
            return if whole.is_empty() { Ok(None) } else { Err(unknown()) };
        };
        if form != FORM {
            return Err(unknown());
        }
        let whole = whole.lines().map(kinds).collect::<Option<Vec<_>>>().ok_or_else(unknown)?;
        let mut state = State { whole: whole.into_iter().flatten().collect(), ..State::default() };
        for line in text(META_WORK)?.lines() {
            state.work(line).ok_or_else(unknown)?;
        }
        Ok(Some(state))
    }

    /// Understands a line of work.
    fn work(&mut self, line: &str) -> Option<()> {
        let (what, rest) = line.split_once(' ')?;
        match what {
            "after" => self.after = EntryId(rest.parse().ok()?),
            "add" => self.adding.extend(kinds(rest)?),
            "drop" => self.dropping.extend(kinds(rest)?),
            _ => return None,
        }
        Some(())
    }

    /// Puts it.
    ///
    /// # Errors
    /// The store's.
    pub fn put(&self, write: &mut Write<'_>) -> Result<()> {
        let mut whole = FORM.to_owned();
        lines(&mut whole, "\n", &self.whole);
        // A store without any index is not one that does not know.
        if self.whole.is_empty() {
            whole.push('\n');
        }
        write.local_put(META_WHOLE, whole.as_bytes())?;
        if self.is_settled() {
            return Ok(write.local_delete(META_WORK)?);
        }
        let mut work = format!("after {}", self.after.0);
        lines(&mut work, "\nadd ", &self.adding);
        lines(&mut work, "\ndrop ", &self.dropping);
        Ok(write.local_put(META_WORK, work.as_bytes())?)
    }

    /// Whether there is nothing to be done.
    pub fn is_settled(&self) -> bool {
        self.adding.is_empty() && self.dropping.is_empty()
    }

    /// The state of the work that leads to these, of which some are to be made anew.
    pub fn turned_to(&self, wanted: &Kinds, anew: &Kinds) -> State {
        let known = &self.whole | &self.adding;
        let whole = &(&self.whole & wanted) - anew;
        let adding = wanted - &whole;
        let dropping = &(&self.dropping | &(&known - wanted)) | &(&known & anew);
        let goes_on = adding.is_subset(&self.adding) && adding.is_disjoint(&dropping);
        let after = if goes_on { self.after } else { EntryId::ROOT };
        State { whole, adding, dropping, after }
    }

    /// The keys of which it is not known whether they are right.
    pub fn unsettled(&self) -> Vec<KeyRange> {
        self.adding.iter().chain(&self.dropping).map(range).collect()
    }
}

/// All keys of an index.
pub(crate) fn range((attribute, kind): &(String, IndexKind)) -> KeyRange {
    KeyRange::all(kind.byte(), &[attribute.as_bytes()])
}

/// `mail eq sub`
fn kinds(line: &str) -> Option<Kinds> {
    let (attribute, words) = line.split_once(' ').unwrap_or((line, ""));
    let kind = |word| Some((attribute.to_owned(), IndexKind::from_word(word)?));
    words.split_ascii_whitespace().map(kind).collect()
}

/// The same, a line for each attribute.
fn lines(out: &mut String, before: &str, kinds: &Kinds) {
    let mut last = None;
    for (attribute, kind) in kinds {
        if last.replace(attribute) != Some(attribute) {
            // Writing to a String cannot fail.
            let _ = write!(out, "{before}{attribute}");
        }
        let _ = write!(out, " {}", kind.word());
    }
}

fn unknown() -> Failure {
    let text = "the store was indexed by another version; export it there, import it here";
    Failure::new(ResultCode::Other, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use IndexKind::*;

    fn set(kinds: &[(&str, IndexKind)]) -> Kinds {
        kinds.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
    }

    #[test]
    fn work_goes_on_only_where_it_can() {
        let none = Kinds::new();
        let state = State { whole: set(&[("cn", Equality), ("sn", Equality)]), ..State::default() };
        let wanted = set(&[("cn", Equality), ("mail", Substring), ("l", Equality)]);
        let mut state = state.turned_to(&wanted, &none);
        assert_eq!(state.whole, set(&[("cn", Equality)]));
        assert_eq!(state.adding, set(&[("l", Equality), ("mail", Substring)]));
        assert_eq!(state.dropping, set(&[("sn", Equality)]));
        state.after = EntryId(7);
        state.dropping.clear();
        assert_eq!(state.turned_to(&wanted, &none), state, "nothing else is wanted");
        // Less goes on, more begins again, and what was half made has to go first.
        let less = set(&[("cn", Equality), ("l", Equality)]);
        let next = state.turned_to(&less, &none);
        assert_eq!((next.after, &next.dropping), (EntryId(7), &set(&[("mail", Substring)])));
        let again = next.turned_to(&wanted, &none);
        assert_eq!((again.after, &again.dropping), (EntryId::ROOT, &next.dropping));
        assert_eq!(again.adding, set(&[("l", Equality), ("mail", Substring)]));
        let anew = state.turned_to(&wanted, &set(&[("cn", Equality)]));
        assert!(anew.whole.is_empty() && anew.after == EntryId::ROOT);
        assert_eq!(anew.dropping, set(&[("cn", Equality)]));
    }
}
