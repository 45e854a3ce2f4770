//! The messages of RFC 4511 § 4, borrowed from the bytes they came in.
//!
//! Messages that are to be encoded are built of these types by hand. Details that a peer may vary
//! without changing the meaning (padded lengths, controls of zero length, unknown trailing elements) are
//! not kept.

mod attribute;
mod entry;
mod request;
mod response;
mod result;

use std::borrow::Cow;

use crate::ber::{self, Reader, SEQUENCE, Writer, context_constructed};
use crate::error::DecodeError;
use crate::limits::CONTROLS_MAX;

pub(crate) use attribute::decode_strings;
pub use attribute::{Attribute, is_password};
pub use entry::{
    EntryWriter, attribute_bytes, begin_attribute, begin_entry, begin_value, value_bytes,
};
pub use request::{
    AddRequest, Authentication, BindRequest, Change, ChangeOperation, CompareRequest, Deref,
    ExtendedRequest, ModifyDnRequest, ModifyRequest, Scope, SearchRequest,
};
pub use response::{BindResponse, ExtendedResponse, IntermediateResponse, SearchResultEntry};
pub use result::{LdapResult, ResultCode};

/// The identifier octets of the operations, RFC 4511 appendix B.
pub mod tag {
    /// BindRequest.
    pub const BIND_REQUEST: u8 = 0x60;
    /// BindResponse.
    pub const BIND_RESPONSE: u8 = 0x61;
    /// UnbindRequest.
    pub const UNBIND_REQUEST: u8 = 0x42;
    /// SearchRequest.
    pub const SEARCH_REQUEST: u8 = 0x63;
    /// SearchResultEntry.
    pub const SEARCH_RESULT_ENTRY: u8 = 0x64;
    /// SearchResultDone.
    pub const SEARCH_RESULT_DONE: u8 = 0x65;
    /// ModifyRequest.
    pub const MODIFY_REQUEST: u8 = 0x66;
    /// ModifyResponse.
    pub const MODIFY_RESPONSE: u8 = 0x67;
    /// AddRequest.
    pub const ADD_REQUEST: u8 = 0x68;
    /// AddResponse.
    pub const ADD_RESPONSE: u8 = 0x69;
    /// DelRequest.
    pub const DELETE_REQUEST: u8 = 0x4a;
    /// DelResponse.
    pub const DELETE_RESPONSE: u8 = 0x6b;
    /// ModifyDNRequest.
    pub const MODIFY_DN_REQUEST: u8 = 0x6c;
    /// ModifyDNResponse.
    pub const MODIFY_DN_RESPONSE: u8 = 0x6d;
    /// CompareRequest.
    pub const COMPARE_REQUEST: u8 = 0x6e;
    /// CompareResponse.
    pub const COMPARE_RESPONSE: u8 = 0x6f;
    /// AbandonRequest.
    pub const ABANDON_REQUEST: u8 = 0x50;
    /// SearchResultReference.
    pub const SEARCH_RESULT_REFERENCE: u8 = 0x73;
    /// ExtendedRequest.
    pub const EXTENDED_REQUEST: u8 = 0x77;
    /// ExtendedResponse.
    pub const EXTENDED_RESPONSE: u8 = 0x78;
    /// IntermediateResponse.
    pub const INTERMEDIATE_RESPONSE: u8 = 0x79;
}

const CONTROLS: u8 = context_constructed(0);

/// An LDAPMessage, RFC 4511 § 4.1.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// The message id, from 0 (unsolicited notifications only) to `maxInt`.
    pub id: u32,
    /// The operation.
    pub op: Op<'a>,
    /// The controls, in the order given.
    pub controls: Vec<Control<'a>>,
}

impl<'a> Message<'a> {
    /// A message without controls.
    #[must_use]
    pub const fn new(id: u32, op: Op<'a>) -> Self {
        Message { id, op, controls: Vec::new() }
    }

    /// Decodes exactly one message, such as [`ber::frame`] delimits.
    ///
    /// # Errors
    /// Says what is wrong. [`Message::peek_id`] tells whether the request can still be answered.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut outer = Reader::new(bytes);
        let mut body = outer.nested(SEQUENCE)?;
        if !outer.is_empty() {
            return Err(DecodeError::malformed("octets after the message"));
        }
        let id = body.natural(ber::INTEGER)?;
        let (tag, contents) = body.element()?;
        let op = Op::decode(tag, contents)?;
        let controls = Control::decode_all(&mut body)?;
        body.finish(&[ber::INTEGER, CONTROLS])?;
        Ok(Message { id, op, controls })
    }

    /// Appends the message to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        let message = writer.begin(SEQUENCE);
        writer.integer(ber::INTEGER, i64::from(self.id));
        self.op.encode(&mut writer);
        Control::encode_all(&self.controls, &mut writer);
        writer.end(message);
    }

    /// The message id of a message whose rest may be malformed.
    ///
    /// `None` means that not even envelope and id can be parsed: then RFC 4511 § 4.1.1 asks for a
    /// Notice of Disconnection.
    #[must_use]
    pub fn peek_id(bytes: &[u8]) -> Option<u32> {
        Reader::new(bytes).nested(SEQUENCE).ok()?.natural(ber::INTEGER).ok()
    }

    /// The operation's identifier octet ([`tag`]) in a message whose rest may be malformed.
    ///
    /// With [`Op::answer`] it gives the response that refuses such a request.
    #[must_use]
    pub fn peek_tag(bytes: &[u8]) -> Option<u8> {
        let mut body = Reader::new(bytes).nested(SEQUENCE).ok()?;
        body.natural(ber::INTEGER).ok()?;
        body.peek_tag()
    }

    /// Message id and identifier octet of the operation, as soon as these have come in, of a message of
    /// which the rest may not be there.
    #[must_use]
    pub fn peek_begin(bytes: &[u8]) -> Option<(u32, u8)> {
        let begun = ber::begun(bytes)?;
        let mut body = Reader::new(begun);
        let id = body.natural(ber::INTEGER).ok()?;
        Some((id, body.peek_tag()?))
    }
}

/// A Control, RFC 4511 § 4.1.11; [`crate::controls`] has the meanings of some values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control<'a> {
    /// The object identifier, in dotted form.
    pub oid: &'a str,
    /// Whether the operation must not be done by who does not know the control.
    pub critical: bool,
    /// The value, if there is one.
    pub value: Option<Cow<'a, [u8]>>,
}

impl<'a> Control<'a> {
    /// Reads `[0] Controls OPTIONAL` if it comes next.
    fn decode_all(body: &mut Reader<'a>) -> Result<Vec<Self>, DecodeError> {
        let mut controls = Vec::new();
        let Some(contents) = body.optional(CONTROLS)? else { return Ok(controls) };
        let mut list = Reader::new(contents);
        while !list.is_empty() {
            if controls.len() == CONTROLS_MAX {
                return Err(DecodeError::TooMany { what: "controls", max: CONTROLS_MAX });
            }
            controls.push(Control::decode(list.nested(SEQUENCE)?)?);
        }
        Ok(controls)
    }

    fn decode(mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let oid = body.string(ber::OCTET_STRING)?;
        let critical = body.optional(ber::BOOLEAN)?.map(ber::boolean).transpose()?;
        let value = body.optional(ber::OCTET_STRING)?.map(Cow::Borrowed);
        body.finish(&[ber::OCTET_STRING, ber::BOOLEAN])?;
        Ok(Control { oid, critical: critical.unwrap_or(false), value })
    }

    fn encode_all(controls: &[Control<'_>], writer: &mut Writer<'_>) {
        if controls.is_empty() {
            return;
        }
        let list = writer.begin(CONTROLS);
        for control in controls {
            control.encode(writer);
        }
        writer.end(list);
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        let mark = writer.begin(SEQUENCE);
        writer.string(ber::OCTET_STRING, self.oid);
        if self.critical {
            writer.boolean(ber::BOOLEAN, true);
        }
        if let Some(value) = &self.value {
            writer.octets(ber::OCTET_STRING, value);
        }
        writer.end(mark);
    }
}

/// The protocolOp of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op<'a> {
    /// § 4.2.
    BindRequest(BindRequest<'a>),
    /// § 4.2.2.
    BindResponse(BindResponse<'a>),
    /// § 4.3.
    UnbindRequest,
    /// § 4.5.1.
    SearchRequest(SearchRequest<'a>),
    /// § 4.5.2: an entry found.
    SearchResultEntry(SearchResultEntry<'a>),
    /// § 4.5.3: the URIs where the search goes on.
    SearchResultReference(Vec<&'a str>),
    /// § 4.5.2: the end of a search.
    SearchResultDone(LdapResult<'a>),
    /// § 4.6.
    ModifyRequest(ModifyRequest<'a>),
    /// § 4.6.
    ModifyResponse(LdapResult<'a>),
    /// § 4.7.
    AddRequest(AddRequest<'a>),
    /// § 4.7.
    AddResponse(LdapResult<'a>),
    /// § 4.8: the DN of the entry.
    DeleteRequest(&'a str),
    /// § 4.8.
    DeleteResponse(LdapResult<'a>),
    /// § 4.9.
    ModifyDnRequest(ModifyDnRequest<'a>),
    /// § 4.9.
    ModifyDnResponse(LdapResult<'a>),
    /// § 4.10.
    CompareRequest(CompareRequest<'a>),
    /// § 4.10.
    CompareResponse(LdapResult<'a>),
    /// § 4.11: the message id of the operation to abandon.
    AbandonRequest(u32),
    /// § 4.12.
    ExtendedRequest(ExtendedRequest<'a>),
    /// § 4.12.
    ExtendedResponse(ExtendedResponse<'a>),
    /// § 4.13.
    IntermediateResponse(IntermediateResponse<'a>),
}

impl<'a> Op<'a> {
    /// The result, if this is the last message of an answer (RFC 4511, section 4.1.9).
    #[must_use]
    pub const fn result(&self) -> Option<&LdapResult<'a>> {
        match self {
            Op::BindResponse(response) => Some(&response.result),
            Op::ExtendedResponse(response) => Some(&response.result),
            Op::SearchResultDone(result)
            | Op::ModifyResponse(result)
            | Op::AddResponse(result)
            | Op::DeleteResponse(result)
            | Op::ModifyDnResponse(result)
            | Op::CompareResponse(result) => Some(result),
            _ => None,
        }
    }

    /// The identifier octet.
    #[must_use]
    pub const fn tag(&self) -> u8 {
        match self {
            Op::BindRequest(_) => tag::BIND_REQUEST,
            Op::BindResponse(_) => tag::BIND_RESPONSE,
            Op::UnbindRequest => tag::UNBIND_REQUEST,
            Op::SearchRequest(_) => tag::SEARCH_REQUEST,
            Op::SearchResultEntry(_) => tag::SEARCH_RESULT_ENTRY,
            Op::SearchResultReference(_) => tag::SEARCH_RESULT_REFERENCE,
            Op::SearchResultDone(_) => tag::SEARCH_RESULT_DONE,
            Op::ModifyRequest(_) => tag::MODIFY_REQUEST,
            Op::ModifyResponse(_) => tag::MODIFY_RESPONSE,
            Op::AddRequest(_) => tag::ADD_REQUEST,
            Op::AddResponse(_) => tag::ADD_RESPONSE,
            Op::DeleteRequest(_) => tag::DELETE_REQUEST,
            Op::DeleteResponse(_) => tag::DELETE_RESPONSE,
            Op::ModifyDnRequest(_) => tag::MODIFY_DN_REQUEST,
            Op::ModifyDnResponse(_) => tag::MODIFY_DN_RESPONSE,
            Op::CompareRequest(_) => tag::COMPARE_REQUEST,
            Op::CompareResponse(_) => tag::COMPARE_RESPONSE,
            Op::AbandonRequest(_) => tag::ABANDON_REQUEST,
            Op::ExtendedRequest(_) => tag::EXTENDED_REQUEST,
            Op::ExtendedResponse(_) => tag::EXTENDED_RESPONSE,
            Op::IntermediateResponse(_) => tag::INTERMEDIATE_RESPONSE,
        }
    }

    /// The response with `result` that ends the request whose identifier octet is `request`.
    ///
    /// `None` where RFC 4511 has no response: unbind, abandon, and whatever is not a request.
    #[must_use]
    pub fn answer(request: u8, result: LdapResult<'a>) -> Option<Self> {
        Some(match request {
            tag::BIND_REQUEST => {
                Op::BindResponse(BindResponse { result, server_sasl_credentials: None })
            }
            tag::SEARCH_REQUEST => Op::SearchResultDone(result),
            tag::MODIFY_REQUEST => Op::ModifyResponse(result),
            tag::ADD_REQUEST => Op::AddResponse(result),
            tag::DELETE_REQUEST => Op::DeleteResponse(result),
            tag::MODIFY_DN_REQUEST => Op::ModifyDnResponse(result),
            tag::COMPARE_REQUEST => Op::CompareResponse(result),
            tag::EXTENDED_REQUEST => {
                Op::ExtendedResponse(ExtendedResponse { result, oid: None, value: None })
            }
            _ => return None,
        })
    }

    fn decode(tag: u8, contents: &'a [u8]) -> Result<Self, DecodeError> {
        let body = Reader::new(contents);
        Ok(match tag {
            tag::BIND_REQUEST => Op::BindRequest(BindRequest::decode(body)?),
            tag::BIND_RESPONSE => Op::BindResponse(BindResponse::decode(body)?),
            tag::UNBIND_REQUEST if contents.is_empty() => Op::UnbindRequest,
            tag::UNBIND_REQUEST => return Err(DecodeError::malformed("unbind with contents")),
            tag::SEARCH_REQUEST => Op::SearchRequest(SearchRequest::decode(body)?),
            tag::SEARCH_RESULT_ENTRY => Op::SearchResultEntry(SearchResultEntry::decode(body)?),
            tag::SEARCH_RESULT_REFERENCE => {
                Op::SearchResultReference(response::decode_reference(body)?)
            }
            tag::SEARCH_RESULT_DONE => Op::SearchResultDone(LdapResult::decode(body)?),
            tag::MODIFY_REQUEST => Op::ModifyRequest(ModifyRequest::decode(body)?),
            tag::MODIFY_RESPONSE => Op::ModifyResponse(LdapResult::decode(body)?),
            tag::ADD_REQUEST => Op::AddRequest(AddRequest::decode(body)?),
            tag::ADD_RESPONSE => Op::AddResponse(LdapResult::decode(body)?),
            tag::DELETE_REQUEST => Op::DeleteRequest(ber::string(contents)?),
            tag::DELETE_RESPONSE => Op::DeleteResponse(LdapResult::decode(body)?),
            tag::MODIFY_DN_REQUEST => Op::ModifyDnRequest(ModifyDnRequest::decode(body)?),
            tag::MODIFY_DN_RESPONSE => Op::ModifyDnResponse(LdapResult::decode(body)?),
            tag::COMPARE_REQUEST => Op::CompareRequest(CompareRequest::decode(body)?),
            tag::COMPARE_RESPONSE => Op::CompareResponse(LdapResult::decode(body)?),
            tag::ABANDON_REQUEST => Op::AbandonRequest(ber::natural(contents)?),
            tag::EXTENDED_REQUEST => Op::ExtendedRequest(ExtendedRequest::decode(body)?),
            tag::EXTENDED_RESPONSE => Op::ExtendedResponse(ExtendedResponse::decode(body)?),
            tag::INTERMEDIATE_RESPONSE => {
                Op::IntermediateResponse(IntermediateResponse::decode(body)?)
            }
            tag => return Err(DecodeError::UnknownOperation { tag }),
        })
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        let tag = self.tag();
        match self {
            Op::UnbindRequest => return writer.octets(tag, &[]),
            Op::DeleteRequest(dn) => return writer.string(tag, dn),
            Op::AbandonRequest(id) => return writer.integer(tag, i64::from(*id)),
            _ => {}
        }
        let mark = writer.begin(tag);
        match self {
            Op::UnbindRequest | Op::DeleteRequest(_) | Op::AbandonRequest(_) => {}
            Op::BindRequest(request) => request.encode(writer),
            Op::BindResponse(response) => response.encode(writer),
            Op::SearchRequest(request) => request.encode(writer),
            Op::SearchResultEntry(entry) => entry.encode(writer),
            Op::SearchResultReference(uris) => response::encode_reference(uris, writer),
            Op::ModifyRequest(request) => request.encode(writer),
            Op::AddRequest(request) => request.encode(writer),
            Op::ModifyDnRequest(request) => request.encode(writer),
            Op::CompareRequest(request) => request.encode(writer),
            Op::ExtendedRequest(request) => request.encode(writer),
            Op::ExtendedResponse(response) => response.encode(writer),
            Op::IntermediateResponse(response) => response.encode(writer),
            Op::SearchResultDone(result)
            | Op::ModifyResponse(result)
            | Op::AddResponse(result)
            | Op::DeleteResponse(result)
            | Op::ModifyDnResponse(result)
            | Op::CompareResponse(result) => result.encode(writer),
        }
        writer.end(mark);
    }
}
