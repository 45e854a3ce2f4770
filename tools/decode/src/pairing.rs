//! Requests and their answers, by message id.

use crate::error::Error;
use crate::framing::is_request;
use crate::limits::{ABANDONED_MAX, ANSWERS_BYTES_MAX, PENDING_MAX};
use crate::operation::{Answers, Connection, End, Kind, Operation, Part, Sink};
use crate::secrets::{Secrets, hide};
use keyway_codec::message::{Authentication, BindRequest, ResultCode, tag};
use keyway_codec::{Message, Op, extended};
use std::collections::VecDeque;

/// A message as it was cut out of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raw<'a> {
    /// When its last octet was there.
    pub(crate) time_ns: u64,
    pub(crate) octets: &'a [u8],
    /// Its length; more than there are octets if it was cut.
    pub(crate) total: u64,
}

impl Raw<'_> {
    fn is_whole(&self) -> bool {
        self.octets.len() as u64 == self.total
    }
}

/// How operations are told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether passwords are shown.
    pub secrets: Secrets,
    /// Whether the entries found are kept until their search is done.
    pub keep_answers: bool,
}

/// A request without its last answer.
#[derive(Debug, Default)]
struct Pending {
    id: u32,
    place: u64,
    kind: u8,
    start_ns: Option<u64>,
    request: Vec<u8>,
    request_bytes: u64,
    answers: Vec<u8>,
    marks: Vec<(u64, usize)>,
    left_out: u64,
    entries: u64,
    references: u64,
    intermediate: u64,
    response_bytes: u64,
}

/// The meaning of a message for its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Consequence {
    None,
    /// StartTLS was granted: the octets that follow are TLS.
    Tls,
    /// The client said goodbye.
    Unbind,
    /// A SASL bind with this mechanism has succeeded: a layer of its may protect what follows.
    Layer(String),
}

#[derive(Debug, Default)]
pub(crate) struct Pairing {
    pending: Vec<Pending>,
    /// How many requests there were.
    requests: u64,
    abandoned: VecDeque<u32>,
    /// Buffers to be used again.
    spare: Vec<Pending>,
    held_bytes: usize,
}

/// How many buffers are kept to be used again, and how large at most, in bytes.
const SPARE_MAX: usize = 16;
const SPARE_BYTES_MAX: usize = 1 << 14;

impl Pairing {
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes a message. Its id and its operation's tag were found in its head.
    pub(crate) fn take(
        &mut self,
        connection: &mut Connection,
        raw: Raw<'_>,
        operation: u8,
        options: Options,
        sink: &mut impl Sink,
    ) -> Result<Consequence, Error> {
        let id = peek_id(raw.octets).unwrap_or_default();
        if is_request(operation) {
            return self.request(connection, id, raw, operation, options, sink);
        }
        self.response(connection, id, raw, operation, options, sink)
    }

    fn request(
        &mut self,
        connection: &mut Connection,
        id: u32,
        raw: Raw<'_>,
        kind: u8,
        options: Options,
        sink: &mut impl Sink,
    ) -> Result<Consequence, Error> {
        // An id that comes again has lost its answer, or the client takes no care.
        let again = self.pending.iter().position(|pending| pending.id == id);
        if let Some(old) = again.map(|at| self.remove(at)) {
            self.tell(connection, old, End::Unanswered, None, options, sink)?;
        }
        if self.pending.len() == PENDING_MAX {
            let oldest = self.remove(0);
            self.tell(connection, oldest, End::Unanswered, None, options, sink)?;
        }
        self.abandoned.retain(|abandoned| *abandoned != id);
        let mut pending = self.spare.pop().unwrap_or_default();
        pending.request.clear();
        pending.request.extend_from_slice(raw.octets);
        self.requests += 1;
        (pending.id, pending.place) = (id, self.requests);
        (pending.kind, pending.start_ns) = (kind, Some(raw.time_ns));
        pending.request_bytes = raw.total;
        match kind {
            tag::UNBIND_REQUEST => {
                self.tell(connection, pending, End::Complete, None, options, sink)?;
                Ok(Consequence::Unbind)
            }
            tag::ABANDON_REQUEST => {
                if let Ok(Op::AbandonRequest(id)) = Message::decode(raw.octets).map(|it| it.op) {
                    self.abandon(connection, id, options, sink)?;
                }
                self.tell(connection, pending, End::Complete, None, options, sink)?;
                Ok(Consequence::None)
            }
            _ => {
                self.held_bytes += pending.request.len();
                self.pending.push(pending);
                Ok(Consequence::None)
            }
        }
    }

    fn abandon(
        &mut self,
        connection: &mut Connection,
        id: u32,
        options: Options,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let Some(at) = self.pending.iter().position(|pending| pending.id == id) else {
            return Ok(());
        };
        if self.abandoned.len() == ABANDONED_MAX {
            self.abandoned.pop_front();
        }
        self.abandoned.push_back(id);
        let pending = self.remove(at);
        self.tell(connection, pending, End::Abandoned, None, options, sink)?;
        Ok(())
    }

    fn response(
        &mut self,
        connection: &mut Connection,
        id: u32,
        raw: Raw<'_>,
        operation: u8,
        options: Options,
        sink: &mut impl Sink,
    ) -> Result<Consequence, Error> {
        if id == 0 {
            let notice = Pending { kind: operation, ..Pending::default() };
            self.tell(connection, notice, End::Unsolicited, Some(raw), options, sink)?;
            return Ok(Consequence::None);
        }
        let at = match self.pending.iter().position(|pending| pending.id == id) {
            Some(at) => at,
            // An answer that was on its way when the operation was abandoned.
            None if self.abandoned.contains(&id) => return Ok(Consequence::None),
            None if self.pending.len() == PENDING_MAX => return Ok(Consequence::None),
            None => {
                let kind = Kind::answered_by(operation).0;
                self.pending.push(Pending { id, kind, ..Pending::default() });
                self.pending.len() - 1
            }
        };
        let Some(pending) = self.pending.get_mut(at) else { return Ok(Consequence::None) };
        pending.response_bytes += raw.total;
        match operation {
            tag::SEARCH_RESULT_ENTRY => pending.entries += 1,
            tag::SEARCH_RESULT_REFERENCE => pending.references += 1,
            tag::INTERMEDIATE_RESPONSE => pending.intermediate += 1,
            _ => {
                let pending = self.remove(at);
                return self.tell(connection, pending, End::Answered, Some(raw), options, sink);
            }
        }
        if options.keep_answers {
            let before = pending.answers.len();
            pending.keep(raw);
            self.held_bytes += pending.answers.len() - before;
        }
        Ok(Consequence::None)
    }

    /// The connection is over, or nothing more is known of it.
    pub(crate) fn finish(
        &mut self,
        connection: &mut Connection,
        options: Options,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        for pending in std::mem::take(&mut self.pending) {
            self.tell(connection, pending, End::Unanswered, None, options, sink)?;
        }
        self.held_bytes = 0;
        Ok(())
    }

    fn remove(&mut self, at: usize) -> Pending {
        let pending = self.pending.remove(at);
        self.held_bytes -= pending.request.len() + pending.answers.len();
        pending
    }

    fn tell(
        &mut self,
        connection: &mut Connection,
        pending: Pending,
        end: End,
        response: Option<Raw<'_>>,
        options: Options,
        sink: &mut impl Sink,
    ) -> Result<Consequence, Error> {
        let (mut for_request, mut for_answer) = (Vec::new(), Vec::new());
        let request = match pending.start_ns {
            Some(_) => {
                part(&pending.request, pending.request_bytes, options.secrets, &mut for_request)
            }
            None => Part::Absent,
        };
        let answer = match response {
            Some(raw) => part(raw.octets, raw.total, options.secrets, &mut for_answer),
            None => Part::Absent,
        };
        let unsolicited = if end == End::Unsolicited { response } else { None };
        let operation = Operation {
            connection,
            id: pending.id,
            place: pending.place,
            kind: Kind(pending.kind),
            start_ns: pending.start_ns,
            end_ns: response.map(|raw| raw.time_ns),
            end,
            request,
            response: answer,
            answers: Answers {
                octets: &pending.answers,
                marks: &pending.marks,
                left_out: pending.left_out,
            },
            entries: pending.entries,
            references: pending.references,
            intermediate: pending.intermediate,
            request_bytes: pending.request_bytes,
            response_bytes: pending.response_bytes + unsolicited.map_or(0, |raw| raw.total),
            secrets: options.secrets,
        };
        sink.operation(&operation)?;
        let success = operation.code() == Some(ResultCode::Success);
        let bound = match operation.request.op() {
            Some(Op::BindRequest(request)) if success => Some(request.name.to_owned()),
            _ => None,
        };
        let tls = success && operation.oid() == Some(extended::START_TLS);
        let layer = match operation.request.op() {
            Some(Op::BindRequest(BindRequest {
                authentication: Authentication::Sasl { mechanism, .. },
                ..
            })) if success => Some((*mechanism).to_owned()),
            _ => None,
        };
        if let Some(bound) = bound {
            connection.bound = bound;
        }
        self.recycle(pending);
        Ok(match layer {
            _ if tls => Consequence::Tls,
            Some(mechanism) => Consequence::Layer(mechanism),
            None => Consequence::None,
        })
    }

    fn recycle(&mut self, mut pending: Pending) {
        let fits = pending.request.capacity() + pending.answers.capacity() <= SPARE_BYTES_MAX;
        if self.spare.len() < SPARE_MAX && fits {
            let (mut answers, mut marks) = (pending.answers, pending.marks);
            answers.clear();
            marks.clear();
            pending = Pending { request: pending.request, answers, marks, ..Pending::default() };
            self.spare.push(pending);
        }
    }
}

impl Pending {
    fn keep(&mut self, raw: Raw<'_>) {
        if !raw.is_whole() || self.answers.len() + raw.octets.len() > ANSWERS_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        self.answers.extend_from_slice(raw.octets);
        self.marks.push((raw.time_ns, self.answers.len()));
    }
}

fn part<'a>(octets: &'a [u8], total: u64, secrets: Secrets, scratch: &'a mut Vec<u8>) -> Part<'a> {
    if (octets.len() as u64) < total {
        return Part::Cut;
    }
    match Message::decode(octets) {
        Ok(message) => Part::Whole(Box::new(hide(message, secrets, scratch))),
        Err(why) => Part::Malformed(why),
    }
}

/// The message id in the head of a message, also if the rest is not there.
pub(crate) fn peek_id(head: &[u8]) -> Option<u32> {
    let integer = head.get(header_bytes(head)?..)?;
    let length = usize::from(*integer.get(1)?);
    let octets = integer.get(2..2 + length).filter(|octets| octets.len() <= 4)?;
    Some(octets.iter().fold(0, |id, octet| id << 8 | u32::from(*octet)))
}

/// The operation's tag in the head of a message, also if the rest is not there.
pub(crate) fn peek_tag(head: &[u8]) -> Option<u8> {
    let integer = head.get(header_bytes(head)?..)?;
    integer.get(2 + usize::from(*integer.get(1)?)).copied()
}

fn header_bytes(head: &[u8]) -> Option<usize> {
    let first = *head.get(1)?;
    Some(if first < 0x80 { 2 } else { 2 + usize::from(first & 0x7f) })
}
