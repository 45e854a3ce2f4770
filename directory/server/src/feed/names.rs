//! Names of entries in the feed's store.

use super::describer::Describer;
use crate::failure::{Failure, Result};
use crate::naming::{self, Place};
use crate::naming_contexts::load_contexts;
use keyway_codec::message::ResultCode;
use keyway_schema::EntryName;
use keyway_store::{EntryId, Store};

impl Describer {
    /// The entry of this name that is there now, if there is one.
    ///
    /// # Errors
    /// The store's.
    pub fn entry_of(&self, store: &Store, name: &EntryName) -> Result<Option<EntryId>> {
        let contexts = load_contexts(store, self.schema())
            .map_err(|why| Failure::new(ResultCode::Other, why.to_string()))?;
        let Place::Inside { context, below } = naming::place(&contexts, name) else {
            return Ok(None);
        };
        let read = store.read()?;
        let found = naming::descend(read.view(), context, name, below)?;
        Ok(found.filter(|(_, left)| *left == 0).map(|(id, _)| id))
    }
}
