//! Putting definitions together: the standard ones, those of sets, of files, and what was changed
//! over LDAP. A later one takes the place of an earlier one that has its OID or one of its names.

use crate::definition::Definition;
use crate::error::SchemaError;
use crate::schema::Schema;
use crate::sources::{Changes, Sources, to_text};
use keyway_codec::definitions::{self, File, Located};
use keyway_codec::description::{AttributeTypeDescription, ObjectClassDescription};
use keyway_codec::standard;
use std::fmt;

/// Where a definition comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionOrigin {
    /// It is there always.
    Standard,
    /// It is the program's that has the server.
    Program,
    /// A set that is switched on.
    Set(&'static str),
    /// A file.
    File {
        /// Its name.
        name: String,
        /// The line that the definition begins on.
        line: u64,
    },
    /// A change over LDAP.
    Ldap,
}

impl fmt::Display for DefinitionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefinitionOrigin::Standard => f.write_str("the standard schema"),
            DefinitionOrigin::Program => f.write_str("keyway's own"),
            DefinitionOrigin::Set(name) => write!(f, "the set {name}"),
            DefinitionOrigin::File { name, line } => write!(f, "{name}, line {line}"),
            DefinitionOrigin::Ldap => f.write_str("a change over LDAP"),
        }
    }
}

/// A definition and where it comes from.
#[derive(Clone, Debug)]
pub struct Defined<D> {
    /// The definition itself.
    pub definition: D,
    /// Who says it.
    pub origin: DefinitionOrigin,
}

/// All definitions of a schema.
#[derive(Clone, Debug, Default)]
pub struct Composed {
    /// Attribute types.
    pub attribute_types: Vec<Defined<AttributeTypeDescription>>,
    /// Object classes.
    pub object_classes: Vec<Defined<ObjectClassDescription>>,
    /// The parts of files that do not count, and why.
    pub warnings: Vec<String>,
}

impl Composed {
    /// Puts them together.
    ///
    /// # Errors
    /// A definition that cannot be read, or that two files have in different forms.
    pub fn new(sources: &Sources, changes: &Changes) -> Result<Composed, SchemaError> {
        let mut composed = Composed::default();
        for text in standard::ATTRIBUTE_TYPES {
            let definition =
                AttributeTypeDescription::parse(text).map_err(|why| bad(text, &why))?;
            composed
                .attribute_types
                .push(Defined { definition, origin: DefinitionOrigin::Standard });
        }
        for text in standard::OBJECT_CLASSES {
            let definition = ObjectClassDescription::parse(text).map_err(|why| bad(text, &why))?;
            composed
                .object_classes
                .push(Defined { definition, origin: DefinitionOrigin::Standard });
        }
        let program = sources.program.iter().map(|file| (file.name.as_str(), &*file.bytes));
        composed.read(program, |_, _| DefinitionOrigin::Program)?;
        let sets = sources.sets.iter().map(|set| (set.name, set.text.as_bytes()));
        composed.read(sets, |name, _| DefinitionOrigin::Set(static_name(sources, name)))?;
        let files = sources.files.iter().map(|file| (file.name.as_str(), &*file.bytes));
        composed
            .read(files, |name, line| DefinitionOrigin::File { name: name.to_owned(), line })?;
        composed.change(changes);
        Ok(composed)
    }

    /// The schema that they are.
    ///
    /// # Errors
    /// A definition that refers to what is not there, with where it stands.
    pub fn schema(&self) -> Result<Schema, SchemaError> {
        let attributes: Vec<_> =
            self.attribute_types.iter().map(|one| one.definition.clone()).collect();
        let classes: Vec<_> =
            self.object_classes.iter().map(|one| one.definition.clone()).collect();
        Schema::of(&attributes, &classes).map_err(|error| SchemaError {
            definition: self.place(&error.definition),
            why: error.why,
        })
    }

    /// Where a definition stands, and what it is called.
    fn place(&self, name: &str) -> String {
        let attributes =
            self.attribute_types.iter().map(|one| (&one.origin, &one.definition.names));
        let classes = self.object_classes.iter().map(|one| (&one.origin, &one.definition.names));
        let found =
            attributes.chain(classes).find(|(_, names)| names.iter().any(|one| one == name));
        match found {
            Some((origin, _)) => format!("{name} ({origin})"),
            None => name.to_owned(),
        }
    }

    /// Whether there is a definition of this OID.
    pub fn defines(&self, oid: &str) -> bool {
        self.attribute_types.iter().any(|one| one.definition.oid == oid)
            || self.object_classes.iter().any(|one| one.definition.oid == oid)
    }

    /// All definitions as text, a line each.
    pub fn to_text(&self) -> String {
        to_text(
            self.attribute_types.iter().map(|one| &one.definition),
            self.object_classes.iter().map(|one| &one.definition),
        )
    }

    /// As text, a line each, the definitions that a new data folder lacks or has otherwise.
    ///
    /// # Errors
    /// None, as [`Schema::standard`].
    pub fn beyond_defaults(&self) -> Result<String, SchemaError> {
        beyond_defaults(taken_along(&self.attribute_types), taken_along(&self.object_classes))
    }

    fn read<'s>(
        &mut self,
        files: impl Iterator<Item = (&'s str, &'s [u8])>,
        origin: impl Fn(&str, u64) -> DefinitionOrigin,
    ) -> Result<(), SchemaError> {
        let files: Vec<File<'s>> = files.map(|(name, bytes)| File { name, bytes }).collect();
        let read = definitions::read(&files).map_err(|error| SchemaError {
            definition: SchemaError::place(&error),
            why: error.why,
        })?;
        let origin_of =
            |file: usize, line: u64| origin(files.get(file).map_or("?", |file| file.name), line);
        let mut replaced = Vec::new();
        for Located { file, line, definition } in read.attribute_types {
            let new = Defined { definition, origin: origin_of(file, line) };
            put(&mut self.attribute_types, &mut replaced, &mut self.warnings, new)?;
        }
        inherit_names(&mut self.attribute_types, &mut replaced);
        for Located { file, line, definition } in read.object_classes {
            let new = Defined { definition, origin: origin_of(file, line) };
            put(&mut self.object_classes, &mut replaced, &mut self.warnings, new)?;
        }
        inherit_names(&mut self.object_classes, &mut replaced);
        Ok(())
    }

    fn change(&mut self, changes: &Changes) {
        let warnings = &mut self.warnings;
        delete(&mut self.attribute_types, warnings, changes);
        delete(&mut self.object_classes, warnings, changes);
        for definition in &changes.attribute_types {
            overlay(&mut self.attribute_types, warnings, definition);
        }
        for definition in &changes.object_classes {
            overlay(&mut self.object_classes, warnings, definition);
        }
    }
}

impl Schema {
    /// The standard definitions, with all sets that come with the program.
    ///
    /// # Errors
    /// None, as a test shows; the type is that of any schema.
    pub fn standard() -> Result<Schema, SchemaError> {
        Composed::new(&Sources::defaults(), &Changes::default())?.schema()
    }
}

/// Those that another folder may lack: it has the program's as well.
fn taken_along<D>(all: &[Defined<D>]) -> impl Iterator<Item = &D> {
    let other = |one: &&Defined<D>| one.origin != DefinitionOrigin::Program;
    all.iter().filter(other).map(|one| &one.definition)
}

/// Those of these definitions, as text, that a new data folder lacks or has otherwise.
///
/// # Errors
/// None, as [`Schema::standard`].
pub fn beyond_defaults<'d>(
    attribute_types: impl Iterator<Item = &'d AttributeTypeDescription>,
    object_classes: impl Iterator<Item = &'d ObjectClassDescription>,
) -> Result<String, SchemaError> {
    let defaults = Composed::new(&Sources::defaults(), &Changes::default())?;
    Ok(to_text(
        attribute_types.filter(|one| !is_among(&defaults.attribute_types, *one)),
        object_classes.filter(|one| !is_among(&defaults.object_classes, *one)),
    ))
}

/// Whether one of these says the same.
pub fn is_among<D: Definition>(all: &[Defined<D>], definition: &D) -> bool {
    all.iter().any(|one| one.definition.means(definition))
}

fn bad(text: &str, why: &dyn fmt::Display) -> SchemaError {
    SchemaError::new(text, why.to_string())
}

fn static_name(sources: &Sources, name: &str) -> &'static str {
    sources.sets.iter().find(|set| set.name == name).map_or("?", |set| set.name)
}

/// Takes what was deleted over LDAP out of what files define.
fn delete<D: Definition>(all: &mut Vec<Defined<D>>, warnings: &mut Vec<String>, changes: &Changes) {
    all.retain(|one| {
        let is_deleted =
            !is_kept(one) && changes.deleted.iter().any(|oid| oid == one.definition.oid());
        if is_deleted {
            let name = one.definition.shown();
            warnings
                .push(format!("{name} ({}) was deleted over LDAP, and is left out", one.origin));
        }
        !is_deleted
    });
}

/// Puts a definition of a set or a file among the others.
fn put<D: Definition>(
    all: &mut Vec<Defined<D>>,
    replaced: &mut Vec<Replaced>,
    warnings: &mut Vec<String>,
    mut new: Defined<D>,
) -> Result<(), SchemaError> {
    let Some(first) = all.iter().position(|old| old.definition.meets(&new.definition)) else {
        all.push(new);
        return Ok(());
    };
    let met: Vec<&Defined<D>> =
        all.iter().filter(|old| old.definition.meets(&new.definition)).collect();
    if let [old] = met.as_slice()
        && old.definition.means(&new.definition)
    {
        return Ok(());
    }
    if met.iter().all(|old| is_kept(old) && old.definition.oid() != new.definition.oid()) {
        // It is another thing, and has a name of one that is needed for one of its own.
        let taken: Vec<String> =
            met.iter().flat_map(|old| old.definition.names().to_vec()).collect();
        let is_free = |name: &String| !taken.iter().any(|one| one.eq_ignore_ascii_case(name));
        let mut other = new.clone();
        other.definition.names_mut().retain(is_free);
        if !other.definition.names().is_empty() {
            all.push(other);
            return Ok(());
        }
    }
    let name = new.definition.shown();
    if let Some(needed) = met.iter().find(|old| is_kept(old)) {
        let kept = needed.definition.shown();
        if !needed.definition.is_near(&new.definition) {
            warnings.push(format!(
                "{name} ({}) is left out: {kept} stays as the server needs it",
                new.origin
            ));
        }
        return Ok(());
    }
    let is_file = |origin: &DefinitionOrigin| matches!(origin, DefinitionOrigin::File { .. });
    if let Some(other) = met.iter().find(|old| is_file(&old.origin) && is_file(&new.origin)) {
        return Err(SchemaError {
            definition: format!("{name} ({})", new.origin),
            why: format!("{} has it in another form; leave one of them out", other.origin),
        });
    }
    for old in met.iter().rev() {
        new.definition.complete(&old.definition);
        let (by, names) = (new.definition.oid().to_owned(), old.definition.names().to_vec());
        replaced.push(Replaced { by, names });
    }
    replace(all, first, new);
    Ok(())
}

/// Names of a definition that another one, of this OID, has taken the place of.
struct Replaced {
    by: String,
    names: Vec<String>,
}

/// Gives definitions those names of the ones they replace that no other definition has: a reference may
/// use them. The first name stays the first, since entries are stored under it.
fn inherit_names<D: Definition>(all: &mut [Defined<D>], replaced: &mut Vec<Replaced>) {
    for Replaced { by, names } in replaced.drain(..) {
        let is = |name: &String, other: &String| name.eq_ignore_ascii_case(other);
        for name in &names {
            if all.iter().any(|one| one.definition.names().iter().any(|other| is(name, other))) {
                continue;
            }
            if let Some(heir) = all.iter_mut().find(|one| one.definition.oid() == by) {
                heir.definition.names_mut().push(name.clone());
            }
        }
        let Some(heir) = all.iter_mut().find(|one| one.definition.oid() == by) else { continue };
        let own = heir.definition.names_mut();
        let first = names.first().and_then(|name| own.iter().position(|other| is(name, other)));
        let shared = own.first().is_some_and(|first| names.iter().any(|name| is(name, first)));
        if let Some(first) = first.filter(|_| shared)
            && let Some(name) = names.first()
        {
            own.remove(first);
            own.insert(0, name.clone());
        }
    }
}

/// Whether nothing may take its place.
pub fn is_kept<D: Definition>(old: &Defined<D>) -> bool {
    match old.origin {
        DefinitionOrigin::Standard => old.definition.is_needed(),
        DefinitionOrigin::Program => true,
        _ => false,
    }
}

/// Puts a definition that came over LDAP in the place of those that it meets.
fn overlay<D: Definition>(all: &mut Vec<Defined<D>>, warnings: &mut Vec<String>, definition: &D) {
    let first = all.iter().position(|old| old.definition.meets(definition));
    let new = Defined { definition: definition.clone(), origin: DefinitionOrigin::Ldap };
    let Some(first) = first else { return all.push(new) };
    let own = all
        .iter()
        .find(|old| old.origin == DefinitionOrigin::Program && old.definition.meets(definition));
    if let Some(own) = own {
        if !own.definition.means(definition) {
            let (name, own) = (definition.shown(), own.definition.shown());
            warnings.push(format!(
                "{name}, which was added over LDAP, is left out: {own} is keyway's own"
            ));
        }
        return;
    }
    for old in all.iter().filter(|old| old.definition.meets(definition)) {
        if matches!(old.origin, DefinitionOrigin::File { .. }) && !old.definition.means(definition)
        {
            warnings.push(format!(
                "{} ({}) was changed over LDAP, and that counts",
                old.definition.shown(),
                old.origin
            ));
        }
    }
    replace(all, first, new);
}

/// Puts `new` at a place, and takes all away that it meets.
fn replace<D: Definition>(all: &mut Vec<Defined<D>>, at: usize, new: Defined<D>) {
    let definition = new.definition.clone();
    let mut index = 0;
    all.retain(|old| {
        index += 1;
        index - 1 == at || !old.definition.meets(&definition)
    });
    // Nothing before the first one that it meets was taken away.
    if let Some(old) = all.get_mut(at) {
        *old = new;
    }
}
