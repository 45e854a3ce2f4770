//! The normal forms of values, by matching rule. A name contains values, which have rules again.

use super::names::{self, Descriptors, append_part, split_uid};
use super::prep::{self, Case, Part};
use super::rules::{Form, MatchingRule};
use super::{forms, time};
use crate::dn::{Dn, Rdn};
use crate::limits::DN_NESTING_MAX;

impl MatchingRule {
    /// The normal form of an attribute value, or of an assertion value that is no substring's.
    ///
    /// `None` if the value is not one that the rule can take: the assertion is Undefined.
    #[must_use]
    pub fn normalize(self, value: &[u8], names: &dyn Descriptors) -> Option<Vec<u8>> {
        normalize(self.form(), value, names)
    }

    /// The normal form of a piece of a substring assertion, to be found in that of a value.
    ///
    /// `None` if the piece can be in no value, or the rule has no substrings: Undefined.
    #[must_use]
    pub fn normalize_substring(self, piece: &[u8], part: Part) -> Option<Vec<u8>> {
        normalize_substring(self.form(), piece, part)
    }
}

fn normalize(form: Form, value: &[u8], names: &dyn Descriptors) -> Option<Vec<u8>> {
    match form {
        Form::BitString => forms::bit_string(value),
        Form::Boolean => forms::boolean(value),
        Form::CaseExact => prep::string(value, Case::Exact, Part::Whole),
        Form::CaseExactIa5 => forms::ia5(value, Case::Exact, Part::Whole),
        Form::CaseIgnore => prep::string(value, Case::Ignore, Part::Whole),
        Form::CaseIgnoreFirstComponent => {
            prep::string(names::first_component(value)?, Case::Ignore, Part::Whole)
        }
        Form::CaseIgnoreIa5 => forms::ia5(value, Case::Ignore, Part::Whole),
        Form::CaseIgnoreList => forms::list(value),
        Form::DistinguishedName => distinguished_name(value, names, 0),
        Form::GeneralizedTime => time::generalized(value),
        Form::Integer => forms::integer(value),
        Form::IntegerFirstComponent => forms::integer(names::first_component(value)?),
        Form::NumericString => forms::numeric_string(value),
        Form::ObjectIdentifier => names::object_identifier(value, names),
        Form::ObjectIdentifierFirstComponent => {
            names::object_identifier(names::first_component(value)?, names)
        }
        Form::OctetString => Some(value.to_vec()),
        Form::TelephoneNumber => prep::telephone_number(value),
        Form::UniqueMember => name_and_uid(value, names, 0),
        Form::Uuid => forms::uuid(value),
        Form::Words => forms::words(value),
    }
}

fn normalize_substring(form: Form, piece: &[u8], part: Part) -> Option<Vec<u8>> {
    match form {
        Form::CaseExact => prep::string(piece, Case::Exact, part),
        Form::CaseExactIa5 => forms::ia5(piece, Case::Exact, part),
        Form::CaseIgnore | Form::CaseIgnoreList => prep::string(piece, Case::Ignore, part),
        Form::CaseIgnoreIa5 => forms::ia5(piece, Case::Ignore, part),
        Form::NumericString => forms::numeric_string(piece),
        Form::OctetString => Some(piece.to_vec()),
        Form::TelephoneNumber => prep::telephone_number(piece),
        _ => None,
    }
}

/// Equal for equal names; `None` for a malformed one, or if a type or value is not comparable.
///
/// `nested` counts how many names this one is a value in, since every name can be a value's text.
fn distinguished_name(value: &[u8], names: &dyn Descriptors, nested: usize) -> Option<Vec<u8>> {
    if nested > DN_NESTING_MAX {
        return None;
    }
    let dn = Dn::parse(str::from_utf8(value).ok()?).ok()?;
    let mut out = Vec::with_capacity(value.len() + 8);
    for rdn in &dn.rdns {
        append_part(&mut out, &relative_name(rdn, names, nested)?);
    }
    Some(out)
}

/// The set of an RDN's values: sorted, each once.
fn relative_name(rdn: &Rdn, names: &dyn Descriptors, nested: usize) -> Option<Vec<u8>> {
    let mut avas = Vec::with_capacity(rdn.avas.len());
    for ava in &rdn.avas {
        let (name, rule) = names.attribute(&ava.attribute)?;
        let value = match rule {
            MatchingRule::DistinguishedName => distinguished_name(&ava.value, names, nested + 1)?,
            MatchingRule::UniqueMember => name_and_uid(&ava.value, names, nested + 1)?,
            rule => rule.normalize(&ava.value, names)?,
        };
        avas.push((name.to_ascii_lowercase(), value));
    }
    avas.sort_unstable();
    avas.dedup();
    let mut out = Vec::new();
    for (name, value) in avas {
        append_part(&mut out, name.as_bytes());
        append_part(&mut out, &value);
    }
    Some(out)
}

/// A name, and the bit string that tells those who bore it one after another apart.
fn name_and_uid(value: &[u8], names: &dyn Descriptors, nested: usize) -> Option<Vec<u8>> {
    let (name, uid) = split_uid(value);
    let name = distinguished_name(name, names, nested)?;
    let mut out = Vec::with_capacity(name.len() + 2);
    append_part(&mut out, &name);
    if let Some(uid) = uid {
        out.extend_from_slice(&forms::bit_string(uid)?);
    }
    Some(out)
}
