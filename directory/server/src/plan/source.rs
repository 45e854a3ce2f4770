//! Where candidates come from: lists that are merged, and others that a candidate has to be in too.

use super::lack::Lack;
use super::lookup::Lookup;
use crate::failure::Result;
use crate::index::IndexKind;
use keyway_store::{EntryId, Key, Postings, View};
use std::iter::{Copied, Peekable};

/// Where candidates come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The lists that are walked.
    walked: Union,
    /// Each of these has all that is sought as well.
    also: Vec<Union>,
    /// Whether only what is in the scope comes, so that a candidate need not be checked against it.
    pub is_scope: bool,
    /// The index that is missing, if the scope is walked because none helps.
    pub lack: Option<Lack>,
    /// How often indexes had been invalidated when it was planned, if it goes by any: when more are, it is
    /// of no use.
    pub invalidations: Option<u64>,
}

/// Lists to be merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Union {
    lists: Vec<Key>,
    /// The lists have been read: all that is in them is in `ids`.
    is_read: bool,
    /// Ids to merge with them, ascending.
    ids: Vec<EntryId>,
}

impl Union {
    pub fn new(lookup: Lookup, ids: Vec<EntryId>) -> Union {
        Union { lists: lookup.lists, is_read: false, ids }
    }

    /// The ids that come after one, ascending, each once.
    fn merged<'t>(&'t self, view: View<'t>, after: EntryId) -> Result<Merged<'t>> {
        let at = self.ids.partition_point(|id| *id <= after);
        let ids = self.ids.get(at..).unwrap_or_default();
        let lists = if self.is_read { &[][..] } else { &self.lists };
        let lists = lists
            .iter()
            .map(|key| Ok(view.postings(key, after)?.peekable()))
            .collect::<Result<_>>()?;
        Ok(Merged { lists, ids: ids.iter().copied().peekable() })
    }
}

impl Source {
    /// One entry.
    pub fn entry(id: EntryId) -> Source {
        Source::entries(vec![id])
    }

    /// These entries.
    pub fn entries(mut ids: Vec<EntryId>) -> Source {
        ids.sort_unstable();
        Source::walking(Union { ids, ..Union::default() })
    }

    /// All of a scope.
    pub fn scope(lists: Vec<Key>) -> Source {
        Source::walking(Union { lists, ..Union::default() })
    }

    fn walking(walked: Union) -> Source {
        Source { walked, also: Vec::new(), is_scope: true, lack: None, invalidations: None }
    }

    /// Ids that were read out of lists. An entry may have left the scope since.
    pub(super) fn read(lookup: Lookup, ids: Vec<EntryId>) -> Source {
        let union = Union { is_read: true, ..Union::new(lookup, ids) };
        Source { is_scope: false, ..Source::walking(union) }
    }

    /// The ids that are in all of these.
    pub(super) fn meeting(
        walked: Union,
        also: Vec<Union>,
        is_scope: bool,
        lack: Option<Lack>,
    ) -> Source {
        Source { also, is_scope, lack, ..Source::walking(walked) }
    }

    /// Where candidates come from, in words: `uid equality`, `cn substring, objectClass equality`,
    /// `scope`, `range` for entries that were looked up before. No values.
    pub fn describe(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        for union in [&self.walked].into_iter().chain(&self.also) {
            // A union of a hundred lists is mostly of one index.
            for key in union.lists.iter().take(DESCRIBED_LISTS_MAX) {
                let word = index_of(key).unwrap_or_else(|| "scope".to_owned());
                if !words.contains(&word) {
                    words.push(word);
                }
            }
            if union.lists.is_empty() && !union.ids.is_empty() {
                words.push("range".to_owned());
            }
        }
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }

    /// The candidates after an id, ascending, each once.
    ///
    /// # Errors
    /// The store's.
    pub fn candidates<'t>(&'t self, view: View<'t>, after: EntryId) -> Result<Candidates<'t>> {
        let also = self.also.iter().map(|one| one.merged(view, after));
        Ok(Candidates {
            walked: self.walked.merged(view, after)?,
            also: also.collect::<Result<_>>()?,
        })
    }
}

/// Lists of a union that [`Source::describe`] looks at.
const DESCRIBED_LISTS_MAX: usize = 8;

/// The index that a list belongs to; `None` for the store's own lists.
fn index_of(key: &Key) -> Option<String> {
    let (kind, rest) = key.as_bytes().split_first()?;
    let kind = IndexKind::ALL.into_iter().find(|one| one.byte() == *kind)?;
    // The first part is the attribute's name, whose letters are never escaped.
    let end = rest.iter().position(|byte| *byte <= 1).unwrap_or(rest.len());
    let attribute = std::str::from_utf8(rest.get(..end)?).ok()?;
    Some(format!("{attribute} {kind}"))
}

/// Iterator over candidates, ascending.
pub struct Candidates<'t> {
    walked: Merged<'t>,
    also: Vec<Merged<'t>>,
}

impl Iterator for Candidates<'_> {
    type Item = Result<EntryId>;

    fn next(&mut self) -> Option<Self::Item> {
        'walk: loop {
            let id = match self.walked.next()? {
                Ok(id) => id,
                Err(failure) => return Some(Err(failure)),
            };
            for one in &mut self.also {
                match one.reaches(id) {
                    Ok(true) => {}
                    Ok(false) => continue 'walk,
                    Err(failure) => return Some(Err(failure)),
                }
            }
            return Some(Ok(id));
        }
    }
}

/// Iterator over the ids of several lists, ascending, each once.
struct Merged<'t> {
    lists: Vec<Peekable<Postings<'t>>>,
    ids: Peekable<Copied<std::slice::Iter<'t, EntryId>>>,
}

impl Merged<'_> {
    /// Goes on to an id; whether it is there.
    fn reaches(&mut self, id: EntryId) -> Result<bool> {
        let mut is_there = false;
        while self.ids.next_if(|one| *one < id).is_some() {}
        is_there |= self.ids.peek() == Some(&id);
        for list in &mut self.lists {
            while list.next_if(|one| matches!(one, Ok(one) if *one < id)).is_some() {}
            if let Some(found) = list.next_if(|one| !matches!(one, Ok(one) if *one > id)) {
                is_there |= found? == id;
            }
        }
        Ok(is_there)
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<EntryId>;

    fn next(&mut self) -> Option<Self::Item> {
        if let ([list], None) = (self.lists.as_mut_slice(), self.ids.peek()) {
            return list.next().map(|id| Ok(id?));
        }
        let mut least = self.ids.peek().copied();
        for list in &mut self.lists {
            match list.peek() {
                Some(Ok(id)) => least = Some(least.map_or(*id, |least| least.min(*id))),
                Some(Err(_)) => return list.next().map(|error| Ok(error?)),
                None => {}
            }
        }
        let least = least?;
        self.ids.next_if(|id| *id == least);
        for list in &mut self.lists {
            list.next_if(|id| matches!(id, Ok(id) if *id == least));
        }
        Some(Ok(least))
    }
}
