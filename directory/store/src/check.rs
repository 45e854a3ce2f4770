//! A look at everything: do entries, tree, counters and posting lists say the same?

use std::collections::HashMap;

use crate::format::META_NEXT_ID;
use crate::key::Scope;
use crate::lmdb::Table;
use crate::posting::Chunk;
use crate::read::{View, number};
use crate::values::{Row as ValueRow, ValueChunk, spoilt};
use crate::{EntryId, Error, Key, KeyRange, ValueKey};

/// The counts of a check that found no damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    /// Entries, each with a sound record, one name, and a way to the root.
    pub entries: u64,
    /// Identifiers in posting lists, all of them of entries that exist.
    pub postings: u64,
    /// Rows of the feed, each of which follows the one before it.
    pub commits: u64,
}

/// Parent of every entry.
type Parents = HashMap<EntryId, EntryId>;

/// Hears of a table and of how many of its rows have been read.
type Progress<'p> = &'p mut dyn FnMut(&'static str, u64);

/// The sizes of large attributes that entries state: values and bytes, by entry and slot.
type Numbers = HashMap<(EntryId, u32), (u64, u64)>;

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
        self.check_and_tell(&[], &mut |_, _| {})
    }

    /// Checks the store without the lists of some keys, which are neither checked nor counted.
    /// `progress` hears now and then which table is being read, and how many of its rows have been: a
    /// page that is spoilt can kill the process, and this says where.
    pub fn check_and_tell(
        self,
        without: &[KeyRange],
        progress: Progress<'_>,
    ) -> Result<Checked, Error> {
        let (parents, large) = self.check_entries(progress)?;
        self.check_values(large, progress)?;
        self.check_tree(&parents, progress)?;
        self.check_children(&parents, progress)?;
        let postings = self.check_postings(&parents, without, progress)?;
        let commits = self.check_feed(progress)?;
        Ok(Checked { entries: parents.len() as u64, postings, commits })
    }

    /// Follows the feed from the first row that is kept to its head.
    fn check_feed(self, progress: Progress<'_>) -> Result<u64, Error> {
        let Some(head) = self.feed_head()? else { return Ok(0) };
        let (mut rows, mut changes, mut bytes) = (0, None, 0);
        for row in self.feed_after(head.first - 1)? {
            let row = row?;
            rows += 1;
            tell(progress, "feed", rows);
            if changes.is_some_and(|changes| row.first_change != changes + 1) {
                return damaged(format!("position {} of the feed miscounts changes", row.position));
            }
            changes = Some(row.first_change - 1 + row.changes());
            bytes += row.bytes;
        }
        match bytes == head.bytes && changes.is_none_or(|changes| changes == head.changes) {
            true => Ok(rows),
            false => damaged("the head of the feed counts other changes than there are"),
        }
    }

    fn check_entries(self, progress: Progress<'_>) -> Result<(Parents, Numbers), Error> {
        let (mut parents, mut numbers) = (Parents::new(), Numbers::new());
        let mut last = EntryId::ROOT;
        for row in self.entries(EntryId::ROOT)? {
            let (id, entry) = row.map_err(|why| self.named(why))?;
            parents.insert(id, entry.parent());
            for large in entry.large() {
                let twice = numbers.insert((id, large.slot), (large.count, large.bytes));
                if twice.is_some() || large.count == 0 || entry.values(large.name).len() > 0 {
                    return damaged(format!("entry {id} has a large attribute wrongly"));
                }
            }
            tell(progress, "entry", parents.len() as u64);
            last = id;
        }
        let next = self.shared.get(self.tables.meta, self.txn, META_NEXT_ID)?;
        if next.map_or(Ok(1), number)? <= last.0 {
            return damaged(format!("entry {last} has an identifier that is still to be given"));
        }
        for &id in parents.keys() {
            depth(&parents, id)?;
        }
        Ok((parents, numbers))
    }

    /// An error that says the name of the entry, if it is one's.
    fn named(self, why: Error) -> Error {
        let Error::Damaged { what, entry: Some(id) } = why else { return why };
        // The damage is told whether or not the tree can be read.
        match self.dn_in_tree(id) {
            Ok(Some(dn)) => Error::damaged_entry(id, format!("{what} ({dn})")),
            _ => Error::damaged_entry(id, what),
        }
    }

    /// Compares the values of large attributes with what their entries say.
    fn check_values(self, said: Numbers, progress: Progress<'_>) -> Result<(), Error> {
        let (mut found, mut rows) = (Numbers::new(), 0);
        let (mut owner, mut last) = (None, None);
        for row in
            self.tables.value.map(|table| self.rows(table)).transpose()?.into_iter().flatten()
        {
            let (bytes, values) = row?;
            let Some(ValueRow { id, slot, from }) = ValueRow::parse(bytes) else {
                return damaged("a row of values has a wrong length");
            };
            rows += 1;
            tell(progress, "value", rows);
            let chunk =
                ValueChunk::decode(bytes, values).map_err(|why| self.named(spoilt(id, why)))?;
            if owner.replace((id, slot)) != Some((id, slot)) {
                last = None;
                if from != ValueKey::LEAST {
                    return damaged(format!("the first values of entry {id} are missing"));
                }
            }
            let (count, bytes): &mut (u64, u64) = found.entry((id, slot)).or_default();
            let mut misplaced = last.is_some_and(|last| last >= from);
            for (key, value) in chunk {
                misplaced |= key < from;
                last = Some(key);
                (*count, *bytes) = (*count + 1, *bytes + value.len() as u64);
            }
            if misplaced {
                return damaged(format!("a value of entry {id} is in a wrong place"));
            }
        }
        if found == said {
            return Ok(());
        }
        let differs = |owner: &&(EntryId, u32)| found.get(*owner) != said.get(*owner);
        match said.keys().chain(found.keys()).filter(differs).min() {
            Some((id, _)) => damaged(format!("entry {id} has other values than it says")),
            None => Ok(()),
        }
    }

    fn check_tree(self, parents: &Parents, progress: Progress<'_>) -> Result<(), Error> {
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
            tell(progress, "tree", named.len() as u64);
        }
        match named.len() == parents.len() {
            true => Ok(()),
            false => damaged("an entry has no name"),
        }
    }

    fn check_children(self, parents: &Parents, progress: Progress<'_>) -> Result<(), Error> {
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
            tell(progress, "children", rows as u64);
        }
        match rows == counts.len() {
            true => Ok(()),
            false => damaged("an entry with children counts none"),
        }
    }

    fn check_postings(
        self,
        parents: &Parents,
        without: &[KeyRange],
        progress: Progress<'_>,
    ) -> Result<u64, Error> {
        let (mut rows, mut postings, mut children, mut members) = (0u64, 0u64, 0u64, 0u64);
        let mut before = Vec::new();
        let mut last = EntryId::ROOT;
        for row in self.rows(self.tables.posting)? {
            let (row, gaps) = row?;
            let key = row.get(..row.len().saturating_sub(8)).unwrap_or_default();
            if key != before {
                last = EntryId::ROOT;
                before = key.to_vec();
            }
            rows += 1;
            tell(progress, "posting", rows);
            if without.iter().any(|range| range.holds(key)) {
                continue;
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

/// Tells of the first row of a table and of every 1,024th.
fn tell(progress: Progress<'_>, table: &'static str, rows: u64) {
    if rows % 1024 <= u64::from(rows == 1) {
        progress(table, rows);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lmdb::Tables;
    use crate::{Entry, Options, Write, open};
    use heed::RwTxn;

    /// A small sound store after something was done to its tables: what the check says.
    fn after(spoil: impl Fn(&Tables, &mut RwTxn<'_>)) -> Result<Checked, String> {
        look_after(spoil, |view| view.check().map_err(|e| e.to_string()))
    }

    fn look_after<R>(
        spoil: impl Fn(&Tables, &mut RwTxn<'_>),
        look: impl FnOnce(View<'_>) -> R,
    ) -> R {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { sync: false, map_bytes_max: 64 << 20, ..Options::default() };
        let shared = open::open(dir.path(), &options).unwrap();
        let mut write = Write::begin(&shared).unwrap();
        let key = Key::new(b'e', &[b"x"]);
        let entry = Entry { rdn: "Top".into(), ..Entry::default() };
        let top = write.insert(EntryId::ROOT, b"top", &entry, &[]).unwrap();
        write.insert(top, b"a", &Entry::default(), std::slice::from_ref(&key)).unwrap();
        write.insert(top, b"b", &Entry::default(), &[key]).unwrap();
        write.commit().unwrap();
        let mut txn = shared.env.write_txn().unwrap();
        spoil(&shared.tables, &mut txn);
        txn.commit().unwrap();
        let txn = shared.env.read_txn().unwrap();
        look(View::new(&txn, &shared, None))
    }

    fn row(key: &Key, id: u64) -> Vec<u8> {
        [key.as_bytes(), &EntryId(id).to_bytes()].concat()
    }

    #[test]
    fn a_sound_store_is_counted() {
        // Children 3, subtrees 3 + 1 + 1, the caller's 2.
        assert_eq!(after(|_, _| {}).unwrap(), Checked { entries: 3, postings: 10, commits: 1 });
    }

    #[test]
    fn a_spoilt_entry_is_told_with_its_name() {
        let [one, three] = [1, 3].map(|id| EntryId(id).to_bytes());
        let what = after(|t, w| t.entry.put(w, &three, b"spoiled").unwrap()).unwrap_err();
        assert!(what.contains("entry 3: ") && what.ends_with(" (b,Top)"), "{what}");
        let spoil = |t: &Tables, w: &mut RwTxn<'_>| {
            t.entry.put(w, &one, b"spoiled").unwrap();
            t.entry.put(w, &three, b"spoiled").unwrap();
        };
        let names = |view: View<'_>| [1, 3, 4].map(|id| view.dn_in_tree(EntryId(id)).unwrap());
        let expected = [Some("top".to_owned()), Some("b,top".to_owned()), None];
        assert_eq!(look_after(spoil, names), expected);
    }

    #[test]
    fn every_contradiction_is_found() {
        let one = &EntryId(1).to_bytes();
        let three = &EntryId(3).to_bytes();
        let found = |spoil: &dyn Fn(&Tables, &mut RwTxn<'_>)| {
            let what = after(spoil).unwrap_err();
            assert!(what.starts_with("the store is damaged: "), "{what}");
            what
        };
        found(&|t, w| assert!(t.entry.delete(w, three).unwrap()));
        found(&|t, w| t.entry.put(w, three, b"spoiled").unwrap());
        found(&|t, w| assert!(t.tree.delete(w, &[one, b"b".as_slice()].concat()).unwrap()));
        found(&|t, w| t.tree.put(w, &[one, b"c".as_slice()].concat(), three).unwrap());
        found(&|t, w| t.tree.put(w, &[three, b"c".as_slice()].concat(), three).unwrap());
        found(&|t, w| t.tree.put(w, b"short", three).unwrap());
        found(&|t, w| assert!(t.children.delete(w, one).unwrap()));
        found(&|t, w| t.children.put(w, one, &[0, 0, 0, 0, 0, 0, 0, 3]).unwrap());
        found(&|t, w| t.children.put(w, three, one).unwrap());
        found(&|t, w| t.meta.put(w, META_NEXT_ID, three).unwrap());
        let (below, all) = (Key::children(EntryId(1)), Key::subtree(EntryId(1)));
        found(&|t, w| assert!(t.posting.delete(w, &row(&below, 2)).unwrap()));
        found(&|t, w| assert!(t.posting.delete(w, &row(&all, 1)).unwrap()));
        found(&|t, w| t.posting.put(w, &row(&all, 1), &[1]).unwrap());
        found(&|t, w| t.posting.put(w, &row(&below, 1), b"").unwrap());
        found(&|t, w| t.posting.put(w, &row(&all, 3), b"").unwrap());
        let own = Key::new(b'e', &[b"x"]);
        found(&|t, w| t.posting.put(w, &row(&own, 2), &[1, 1]).unwrap());
        found(&|t, w| t.posting.put(w, &row(&own, 2), &[0]).unwrap());
        found(&|t, w| t.posting.put(w, &row(&own, 2), &[0x80]).unwrap());
        found(&|t, w| t.posting.put(w, b"e", b"").unwrap());
    }
}
