//! A value that is not what it should be, and where it stands.

use std::ops::Range;
use toml::Spanned;

pub const NO_KEY_NAME: &str =
    "a key's name has lower-case letters, digits, dashes, dots and underscores, 64 at most";

/// An error, and its place in the text.
pub struct Wrong {
    pub span: Range<usize>,
    pub why: String,
}

pub fn wrong<T>(at: &Spanned<T>, why: impl Into<String>) -> Wrong {
    Wrong { span: at.span(), why: why.into() }
}

/// The meaning of a word.
pub fn choice<T: Copy>(at: &Spanned<String>, choices: &[(&str, T)]) -> Result<T, Wrong> {
    let found = choices.iter().find(|(word, _)| word == at.get_ref());
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        wrong(at, format!("\"{}\" is not one of {}", at.get_ref(), words.join(", ")))
    })
}

/// The texts of names.
pub fn plain(names: &[Spanned<String>]) -> Vec<String> {
    names.iter().map(|name| name.get_ref().clone()).collect()
}

/// The number of the line that a byte of the text is on.
pub fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}
