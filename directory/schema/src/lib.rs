//! The schema: the meaning of names, attributes and filters.
//!
//! A [`Schema`] is built from RFC 4512 descriptions and never changed, so that it is shared without locks; another
//! one is put in its place. Every attribute has one canonical name, its first; entries are stored under canonical
//! names. [`Composed`] puts a schema together from its sources, [`Difference`] compares two, [`check_entry`] and
//! its neighbours hold entries against one. [`EntryName`] and [`Matcher`] are a DN and a filter that a schema has
//! understood.
//!
//! Nothing here knows of a store, of a connection or of who asks.
#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods)]

mod attribute;
mod check;
mod class;
mod compose;
mod definition;
mod describe;
mod difference;
mod error;
mod filter;
mod index;
pub mod limits;
mod matching;
mod name;
pub mod operational;
mod schema;
mod sources;

pub use attribute::AttributeType;
pub use check::{
    EntryAttributes, OBJECT_CLASS, check_entry, check_loosely, check_value, complete_classes,
    is_sound, violations,
};
pub use class::ObjectClass;
pub use compose::{Composed, Defined, DefinitionOrigin, beyond_defaults, is_among, is_kept};
pub use definition::Definition;
pub use describe::{Description, base, has_options};
pub use difference::Difference;
pub use error::{NameError, SchemaError, Violation};
pub use filter::{FilterItem, FilterTest, ItemScope, Matcher};
pub use matching::fits;
pub use name::{EntryName, NamePart, text_of};
pub use schema::Schema;
pub use sources::{Changes, SourceFile, Sources};

#[cfg(test)]
mod tests;
