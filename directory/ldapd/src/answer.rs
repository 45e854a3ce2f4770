//! The outgoing side: answers, the Notice of Disconnection, and the buffer that holds them.

use crate::limits::KEPT_BUFFER_BYTES_MAX;
use keyway_codec::extended::NOTICE_OF_DISCONNECTION;
use keyway_codec::message::{Control, ExtendedResponse, LdapResult, Message, Op, ResultCode};

/// Answers that were made and not sent yet.
#[derive(Default)]
pub(crate) struct Outbox {
    pub bytes: Vec<u8>,
    sent: usize,
}

impl Outbox {
    /// The bytes that are still to be sent.
    pub fn unsent(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Notes that so many bytes went out.
    pub fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BUFFER_BYTES_MAX);
        } else if self.sent > self.bytes.len() / 2 {
            // Moves fewer bytes than were sent since it last moved any.
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Appends an answer.
    pub fn answer(&mut self, id: u32, op: Op<'_>, controls: Vec<Control<'_>>) {
        Message { id, op, controls }.encode(&mut self.bytes);
    }

    /// Appends the notice that the session ends, and why (RFC 4511 § 4.4.1).
    pub fn notice(&mut self, code: ResultCode, why: &str) {
        let response = ExtendedResponse {
            result: LdapResult::new(code, why),
            oid: Some(NOTICE_OF_DISCONNECTION.into()),
            value: None,
        };
        self.answer(0, Op::ExtendedResponse(response), Vec::new());
    }
}
