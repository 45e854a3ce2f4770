//! Another schema in the place of the one there is: checked against all entries, put into the store
//! with what it was made of, and then used by all operations at once.
//!
//! The store's row says how often the schema has changed. A write is prepared under one schema and
//! done later; if the row says another number by then, it is refused and can be tried again.

use crate::access::Access;
use crate::failure::{Failure, Result};
use crate::index::required_indexes;
use crate::index::{IndexKind, Kinds, turn};
use crate::large::whole;
use crate::locate::SpecialEntries;
use crate::settings::Settings;
use crate::state::{CurrentSnapshot, DirectoryState, Snapshot};
use keyway_codec::message::ResultCode;
use keyway_lock::Unpoisoned;
use keyway_schema::{Changes, Composed, Difference, Schema, SchemaError, Sources};
use keyway_store::{Change, EntryId, Names, View, Write};
use std::sync::Arc;

/// Rows of the store's meta table: all definitions; those that came over LDAP; how often the schema
/// has changed, and when it last did.
pub(crate) const META_SCHEMA: &str = "schema";
const META_CHANGES: &str = "schema-changes";
const META_GENERATION: &str = "schema-generation";

/// The schema that a store was written with.
#[derive(Default)]
pub(crate) struct Stored {
    /// The changes that were made over LDAP.
    pub changes: Changes,
    /// How often the schema has changed.
    pub generation: u64,
    /// When it last did; empty if that is not known.
    pub time: String,
    /// All definitions; empty in a store that knows none.
    text: String,
}

impl Stored {
    /// Reads it.
    ///
    /// # Errors
    /// The store's; a row that is not understood.
    pub fn read(view: View<'_>) -> Result<Stored> {
        let row = |name: &str| -> Result<String> {
            let row = view.meta_get(name)?.unwrap_or_default();
            Ok(String::from_utf8_lossy(row).into_owned())
        };
        let changes = Changes::from_text(&row(META_CHANGES)?).map_err(|why| other(&why))?;
        let numbered = row(META_GENERATION)?;
        let (generation, time) = numbered.split_once(' ').unwrap_or(("0", ""));
        let generation = generation.parse().unwrap_or_default();
        Ok(Stored { changes, generation, time: time.to_owned(), text: row(META_SCHEMA)? })
    }

    /// Whether it was written with these definitions.
    pub fn is(&self, composed: &Composed) -> bool {
        self.text == composed.to_text()
    }

    /// The schema that it was written with: the standard one if it does not say.
    pub fn schema(&self) -> Result<Schema, SchemaError> {
        if self.text.is_empty() {
            return Schema::standard();
        }
        let all = Changes::from_text(&self.text)?;
        Schema::of(&all.attribute_types, &all.object_classes)
    }
}

fn other(why: &SchemaError) -> Failure {
    Failure::new(ResultCode::Other, why.to_string())
}

/// Puts the rows of a schema.
pub(crate) fn put(write: &mut Write<'_>, snapshot: &Snapshot) -> Result<()> {
    write.meta_put(META_SCHEMA, snapshot.composed.to_text().as_bytes())?;
    write.meta_put(META_CHANGES, snapshot.changes.to_text().as_bytes())?;
    let numbered = format!("{} {}", snapshot.generation, snapshot.schema_time);
    Ok(write.meta_put(META_GENERATION, numbered.as_bytes())?)
}

/// Checks that no entry contradicts a schema that is to be used instead of another. Looks at every
/// entry, unless the new schema has all that the old one has.
///
/// # Errors
/// `unwillingToPerform`: how many entries do, and the first of them; or the store's.
pub(crate) fn check_entries(view: View<'_>, old: &Schema, new: &Schema) -> Result<()> {
    let difference = Difference::new(old, new);
    if difference.is_empty() {
        return Ok(());
    }
    let (mut first, mut count) = (None, 0_u64);
    for entry in view.entries(EntryId::ROOT)? {
        let (id, entry) = entry?;
        let attributes = whole(view, id, &entry)?;
        let Some(why) = difference.contradiction(entry.rdn(), &attributes) else { continue };
        count += 1;
        if first.is_none() {
            first = Some((view.dn_of(&entry, &mut Names::new())?, why));
        }
    }
    let Some((dn, why)) = first else { return Ok(()) };
    let entries = if count == 1 { "1 entry needs".into() } else { format!("{count} entries need") };
    let text = format!(
        "{entries} {} as it is, \"{dn}\" for one: {why}; change them first, or put back what defined it (a file in \
         the data folder's schema, a set in [schema])",
        difference.shown()
    );
    Err(Failure::new(ResultCode::UnwillingToPerform, text))
}

/// A schema that is to take the place of another.
pub(crate) struct Redefinition {
    old: Arc<Snapshot>,
    next: Arc<Snapshot>,
    /// Indexes that are made anew.
    anew: Kinds,
}

/// The indexes of these for ordering whose rule is another.
fn reordered(old: &Schema, new: &Schema, kinds: &Kinds) -> Kinds {
    let rule = |schema: &Schema, name: &str| schema.attribute(name).and_then(|one| one.ordering());
    let differs = |(name, kind): &&(String, IndexKind)| {
        *kind == IndexKind::Ordering && rule(old, name) != rule(new, name)
    };
    kinds.iter().filter(differs).cloned().collect()
}

impl Redefinition {
    /// Makes another schema of these parts; `None` if it would be the same.
    ///
    /// # Errors
    /// `invalidAttributeSyntax` for definitions that make no schema; `unwillingToPerform` if the
    /// settings name what would be gone.
    pub fn new(
        old: &Arc<Snapshot>,
        sources: Sources,
        changes: Changes,
        settings: &Settings,
    ) -> Result<Option<Redefinition>> {
        let wrong =
            |why: SchemaError| Failure::new(ResultCode::InvalidAttributeSyntax, why.to_string());
        let composed = Composed::new(&sources, &changes).map_err(wrong)?;
        if composed.to_text() == old.composed.to_text() && changes == old.changes {
            return Ok(None);
        }
        let schema = composed.schema().map_err(wrong)?;
        let needed = |why: String| Failure::new(ResultCode::UnwillingToPerform, why);
        let (integrity, indexes) = required_indexes(settings, &schema)
            .map_err(|why| needed(format!("the configuration needs what would be gone: {why}")))?;
        Access::new(&settings.rules, &schema)
            .map_err(|why| needed(format!("an access rule needs what would be gone: {why}")))?;
        // Their keys would be in another order.
        let anew = reordered(&old.schema, &schema, &indexes.kinds());
        let indexes = indexes.without(&anew);
        let next = Snapshot {
            special_entries: Arc::new(SpecialEntries::new(&schema, &indexes)),
            schema: Arc::new(schema),
            integrity: Arc::new(integrity),
            indexes: Arc::new(indexes),
            schema_time: old.shared.timestamp(),
            generation: old.generation + 1,
            composed: Arc::new(composed),
            sources,
            changes,
            shared: old.shared.clone(),
        };
        Ok(Some(Redefinition { old: old.clone(), next: Arc::new(next), anew }))
    }

    /// Checks the entries there are, and puts it into the store.
    ///
    /// # Errors
    /// As [`check_entries`], also if an entry's access rule needs what would be gone; `busy` if the
    /// schema has changed since this was made.
    pub fn apply(&self, write: &mut Write<'_>) -> Result<()> {
        self.old.require_current(write)?;
        self.next.stored_rules(write.view())?;
        check_entries(write.view(), &self.old.schema, &self.next.schema)?;
        turn(write, &self.next.indexes.kinds(), &self.anew)?;
        put(write, &self.next)
    }

    /// The new state, to be used when it is on the disk.
    pub fn next(&self) -> Arc<Snapshot> {
        self.next.clone()
    }
}

/// The schema that the change of another directory leaves.
pub(crate) struct Redefined {
    /// The new state.
    pub next: Arc<Snapshot>,
    /// Indexes that are made anew.
    pub anew: Kinds,
}

impl Redefined {
    /// The state that these changes leave; `None` if they do not change the schema. The files and sets of this directory
    /// have to make what the other one's made.
    ///
    /// # Errors
    /// `unwillingToPerform` if they do not, and as [`Redefinition::new`].
    pub fn by<'c>(
        old: &Arc<Snapshot>,
        changed: impl Iterator<Item = &'c Change>,
        settings: &Settings,
    ) -> Result<Option<Redefined>> {
        let mut rows: [Option<String>; 3] = [None, None, None];
        for change in changed {
            let Change::Meta(meta) = change else { continue };
            let names = [META_SCHEMA, META_CHANGES, META_GENERATION];
            let at = names.iter().position(|name| *name == meta.name);
            if let Some(row) = at.and_then(|at| rows.get_mut(at)) {
                let [_, value] = &meta.value;
                let value = value.as_deref().unwrap_or_default();
                *row = Some(String::from_utf8_lossy(value).into_owned());
            }
        }
        let [text, changes, numbered] = rows;
        if text.is_none() && changes.is_none() {
            return Ok(None);
        }
        let changes = match changes {
            Some(text) => Changes::from_text(&text).map_err(|why| other(&why))?,
            None => old.changes.clone(),
        };
        let made = Redefinition::new(old, old.sources.clone(), changes, settings)?;
        let (mut next, anew) = match made {
            Some(made) => (Snapshot::clone(&made.next), made.anew),
            None => (Snapshot::clone(old), Kinds::new()),
        };
        if text.is_some_and(|text| text != next.composed.to_text()) {
            let text = "the server that writes uses other sets or files of the schema: give this one the same \
                        ([schema] and the folder schema), and start it again";
            return Err(Failure::new(ResultCode::UnwillingToPerform, text));
        }
        if let Some((number, time)) = numbered.as_deref().and_then(|text| text.split_once(' ')) {
            next.generation = number.parse().unwrap_or_default();
            time.clone_into(&mut next.schema_time);
        }
        Ok(Some(Redefined { next: Arc::new(next), anew }))
    }
}

impl Snapshot {
    /// Checks that the store's entries are those of this schema.
    ///
    /// # Errors
    /// `busy` if the schema was changed.
    pub fn require_current(&self, write: &Write<'_>) -> Result<()> {
        require_generation(write, self.generation)
    }
}

/// Checks that the schema is still the one of this number.
///
/// # Errors
/// `busy` if it was changed.
pub(crate) fn require_generation(write: &Write<'_>, generation: u64) -> Result<()> {
    let row = write.view().meta_get(META_GENERATION)?.unwrap_or_default();
    let number = row.split(|byte| *byte == b' ').next().unwrap_or_default();
    if number == generation.to_string().as_bytes() {
        return Ok(());
    }
    Err(Failure::new(ResultCode::Busy, "the schema has just been changed: try again"))
}

/// Uses the settings from now on, with another state of the schema if there is one. The whole indexes are
/// `whole`, or those that are whole now and that another schema does not make anew.
pub(crate) fn install(
    shared: &DirectoryState,
    current: &CurrentSnapshot,
    next: Option<Arc<Snapshot>>,
    whole: Option<&Kinds>,
) {
    let settings = shared.settings.read().unpoisoned();
    let mut current = current.write().unpoisoned();
    let next = next.as_ref().unwrap_or(&current);
    // It was tried when the state was made; rules that have come since name what both have.
    let _ = shared.access.configure(&settings.rules, &next.schema);
    let next = match whole {
        Some(whole) => next.reading(&settings, whole),
        None => {
            let before = current.indexes.whole();
            let whole = &before & &next.indexes.whole();
            shared.invalidated.invalidate(&(&before - &whole));
            next.reading(&settings, &whole)
        }
    };
    *current = Arc::new(next);
}
