//! Names of entries in the feed's store.

use super::describer::Describer;
use crate::failure::{Failure, Result};
use crate::naming::{self, Place};
use crate::naming_contexts::load_contexts;
use keyway_codec::message::ResultCode;
use keyway_schema::EntryName;
use keyway_store::{EntryId, Store};

/// Whether there is room for an entry of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// This entry has the name.
    Taken(EntryId),
    /// None has it, and the entry above is there.
    Free,
    /// The entry above is not there, or no naming context has the name.
    Nowhere,
}

impl Describer {
    /// The entry of this name that is there now, if there is one.
    ///
    /// # Errors
    /// The store's.
    pub fn entry_of(&self, store: &Store, name: &EntryName) -> Result<Option<EntryId>> {
        match self.room_for(store, name)? {
            Room::Taken(id) => Ok(Some(id)),
            Room::Free | Room::Nowhere => Ok(None),
        }
    }

    /// Whether an entry of this name could be added now.
    ///
    /// # Errors
    /// The store's.
    pub fn room_for(&self, store: &Store, name: &EntryName) -> Result<Room> {
        let contexts = load_contexts(store, self.schema())
            .map_err(|why| Failure::new(ResultCode::Other, why.to_string()))?;
        let Place::Inside { context, below } = naming::place(&contexts, name) else {
            return Ok(Room::Nowhere);
        };
        let read = store.read()?;
        Ok(match naming::descend(read.view(), context, name, below)? {
            Some((id, 0)) => Room::Taken(id),
            Some((_, 1)) => Room::Free,
            None if below == 0 => Room::Free,
            Some(_) | None => Room::Nowhere,
        })
    }
}
