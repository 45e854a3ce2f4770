//! Where StartTLS begins in a connection, without changing what is passed on.
//!
//! As much of each message is looked at as says what it is: its envelope, and of an extended request
//! its name.

use keyway_codec::ber;
use keyway_codec::extended::START_TLS;
use keyway_codec::message::{ResultCode, tag};
use keyway_codec::{Message, Op};

/// The longest message that can be one of StartTLS, in bytes.
const START_TLS_BYTES_MAX: usize = 4096;

/// Follows the messages of one side.
#[derive(Debug, Default)]
pub struct StartTlsWatch {
    /// The octets so far of a message that came in pieces.
    head: Vec<u8>,
    /// How much of a message that is of no interest is still to come.
    skip: usize,
    /// It is no LDAP, or not in step any more: nothing is looked at.
    is_lost: bool,
}

/// A message of StartTLS (RFC 4511, section 4.14).
#[derive(Debug, PartialEq, Eq)]
pub enum StartTlsMessage {
    /// A request for StartTLS, with its message id.
    Request(u32),
    /// The answer to a request with this id, and whether it was granted.
    Answer(u32, bool),
}

impl StartTlsWatch {
    /// Looks at octets until one of those messages ends: how many octets that took, and what it is.
    pub fn look(&mut self, octets: &[u8]) -> (usize, Option<StartTlsMessage>) {
        let mut at = 0;
        while at < octets.len() && !self.is_lost {
            let rest = octets.get(at..).unwrap_or_default();
            if self.skip > 0 {
                let skipped = self.skip.min(rest.len());
                (self.skip, at) = (self.skip - skipped, at + skipped);
                continue;
            }
            let wanted = match ber::announced(&self.head, usize::MAX) {
                Ok(Some(total)) if total > START_TLS_BYTES_MAX => {
                    self.skip = total - self.head.len();
                    self.head.clear();
                    continue;
                }
                Ok(Some(total)) => total - self.head.len(),
                Ok(None) => 1,
                Err(_) => {
                    self.is_lost = true;
                    break;
                }
            };
            let taken = wanted.min(rest.len());
            self.head.extend_from_slice(rest.get(..taken).unwrap_or_default());
            at += taken;
            if ber::frame(&self.head, START_TLS_BYTES_MAX).is_ok_and(|whole| whole.is_some()) {
                let seen = seen(&self.head);
                self.head.clear();
                if seen.is_some() {
                    return (at, seen);
                }
            }
        }
        (octets.len(), None)
    }
}

fn seen(message: &[u8]) -> Option<StartTlsMessage> {
    match Message::peek_tag(message)? {
        tag::EXTENDED_REQUEST => {}
        tag::EXTENDED_RESPONSE => {}
        _ => return None,
    }
    let message = Message::decode(message).ok()?;
    match message.op {
        Op::ExtendedRequest(request) if request.oid == START_TLS => {
            Some(StartTlsMessage::Request(message.id))
        }
        Op::ExtendedResponse(response) => {
            Some(StartTlsMessage::Answer(message.id, response.result.code == ResultCode::Success))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_codec::message::{ExtendedRequest, ExtendedResponse, LdapResult};

    fn encode(id: u32, op: Op<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        Message::new(id, op).encode(&mut out);
        out
    }

    #[test]
    fn it_is_found_in_pieces_of_any_size_and_nothing_after_it_is_touched() {
        let long = "x".repeat(5000);
        let request = ExtendedRequest { oid: START_TLS, value: None };
        let before = [encode(1, Op::DeleteRequest("cn=a")), encode(2, Op::DeleteRequest(&long))];
        let wanted = encode(3, Op::ExtendedRequest(request));
        let end = before.concat().len() + wanted.len();
        let stream = [before.concat(), wanted, b"\x16\x03\x01".to_vec()].concat();
        for size in 1..200 {
            let (mut watch, mut at) = (StartTlsWatch::default(), 0);
            let found = stream.chunks(size).find_map(|piece| {
                let (used, seen) = watch.look(piece);
                at += used;
                seen
            });
            assert_eq!(
                (found, at),
                (Some(StartTlsMessage::Request(3)), end),
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn an_answer_says_whether_it_was_granted() {
        let answer = |code| {
            let result = LdapResult::new(code, "");
            encode(3, Op::ExtendedResponse(ExtendedResponse { result, oid: None, value: None }))
        };
        let mut watch = StartTlsWatch::default();
        let seen = |watch: &mut StartTlsWatch, octets: &[u8]| watch.look(octets).1;
        let yes = answer(ResultCode::Success);
        assert_eq!(seen(&mut watch, &yes), Some(StartTlsMessage::Answer(3, true)));
        let no = answer(ResultCode::Unavailable);
        assert_eq!(seen(&mut watch, &no), Some(StartTlsMessage::Answer(3, false)));
        assert_eq!(seen(&mut watch, b"GET / HTTP/1.1"), None);
        assert_eq!(seen(&mut watch, &yes), None);
    }
}
