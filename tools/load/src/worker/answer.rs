//! Answers: which virtual user one is for, and whether it is what was expected.

use super::Worker;
use super::state::SETUP_ID;
use crate::scenario::Operation;
use crate::tally::Fault;
use crate::text::Drawn;
use keyway_codec::ber::{self, Reader, SEQUENCE};
use keyway_codec::message::tag;
use keyway_codec::{DecodeError, Message, Op};

impl Worker<'_> {
    /// Handles one whole message.
    pub(super) fn message(&mut self, index: usize, bytes: &[u8], now: u64) {
        if let Err(why) = self.read_message(index, bytes, now) {
            self.fail(index, Fault::Malformed, &why.to_string(), now);
        }
    }

    fn read_message(&mut self, index: usize, bytes: &[u8], now: u64) -> Result<(), DecodeError> {
        let mut body = Reader::new(bytes).nested(SEQUENCE)?;
        let id = body.natural(ber::INTEGER)?;
        let (tag, contents) = body.element()?;
        let connection = &mut self.connections[index];
        (connection.is_answered, connection.pause_ns) = (true, 0);
        match id {
            // Unsolicited: that the connection is about to be closed, which will be seen.
            0 => return Ok(()),
            SETUP_ID => {
                let code = Reader::new(contents).natural(ber::ENUMERATED)?;
                self.setup_answer(index, code, now);
                return Ok(());
            }
            _ => {}
        }
        let virtual_users = &self.connections[index].virtual_users;
        // `VirtualUser::next_id` makes ids whose remainder is the user's slot.
        let user = virtual_users.start + id as usize % virtual_users.len().max(1);
        if !self.virtual_users[user].is_sent_on(index) || self.virtual_users[user].message_id != id
        {
            self.tally.connections.late_answers += u64::from(tag != tag::SEARCH_RESULT_ENTRY);
            return Ok(());
        }
        let Some(operation) = self.operation(user) else { return Ok(()) };
        match tag {
            tag::SEARCH_RESULT_ENTRY => {
                self.tally.connections.entries += 1;
                self.virtual_users[user].entries += 1;
                let is_first = self.virtual_users[user].entries == 1;
                if !operation.values.is_empty() || is_first && !operation.takes.is_empty() {
                    self.entry(user, operation, bytes)?;
                }
            }
            tag::SEARCH_RESULT_REFERENCE | tag::INTERMEDIATE_RESPONSE => {}
            _ if tag == operation.answer => {
                let code = Reader::new(contents).natural(ber::ENUMERATED)?;
                self.complete(user, operation, code, now);
            }
            _ => self.fail(index, Fault::Malformed, "the answer to another operation", now),
        }
        Ok(())
    }

    /// Looks into an entry: at the values that are expected, and those that later steps need.
    fn entry(
        &mut self,
        user: usize,
        operation: &Operation,
        bytes: &[u8],
    ) -> Result<(), DecodeError> {
        let message = Message::decode(bytes)?;
        let Op::SearchResultEntry(entry) = message.op else { return Ok(()) };
        let values = |wanted: &str| {
            let mut attributes = entry.attributes.iter();
            attributes
                .find(|attribute| attribute.description.eq_ignore_ascii_case(wanted))
                .map_or(&[][..], |attribute| &attribute.values)
        };
        let state = &mut self.virtual_users[user];
        if state.entries == 1 {
            for take in &operation.takes {
                let taken = match &take.attribute {
                    None => entry.dn.as_bytes(),
                    Some(attribute) => values(attribute).first().map_or(&[][..], AsRef::as_ref),
                };
                let slot = &mut state.taken[take.slot];
                slot.clear();
                slot.extend_from_slice(taken);
            }
        }
        let mut drawn = Drawn {
            sources: &self.scenario.sources,
            indices: &state.drawn,
            taken: &state.taken,
            random: &mut state.random,
            makers: &mut self.makers,
        };
        for (number, (attribute, pieces)) in operation.values.iter().enumerate() {
            self.scratch.clear();
            drawn.write(pieces, &mut self.scratch);
            if values(attribute).iter().any(|value| value.as_ref() == self.scratch.as_slice()) {
                state.values_seen |= 1 << number.min(63);
            }
        }
        Ok(())
    }
}

/// The fault of an answer that has come to its end.
pub(super) fn fault(
    operation: &Operation,
    code: u32,
    entries: u32,
    values_seen: u64,
) -> Option<Fault> {
    if !operation.codes.contains(&code) {
        return Some(Fault::Code(code));
    }
    if let Some((low, high)) = operation.entries
        && !(low..=high).contains(&entries)
    {
        return Some(if entries == 0 { Fault::Empty } else { Fault::WrongEntries });
    }
    let wanted = (0..operation.values.len()).all(|number| values_seen & 1 << number.min(63) != 0);
    match (wanted, entries) {
        (true, _) => None,
        (false, 0) => Some(Fault::Empty),
        (false, _) => Some(Fault::WrongValue),
    }
}
