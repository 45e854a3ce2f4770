//! Descriptions as text, in the form and order of RFC 4512 § 4.1.

use std::fmt::{Display, Formatter, Result};

use super::{AttributeTypeDescription, ClassKind, ObjectClassDescription, Usage};

impl Usage {
    pub(super) const ALL: [Usage; 4] = [
        Usage::UserApplications,
        Usage::DirectoryOperation,
        Usage::DistributedOperation,
        Usage::DsaOperation,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Usage::UserApplications => "userApplications",
            Usage::DirectoryOperation => "directoryOperation",
            Usage::DistributedOperation => "distributedOperation",
            Usage::DsaOperation => "dSAOperation",
        }
    }
}

/// On one line. It parses to an equal description.
impl Display for AttributeTypeDescription {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "( {}", self.oid)?;
        common(f, &self.names, self.description.as_deref(), self.obsolete)?;
        let words = [
            ("SUP", &self.sup),
            ("EQUALITY", &self.equality),
            ("ORDERING", &self.ordering),
            ("SUBSTR", &self.substring),
        ];
        for (part, word) in words {
            if let Some(word) = word {
                write!(f, " {part} {word}")?;
            }
        }
        if let Some(syntax) = &self.syntax {
            write!(f, " SYNTAX {}", syntax.oid)?;
            if let Some(length) = syntax.length_suggested {
                write!(f, "{{{length}}}")?;
            }
        }
        let flags = [
            (self.single_value, " SINGLE-VALUE"),
            (self.collective, " COLLECTIVE"),
            (self.no_user_modification, " NO-USER-MODIFICATION"),
        ];
        flags.iter().filter(|(set, _)| *set).try_for_each(|(_, flag)| f.write_str(flag))?;
        if self.usage != Usage::UserApplications {
            write!(f, " USAGE {}", self.usage.name())?;
        }
        end(f, &self.extensions)
    }
}

/// On one line. It parses to an equal description.
impl Display for ObjectClassDescription {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "( {}", self.oid)?;
        common(f, &self.names, self.description.as_deref(), self.obsolete)?;
        oids(f, "SUP", &self.sup)?;
        f.write_str(match self.kind {
            ClassKind::Abstract => " ABSTRACT",
            ClassKind::Structural => " STRUCTURAL",
            ClassKind::Auxiliary => " AUXILIARY",
        })?;
        oids(f, "MUST", &self.must)?;
        oids(f, "MAY", &self.may)?;
        end(f, &self.extensions)
    }
}

fn common(
    f: &mut Formatter<'_>,
    names: &[String],
    description: Option<&str>,
    obsolete: bool,
) -> Result {
    if !names.is_empty() {
        f.write_str(" NAME")?;
        strings(f, names)?;
    }
    if let Some(description) = description {
        write!(f, " DESC {}", Quoted(description))?;
    }
    if obsolete { f.write_str(" OBSOLETE") } else { Ok(()) }
}

fn end(f: &mut Formatter<'_>, extensions: &[(String, Vec<String>)]) -> Result {
    for (name, values) in extensions {
        write!(f, " {name}")?;
        strings(f, values)?;
    }
    f.write_str(" )")
}

/// One string in quotes, or several in parentheses.
fn strings(f: &mut Formatter<'_>, strings: &[String]) -> Result {
    match strings {
        [string] => write!(f, " {}", Quoted(string)),
        strings => {
            f.write_str(" (")?;
            strings.iter().try_for_each(|string| write!(f, " {}", Quoted(string)))?;
            f.write_str(" )")
        }
    }
}

/// One name, or several in parentheses.
fn oids(f: &mut Formatter<'_>, part: &str, oids: &[String]) -> Result {
    match oids {
        [] => Ok(()),
        [oid] => write!(f, " {part} {oid}"),
        oids => write!(f, " {part} ( {} )", oids.join(" $ ")),
    }
}

struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "'{}'", self.0.replace('\\', "\\5C").replace('\'', "\\27"))
    }
}
