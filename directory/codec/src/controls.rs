//! Controls with a meaning of their own: their object identifiers and values.
//!
//! A control's value goes to `decode` here; `encode` appends what a control's value is to be.

use std::borrow::Cow;

use crate::ber::{INTEGER, OCTET_STRING, Reader, SEQUENCE, Writer};
use crate::error::DecodeError;
use crate::filter::Filter;
use crate::limits::ATTRIBUTES_MAX;
use crate::message::{SearchResultEntry, decode_strings, tag};

/// Simple paged results, RFC 2696: value [`PagedResults`] in request and response.
pub const PAGED_RESULTS: &str = "1.2.840.113556.1.4.319";
/// Assertion, RFC 4528: value [`Assertion`].
pub const ASSERTION: &str = "1.3.6.1.1.12";
/// Pre-read, RFC 4527: value [`ReadRequest`] in the request, [`ReadResponse`] in the response.
pub const PRE_READ: &str = "1.3.6.1.1.13.1";
/// Post-read, RFC 4527: values as for [`PRE_READ`].
pub const POST_READ: &str = "1.3.6.1.1.13.2";
/// Relax Rules (draft-zeilenga-ldap-relax): let an administrator give what else only the server sets. It has no value.
pub const RELAX_RULES: &str = "1.3.6.1.4.1.4203.666.5.12";
/// ManageDsaIT, RFC 3296: no value.
pub const MANAGE_DSA_IT: &str = "2.16.840.1.113730.3.4.2";

/// The value of [`PAGED_RESULTS`], `realSearchControlValue`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagedResults<'a> {
    /// In the request the entries wanted in a page; in the response an estimate of all, 0 for none.
    pub size: u32,
    /// Opaque to the client; empty in the first request and after the last page.
    pub cookie: Cow<'a, [u8]>,
}

impl<'a> PagedResults<'a> {
    /// Decodes a control value.
    ///
    /// # Errors
    /// Says what is malformed.
    pub fn decode(value: &'a [u8]) -> Result<Self, DecodeError> {
        let mut body = sequence(value)?;
        let size = body.natural(INTEGER)?;
        let cookie = Cow::Borrowed(body.expect(OCTET_STRING)?);
        body.finish(&[INTEGER, OCTET_STRING])?;
        Ok(PagedResults { size, cookie })
    }

    /// Appends the control value to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        let mark = writer.begin(SEQUENCE);
        writer.integer(INTEGER, i64::from(self.size));
        writer.octets(OCTET_STRING, &self.cookie);
        writer.end(mark);
    }
}

/// The value of [`ASSERTION`]: a filter that the target entry must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion<'a>(pub Filter<'a>);

impl<'a> Assertion<'a> {
    /// Decodes a control value.
    ///
    /// # Errors
    /// Those of [`Filter::decode`].
    pub fn decode(value: &'a [u8]) -> Result<Self, DecodeError> {
        Filter::decode(value).map(Assertion)
    }

    /// Appends the control value to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

/// The value of a [`PRE_READ`] or [`POST_READ`] request: the attributes wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest<'a>(pub Vec<&'a str>);

impl<'a> ReadRequest<'a> {
    /// Decodes a control value.
    ///
    /// # Errors
    /// `TooMany` over [`ATTRIBUTES_MAX`], else what is malformed.
    pub fn decode(value: &'a [u8]) -> Result<Self, DecodeError> {
        decode_strings(sequence(value)?, "requested attributes", ATTRIBUTES_MAX).map(ReadRequest)
    }

    /// Appends the control value to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        let mark = writer.begin(SEQUENCE);
        for attribute in &self.0 {
            writer.string(OCTET_STRING, attribute);
        }
        writer.end(mark);
    }
}

/// The value of a [`PRE_READ`] or [`POST_READ`] response: the entry before or after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadResponse<'a>(pub SearchResultEntry<'a>);

impl<'a> ReadResponse<'a> {
    /// Decodes a control value.
    ///
    /// # Errors
    /// Says what is malformed.
    pub fn decode(value: &'a [u8]) -> Result<Self, DecodeError> {
        SearchResultEntry::decode(only(value, tag::SEARCH_RESULT_ENTRY)?).map(ReadResponse)
    }

    /// Appends the control value to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        let mark = writer.begin(tag::SEARCH_RESULT_ENTRY);
        self.0.encode(&mut writer);
        writer.end(mark);
    }
}

/// The contents of the SEQUENCE that is all of `value`.
pub(crate) fn sequence(value: &[u8]) -> Result<Reader<'_>, DecodeError> {
    only(value, SEQUENCE)
}

fn only(value: &[u8], tag: u8) -> Result<Reader<'_>, DecodeError> {
    let mut outer = Reader::new(value);
    let body = outer.nested(tag)?;
    if !outer.is_empty() {
        return Err(DecodeError::malformed("octets after the value"));
    }
    Ok(body)
}
