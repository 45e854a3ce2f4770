//! The readable rest of a damaged store.
//!
//! LMDB does not take part. Entries are found through the table's tree and, where a page of it is
//! spoilt, by a look at every page that neither a sound page nor the list of free pages leads to;
//! an entry is one whose checksum is right. An entry's name needs nothing but the entries above it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::path::Path;

use crate::disk::{DATA, LOCK};
use crate::format::meta_row;
use crate::lmdb::{META, VALUE};
use crate::lock::Lock;
use crate::pages::{Damage, Depth, Found, Pages, Place, Row};
use crate::values::{self, Row as ValueRow, ValueChunk};
use crate::{EntryId, EntryRef, Error, Large, OpenError, ValueKey, header, limits};

/// The readable part of a store that no process has open.
///
/// Takes memory for every entry (about 100 B and its relative name) and reads the whole file once.
pub struct Salvage {
    pages: Pages,
    entries: HashMap<EntryId, Saved>,
    /// Where the values of large attributes are.
    values: BTreeMap<ValueRow, Place>,
    /// Rows of the table of all else, as far as that is sound.
    meta: HashMap<Box<[u8]>, Place>,
    named: HashMap<EntryId, Named>,
    spoilt: HashMap<EntryId, String>,
    damage: Vec<Damage>,
    rows: Option<u64>,
    _lock: Lock,
}

struct Saved {
    parent: EntryId,
    rdn: Box<str>,
    place: Place,
}

struct Named {
    parent: EntryId,
    component: Vec<u8>,
}

/// Looks at every page of a store that no process has open, and says what is wrong with each.
///
/// Nothing is mapped or written but the lock; the contents of a page are compared by `View::check`
/// only.
///
/// # Errors
/// If it is in use or its data file cannot be read at all.
pub fn inspect(dir: &Path, damage: &mut dyn FnMut(Damage)) -> Result<(), OpenError> {
    let _lock = Lock::take(&dir.join(LOCK))?;
    let attempt = |e| OpenError::system("opening the store's data file", e);
    let file = File::open(dir.join(DATA)).map_err(attempt)?;
    let bytes = file.metadata().map_err(attempt)?.len();
    let Some(meta) = header::newest(&file).map_err(attempt)? else {
        damage(head("its head is not LMDB's"));
        return Ok(());
    };
    if meta.file_bytes().is_none() {
        damage(head("its head contradicts itself"));
        return Ok(());
    }
    Pages::new(file, &meta, bytes).look(&meta, Depth::All, damage);
    Ok(())
}

fn head(what: &str) -> Damage {
    Damage { table: None, page: 0, offset_bytes: 0, what: what.to_owned() }
}

impl Salvage {
    /// Reads what can be read.
    ///
    /// # Errors
    /// If it is in use or its data file cannot be opened.
    pub fn open(dir: &Path) -> Result<Salvage, OpenError> {
        let lock = Lock::take(&dir.join(LOCK))?;
        let attempt = |e| OpenError::system("opening the store's data file", e);
        let file = File::open(dir.join(DATA)).map_err(attempt)?;
        let bytes = file.metadata().map_err(attempt)?.len();
        let mut damage = Vec::new();
        if header::newest(&file).ok().flatten().is_none() {
            damage.push(head("a head is not LMDB's, and the other may be older"));
        }
        let is_whole = damage.is_empty();
        let meta = header::any(&file).ok().flatten();
        let meta = meta.unwrap_or_else(|| header::none(&file, bytes));
        let mut salvage = Salvage {
            pages: Pages::new(file, &meta, bytes),
            entries: HashMap::new(),
            values: BTreeMap::new(),
            meta: HashMap::new(),
            named: HashMap::new(),
            spoilt: HashMap::new(),
            damage,
            rows: None,
            _lock: lock,
        };
        salvage.read_all(&meta);
        // The other head may be that of an older state.
        salvage.rows = salvage.rows.filter(|_| is_whole);
        Ok(salvage)
    }

    fn read_all(&mut self, meta: &header::Meta) {
        let mut damage = std::mem::take(&mut self.damage);
        let (mut rows, mut names, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (name, root) in self.pages.open(meta, &mut |found| damage.push(found)) {
            if name == "entry" {
                self.rows = Some(root.rows);
            }
            self.pages.walk(&name, &root, Depth::All, &mut |found| match found {
                Found::Row(row) if name == "entry" => rows.extend(candidate(&row)),
                Found::Row(row) if name == VALUE => values.extend(values_of(&row)),
                Found::Row(row) if name == META => {
                    self.meta.insert(row.key.into(), row.place);
                }
                Found::Row(row) if name == "tree" => {
                    let parent = row.key.get(..8).and_then(EntryId::from_bytes);
                    let component = row.key.get(8..).unwrap_or_default().to_vec();
                    names.extend(parent.map(|parent| (Named { parent, component }, row.place)));
                }
                Found::Row(_) => {}
                Found::Damage(found) => damage.push(found),
            });
        }
        for (named, place) in names {
            let id = self.pages.value(place).ok();
            if let Some(id) = id.and_then(|id| EntryId::from_bytes(&id)) {
                self.named.insert(id, named);
            }
        }
        for (id, place) in rows {
            self.take(id, place, true);
        }
        self.take_values(values);
        if !damage.is_empty() {
            let (mut stray, mut values) = (Vec::new(), Vec::new());
            self.pages.stray_rows(&mut |row| {
                stray.extend(candidate(&row));
                values.extend(values_of(&row));
            });
            for (id, place) in stray {
                self.take(id, place, false);
            }
            self.take_values(values);
        }
        self.damage = damage;
    }

    /// Keeps an entry if it is one. A stray row that is not an entry is not known to be a loss.
    fn take(&mut self, id: EntryId, place: Place, is_row: bool) {
        if self.entries.contains_key(&id) {
            return;
        }
        let bytes = self.pages.value(place);
        let why = match bytes.as_deref().map(|bytes| EntryRef::decode(id, bytes)) {
            Ok(Ok(entry)) => {
                let (parent, rdn) = (entry.parent(), entry.rdn().into());
                self.entries.insert(id, Saved { parent, rdn, place });
                self.spoilt.remove(&id);
                return;
            }
            Ok(Err(why)) => why.to_string(),
            Err(why) => why.to_string(),
        };
        if is_row {
            self.spoilt.insert(id, why);
        }
    }

    /// Keeps rows of values whose checksums are right.
    fn take_values(&mut self, found: Vec<(ValueRow, Place)>) {
        for (row, place) in found {
            if !self.values.contains_key(&row)
                && let Ok(bytes) = self.pages.value(place)
                && ValueChunk::decode(&row.to_bytes(), &bytes).is_ok()
            {
                self.values.insert(row, place);
            }
        }
    }

    /// The values of a large attribute that can be read; the entry says how many there should be.
    ///
    /// # Errors
    /// The system's.
    pub fn values(&self, id: EntryId, large: &Large<'_>) -> Result<Vec<Vec<u8>>, Error> {
        let first = ValueRow { id, slot: large.slot, from: ValueKey::LEAST };
        let rows = self.values.range(first..);
        let rows = rows.take_while(|(row, _)| (row.id, row.slot) == (id, large.slot));
        let mut values = BTreeMap::new();
        for (row, place) in rows {
            let bytes = self.pages.value(*place);
            let bytes = bytes.map_err(|e| Error::system("reading values of an entry", e))?;
            // It was read before. A stray row may be older than a regular one.
            for (key, value) in ValueChunk::decode(&row.to_bytes(), &bytes).unwrap_or_default() {
                values.entry(key).or_insert_with(|| value.to_vec());
            }
        }
        Ok(values.into_values().collect())
    }

    /// The row of this name that [`crate::View::meta_get`] would return, if it can be read.
    pub fn meta(&self, name: &str) -> Option<Vec<u8>> {
        self.pages.value(*self.meta.get(meta_row(name).as_slice())?).ok()
    }

    /// The faults of the file's pages.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Entries that can be read, parents before their children.
    pub fn entries(&self) -> Vec<EntryId> {
        let mut ids: Vec<_> = self.entries.keys().map(|&id| (self.above(id).len(), id)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// The entries above, the nearest first, as far as they are known.
    pub fn above(&self, id: EntryId) -> Vec<EntryId> {
        let mut above = Vec::new();
        let mut at = self.parent(id);
        while let Some(parent) = at.filter(|&parent| parent != EntryId::ROOT)
            && above.len() <= limits::DEPTH_LEVELS_MAX
        {
            above.push(parent);
            at = self.parent(parent);
        }
        above
    }

    /// The entry above, if it is known; [`EntryId::ROOT`] above a topmost one.
    pub fn parent(&self, id: EntryId) -> Option<EntryId> {
        let saved = self.entries.get(&id).map(|saved| saved.parent);
        saved.or_else(|| self.named.get(&id).map(|named| named.parent))
    }

    /// The relative name of an entry that can be read.
    pub fn rdn(&self, id: EntryId) -> Option<&str> {
        self.entries.get(&id).map(|saved| &*saved.rdn)
    }

    /// The component by which the tree names an entry.
    pub fn component(&self, id: EntryId) -> Option<&[u8]> {
        self.named.get(&id).map(|named| named.component.as_slice())
    }

    /// The stored form of an entry that can be read, for [`EntryRef::decode`].
    ///
    /// # Errors
    /// The system's; [`Error::NotFound`] if there is none.
    pub fn record(&self, id: EntryId) -> Result<Vec<u8>, Error> {
        let saved = self.entries.get(&id).ok_or(Error::NotFound)?;
        self.pages.value(saved.place).map_err(|e| Error::system("reading an entry", e))
    }

    /// Entries that are known to have been there and cannot be read, ascending.
    pub fn lost(&self) -> Vec<EntryId> {
        let parents = self.entries.values().map(|saved| saved.parent);
        let mut known: HashSet<_> = self.spoilt.keys().copied().chain(parents).collect();
        // Where every entry was read, a name of another one is a name that was spoilt.
        if self.rows != Some(self.entries.len() as u64) {
            known.extend(self.named.keys());
        }
        let is_lost = |id: &EntryId| *id != EntryId::ROOT && !self.entries.contains_key(id);
        let mut lost: Vec<_> = known.into_iter().filter(is_lost).collect();
        lost.sort_unstable();
        lost
    }

    /// Why an entry is lost.
    pub fn why(&self, id: EntryId) -> &str {
        self.spoilt.get(&id).map_or("the page that held it cannot be read", String::as_str)
    }

    /// How many entries there should be; `None` if that cannot be read.
    pub fn expected(&self) -> Option<u64> {
        self.rows
    }
}

/// A possible row of the table of entries.
fn candidate(row: &Row<'_>) -> Option<(EntryId, Place)> {
    let id = EntryId::from_bytes(row.key)?;
    let fits = row.place.bytes <= limits::RECORD_BYTES_MAX && id != EntryId::ROOT;
    fits.then_some((id, row.place))
}

/// A possible row of the table of values.
fn values_of(row: &Row<'_>) -> Option<(ValueRow, Place)> {
    if row.key.len() != values::ROW_BYTES || row.place.bytes > limits::RECORD_BYTES_MAX {
        return None;
    }
    Some((ValueRow::parse(row.key)?, row.place))
}
