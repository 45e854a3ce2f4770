//! Files of schema definitions, as other servers have them.
//!
//! Three forms are read, told apart by what is in them: OpenLDAP's configuration (`attributetype`,
//! `objectclass`, `objectidentifier`), its `cn=config` as LDIF (`olcAttributeTypes: {0}( ...`), and the
//! LDIF of a subschema entry (`attributeTypes: ( ...`), which 389 Directory Server and its relatives
//! keep, also as a change (`add: attributeTypes`). Other contents of such files are left out and
//! counted. The order of definitions and of files makes no difference.

mod lines;
mod nearest;

use crate::description::{AttributeTypeDescription, ObjectClassDescription};
use crate::dn::is_numeric_oid;
use crate::limits::{DEFINITIONS_MAX, OBJECT_IDENTIFIER_DEPTH_MAX};
use crate::syntax::{MatchingRule, Syntax};
use lines::{Form, Keyword, Statement};
use std::collections::HashMap;
use std::fmt;

pub use nearest::nearest;

/// A file of definitions.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Its name in errors.
    pub name: &'a str,
    /// Its content.
    pub bytes: &'a [u8],
}

/// Something that a file defines, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// The file's place among those that were read.
    pub file: usize,
    /// The line that it begins on.
    pub line: u64,
    /// The definition.
    pub definition: T,
}

/// The definitions of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Attribute types.
    pub attribute_types: Vec<Located<AttributeTypeDescription>>,
    /// Object classes.
    pub object_classes: Vec<Located<ObjectClassDescription>>,
    /// How many statements were left out: rules on content and structure, name forms, syntaxes.
    pub left_out: usize,
}

/// Why a file cannot be read. Its author is at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionError {
    /// The file's name.
    pub file: String,
    /// The line; 0 if it is about the whole file.
    pub line: u64,
    /// The character of the line, counted from 1; 0 if it is about the whole line, or lines are folded.
    pub column: u64,
    /// The beginning of the definition, if it is about one.
    pub definition: String,
    /// Why it is wrong.
    pub why: String,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ", line {}", self.line)?;
        }
        if self.column > 0 {
            write!(f, ", column {}", self.column)?;
        }
        if !self.definition.is_empty() {
            write!(f, ", definition {}", self.definition)?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for DefinitionError {}

/// Reads files together: a name that one gives an OID (`objectidentifier`) the others can use.
///
/// # Errors
/// The first thing that is wrong: the file, the line, the definition and the reason.
pub fn read(files: &[File<'_>]) -> Result<Definitions, DefinitionError> {
    let statements = files.iter().map(statements).collect::<Result<Vec<_>, _>>()?;
    let macros: Vec<Macros> = statements.iter().map(|one| Macros::of(one)).collect();
    let mut definitions = Definitions::default();
    for (index, (file, statements)) in files.iter().zip(&statements).enumerate() {
        let expand = |name: &str| {
            let own = macros.get(index)?.get(name);
            own.or_else(|| macros.iter().find_map(|one| one.get(name)))
        };
        let before = definitions.count();
        for statement in statements {
            definitions.take(file, index, statement, &expand)?;
        }
        let is_empty = definitions.count() == before && !statements.iter().any(Statement::is_macro);
        if is_empty && !is_schema_entry(file) {
            let why = "it defines no attribute type and no object class; it should have lines that \
                       begin with attributetype, olcAttributeTypes: or attributeTypes:";
            return Err(error(file, 0, "", why));
        }
        if definitions.count() > DEFINITIONS_MAX {
            let why = format!("there are more than {DEFINITIONS_MAX} definitions");
            return Err(error(file, 0, "", why));
        }
    }
    Ok(definitions)
}

fn statements(file: &File<'_>) -> Result<Vec<Statement>, DefinitionError> {
    let text = str::from_utf8(file.bytes).map_err(|why| {
        let before = file.bytes.get(..why.valid_up_to()).unwrap_or_default();
        error(file, line_after(before), "", "it is not UTF-8 text")
    })?;
    lines::statements(text).map_err(|wrong| error(file, wrong.line, &wrong.shown, wrong.why))
}

/// Whether it is 389's `99user.ldif` as it comes: the entry of the schema, without any definition.
fn is_schema_entry(file: &File<'_>) -> bool {
    let is_dn = |line: &[u8]| line.trim_ascii_end().eq_ignore_ascii_case(b"dn: cn=schema");
    file.bytes.split(|byte| *byte == b'\n').any(is_dn)
}

/// The number of the line that begins, or goes on, after this text.
fn line_after(before: &[u8]) -> u64 {
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn error(file: &File<'_>, line: u64, shown: &str, why: impl Into<String>) -> DefinitionError {
    let (file, definition, why) = (file.name.into(), shown.into(), why.into());
    DefinitionError { file, line, column: 0, definition, why }
}

impl Definitions {
    fn count(&self) -> usize {
        self.attribute_types.len() + self.object_classes.len()
    }

    fn take(
        &mut self,
        file: &File<'_>,
        index: usize,
        statement: &Statement,
        macros: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), DefinitionError> {
        let Statement { line, text, form, .. } = statement;
        match statement.keyword {
            Keyword::AttributeType => {
                let mut definition = AttributeTypeDescription::parse_lenient(text, macros)
                    .map_err(|why| wrong(file, statement, why.at, why.why))?;
                if *form == Form::Subschema {
                    complete(&mut definition);
                }
                self.attribute_types.push(Located { file: index, line: *line, definition });
            }
            Keyword::ObjectClass => {
                let definition = ObjectClassDescription::parse_lenient(text, macros)
                    .map_err(|why| wrong(file, statement, why.at, why.why))?;
                self.object_classes.push(Located { file: index, line: *line, definition });
            }
            Keyword::ObjectIdentifier => {
                let name = text.split_ascii_whitespace().next().unwrap_or_default();
                if macros(name).is_none() {
                    let why = "a name, and an OID or a name that has one, are due";
                    return Err(wrong(file, statement, 0, why));
                }
            }
            Keyword::Other => self.left_out += 1,
        }
        Ok(())
    }
}

fn wrong(file: &File<'_>, statement: &Statement, at: usize, why: &str) -> DefinitionError {
    let before = statement.text.get(..at).unwrap_or_default();
    let shown = statement.shown();
    let Some(first_column) = statement.column else {
        let at = before.chars().count() + 1;
        let why = format!("{why} (character {at} of the definition)");
        return error(file, statement.line, &shown, why);
    };
    let line = statement.line + line_after(before.as_bytes()) - 1;
    let column = match before.rsplit_once('\n') {
        Some((_, before)) => 1 + before.chars().count() as u64,
        None => first_column + before.chars().count() as u64,
    };
    DefinitionError { column, ..error(file, line, &shown, why) }
}

/// 389 Directory Server compares values without an equality rule by their syntax; in its files most
/// attributes have none.
fn complete(definition: &mut AttributeTypeDescription) {
    if definition.equality.is_some() || definition.sup.is_some() {
        return;
    }
    let syntax = definition.syntax.as_ref().and_then(|syntax| Syntax::from_oid(&syntax.oid));
    let Some(rule) = syntax.and_then(MatchingRule::usual_equality) else { return };
    definition.equality = Some(rule.name().to_owned());
    if definition.substring.is_none() {
        let substrings = MatchingRule::usual_substrings(rule);
        definition.substring = substrings.map(|rule| rule.name().to_owned());
    }
}

/// Names that slapd has for syntaxes without being told.
const KNOWN_MACROS: [(&str, &str); 8] = [
    ("omsyn", "1.3.6.1.4.1.1466.115.121.1"),
    ("omsboolean", "omsyn:7"),
    ("omsdn", "omsyn:12"),
    ("omsdirectorystring", "omsyn:15"),
    ("omsia5string", "omsyn:26"),
    ("omsinteger", "omsyn:27"),
    ("omsoid", "omsyn:38"),
    ("omsoctetstring", "omsyn:40"),
];

/// The OIDs that one file has names for.
struct Macros(HashMap<String, String>);

impl Macros {
    fn of(statements: &[Statement]) -> Macros {
        let known = KNOWN_MACROS.iter().map(|(name, oid)| ((*name).to_owned(), (*oid).to_owned()));
        let mut macros: HashMap<String, String> = known.collect();
        for statement in statements.iter().filter(|statement| statement.is_macro()) {
            let mut words = statement.text.split_ascii_whitespace();
            if let (Some(name), Some(oid), None) = (words.next(), words.next(), words.next()) {
                macros.insert(name.to_ascii_lowercase(), oid.to_owned());
            }
        }
        Macros(macros)
    }

    /// The numeric OID of a name.
    fn get(&self, name: &str) -> Option<String> {
        let mut oid = self.0.get(&name.to_ascii_lowercase())?.clone();
        for _ in 0..OBJECT_IDENTIFIER_DEPTH_MAX {
            if is_numeric_oid(&oid) {
                return Some(oid);
            }
            let (name, arcs) = oid.split_once(':').unwrap_or((&oid, ""));
            let above = self.0.get(&name.to_ascii_lowercase())?;
            oid = match arcs {
                "" => above.clone(),
                // The OID above may be a name with arcs itself.
                arcs if above.contains(':') || is_numeric_oid(above) => format!("{above}.{arcs}"),
                arcs => format!("{above}:{arcs}"),
            };
        }
        None
    }
}

#[cfg(test)]
mod tests;
