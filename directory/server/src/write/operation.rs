//! A write of any kind, ready to be done.

use super::add::Add;
use super::delete::Delete;
use super::done::WriteDone;
use super::modify::Modify;
use super::redefine;
use super::rename::Rename;
use super::request::Request;
use crate::access::{Rights, Subject};
use crate::controls::RequestControls;
use crate::failure::{Failure, Result, unwilling};
use crate::naming::{self, Place};
use crate::redefine::{Redefinition, require_generation};
use crate::state::Snapshot;
use crate::virtual_entries::{Handover, VirtualTree};
use keyway_codec::message::{AddRequest, ModifyRequest, Op, ResultCode};
use keyway_schema::EntryName;
use keyway_store::Write;
use std::sync::Arc;

/// A write that is ready to be done.
pub(crate) enum Operation {
    Add(Add),
    Delete(Delete),
    Modify(Modify),
    Rename(Rename),
    /// A change of the schema; `None` if it changes nothing.
    Redefine(Option<Redefinition>),
    /// A change of an entry that is not stored.
    Virtual(Handover),
}

impl Operation {
    /// Understands a client's request; `None` if it is no write.
    pub fn of(
        snapshot: &Arc<Snapshot>,
        subject: &Subject,
        op: &Op<'_>,
        controls: &RequestControls<'_>,
    ) -> Option<Result<Operation>> {
        Some(match op {
            Op::AddRequest(add) => Operation::add(snapshot, subject, add, controls),
            Op::ModifyRequest(modify) => Operation::modify(snapshot, subject, modify, controls),
            Op::DeleteRequest(dn) => Operation::delete(snapshot, subject, dn, controls),
            Op::ModifyDnRequest(rename) => {
                Rename::new(snapshot, subject, rename, controls).map(Operation::Rename)
            }
            _ => return None,
        })
    }

    /// Understands a client's add.
    pub fn add(
        snapshot: &Arc<Snapshot>,
        subject: &Subject,
        request: &AddRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> Result<Operation> {
        if let Some((tree, name)) = in_virtual_tree(snapshot, request.dn)? {
            let asked = Handover::asked(snapshot, subject, controls, (tree, &name), Rights::ADD)?;
            let attributes = Add::unstored(snapshot, request)?;
            return asked.add(attributes).map(Operation::Virtual);
        }
        Add::new(snapshot, subject, request, controls).map(Operation::Add)
    }

    /// Understands a client's delete.
    pub fn delete(
        snapshot: &Arc<Snapshot>,
        subject: &Subject,
        dn: &str,
        controls: &RequestControls<'_>,
    ) -> Result<Operation> {
        if let Some((tree, name)) = in_virtual_tree(snapshot, dn)? {
            let asked =
                Handover::asked(snapshot, subject, controls, (tree, &name), Rights::DELETE)?;
            return asked.delete().map(Operation::Virtual);
        }
        Delete::new(snapshot, subject, dn, controls).map(Operation::Delete)
    }

    /// Understands a client's modify.
    pub fn modify(
        snapshot: &Arc<Snapshot>,
        subject: &Subject,
        request: &ModifyRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> Result<Operation> {
        if request.changes.is_empty() {
            // It would need no right, and change who has changed the entry last.
            let text = "the request has no change in it";
            return Err(Failure::new(ResultCode::ProtocolError, text));
        }
        let name = snapshot.entry_name(request.dn)?.into_name();
        match naming::place(&snapshot.shared.contexts(), &name) {
            Place::Subschema => {
                let redefinition = redefine::redefinition(snapshot, subject, request, controls);
                return redefinition.map(Operation::Redefine);
            }
            Place::Virtual(tree) => {
                let place = (tree, &name);
                let asked = Handover::asked(snapshot, subject, controls, place, Rights::WRITE)?;
                return asked.modify(request).map(Operation::Virtual);
            }
            _ => {}
        }
        Modify::new(snapshot, subject, request, controls).map(Operation::Modify)
    }

    /// Whether an entry could be in other groups when it is done.
    pub fn changes_groups(&self, snapshot: &Snapshot) -> bool {
        let is_membership = |name: &str| snapshot.integrity.is_membership(name);
        match self {
            Operation::Add(add) => add.attributes.iter().any(|(name, _)| is_membership(name)),
            Operation::Modify(modify) => modify.edits.iter().any(|edit| is_membership(&edit.name)),
            // Groups and their members go by their names.
            Operation::Delete(_) | Operation::Rename(_) => true,
            // Which entries are groups may change with the schema.
            Operation::Redefine(_) => true,
            Operation::Virtual(_) => false,
        }
    }

    /// Does it. May be called again if what it did was undone.
    ///
    /// # Errors
    /// Also `busy`, if the schema was changed since it was prepared.
    pub fn apply(&self, snapshot: &Snapshot, write: &mut Write<'_>) -> Result<WriteDone> {
        if let Some(request) = self.request() {
            require_generation(write, request.generation)?;
        }
        let done = match self {
            // The maker of its tree does it.
            Operation::Virtual(_) => return Err(unwilling("this is not stored")),
            Operation::Redefine(None) => return Ok(WriteDone::default()),
            Operation::Redefine(Some(redefinition)) => {
                return redefinition.apply(write).map(|()| WriteDone::default());
            }
            Operation::Add(add) => add.apply(snapshot, write),
            Operation::Delete(delete) => delete.apply(snapshot, write),
            Operation::Modify(modify) => modify.apply(snapshot, write),
            Operation::Rename(rename) => rename.apply(snapshot, write),
        };
        done.map_err(|failure| match self.request() {
            Some(request) => request.disclosed(snapshot, write.view(), failure),
            None => failure,
        })
    }

    fn request(&self) -> Option<&Request> {
        match self {
            Operation::Add(add) => Some(add.request()),
            Operation::Delete(delete) => Some(delete.request()),
            Operation::Modify(modify) => Some(modify.request()),
            Operation::Rename(rename) => Some(rename.request()),
            Operation::Redefine(_) | Operation::Virtual(_) => None,
        }
    }

    /// The state of the schema that it leaves, if it changes it.
    pub fn next(&self) -> Option<Arc<Snapshot>> {
        match self {
            Operation::Redefine(redefinition) => redefinition.as_ref().map(Redefinition::next),
            _ => None,
        }
    }
}

/// The tree that an entry of this name is in, if that is not stored.
fn in_virtual_tree(snapshot: &Snapshot, dn: &str) -> Result<Option<(VirtualTree, EntryName)>> {
    let name = snapshot.entry_name(dn)?.into_name();
    Ok(match naming::place(&snapshot.shared.contexts(), &name) {
        Place::Virtual(tree) => Some((tree, name)),
        _ => None,
    })
}
