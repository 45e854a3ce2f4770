//! The form of a value, and how it is read by that.

use super::Value;
use keyway_codec::Filter;
use keyway_codec::ber::{
    BOOLEAN, ENUMERATED, INTEGER, OCTET_STRING, Reader, SEQUENCE, SET, context, context_constructed,
};

/// Numbers with their names.
type Names = &'static [(i64, &'static str)];

/// The form of a value (X.690, as RFC 4511 § 5.1 restricts it).
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// There is none; if there is one all the same, its octets.
    None,
    /// Octets without any structure that is known.
    Octets,
    /// Text that is not an element, such as an authorization identity.
    Raw,
    /// An element. Where it stands in a sequence, its tag says which field it is.
    Element(Type),
    /// This one or that, by its tag; there is no element around it.
    Choice(&'static [(u8, &'static str, Type)]),
}

/// The type of an element's contents.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type {
    /// Text, or octets shown as text.
    Text,
    Integer,
    Boolean,
    Enumerated(Names),
    /// An INTEGER whose bits have these names.
    Flags(Names),
    /// Sixteen octets (RFC 4530).
    Uuid,
    /// UTF-16, least octet first (Active Directory).
    Wide,
    /// A filter (RFC 4511 § 4.5.1).
    Filter,
    /// Fields in this order, any of which may be left out.
    Sequence(&'static [Field]),
    /// Any number of elements of a type.
    List(&'static Type),
    /// One of these, within an element of its own.
    One(&'static [(u8, &'static str, Type)]),
}

/// A field of a sequence: its name, its tag if that is not its type's own, and its type.
pub(super) type Field = (&'static str, Option<u8>, Type);

/// How deep values are looked into.
const DEPTH_MAX: usize = 16;

/// The bit of a tag that says that elements are in it.
const CONSTRUCTED: u8 = 0x20;

impl Form {
    /// The value, if it is what this says, and nothing else.
    pub(super) fn read(&self, octets: &[u8]) -> Option<Value> {
        match self {
            Form::None | Form::Octets => Some(Value::Octets(octets.to_vec())),
            Form::Raw => Some(Value::Text(std::str::from_utf8(octets).ok()?.to_owned())),
            Form::Element(Type::Filter) => filter(octets),
            Form::Element(form) => {
                let (tag, contents) = only(octets)?;
                form.is_begun_by(tag).then(|| form.read(contents, 0))?
            }
            Form::Choice(choices) => {
                let (tag, contents) = only(octets)?;
                chosen(choices, tag, contents, 0)
            }
        }
    }
}

/// An element with nothing behind it.
fn only(octets: &[u8]) -> Option<(u8, &[u8])> {
    let mut reader = Reader::new(octets);
    let element = reader.element().ok()?;
    reader.is_empty().then_some(element)
}

fn chosen(
    choices: &[(u8, &'static str, Type)],
    tag: u8,
    contents: &[u8],
    depth: usize,
) -> Option<Value> {
    let (_, name, form) = choices.iter().find(|(known, ..)| *known == tag)?;
    Some(Value::Fields(vec![(name, form.read(contents, depth + 1)?)]))
}

fn filter(element: &[u8]) -> Option<Value> {
    Some(Value::Text(Filter::decode(element).ok()?.to_string()))
}

impl Type {
    /// Whether an element of this type that has no other tag begins with this one.
    fn is_begun_by(&self, tag: u8) -> bool {
        match self {
            Type::Text | Type::Uuid | Type::Wide => tag == OCTET_STRING,
            Type::Integer | Type::Flags(_) => tag == INTEGER,
            Type::Boolean => tag == BOOLEAN,
            Type::Enumerated(_) => tag == ENUMERATED,
            Type::Filter => (0xa0..=0xa9).contains(&tag) || tag == 0x87,
            Type::Sequence(_) | Type::List(_) => tag == SEQUENCE || tag == SET,
            Type::One(choices) => choices.iter().any(|(known, ..)| *known == tag),
        }
    }

    fn read(&self, contents: &[u8], depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match self {
            Type::Text => match std::str::from_utf8(contents) {
                Ok(text) => Value::Text(text.to_owned()),
                Err(_) => Value::Octets(contents.to_vec()),
            },
            Type::Integer => Value::Number(number(contents)?),
            Type::Boolean => match contents {
                [octet] => Value::Flag(*octet != 0),
                _ => return None,
            },
            Type::Enumerated(names) => {
                let number = number(contents)?;
                match names.iter().find(|(known, _)| *known == number) {
                    Some((_, name)) => Value::Named(number, (*name).to_owned()),
                    None => Value::Number(number),
                }
            }
            Type::Flags(names) => flags(number(contents)?, names),
            Type::Uuid => match <[u8; 16]>::try_from(contents) {
                Ok(octets) => Value::Text(uuid(octets)),
                Err(_) => Value::Octets(contents.to_vec()),
            },
            Type::Wide => wide(contents),
            // The tag is gone here; a filter within a sequence is read where that is.
            Type::Filter => return None,
            Type::Sequence(fields) => Value::Fields(sequence(contents, fields, depth)?),
            Type::List(form) => {
                let mut reader = Reader::new(contents);
                let mut values = Vec::new();
                while !reader.is_empty() {
                    values.push(form.next(&mut reader, None, depth + 1)??);
                }
                Value::List(values)
            }
            Type::One(choices) => {
                let (tag, contents) = only(contents)?;
                chosen(choices, tag, contents, depth)?
            }
        })
    }

    /// The next element, if it is of this type: nothing is read otherwise. The outer `None` is of
    /// what is no element.
    fn next(
        &self,
        reader: &mut Reader<'_>,
        tag: Option<u8>,
        depth: usize,
    ) -> Option<Option<Value>> {
        let Some(begin) = reader.peek_tag() else { return Some(None) };
        let is_it = match tag {
            Some(tag) => begin == tag || begin == (tag | CONSTRUCTED),
            None => self.is_begun_by(begin),
        };
        if !is_it {
            return Some(None);
        }
        let (found, contents) = reader.element().ok()?;
        Some(Some(match (self, tag) {
            (Type::Filter, _) => {
                let mut element = vec![found];
                length(contents.len(), &mut element);
                element.extend_from_slice(contents);
                filter(if tag.is_some() { contents } else { &element })?
            }
            // Its own tag says which it is.
            (Type::One(choices), None) => chosen(choices, found, contents, depth)?,
            _ => self.read(contents, depth)?,
        }))
    }
}

/// Appends a length in the form of four octets (X.690 § 8.1.3.5).
fn length(length: usize, out: &mut Vec<u8>) {
    out.push(0x84);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

fn sequence(contents: &[u8], fields: &[Field], depth: usize) -> Option<Vec<(&'static str, Value)>> {
    let mut reader = Reader::new(contents);
    let mut found = Vec::new();
    for (name, tag, form) in fields {
        if let Some(value) = form.next(&mut reader, *tag, depth + 1)? {
            found.push((*name, value));
        }
    }
    // Sequences may be extended (RFC 4511 § 4); what else is there is shown too.
    while !reader.is_empty() {
        let (_, contents) = reader.element().ok()?;
        found.push(("more", Value::Octets(contents.to_vec())));
    }
    Some(found)
}

fn number(octets: &[u8]) -> Option<i64> {
    if octets.is_empty() || octets.len() > 8 {
        return None;
    }
    let start = if octets.first().is_some_and(|first| first & 0x80 != 0) { -1 } else { 0 };
    Some(octets.iter().fold(start, |number: i64, octet| number << 8 | i64::from(*octet)))
}

fn flags(number: i64, names: Names) -> Value {
    let set: Vec<_> =
        names.iter().filter(|(bit, _)| number & bit != 0).map(|(_, it)| *it).collect();
    if set.is_empty() { Value::Number(number) } else { Value::Named(number, set.join(", ")) }
}

fn uuid(octets: [u8; 16]) -> String {
    let mut text = String::new();
    for (at, octet) in octets.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        text.push_str(&format!("{octet:02x}"));
    }
    text
}

fn wide(octets: &[u8]) -> Value {
    let (pairs, rest) = octets.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    match String::from_utf16(&units) {
        Ok(text) if rest.is_empty() => Value::Text(text),
        _ => Value::Octets(octets.to_vec()),
    }
}

/// A field with the tag `[number]`.
pub(super) const fn tagged(name: &'static str, number: u8, form: Type) -> Field {
    (name, Some(context(number)), form)
}

/// A field with its type's own tag.
pub(super) const fn plain(name: &'static str, form: Type) -> Field {
    (name, None, form)
}

/// A choice with the constructed tag `[number]`.
pub(super) const fn constructed(number: u8) -> u8 {
    context_constructed(number)
}
