//! The naming contexts of users: kept in the store, one more added.

use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::feed::{ChangeNote, Reason};
use crate::limits::NAMING_CONTEXTS_MAX;
use crate::naming::{self, NamingContext, SYSTEM_DN};
use crate::open_error::OpenError;
use keyway_codec::message::ResultCode;
use keyway_lock::Unpoisoned;
use keyway_schema::{EntryName, Schema};
use keyway_store::Store;
use std::sync::Arc;

/// The row of the store's meta table that has them.
pub(crate) const META_CONTEXTS: &str = "naming-contexts";

impl Directory {
    /// Holds the tree from this DN downwards from now on. Its top entry is to be added.
    ///
    /// Blocks until it is on the disk.
    ///
    /// # Errors
    /// `entryAlreadyExists` if a naming context is or holds this DN, or lies below it;
    /// `invalidDNSyntax`, `unwillingToPerform`, or the store's.
    pub fn add_naming_context(&self, dn: &str) -> Result<()> {
        let snapshot = &*self.snapshot();
        let name = naming::of_context(&snapshot.schema, dn)?;
        // Held over the commit, so that of two contexts added at once none is forgotten. Those who
        // only read do not wait.
        let _turn = snapshot.shared.adding_context.lock().unpoisoned();
        let held = snapshot.shared.contexts();
        let within = |one: &NamingContext| name.is_within(&one.name) || one.name.is_within(&name);
        if let Some(other) = held.iter().find(|one| within(one)) {
            let text = format!("\"{dn}\" overlaps the naming context \"{}\"", other.text);
            return Err(Failure::new(ResultCode::EntryAlreadyExists, text));
        }
        if held.len() >= NAMING_CONTEXTS_MAX {
            let text = format!("there are {NAMING_CONTEXTS_MAX} naming contexts already");
            return Err(Failure::new(ResultCode::AdminLimitExceeded, text));
        }
        let mut contexts = held.to_vec();
        contexts.push(Arc::new(NamingContext::new(name)));
        let row = contexts_row(&contexts);
        let note = ChangeNote::own(Reason::Server, self.now()).encode();
        self.store.write_now(move |write| {
            write.note(&note);
            Ok::<_, Failure>(write.meta_put(META_CONTEXTS, &row)?)
        })?;
        *snapshot.shared.contexts.write().unpoisoned() = contexts.into();
        Ok(())
    }
}

impl Directory {
    /// Whether entries of this name are made by the server itself and not stored: each server has its own.
    pub fn is_virtual(&self, dn: &str) -> bool {
        let snapshot = self.snapshot();
        let Ok(name) = snapshot.entry_name(dn) else { return false };
        let contexts = snapshot.shared.contexts();
        matches!(naming::place(&contexts, name.name()), naming::Place::Virtual(_))
    }
}

/// The contexts that a store holds; the server's own is always the first.
pub(crate) fn load_contexts(
    store: &Store,
    schema: &Schema,
) -> Result<Vec<Arc<NamingContext>>, OpenError> {
    let read = store.read()?;
    let row = read.view().meta_get(META_CONTEXTS)?.unwrap_or_default();
    let text = str::from_utf8(row)
        .map_err(|_| OpenError::Store("the list of naming contexts is not text".into()))?;
    let stored = text.split('\0').filter(|text| !text.is_empty());
    std::iter::once(SYSTEM_DN)
        .chain(stored)
        .map(|text| Ok(Arc::new(NamingContext::new(EntryName::parse(schema, text)?))))
        .collect()
}

fn contexts_row(contexts: &[Arc<NamingContext>]) -> Vec<u8> {
    let stored = contexts.iter().filter(|context| !context.is_system);
    // A NUL is always escaped in a DN's text form.
    stored.map(|context| context.text.as_str()).collect::<Vec<_>>().join("\0").into_bytes()
}
