//! A look at everything: do entries, tree, counters and posting lists say the same?

use std::collections::HashMap;

use crate::key::Scope;
use crate::lmdb::Table;
use crate::posting::Chunk;
use crate::read::{View, number};
use crate::write::META_NEXT_ID;
use crate::{EntryId, Error, Key};

/// What a check has found in good order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    /// Entries, each with a sound record, one name, and a way to the root.
    pub entries: u64,
    /// Identifiers in posting lists, all of them of entries that exist.
    pub postings: u64,
}

/// Parent of every entry.
type Parents = HashMap<EntryId, EntryId>;

/// Key and value.
type Row<'t> = (&'t [u8], &'t [u8]);

impl<'t> View<'t> {
    /// Reads the whole of this state and compares its parts: checksums, the tree against the
    /// entries, counters against the tree, posting lists of children and subtrees against both,
    /// and that no posting list names an entry that is not there.
    ///
    /// Takes memory for every entry (about 32 B) and as long as reading everything does.
    ///
    /// Errors: [`Error::Damaged`] with the first contradiction.
    pub fn check(self) -> Result<Checked, Error> {
        let parents = self.check_entries()?;
        self.check_tree(&parents)?;
        self.check_children(&parents)?;
        let postings = self.check_postings(&parents)?;
        Ok(Checked { entries: parents.len() as u64, postings })
    }

    fn check_entries(self) -> Result<Parents, Error> {
        let mut parents = Parents::new();
        let mut last = EntryId::ROOT;
        for row in self.entries(EntryId::ROOT)? {
            let (id, entry) = row?;
            parents.insert(id, entry.parent());
            last = id;
        }
        let next = self.shared.get(self.tables.meta, self.txn, META_NEXT_ID)?;
        if next.map_or(Ok(1), number)? <= last.0 {
            return damaged(format!("entry {last} has an identifier that is still to be given"));
        }
        for &id in parents.keys() {
            depth(&parents, id)?;
        }
        Ok(parents)
    }

    fn check_tree(self, parents: &Parents) -> Result<(), Error> {
        let mut named = HashMap::with_capacity(parents.len());
        for row in self.rows(self.tables.tree)? {
            let (row, id) = row?;
            let parent = row.get(..8).and_then(EntryId::from_bytes);
            let id = EntryId::from_bytes(id);
            let (Some(parent), Some(id)) = (parent, id) else {
                return damaged("a row of the tree has a wrong length");
            };
            if parents.get(&id) != Some(&parent) {
                return damaged(format!("the tree has entry {id} below {parent}, it says other"));
            }
            if named.insert(id, ()).is_some() {
                return damaged(format!("entry {id} has two names"));
            }
        }
        match named.len() == parents.len() {
            true => Ok(()),
            false => damaged("an entry has no name"),
        }
    }

    fn check_children(self, parents: &Parents) -> Result<(), Error> {
        let mut counts: HashMap<EntryId, u64> = HashMap::new();
        for &parent in parents.values() {
            *counts.entry(parent).or_default() += 1;
        }
        let mut rows = 0;
        for row in self.rows(self.tables.children)? {
            let (id, count) = row?;
            let id = EntryId::from_bytes(id);
            if id.and_then(|id| counts.get(&id).copied()) != Some(number(count)?) {
                return damaged(format!("the number of children of entry {id:?} is wrong"));
            }
            rows += 1;
        }
        match rows == counts.len() {
            true => Ok(()),
            false => damaged("an entry with children counts none"),
        }
    }

    fn check_postings(self, parents: &Parents) -> Result<u64, Error> {
        let (mut postings, mut children, mut members) = (0u64, 0u64, 0u64);
        let mut before = Vec::new();
        let mut last = EntryId::ROOT;
        for row in self.rows(self.tables.posting)? {
            let (row, gaps) = row?;
            let key = row.get(..row.len().saturating_sub(8)).unwrap_or_default();
            if key != before {
                last = EntryId::ROOT;
                before = key.to_vec();
            }
            let mut chunk = Chunk::of_row(row, key.len(), gaps)?;
            while let Some(id) = chunk.next()? {
                if id <= last || !parents.contains_key(&id) {
                    return damaged(format!("an index names entry {id} wrongly"));
                }
                last = id;
                postings += 1;
                match Key::scope(key) {
                    Some((Scope::Children, parent)) if parents.get(&id) == Some(&parent) => {
                        children += 1;
                    }
                    Some((Scope::Subtree, ancestor)) if is_below(parents, id, ancestor) => {
                        members += 1;
                    }
                    None => {}
                    Some(_) => return damaged(format!("entry {id} is listed in a wrong place")),
                }
            }
        }
        let mut depths = 0;
        for &id in parents.keys() {
            depths += depth(parents, id)?;
        }
        // All that is listed is right and listed once; so equal numbers mean equal sets.
        match children == parents.len() as u64 && members == depths {
            true => Ok(postings),
            false => damaged("an entry is missing from a list of children or of a subtree"),
        }
    }

    fn rows(
        self,
        table: Table<'static>,
    ) -> Result<impl Iterator<Item = Result<Row<'t>, Error>>, Error> {
        let rows = table.iter(self.txn).map_err(|e| self.shared.error("checking the store", e))?;
        Ok(rows.map(move |row| row.map_err(|e| self.shared.error("checking the store", e))))
    }
}

/// Levels from the root down to `id`.
fn depth(parents: &Parents, id: EntryId) -> Result<u64, Error> {
    let mut at = id;
    for depth in 0..=crate::limits::DEPTH_LEVELS_MAX {
        if at == EntryId::ROOT {
            return Ok(depth as u64);
        }
        let Some(&parent) = parents.get(&at) else {
            return damaged(format!("entry {at}, above entry {id}, is missing"));
        };
        at = parent;
    }
    damaged(format!("entry {id} has no end of parents"))
}

fn is_below(parents: &Parents, id: EntryId, ancestor: EntryId) -> bool {
    let mut at = Some(&id);
    while let Some(&found) = at {
        if found == ancestor {
            return true;
        }
        at = parents.get(&found);
    }
    false
}

fn damaged<T>(what: impl Into<String>) -> Result<T, Error> {
    Err(Error::damaged(what))
}
