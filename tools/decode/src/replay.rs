//! Requests of a capture, to be sent to a server again, and what came of them then and now.
//!
//! A connection's requests keep their order, and what went before: a request is due once every answer
//! that its client had when it sent it has come again. So a bind is over before what was sent after
//! it, and what was in flight together is so again.

mod comparison;
mod passwords;

use crate::limits::REPLAY_BYTES_MAX;
use crate::operation::{End, Event, Note, Operation, Part};
use crate::secrets::{Secrets, hide};
use crate::view::{Line, View};
use keyway_codec::message::{Authentication, BindRequest};
use keyway_codec::{Message, Op, extended};
use std::collections::{BTreeMap, HashMap};
use zeroize::Zeroizing;

pub use comparison::{Comparison, Difference, Now};
pub use passwords::{List, Passwords};

/// A request, and what is known of its answer.
#[derive(Debug)]
pub struct Request {
    /// The octets to send.
    pub octets: Zeroizing<Vec<u8>>,
    /// Its message id.
    pub id: u32,
    /// The kind of the operation.
    pub kind: &'static str,
    /// When it was sent, in nanoseconds since 1970.
    pub start_ns: u64,
    /// How many of the connection's answers, in the order in which they ended, come before it.
    pub after: usize,
    /// Its place among the answers in that order; `None` if it was not answered.
    pub ended: Option<usize>,
    /// The line that is told of it.
    pub line: String,
    /// Its result code, if it was answered.
    pub code: Option<u32>,
    /// How many entries were found.
    pub entries: u64,
    /// How long that took, in nanoseconds.
    pub latency_ns: Option<u64>,
    place: u64,
    end_ns: Option<u64>,
}

impl Request {
    /// Whether an answer is due.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether no answer ever comes to such a request: an unbind, an abandon.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        matches!(self.kind, "unbind" | "abandon")
    }
}

/// The requests of a connection, in their order.
#[derive(Debug, Default)]
pub struct Conversation {
    /// The connection's number.
    pub number: u64,
    /// When its first request was sent, in nanoseconds since 1970.
    pub start_ns: u64,
    /// When it was closed, or its last message was.
    pub end_ns: u64,
    /// The requests to send.
    pub requests: Vec<Request>,
}

/// Everything that is to be sent.
#[derive(Debug, Default)]
pub struct Script {
    /// Connections in the order of their first requests.
    pub conversations: Vec<Conversation>,
    /// The number of requests that are not sent, by reason.
    pub left_out: BTreeMap<&'static str, u64>,
    /// How many connections were open at a time, at most.
    pub open_max: usize,
}

/// Makes a script of operations.
#[derive(Debug, Default)]
pub struct Recorder {
    passwords: Passwords,
    conversations: HashMap<u64, Conversation>,
    left_out: BTreeMap<&'static str, u64>,
    bytes: usize,
}

const WITH_PASSWORDS: &str = "requests with passwords";

impl Recorder {
    /// One that gives these passwords. The operations must come with theirs ([`Secrets::Shown`]): a
    /// request that has one, and none is given, is left out.
    #[must_use]
    pub fn new(passwords: Passwords) -> Recorder {
        Recorder { passwords, ..Recorder::default() }
    }

    fn add(&mut self, operation: &Operation<'_>) {
        let octets = match self.request(operation) {
            Ok(octets) => octets,
            Err(why) => {
                *self.left_out.entry(why).or_default() += 1;
                return;
            }
        };
        let start_ns = operation.start_ns.unwrap_or_default();
        self.bytes += octets.len() + size_of::<Request>();
        let request = Request {
            octets,
            id: operation.id,
            kind: operation.name(),
            start_ns,
            after: 0,
            ended: None,
            line: subject(operation),
            code: operation.code().map(|code| code.code()),
            entries: operation.entries,
            latency_ns: operation.latency_ns(),
            place: operation.place,
            end_ns: operation.end_ns.filter(|_| operation.end == End::Answered),
        };
        self.bytes += request.line.len();
        let number = operation.connection.number;
        let new = || Conversation { number, start_ns, ..Conversation::default() };
        let conversation = self.conversations.entry(number).or_insert_with(new);
        conversation.start_ns = conversation.start_ns.min(start_ns);
        conversation.end_ns = conversation.end_ns.max(operation.end_ns.unwrap_or(start_ns));
        conversation.requests.push(request);
    }

    /// The request to send for an operation, or why there is none.
    fn request(&self, operation: &Operation<'_>) -> Result<Zeroizing<Vec<u8>>, &'static str> {
        if self.bytes > REPLAY_BYTES_MAX {
            return Err("requests beyond what is kept in memory (choose some: --filter)");
        }
        let Some(message) = operation.request.message() else {
            return Err("requests that are not whole in the capture");
        };
        match &message.op {
            Op::ExtendedRequest(request) if request.oid == extended::START_TLS => {
                Err("StartTLS (--start-tls says whether it is used)")
            }
            Op::BindRequest(bind) => self.bind(message, bind),
            _ => self.with_passwords(message),
        }
    }

    fn bind(
        &self,
        message: &Message<'_>,
        bind: &BindRequest<'_>,
    ) -> Result<Zeroizing<Vec<u8>>, &'static str> {
        match (&self.passwords, &bind.authentication) {
            (Passwords::Ours, _) => Err("binds (each connection is bound once)"),
            (_, Authentication::Simple(b"")) => Ok(encoded(message)),
            (Passwords::Listed(list), Authentication::Simple(_)) => {
                let password = list.of(bind.name).ok_or("binds whose names are not in the list")?;
                let authentication = Authentication::Simple(password);
                let op = Op::BindRequest(BindRequest { authentication, ..bind.clone() });
                Ok(encoded(&Message { id: message.id, op, controls: message.controls.clone() }))
            }
            (_, Authentication::Sasl { mechanism, .. })
                if !mechanism.eq_ignore_ascii_case("PLAIN") =>
            {
                Err("SASL binds, which cannot be repeated")
            }
            _ => self.with_passwords(message),
        }
    }

    fn with_passwords(&self, message: &Message<'_>) -> Result<Zeroizing<Vec<u8>>, &'static str> {
        let mut scratch = Vec::new();
        let is_captured = matches!(self.passwords, Passwords::Captured);
        if is_captured || hide(message.clone(), Secrets::Hidden, &mut scratch) == *message {
            return Ok(encoded(message));
        }
        Err(WITH_PASSWORDS)
    }

    /// The script. It has no requests if there was none.
    #[must_use]
    pub fn script(self) -> Script {
        let mut conversations: Vec<_> = self.conversations.into_values().collect();
        conversations.iter_mut().for_each(Conversation::order);
        conversations.sort_by_key(|one| (one.start_ns, one.number));
        let open_max = open_at_a_time(&conversations);
        Script { conversations, left_out: self.left_out, open_max }
    }
}

impl Script {
    /// The number of requests that were left out because their passwords are not known.
    #[must_use]
    pub fn without_passwords(&self) -> u64 {
        self.left_out.get(WITH_PASSWORDS).copied().unwrap_or_default()
    }
}

impl Conversation {
    /// Brings the requests into their order, and notes what each waits for.
    fn order(&mut self) {
        self.requests.sort_by_key(|request| request.place);
        let mut ends: Vec<(u64, u64)> = self
            .requests
            .iter()
            .filter_map(|request| Some((request.end_ns?, request.place)))
            .collect();
        ends.sort_unstable();
        for request in &mut self.requests {
            let sent = (request.start_ns, request.place);
            request.after = ends.partition_point(|end| *end < sent);
            let own = request.end_ns.map(|end_ns| (end_ns, request.place));
            request.ended = own.and_then(|own| ends.binary_search(&own).ok());
        }
    }
}

fn encoded(message: &Message<'_>) -> Zeroizing<Vec<u8>> {
    let mut octets = Zeroizing::new(Vec::new());
    message.encode(&mut octets);
    octets
}

/// The subject of the request, without its passwords.
fn subject(operation: &Operation<'_>) -> String {
    let Some(message) = operation.request.message() else { return String::new() };
    let mut scratch = Vec::new();
    let message = hide(message.clone(), Secrets::Hidden, &mut scratch);
    let hidden = Operation {
        request: Part::Whole(Box::new(message)),
        secrets: Secrets::Hidden,
        ..operation.clone()
    };
    Line::subject(&hidden)
}

/// How many were open at a time.
fn open_at_a_time(conversations: &[Conversation]) -> usize {
    let opened = conversations.iter().map(|one| (one.start_ns, true));
    let closed = conversations.iter().map(|one| (one.end_ns, false));
    let mut events: Vec<_> = opened.chain(closed).collect();
    // At the same moment one opens before another closes.
    events.sort_by_key(|(time_ns, is_opened)| (*time_ns, !is_opened));
    let (mut open, mut most) = (0_usize, 0);
    for (_, is_opened) in events {
        open = if is_opened { open + 1 } else { open.saturating_sub(1) };
        most = open.max(most);
    }
    most
}

impl View for Recorder {
    fn operation(&mut self, operation: &Operation<'_>, _: &mut Vec<u8>) {
        if operation.end != End::Unsolicited {
            self.add(operation);
        }
    }

    fn note(&mut self, note: &Note<'_>, _: &mut Vec<u8>) {
        if let (Event::Closed { .. }, Some(connection)) = (&note.what, note.connection)
            && let Some(conversation) = self.conversations.get_mut(&connection.number)
        {
            conversation.end_ns = conversation.end_ns.max(note.time_ns);
        }
    }
}

/// A speed: how much faster than captured, or as fast as answers come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// So many times as fast.
    Times(f64),
    /// Without pauses.
    Max,
}

impl std::str::FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Speed, String> {
        if text == "max" {
            return Ok(Speed::Max);
        }
        let times = text.strip_suffix('x').and_then(|times| times.parse().ok());
        match times {
            Some(times) if (0.001..=1e6).contains(&times) => Ok(Speed::Times(times)),
            _ => Err("a speed is 1x, 2x, 0.5x, ... (0.001x to 1000000x), or max".to_owned()),
        }
    }
}

impl Speed {
    /// How long after the beginning something is due, in nanoseconds.
    #[must_use]
    pub fn due_ns(self, since_first_ns: u64) -> u64 {
        match self {
            Speed::Times(times) => (since_first_ns as f64 / times) as u64,
            Speed::Max => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(place: u64, start_ns: u64, end_ns: Option<u64>) -> Request {
        Request {
            octets: Zeroizing::default(),
            id: place as u32,
            kind: "search",
            start_ns,
            after: 0,
            ended: None,
            line: String::new(),
            code: Some(0),
            entries: 0,
            latency_ns: None,
            place,
            end_ns,
        }
    }

    #[test]
    fn a_request_waits_for_the_answers_that_its_client_had() {
        let requests = vec![
            request(4, 30, None),
            request(2, 12, Some(25)),
            request(1, 10, Some(11)),
            request(3, 13, Some(20)),
            request(5, 40, Some(50)),
        ];
        let mut conversation = Conversation { requests, ..Conversation::default() };
        conversation.order();
        let places: Vec<_> = conversation.requests.iter().map(|one| one.place).collect();
        assert_eq!(places, [1, 2, 3, 4, 5]);
        let after: Vec<_> = conversation.requests.iter().map(|one| one.after).collect();
        assert_eq!(after, [0, 1, 1, 3, 3]);
        let ended: Vec<_> = conversation.requests.iter().map(|one| one.ended).collect();
        assert_eq!(ended, [Some(0), Some(2), Some(1), None, Some(3)]);
    }

    #[test]
    fn nothing_waits_for_itself_where_clocks_are_coarse() {
        let requests = vec![request(1, 10, Some(10)), request(2, 10, Some(10))];
        let mut conversation = Conversation { requests, ..Conversation::default() };
        conversation.order();
        let after: Vec<_> = conversation.requests.iter().map(|one| one.after).collect();
        assert_eq!(after, [0, 1]);
    }

    #[test]
    fn speeds() {
        assert_eq!("2x".parse(), Ok(Speed::Times(2.0)));
        assert_eq!("max".parse(), Ok(Speed::Max));
        for bad in ["", "2", "x", "0x", "-1x", "nanx", "infx", "fast"] {
            assert!(bad.parse::<Speed>().is_err(), "{bad}");
        }
        assert_eq!(Speed::Times(2.0).due_ns(10), 5);
    }

    #[test]
    fn connections_that_were_open_together_are_counted() {
        let one = |start_ns, end_ns| Conversation { start_ns, end_ns, ..Conversation::default() };
        assert_eq!(open_at_a_time(&[one(0, 10), one(5, 8), one(10, 20), one(30, 40)]), 2);
        assert_eq!(open_at_a_time(&[]), 0);
    }
}
