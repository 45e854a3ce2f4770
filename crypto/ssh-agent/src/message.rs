//! The agent's messages as bytes (draft-ietf-sshm-ssh-agent § 3).

use crate::key::AgentKey;
use crate::limits::{KEYS_MAX, MESSAGE_BYTES_MAX};
use ssh_encoding::{Decode, Encode, Reader};
use std::fmt;

const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
const EXTENSION: u8 = 27;
const EXTENSION_RESPONSE: u8 = 29;

/// The extension that says which extensions there are (§ 3.8.1).
const QUERY: &str = "query";

/// A client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequest {
    /// The keys that there are.
    List,
    /// A signature.
    Sign {
        /// The public key, as SSH writes it.
        key: Vec<u8>,
        /// The message.
        data: Vec<u8>,
        /// With which hash an RSA key signs: [`Signing::of`](crate::Signing::of).
        flags: u32,
    },
    /// Which extensions there are.
    Query,
    /// An extension that this agent has not, or anything else: to add, remove, lock and unlock keys among it.
    Other,
}

/// The agent's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentAnswer {
    /// It is not done.
    Failure,
    /// The keys.
    Keys(Vec<AgentKey>),
    /// A signature, as [`encode_signature`](crate::encode_signature) writes it.
    Signature(Vec<u8>),
    /// The extensions that there are.
    Extensions,
}

/// A message that is too long, or not of its kind. Its connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is no message of a client of an SSH agent")
    }
}

impl std::error::Error for Malformed {}

impl From<ssh_encoding::Error> for Malformed {
    fn from(_: ssh_encoding::Error) -> Self {
        Malformed
    }
}

/// The length of a message, in bytes, from the four bytes before it.
///
/// # Errors
/// If no message is as short or as long.
pub fn message_bytes(header: [u8; 4]) -> Result<usize, Malformed> {
    let length = usize::try_from(u32::from_be_bytes(header)).map_err(|_| Malformed)?;
    if (1..=MESSAGE_BYTES_MAX).contains(&length) { Ok(length) } else { Err(Malformed) }
}

impl AgentRequest {
    /// Reads a message, without the length before it.
    ///
    /// # Errors
    /// If it is too long, cut off, or has bytes left over.
    pub fn decode(message: &[u8]) -> Result<AgentRequest, Malformed> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(Malformed);
        }
        let mut reader = message;
        Ok(match u8::decode(&mut reader)? {
            REQUEST_IDENTITIES => reader.finish(AgentRequest::List)?,
            SIGN_REQUEST => {
                let (key, data) = (Vec::decode(&mut reader)?, Vec::decode(&mut reader)?);
                let flags = u32::decode(&mut reader)?;
                reader.finish(AgentRequest::Sign { key, data, flags })?
            }
            EXTENSION => match Vec::<u8>::decode(&mut reader)? {
                name if name == QUERY.as_bytes() => reader.finish(AgentRequest::Query)?,
                _ => AgentRequest::Other,
            },
            _ => AgentRequest::Other,
        })
    }
}

impl AgentAnswer {
    /// The answer as bytes, with its length before it. Keys that do not fit are left out, the last first.
    ///
    /// # Errors
    /// If a signature is longer than a message may be.
    pub fn encode(&self) -> Result<Vec<u8>, Malformed> {
        let mut message = Vec::new();
        match self {
            AgentAnswer::Failure => FAILURE.encode(&mut message)?,
            AgentAnswer::Keys(keys) => {
                let (count, listed) = list(keys)?;
                IDENTITIES_ANSWER.encode(&mut message)?;
                count.encode(&mut message)?;
                message.extend(listed);
            }
            AgentAnswer::Signature(signature) => {
                SIGN_RESPONSE.encode(&mut message)?;
                signature.encode(&mut message)?;
            }
            AgentAnswer::Extensions => {
                EXTENSION_RESPONSE.encode(&mut message)?;
                QUERY.encode(&mut message)?;
                QUERY.encode(&mut message)?;
            }
        }
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(Malformed);
        }
        Ok(message.encode_vec()?)
    }
}

/// As many keys as go into an answer, and how many those are.
fn list(keys: &[AgentKey]) -> Result<(u32, Vec<u8>), Malformed> {
    /// The number of the message and that of its keys.
    const HEAD_BYTES: usize = 5;
    let (mut count, mut listed) = (0, Vec::new());
    for key in keys.iter().take(KEYS_MAX) {
        let before = listed.len();
        key.blob().encode(&mut listed)?;
        key.name().encode(&mut listed)?;
        if HEAD_BYTES + listed.len() > MESSAGE_BYTES_MAX {
            listed.truncate(before);
            break;
        }
        count += 1;
    }
    Ok((count, listed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_engine::Algorithm;

    fn string(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
    }

    #[test]
    fn requests_are_read() {
        assert_eq!(AgentRequest::decode(&[11]), Ok(AgentRequest::List));
        let sign = [&[13][..], &string(b"key"), &string(b"data"), &[0, 0, 0, 2]].concat();
        let read = AgentRequest::Sign { key: b"key".to_vec(), data: b"data".to_vec(), flags: 2 };
        assert_eq!(AgentRequest::decode(&sign), Ok(read));
        for at in 0..sign.len() {
            assert_eq!(AgentRequest::decode(&sign[..at]), Err(Malformed), "{at}");
        }
        assert_eq!(AgentRequest::decode(&[&sign[..], &[0]].concat()), Err(Malformed));
        assert_eq!(AgentRequest::decode(&[11, 0]), Err(Malformed));
        let long = [&[13][..], &[0xff; 4], &[0; 64]].concat();
        assert_eq!(AgentRequest::decode(&long), Err(Malformed));
    }

    #[test]
    fn extensions_are_told_apart() {
        let query = [&[27][..], &string(b"query")].concat();
        assert_eq!(AgentRequest::decode(&query), Ok(AgentRequest::Query));
        let bind = [&[27][..], &string(b"session-bind@openssh.com"), b"contents"].concat();
        assert_eq!(AgentRequest::decode(&bind), Ok(AgentRequest::Other));
        assert_eq!(AgentRequest::decode(&[27]), Err(Malformed));
        let answer = AgentAnswer::Extensions.encode().unwrap();
        assert_eq!(answer, b"\0\0\0\x13\x1d\0\0\0\x05query\0\0\0\x05query");
    }

    /// To add an identity (17), with constraints (25), from a token (20, 26), to remove one (18), all (19), or a
    /// token's (21), to lock (22) and unlock (23), and what version 1 of SSH had.
    #[test]
    fn changes_are_requests_that_are_refused() {
        for number in [1, 3, 7, 8, 9, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 0, 255] {
            let read = AgentRequest::decode(&[&[number][..], b"whatever"].concat());
            assert_eq!(read, Ok(AgentRequest::Other), "{number}");
        }
        assert_eq!(AgentAnswer::Failure.encode().unwrap(), [0, 0, 0, 1, 5]);
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(message_bytes([0; 4]), Err(Malformed));
        assert_eq!(message_bytes([0, 0, 0, 1]), Ok(1));
        assert_eq!(message_bytes([0, 4, 0, 0]), Ok(MESSAGE_BYTES_MAX));
        assert_eq!(message_bytes([0, 4, 0, 1]), Err(Malformed));
        assert_eq!(message_bytes([0xff; 4]), Err(Malformed));
        assert_eq!(AgentRequest::decode(&[11; MESSAGE_BYTES_MAX + 1]), Err(Malformed));
        let long = AgentAnswer::Signature(vec![0; MESSAGE_BYTES_MAX]);
        assert_eq!(long.encode(), Err(Malformed));
    }

    #[test]
    fn as_many_keys_are_listed_as_go_into_an_answer() {
        let key = |name: &str| AgentKey::new(name, &[Algorithm::Ed25519], &ed25519()).unwrap();
        let count = |answer: &[u8]| u32::from_be_bytes(answer[5..9].try_into().unwrap());
        let short = AgentAnswer::Keys(vec![key("k"); KEYS_MAX + 1]).encode().unwrap();
        assert_eq!(count(&short), KEYS_MAX as u32);
        let long = AgentAnswer::Keys(vec![key(&"k".repeat(1024)); KEYS_MAX]).encode().unwrap();
        assert_eq!(count(&long), ((MESSAGE_BYTES_MAX - 5) / (51 + 4 + 1024 + 4)) as u32);
        assert!(long.len() <= 4 + MESSAGE_BYTES_MAX);
        assert_eq!(AgentAnswer::Keys(vec![]).encode().unwrap(), b"\0\0\0\x05\x0c\0\0\0\0");
    }

    fn ed25519() -> Vec<u8> {
        keyway_wire::subject_public_key_info(Algorithm::Ed25519, &[7; 32]).unwrap()
    }
}
