//! Texts that get into a line: no longer than they may be, and without passwords.

use keyway_codec::Filter;
use keyway_codec::message::is_password;
use std::fmt::{self, Write};

/// Takes text up to a number of bytes and drops the rest.
pub struct Capped<'a> {
    /// Where it goes.
    pub out: &'a mut String,
    /// How long that may become, in bytes.
    pub bytes_max: usize,
}

impl Write for Capped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let capacity = self.bytes_max.saturating_sub(self.out.len());
        if text.len() <= capacity {
            self.out.push_str(text);
            return Ok(());
        }
        self.out.push_str(&text[..text.floor_char_boundary(capacity)]);
        Err(fmt::Error)
    }
}

/// Whether a filter asserts something of a password, or of all attributes at once: then it is
/// not shown.
pub fn hidden(filter: &Filter<'_>) -> bool {
    match filter {
        Filter::And(terms) | Filter::Or(terms) => terms.iter().any(hidden),
        Filter::Not(term) => hidden(term),
        Filter::Present(_) => false,
        Filter::Equality { attribute, .. }
        | Filter::Substrings { attribute, .. }
        | Filter::GreaterOrEqual { attribute, .. }
        | Filter::LessOrEqual { attribute, .. }
        | Filter::Approx { attribute, .. } => is_password(attribute),
        Filter::Extensible { attribute, .. } => {
            attribute.as_ref().is_none_or(|attribute| is_password(attribute))
        }
    }
}
