//! The reports on a connection: its operations, and the parts that could not be seen.

use crate::direction::Direction;
use crate::error::Error;
use crate::parameters::extended_name;
use crate::secrets::Secrets;
use keyway_codec::message::{LdapResult, ResultCode, tag};
use keyway_codec::{DecodeError, Message, Op};
use std::borrow::Cow;
use std::net::SocketAddr;

/// A connection between two addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Counted from 1.
    pub number: u64,
    /// The client's address. Before the first request was seen, the end that opened the connection,
    /// or sent first.
    pub client: SocketAddr,
    /// The server's address.
    pub server: SocketAddr,
    /// Whether TLS protects it by now.
    pub tls: bool,
    /// Whether it is no connection, but datagrams of UDP between two ends (CLDAP).
    pub udp: bool,
    /// The name of the last successful bind; empty if that was anonymous or there was none.
    pub bound: String,
}

/// The kind of an operation, by the request's tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind(pub u8);

/// Tags of requests, and what they are called.
const KINDS: [(u8, &str); 10] = [
    (tag::BIND_REQUEST, "bind"),
    (tag::UNBIND_REQUEST, "unbind"),
    (tag::SEARCH_REQUEST, "search"),
    (tag::MODIFY_REQUEST, "modify"),
    (tag::ADD_REQUEST, "add"),
    (tag::DELETE_REQUEST, "delete"),
    (tag::MODIFY_DN_REQUEST, "modrdn"),
    (tag::COMPARE_REQUEST, "compare"),
    (tag::ABANDON_REQUEST, "abandon"),
    (tag::EXTENDED_REQUEST, "extended"),
];

impl Kind {
    /// The kind of the request that a response of this tag answers.
    #[must_use]
    pub fn answered_by(response: u8) -> Self {
        Kind(match response {
            tag::BIND_RESPONSE => tag::BIND_REQUEST,
            tag::MODIFY_RESPONSE => tag::MODIFY_REQUEST,
            tag::ADD_RESPONSE => tag::ADD_REQUEST,
            tag::DELETE_RESPONSE => tag::DELETE_REQUEST,
            tag::MODIFY_DN_RESPONSE => tag::MODIFY_DN_REQUEST,
            tag::COMPARE_RESPONSE => tag::COMPARE_REQUEST,
            tag::EXTENDED_RESPONSE => tag::EXTENDED_REQUEST,
            _ => tag::SEARCH_REQUEST,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(tag, _)| *tag == self.0).map_or("unknown", |(_, name)| name)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|(_, name)| *name)
    }
}

/// How much of a message is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// None of it: it was not captured.
    Absent,
    /// All.
    Whole(Box<Message<'a>>),
    /// Its beginning only.
    Cut,
    /// All, and it is not what RFC 4511 says.
    Malformed(DecodeError),
}

impl<'a> Part<'a> {
    /// The operation of the message, if that is whole.
    #[must_use]
    pub fn op(&self) -> Option<&Op<'a>> {
        match self {
            Part::Whole(message) => Some(&message.op),
            _ => None,
        }
    }

    /// The message, if it is whole.
    #[must_use]
    pub fn message(&self) -> Option<&Message<'a>> {
        match self {
            Part::Whole(message) => Some(message),
            _ => None,
        }
    }
}

/// Why nothing more comes for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was answered.
    Answered,
    /// No answer is due: unbind and abandon.
    Complete,
    /// The client abandoned it.
    Abandoned,
    /// The connection ended, or the capture.
    Unanswered,
    /// The server says this by itself (RFC 4511 § 4.4).
    Unsolicited,
}

/// Messages before the last answer: entries, references, intermediate responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers<'a> {
    pub(crate) octets: &'a [u8],
    /// When each came, and where in the octets it ends.
    pub(crate) marks: &'a [(u64, usize)],
    /// How many were not kept.
    pub left_out: u64,
}

impl<'a> Answers<'a> {
    /// Each, with when it came, in nanoseconds since 1970.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let (octets, mut start) = (self.octets, 0);
        self.marks.iter().map(move |(time_ns, end)| {
            let message = octets.get(start..*end).unwrap_or_default();
            start = *end;
            (*time_ns, message)
        })
    }
}

/// An operation: a request, and what came of it.
#[derive(Debug, Clone)]
pub struct Operation<'a> {
    /// On which connection.
    pub connection: &'a Connection,
    /// The message id.
    pub id: u32,
    /// The number of the request on its connection, from 1; 0 without a request.
    pub place: u64,
    /// Its kind.
    pub kind: Kind,
    /// When the request was there, in nanoseconds since 1970.
    pub start_ns: Option<u64>,
    /// When its last answer was.
    pub end_ns: Option<u64>,
    /// Why it is over.
    pub end: End,
    /// The request.
    pub request: Part<'a>,
    /// Its last answer.
    pub response: Part<'a>,
    /// The answers before that, if they are kept.
    pub answers: Answers<'a>,
    /// How many entries were found.
    pub entries: u64,
    /// How many references came.
    pub references: u64,
    /// How many intermediate responses came.
    pub intermediate: u64,
    /// The request's length, in octets.
    pub request_bytes: u64,
    /// The length of all answers together, in octets.
    pub response_bytes: u64,
    /// Whether passwords are shown: in the answers before the last they still are what they were.
    pub secrets: Secrets,
}

impl<'a> Operation<'a> {
    /// From the request to the last answer, in nanoseconds.
    #[must_use]
    pub fn latency_ns(&self) -> Option<u64> {
        Some(self.end_ns?.saturating_sub(self.start_ns?))
    }

    /// When it is to be told of: its start, else its end.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        self.start_ns.or(self.end_ns).unwrap_or_default()
    }

    /// How it ended, if its answer is there.
    #[must_use]
    pub fn result(&self) -> Option<&LdapResult<'a>> {
        self.response.op()?.result()
    }

    /// Its result code.
    #[must_use]
    pub fn code(&self) -> Option<ResultCode> {
        self.result().map(|result| result.code)
    }

    /// The name of the operation; for an extended one that is known, that one's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match (self.end, self.oid()) {
            (End::Unsolicited, _) => "notice",
            (_, Some(oid)) => extended_name(oid).unwrap_or("extended"),
            _ => self.kind.name(),
        }
    }

    /// The object identifier of an extended operation.
    #[must_use]
    pub fn oid(&self) -> Option<&str> {
        match (self.request.op(), self.response.op()) {
            (Some(Op::ExtendedRequest(request)), _) => Some(request.oid),
            (_, Some(Op::ExtendedResponse(response))) => response.oid.as_deref(),
            _ => None,
        }
    }

    /// The DN that the request names: of the entry, the search's base, or the bind's name.
    #[must_use]
    pub fn dn(&self) -> Option<&str> {
        Some(match self.request.op()? {
            Op::BindRequest(request) => request.name,
            Op::SearchRequest(request) => request.base,
            Op::ModifyRequest(request) => request.dn,
            Op::AddRequest(request) => request.dn,
            Op::DeleteRequest(dn) => dn,
            Op::ModifyDnRequest(request) => request.dn,
            Op::CompareRequest(request) => request.dn,
            _ => return None,
        })
    }
}

/// Something that is no operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note<'a> {
    /// When, in nanoseconds since 1970.
    pub time_ns: u64,
    /// On which connection, if on one.
    pub connection: Option<&'a Connection>,
    /// The event.
    pub what: Event<'a>,
}

/// An event of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// Octets that were not captured.
    Gap {
        /// The direction of the octets.
        direction: Direction,
        /// How many.
        bytes: u64,
    },
    /// The messages of one side cannot be told apart any more.
    OutOfStep {
        /// The direction of the octets.
        direction: Direction,
        /// Why.
        why: &'static str,
    },
    /// They can be again.
    InStep {
        /// The direction of the octets.
        direction: Direction,
        /// How many octets were passed over until then.
        bytes: u64,
    },
    /// A message that cannot be decoded.
    Malformed {
        /// The direction of the octets.
        direction: Direction,
        /// Why.
        why: DecodeError,
    },
    /// From here on it cannot be read, for this reason.
    Unreadable(Cow<'a, str>),
    /// The connection ended.
    Closed {
        /// Whether the client sent an unbind before that, as RFC 4511 § 4.3 asks.
        unbind: bool,
    },
}

/// Where operations go.
pub trait Sink {
    /// An operation is over.
    ///
    /// # Errors
    /// If it cannot be told.
    fn operation(&mut self, operation: &Operation<'_>) -> Result<(), Error>;

    /// Something else happened.
    ///
    /// # Errors
    /// If it cannot be told.
    fn note(&mut self, note: &Note<'_>) -> Result<(), Error>;

    /// All that was told is to be visible: nothing more comes for now.
    ///
    /// # Errors
    /// If it cannot be written.
    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
