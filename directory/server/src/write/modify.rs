//! Modify (RFC 4511 § 4.6, RFC 4525).

use super::done::WriteDone;
use super::draft::Draft;
use super::draft::large_names;
use super::edit::{self, describe};
use super::rdn::rdn_of;
use super::request::{Request, Stamp};
use crate::access::{RULE, Rights, Rule, Subject, View as Permissions};
use crate::candidate::Candidate;
use crate::controls::RequestControls;
use crate::failure::{Failure, Result};
use crate::integrity::Proposed;
use crate::policy::USER_PASSWORD;
use crate::policy::{KEPT, PasswordChange, Upkeep};
use crate::state::Snapshot;
use keyway_codec::dn::Rdn;
use keyway_codec::message::{ChangeOperation, ModifyRequest, ResultCode};
use keyway_password::Given;
use keyway_schema::operational::STRUCTURAL_OBJECT_CLASS;
use keyway_schema::operational::{ENTRY_UUID, MODIFIERS_NAME, MODIFY_TIMESTAMP};
use keyway_schema::{
    AttributeType, EntryAttributes, OBJECT_CLASS, ObjectClass, base, check_entry, check_loosely,
    complete_classes, is_sound,
};
use keyway_store::{EntryId, EntryRef, Names, View, Write};
use std::borrow::Cow;
use std::cell::RefCell;

/// A modify that is ready to be done.
pub(crate) struct Modify {
    pub(super) request: Request,
    pub(super) edits: Vec<Edit>,
    /// The old password was given with the new one.
    pub(super) gave_old: bool,
}

/// One change.
pub(crate) struct Edit {
    pub operation: ChangeOperation,
    /// The canonical description.
    pub name: String,
    pub values: Vec<Vec<u8>>,
}

impl Edit {
    /// Whether it puts new passwords into the place of all old ones.
    fn is_reset(&self) -> bool {
        self.name == USER_PASSWORD && self.operation == ChangeOperation::Replace
    }

    /// Whether its values are stored as they are.
    pub fn stores(&self) -> bool {
        matches!(self.operation, ChangeOperation::Add | ChangeOperation::Replace)
    }
}

impl Modify {
    /// Understands a client's request.
    pub fn new(
        snapshot: &Snapshot,
        subject: &Subject,
        request: &ModifyRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> Result<Modify> {
        let edits = request.changes.iter().map(|change| {
            let values = change.attribute.values.iter().map(|value| value.to_vec()).collect();
            (change.operation, change.attribute.description.as_ref(), values)
        });
        Modify::of(snapshot, subject, request.dn, edits, controls)
    }

    /// The change of a password to a value that is hashed. `gave_old` says whether the old one was given.
    pub fn password(
        snapshot: &Snapshot,
        subject: &Subject,
        dn: &str,
        hashed: Vec<u8>,
        gave_old: bool,
    ) -> Result<Modify> {
        let edit = (ChangeOperation::Replace, USER_PASSWORD, vec![hashed]);
        let controls = RequestControls::default();
        let modify = Modify::of(snapshot, subject, dn, [edit].into_iter(), &controls)?;
        Ok(Modify { gave_old, ..modify })
    }

    /// Checks all that can be checked without the entry.
    pub fn of<'a>(
        snapshot: &Snapshot,
        subject: &Subject,
        dn: &str,
        changes: impl Iterator<Item = (ChangeOperation, &'a str, Vec<Vec<u8>>)>,
        controls: &RequestControls<'_>,
    ) -> Result<Modify> {
        let one_of = Rights::WRITE | Rights::RESET | Rights::SELF_WRITE;
        let request = Request::new(snapshot, subject, dn, one_of, controls)?;
        let edits: Vec<Edit> = changes
            .map(|(operation, given, values)| {
                let description = describe(&snapshot.schema, given)?;
                let attribute = description.attribute;
                match request.is_relaxed {
                    true => require_changeable(attribute)?,
                    false => edit::require_writable(attribute)?,
                }
                let name = description.canonical().into_owned();
                let edit = Edit { operation, name, values };
                if edit.stores() && request.is_relaxed {
                    let values: Vec<Cow<'_, [u8]>> = edit.values.iter().map(Cow::from).collect();
                    edit::check_stored_syntax(&snapshot.schema, attribute, &values)?;
                } else if edit.stores() {
                    edit::check_syntax(&snapshot.schema, attribute, &edit.values)?;
                }
                if operation == ChangeOperation::Add && edit.values.is_empty() {
                    let text = format!("attribute {given} is added without a value");
                    return Err(Failure::new(ResultCode::ProtocolError, text));
                }
                Ok(edit)
            })
            .collect::<Result<_>>()?;
        let gave_old = edits.iter().any(|edit| edit.gives_old(snapshot));
        Ok(Modify { request, edits, gave_old })
    }

    /// Whether it changes passwords.
    pub fn changes_password(&self) -> bool {
        self.edits.iter().any(|edit| base(&edit.name) == USER_PASSWORD)
    }

    /// Whether it changes what is noted of an account.
    fn changes_account(&self) -> bool {
        self.changes_password() || self.edits.iter().any(|edit| KEPT.contains(&base(&edit.name)))
    }

    /// Finds the entry, and checks that the subject may change what it wants to.
    pub fn check_rights<'t>(
        &self,
        snapshot: &Snapshot,
        view: View<'t>,
    ) -> Result<(EntryId, EntryRef<'t>)> {
        let found = self.find(snapshot, view);
        found.map_err(|failure| self.request.disclosed(snapshot, view, failure))
    }

    fn find<'t>(&self, snapshot: &Snapshot, view: View<'t>) -> Result<(EntryId, EntryRef<'t>)> {
        let (id, entry) = self.request.find(snapshot, view)?;
        let rights = self.request.rights(snapshot);
        let names = RefCell::new(Names::new());
        let candidate = Candidate::stored(snapshot, id, entry, view, &names);
        for edit in &self.edits {
            let name = base(&edit.name);
            let may = rights.may(Rights::WRITE, name, &candidate)?
                || (edit.is_reset() && rights.may(Rights::RESET, name, &candidate)?)
                || (edit.is_of(snapshot, &rights)
                    && rights.may(Rights::SELF_WRITE, name, &candidate)?);
            if !may {
                let text = format_args!("write attribute {} of this entry", edit.name);
                return Err(Failure::denied(text));
            }
        }
        if self.changes_password() {
            let (context, subject) = (&self.request.context, &self.request.subject);
            let change = PasswordChange::of(snapshot, view, context, subject, (id, entry))?;
            let now = self.request.now;
            change.map_or(Ok(()), |change| change.allow(snapshot, self.gave_old, now))?;
        }
        Ok((id, entry))
    }

    /// The part that it has in common with other writes.
    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    /// Changes the entry.
    pub fn apply(&self, snapshot: &Snapshot, write: &mut Write<'_>) -> Result<WriteDone> {
        let request = &self.request;
        let (id, entry) = self.check_rights(snapshot, write.view())?;
        request.assert_entry(snapshot, write, id, entry)?;
        let rdn = rdn_of(&entry)?;
        let mut new = Draft::of(id, &entry);
        let old = self.touched(snapshot, &new.attributes, &[]);
        let was_sound = is_sound(&snapshot.schema, &new.attributes);
        for edit in &self.edits {
            edit.apply(snapshot, write.view(), id, &old, &mut new)?;
        }
        let numbers = self.check(snapshot, write.view(), &rdn, was_sound, &mut new)?;
        self.check_unique(snapshot, write.view(), id, &new, &numbers)?;
        let rules = self.rules(snapshot, write.view(), id, &new.attributes)?;
        self.mark(&mut new.attributes);
        if self.changes_account() && !request.is_relaxed {
            let edited: Vec<&str> = self.edits.iter().map(|edit| base(&edit.name)).collect();
            let Request { context, subject, now, .. } = request;
            let (view, edited) = (write.view(), &edited);
            let upkeep = Upkeep { snapshot, view, context, subject, id, edited, now: *now };
            upkeep.carry_out(&entry, &mut new.attributes)?;
        }
        if self.changes_account() && request.is_relaxed {
            // Notes on binds that wait to be written are on another state of the account.
            snapshot.shared.policies.pending.forget(id);
        }
        let rdn = entry.rdn().to_owned();
        let mut response_controls: Vec<_> =
            request.pre_read(snapshot, write, id)?.into_iter().collect();
        snapshot.give_numbers(write, &numbers, &mut new.attributes)?;
        let numbered: Vec<&str> = snapshot.numbered(&numbers).collect();
        let touched = self.touched(snapshot, &new.attributes, &numbered);
        let (removed, added) = new.difference(snapshot, write.view(), &old, &touched)?;
        let entry = new.finish(&snapshot.schema, write.view(), rdn)?;
        write.update(id, &entry, &removed, &added)?;
        response_controls.extend(request.post_read(snapshot, write, id)?);
        Ok(WriteDone { response_controls, rules })
    }

    /// Enters who has changed it and when, as far as the request does not say so itself.
    fn mark(&self, attributes: &mut EntryAttributes) {
        let Stamp { author, time } = &self.request.stamp;
        for (name, value) in [(MODIFIERS_NAME, author), (MODIFY_TIMESTAMP, time)] {
            if !self.edits.iter().any(|edit| edit.name == name) {
                edit::set(attributes, name, value);
            }
        }
    }

    /// The attributes that can get other keys: those that change, and those that share an index
    /// with them, so that a key which both give is not lost.
    fn touched(
        &self,
        snapshot: &Snapshot,
        attributes: &EntryAttributes,
        also: &[&str],
    ) -> EntryAttributes {
        let edited = self.edits.iter().map(|edit| base(&edit.name));
        let also = also.iter().copied().chain([MODIFIERS_NAME, MODIFY_TIMESTAMP]);
        let mut changed: Vec<&str> = edited.chain(also).collect();
        if self.changes_account() {
            changed.extend(KEPT);
        }
        let related =
            |name: &str| changed.iter().any(|one| snapshot.indexes.related(base(name), one));
        attributes.iter().filter(|(name, _)| related(name)).cloned().collect()
    }

    /// The access rules that entries hold afterwards, if those of this one change.
    fn rules(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        id: EntryId,
        new: &EntryAttributes,
    ) -> Result<Option<Vec<Rule>>> {
        match self.edits.iter().any(|edit| base(&edit.name) == RULE) {
            true => snapshot.proposed_rules(view, &self.request.context, Some(id), new).map(Some),
            false => Ok(None),
        }
    }

    fn check_unique(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        id: EntryId,
        draft: &Draft,
        numbers: &[usize],
    ) -> Result<()> {
        if !snapshot.has_unique() {
            return Ok(());
        }
        let (name, rights) = (&self.request.name, self.request.rights(snapshot));
        let (id, was, Draft { attributes, large }) = (Some(id), Some(name), draft);
        let proposed = Proposed { id, name, was, attributes, large, numbers, rights: &rights };
        let is_edited =
            |name: &str| self.edits.iter().any(|edit| snapshot.is_kind_of(base(&edit.name), name));
        snapshot.check_unique(view, &proposed, is_edited)
    }

    /// Checks the entry as it has become; of which ranges it is to get a number.
    fn check(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        rdn: &Rdn,
        was_sound: bool,
        draft: &mut Draft,
    ) -> Result<Vec<usize>> {
        let schema = &snapshot.schema;
        for ava in &rdn.avas {
            let Some(attribute) = schema.attribute(&ava.attribute) else { continue };
            let edited = self.edits.iter().any(|edit| edit.name == attribute.name());
            let is_there =
                || draft.has_value(schema, view, (attribute.name(), attribute), &ava.value);
            if edited && !is_there()? {
                let text = format!(
                    "a value of attribute {} is in the entry's RDN; rename the entry instead",
                    attribute.name()
                );
                return Err(Failure::new(ResultCode::NotAllowedOnRdn, text));
            }
        }
        let Draft { attributes, large } = draft;
        let large: Vec<&str> = large_names(large).collect();
        if self.edits.iter().any(|edit| edit.name == OBJECT_CLASS) {
            complete_classes(schema, attributes)?;
        }
        let numbers = snapshot.wanted_numbers(attributes);
        // An entry that was let in with structural classes of its own kind can still be changed.
        let (structural, is_sound) = match was_sound {
            true => (check_entry(schema, attributes, &large)?, true),
            false => check_loosely(schema, attributes, &large)?,
        };
        if !was_sound || !is_sound {
            let name = structural.name().to_owned();
            edit::set(attributes, STRUCTURAL_OBJECT_CLASS, &name);
            return Ok(numbers);
        }
        let before = edit::values(attributes, STRUCTURAL_OBJECT_CLASS);
        let before = before.and_then(|values| values.first()).map(Vec::as_slice);
        if before.is_some_and(|before| before != structural.name().as_bytes()) {
            let before = before.and_then(|before| schema.class(str::from_utf8(before).ok()?));
            if before.is_some_and(ObjectClass::may_stand_alone) {
                let name = structural.name().to_owned();
                edit::set(attributes, STRUCTURAL_OBJECT_CLASS, &name);
                return Ok(numbers);
            }
            let text = "the structural object class of an entry cannot be changed";
            return Err(Failure::new(ResultCode::ObjectClassModsProhibited, text));
        }
        Ok(numbers)
    }
}

impl Edit {
    /// Whether all that it adds or takes away is the DN of the user who asks.
    fn is_of(&self, snapshot: &Snapshot, rights: &Permissions) -> bool {
        let own = |value: &Vec<u8>| rights.is_named_by(&snapshot.schema, base(&self.name), value);
        matches!(self.operation, ChangeOperation::Add | ChangeOperation::Delete)
            && !self.values.is_empty()
            && self.values.iter().all(own)
    }

    /// Whether it names the password that there is.
    fn gives_old(&self, snapshot: &Snapshot) -> bool {
        let is_password = |value: &Vec<u8>| {
            matches!(snapshot.shared.passwords.classify(value), Ok(Given::Password(_)))
        };
        self.operation == ChangeOperation::Delete
            && base(&self.name) == USER_PASSWORD
            && self.values.iter().any(is_password)
    }

    fn apply(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        id: EntryId,
        old: &EntryAttributes,
        draft: &mut Draft,
    ) -> Result<()> {
        let schema = &snapshot.schema;
        let description = describe(schema, &self.name)?;
        let is_add = self.operation == ChangeOperation::Add;
        if is_add && self.is_new(snapshot, view, id, old, &draft.attributes)? {
            let attributes = &mut draft.attributes;
            return edit::push(schema, attributes, &description, self.values.clone());
        }
        draft.change(schema, view, self.operation, &description, &self.values)
    }

    /// Whether an index says that none of the values is there, so that thousands of others need
    /// not be looked at. It speaks of the entry as it was before all edits.
    fn is_new(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        id: EntryId,
        old: &EntryAttributes,
        attributes: &EntryAttributes,
    ) -> Result<bool> {
        let (before, now) = (edit::values(old, &self.name), edit::values(attributes, &self.name));
        if before != now || now.is_none_or(|now| now.len() < MANY_VALUES) {
            return Ok(false);
        }
        let rule = snapshot.schema.attribute(base(&self.name)).and_then(AttributeType::equality);
        for value in &self.values {
            let normal = rule.and_then(|rule| snapshot.schema.normalize(rule, value));
            let key =
                normal.and_then(|normal| snapshot.indexes.equality(base(&self.name), &normal));
            match key {
                Some(key) if !view.contains(&key, id)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Checks that a client that relaxes rules may change the attribute of an entry that there is.
fn require_changeable(attribute: &AttributeType) -> Result<()> {
    if attribute.name() == ENTRY_UUID {
        let text = "an entry keeps its entryUUID for good: it can be given to a new entry only";
        return Err(Failure::new(ResultCode::ConstraintViolation, text));
    }
    edit::require_stored(attribute)
}

/// Values from which on an index is asked whether one is among them.
const MANY_VALUES: usize = 64;
