//! From DNs to entries, many at a time.

use crate::failure::{Failure, Result};
use crate::naming::{self, NamingContext, Place};
use crate::state::Snapshot;
use keyway_codec::dn::Rdn;
use keyway_codec::message::ResultCode;
use keyway_schema::{EntryName, NamePart};
use keyway_store::{EntryId, View};
use std::sync::Arc;

/// Finds the entries that values name; those of a group mostly lie below one entry, which is
/// looked for once.
pub(super) struct Resolver<'a> {
    snapshot: &'a Snapshot,
    view: View<'a>,
    contexts: Arc<[Arc<NamingContext>]>,
    /// The part that followed the last name's first RDN, and which entry that is.
    parent: Option<(String, EntryId)>,
}

impl<'a> Resolver<'a> {
    pub fn new(snapshot: &'a Snapshot, view: View<'a>) -> Self {
        Resolver { snapshot, view, contexts: snapshot.shared.contexts(), parent: None }
    }

    /// The entry of a name; `None` if there is none, or it is no name.
    ///
    /// # Errors
    /// The store's.
    pub fn id(&mut self, dn: &[u8]) -> Result<Option<EntryId>> {
        let Ok(dn) = std::str::from_utf8(dn) else { return Ok(None) };
        let Some((first, above)) = naming::split(dn) else { return self.whole(dn) };
        let parent = match &self.parent {
            Some((text, id)) if text == above => Some(*id),
            _ => self.whole(above)?.inspect(|id| self.parent = Some((above.to_owned(), *id))),
        };
        // The top of a naming context has no entry above it.
        let Some(parent) = parent else { return self.whole(dn) };
        let Ok(rdn) = Rdn::parse(first) else { return Ok(None) };
        let Ok(part) = NamePart::new(&self.snapshot.schema, &rdn) else { return Ok(None) };
        match part.component {
            Some(component) => Ok(self.view.child(parent, &component)?),
            None => Ok(None),
        }
    }

    fn whole(&self, dn: &str) -> Result<Option<EntryId>> {
        let Ok(name) = EntryName::parse(&self.snapshot.schema, dn) else { return Ok(None) };
        find(self.view, &self.contexts, &name)
    }
}

fn find(
    view: View<'_>,
    contexts: &[Arc<NamingContext>],
    name: &EntryName,
) -> Result<Option<EntryId>> {
    let Place::Inside { context, below } = naming::place(contexts, name) else { return Ok(None) };
    match naming::resolve(view, context, name, below) {
        Ok(id) => Ok(Some(id)),
        Err(Failure { code: ResultCode::NoSuchObject, .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl Snapshot {
    /// The entry of a name, if there is one.
    ///
    /// # Errors
    /// The store's.
    pub fn entry_named(&self, view: View<'_>, name: &EntryName) -> Result<Option<EntryId>> {
        find(view, &self.shared.contexts(), name)
    }
}
