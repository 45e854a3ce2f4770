//! Search filters, RFC 4511 § 4.5.1.7: their BER here, their string form in `text`.

mod text;

use std::borrow::Cow;

use crate::ber::{self, OCTET_STRING, Reader, SEQUENCE, Writer, context, context_constructed};
use crate::error::DecodeError;
use crate::limits::{FILTER_DEPTH_MAX, FILTER_TERMS_MAX};

pub use text::FilterError;

const AND: u8 = context_constructed(0);
const OR: u8 = context_constructed(1);
const NOT: u8 = context_constructed(2);
const EQUALITY: u8 = context_constructed(3);
const SUBSTRINGS: u8 = context_constructed(4);
const GREATER_OR_EQUAL: u8 = context_constructed(5);
const LESS_OR_EQUAL: u8 = context_constructed(6);
const PRESENT: u8 = context(7);
const APPROX: u8 = context_constructed(8);
const EXTENSIBLE: u8 = context_constructed(9);

const INITIAL: u8 = context(0);
const ANY: u8 = context(1);
const FINAL: u8 = context(2);

const RULE: u8 = context(1);
const TYPE: u8 = context(2);
const MATCH_VALUE: u8 = context(3);
const DN_ATTRIBUTES: u8 = context(4);

/// A filter, borrowed from the message or text it was read from.
///
/// Reading bounds depth and size ([`FILTER_DEPTH_MAX`], [`FILTER_TERMS_MAX`]), so that recursion
/// over a filter that was read is safe. One built by hand should keep to them as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter<'a> {
    /// All are true; without any it is true (RFC 4526).
    And(Vec<Filter<'a>>),
    /// At least one is true; without any it is false (RFC 4526).
    Or(Vec<Filter<'a>>),
    /// It is false.
    Not(Box<Filter<'a>>),
    /// A value equals the assertion.
    Equality {
        /// The attribute description.
        attribute: Cow<'a, str>,
        /// The assertion value.
        value: Cow<'a, [u8]>,
    },
    /// A value has these pieces in this order. There is at least one piece.
    Substrings {
        /// The attribute description.
        attribute: Cow<'a, str>,
        /// The beginning.
        initial: Option<Cow<'a, [u8]>>,
        /// The pieces in between.
        any: Vec<Cow<'a, [u8]>>,
        /// The end.
        last: Option<Cow<'a, [u8]>>,
    },
    /// A value is greater or equal.
    GreaterOrEqual {
        /// The attribute description.
        attribute: Cow<'a, str>,
        /// The assertion value.
        value: Cow<'a, [u8]>,
    },
    /// A value is less or equal.
    LessOrEqual {
        /// The attribute description.
        attribute: Cow<'a, str>,
        /// The assertion value.
        value: Cow<'a, [u8]>,
    },
    /// The attribute is there.
    Present(Cow<'a, str>),
    /// A value is about equal, as the server understands it.
    Approx {
        /// The attribute description.
        attribute: Cow<'a, str>,
        /// The assertion value.
        value: Cow<'a, [u8]>,
    },
    /// A value matches by a rule of the client's choice. At least one of rule and attribute is set.
    Extensible {
        /// The matching rule, by name or OID; without it the attribute's equality rule.
        rule: Option<Cow<'a, str>>,
        /// The attribute description; without it all attributes that the rule fits.
        attribute: Option<Cow<'a, str>>,
        /// The assertion value.
        value: Cow<'a, [u8]>,
        /// Whether the attributes of the entry's DN are matched as well.
        dn_attributes: bool,
    },
}

impl<'a> Filter<'a> {
    /// Decodes exactly one filter.
    ///
    /// # Errors
    /// `TooDeep` and `TooMany` beyond the limits, else what is malformed or invalid.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let filter = Self::decode_from(&mut reader)?;
        if !reader.is_empty() {
            return Err(DecodeError::malformed("octets after the filter"));
        }
        Ok(filter)
    }

    /// Appends the filter's BER to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_to(&mut Writer::new(out));
    }

    /// Copies what is borrowed.
    #[must_use]
    pub fn into_owned(self) -> Filter<'static> {
        fn text(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        fn bytes(bytes: Cow<'_, [u8]>) -> Cow<'static, [u8]> {
            Cow::Owned(bytes.into_owned())
        }
        let all = |terms: Vec<Filter<'a>>| terms.into_iter().map(Filter::into_owned).collect();
        match self {
            Filter::And(terms) => Filter::And(all(terms)),
            Filter::Or(terms) => Filter::Or(all(terms)),
            Filter::Not(term) => Filter::Not(Box::new(term.into_owned())),
            Filter::Equality { attribute, value } => {
                Filter::Equality { attribute: text(attribute), value: bytes(value) }
            }
            Filter::Substrings { attribute, initial, any, last } => Filter::Substrings {
                attribute: text(attribute),
                initial: initial.map(bytes),
                any: any.into_iter().map(bytes).collect(),
                last: last.map(bytes),
            },
            Filter::GreaterOrEqual { attribute, value } => {
                Filter::GreaterOrEqual { attribute: text(attribute), value: bytes(value) }
            }
            Filter::LessOrEqual { attribute, value } => {
                Filter::LessOrEqual { attribute: text(attribute), value: bytes(value) }
            }
            Filter::Present(attribute) => Filter::Present(text(attribute)),
            Filter::Approx { attribute, value } => {
                Filter::Approx { attribute: text(attribute), value: bytes(value) }
            }
            Filter::Extensible { rule, attribute, value, dn_attributes } => Filter::Extensible {
                rule: rule.map(text),
                attribute: attribute.map(text),
                value: bytes(value),
                dn_attributes,
            },
        }
    }

    /// Reads the filter that comes next.
    pub(crate) fn decode_from(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut budget = Budget { depth_left: FILTER_DEPTH_MAX, terms_left: FILTER_TERMS_MAX };
        budget.filter(reader)
    }

    pub(crate) fn encode_to(&self, writer: &mut Writer<'_>) {
        match self {
            Filter::And(terms) => encode_set(AND, terms, writer),
            Filter::Or(terms) => encode_set(OR, terms, writer),
            Filter::Not(term) => encode_set(NOT, std::slice::from_ref(term.as_ref()), writer),
            Filter::Equality { attribute, value } => {
                encode_assertion(EQUALITY, attribute, value, writer);
            }
            Filter::GreaterOrEqual { attribute, value } => {
                encode_assertion(GREATER_OR_EQUAL, attribute, value, writer);
            }
            Filter::LessOrEqual { attribute, value } => {
                encode_assertion(LESS_OR_EQUAL, attribute, value, writer);
            }
            Filter::Approx { attribute, value } => {
                encode_assertion(APPROX, attribute, value, writer);
            }
            Filter::Present(attribute) => writer.string(PRESENT, attribute),
            Filter::Substrings { attribute, initial, any, last } => {
                let filter = writer.begin(SUBSTRINGS);
                writer.string(OCTET_STRING, attribute);
                let pieces = writer.begin(SEQUENCE);
                initial.iter().for_each(|piece| writer.octets(INITIAL, piece));
                any.iter().for_each(|piece| writer.octets(ANY, piece));
                last.iter().for_each(|piece| writer.octets(FINAL, piece));
                writer.end(pieces);
                writer.end(filter);
            }
            Filter::Extensible { rule, attribute, value, dn_attributes } => {
                let filter = writer.begin(EXTENSIBLE);
                rule.iter().for_each(|rule| writer.string(RULE, rule));
                attribute.iter().for_each(|attribute| writer.string(TYPE, attribute));
                writer.octets(MATCH_VALUE, value);
                if *dn_attributes {
                    writer.boolean(DN_ATTRIBUTES, true);
                }
                writer.end(filter);
            }
        }
    }
}

fn encode_set(tag: u8, terms: &[Filter<'_>], writer: &mut Writer<'_>) {
    let set = writer.begin(tag);
    for term in terms {
        term.encode_to(writer);
    }
    writer.end(set);
}

fn encode_assertion(tag: u8, attribute: &str, value: &[u8], writer: &mut Writer<'_>) {
    let assertion = writer.begin(tag);
    writer.string(OCTET_STRING, attribute);
    writer.octets(OCTET_STRING, value);
    writer.end(assertion);
}

/// The rest of the limits of a filter that is read.
struct Budget {
    depth_left: usize,
    terms_left: usize,
}

impl Budget {
    fn term(&mut self) -> Result<(), DecodeError> {
        self.terms_left = self
            .terms_left
            .checked_sub(1)
            .ok_or(DecodeError::TooMany { what: "filter terms", max: FILTER_TERMS_MAX })?;
        Ok(())
    }

    fn filter<'a>(&mut self, reader: &mut Reader<'a>) -> Result<Filter<'a>, DecodeError> {
        self.term()?;
        let (tag, contents) = reader.element()?;
        let mut body = Reader::new(contents);
        match tag {
            AND => self.below(|budget| Ok(Filter::And(budget.set(body)?))),
            OR => self.below(|budget| Ok(Filter::Or(budget.set(body)?))),
            NOT => {
                let term = self.below(|budget| budget.filter(&mut body))?;
                if !body.is_empty() {
                    return Err(DecodeError::malformed("more than one filter in a not"));
                }
                Ok(Filter::Not(Box::new(term)))
            }
            PRESENT => Ok(Filter::Present(Cow::Borrowed(ber::string(contents)?))),
            SUBSTRINGS => self.substrings(body),
            EXTENSIBLE => extensible(body),
            EQUALITY | GREATER_OR_EQUAL | LESS_OR_EQUAL | APPROX => {
                let attribute = Cow::Borrowed(body.string(OCTET_STRING)?);
                let value = Cow::Borrowed(body.expect(OCTET_STRING)?);
                body.finish(&[OCTET_STRING])?;
                Ok(match tag {
                    EQUALITY => Filter::Equality { attribute, value },
                    GREATER_OR_EQUAL => Filter::GreaterOrEqual { attribute, value },
                    LESS_OR_EQUAL => Filter::LessOrEqual { attribute, value },
                    _ => Filter::Approx { attribute, value },
                })
            }
            _ => Err(DecodeError::invalid("unknown filter choice")),
        }
    }

    /// Runs `read` one level deeper.
    fn below<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth_left <= 1 {
            return Err(DecodeError::TooDeep { max: FILTER_DEPTH_MAX });
        }
        self.depth_left -= 1;
        let term = read(self);
        self.depth_left += 1;
        term
    }

    fn set<'a>(&mut self, mut body: Reader<'a>) -> Result<Vec<Filter<'a>>, DecodeError> {
        let mut terms = Vec::new();
        while !body.is_empty() {
            terms.push(self.filter(&mut body)?);
        }
        Ok(terms)
    }

    fn substrings<'a>(&mut self, mut body: Reader<'a>) -> Result<Filter<'a>, DecodeError> {
        let attribute = Cow::Borrowed(body.string(OCTET_STRING)?);
        let mut pieces = body.nested(SEQUENCE)?;
        body.finish(&[OCTET_STRING, SEQUENCE])?;
        if pieces.is_empty() {
            return Err(DecodeError::invalid("substring assertion without pieces"));
        }
        let (mut initial, mut any, mut last) = (None, Vec::new(), None);
        while !pieces.is_empty() {
            self.term()?;
            let (tag, piece) = pieces.element()?;
            let piece = Cow::Borrowed(piece);
            match tag {
                _ if last.is_some() => {
                    return Err(DecodeError::invalid("substring after the final one"));
                }
                INITIAL if initial.is_none() && any.is_empty() => initial = Some(piece),
                INITIAL => return Err(DecodeError::invalid("initial substring not the first")),
                ANY => any.push(piece),
                FINAL => last = Some(piece),
                _ => return Err(DecodeError::invalid("unknown kind of substring")),
            }
        }
        Ok(Filter::Substrings { attribute, initial, any, last })
    }
}

fn extensible(mut body: Reader<'_>) -> Result<Filter<'_>, DecodeError> {
    let rule = body.optional(RULE)?.map(ber::string).transpose()?;
    let attribute = body.optional(TYPE)?.map(ber::string).transpose()?;
    let value = Cow::Borrowed(body.expect(MATCH_VALUE)?);
    let dn_attributes = body.optional(DN_ATTRIBUTES)?.map(ber::boolean).transpose()?;
    body.finish(&[RULE, TYPE, MATCH_VALUE, DN_ATTRIBUTES])?;
    if rule.is_none() && attribute.is_none() {
        return Err(DecodeError::invalid("extensible match without rule and attribute"));
    }
    Ok(Filter::Extensible {
        rule: rule.map(Cow::Borrowed),
        attribute: attribute.map(Cow::Borrowed),
        value,
        dn_attributes: dn_attributes.unwrap_or(false),
    })
}
