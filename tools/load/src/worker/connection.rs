//! One connection, from the first packet to the unbind. `opening` has its beginning; here is what its
//! virtual users send and what comes back.

use super::Worker;
use super::state::{SETUP_ID, State};
use super::stream::Got;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::tally::Fault;
use crate::trust::{is_of_tls, tls_words};
use keyway_codec::message::Message;
use keyway_codec::{Op, ber};

/// WorkerMessage of a server that answers LDAP with TLS.
const SPEAKS_TLS: &str = "the server speaks TLS on this port; write ldaps://";

impl Worker<'_> {
    /// Something happened to a socket.
    pub(super) fn happened(&mut self, token: u64, has_ended: bool, now: u64) {
        let (generation, index) = ((token >> 32) as u32, token as u32 as usize);
        let current = self.connections.get(index).filter(|c| c.generation == generation);
        if current.is_none_or(|connection| connection.state == State::Closed) {
            return;
        }
        if self.connections[index].state == State::Connecting && !self.connected(index, now) {
            return;
        }
        self.flush(index, now);
        self.receive(index, has_ended);
    }

    /// Notes that there is something to be sent before the next wait.
    pub(super) fn dirty(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !std::mem::replace(&mut connection.is_dirty, true) {
            self.dirty.push(index);
        }
    }

    /// Sends what there is to be sent, of all connections.
    pub(super) fn flush_all(&mut self, now: u64) {
        while let Some(index) = self.dirty.pop() {
            self.flush(index, now);
        }
    }

    fn flush(&mut self, index: usize, now: u64) {
        let connection = &mut self.connections[index];
        connection.is_dirty = false;
        let Some(stream) = &mut connection.stream else { return };
        let before = connection.out.len() - connection.sent;
        let sent = stream.send(&mut connection.out, &mut connection.sent);
        let left = connection.out.len() - connection.sent;
        self.tally.connections.bytes_out += (before - left) as u64;
        if let Err(why) = sent {
            self.lost(index, &why.to_string(), now);
        }
    }

    /// Reads and handles what has come.
    fn receive(&mut self, index: usize, has_ended: bool) {
        let mut input = std::mem::take(&mut self.input);
        let mut raw = std::mem::take(&mut self.raw);
        loop {
            let connection = &mut self.connections[index];
            let Some(stream) = &mut connection.stream else { break };
            let mut held = connection.partial.len();
            if input.len() < held {
                input.resize(held, 0);
            }
            input[..held].copy_from_slice(&connection.partial);
            connection.partial.clear();
            let before = held;
            let got = stream.receive(&mut input, &mut held, &mut raw);
            let generation = connection.generation;
            self.tally.connections.bytes_in += (held - before) as u64;
            // Only now is known when it came.
            let now = self.now();
            self.shaken_hands(index, now);
            let used = self.messages(index, generation, &input[..held], now);
            let connection = &mut self.connections[index];
            if connection.generation != generation || connection.stream.is_none() {
                break;
            }
            connection.partial.extend_from_slice(&input[used..held]);
            match got {
                Ok(Got::More) => {}
                Ok(Got::All) if has_ended => {}
                Ok(Got::All) => break,
                Ok(Got::End) => {
                    let why = connection.closed_words();
                    self.lost(index, &why, now);
                    break;
                }
                Err(why) => {
                    let why = match connection.state {
                        State::Handshaking => {
                            tls_words(&why, &self.shared.servers[connection.server].host)
                        }
                        _ => why.to_string(),
                    };
                    self.lost(index, &why, now);
                    break;
                }
            }
            if matches!(got, Ok(Got::All)) && has_ended && held == before {
                break;
            }
        }
        // A large answer does not keep its room for ever.
        input.truncate(4 * crate::limits::READ_BYTES);
        (self.input, self.raw) = (input, raw);
    }

    /// Handles the messages that are whole; returns how many bytes they had.
    fn messages(&mut self, index: usize, generation: u32, bytes: &[u8], now: u64) -> usize {
        let mut used = 0;
        while let Some(rest) = bytes.get(used..).filter(|rest| !rest.is_empty()) {
            match ber::frame(rest, MESSAGE_BYTES_MAX) {
                Ok(Some(length)) => {
                    used += length;
                    self.message(index, rest.get(..length).unwrap_or_default(), now);
                }
                Ok(None) => break,
                Err(_) if is_of_tls(rest) => {
                    self.fail(index, Fault::Malformed, SPEAKS_TLS, now);
                    break;
                }
                Err(why) => {
                    self.fail(index, Fault::Malformed, &why.to_string(), now);
                    break;
                }
            }
            let connection = &self.connections[index];
            // Data in front of TLS is not part of it (RFC 4511 § 4.14.2).
            if connection.generation != generation || connection.state == State::Closed {
                break;
            }
        }
        used
    }

    /// The connection broke.
    pub(super) fn lost(&mut self, index: usize, why: &str, now: u64) {
        let connection = &self.connections[index];
        let is_idle = connection.state == State::Ready && connection.in_flight == 0;
        let fault = match connection.state {
            State::Connecting => Fault::Refused,
            State::StartTls | State::Handshaking => Fault::TlsFailed,
            _ => Fault::Disconnected,
        };
        if connection.state == State::Ready {
            self.tally.connections.lost += 1;
        }
        if is_idle {
            // It is opened again when it is needed.
            let connection = &mut self.connections[index];
            if !connection.is_answered {
                connection.pause(now);
            }
            return connection.close();
        }
        self.fail(index, fault, why, now);
    }

    /// Closes a connection that is of no use; requests under way on it have failed.
    pub(super) fn fail(&mut self, index: usize, fault: Fault, why: &str, now: u64) {
        let connection = &mut self.connections[index];
        if connection.state == State::Closed {
            return;
        }
        if connection.state != State::Ready {
            self.tally.connections.not_opened += 1;
        }
        if connection.state != State::Ready || !connection.is_answered {
            connection.pause(now);
        }
        if let Some(stream) = &mut connection.stream {
            // An alert of TLS, if there is one to be sent.
            stream.say_goodbye();
        }
        connection.close();
        self.last_error = Some((fault, why.to_owned()));
        let waiting = std::mem::take(&mut connection.waiting);
        let virtual_users = connection.virtual_users.clone();
        for user in virtual_users {
            if self.virtual_users[user].is_sent_on(index) {
                self.virtual_users[user].message_id = 0;
                self.failed(user, fault, now);
            }
        }
        for user in waiting {
            self.failed(user, fault, now);
        }
    }

    /// Ends a connection as one should: with an unbind.
    pub(super) fn retire(&mut self, index: usize, now: u64) {
        if self.connections[index].state == State::Ready {
            let id = SETUP_ID - 1;
            Message::new(id, Op::UnbindRequest).encode(&mut self.connections[index].out);
            self.flush(index, now);
        }
        let connection = &mut self.connections[index];
        if let Some(stream) = &mut connection.stream {
            stream.say_goodbye();
        }
        connection.close();
    }
}
