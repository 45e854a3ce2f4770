//! An entry that is looked at: one from the store, or one made up (root DSE, subschema, an entry
//! while it is changed).

use crate::failure::Result;
use crate::operational::{Computed, SUBSCHEMA_DN};
use crate::schema::Attributes;
use keyway_store::{EntryId, EntryRef, Names, Values, View};
use std::cell::{OnceCell, RefCell};

/// Where an entry's attributes are.
#[derive(Clone, Copy)]
enum Body<'t> {
    Stored(EntryRef<'t>),
    Made(&'t Attributes),
}

/// An entry with all that can be asked of it.
pub struct Candidate<'t, 'n> {
    id: EntryId,
    body: Body<'t>,
    /// The tree it is in; made up entries have no place in it.
    tree: Option<(View<'t>, &'n RefCell<Names>)>,
    dn: OnceCell<String>,
}

impl<'t, 'n> Candidate<'t, 'n> {
    /// An entry of the store.
    pub fn stored(
        id: EntryId,
        entry: EntryRef<'t>,
        view: View<'t>,
        names: &'n RefCell<Names>,
    ) -> Self {
        Candidate { id, body: Body::Stored(entry), tree: Some((view, names)), dn: OnceCell::new() }
    }

    /// An entry that is in no tree and has nothing that is worked out.
    pub fn made(dn: &str, attributes: &'t Attributes) -> Self {
        let dn = OnceCell::from(dn.to_owned());
        Candidate { id: EntryId::ROOT, body: Body::Made(attributes), tree: None, dn }
    }

    /// Its number; [`EntryId::ROOT`] if it is made up.
    pub fn id(&self) -> EntryId {
        self.id
    }

    /// Its stored attributes, in the order in which they were written.
    pub fn attributes(&self) -> BodyAttributes<'t> {
        match self.body {
            Body::Stored(entry) => BodyAttributes::Stored(entry.attributes()),
            Body::Made(attributes) => BodyAttributes::Made(attributes.iter()),
        }
    }

    /// Its DN.
    ///
    /// # Errors
    /// The store's.
    pub fn dn(&self) -> Result<&str> {
        if let Some(dn) = self.dn.get() {
            return Ok(dn);
        }
        let dn = match (&self.body, self.tree) {
            (Body::Stored(entry), Some((view, names))) => {
                view.dn_of(entry, &mut names.borrow_mut())?
            }
            _ => String::new(),
        };
        Ok(self.dn.get_or_init(|| dn))
    }

    /// The value of an attribute that is worked out; made up entries have none.
    ///
    /// # Errors
    /// The store's.
    pub fn computed(&self, which: Computed) -> Result<Option<Vec<u8>>> {
        let Some((view, _)) = self.tree else { return Ok(None) };
        let value = match which {
            Computed::EntryDn => self.dn()?.to_owned(),
            Computed::HasSubordinates => {
                let has = view.child_count(self.id)? > 0;
                if has { "TRUE".into() } else { "FALSE".into() }
            }
            Computed::NumSubordinates => view.child_count(self.id)?.to_string(),
            Computed::SubschemaSubentry => SUBSCHEMA_DN.to_owned(),
        };
        Ok(Some(value.into_bytes()))
    }
}

/// Iterator over the attributes of an entry.
pub enum BodyAttributes<'t> {
    /// Of an entry of the store.
    Stored(keyway_store::Attributes<'t>),
    /// Of a made up one.
    Made(std::slice::Iter<'t, (String, Vec<Vec<u8>>)>),
}

impl<'t> Iterator for BodyAttributes<'t> {
    type Item = (&'t str, BodyValues<'t>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            BodyAttributes::Stored(attributes) => {
                attributes.next().map(|(name, values)| (name, BodyValues::Stored(values)))
            }
            BodyAttributes::Made(attributes) => attributes
                .next()
                .map(|(name, values)| (name.as_str(), BodyValues::Made(values.iter()))),
        }
    }
}

/// Iterator over the values of one attribute.
#[derive(Clone)]
pub enum BodyValues<'t> {
    /// Of an entry of the store.
    Stored(Values<'t>),
    /// Of a made up one.
    Made(std::slice::Iter<'t, Vec<u8>>),
}

impl<'t> Iterator for BodyValues<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        match self {
            BodyValues::Stored(values) => values.next(),
            BodyValues::Made(values) => values.next().map(Vec::as_slice),
        }
    }
}
