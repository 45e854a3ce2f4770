//! What operations have found out, and the next ones would find out again: the names of inner entries, and which
//! entries those are.
//!
//! There is no event on which any of it is forgotten. What follows from a schema is kept with that schema, what
//! follows from a state of the store with the number of that state, and neither is used with another one.

use crate::failure::Result;
use crate::limits::KNOWN_PARENTS_MAX;
use crate::naming::{self, NamingContext};
use keyway_codec::dn::Rdn;
use keyway_codec::limits::DN_RDNS_MAX;
use keyway_lock::Unpoisoned;
use keyway_schema::limits::NAME_BYTES_MAX;
use keyway_schema::{EntryName, NameError, NamePart, Schema};
use keyway_store::{EntryId, Names, Read};
use std::cell::{RefCell, RefMut};
use std::sync::{Arc, Mutex};

/// What operations have found out. It is lent to one at a time.
pub(crate) struct Learnt {
    /// The names of inner entries, as the store has them.
    pub names: RefCell<Names>,
    parents: RefCell<Parents>,
}

impl Learnt {
    /// Nothing yet.
    pub fn new(schema: &Arc<Schema>) -> Learnt {
        Learnt { names: RefCell::default(), parents: RefCell::new(Parents::new(schema)) }
    }

    /// The names that this schema has understood.
    pub fn parents(&self, schema: &Arc<Schema>) -> RefMut<'_, Parents> {
        let mut parents = self.parents.borrow_mut();
        if !Arc::ptr_eq(&parents.schema, schema) {
            *parents = Parents::new(schema);
        }
        parents
    }
}

/// Names of entries below which others were asked for.
pub(crate) struct Parents {
    schema: Arc<Schema>,
    known: Vec<Arc<Parent>>,
    /// The one that gives way to the next.
    oldest: usize,
}

struct Parent {
    text: Box<str>,
    name: EntryName,
    found: Mutex<Option<Found>>,
}

/// The entry of a name.
struct Found {
    /// In which state of the store it has it.
    version: u64,
    context: Arc<NamingContext>,
    id: EntryId,
}

/// A name that was understood.
pub struct KnownName {
    name: EntryName,
    /// The name itself or the one above it, if that is kept.
    parent: Option<Arc<Parent>>,
}

impl Parents {
    fn new(schema: &Arc<Schema>) -> Parents {
        Parents { schema: schema.clone(), known: Vec::new(), oldest: 0 }
    }

    /// Understands the DN of an entry below which others are asked for.
    ///
    /// # Errors
    /// As [`EntryName::parse`].
    pub fn parent(&mut self, dn: &str) -> std::result::Result<KnownName, NameError> {
        let parent = self.kept(dn)?;
        Ok(KnownName { name: parent.name.clone(), parent: Some(parent) })
    }

    /// Understands the DN of an entry that may have siblings which are asked for.
    ///
    /// # Errors
    /// As [`EntryName::parse`].
    pub fn child(&mut self, dn: &str) -> std::result::Result<KnownName, NameError> {
        match self.split(dn) {
            Some(known) => Ok(known),
            // It has no parent, or something is wrong with it, which is said of the whole.
            None => Ok(KnownName { name: EntryName::parse(&self.schema, dn)?, parent: None }),
        }
    }

    fn split(&mut self, dn: &str) -> Option<KnownName> {
        if dn.len() > NAME_BYTES_MAX {
            return None;
        }
        let (first, above) = naming::split(dn)?;
        let first = NamePart::new(&self.schema, &Rdn::parse(first).ok()?).ok()?;
        let parent = self.kept(above).ok()?;
        let above = &parent.name.parts;
        // Nothing behind a comma is no name.
        if !(1..DN_RDNS_MAX).contains(&above.len()) {
            return None;
        }
        let mut parts = Vec::with_capacity(1 + above.len());
        parts.push(Arc::new(first));
        parts.extend_from_slice(above);
        Some(KnownName { name: EntryName { parts }, parent: Some(parent) })
    }

    fn kept(&mut self, dn: &str) -> std::result::Result<Arc<Parent>, NameError> {
        if let Some(parent) = self.known.iter().find(|parent| *parent.text == *dn) {
            return Ok(parent.clone());
        }
        let name = EntryName::parse(&self.schema, dn)?;
        let parent = Arc::new(Parent { text: dn.into(), name, found: Mutex::default() });
        match self.known.get_mut(self.oldest) {
            Some(place) => *place = parent.clone(),
            None => self.known.push(parent.clone()),
        }
        self.oldest = (self.oldest + 1) % KNOWN_PARENTS_MAX;
        Ok(parent)
    }
}

impl KnownName {
    /// The name.
    pub fn name(&self) -> &EntryName {
        &self.name
    }

    /// The name alone.
    pub(crate) fn into_name(self) -> EntryName {
        self.name
    }

    /// The entry of this name, which has `below` RDNs under a context's top; `None` if there is none.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn find(
        &self,
        read: &Read,
        context: &Arc<NamingContext>,
        below: usize,
    ) -> Result<Option<EntryId>> {
        let more = |parent: &Parent| self.name.parts.len() - parent.name.parts.len();
        // The top of a context has nothing above it.
        match &self.parent {
            Some(parent) if more(parent) <= below => {
                let Some(id) = parent.id(read, context, below - more(parent))? else {
                    return Ok(None);
                };
                match (more(parent), self.name.parts.first()) {
                    (0, _) | (_, None) => Ok(Some(id)),
                    (_, Some(part)) => match &part.component {
                        Some(component) => Ok(read.view().child(id, component)?),
                        None => Ok(None),
                    },
                }
            }
            _ => whole(&self.name, read, context, below),
        }
    }
}

impl Parent {
    /// Its entry, looked up once in each state of the store.
    fn id(
        &self,
        read: &Read,
        context: &Arc<NamingContext>,
        below: usize,
    ) -> Result<Option<EntryId>> {
        let version = read.version();
        let mut found = self.found.lock().unpoisoned();
        if let Some(found) = &*found
            && found.version == version
            && Arc::ptr_eq(&found.context, context)
        {
            return Ok(Some(found.id));
        }
        let id = whole(&self.name, read, context, below)?;
        *found = id.map(|id| Found { version, context: context.clone(), id });
        Ok(id)
    }
}

/// Goes down to the entry of a name from the top of its context.
fn whole(
    name: &EntryName,
    read: &Read,
    context: &NamingContext,
    below: usize,
) -> Result<Option<EntryId>> {
    let reached = naming::descend(read.view(), context, name, below)?;
    Ok(reached.filter(|(_, left)| *left == 0).map(|(id, _)| id))
}
