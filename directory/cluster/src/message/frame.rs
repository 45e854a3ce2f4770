//! Frames: `length u32 BE of what follows | kind u8 | body`.

use std::fmt::{self, Display, Formatter};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::check::Invalid;
use super::ids::Digest;
use super::request::Request;
use super::status::Contents;

/// Octets that the kind and the body of a row or of data may have: a group of commits and what surrounds it.
pub const LARGE_FRAME: usize = (64 << 20) + (64 << 10);
/// Octets that the kind and the body of any other frame may have.
pub const SMALL_FRAME: usize = 64 << 10;
/// Octets of the length.
const LENGTH_BYTES: usize = 4;

const REQUEST: u8 = 1;
const ANSWER: u8 = 2;
const DATA: u8 = 3;
const ROW: u8 = 4;
const HEARTBEAT: u8 = 5;
const ACKNOWLEDGE: u8 = 6;
const END: u8 = 7;

/// A frame between two members.
#[derive(Clone, PartialEq, Debug)]
pub enum Frame {
    /// A question.
    Request(Request),
    /// Its answer.
    Answer(Answer),
    /// Octets: of a base's files, or of operations that are forwarded and their results.
    Data(Vec<u8>),
    /// A row of the feed.
    Row {
        /// Its position.
        position: u64,
        /// Its stored form.
        stored: Vec<u8>,
    },
    /// The writer is there.
    Heartbeat(Heartbeat),
    /// The follower has this position on its disk, and all before it.
    Acknowledge {
        /// The position.
        position: u64,
    },
    /// All data was sent.
    End {
        /// The SHA-256 of all of it.
        sha256: Digest,
    },
}

/// What a writer says now and then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Its last position.
    pub head: u64,
    /// Its epoch.
    pub epoch: u64,
    /// Its time, in microseconds since 1970. It is for people: no decision is made by it.
    pub unix_us: u64,
    /// Of its contents at the last position that a thousand divides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<Contents>,
}

/// Why octets are no frame, or a frame has no octets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// A kind that there is not.
    Kind(u8),
    /// More, or fewer, octets than a frame of this kind may have.
    Length {
        /// The kind.
        kind: u8,
        /// How many it says that there are.
        bytes: usize,
    },
    /// JSON of a form that is not known.
    Json(String),
    /// JSON that says what may not be.
    Invalid(Invalid),
}

impl Frame {
    /// How many octets the frame has that `bytes` begins with; `None` if there are too few to say so. A frame that may
    /// not be sent is refused here, before its octets are waited for.
    ///
    /// # Errors
    /// For an unknown kind, and for a length that its kind, or `most` octets after the length, do not allow.
    fn length(bytes: &[u8], most: usize) -> Result<Option<usize>, FrameError> {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let Some(kind) = rest.first().copied() else { return Ok(None) };
        let least = match kind {
            REQUEST | ANSWER | DATA | HEARTBEAT => 1,
            ROW => 1 + 8,
            ACKNOWLEDGE => 1 + 8,
            END => 1,
            _ => return Err(FrameError::Kind(kind)),
        };
        let limit = if matches!(kind, DATA | ROW) { LARGE_FRAME } else { SMALL_FRAME };
        let bytes = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        match (least..=limit.min(most)).contains(&bytes) {
            true => Ok(Some(LENGTH_BYTES + bytes)),
            false => Err(FrameError::Length { kind, bytes }),
        }
    }

    /// Reads a frame from the front of `bytes`, and says how many octets it has; `None` if it is not all there. The peer
    /// may send at most `most` octets after the length.
    ///
    /// # Errors
    /// If the octets are no frame. The connection is of no more use then.
    pub(super) fn decode(bytes: &[u8], most: usize) -> Result<Option<(Frame, usize)>, FrameError> {
        let Some(length) = Frame::length(bytes, most)? else { return Ok(None) };
        let Some((_, [kind, body @ ..])) =
            bytes.get(..length).and_then(<[u8]>::split_first_chunk::<LENGTH_BYTES>)
        else {
            return Ok(None);
        };
        let wrong = || FrameError::Length { kind: *kind, bytes: 1 + body.len() };
        let frame = match *kind {
            REQUEST => {
                let request: Request = read(body)?;
                request.check().map_err(FrameError::Invalid)?;
                Frame::Request(request)
            }
            ANSWER => {
                let mut answer: Answer = read(body)?;
                answer.check().map_err(FrameError::Invalid)?;
                Frame::Answer(answer)
            }
            DATA => Frame::Data(body.to_vec()),
            ROW => {
                let (position, stored) = body.split_first_chunk().ok_or_else(wrong)?;
                Frame::Row { position: u64::from_be_bytes(*position), stored: stored.to_vec() }
            }
            HEARTBEAT => Frame::Heartbeat(read(body)?),
            ACKNOWLEDGE => {
                let position = body.try_into().map_err(|_| wrong())?;
                Frame::Acknowledge { position: u64::from_be_bytes(position) }
            }
            END => Frame::End { sha256: read::<End>(body)?.sha256 },
            other => return Err(FrameError::Kind(other)),
        };
        Ok(Some((frame, length)))
    }

    /// Writes the frame behind `out`.
    ///
    /// # Errors
    /// If it is longer than its kind may be; then `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        match self.encode_body(out) {
            Ok(()) => {}
            Err(why) => {
                out.truncate(start);
                return Err(why);
            }
        }
        let written = out.get_mut(start..).unwrap_or_default();
        let bytes = written.len().saturating_sub(LENGTH_BYTES);
        if let (Some(length), Ok(bytes)) = (written.first_chunk_mut(), u32::try_from(bytes)) {
            *length = bytes.to_be_bytes();
        }
        match Frame::length(written, LARGE_FRAME) {
            Ok(_) => Ok(()),
            Err(why) => {
                out.truncate(start);
                Err(why)
            }
        }
    }

    fn encode_body(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        match self {
            Frame::Request(request) => write(out, REQUEST, request)?,
            Frame::Answer(answer) => write(out, ANSWER, answer)?,
            Frame::Data(bytes) => {
                out.push(DATA);
                out.extend_from_slice(bytes);
            }
            Frame::Row { position, stored } => {
                out.push(ROW);
                out.extend_from_slice(&position.to_be_bytes());
                out.extend_from_slice(stored);
            }
            Frame::Heartbeat(heartbeat) => write(out, HEARTBEAT, heartbeat)?,
            Frame::Acknowledge { position } => {
                out.push(ACKNOWLEDGE);
                out.extend_from_slice(&position.to_be_bytes());
            }
            Frame::End { sha256 } => write(out, END, &End { sha256: *sha256 })?,
        }
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct End {
    sha256: Digest,
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(json)
}

fn write<T: Serialize>(out: &mut Vec<u8>, kind: u8, what: &T) -> Result<(), FrameError> {
    out.push(kind);
    serde_json::to_writer(out, what).map_err(json)
}

/// Where, but not what: the text may hold a token.
fn json(why: serde_json::Error) -> FrameError {
    FrameError::Json(format!("line {}, column {}", why.line(), why.column()))
}

impl Display for FrameError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a member sent a frame that is none: ")?;
        match self {
            FrameError::Kind(kind) => {
                write!(f, "kind {kind} is not known; are the versions alike?")
            }
            FrameError::Length { kind, bytes } => {
                write!(f, "{bytes} octets are not what kind {kind} may have here")
            }
            FrameError::Json(at) => {
                write!(f, "its JSON is of another form ({at}); are the versions alike?")
            }
            FrameError::Invalid(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for FrameError {}
