//! A value that is not what it should be, and where it stands.

use std::fmt;
use std::ops::Range;
use toml::Spanned;

/// An error in the text of a configuration: the line, and what is wrong there and helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The line's number, from 1.
    pub line: usize,
    /// A sentence.
    pub why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for Wrong {}

/// The text, which tells the line of a value.
#[derive(Clone, Copy)]
pub(super) struct Text<'t>(pub &'t str);

impl Text<'_> {
    pub fn at(self, span: Range<usize>, why: impl Into<String>) -> Wrong {
        let before = self.0.get(..span.start).unwrap_or(self.0);
        Wrong { line: before.matches('\n').count() + 1, why: why.into() }
    }

    pub fn wrong<T>(self, at: &Spanned<T>, why: impl Into<String>) -> Wrong {
        self.at(at.span(), why)
    }
}
