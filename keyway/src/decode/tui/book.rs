//! What was seen, as much as is kept: the oldest goes when there is too much, and that is counted.

use crate::limits::{TUI_BYTES_MAX, TUI_ITEMS_MAX, TUI_REMARKS_MAX};
use keyway_decode::view::{Line, View};
use keyway_decode::{Kept, Note, Operation};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An operation, or something else that happened.
pub enum What {
    Operation(Box<Kept>),
    /// As a line.
    Note(String),
}

/// One of them, with what lists are sorted by.
pub struct Item {
    /// Counted from 0, and never again the same.
    pub number: u64,
    pub what: What,
    pub is_marked: bool,
    pub time_ns: u64,
    pub latency_ns: Option<u64>,
    pub code: Option<u32>,
    pub entries: u64,
    pub received: u64,
    bytes: usize,
}

/// All that is kept.
#[derive(Default)]
pub struct Book {
    items: VecDeque<Item>,
    next: u64,
    bytes: usize,
    /// How many went because there was no room.
    pub dropped: u64,
    /// How many of them somebody had marked.
    pub dropped_marked: u64,
    /// What was to be said on standard error, the newest last.
    pub remarks: VecDeque<String>,
    /// Nothing more comes.
    pub is_complete: bool,
}

impl Book {
    fn add(&mut self, what: What, fill: impl FnOnce(&mut Item)) {
        let bytes = size_of::<Item>()
            + match &what {
                What::Operation(kept) => kept.bytes(),
                What::Note(line) => line.len(),
            };
        let mut item = Item {
            number: self.next,
            what,
            is_marked: false,
            time_ns: 0,
            latency_ns: None,
            code: None,
            entries: 0,
            received: 0,
            bytes,
        };
        fill(&mut item);
        self.next += 1;
        self.bytes += bytes;
        self.items.push_back(item);
        while self.bytes > TUI_BYTES_MAX || self.items.len() > TUI_ITEMS_MAX {
            let Some(oldest) = self.items.pop_front() else { return };
            self.bytes -= oldest.bytes;
            self.dropped += 1;
            self.dropped_marked += u64::from(oldest.is_marked);
        }
    }

    /// Adds what is to be said beside.
    pub fn remark(&mut self, text: String) {
        if self.remarks.len() == TUI_REMARKS_MAX {
            self.remarks.pop_front();
        }
        self.remarks.push_back(text);
    }

    /// The number of the first that is there; that of the next to come if none is.
    pub fn first(&self) -> u64 {
        self.items.front().map_or(self.next, |item| item.number)
    }

    /// The number of the next to come.
    pub fn next(&self) -> u64 {
        self.next
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn get(&self, number: u64) -> Option<&Item> {
        self.items.get(self.index(number)?)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Item> {
        let index = self.index(number)?;
        self.items.get_mut(index)
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first())?).ok()
    }

    /// Those from this number on.
    pub fn since(&self, number: u64) -> impl Iterator<Item = &Item> {
        let skipped = self.index(number).unwrap_or(0);
        self.items.iter().skip(skipped)
    }

    pub fn unmark_all(&mut self) {
        self.items.iter_mut().for_each(|item| item.is_marked = false);
    }
}

/// A book that one thread fills and another shows.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Book>>);

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View for Shared {
    fn operation(&mut self, operation: &Operation<'_>, _: &mut Vec<u8>) {
        // Made before the book is locked: whoever shows it waits for a short time only.
        let what = What::Operation(Box::new(Kept::new(operation)));
        self.lock().add(what, |item| {
            item.time_ns = operation.time_ns();
            item.latency_ns = operation.latency_ns();
            item.code = operation.code().map(|code| code.code());
            item.entries = operation.entries;
            item.received = operation.response_bytes;
        });
    }

    fn note(&mut self, note: &Note<'_>, _: &mut Vec<u8>) {
        let mut line = Vec::new();
        Line.note(note, &mut line);
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        self.lock().add(What::Note(line), |item| item.time_ns = note.time_ns);
    }

    fn end(&mut self, _: &mut Vec<u8>) {
        self.lock().is_complete = true;
    }
}
