//! Descriptions of attribute types and object classes, RFC 4512 § 4.1.
//!
//! A reader takes the parts in any order, each once, as servers and tools write them, though the RFC fixes
//! their order; line breaks count as blanks. Output has the RFC's order.

mod parse;
mod parts;
mod write;

use parse::Parser;
pub(crate) use parse::{Macros, check_form, is_name};
pub use parts::{DescriptionError, SyntaxReference, Usage};

/// The description of an attribute type, RFC 4512 § 4.1.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeTypeDescription {
    /// The numeric OID.
    pub oid: String,
    /// `NAME`: short names.
    pub names: Vec<String>,
    /// `DESC`: what it is, for people.
    pub description: Option<String>,
    /// `OBSOLETE`
    pub obsolete: bool,
    /// `SUP`: the type that it derives from, by name or OID.
    pub sup: Option<String>,
    /// `EQUALITY`: a matching rule, by name or OID.
    pub equality: Option<String>,
    /// `ORDERING`: a matching rule, by name or OID.
    pub ordering: Option<String>,
    /// `SUBSTR`: a matching rule, by name or OID.
    pub substring: Option<String>,
    /// `SYNTAX`
    pub syntax: Option<SyntaxReference>,
    /// `SINGLE-VALUE`
    pub single_value: bool,
    /// `COLLECTIVE`
    pub collective: bool,
    /// `NO-USER-MODIFICATION`
    pub no_user_modification: bool,
    /// `USAGE`
    pub usage: Usage,
    /// `X-NAME 'value'`: the names with `X-`, and their values.
    pub extensions: Vec<(String, Vec<String>)>,
}

/// The description of an object class, RFC 4512 § 4.1.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectClassDescription {
    /// The numeric OID.
    pub oid: String,
    /// `NAME`: short names.
    pub names: Vec<String>,
    /// `DESC`: what it is, for people.
    pub description: Option<String>,
    /// `OBSOLETE`
    pub obsolete: bool,
    /// `SUP`: the classes that it derives from, by name or OID.
    pub sup: Vec<String>,
    /// Its kind.
    pub kind: ClassKind,
    /// `MUST`: attribute types, by name or OID.
    pub must: Vec<String>,
    /// `MAY`: attribute types, by name or OID.
    pub may: Vec<String>,
    /// `X-NAME 'value'`: the names with `X-`, and their values.
    pub extensions: Vec<(String, Vec<String>)>,
}

/// The kind of an object class, RFC 4512 § 2.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClassKind {
    /// `ABSTRACT`: others derive from it.
    Abstract,
    /// `STRUCTURAL`: what an entry is.
    #[default]
    Structural,
    /// `AUXILIARY`: what an entry has in addition.
    Auxiliary,
}

/// Refuses a part that was there before.
fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), &'static str> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err("this part is there twice"),
    }
}

/// As [`once`], for a part without a value.
fn flag(slot: &mut bool) -> Result<(), &'static str> {
    if std::mem::replace(slot, true) { Err("this part is there twice") } else { Ok(()) }
}

/// The ways to read a description of either kind.
macro_rules! parsed {
    ($(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn parse(text: &str) -> Result<Self, DescriptionError> {
            Self::read(Parser::new(text))
        }

        /// Parses one that was accepted once: its OID may be a name, and so on.
        ///
        /// # Errors
        /// As [`Self::parse`].
        pub fn parse_stored(text: &str) -> Result<Self, DescriptionError> {
            Self::parse_lenient(text, &|_| None)
        }

        /// Parses what other servers take in their files.
        pub(crate) fn parse_lenient(
            text: &str,
            macros: Macros<'_>,
        ) -> Result<Self, DescriptionError> {
            Self::read(Parser::lenient(text, macros))
        }
    };
}

impl AttributeTypeDescription {
    parsed! {
        /// Parses a description such as `( 2.5.4.3 NAME 'cn' SUP name )`.
        ///
        /// # Errors
        /// The place and the reason; also for one that has neither `SUP` nor `SYNTAX`.
    }

    fn read(mut parser: Parser<'_>) -> Result<Self, DescriptionError> {
        let oid = parser.begin()?;
        let (mut names, mut description, mut usage) = (None, None, None);
        let (mut sup, mut equality, mut ordering) = (None, None, None);
        let (mut substring, mut syntax, mut obsolete) = (None, None, false);
        let (mut single_value, mut collective, mut no_user_modification) = (false, false, false);
        let mut extensions = Vec::new();
        while let Some(part) = parser.part()? {
            let new = match part.to_ascii_uppercase().as_str() {
                "NAME" => once(&mut names, parser.names()?),
                "DESC" => once(&mut description, parser.quoted()?),
                "OBSOLETE" => flag(&mut obsolete),
                "SUP" => once(&mut sup, parser.oid()?),
                "EQUALITY" => once(&mut equality, parser.oid()?),
                "ORDERING" => once(&mut ordering, parser.oid()?),
                "SUBSTR" => once(&mut substring, parser.oid()?),
                "SYNTAX" => once(&mut syntax, parser.syntax()?),
                "SINGLE-VALUE" => flag(&mut single_value),
                "COLLECTIVE" => flag(&mut collective),
                "NO-USER-MODIFICATION" => flag(&mut no_user_modification),
                "USAGE" => once(&mut usage, parser.usage()?),
                _ => {
                    extensions.push(parser.extension(part)?);
                    Ok(())
                }
            };
            new.map_err(|why| parser.wrong(why))?;
        }
        if sup.is_none() && syntax.is_none() {
            return Err(parser.wrong("an attribute type needs SUP or SYNTAX"));
        }
        let (names, usage) = (names.unwrap_or_default(), usage.unwrap_or_default());
        Ok(Self {
            oid,
            names,
            description,
            obsolete,
            sup,
            equality,
            ordering,
            substring,
            syntax,
            single_value,
            collective,
            no_user_modification,
            usage,
            extensions,
        })
    }
}

impl ObjectClassDescription {
    parsed! {
        /// Parses a description such as `( 2.5.6.2 NAME 'country' SUP top STRUCTURAL MUST c )`.
        ///
        /// # Errors
        /// The place and the reason.
    }

    fn read(mut parser: Parser<'_>) -> Result<Self, DescriptionError> {
        let oid = parser.begin()?;
        let (mut names, mut description, mut obsolete) = (None, None, false);
        let (mut sup, mut kind, mut must, mut may) = (None, None, None, None);
        let mut extensions = Vec::new();
        while let Some(part) = parser.part()? {
            let new = match part.to_ascii_uppercase().as_str() {
                "NAME" => once(&mut names, parser.names()?),
                "DESC" => once(&mut description, parser.quoted()?),
                "OBSOLETE" => flag(&mut obsolete),
                "SUP" => once(&mut sup, parser.oids()?),
                "ABSTRACT" => once(&mut kind, ClassKind::Abstract),
                "STRUCTURAL" => once(&mut kind, ClassKind::Structural),
                "AUXILIARY" => once(&mut kind, ClassKind::Auxiliary),
                "MUST" => once(&mut must, parser.oids()?),
                "MAY" => once(&mut may, parser.oids()?),
                _ => {
                    extensions.push(parser.extension(part)?);
                    Ok(())
                }
            };
            new.map_err(|why| parser.wrong(why))?;
        }
        Ok(Self {
            oid,
            names: names.unwrap_or_default(),
            description,
            obsolete,
            sup: sup.unwrap_or_default(),
            kind: kind.unwrap_or_default(),
            must: must.unwrap_or_default(),
            may: may.unwrap_or_default(),
            extensions,
        })
    }
}

#[cfg(test)]
mod tests;
