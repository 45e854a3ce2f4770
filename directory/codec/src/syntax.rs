//! Which values there are and which of them are equal: RFC 4517, RFC 4518.
//!
//! A [`MatchingRule`] turns a value into its *normal form*. Two values match by an equality rule
//! if their normal forms are equal bytes; by an ordering rule they are ordered as their normal
//! forms are, byte by byte; and a substring assertion matches if the normal forms of its pieces
//! are found in that of the value, in their order and without overlap. So an index needs to know
//! nothing of rules. A value that has no normal form makes an assertion Undefined.

mod forms;
mod names;
mod normalize;
pub mod prep;
mod rules;
mod sound;
mod substrings;
mod syntaxes;
mod time;
mod validate;

pub use names::{Descriptors, append_part};
pub use prep::Part;
pub use rules::{MatchingRule, RuleKind};
pub use sound::{sounds, sounds_like};
pub use substrings::substring_assertion;
pub use syntaxes::Syntax;
