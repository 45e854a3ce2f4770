//! Modify of the subschema entry (RFC 4512 § 4.2): definitions that are added, changed and deleted.

use crate::access::{Place, Rights, Subject};
use crate::candidate::Candidate;
use crate::controls::RequestControls;
use crate::failure::unwilling;
use crate::failure::{Failure, Result};
use crate::limits::SCHEMA_CHANGES_BYTES_MAX;
use crate::redefine::Redefinition;
use crate::state::Snapshot;
use keyway_codec::description::{
    AttributeTypeDescription, DescriptionError, ObjectClassDescription,
};
use keyway_codec::message::{Change, ChangeOperation, ModifyRequest, ResultCode};
use keyway_lock::Unpoisoned;
use keyway_schema::operational::SUBSCHEMA_DN;
use keyway_schema::{
    Changes, Composed, Defined, Definition, DefinitionOrigin, EntryAttributes, is_kept,
};
use std::borrow::Cow;
use std::sync::Arc;

/// The attributes of the subschema that can be changed, and their OIDs.
const ATTRIBUTE_TYPES: [&str; 2] = ["attributeTypes", "2.5.21.5"];
const OBJECT_CLASSES: [&str; 2] = ["objectClasses", "2.5.21.6"];

/// Understands a client's request. `None` in it if it changes nothing.
///
/// # Errors
/// Why it cannot be done, before any entry is looked at.
pub(crate) fn redefinition(
    snapshot: &Arc<Snapshot>,
    subject: &Subject,
    request: &ModifyRequest<'_>,
    controls: &RequestControls<'_>,
) -> Result<Option<Redefinition>> {
    require_rights(snapshot, subject, request)?;
    if controls.assertion.is_some() || controls.pre_read.is_some() || controls.post_read.is_some() {
        let text = "the controls for assertions and read entries do not work on the schema";
        return Err(Failure::new(ResultCode::UnavailableCriticalExtension, text));
    }
    let mut changes = snapshot.changes.clone();
    let mut types = Edited::new(&snapshot.composed.attribute_types);
    let mut classes = Edited::new(&snapshot.composed.object_classes);
    for change in &request.changes {
        match kind(&change.attribute.description)? {
            Kind::AttributeTypes => types.edit(change, AttributeTypeDescription::parse_stored)?,
            Kind::ObjectClasses => classes.edit(change, ObjectClassDescription::parse_stored)?,
        }
    }
    let deleted = types.into_changes(&mut changes.attribute_types)?;
    let more = classes.into_changes(&mut changes.object_classes)?;
    let is_there = |changes: &Changes, oid: &String| {
        changes.attribute_types.iter().any(|one| one.oid == *oid)
            || changes.object_classes.iter().any(|one| one.oid == *oid)
    };
    changes.deleted.extend(deleted.into_iter().chain(more));
    changes.deleted.sort_unstable();
    changes.deleted.dedup();
    let deleted = std::mem::take(&mut changes.deleted);
    // Only what a file would bring again need be remembered.
    let files = Composed::new(&snapshot.sources, &Changes::default())
        .map_err(|why| Failure::new(ResultCode::Other, why.to_string()))?;
    let is_needed = |oid: &String| files.defines(oid) && !is_there(&changes, oid);
    changes.deleted = deleted.into_iter().filter(|oid| is_needed(oid)).collect();
    if changes.to_text().len() > SCHEMA_CHANGES_BYTES_MAX {
        let text = format!("definitions made over LDAP may have {SCHEMA_CHANGES_BYTES_MAX} bytes");
        return Err(Failure::new(ResultCode::AdminLimitExceeded, text));
    }
    let settings = snapshot.shared.settings.read().unpoisoned().clone();
    Redefinition::new(snapshot, snapshot.sources.clone(), changes, &settings)
}

fn require_rights(
    snapshot: &Snapshot,
    subject: &Subject,
    request: &ModifyRequest<'_>,
) -> Result<()> {
    let rights = snapshot.permissions(subject, Place::Subschema);
    let (dn, nothing) = (SUBSCHEMA_DN, EntryAttributes::new());
    let entry = Candidate::unstored(snapshot, dn, &nothing);
    for change in &request.changes {
        let known = snapshot.schema.attribute(&change.attribute.description);
        let name = known.map_or(ATTRIBUTE_TYPES[0], |known| known.name());
        if !rights.may(Rights::WRITE, name, &entry)? {
            return Err(Failure::denied("change the schema"));
        }
    }
    Ok(())
}

enum Kind {
    AttributeTypes,
    ObjectClasses,
}

fn kind(description: &str) -> Result<Kind> {
    let is = |names: [&str; 2]| names.iter().any(|name| name.eq_ignore_ascii_case(description));
    match () {
        () if is(ATTRIBUTE_TYPES) => Ok(Kind::AttributeTypes),
        () if is(OBJECT_CLASSES) => Ok(Kind::ObjectClasses),
        () => Err(unwilling(format!(
            "of the schema only attributeTypes and objectClasses can be changed, not {description}"
        ))),
    }
}

/// The definitions of one kind while they are being changed.
struct Edited<'c, D: Definition> {
    before: &'c [Defined<D>],
    now: Vec<Cow<'c, D>>,
}

impl<'c, D: Definition> Edited<'c, D> {
    fn new(before: &'c [Defined<D>]) -> Self {
        Edited { before, now: before.iter().map(|one| Cow::Borrowed(&one.definition)).collect() }
    }

    fn edit(
        &mut self,
        change: &Change<'_>,
        parse: fn(&str) -> std::result::Result<D, DescriptionError>,
    ) -> Result<()> {
        let values = change.attribute.values.iter().map(|value| text(value));
        let values: Vec<&str> = values.collect::<Result<_>>()?;
        let name = &change.attribute.description;
        if values.is_empty() {
            return Err(unwilling(format!("name the {name} that are meant by their OIDs")));
        }
        if change.operation == ChangeOperation::Replace {
            // Definitions that the program brings stay, also if a client gives only its own.
            let own = |one: &&Defined<D>| {
                matches!(
                    one.origin,
                    DefinitionOrigin::Standard
                        | DefinitionOrigin::Program
                        | DefinitionOrigin::Set(_)
                )
            };
            let kept = self.before.iter().filter(own);
            self.now = kept.map(|one| Cow::Borrowed(&one.definition)).collect();
        }
        for value in values {
            match change.operation {
                ChangeOperation::Delete => self.delete(value)?,
                ChangeOperation::Increment => {
                    return Err(unwilling("definitions cannot be incremented"));
                }
                ChangeOperation::Add | ChangeOperation::Replace => {
                    let new = parse(value).map_err(|why| {
                        let text = format!("\"{}\": {why}", beginning(value));
                        Failure::new(ResultCode::InvalidAttributeSyntax, text)
                    })?;
                    if !self.before.iter().any(|one| one.definition.means(&new))
                        && let Some(why) = new.dangling()
                    {
                        let text = format!("{}: {why}", new.shown());
                        return Err(Failure::new(ResultCode::InvalidAttributeSyntax, text));
                    }
                    self.add(new, change.operation == ChangeOperation::Replace)?;
                }
            }
        }
        Ok(())
    }

    /// Deletes the definition of this OID or name, or that has this one.
    fn delete(&mut self, value: &str) -> Result<()> {
        let inner = value.trim().strip_prefix('(').unwrap_or(value);
        let key = inner.split_ascii_whitespace().next().unwrap_or_default();
        let is = |one: &Cow<'_, D>| {
            let names = one.names().iter();
            one.oid().eq_ignore_ascii_case(key) || names.map(String::as_str).any(|n| n == key)
        };
        let Some(at) = self.now.iter().position(is) else {
            let text = format!("there is no definition of {key}");
            return Err(Failure::new(ResultCode::NoSuchAttribute, text));
        };
        self.now.remove(at);
        Ok(())
    }

    fn add(&mut self, new: D, may_replace: bool) -> Result<()> {
        let met = self.now.iter().position(|one| one.meets(&new));
        match met {
            Some(at) if may_replace => {
                if let Some(old) = self.now.get_mut(at)
                    && !old.means(&new)
                {
                    *old = Cow::Owned(new);
                }
            }
            Some(at) => {
                let old = self.now.get(at).map_or("?", |old| old.shown());
                let text = format!(
                    "{old} has the OID or a name of {} already; to change it, delete the old form \
                     and add the new one in one request",
                    new.shown()
                );
                return Err(Failure::new(ResultCode::AttributeOrValueExists, text));
            }
            None => {
                let before = self.before.iter().map(|one| &one.definition);
                let same = before.filter(|old| old.means(&new)).map(Cow::Borrowed).next();
                self.now.push(same.unwrap_or(Cow::Owned(new)));
            }
        }
        Ok(())
    }

    /// Enters what has become of them: definitions that are new or changed into `changed`, and
    /// returns the OIDs of those that are gone and that another source would bring again.
    fn into_changes(self, changed: &mut Vec<D>) -> Result<Vec<String>> {
        let mut deleted = Vec::new();
        for defined @ Defined { definition, origin } in self.before {
            let left = self.now.iter().find(|one| one.oid() == definition.oid());
            if left.is_some_and(|one| matches!(one, Cow::Borrowed(_))) {
                continue;
            }
            let name = definition.shown();
            if is_kept(defined) {
                return Err(unwilling(format!("the server needs {name} as it is")));
            }
            if left.is_some() {
                continue;
            }
            match origin {
                // They are needed, which was said above.
                DefinitionOrigin::Program => {}
                DefinitionOrigin::Standard => {
                    return Err(unwilling(format!("{name} is a standard definition and stays")));
                }
                DefinitionOrigin::Set(set) => {
                    return Err(unwilling(format!(
                        "{name} is of the set {set}: take that out of [schema] in keyway.toml"
                    )));
                }
                DefinitionOrigin::File { .. } | DefinitionOrigin::Ldap => {
                    deleted.push(definition.oid().to_owned())
                }
            }
        }
        let new = self.now.into_iter().filter_map(|one| match one {
            Cow::Owned(definition) => Some(definition),
            Cow::Borrowed(_) => None,
        });
        let new: Vec<D> = new.collect();
        changed.retain(|old| {
            !deleted.iter().any(|oid| oid == old.oid()) && !new.iter().any(|one| one.meets(old))
        });
        changed.extend(new);
        Ok(deleted)
    }
}

fn text(value: &[u8]) -> Result<&str> {
    str::from_utf8(value).map_err(|_| {
        Failure::new(ResultCode::InvalidAttributeSyntax, "a definition is not UTF-8 text")
    })
}

/// The part that is shown of a definition that cannot be read.
fn beginning(value: &str) -> &str {
    value.get(..value.floor_char_boundary(80)).unwrap_or(value)
}
