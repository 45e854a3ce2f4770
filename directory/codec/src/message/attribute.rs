//! Attributes and lists of them, as entries and requests carry them (RFC 4511 § 4.1.7).

use std::borrow::Cow;
use std::fmt;

use crate::ber::{OCTET_STRING, Reader, SEQUENCE, SET, Writer};
use crate::error::DecodeError;
use crate::limits::{ATTRIBUTES_MAX, VALUES_MAX};

/// An attribute description with values: an Attribute or a PartialAttribute.
///
/// `Debug` does not show the values of password attributes.
#[derive(Clone, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Type and options, as written by the peer.
    pub description: Cow<'a, str>,
    /// The values, in the order given.
    pub values: Vec<Cow<'a, [u8]>>,
}

impl fmt::Debug for Attribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Attribute");
        shown.field("description", &self.description);
        if is_password(&self.description) {
            shown.field("values", &Hidden(self.values.len(), "values"));
        } else {
            shown.field("values", &self.values);
        }
        shown.finish()
    }
}

/// Names and OIDs of the attributes that hold passwords, in whatever form.
const PASSWORDS: [&str; 6] = [
    "userPassword",
    "2.5.4.35",
    "authPassword",
    "1.3.6.1.4.1.4203.1.3.4",
    "pwdHistory",
    "1.3.6.1.4.1.42.2.27.8.1.20",
];

/// Stands in `Debug` for what must not get into a log.
pub(super) struct Hidden(pub(super) usize, pub(super) &'static str);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} {} not shown>", self.0, self.1)
    }
}

/// Whether values of this description are passwords: userPassword, authPassword or pwdHistory, with
/// options.
#[must_use]
pub fn is_password(description: &str) -> bool {
    let name = description.split(';').next().unwrap_or_default();
    PASSWORDS.iter().any(|password| name.eq_ignore_ascii_case(password))
}

impl<'a> Attribute<'a> {
    /// Reads one attribute, taking its values off the `values_left` of the message.
    pub(super) fn decode(
        list: &mut Reader<'a>,
        values_left: &mut usize,
    ) -> Result<Self, DecodeError> {
        let mut body = list.nested(SEQUENCE)?;
        let description = Cow::Borrowed(body.string(OCTET_STRING)?);
        let mut set = body.nested(SET)?;
        body.finish(&[OCTET_STRING, SET])?;
        let mut values = Vec::new();
        while !set.is_empty() {
            *values_left = values_left
                .checked_sub(1)
                .ok_or(DecodeError::TooMany { what: "values", max: VALUES_MAX })?;
            values.push(Cow::Borrowed(set.expect(OCTET_STRING)?));
        }
        Ok(Attribute { description, values })
    }

    /// Reads the attributes of an entry to the end of `list`.
    pub(super) fn decode_all(mut list: Reader<'a>) -> Result<Vec<Self>, DecodeError> {
        let mut values_left = VALUES_MAX;
        let mut attributes = Vec::new();
        while !list.is_empty() {
            if attributes.len() == ATTRIBUTES_MAX {
                return Err(DecodeError::TooMany { what: "attributes", max: ATTRIBUTES_MAX });
            }
            attributes.push(Attribute::decode(&mut list, &mut values_left)?);
        }
        Ok(attributes)
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        let attribute = writer.begin(SEQUENCE);
        writer.string(OCTET_STRING, &self.description);
        let set = writer.begin(SET);
        for value in &self.values {
            writer.octets(OCTET_STRING, value);
        }
        writer.end(set);
        writer.end(attribute);
    }

    pub(super) fn encode_all(attributes: &[Self], writer: &mut Writer<'_>) {
        let list = writer.begin(SEQUENCE);
        for attribute in attributes {
            attribute.encode(writer);
        }
        writer.end(list);
    }
}

/// Reads LDAPStrings to the end of `list`: an attribute selection, or the URIs of a referral.
pub(crate) fn decode_strings<'a>(
    mut list: Reader<'a>,
    what: &'static str,
    max: usize,
) -> Result<Vec<&'a str>, DecodeError> {
    let mut strings = Vec::new();
    while !list.is_empty() {
        if strings.len() == max {
            return Err(DecodeError::TooMany { what, max });
        }
        strings.push(list.string(OCTET_STRING)?);
    }
    Ok(strings)
}
