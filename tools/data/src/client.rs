//! Entries straight to a server: adds over one connection, many at once, an entry never before the
//! one above it has been answered.

use crate::error::MakeError;
use crate::limits::{ANSWER_BYTES_MAX, REASONS_MAX};
use crate::maker::{Maker, View};
use keyway_codec::ber;
use keyway_codec::extended::START_TLS;
use keyway_codec::message::{
    AddRequest, Attribute, Authentication, BindRequest, ExtendedRequest, LdapResult, Message, Op,
    ResultCode,
};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};

/// Bytes of requests that are sent together.
const WRITE_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 16 << 10;
/// Entries between two looks at the progress, when the caller may also stop it.
const LOOK_EVERY: u64 = 32;

/// The counts so far.
#[derive(Clone, Debug, Default)]
pub struct Added {
    /// Entries that the server took.
    pub added: u64,
    /// Entries that were there already.
    pub present: u64,
    /// Entries that it refused for another reason.
    pub refused: u64,
    /// The first reasons: the entry's name, and the server's words.
    pub reasons: Vec<(String, String)>,
}

/// Why it did not go on.
#[derive(Debug)]
pub enum ClientError {
    /// The connection broke.
    Connection(io::Error),
    /// The server did not accept the name and the password.
    Bind(String),
    /// The server says that it ends, or says nothing that can be understood.
    Server(String),
    /// An entry cannot be made.
    Make(MakeError),
    /// The caller asked for an end.
    Stopped,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Connection(why) => match why.kind() {
                ErrorKind::UnexpectedEof => f.write_str("the server has closed the connection"),
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    f.write_str("the server does not answer")
                }
                _ => write!(f, "the connection broke: {why}"),
            },
            ClientError::Bind(why) => write!(f, "the server does not let us in: {why}"),
            ClientError::Server(why) => write!(f, "the server ends it: {why}"),
            ClientError::Make(why) => why.fmt(f),
            ClientError::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for ClientError {}

/// A connection to a server.
pub struct Client<S> {
    stream: S,
    next_id: u32,
    in_flight_max: usize,
    in_flight: VecDeque<Sent>,
    out: Vec<u8>,
    read: Vec<u8>,
    /// The counts so far.
    pub done: Added,
}

struct Sent {
    id: u32,
    entry: u64,
    dn: String,
    answered: bool,
}

impl<S: Read + Write> Client<S> {
    /// Uses a connection, with at most so many adds that are not answered yet.
    pub fn new(stream: S, in_flight_max: usize) -> Client<S> {
        Client {
            stream,
            next_id: 1,
            in_flight_max: in_flight_max.max(1),
            in_flight: VecDeque::new(),
            out: Vec::new(),
            read: Vec::new(),
            done: Added::default(),
        }
    }

    /// Asks for TLS (StartTLS, RFC 4511 § 4.14), and gives back the connection to begin it on.
    ///
    /// # Errors
    /// If the server does not do that, or the connection breaks.
    pub fn start_tls(mut self) -> Result<S, ClientError> {
        let id = self.id();
        let request = ExtendedRequest { oid: START_TLS, value: None };
        Message::new(id, Op::ExtendedRequest(request)).encode(&mut self.out);
        self.send()?;
        let (frame, (answer_id, answer)) = self.receive()?;
        match answer {
            // Data after it in the clear would be believed to have come by TLS.
            Answer::Extended(ResultCode::Success, _)
                if answer_id == id && frame == self.read.len() =>
            {
                Ok(self.stream)
            }
            answer => Err(ClientError::Server(format!("no StartTLS: {}", answer.words()))),
        }
    }

    /// Says who it is.
    ///
    /// # Errors
    /// If the server does not accept it, or the connection breaks.
    pub fn bind(&mut self, name: &str, password: &[u8]) -> Result<(), ClientError> {
        let authentication = Authentication::Simple(password);
        let request = Op::BindRequest(BindRequest { version: 3, name, authentication });
        let id = self.id();
        Message::new(id, request).encode(&mut self.out);
        let sent = self.send();
        // The password is not left behind.
        self.out.fill(0);
        self.out.clear();
        sent?;
        let (frame, (answer_id, answer)) = self.receive()?;
        self.read.drain(..frame);
        match answer {
            Answer::Bind(ResultCode::Success, _) if answer_id == id => Ok(()),
            Answer::Bind(..) if answer_id == id => Err(ClientError::Bind(answer.words())),
            other => Err(ClientError::Server(other.words())),
        }
    }

    /// Adds so many entries, and waits for all answers. `look` is called now and then with what
    /// came of it so far, and says whether to go on.
    ///
    /// # Errors
    /// If the connection breaks or an entry cannot be made. Entries that the server refuses are counted.
    pub fn add(
        &mut self,
        maker: &mut Maker,
        count: u64,
        look: &mut dyn FnMut(&Added) -> bool,
    ) -> Result<(), ClientError> {
        for turn in 0..count {
            if turn % LOOK_EVERY == 0 && !look(&self.done) {
                self.rest()?;
                return Err(ClientError::Stopped);
            }
            let Some(view) = maker.next_entry().map_err(ClientError::Make)? else { break };
            // Servers do the requests of a connection in any order.
            let parent = view.parent();
            while self.in_flight.iter().any(|sent| Some(sent.entry) == parent && !sent.answered) {
                self.send()?;
                self.answer()?;
            }
            self.push(&view);
            if self.out.len() >= WRITE_BYTES {
                self.send()?;
            }
            if self.in_flight.len() >= self.in_flight_max {
                self.send()?;
                while self.in_flight.len() > self.in_flight_max / 2 {
                    self.answer()?;
                }
            }
        }
        self.rest()?;
        look(&self.done);
        Ok(())
    }

    /// Waits for what is not answered, and says goodbye.
    fn rest(&mut self) -> Result<(), ClientError> {
        self.send()?;
        while !self.in_flight.is_empty() {
            self.answer()?;
        }
        Ok(())
    }

    /// Says goodbye.
    pub fn unbind(mut self) {
        let id = self.id();
        Message::new(id, Op::UnbindRequest).encode(&mut self.out);
        // A server that has gone needs none.
        let _ = self.send();
    }

    fn id(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id = if id >= i32::MAX as u32 { 1 } else { id + 1 };
        id
    }

    fn push(&mut self, view: &View<'_>) {
        let attributes = view
            .attributes()
            .map(|(name, values)| Attribute {
                description: Cow::Borrowed(name),
                values: values.map(Cow::Borrowed).collect(),
            })
            .collect();
        let id = self.id();
        let request = Op::AddRequest(AddRequest { dn: view.dn(), attributes });
        Message::new(id, request).encode(&mut self.out);
        let (entry, dn) = (view.index(), view.dn().to_owned());
        self.in_flight.push_back(Sent { id, entry, dn, answered: false });
    }

    fn send(&mut self) -> Result<(), ClientError> {
        self.stream
            .write_all(&self.out)
            .and_then(|()| self.stream.flush())
            .map_err(ClientError::Connection)?;
        self.out.clear();
        Ok(())
    }

    /// Takes one answer to an add.
    fn answer(&mut self) -> Result<(), ClientError> {
        let (frame, (id, answer)) = self.receive()?;
        self.read.drain(..frame);
        let Some(sent) = self.in_flight.iter_mut().find(|sent| sent.id == id) else {
            return match id {
                0 => Err(ClientError::Server(answer.words())),
                _ => Ok(()),
            };
        };
        sent.answered = true;
        match &answer {
            Answer::Add(ResultCode::Success, _) => self.done.added += 1,
            Answer::Add(ResultCode::EntryAlreadyExists, _) => self.done.present += 1,
            _ => {
                self.done.refused += 1;
                if self.done.reasons.len() < REASONS_MAX {
                    self.done.reasons.push((sent.dn.clone(), answer.words()));
                }
            }
        }
        while self.in_flight.front().is_some_and(|sent| sent.answered) {
            self.in_flight.pop_front();
        }
        Ok(())
    }

    /// Reads until a whole message is there: its length, its number and what it says.
    fn receive(&mut self) -> Result<(usize, (u32, Answer)), ClientError> {
        loop {
            let frame = ber::frame(&self.read, ANSWER_BYTES_MAX)
                .map_err(|why| ClientError::Server(why.to_string()))?;
            if let Some(length) = frame {
                let bytes = self.read.get(..length).unwrap_or_default();
                let message =
                    Message::decode(bytes).map_err(|why| ClientError::Server(why.to_string()))?;
                return Ok((length, (message.id, Answer::of(message.op))));
            }
            let mut piece = [0; READ_BYTES];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(ClientError::Connection(ErrorKind::UnexpectedEof.into())),
                Ok(length) => self.read.extend_from_slice(piece.get(..length).unwrap_or_default()),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(ClientError::Connection(why)),
            }
        }
    }
}

/// A server's answer.
enum Answer {
    Bind(ResultCode, String),
    Add(ResultCode, String),
    Extended(ResultCode, String),
    Other(String),
}

impl Answer {
    fn of(op: Op<'_>) -> Answer {
        let words = |result: &LdapResult<'_>| result.diagnostic.to_string();
        match op {
            Op::BindResponse(response) => {
                Answer::Bind(response.result.code, words(&response.result))
            }
            Op::AddResponse(result) => Answer::Add(result.code, words(&result)),
            Op::ExtendedResponse(response) => {
                Answer::Extended(response.result.code, words(&response.result))
            }
            _ => Answer::Other("the answer belongs to no request".to_owned()),
        }
    }

    fn words(&self) -> String {
        match self {
            Answer::Bind(code, text) | Answer::Add(code, text) | Answer::Extended(code, text) => {
                match text.is_empty() {
                    true => code.name().to_owned(),
                    false => format!("{}: {text}", code.name()),
                }
            }
            Answer::Other(text) => text.clone(),
        }
    }
}
