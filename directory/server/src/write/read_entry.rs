//! The entry before and after a change, as the read entry controls return it (RFC 4527).

use super::request::Request;
use crate::candidate::Candidate;
use crate::controls::ResponseControl;
use crate::failure::{Failure, Result};
use crate::search::{Filtered, Selection, encode_entry};
use crate::state::Snapshot;
use keyway_codec::controls::{POST_READ, PRE_READ, ReadResponse};
use keyway_codec::message::{Attribute, SearchResultEntry};
use keyway_store::{EntryId, Names, Write};
use std::borrow::Cow;
use std::cell::RefCell;

impl Request {
    /// The entry as it is before the change, if that was asked for.
    pub(super) fn pre_read(
        &self,
        snapshot: &Snapshot,
        write: &Write<'_>,
        id: EntryId,
    ) -> Result<Option<ResponseControl>> {
        self.read(snapshot, write, id, PRE_READ, self.pre_read.as_ref())
    }

    /// The entry as it is after the change, if that was asked for.
    pub(super) fn post_read(
        &self,
        snapshot: &Snapshot,
        write: &Write<'_>,
        id: EntryId,
    ) -> Result<Option<ResponseControl>> {
        self.read(snapshot, write, id, POST_READ, self.post_read.as_ref())
    }

    fn read(
        &self,
        snapshot: &Snapshot,
        write: &Write<'_>,
        id: EntryId,
        oid: &'static str,
        selection: Option<&Selection>,
    ) -> Result<Option<ResponseControl>> {
        let Some(selection) = selection else { return Ok(None) };
        let view = write.view();
        let entry = view.entry(id)?.ok_or_else(|| Failure::no_such_object(""))?;
        let names = RefCell::new(Names::new());
        let candidate = Candidate::stored(snapshot, id, entry, view, &names);
        let rights = self.rights(snapshot);
        let mut filtered = Filtered::new(&snapshot.schema, selection, &rights);
        let mut attributes: Vec<Attribute<'static>> = Vec::new();
        encode_entry(&mut attributes, &candidate, &mut filtered)?;
        let dn = Cow::Borrowed(candidate.dn()?);
        let mut value = Vec::new();
        ReadResponse(SearchResultEntry { dn, attributes }).encode(&mut value);
        Ok(Some(ResponseControl { oid, value }))
    }
}
