//! An operation that is kept: all that is told of it, in octets of its own, to be told again.

use crate::operation::{Answers, Connection, End, Kind, Operation, Part};
use crate::secrets::{Secrets, hide};
use keyway_codec::{DecodeError, Message};

/// A message that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Octets {
    Absent,
    Whole(Box<[u8]>),
    Cut,
    Malformed(DecodeError),
}

/// An operation with its own memory. Passwords are in it only if they were in what it was made of.
#[derive(Debug, Clone)]
pub struct Kept {
    connection: Connection,
    id: u32,
    place: u64,
    kind: Kind,
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    end: End,
    request: Octets,
    response: Octets,
    answers: Box<[u8]>,
    marks: Box<[(u64, usize)]>,
    left_out: u64,
    entries: u64,
    references: u64,
    intermediate: u64,
    request_bytes: u64,
    response_bytes: u64,
    secrets: Secrets,
}

impl Octets {
    fn of(part: &Part<'_>) -> Octets {
        match part {
            Part::Absent => Octets::Absent,
            Part::Whole(message) => {
                let mut octets = Vec::new();
                message.encode(&mut octets);
                Octets::Whole(octets.into_boxed_slice())
            }
            Part::Cut => Octets::Cut,
            Part::Malformed(why) => Octets::Malformed(*why),
        }
    }

    fn part(&self) -> Part<'_> {
        match self {
            Octets::Absent => Part::Absent,
            Octets::Whole(octets) => match Message::decode(octets) {
                Ok(message) => Part::Whole(Box::new(message)),
                Err(why) => Part::Malformed(why),
            },
            Octets::Cut => Part::Cut,
            Octets::Malformed(why) => Part::Malformed(*why),
        }
    }

    fn octets(&self) -> Option<&[u8]> {
        match self {
            Octets::Whole(octets) => Some(octets),
            _ => None,
        }
    }
}

impl Kept {
    /// Keeps an operation.
    #[must_use]
    pub fn new(operation: &Operation<'_>) -> Kept {
        let (answers, marks) = hidden_answers(operation);
        Kept {
            connection: operation.connection.clone(),
            id: operation.id,
            place: operation.place,
            kind: operation.kind,
            start_ns: operation.start_ns,
            end_ns: operation.end_ns,
            end: operation.end,
            request: Octets::of(&operation.request),
            response: Octets::of(&operation.response),
            answers,
            marks,
            left_out: operation.answers.left_out,
            entries: operation.entries,
            references: operation.references,
            intermediate: operation.intermediate,
            request_bytes: operation.request_bytes,
            response_bytes: operation.response_bytes,
            secrets: operation.secrets,
        }
    }

    /// The operation, decoded again.
    #[must_use]
    pub fn operation(&self) -> Operation<'_> {
        Operation {
            connection: &self.connection,
            id: self.id,
            place: self.place,
            kind: self.kind,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            end: self.end,
            request: self.request.part(),
            response: self.response.part(),
            answers: self.answers(),
            entries: self.entries,
            references: self.references,
            intermediate: self.intermediate,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            secrets: self.secrets,
        }
    }

    fn answers(&self) -> Answers<'_> {
        Answers { octets: &self.answers, marks: &self.marks, left_out: self.left_out }
    }

    /// Its messages that are whole: the request, the answers before the last, the last answer.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let answers = self.answers();
        let between = answers.iter().map(|(_, octets)| octets);
        self.request.octets().into_iter().chain(between).chain(self.response.octets())
    }

    /// The request as it was sent, if it is whole.
    #[must_use]
    pub fn request(&self) -> Option<&[u8]> {
        self.request.octets()
    }

    /// About how much memory it takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let octets = |octets: &Octets| octets.octets().map_or(0, <[u8]>::len);
        size_of::<Kept>()
            + self.connection.bound.len()
            + octets(&self.request)
            + octets(&self.response)
            + self.answers.len()
            + size_of_val(&*self.marks)
    }
}

type HiddenAnswers = (Box<[u8]>, Box<[(u64, usize)]>);

/// The answers before the last, without passwords if those are not shown.
fn hidden_answers(operation: &Operation<'_>) -> HiddenAnswers {
    let Answers { octets, marks, .. } = operation.answers;
    if operation.secrets == Secrets::Shown || marks.is_empty() {
        return (octets.into(), marks.into());
    }
    let (mut kept, mut ends) = (Vec::new(), Vec::new());
    for (time_ns, octets) in operation.answers.iter() {
        let mut scratch = Vec::new();
        let Ok(message) = Message::decode(octets) else { continue };
        hide(message, operation.secrets, &mut scratch).encode(&mut kept);
        ends.push((time_ns, kept.len()));
    }
    (kept.into_boxed_slice(), ends.into_boxed_slice())
}
