//! Messages in a stream of octets that may have holes.
//!
//! In step, the length of each message says where the next begins; no octet is copied unless a
//! message comes in pieces. A hole that lies within a message does not matter to the next. Any
//! other hole, and anything that is no message, loses the step: then octets are passed over until
//! something follows that can only be a message ([`looks_like_a_message`]).

use crate::limits::{HEAD_BYTES_MAX, MESSAGE_BYTES_MAX, PLAUSIBLE_BYTES_MAX};
use keyway_codec::Message;
use keyway_codec::ber;
use keyway_codec::message::tag;

/// A part of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A whole message.
    Message(&'a [u8]),
    /// The beginning of a message whose rest is missing or too long; its length with that.
    Head {
        /// The part that was seen.
        head: &'a [u8],
        /// How long the whole is, in octets.
        total: u64,
    },
    /// The step was lost here, for this reason.
    Lost(&'static str),
    /// In step again, after so many octets that were passed over.
    Found(u64),
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// At the start of a message, or within one that is gathered in the buffer.
    #[default]
    InStep,
    /// Within a message whose head is in the buffer: so many octets of it are still to come.
    Skipping { left: u64, total: u64 },
    /// Looking for one; so many octets were passed over. The buffer has those that may begin one.
    Looking { passed: u64 },
}

/// Cuts one direction of a connection into messages.
#[derive(Debug, Default)]
pub struct Framer {
    state: State,
    buffer: Vec<u8>,
    /// The content of the buffer was given out.
    is_spent: bool,
    /// The step was lost, and this was not reported yet.
    lost: Option<&'static str>,
}

/// The bytes of a message's header at most, up to its operation.
const HEADER_BYTES: usize = 20;

impl Framer {
    /// One for a stream whose beginning is not known.
    #[must_use]
    pub fn midway() -> Self {
        Framer { state: State::Looking { passed: 0 }, ..Framer::default() }
    }

    /// How many bytes it holds back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Whether it is at the start of a message.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.state == State::InStep && (self.buffer.is_empty() || self.is_spent)
    }

    /// The next frame in `input`, from which what was used is taken off. `None` when all of it is.
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<Frame<'a>> {
        if self.is_spent {
            self.is_spent = false;
            self.buffer.clear();
            self.buffer.shrink_to(HEAD_BYTES_MAX);
        }
        loop {
            if let Some(why) = self.lost.take() {
                return Some(Frame::Lost(why));
            }
            match self.state {
                State::Skipping { left, total } => {
                    let skipped = left.min(input.len() as u64);
                    *input = input.get(usize::try_from(skipped).ok()?..)?;
                    let left = left - skipped;
                    self.state = State::Skipping { left, total };
                    if left > 0 {
                        return None;
                    }
                    return Some(self.head(total, State::InStep));
                }
                State::Looking { .. } => {
                    let found = self.look(input)?;
                    self.state = State::InStep;
                    // Nothing was lost where a stream that was joined midway begins with a message.
                    if found > 0 {
                        return Some(Frame::Found(found));
                    }
                }
                State::InStep if self.buffer.is_empty() => match self.whole(input) {
                    Ok(Some(length)) => {
                        let (message, rest) = input.split_at_checked(length)?;
                        *input = rest;
                        return Some(Frame::Message(message));
                    }
                    Ok(None) if input.is_empty() => return None,
                    Ok(None) => {
                        // Its header may be there in part only.
                        let (octet, rest) = input.split_at_checked(1)?;
                        self.buffer.extend_from_slice(octet);
                        *input = rest;
                    }
                    Err(why) => self.lose(why),
                },
                State::InStep => match self.gather(input)? {
                    Ok(()) => {
                        self.is_spent = true;
                        return Some(Frame::Message(&self.buffer));
                    }
                    Err(Gathering::TooLong { left, total }) => {
                        self.state = State::Skipping { left, total };
                    }
                    Err(Gathering::NoMessage(why)) => self.lose(why),
                },
            }
        }
    }

    /// So many octets are missing. Frames that end thereby come from [`Framer::next`].
    pub fn gap(&mut self, octets: u64) -> Option<Frame<'_>> {
        if self.is_spent {
            self.is_spent = false;
            self.buffer.clear();
        }
        match self.state {
            State::Looking { passed } => {
                self.state = State::Looking { passed: passed + self.buffer.len() as u64 + octets };
                self.buffer.clear();
                None
            }
            State::Skipping { left, total } if octets <= left => {
                self.state = State::Skipping { left: left - octets, total };
                None
            }
            State::Skipping { total, .. } => {
                Some(self.head(total, State::Looking { passed: octets }))
            }
            State::InStep => {
                let total = ber::announced(&self.buffer, usize::MAX).ok().flatten();
                let total = total.unwrap_or_default() as u64;
                let left = total.saturating_sub(self.buffer.len() as u64);
                if total > 0 && octets <= left {
                    self.state = State::Skipping { left: left - octets, total };
                    self.buffer.truncate(HEAD_BYTES_MAX);
                    return None;
                }
                let passed = octets;
                if total > 0 {
                    return Some(self.head(total, State::Looking { passed }));
                }
                self.state = State::Looking { passed: passed + self.buffer.len() as u64 };
                self.buffer.clear();
                None
            }
        }
    }

    /// Gives the head of a message out, after which the state is another.
    fn head(&mut self, total: u64, then: State) -> Frame<'_> {
        self.state = then;
        self.is_spent = true;
        Frame::Head { head: &self.buffer, total }
    }

    fn lose(&mut self, why: &'static str) {
        self.state = State::Looking { passed: 0 };
        self.lost = Some(why);
    }

    /// The length of the message that `input` begins with, if it is whole.
    fn whole(&self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        match ber::frame(input, MESSAGE_BYTES_MAX) {
            Ok(length) => Ok(length),
            // Gathered, it will be found to be too long, and be skipped.
            Err(keyway_codec::DecodeError::TooLong { .. }) => Ok(None),
            Err(_) => Err("the following octets are not an LDAP message"),
        }
    }

    /// Adds to the buffer what is missing of its message, and no more. `None` if input is.
    fn gather(&mut self, input: &mut &[u8]) -> Option<Result<(), Gathering>> {
        loop {
            let have = self.buffer.len();
            let wanted = match ber::announced(&self.buffer, usize::MAX) {
                Ok(Some(total)) if total <= have => return Some(Ok(())),
                Ok(Some(total)) if total <= MESSAGE_BYTES_MAX => total - have,
                Ok(Some(_)) if have < HEAD_BYTES_MAX => HEAD_BYTES_MAX - have,
                Ok(Some(total)) => {
                    let total = total as u64;
                    return Some(Err(Gathering::TooLong { left: total - have as u64, total }));
                }
                Ok(None) => 1,
                Err(_) => {
                    return Some(Err(Gathering::NoMessage(
                        "the following octets are not an LDAP message",
                    )));
                }
            };
            if input.is_empty() {
                return None;
            }
            let (octets, rest) = input.split_at_checked(wanted.min(input.len()))?;
            self.buffer.extend_from_slice(octets);
            *input = rest;
        }
    }

    /// Passes octets over until a message begins: how many since the step was lost. `None` if there
    /// is none in the input.
    fn look(&mut self, input: &mut &[u8]) -> Option<u64> {
        let State::Looking { passed } = &mut self.state else { return Some(0) };
        // The rest of the input before this one, with the first octets of this one.
        let kept = self.buffer.len();
        if kept > 0 {
            let more = input.get(..HEADER_BYTES.min(input.len())).unwrap_or_default();
            self.buffer.extend_from_slice(more);
            for at in 0..kept {
                let candidate = self.buffer.get(at..).unwrap_or_default();
                match looks_like_a_message(candidate, more.len() < HEADER_BYTES) {
                    Some(false) => {}
                    Some(true) => {
                        self.buffer.truncate(kept);
                        self.buffer.drain(..at);
                        return Some(*passed + at as u64);
                    }
                    None => {
                        // Not known before there is more.
                        self.buffer.drain(..at);
                        *passed += at as u64;
                        *input = &[];
                        return None;
                    }
                }
            }
            *passed += kept as u64;
            self.buffer.clear();
        }
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            let Some(step) = memchr::memchr(ber::SEQUENCE, rest) else {
                *passed += input.len() as u64;
                *input = &[];
                return None;
            };
            at += step;
            let candidate = input.get(at..).unwrap_or_default();
            match looks_like_a_message(candidate, true) {
                Some(true) => {
                    *input = candidate;
                    return Some(*passed + at as u64);
                }
                Some(false) => at += 1,
                None => {
                    *passed += at as u64;
                    self.buffer.extend_from_slice(candidate);
                    *input = &[];
                    return None;
                }
            }
        }
    }
}

enum Gathering {
    TooLong { left: u64, total: u64 },
    NoMessage(&'static str),
}

/// Whether octets begin a message, as far as its header tells: an envelope, an id, the tag of an
/// operation, and lengths that agree. A message that is there as a whole must also be one. `None`
/// if more octets are needed to tell.
#[must_use]
pub fn looks_like_a_message(octets: &[u8], may_be_short: bool) -> Option<bool> {
    let unknown = if may_be_short && octets.len() < HEADER_BYTES { None } else { Some(false) };
    let Some((total, header)) = element(octets, ber::SEQUENCE)? else { return Some(false) };
    if total > PLAUSIBLE_BYTES_MAX && total > octets.len() {
        return Some(false);
    }
    let Some(rest) = octets.get(header..).filter(|rest| !rest.is_empty()) else { return unknown };
    let Some(Some((id, _))) = element(rest, ber::INTEGER) else {
        return if rest.len() < 2 { unknown } else { Some(false) };
    };
    if id > 6 {
        return Some(false);
    }
    let Some(rest) = rest.get(id..).filter(|rest| rest.len() >= 2) else { return unknown };
    let Some(&operation) = rest.first() else { return unknown };
    if !is_operation(operation) {
        return Some(false);
    }
    let Some(Some((length, _))) = element(rest, operation) else { return unknown };
    // Only controls can follow the operation.
    let left = total.checked_sub(header + id + length);
    let fits = left.is_some_and(|left| left == 0 || left >= 4);
    Some(fits && octets.get(..total).is_none_or(|whole| Message::decode(whole).is_ok()))
}

/// Length of an element with its header, and of the header. `Some(None)` if it is none with this
/// tag, `None` if its header is not all there.
fn element(octets: &[u8], tag: u8) -> Option<Option<(usize, usize)>> {
    let (&found, &first) = (octets.first()?, octets.get(1)?);
    if found != tag {
        return Some(None);
    }
    if first < 0x80 {
        return Some(Some((2 + usize::from(first), 2)));
    }
    let count = usize::from(first & 0x7f);
    if !(1..=4).contains(&count) {
        return Some(None);
    }
    let length = octets.get(2..2 + count)?;
    let length = length.iter().fold(0_usize, |length, octet| length << 8 | usize::from(*octet));
    Some(Some((2 + count + length, 2 + count)))
}

/// Whether an identifier octet is that of a request.
#[must_use]
pub fn is_request(operation: u8) -> bool {
    matches!(
        operation,
        tag::BIND_REQUEST
            | tag::UNBIND_REQUEST
            | tag::SEARCH_REQUEST
            | tag::MODIFY_REQUEST
            | tag::ADD_REQUEST
            | tag::DELETE_REQUEST
            | tag::MODIFY_DN_REQUEST
            | tag::COMPARE_REQUEST
            | tag::ABANDON_REQUEST
            | tag::EXTENDED_REQUEST
    )
}

fn is_operation(operation: u8) -> bool {
    is_request(operation)
        || matches!(
            operation,
            tag::BIND_RESPONSE
                | tag::SEARCH_RESULT_ENTRY
                | tag::SEARCH_RESULT_DONE
                | tag::SEARCH_RESULT_REFERENCE
                | tag::MODIFY_RESPONSE
                | tag::ADD_RESPONSE
                | tag::DELETE_RESPONSE
                | tag::MODIFY_DN_RESPONSE
                | tag::COMPARE_RESPONSE
                | tag::EXTENDED_RESPONSE
                | tag::INTERMEDIATE_RESPONSE
        )
}

#[cfg(test)]
mod tests;
