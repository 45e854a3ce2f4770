//! The responses that carry more than an LDAPResult.

use std::borrow::Cow;
use std::fmt;

use crate::ber::{self, OCTET_STRING, Reader, SEQUENCE, Writer, context};
use crate::error::DecodeError;
use crate::limits::REFERRALS_MAX;

use super::attribute::{Hidden, decode_strings};
use super::result::REFERRAL;
use super::{Attribute, LdapResult};

const SERVER_SASL_CREDENTIALS: u8 = context(7);
const RESPONSE_NAME: u8 = context(10);
const RESPONSE_VALUE: u8 = context(11);
const INTERMEDIATE_NAME: u8 = context(0);
const INTERMEDIATE_VALUE: u8 = context(1);

/// BindResponse, RFC 4511 § 4.2.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindResponse<'a> {
    /// How the bind ended.
    pub result: LdapResult<'a>,
    /// The challenge or final data of the SASL mechanism.
    pub server_sasl_credentials: Option<&'a [u8]>,
}

impl<'a> BindResponse<'a> {
    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let result = LdapResult::decode_components(&mut body)?;
        let server_sasl_credentials = body.optional(SERVER_SASL_CREDENTIALS)?;
        body.finish(&[REFERRAL, SERVER_SASL_CREDENTIALS])?;
        Ok(BindResponse { result, server_sasl_credentials })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        self.result.encode(writer);
        if let Some(credentials) = self.server_sasl_credentials {
            writer.octets(SERVER_SASL_CREDENTIALS, credentials);
        }
    }
}

/// SearchResultEntry, RFC 4511 § 4.5.2; servers write it with [`super::EntryWriter`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResultEntry<'a> {
    /// The name of the entry.
    pub dn: Cow<'a, str>,
    /// The attributes; without values if only types were asked for.
    pub attributes: Vec<Attribute<'a>>,
}

impl<'a> SearchResultEntry<'a> {
    pub(crate) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let dn = Cow::Borrowed(body.string(OCTET_STRING)?);
        let attributes = Attribute::decode_all(body.nested(SEQUENCE)?)?;
        body.finish(&[OCTET_STRING, SEQUENCE])?;
        Ok(SearchResultEntry { dn, attributes })
    }

    pub(crate) fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(OCTET_STRING, &self.dn);
        Attribute::encode_all(&self.attributes, writer);
    }
}

/// ExtendedResponse, RFC 4511 § 4.12. `Debug` does not show the value, which may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtendedResponse<'a> {
    /// How the operation ended.
    pub result: LdapResult<'a>,
    /// The kind of the value, where the operation's definition says so.
    pub oid: Option<Cow<'a, str>>,
    /// The value; [`crate::extended`] has the meanings of some.
    pub value: Option<Cow<'a, [u8]>>,
}

impl fmt::Debug for ExtendedResponse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.as_ref().map(|value| Hidden(value.len(), "octets"));
        f.debug_struct("ExtendedResponse")
            .field("result", &self.result)
            .field("oid", &self.oid)
            .field("value", &value)
            .finish()
    }
}

impl<'a> ExtendedResponse<'a> {
    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let result = LdapResult::decode_components(&mut body)?;
        let oid = body.optional(RESPONSE_NAME)?.map(ber::string).transpose()?;
        let value = body.optional(RESPONSE_VALUE)?;
        body.finish(&[REFERRAL, RESPONSE_NAME, RESPONSE_VALUE])?;
        Ok(ExtendedResponse {
            result,
            oid: oid.map(Cow::Borrowed),
            value: value.map(Cow::Borrowed),
        })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        self.result.encode(writer);
        if let Some(oid) = &self.oid {
            writer.string(RESPONSE_NAME, oid);
        }
        if let Some(value) = &self.value {
            writer.octets(RESPONSE_VALUE, value);
        }
    }
}

/// IntermediateResponse, RFC 4511 § 4.13.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntermediateResponse<'a> {
    /// The kind of the response.
    pub oid: Option<&'a str>,
    /// Its value.
    pub value: Option<&'a [u8]>,
}

impl<'a> IntermediateResponse<'a> {
    pub(super) fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let oid = body.optional(INTERMEDIATE_NAME)?.map(ber::string).transpose()?;
        let value = body.optional(INTERMEDIATE_VALUE)?;
        body.finish(&[INTERMEDIATE_NAME, INTERMEDIATE_VALUE])?;
        Ok(IntermediateResponse { oid, value })
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        if let Some(oid) = self.oid {
            writer.string(INTERMEDIATE_NAME, oid);
        }
        if let Some(value) = self.value {
            writer.octets(INTERMEDIATE_VALUE, value);
        }
    }
}

/// Reads the URIs of a SearchResultReference, RFC 4511 § 4.5.3.
pub(super) fn decode_reference(body: Reader<'_>) -> Result<Vec<&str>, DecodeError> {
    let uris = decode_strings(body, "references", REFERRALS_MAX)?;
    if uris.is_empty() {
        return Err(DecodeError::invalid("search reference without a URI"));
    }
    Ok(uris)
}

pub(super) fn encode_reference(uris: &[&str], writer: &mut Writer<'_>) {
    for uri in uris {
        writer.string(OCTET_STRING, uri);
    }
}
