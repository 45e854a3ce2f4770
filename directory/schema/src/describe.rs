//! Attribute descriptions: a type and options (RFC 4512 § 2.5).

use crate::attribute::AttributeType;
use crate::schema::Schema;
use keyway_codec::syntax::Syntax;
use std::borrow::Cow;

const BINARY: &str = "binary";

/// A type that is known, and options that are.
#[derive(Clone)]
pub struct Description<'s> {
    /// The type.
    pub attribute: &'s AttributeType,
    /// The options in lower case, sorted, each once.
    pub options: Vec<String>,
}

impl Schema {
    /// Understands a description such as `cn`, `2.5.4.3` or `cn;lang-de`.
    ///
    /// `None` if type or an option is not known: the RFC has the whole then treated as an unknown
    /// type. Known options are language tags (RFC 3866), and `binary` (RFC 4522) for the types that
    /// are transferred so: it is no tag, and these have it whether it is written or not.
    pub fn describe(&self, description: &str) -> Option<Description<'_>> {
        let mut parts = description.split(';');
        let attribute = self.attribute(parts.next()?)?;
        let mut options = parts
            .map(|option| known_option(option).then(|| option.to_ascii_lowercase()))
            .collect::<Option<Vec<_>>>()?;
        if is_transferred_as_binary(attribute.syntax()) {
            options.push(BINARY.to_owned());
        } else if is_octets(attribute.syntax()) {
            // Some tools write it, and it makes no difference.
            options.retain(|option| option != BINARY);
        } else if options.iter().any(|option| option == BINARY) {
            return None;
        }
        options.sort_unstable();
        options.dedup();
        Some(Description { attribute, options })
    }

    /// The message about a description whose type or options are not known.
    pub fn unknown_description(&self, description: &str) -> String {
        let name = base(description);
        match self.attribute(name) {
            Some(_) => format!("attribute {description} has an unknown option"),
            None => self.unknown_attribute(name),
        }
    }
}

impl<'s> Description<'s> {
    /// The one spelling under which values are stored.
    pub fn canonical(&self) -> Cow<'s, str> {
        let name = self.attribute.name();
        if self.options.is_empty() {
            return Cow::Borrowed(name);
        }
        Cow::Owned(format!("{name};{}", self.options.join(";")))
    }
}

/// Whether values go under `;binary` only: RFC 4523 § 2 for certificates and what is near them,
/// RFC 2798 § 2.8 and 2.9 for the inetOrgPerson attributes of the syntax Binary.
fn is_transferred_as_binary(syntax: Syntax) -> bool {
    matches!(
        syntax,
        Syntax::Certificate
            | Syntax::CertificateList
            | Syntax::CertificatePair
            | Syntax::SupportedAlgorithm
            | Syntax::Binary
    )
}

/// Whether values are the same octets with `;binary` and without.
fn is_octets(syntax: Syntax) -> bool {
    matches!(syntax, Syntax::Jpeg | Syntax::OctetString)
}

/// How a value sounds, beside one that says how it is written (RFC 2849, example 5).
const PHONETIC: &str = "phonetic";

fn known_option(option: &str) -> bool {
    let is_tag = |tag: &str| {
        tag.split('-').all(|subtag| {
            (1..=8).contains(&subtag.len())
                && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    let option = option.to_ascii_lowercase();
    // Those for private use mean nothing here, and are kept (RFC 4520 § 3.5).
    let tag = option.strip_prefix("lang-").or_else(|| option.strip_prefix("x-"));
    option == BINARY || option == PHONETIC || tag.is_some_and(is_tag)
}

/// The type's name in a stored description.
#[inline]
pub fn base(stored: &str) -> &str {
    // Every attribute of every candidate comes by here, and few have options.
    match stored.bytes().position(|byte| byte == b';') {
        None => stored,
        Some(end) => stored.get(..end).unwrap_or(stored),
    }
}

/// Whether a stored description has all of these options; more may be there.
pub fn has_options(stored: &str, options: &[String]) -> bool {
    options.iter().all(|wanted| stored.split(';').skip(1).any(|option| option == wanted))
}
