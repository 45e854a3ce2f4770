//! A change of a virtual entry, checked and handed to its provider.

use super::entry::VirtualEntry;
use super::provider::{Modification, ModifiedAttribute, Placement, Provider, Reply};
use super::tree_name::VirtualTree;
use super::wanted::Wanted;
use crate::access::{Rights, Subject, View};
use crate::candidate::Candidate;
use crate::controls::RequestControls;
use crate::failure::unwilling;
use crate::failure::{Failure, Result};
use crate::log::Audit;
use crate::state::Snapshot;
use crate::write::{WriteDone, describe};
use keyway_codec::message::{ModifyRequest, ResultCode, Scope};
use keyway_schema::{EntryAttributes, EntryName};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A change that may be made.
pub(crate) struct Handover(Box<dyn FnOnce(Reply) + Send + Sync>);

/// A change that a client asks for, which may do such a thing somewhere in the tree.
pub(crate) struct Asked<'a> {
    snapshot: &'a Snapshot,
    rights: View,
    author: String,
    tree: VirtualTree,
    name: &'a EntryName,
    provider: Option<Arc<Provider>>,
}

impl Handover {
    /// Refuses a subject without this right, before it learns what there is.
    ///
    /// # Errors
    /// That, and controls that have no meaning here.
    pub fn asked<'a>(
        snapshot: &'a Snapshot,
        subject: &Subject,
        controls: &RequestControls<'_>,
        (tree, name): (VirtualTree, &'a EntryName),
        right: Rights,
    ) -> Result<Asked<'a>> {
        let rights = snapshot.permissions(subject, tree.place());
        if !rights.may_anywhere(right) {
            return Err(Failure::denied("change this"));
        }
        if controls.assertion.is_some()
            || controls.pre_read.is_some()
            || controls.post_read.is_some()
        {
            let text = "the controls for assertions and read entries do not work here";
            return Err(Failure::new(ResultCode::UnavailableCriticalExtension, text));
        }
        let author = subject.name().as_deref().unwrap_or_default().to_owned();
        let provider = snapshot.shared.provider(tree);
        Ok(Asked { snapshot, rights, author, tree, name, provider })
    }

    /// Hands it over; the answer comes later.
    pub fn submit(self, audit: Option<Audit>) -> oneshot::Receiver<Result<WriteDone>> {
        let (sender, receiver) = oneshot::channel();
        let reply = move |done: std::result::Result<(), String>| {
            if let (Ok(()), Some(audit)) = (&done, &audit) {
                audit.done_beside_the_store();
            }
            // Its client may be gone.
            drop(sender.send(done.map(|()| WriteDone::default()).map_err(unwilling)));
        };
        (self.0)(Box::new(reply));
        receiver
    }
}

impl Asked<'_> {
    /// To modify the entry.
    ///
    /// # Errors
    /// Why it cannot be done.
    pub fn modify(self, request: &ModifyRequest<'_>) -> Result<Handover> {
        let read_only = || unwilling(format!("what is in {} can only be read", self.tree.dn()));
        let provider = self.provider.clone().filter(|provider| provider.change.is_some());
        let provider = provider.ok_or_else(read_only)?;
        let entry = self.entry()?;
        let candidate = Candidate::unstored(self.snapshot, &entry.dn, &entry.attributes);
        let mut changes = Vec::new();
        for change in &request.changes {
            let attribute = describe(&self.snapshot.schema, &change.attribute.description)?;
            let attribute = attribute.canonical().into_owned();
            if !self.rights.may(Rights::WRITE, &attribute, &candidate)? {
                return Err(Failure::denied(format_args!("change attribute {attribute}")));
            }
            let values = change.attribute.values.iter().map(|value| value.to_vec()).collect();
            changes.push(ModifiedAttribute { operation: change.operation, attribute, values });
        }
        let modification = Modification { dn: entry.dn.clone(), changes };
        Ok(Handover(Box::new(move |reply| {
            if let Some(change) = &provider.change {
                change(modification, reply);
            }
        })))
    }

    /// To add the entry, with these attributes.
    ///
    /// # Errors
    /// Why it cannot be done.
    pub fn add(self, attributes: EntryAttributes) -> Result<Handover> {
        let provider = self.placing()?;
        let top = self.entry_of(&self.name.parent())?;
        let candidate = Candidate::unstored(self.snapshot, &top.dn, &top.attributes);
        if !self.rights.may_something(Rights::ADD, &candidate)? {
            return Err(Failure::denied("add entries here"));
        }
        if top.dn != self.tree.dn() {
            return Err(unwilling(format!("entries are added right below {}", self.tree.dn())));
        }
        if self.entry().is_ok() {
            let text = "an entry of this name is there already";
            return Err(Failure::new(ResultCode::EntryAlreadyExists, text));
        }
        let entry = VirtualEntry { dn: self.name.text(), attributes };
        let author = self.author;
        Ok(placement(provider, Placement::Add { author, entry }))
    }

    /// To delete the entry.
    ///
    /// # Errors
    /// Why it cannot be done.
    pub fn delete(self) -> Result<Handover> {
        let provider = self.placing()?;
        let entry = self.entry()?;
        let candidate = Candidate::unstored(self.snapshot, &entry.dn, &entry.attributes);
        if !self.rights.may_something(Rights::DELETE, &candidate)? {
            return Err(Failure::denied("delete this entry"));
        }
        if entry.dn == self.tree.dn() {
            return Err(unwilling("the server needs this entry"));
        }
        Ok(placement(provider, Placement::Delete { dn: entry.dn }))
    }

    fn placing(&self) -> Result<Arc<Provider>> {
        let provider = self.provider.clone().filter(|provider| provider.place.is_some());
        provider.ok_or_else(|| {
            unwilling(format!("the entries in {} cannot be added or deleted", self.tree.dn()))
        })
    }

    fn entry(&self) -> Result<VirtualEntry> {
        self.entry_of(self.name)
    }

    fn entry_of(&self, name: &EntryName) -> Result<VirtualEntry> {
        let entries = self.snapshot.virtual_tree(self.tree, &Wanted::new(name, Scope::Base, None));
        entries.find(name).cloned()
    }
}

fn placement(provider: Arc<Provider>, placement: Placement) -> Handover {
    Handover(Box::new(move |reply| {
        if let Some(place) = &provider.place {
            place(placement, reply);
        }
    }))
}
