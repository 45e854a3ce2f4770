//! Entries that are too large to be held while their client reads: they are sent in pieces.
//!
//! A message says how long it is before it begins, so the lengths of all values are added up first; then
//! what lies around them is kept, and the values are read again as there is room for them. Both are done
//! in one state of the store, which is held until the entry is sent. Searches that begin with an entry in
//! the same state share it; there are few of them at a time, and none for long, because the store cannot use
//! again what a state needs. Between two pieces nothing else may be written to the connection.

use super::write::Sink;
use crate::failure::{Failure, Result};
use crate::limits::{ENTRY_SEND_BYTES_S_MIN, ENTRY_SEND_MAX, PIECE_VALUE_BYTES_MIN};
use keyway_codec::message::{
    Control, ResultCode, attribute_bytes, begin_attribute, begin_entry, begin_value, value_bytes,
};
use keyway_lock::Unpoisoned;
use keyway_store::{EntryId, Large, Read, ValueKey, View};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A part of an entry's message.
enum Piece {
    Octets(Vec<u8>),
    /// The contents of a value that the entry's record has, of which so many bytes are sent.
    Value {
        name: String,
        index: usize,
        sent: usize,
    },
    /// The values of a large attribute that are left, which are those behind a key.
    Large {
        slot: u32,
        left: u64,
        after: Option<ValueKey>,
    },
}

/// An attribute whose length is known.
struct Attribute {
    description: String,
    /// Length of all values as they are sent, and how many the record has.
    values_bytes: usize,
    stored: usize,
    pieces: VecDeque<Piece>,
}

/// The attributes of an entry, as pieces.
#[derive(Default)]
pub(super) struct Pieces {
    attributes: Vec<Attribute>,
}

/// The octets at the end of some pieces.
fn octets(pieces: &mut VecDeque<Piece>) -> &mut Vec<u8> {
    if !matches!(pieces.back(), Some(Piece::Octets(_))) {
        pieces.push_back(Piece::Octets(Vec::new()));
    }
    match pieces.back_mut() {
        Some(Piece::Octets(octets)) => octets,
        _ => unreachable!("it was put there"),
    }
}

impl Sink for Pieces {
    fn attribute(&mut self, description: &str) {
        let (description, pieces) = (description.to_owned(), VecDeque::new());
        self.attributes.push(Attribute { description, values_bytes: 0, stored: 0, pieces });
    }

    fn value(&mut self, value: &[u8]) {
        let Some(attribute) = self.attributes.last_mut() else { return };
        attribute.values_bytes += value_bytes(value.len());
        let octets = octets(&mut attribute.pieces);
        begin_value(octets, value.len());
        octets.extend_from_slice(value);
    }

    fn stored_value(&mut self, value: &[u8]) {
        if value.len() < PIECE_VALUE_BYTES_MIN {
            self.value(value);
        } else if let Some(attribute) = self.attributes.last_mut() {
            attribute.values_bytes += value_bytes(value.len());
            begin_value(octets(&mut attribute.pieces), value.len());
            let (name, index) = (attribute.description.clone(), attribute.stored);
            attribute.pieces.push_back(Piece::Value { name, index, sent: 0 });
        }
        if let Some(attribute) = self.attributes.last_mut() {
            attribute.stored += 1;
        }
    }

    fn large(&mut self, large: &Large<'_>) -> Option<&mut usize> {
        let attribute = self.attributes.last_mut()?;
        let (slot, left) = (large.slot, large.count);
        attribute.pieces.push_back(Piece::Large { slot, left, after: None });
        Some(&mut attribute.values_bytes)
    }
}

impl Pieces {
    /// All of the message, and how long it is but for what precedes its attributes.
    pub fn message(self, id: u32, dn: &str, controls: &[Control<'_>]) -> Message {
        let bytes = |one: &Attribute| attribute_bytes(&one.description, one.values_bytes);
        let total = self.attributes.iter().map(bytes).sum();
        let mut pieces = VecDeque::new();
        let rest = begin_entry(octets(&mut pieces), id, dn, total, controls);
        for one in self.attributes {
            begin_attribute(octets(&mut pieces), &one.description, one.values_bytes);
            pieces.extend(one.pieces);
        }
        octets(&mut pieces).extend_from_slice(&rest);
        Message { pieces, bytes: total }
    }
}

/// An entry's message that is still to be sent.
pub(super) struct Message {
    pieces: VecDeque<Piece>,
    bytes: usize,
}

impl Message {
    /// All of it, if nothing is left to be read: what is large of the entry was not asked for.
    pub fn whole(&self) -> Option<&[u8]> {
        match self.pieces.front() {
            Some(Piece::Octets(octets)) if self.pieces.len() == 1 => Some(octets),
            _ => None,
        }
    }
}

/// A large entry on its way.
pub(super) struct Sending {
    read: Arc<Mutex<Read>>,
    id: EntryId,
    pieces: VecDeque<Piece>,
    /// When a client that has not read it is given up.
    until: Instant,
}

impl Sending {
    pub fn new(read: Arc<Mutex<Read>>, id: EntryId, message: Message, now: Instant) -> Self {
        let seconds = message.bytes as u64 / ENTRY_SEND_BYTES_S_MIN;
        let until = now + ENTRY_SEND_MAX + Duration::from_secs(seconds);
        Sending { read, id, pieces: message.pieces, until }
    }

    /// Appends pieces until the output is so long, and says whether that was all. After an error the
    /// message stays unfinished.
    ///
    /// # Errors
    /// The store's, or `busy` if it took too long.
    pub fn step(&mut self, out: &mut Vec<u8>, end: usize, now: Instant) -> Result<bool> {
        if now >= self.until {
            let text = "the client takes too long to read an entry";
            return Err(Failure::new(ResultCode::Busy, text));
        }
        let read = self.read.lock().unpoisoned();
        while let Some(piece) = self.pieces.front_mut() {
            if out.len() >= end || !piece.put(read.view(), self.id, out, end)? {
                return Ok(false);
            }
            self.pieces.pop_front();
        }
        Ok(true)
    }
}

impl Piece {
    /// Appends it as far as there is room; whether that was all.
    fn put(&mut self, view: View<'_>, id: EntryId, out: &mut Vec<u8>, end: usize) -> Result<bool> {
        match self {
            Piece::Octets(octets) => {
                out.extend_from_slice(octets);
                Ok(true)
            }
            Piece::Value { name, index, sent } => {
                let entry = view.entry(id)?;
                let value = entry.and_then(|entry| entry.values(name).nth(*index));
                let rest = value.and_then(|value| value.get(*sent..)).ok_or_else(gone)?;
                let now = rest.get(..end.saturating_sub(out.len())).unwrap_or(rest);
                out.extend_from_slice(now);
                *sent += now.len();
                Ok(now.len() == rest.len())
            }
            Piece::Large { slot, left, after } => {
                let large = Large { name: "", slot: *slot, count: *left, bytes: 0 };
                let values = match *after {
                    None => view.large_values(id, &large)?,
                    Some(after) => view.large_values_after(id, &large, after)?,
                };
                for value in values {
                    let (key, value) = value?;
                    begin_value(out, value.len());
                    out.extend_from_slice(value);
                    (*left, *after) = (left.saturating_sub(1), Some(key));
                    if *left > 0 && out.len() >= end {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

fn gone() -> Failure {
    Failure::new(ResultCode::Other, "a value is gone from a state of the store")
}
