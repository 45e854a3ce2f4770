//! A change of a virtual entry, checked and handed to its provider.

use super::provider::{Modification, ModifiedAttribute, Provider};
use super::tree_name::VirtualTree;
use super::wanted::Wanted;
use crate::access::{Rights, Subject};
use crate::candidate::Candidate;
use crate::controls::RequestControls;
use crate::failure::unwilling;
use crate::failure::{Failure, Result};
use crate::log::Audit;
use crate::state::Snapshot;
use crate::write::{WriteDone, describe};
use keyway_codec::message::{ModifyRequest, ResultCode, Scope};
use keyway_schema::EntryName;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A change that may be made.
pub(crate) struct Handover {
    provider: Arc<Provider>,
    modification: Modification,
}

impl Handover {
    /// Understands a client's request.
    ///
    /// # Errors
    /// Why it cannot be done, and first of all if the subject may not.
    pub fn new(
        snapshot: &Snapshot,
        subject: &Subject,
        request: &ModifyRequest<'_>,
        controls: &RequestControls<'_>,
        (tree, name): (VirtualTree, &EntryName),
    ) -> Result<Handover> {
        let rights = snapshot.permissions(subject, tree.place());
        if !rights.may_anywhere(Rights::WRITE) {
            return Err(Failure::denied("change this"));
        }
        let read_only = || unwilling(format!("what is in {} can only be read", tree.dn()));
        if tree == VirtualTree::Changelog {
            return Err(read_only());
        }
        let entries = snapshot.virtual_tree(tree, &Wanted::new(name, Scope::Base, None));
        let entry = entries.find(name)?;
        let candidate = Candidate::unstored(snapshot, &entry.dn, &entry.attributes);
        let mut changes = Vec::new();
        for change in &request.changes {
            let attribute = describe(&snapshot.schema, &change.attribute.description)?;
            let attribute = attribute.canonical().into_owned();
            if !rights.may(Rights::WRITE, &attribute, &candidate)? {
                return Err(Failure::denied(format_args!("change attribute {attribute}")));
            }
            let values = change.attribute.values.iter().map(|value| value.to_vec()).collect();
            changes.push(ModifiedAttribute { operation: change.operation, attribute, values });
        }
        if controls.assertion.is_some()
            || controls.pre_read.is_some()
            || controls.post_read.is_some()
        {
            let text = "the controls for assertions and read entries do not work here";
            return Err(Failure::new(ResultCode::UnavailableCriticalExtension, text));
        }
        match snapshot.shared.provider(tree) {
            Some(provider) if provider.change.is_some() => {
                let modification = Modification { dn: entry.dn.clone(), changes };
                Ok(Handover { provider, modification })
            }
            _ => Err(read_only()),
        }
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
        if let Some(change) = &self.provider.change {
            change(self.modification, Box::new(reply));
        }
        receiver
    }
}
