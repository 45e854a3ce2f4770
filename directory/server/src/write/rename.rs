//! Modify DN (RFC 4511 § 4.9).

use super::add::may_add;
use super::done::WriteDone;
use super::draft::Draft;
use super::edit;
use super::rdn::{check_rdn, rdn_of};
use super::request::{Request, component};
use crate::access::{Rights, Subject, View as Permissions};
use crate::candidate::Candidate;
use crate::controls::RequestControls;
use crate::failure::unwilling;
use crate::failure::{Failure, Result};
use crate::integrity::{Proposed, ReferenceCleanup, ReferringEntries};
use crate::naming::{self, NamingContext, Place};
use crate::state::Snapshot;
use keyway_codec::dn::Rdn;
use keyway_codec::message::{ChangeOperation, ModifyDnRequest, ResultCode};
use keyway_schema::{EntryName, NamePart, is_sound};
use keyway_store::{Entry, EntryId, EntryRef, Key, Names, View, Write};
use std::cell::RefCell;
use std::sync::Arc;

/// A modify DN that is ready to be done.
pub(crate) struct Rename {
    request: Request,
    new_rdn: Rdn,
    /// The new name in its new place.
    new_name: EntryName,
    new_context: Arc<NamingContext>,
    new_below: usize,
    delete_old_rdn: bool,
}

impl Rename {
    /// Understands a request.
    pub fn new(
        snapshot: &Snapshot,
        subject: &Subject,
        request: &ModifyDnRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> Result<Rename> {
        let ModifyDnRequest { dn, new_rdn, delete_old_rdn, new_superior } = *request;
        let request = Request::new(snapshot, subject, dn, Rights::RENAME, controls)?;
        if snapshot.shared.is_own(&request.name) {
            return Err(unwilling("the server needs this entry"));
        }
        if request.below == 0 {
            return Err(unwilling("the top of a naming context cannot be renamed"));
        }
        let new_rdn = Rdn::parse(new_rdn).map_err(|error| {
            let text = format!("the new RDN is not valid: {error}");
            Failure::new(ResultCode::InvalidDnSyntax, text)
        })?;
        check_rdn(&snapshot.schema, &new_rdn)?;
        let (superior, new_context, new_below) = match new_superior {
            None => (request.name.parent(), request.context.clone(), request.below),
            Some(superior) => superior_of(snapshot, &request, superior)?,
        };
        let part = Arc::new(NamePart::new(&snapshot.schema, &new_rdn)?);
        let mut new_name = EntryName { parts: vec![part] };
        new_name.parts.extend(superior.parts);
        Ok(Rename { request, new_rdn, new_name, new_context, new_below, delete_old_rdn })
    }

    /// The part that it has in common with other writes.
    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    /// Renames the entry.
    pub fn apply(&self, snapshot: &Snapshot, write: &mut Write<'_>) -> Result<WriteDone> {
        let request = &self.request;
        let (id, entry) = request.find(snapshot, write.view())?;
        let rights = request.rights(snapshot);
        let names = RefCell::new(Names::new());
        let candidate = Candidate::stored(snapshot, id, entry, write.view(), &names);
        if !rights.may_something(Rights::RENAME, &candidate)? {
            return Err(Failure::denied("rename this entry"));
        }
        self.may_write(snapshot, write.view(), &rights, (id, &entry), &candidate)?;
        request.assert_entry(snapshot, write, id, entry)?;
        let there = snapshot.permissions(&request.subject, self.new_context.place());
        let superior = self.new_name.parent();
        let superior = (&*self.new_context, &superior, self.new_below.saturating_sub(1));
        let told = |failure| snapshot.disclosed(write.view(), &there, superior, failure);
        let new_parent = self.new_parent(snapshot, write.view(), id).map_err(told)?;
        if new_parent != entry.parent() && !may_add(snapshot, &there, write.view(), new_parent)? {
            return Err(told(Failure::denied("move entries there")));
        }
        let component = component(&self.new_context, &self.new_name, self.new_below)?;
        if write.view().child(new_parent, component)?.is_some_and(|found| found != id) {
            let text = "an entry of the new name is there already";
            return Err(Failure::new(ResultCode::EntryAlreadyExists, text));
        }
        let (new, removed, added) = self.renamed(snapshot, write.view(), id, &entry)?;
        let referring =
            self.referring_entries(snapshot, write.view(), id, new_parent, candidate.dn()?)?;
        let mut response_controls: Vec<_> =
            request.pre_read(snapshot, write, id)?.into_iter().collect();
        write.rename(id, new_parent, request.component()?, component)?;
        write.update(id, &new, &removed, &added)?;
        referring.clean_up(snapshot, write, &request.stamp)?;
        response_controls.extend(request.post_read(snapshot, write, id)?);
        Ok(WriteDone { response_controls, rules: None })
    }

    /// Refuses values that come or go with the RDN, of attributes that are not in both RDNs, to a subject that may
    /// not write them: to rename is to give other values to what an entry is named by, and no more.
    fn may_write(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        rights: &Permissions,
        (id, entry): (EntryId, &EntryRef<'_>),
        candidate: &Candidate<'_, '_>,
    ) -> Result<()> {
        let (schema, draft) = (&snapshot.schema, Draft::of(id, entry));
        let old = rdn_of(entry)?;
        let types = |rdn: &Rdn| -> Result<Vec<String>> {
            let names = rdn.avas.iter().map(|ava| edit::describe(schema, &ava.attribute));
            names.map(|name| Ok(name?.canonical().into_owned())).collect()
        };
        let (before, after) = (types(&old)?, types(&self.new_rdn)?);
        let mut written = Vec::new();
        for ava in &self.new_rdn.avas {
            let description = edit::describe(schema, &ava.attribute)?;
            let typed = (description.attribute.name(), description.attribute);
            if !draft.has_value(schema, view, typed, &ava.value)? {
                written.push(description.canonical().into_owned());
            }
        }
        written.retain(|name| !before.contains(name));
        if self.delete_old_rdn {
            written.extend(before.into_iter().filter(|name| !after.contains(name)));
        }
        for name in written {
            if !rights.may(Rights::WRITE, &name, candidate)? {
                return Err(Failure::denied(format!("write {name}, which the name is made of")));
            }
        }
        Ok(())
    }

    /// The entry above in the new place, which must not be the entry itself or below it.
    fn new_parent(&self, snapshot: &Snapshot, view: View<'_>, id: EntryId) -> Result<EntryId> {
        let parent = self.request.locate(snapshot, view, &self.new_name.parent())?;
        if view.contains(&Key::subtree(id), parent)? {
            return Err(unwilling("an entry cannot be moved below itself"));
        }
        Ok(parent)
    }

    /// The entries that refer to the entry or to one below it, and the new DNs of these.
    fn referring_entries(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        id: EntryId,
        new_parent: EntryId,
        old: &str,
    ) -> Result<ReferringEntries> {
        let mut names = Names::new();
        let above = view.dn(new_parent, &mut names)?.unwrap_or_default();
        let rdn = self.new_name.parts.first().map(|part| part.text.as_str()).unwrap_or_default();
        let new = format!("{rdn},{above}");
        let moved = view.postings(&Key::subtree(id), EntryId::ROOT)?;
        let cleanups = moved.map(|moved| {
            let dn = view.dn(moved?, &mut names)?.unwrap_or_default();
            let renamed = dn.strip_suffix(old).map(|below| format!("{below}{new}"));
            Ok(renamed.and_then(|renamed| ReferenceCleanup::new(snapshot, dn, Some(renamed))))
        });
        snapshot.referring_entries(view, cleanups)
    }

    /// Values that are unique must be so at the new place as well, those of the entries below too.
    fn check_unique(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        id: EntryId,
        draft: &Draft,
    ) -> Result<()> {
        if !snapshot.has_unique() {
            return Ok(());
        }
        let rights = self.request.rights(snapshot);
        let name = &self.new_name;
        let was = Some(&self.request.name);
        let Draft { attributes, large } = draft;
        let numbers = &[];
        let proposed =
            Proposed { id: Some(id), name, was, attributes, large, numbers, rights: &rights };
        let is_new = |name: &str| {
            let mut avas = self.new_rdn.avas.iter();
            avas.any(|ava| snapshot.is_kind_of(&ava.attribute, name))
        };
        snapshot.check_unique(view, &proposed, is_new)?;
        for below in view.postings(&Key::subtree(id), EntryId::ROOT)? {
            let below = below?;
            let Some(entry) = view.entry(below)?.filter(|_| below != id) else { continue };
            let Draft { attributes, large } = &Draft::of(below, &entry);
            let proposed = Proposed { id: Some(below), attributes, large, ..proposed };
            snapshot.check_unique(view, &proposed, |_| false)?;
        }
        Ok(())
    }

    /// The entry with its new RDN, and the keys that it loses and gets.
    fn renamed(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        id: EntryId,
        entry: &EntryRef<'_>,
    ) -> Result<(Entry, Vec<Key>, Vec<Key>)> {
        let (schema, mut draft) = (&snapshot.schema, Draft::of(id, entry));
        let old = draft.attributes.clone();
        if self.delete_old_rdn {
            self.remove_old(snapshot, view, &rdn_of(entry)?, &mut draft)?;
        }
        for ava in &self.new_rdn.avas {
            let description = edit::describe(schema, &ava.attribute)?;
            let (attribute, value) = (description.attribute, &ava.value);
            if !draft.has_value(schema, view, (attribute.name(), attribute), value)? {
                edit::check_syntax(schema, attribute, &[value])?;
                let value = std::slice::from_ref(value);
                draft.change(schema, view, ChangeOperation::Add, &description, value)?;
            }
        }
        draft.check(schema, is_sound(schema, &old))?;
        self.request.stamp.mark(&mut draft.attributes);
        self.check_unique(snapshot, view, id, &draft)?;
        let (removed, added) = draft.difference(snapshot, view, &old, &draft.attributes)?;
        let rdn = self.new_name.parts.first().map(|part| part.text.clone()).unwrap_or_default();
        Ok((draft.finish(schema, view, rdn)?, removed, added))
    }

    /// Removes the values of the old RDN that are not in the new one, in the same spelling: a new
    /// spelling is to be stored too.
    fn remove_old(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        old: &Rdn,
        draft: &mut Draft,
    ) -> Result<()> {
        let schema = &snapshot.schema;
        let mut kept = Vec::new();
        for ava in &self.new_rdn.avas {
            kept.push((edit::describe(schema, &ava.attribute)?.canonical(), &ava.value));
        }
        for ava in &old.avas {
            let description = edit::describe(schema, &ava.attribute)?;
            let attribute = description.attribute;
            if !kept.contains(&(description.canonical(), &ava.value))
                && draft.has_value(schema, view, (attribute.name(), attribute), &ava.value)?
            {
                let value = std::slice::from_ref(&ava.value);
                draft.change(schema, view, ChangeOperation::Delete, &description, value)?;
            }
        }
        Ok(())
    }
}

/// Where the new superior is, and how deep an entry below it is in its context.
fn superior_of(
    snapshot: &Snapshot,
    request: &Request,
    superior: &str,
) -> Result<(EntryName, Arc<NamingContext>, usize)> {
    let name = EntryName::parse(&snapshot.schema, superior)?;
    let contexts = snapshot.shared.contexts();
    match naming::place(&contexts, &name) {
        Place::Inside { context, below } if context.is_system == request.context.is_system => {
            let context = context.clone();
            Ok((name, context, below + 1))
        }
        Place::Inside { .. } => {
            let text = "an entry cannot be moved between the server's own entries and others";
            Err(Failure::new(ResultCode::AffectsMultipleDsas, text))
        }
        Place::Outside => Err(Failure::no_such_object("").context("the new superior")),
        Place::Root | Place::Subschema | Place::Virtual(_) => {
            let text = "nothing can be put below this entry";
            Err(Failure::new(ResultCode::NamingViolation, text))
        }
    }
}
