//! Delete (RFC 4511 § 4.8).

use super::done::WriteDone;
use super::request::Request;
use crate::access::{Rights, Subject, holds_rules};
use crate::candidate::Candidate;
use crate::controls::RequestControls;
use crate::failure::unwilling;
use crate::failure::{Failure, Result};
use crate::integrity::ReferenceCleanup;
use crate::large::whole;
use crate::state::Snapshot;
use keyway_codec::message::ResultCode;
use keyway_schema::EntryAttributes;
use keyway_store::{Names, Write};
use std::cell::RefCell;

/// A delete that is ready to be done.
pub(crate) struct Delete {
    request: Request,
}

impl Delete {
    /// Understands a request.
    pub fn new(
        snapshot: &Snapshot,
        subject: &Subject,
        dn: &str,
        controls: &RequestControls<'_>,
    ) -> Result<Delete> {
        let request = Request::new(snapshot, subject, dn, Rights::DELETE, controls)?;
        if snapshot.shared.is_own(&request.name) {
            return Err(unwilling("the server needs this entry"));
        }
        Ok(Delete { request })
    }

    /// The part that it has in common with other writes.
    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    /// Deletes the entry.
    pub fn apply(&self, snapshot: &Snapshot, write: &mut Write<'_>) -> Result<WriteDone> {
        let request = &self.request;
        let (id, entry) = request.find(snapshot, write.view())?;
        let names = RefCell::new(Names::new());
        let candidate = Candidate::stored(snapshot, id, entry, write.view(), &names);
        if !request.rights(snapshot).may_something(Rights::DELETE, &candidate)? {
            return Err(Failure::denied("delete this entry"));
        }
        let cleanup = ReferenceCleanup::new(snapshot, candidate.dn()?.to_owned(), None);
        request.assert_entry(snapshot, write, id, entry)?;
        if write.view().child_count(id)? > 0 {
            let text = "the entry has entries below it; delete those first";
            return Err(Failure::new(ResultCode::NotAllowedOnNonLeaf, text));
        }
        let attributes = whole(write.view(), id, &entry)?;
        let rules = match holds_rules(&attributes) {
            true => {
                let nothing = EntryAttributes::new();
                Some(snapshot.proposed_rules(write.view(), &request.context, Some(id), &nothing)?)
            }
            false => None,
        };
        let response_controls = request.pre_read(snapshot, write, id)?.into_iter().collect();
        let referring =
            snapshot.referring_entries(write.view(), [Ok(cleanup)].into_iter())?.without(id);
        let keys = snapshot.indexes.keys(&snapshot.schema, &attributes);
        write.delete(id, request.component()?, &keys)?;
        referring.clean_up(snapshot, write, &request.stamp)?;
        Ok(WriteDone { response_controls, rules })
    }
}
