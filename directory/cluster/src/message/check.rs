//! What texts from another member may be.

use std::fmt::{self, Display, Formatter};

/// Characters that a member's name may have.
pub const NAME_LIMIT: usize = 64;
/// Octets that a member's URL may have.
pub const URL_LIMIT: usize = 256;

/// Something that another member has sent, or that a row holds, is not what it may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invalid(pub &'static str);

impl Display for Invalid {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Invalid {}

/// A member's name: letters, digits, `.`, `_` and `-`.
pub fn name(name: &str) -> Result<(), Invalid> {
    let is_fit = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    match (1..=NAME_LIMIT).contains(&name.len()) && name.bytes().all(is_fit) {
        true => Ok(()),
        false => Err(Invalid("a member's name has 1 to 64 letters, digits, '.', '_' or '-'")),
    }
}

/// Where a member listens: `ldaps://` and visible ASCII.
pub fn url(url: &str) -> Result<(), Invalid> {
    let host = url.strip_prefix("ldaps://").unwrap_or_default();
    let is_fit =
        url.len() <= URL_LIMIT && !host.is_empty() && host.bytes().all(|c| c.is_ascii_graphic());
    match is_fit {
        true => Ok(()),
        false => Err(Invalid("a member's URL is ldaps://HOST[:PORT] of at most 256 characters")),
    }
}

/// A text of another member, as it may be shown: without control characters, and short.
pub fn shown(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(512).map(shown).collect()
}
