//! Distinguished names, composed from the relative names on the way to the root.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::limits::{DEPTH_LEVELS_MAX, NAMES_ENTRIES_MAX};
use crate::read::{Stamp, View};
use crate::{EntryId, EntryRef, Error};

/// Names of inner entries seen so far, so that siblings do not walk to the root again.
///
/// May be kept across read transactions of one store: it empties itself when names have changed in between.
/// Holds at most [`NAMES_ENTRIES_MAX`] entries.
#[derive(Default, Debug)]
pub struct Names {
    /// A state in which all that is known is true.
    state: Option<Stamp>,
    /// How often names had changed before it, if it is a committed one.
    changes: Option<u64>,
    known: HashMap<EntryId, Arc<Name>, RandomState>,
}

#[derive(Debug)]
struct Name {
    dn: String,
    /// From the topmost entry down to, and including, the entry itself.
    path: Vec<EntryId>,
}

impl Names {
    /// An empty cache.
    pub fn new() -> Names {
        Names::default()
    }

    /// The name of `entry` (without its own relative name in the cache).
    pub(crate) fn dn(&mut self, view: View<'_>, entry: &EntryRef<'_>) -> Result<String, Error> {
        if entry.parent() == EntryId::ROOT {
            return Ok(entry.rdn().to_owned());
        }
        let parent = self.name(view, entry.parent())?;
        let mut dn = String::with_capacity(entry.rdn().len() + 1 + parent.dn.len());
        dn.push_str(entry.rdn());
        dn.push(',');
        dn.push_str(&parent.dn);
        Ok(dn)
    }

    /// The name of the entry `id`; empty for the root.
    pub(crate) fn dn_of(&mut self, view: View<'_>, id: EntryId) -> Result<String, Error> {
        Ok(self.name(view, id)?.dn.clone())
    }

    /// The entries above `entry`, topmost first.
    pub(crate) fn ancestors(
        &mut self,
        view: View<'_>,
        entry: &EntryRef<'_>,
    ) -> Result<Vec<EntryId>, Error> {
        if entry.parent() == EntryId::ROOT {
            return Ok(Vec::new());
        }
        Ok(self.name(view, entry.parent())?.path.clone())
    }

    /// Whether one of these is above `entry`.
    pub(crate) fn is_below(
        &mut self,
        view: View<'_>,
        entry: &EntryRef<'_>,
        above: &[EntryId],
    ) -> Result<bool, Error> {
        if entry.parent() == EntryId::ROOT {
            return Ok(false);
        }
        let path = &self.name(view, entry.parent())?.path;
        Ok(path.iter().any(|id| above.contains(id)))
    }

    fn name(&mut self, view: View<'_>, id: EntryId) -> Result<Arc<Name>, Error> {
        self.forget_if_changed(view)?;
        let mut unknown = Vec::new();
        let mut at = id;
        let mut name = loop {
            if at == EntryId::ROOT {
                break Arc::new(Name { dn: String::new(), path: Vec::new() });
            }
            if let Some(known) = self.known.get(&at) {
                break Arc::clone(known);
            }
            if unknown.len() == DEPTH_LEVELS_MAX {
                return Err(Error::damaged(format!("entry {id} has no end of parents")));
            }
            let Some(entry) = view.entry(at)? else {
                return Err(Error::damaged(format!("entry {at} is missing above entry {id}")));
            };
            unknown.push((at, entry));
            at = entry.parent();
        };
        if self.known.len() + unknown.len() > NAMES_ENTRIES_MAX {
            self.known.clear();
        }
        for (id, entry) in unknown.into_iter().rev() {
            name = Arc::new(below(&name, id, entry.rdn()));
            self.known.insert(id, Arc::clone(&name));
        }
        Ok(name)
    }

    fn forget_if_changed(&mut self, view: View<'_>) -> Result<(), Error> {
        let now = view.stamp();
        if self.state == Some(now) {
            return Ok(());
        }
        let changes = match now {
            Stamp::Committed(_) => Some(view.name_changes()?),
            Stamp::Pending(_) => None,
        };
        if changes.is_none() || changes != self.changes {
            self.known.clear();
        }
        (self.state, self.changes) = (Some(now), changes);
        Ok(())
    }
}

impl View<'_> {
    /// The distinguished name of `id`, composed from the relative names up to the root.
    pub fn dn(self, id: EntryId, names: &mut Names) -> Result<Option<String>, Error> {
        self.entry(id)?.map(|entry| names.dn(self, &entry)).transpose()
    }

    /// The distinguished name of an entry whose record need not be readable: parts of it that cannot be read are told
    /// as they are compared. `None` if the tree does not have it. Takes as long as reading the tree does.
    ///
    /// # Errors
    /// The store's.
    pub fn dn_in_tree(self, id: EntryId) -> Result<Option<String>, Error> {
        let (mut dn, mut at) = (Vec::new(), id);
        for _ in 0..DEPTH_LEVELS_MAX {
            let Some((parent, component)) = self.place_in_tree(at)? else { return Ok(None) };
            dn.push(component);
            if parent == EntryId::ROOT {
                return Ok(Some(dn.join(",")));
            }
            match Names::new().dn_of(self, parent) {
                Err(Error::Damaged { .. }) => at = parent,
                above => {
                    dn.push(above?);
                    return Ok(Some(dn.join(",")));
                }
            }
        }
        Ok(None)
    }

    /// The entry above and the component, by the row that leads to an entry.
    fn place_in_tree(self, id: EntryId) -> Result<Option<(EntryId, String)>, Error> {
        let reading = |e| self.shared.error("reading the tree", e);
        for row in self.tables.tree.iter(self.txn).map_err(reading)? {
            let (row, found) = row.map_err(reading)?;
            if let (true, Some((parent, component))) =
                (found == id.to_bytes(), row.split_at_checked(size_of::<EntryId>()))
            {
                let component = String::from_utf8_lossy(component).into_owned();
                return Ok(EntryId::from_bytes(parent).map(|parent| (parent, component)));
            }
        }
        Ok(None)
    }

    /// The distinguished name of an entry that was read through this view.
    pub fn dn_of(self, entry: &EntryRef<'_>, names: &mut Names) -> Result<String, Error> {
        names.dn(self, entry)
    }

    /// The entries above one that was read through this view, topmost first, itself not included.
    pub fn ancestors_of(
        self,
        entry: &EntryRef<'_>,
        names: &mut Names,
    ) -> Result<Vec<EntryId>, Error> {
        names.ancestors(self, entry)
    }

    /// Whether one of these entries is above one that was read through this view.
    pub fn is_below(
        self,
        entry: &EntryRef<'_>,
        above: &[EntryId],
        names: &mut Names,
    ) -> Result<bool, Error> {
        names.is_below(self, entry, above)
    }
}

fn below(parent: &Name, id: EntryId, rdn: &str) -> Name {
    let dn = match parent.dn.is_empty() {
        true => rdn.to_owned(),
        false => format!("{rdn},{}", parent.dn),
    };
    let path = parent.path.iter().copied().chain([id]).collect();
    Name { dn, path }
}
