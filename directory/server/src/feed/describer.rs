//! Describes rows of the feed by the schema of their store.

use super::described::{
    AttributeChange, AttributeValues, DescribedChange, EntryChange, Extent, Operation, Renaming,
    RowOrEntry, Values,
};
use super::differing::{Differing, differing};
use super::note::ChangeNote;
use crate::access::Secrets;
use crate::failure::{Failure, Result};
use crate::redefine::Stored;
use keyway_codec::dn::{Ava, Rdn};
use keyway_codec::message::ResultCode;
use keyway_codec::secret::SECRETS;
use keyway_schema::operational::ENTRY_UUID;
use keyway_schema::{Schema, base};
use keyway_store::{Change, EntryId, FeedRow, Moved, Updated, View, Whole};
use std::sync::Arc;

/// Describes changes.
pub struct Describer {
    schema: Arc<Schema>,
    passwords: Secrets,
    shows_passwords: bool,
}

impl Describer {
    /// One that goes by the schema of this state. Values of passwords and keys are shown, or counted.
    ///
    /// # Errors
    /// The store's, or a schema in it that is not understood.
    pub fn new(view: View<'_>, shows_passwords: bool) -> Result<Describer> {
        let schema = Stored::read(view)?.schema();
        let schema = schema.map_err(|why| Failure::new(ResultCode::Other, why.to_string()))?;
        Ok(Describer::of(Arc::new(schema), shows_passwords))
    }

    /// One that goes by the schema of a directory; values of passwords and keys are counted.
    pub(crate) fn within(schema: Arc<Schema>) -> Describer {
        Describer::of(schema, false)
    }

    fn of(schema: Arc<Schema>, shows_passwords: bool) -> Describer {
        Describer { passwords: Secrets::passwords(&schema), schema, shows_passwords }
    }

    /// The schema that it goes by.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Whether a row changes the schema, so that what comes behind it is to be described by another one.
    pub fn redefines(row: &FeedRow) -> bool {
        let mut changes = row.jobs.iter().flat_map(|job| &job.changes);
        changes
            .any(|change| matches!(change, Change::Meta(meta) if meta.name.starts_with("schema")))
    }

    /// The changes of a row, in their order. A move and the new relative name that comes with it are one.
    pub fn describe(&self, row: FeedRow) -> Vec<DescribedChange> {
        let (mut described, mut next) = (Vec::new(), 0);
        for job in row.jobs {
            let note = ChangeNote::decode(&job.note);
            let mut changes = job.changes.into_iter().peekable();
            while let Some(change) = changes.next() {
                let index = next;
                next += 1;
                let change = match change {
                    Change::Inserted(whole) => self.whole(whole, Operation::Add),
                    Change::Deleted(whole) => self.whole(whole, Operation::Delete),
                    Change::Updated(updated) => self.updated(updated),
                    Change::Meta(meta) => RowOrEntry::Row(meta.name),
                    Change::Moved(moved) => {
                        let follows = |next: &Change| matches!(next, Change::Updated(updated) if updated.id == moved.id);
                        let updated = match changes.next_if(follows) {
                            Some(Change::Updated(updated)) => Some(updated),
                            _ => None,
                        };
                        next += u64::from(updated.is_some());
                        self.moved(moved, updated)
                    }
                };
                described.push(DescribedChange {
                    position: row.position,
                    index,
                    number: row.first_change.saturating_add(index),
                    note: note.clone(),
                    change,
                });
            }
        }
        described
    }

    fn whole(&self, whole: Whole, operation: fn(Vec<AttributeValues>) -> Operation) -> RowOrEntry {
        let Whole { id, above, entry, .. } = whole;
        let uuid = entry.attributes.iter().find(|(name, _)| name == ENTRY_UUID);
        let uuid = uuid.and_then(|(_, values)| values.first()).map(Vec::as_slice);
        let uuid = text(uuid.unwrap_or_default());
        let large = entry.large.into_iter().map(|large| {
            (large.name, large.added.into_iter().map(|(_, value)| value).collect::<Vec<_>>())
        });
        let attributes = entry.attributes.into_iter().chain(large);
        let attributes = attributes
            .map(|(name, values)| AttributeValues { values: self.values(&name, values), name });
        let operation = operation(attributes.collect());
        RowOrEntry::Entry(EntryChange { id, uuid, dn: dn(&entry.rdn, &above), operation })
    }

    fn updated(&self, updated: Updated) -> RowOrEntry {
        let Updated { id, identity, above, rdn: [old, new], attributes, large } = updated;
        let attributes = differing(attributes, large);
        if old != new {
            return self.renamed(
                (id, &identity),
                [&old, &new],
                [&above, &above],
                attributes,
                false,
            );
        }
        let operation = Operation::Modify(self.changes(attributes));
        RowOrEntry::Entry(EntryChange {
            id,
            uuid: text(&identity),
            dn: dn(&old, &above),
            operation,
        })
    }

    fn moved(&self, moved: Moved, updated: Option<Updated>) -> RowOrEntry {
        let Moved { id, identity, rdn, parent: [from, to], above: [old, new], .. } = moved;
        let (new_rdn, attributes) = match updated {
            Some(updated) => {
                let [_, new_rdn] = updated.rdn;
                (new_rdn, differing(updated.attributes, updated.large))
            }
            None => (rdn.clone(), Vec::new()),
        };
        self.renamed((id, &identity), [&rdn, &new_rdn], [&old, &new], attributes, from != to)
    }

    fn renamed(
        &self,
        (id, identity): (EntryId, &[u8]),
        [old, new]: [&str; 2],
        [above_old, above_new]: [&str; 2],
        mut attributes: Vec<Differing>,
        is_moved: bool,
    ) -> RowOrEntry {
        let [delete_old_rdn, brings_values] = self.take_names([old, new], &mut attributes);
        let operation = Operation::ModifyDn(Renaming {
            new_rdn: new.to_owned(),
            delete_old_rdn,
            brings_values,
            new_superior: is_moved.then(|| above_new.to_owned()),
            new_dn: dn(new, above_new),
            attributes: self.changes(attributes),
        });
        RowOrEntry::Entry(EntryChange {
            id,
            uuid: text(identity),
            dn: dn(old, above_old),
            operation,
        })
    }

    /// Takes out of the attributes what the new relative name brings about; whether values of the old one went, and
    /// whether some of the new one came.
    fn take_names(&self, [old, new]: [&str; 2], attributes: &mut Vec<Differing>) -> [bool; 2] {
        let (Ok(old), Ok(new)) = (Rdn::parse(old), Rdn::parse(new)) else { return [false; 2] };
        let (mut has_deleted, mut has_added) = (false, false);
        for ava in old.avas.iter().filter(|ava| !new.avas.contains(ava)) {
            has_deleted |= self.take(ava, attributes, |one| &mut one.removed);
        }
        for ava in &new.avas {
            has_added |= self.take(ava, attributes, |one| &mut one.added);
        }
        attributes.retain(|one| !one.is_empty());
        [has_deleted, has_added]
    }

    /// Takes the value of a name out of the values of its attribute; whether it was there.
    fn take(
        &self,
        ava: &Ava,
        attributes: &mut [Differing],
        values: fn(&mut Differing) -> &mut Vec<Vec<u8>>,
    ) -> bool {
        let mut attributes = attributes.iter_mut();
        let Some(one) = attributes.find(|one| one.name.eq_ignore_ascii_case(&ava.attribute)) else {
            return false;
        };
        let come = one.added.len();
        let values = values(one);
        let as_written = values.iter().position(|value| *value == ava.value);
        let equal = || {
            let rule = self.schema.attribute(&ava.attribute)?.equality()?;
            let normal = self.schema.normalize(rule, &ava.value)?;
            values
                .iter()
                .position(|value| self.schema.normalize(rule, value).as_ref() == Some(&normal))
        };
        let Some(at) = as_written.or_else(equal) else { return false };
        values.remove(at);
        // It stays, whatever becomes of the others.
        one.is_whole &= one.added.len() == come;
        true
    }

    fn changes(&self, attributes: Vec<Differing>) -> Vec<AttributeChange> {
        let change = |one: Differing| {
            let Differing { name, removed, added, is_whole } = one;
            let is_single =
                || self.schema.attribute(base(&name)).is_some_and(|known| known.is_single_value());
            let extent = match (removed.is_empty(), added.is_empty()) {
                (_, true) if is_whole => Extent::Gone,
                (false, false) if is_whole || is_single() => Extent::Replaced,
                _ => Extent::Some,
            };
            let (removed, added) = (self.values(&name, removed), self.values(&name, added));
            AttributeChange { name, extent, removed, added }
        };
        attributes.into_iter().map(change).collect()
    }

    fn values(&self, name: &str, values: Vec<Vec<u8>>) -> Values {
        match !self.shows_passwords && self.is_secret(base(name)) {
            true => Values::Hidden(values.len()),
            false => Values::Shown(values),
        }
    }

    /// Whether values of an attribute are passwords or keys. One that the schema has forgotten since may have been a
    /// subtype of those.
    pub fn is_secret(&self, name: &str) -> bool {
        self.passwords.contain(name)
            || SECRETS.iter().any(|known| known.eq_ignore_ascii_case(name))
            || self.schema.attribute(name).is_none()
    }
}

fn dn(rdn: &str, above: &str) -> String {
    if above.is_empty() { rdn.to_owned() } else { format!("{rdn},{above}") }
}

fn text(identity: &[u8]) -> String {
    String::from_utf8_lossy(identity).into_owned()
}
