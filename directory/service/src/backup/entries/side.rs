//! One of two states of a directory: as the backup has it, or as it is now.

use crate::changing::StoredEntry;
use crate::offline;
use keyway_host::failure::Failure;
use keyway_schema::operational::ENTRY_UUID;
use keyway_schema::{EntryName, Schema};
use keyway_server::{Describer, Room};
use keyway_store::{EntryId, EntryRef, Error, Key, Names, Store};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// The store of a data folder, read by its own schema. Each look is one of its own at the store, so that no page is
/// held for long.
pub struct Side {
    store: Store,
    /// Knows what its schema says of attributes.
    pub describer: Describer,
}

impl Side {
    /// Opens a folder's store, also while a server serves from it.
    ///
    /// # Errors
    /// If there is none, or its schema is not understood.
    pub fn open(folder: &Path) -> Result<Side, Failure> {
        let store = offline::store_to_read(folder)?;
        let read = store.read().map_err(|why| unreadable(&why))?;
        let describer = Describer::new(read.view(), false).map_err(|why| unreadable(&why))?;
        drop(read);
        Ok(Side { store, describer })
    }

    /// Its schema.
    pub fn schema(&self) -> &Schema {
        self.describer.schema()
    }

    /// Understands a DN.
    ///
    /// # Errors
    /// If it is none.
    pub fn name(&self, dn: &str) -> Result<EntryName, Failure> {
        EntryName::parse(self.schema(), dn).map_err(Failure::usage)
    }

    /// Whether an entry has this name, or could be added with it.
    ///
    /// # Errors
    /// The store's.
    pub fn room(&self, name: &EntryName) -> Result<Room, Failure> {
        self.describer.room_for(&self.store, name).map_err(|why| unreadable(&why))
    }

    /// An entry that was just found.
    ///
    /// # Errors
    /// The store's; if it is gone already.
    pub fn entry(&self, id: EntryId) -> Result<StoredEntry, Failure> {
        let gone = || {
            Failure::new(
                "an entry was deleted while it was compared; nothing was changed, try again",
            )
        };
        StoredEntry::load(&self.store, id)?.ok_or_else(gone)
    }

    /// The `entryUUID` of an entry, in small letters; `None` if it has none.
    ///
    /// # Errors
    /// The store's.
    pub fn uuid(&self, id: EntryId) -> Result<Option<String>, Failure> {
        let read = self.store.read().map_err(|why| unreadable(&why))?;
        let entry = read.view().entry(id).map_err(|why| unreadable(&why))?;
        Ok(entry.and_then(|entry| uuid_of(&entry)))
    }

    /// An entry's DN and `entryUUID`, and the entries one level below.
    ///
    /// # Errors
    /// The store's.
    pub fn node(&self, id: EntryId) -> Result<Node, Failure> {
        let found = || -> Result<Option<Node>, Error> {
            let read = self.store.read()?;
            let view = read.view();
            let Some(entry) = view.entry(id)? else { return Ok(None) };
            let below = view.postings(&Key::children(id), EntryId::ROOT)?;
            let below = below.collect::<Result<Vec<EntryId>, Error>>()?;
            let dn = view.dn_of(&entry, &mut Names::new())?;
            Ok(Some(Node { dn, uuid: uuid_of(&entry), below }))
        };
        let node = found().map_err(|why| unreadable(&why))?;
        node.ok_or_else(|| Failure::new("the tree of entries is damaged: one is missing in it"))
    }

    /// How many entries there are at this one and below.
    ///
    /// # Errors
    /// The store's.
    pub fn count(&self, top: EntryId) -> Result<u64, Failure> {
        let read = self.store.read().map_err(|why| unreadable(&why))?;
        let count = read.view().count_at_most(&Key::subtree(top), usize::MAX);
        count.map(|count| count as u64).map_err(|why| unreadable(&why))
    }

    /// The numbers and DNs of the entries that have one of these as `entryUUID`.
    ///
    /// # Errors
    /// The store's.
    pub fn find(
        &self,
        uuids: &HashSet<String>,
    ) -> Result<HashMap<String, (EntryId, String)>, Failure> {
        let mut found = HashMap::new();
        if uuids.is_empty() {
            return Ok(found);
        }
        let mut names = Names::new();
        self.each(|view, id, entry| {
            if let Some(uuid) = uuid_of(entry).filter(|uuid| uuids.contains(uuid)) {
                found.insert(uuid, (id, view.dn_of(entry, &mut names)?));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Calls with each entry; all of them are of one moment.
    ///
    /// # Errors
    /// The store's.
    pub fn each(
        &self,
        mut take: impl FnMut(keyway_store::View<'_>, EntryId, &EntryRef<'_>) -> Result<(), Error>,
    ) -> Result<(), Failure> {
        let mut all = || -> Result<(), Error> {
            let read = self.store.read()?;
            let view = read.view();
            for entry in view.entries(EntryId::ROOT)? {
                let (id, entry) = entry?;
                take(view, id, &entry)?;
            }
            Ok(())
        };
        all().map_err(|why| unreadable(&why))
    }
}

/// An entry's place in the tree.
pub struct Node {
    /// Its DN.
    pub dn: String,
    /// Its `entryUUID`.
    pub uuid: Option<String>,
    /// Those one level below.
    pub below: Vec<EntryId>,
}

fn uuid_of(entry: &EntryRef<'_>) -> Option<String> {
    let value = entry.values(ENTRY_UUID).next()?;
    Some(str::from_utf8(value).ok()?.to_ascii_lowercase())
}

fn unreadable(why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("cannot read the store: {why}"))
}
