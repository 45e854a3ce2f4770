//! Add (RFC 4511 § 4.7).

use super::done::WriteDone;
use super::draft::Draft;
use super::edit;
use super::rdn::check_rdn;
use super::request::{Needed, Request, Stamp};
use crate::access::{RULE, Rights, Rule, Subject, View, holds_rules, settle};
use crate::candidate::Candidate;
use crate::controls::RequestControls;
use crate::evaluate::Evaluator;
use crate::evaluate::asserted;
use crate::failure::{Failure, Result};
use crate::integrity::Proposed;
use crate::large;
use crate::policy::CHANGED_TIME;
use crate::policy::USER_PASSWORD;
use crate::state::Snapshot;
use keyway_codec::dn::Dn;
use keyway_codec::message::{AddRequest, ResultCode};
use keyway_schema::operational::{
    CREATE_TIMESTAMP, CREATORS_NAME, Computed, ENTRY_UUID, MODIFIERS_NAME, MODIFY_TIMESTAMP,
    STRUCTURAL_OBJECT_CLASS,
};
use keyway_schema::{
    EntryAttributes, EntryName, OBJECT_CLASS, check_entry, check_loosely, complete_classes,
};
use keyway_store::{Entry, EntryId, Key, Names, View as Tree, Write};
use std::borrow::Cow;
use std::cell::RefCell;

/// An add that is ready to be done.
pub(crate) struct Add {
    pub(super) request: Request,
    /// The whole entry, operational attributes included.
    pub(crate) attributes: EntryAttributes,
    /// Whether its structural classes are one chain.
    pub(crate) is_sound: bool,
    /// How many of its values are not of their syntax.
    pub(crate) malformed: u64,
    pub(super) keys: Vec<Key>,
    /// Attributes with so many values that they go into a table of their own.
    large: large::Keys,
    /// Ranges of which it is to get a number.
    numbers: Vec<usize>,
}

/// Who made the entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A client. He sets user attributes only.
    Client,
    /// The administrator, who has an entry come back as it was.
    Relaxed,
    /// A server, this one or another: what it noted of the entry is kept, as far as it means
    /// something here.
    Export,
}

impl Add {
    /// Understands a client's request.
    pub fn new(
        snapshot: &Snapshot,
        subject: &Subject,
        request: &AddRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> Result<Add> {
        let given = request
            .attributes
            .iter()
            .map(|attribute| (attribute.description.as_ref(), attribute.values.as_slice()));
        let source = if controls.relax { Source::Relaxed } else { Source::Client };
        Add::of(snapshot, subject, request.dn, given, source, controls)
    }

    /// Makes an entry of a DN and attributes.
    pub fn of<'a>(
        snapshot: &Snapshot,
        subject: &Subject,
        dn: &str,
        given: impl Iterator<Item = (&'a str, &'a [Cow<'a, [u8]>])>,
        source: Source,
        controls: &RequestControls<'_>,
    ) -> Result<Add> {
        let request = Request::new(snapshot, subject, dn, Rights::ADD, controls)?;
        let request = Request { needed: Needed::Parent, ..request };
        let (mut attributes, malformed) = completed(snapshot, dn, given, source)?;
        let numbers = snapshot.wanted_numbers(&mut attributes);
        let (structural, is_sound) = match source {
            Source::Client => (check_entry(&snapshot.schema, &attributes, &[])?, true),
            Source::Relaxed | Source::Export => check_loosely(&snapshot.schema, &attributes, &[])?,
        };
        let structural = structural.name().to_owned();
        edit::set(&mut attributes, STRUCTURAL_OBJECT_CLASS, &structural);
        stamp(snapshot, &mut attributes, &request.stamp)?;
        // The time is not known for a password that comes from elsewhere.
        if source == Source::Client && edit::values(&attributes, USER_PASSWORD).is_some() {
            edit::set(&mut attributes, CHANGED_TIME, &request.stamp.time);
        }
        let keys = snapshot.indexes.all_keys(&snapshot.schema, &attributes);
        let large = large::keys(&snapshot.schema, &attributes);
        Ok(Add { request, attributes, is_sound, malformed, keys, large, numbers })
    }

    /// The user attributes of an entry that is not stored, as a client wants to have it; they fit the schema.
    pub fn unstored(snapshot: &Snapshot, request: &AddRequest<'_>) -> Result<EntryAttributes> {
        let given = request
            .attributes
            .iter()
            .map(|attribute| (attribute.description.as_ref(), attribute.values.as_slice()));
        let (attributes, _) = completed(snapshot, request.dn, given, Source::Client)?;
        check_entry(&snapshot.schema, &attributes, &[])?;
        Ok(attributes)
    }

    /// Whether the entry that is there already has all its values and no other, those that a server notes aside.
    pub fn is_there(&self, snapshot: &Snapshot, view: Tree<'_>) -> Result<bool> {
        let (id, entry) = self.request.find(snapshot, view)?;
        let (held, schema) = (Draft::of(id, &entry), &snapshot.schema);
        for (name, values) in &self.attributes {
            let Some(description) = schema.describe(name) else { return Ok(false) };
            let attribute = description.attribute;
            if attribute.is_operational() {
                continue;
            }
            for value in values {
                if !held.has_value(schema, view, (name, attribute), value)? {
                    return Ok(false);
                }
            }
        }
        // None is given twice, so as many values are these values.
        let is_given = |name: &str, count: usize| {
            let given = self.attributes.iter().find(|(given, _)| given == name);
            let is_noted = schema.describe(name).is_some_and(|it| it.attribute.is_operational());
            is_noted || given.is_some_and(|(_, values)| values.len() == count)
        };
        let large = held.large.iter().map(|large| (large.name.as_str(), large.len()));
        let small = held.attributes.iter().map(|(name, values)| (name.as_str(), values.len()));
        Ok(small.chain(large).all(|(name, count)| is_given(name, count)))
    }

    /// The part that it has in common with other writes.
    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    /// Adds the entry.
    pub fn apply(&self, snapshot: &Snapshot, write: &mut Write<'_>) -> Result<WriteDone> {
        let request = &self.request;
        let view = write.view();
        let (name, below) = (&request.name, request.below);
        let parent = match below {
            0 => EntryId::ROOT,
            _ => request.locate(snapshot, view, &name.parent())?,
        };
        let rights = request.rights(snapshot);
        if !may_add(snapshot, &rights, view, parent)? {
            return Err(Failure::denied("add entries here"));
        }
        let component = request.component()?;
        if view.child(parent, component)?.is_some() {
            let text = "an entry of this name is there already";
            return Err(Failure::new(ResultCode::EntryAlreadyExists, text));
        }
        if request.is_relaxed {
            snapshot.require_free_uuid(view, &self.attributes)?;
        }
        if let Some(matcher) = &request.assertion {
            let text = name.text();
            let candidate = Candidate::unstored(snapshot, &text, &self.attributes);
            asserted(Evaluator::search(&snapshot.schema, &rights).matches(matcher, &candidate)?)?;
        }
        let (id, attributes, numbers) = (None, &self.attributes, self.numbers.as_slice());
        let proposed =
            Proposed { id, name, was: None, attributes, large: &[], numbers, rights: &rights };
        snapshot.check_unique(view, &proposed, |_| true)?;
        let mut rules = self.rules(snapshot, &rights, view, parent)?;
        let mut attributes = self.attributes.clone();
        let mut keys = Cow::Borrowed(&self.keys);
        if !self.numbers.is_empty() {
            snapshot.give_numbers(write, &self.numbers, &mut attributes)?;
            keys = Cow::Owned(snapshot.indexes.all_keys(&snapshot.schema, &attributes));
        }
        let large = large::take(&mut attributes, &self.large);
        let entry = Entry { rdn: rdn_text(name, below), attributes, large };
        let id = write.insert(parent, component, &entry, &keys)?;
        if let Some(rules) = &mut rules {
            settle(rules, id);
        }
        let response_controls = request.post_read(snapshot, write, id)?.into_iter().collect();
        Ok(WriteDone { response_controls, rules })
    }

    /// The rules that entries hold with it, if it holds any. To add entries is not to say who may do
    /// what with them: that takes the same right as to write rules into the entry above.
    fn rules(
        &self,
        snapshot: &Snapshot,
        rights: &View,
        tree: Tree<'_>,
        parent: EntryId,
    ) -> Result<Option<Vec<Rule>>> {
        if !holds_rules(&self.attributes) {
            return Ok(None);
        }
        if !with_parent(snapshot, tree, parent, |above| rights.may(Rights::WRITE, RULE, above))? {
            return Err(Failure::denied(format_args!("write attribute {RULE} here")));
        }
        snapshot.proposed_rules(tree, &self.request.context, None, &self.attributes).map(Some)
    }
}

/// Whether the subject of these rights may add entries below this one.
pub(super) fn may_add(
    snapshot: &Snapshot,
    rights: &View,
    tree: Tree<'_>,
    parent: EntryId,
) -> Result<bool> {
    with_parent(snapshot, tree, parent, |above| rights.may_something(Rights::ADD, above))
}

/// Asks something of the entry above another one.
fn with_parent(
    snapshot: &Snapshot,
    tree: Tree<'_>,
    parent: EntryId,
    ask: impl FnOnce(&Candidate<'_, '_>) -> Result<bool>,
) -> Result<bool> {
    let (names, nothing) = (RefCell::new(Names::new()), EntryAttributes::new());
    match tree.entry(parent)? {
        Some(entry) => ask(&Candidate::stored(snapshot, parent, entry, tree, &names)),
        // Above the top of a naming context.
        None => ask(&Candidate::unstored(snapshot, "", &nothing)),
    }
}

/// The text that is stored as the entry's RDN; the top of a naming context has its whole name there.
fn rdn_text(name: &EntryName, below: usize) -> String {
    match (below, name.parts.first()) {
        (1.., Some(first)) => first.text.clone(),
        _ => name.text(),
    }
}

/// The attributes that were given, with the values of the RDN and the superclasses of the classes; and how many values
/// are not of their syntax.
fn completed<'a>(
    snapshot: &Snapshot,
    dn: &str,
    given: impl Iterator<Item = (&'a str, &'a [Cow<'a, [u8]>])>,
    source: Source,
) -> Result<(EntryAttributes, u64)> {
    let (mut attributes, mut malformed) = (EntryAttributes::new(), 0);
    for (description, values) in given {
        malformed += take(snapshot, &mut attributes, description, values, source)?;
    }
    name_values(snapshot, &mut attributes, dn)?;
    complete_classes(&snapshot.schema, &mut attributes)?;
    Ok((attributes, malformed))
}

/// Takes one attribute as it was given, and says how many of its values are not of their syntax:
/// other servers have had laxer days.
fn take(
    snapshot: &Snapshot,
    attributes: &mut EntryAttributes,
    given: &str,
    values: &[Cow<'_, [u8]>],
    source: Source,
) -> Result<u64> {
    let description = edit::describe(&snapshot.schema, given)?;
    let attribute = description.attribute;
    let malformed = match source {
        Source::Client => {
            edit::require_writable(attribute)?;
            edit::check_syntax(&snapshot.schema, attribute, values)?;
            0
        }
        Source::Export if Computed::from_name(attribute.name()).is_some() => return Ok(0),
        Source::Relaxed if attribute.name() == STRUCTURAL_OBJECT_CLASS => return Ok(0),
        Source::Relaxed => {
            edit::require_stored(attribute)?;
            edit::check_stored_syntax(&snapshot.schema, attribute, values)?
        }
        Source::Export => edit::check_stored_syntax(&snapshot.schema, attribute, values)?,
    };
    // A second list for one description belongs to the first.
    let values = values.iter().map(|value| value.to_vec()).collect();
    edit::extend(&snapshot.schema, attributes, &description, values)?;
    Ok(malformed)
}

/// Adds the values of the RDN that are not among the attributes.
fn name_values(snapshot: &Snapshot, attributes: &mut EntryAttributes, dn: &str) -> Result<()> {
    let Some(rdn) = Dn::parse(dn).ok().and_then(|dn| dn.rdns.into_iter().next()) else {
        return Ok(());
    };
    check_rdn(&snapshot.schema, &rdn)?;
    for ava in rdn.avas {
        let description = edit::describe(&snapshot.schema, &ava.attribute)?;
        if !edit::has_value(&snapshot.schema, attributes, description.attribute, &ava.value) {
            edit::check_syntax(&snapshot.schema, description.attribute, &[&ava.value])?;
            edit::add(&snapshot.schema, attributes, &description, vec![ava.value])?;
        }
    }
    if let Some(classes) = attributes.iter().position(|(name, _)| name == OBJECT_CLASS) {
        // First, as people expect to read it.
        attributes.get_mut(..=classes).unwrap_or_default().rotate_right(1);
    }
    Ok(())
}

/// Notes who made the entry and when, unless that is known already.
fn stamp(snapshot: &Snapshot, attributes: &mut EntryAttributes, stamp: &Stamp) -> Result<()> {
    let uuid = match edit::values(attributes, ENTRY_UUID) {
        Some(_) => None,
        None => Some(snapshot.shared.uuid()?),
    };
    let values = [
        (ENTRY_UUID, uuid.as_deref().unwrap_or_default()),
        (CREATORS_NAME, &stamp.author),
        (CREATE_TIMESTAMP, &stamp.time),
        (MODIFIERS_NAME, &stamp.author),
        (MODIFY_TIMESTAMP, &stamp.time),
    ];
    for (name, value) in values {
        if edit::values(attributes, name).is_none() {
            edit::set(attributes, name, value);
        }
    }
    Ok(())
}
