//! Distinguished names and their string form, RFC 4514.
//!
//! A name here is what its text says and no more: which attribute types there are, and which
//! values are equal, is the schema's knowledge ([`crate::syntax`]).

mod name;
mod parse;

use std::fmt::{self, Write};

pub use name::{Ava, Dn, DnError, Rdn};
pub(crate) use parse::{hex, is_numeric_oid};

impl Dn {
    /// Parses the string form, such as `uid=jo+cn=J\, O,ou=People,dc=example`.
    ///
    /// Blanks around `,`, `+` and `=` are ignored, as clients write them.
    ///
    /// # Errors
    /// The place and the reason; also beyond [`DN_RDNS_MAX`](crate::limits::DN_RDNS_MAX) and
    /// [`RDN_AVAS_MAX`](crate::limits::RDN_AVAS_MAX).
    pub fn parse(text: &str) -> Result<Dn, DnError> {
        parse::dn(text)
    }

    /// Whether it is the root's name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rdns.is_empty()
    }

    /// The entry's own part; the root has none.
    #[must_use]
    pub fn rdn(&self) -> Option<&Rdn> {
        self.rdns.first()
    }

    /// The name of the entry above; the root has none.
    #[must_use]
    pub fn parent(&self) -> Option<Dn> {
        self.rdns.split_first().map(|(_, above)| Dn { rdns: above.to_vec() })
    }
}

impl Rdn {
    /// Parses the string form of one RDN, such as `uid=jo+cn=J\, O`.
    ///
    /// # Errors
    /// As [`Dn::parse`].
    pub fn parse(text: &str) -> Result<Rdn, DnError> {
        parse::rdn(text)
    }
}

/// The string form, which parses to an equal name if every type is one that can be parsed.
impl fmt::Display for Dn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, ',', &self.rdns)
    }
}

/// As for [`Dn`].
impl fmt::Display for Rdn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, '+', &self.avas)
    }
}

/// As for [`Dn`].
impl fmt::Display for Ava {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.attribute)?;
        f.write_char('=')?;
        escaped(f, &self.value)
    }
}

fn separated<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    separator: char,
    parts: &[T],
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_char(separator)?;
        }
        part.fmt(f)?;
    }
    Ok(())
}

/// A value with what RFC 4514 § 2.4 demands escaped, and control characters and octets that are
/// not UTF-8 as hexadecimal pairs, so that it is text and stays on its line. `=` is such a pair as
/// well: it need not be, but some clients cut a name at every other one that they see.
fn escaped(f: &mut fmt::Formatter<'_>, value: &[u8]) -> fmt::Result {
    let mut at = 0;
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            let first = at == 0;
            at += c.len_utf8();
            match c {
                '"' | '+' | ',' | ';' | '<' | '>' | '\\' => write!(f, "\\{c}")?,
                '=' => f.write_str("\\3D")?,
                '#' if first => f.write_str("\\#")?,
                ' ' if first || at == value.len() => f.write_str("\\ ")?,
                c if c.is_control() => {
                    let mut buffer = [0; 4];
                    hex_pairs(f, c.encode_utf8(&mut buffer).as_bytes())?;
                }
                c => f.write_char(c)?,
            }
        }
        hex_pairs(f, chunk.invalid())?;
        at += chunk.invalid().len();
    }
    Ok(())
}

fn hex_pairs(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    octets.iter().try_for_each(|octet| write!(f, "\\{octet:02x}"))
}

#[cfg(test)]
mod tests;
