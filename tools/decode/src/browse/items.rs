//! The items that were seen, as much of them as is kept: the oldest goes when there is too much, and
//! that is counted.

use crate::limits::{BROWSER_BYTES_MAX, BROWSER_ITEMS_MAX, BROWSER_REMARKS_MAX};
use crate::view::{Line, View};
use crate::{Kept, Note, Operation};
use keyway_lock::Unpoisoned;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// An operation, or something else that happened.
#[derive(Debug)]
pub enum ItemBody {
    /// An operation.
    Operation(Box<Kept>),
    /// As a line.
    Note(String),
}

/// One of them, with what lists are sorted by.
#[derive(Debug)]
pub struct BrowsedItem {
    /// Counted from 0, and never again the same.
    pub number: u64,
    /// The event itself.
    pub body: ItemBody,
    /// Whether the user has marked it.
    pub is_marked: bool,
    /// When it was, in nanoseconds since 1970.
    pub time_ns: u64,
    /// How long an operation took, in nanoseconds.
    pub latency_ns: Option<u64>,
    /// Its result code.
    pub code: Option<u32>,
    /// How many entries it found.
    pub entries: u64,
    /// How many bytes its answers have.
    pub received: u64,
    bytes: usize,
}

impl BrowsedItem {
    /// The item as a line.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.body {
            ItemBody::Note(line) => line.clone(),
            ItemBody::Operation(kept) => {
                let mut line = Vec::new();
                Line.operation(&kept.operation(), &mut line);
                String::from_utf8_lossy(&line).trim_end().to_owned()
            }
        }
    }
}

/// All that is kept.
#[derive(Debug, Default)]
pub struct BrowsedItems {
    items: VecDeque<BrowsedItem>,
    next: u64,
    bytes: usize,
    /// How many went because there was no room.
    pub dropped: u64,
    /// How many of them were marked.
    pub dropped_marked: u64,
    /// The remarks for standard error, the newest last.
    pub remarks: VecDeque<String>,
    /// Nothing more comes.
    pub is_complete: bool,
}

impl BrowsedItems {
    fn add(&mut self, body: ItemBody, fill: impl FnOnce(&mut BrowsedItem)) {
        let bytes = size_of::<BrowsedItem>()
            + match &body {
                ItemBody::Operation(kept) => kept.bytes(),
                ItemBody::Note(line) => line.len(),
            };
        let mut item = BrowsedItem {
            number: self.next,
            body,
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
        while self.bytes > BROWSER_BYTES_MAX || self.items.len() > BROWSER_ITEMS_MAX {
            let Some(oldest) = self.items.pop_front() else { return };
            self.bytes -= oldest.bytes;
            self.dropped += 1;
            self.dropped_marked += u64::from(oldest.is_marked);
        }
    }

    /// Adds what is to be said beside.
    pub fn remark(&mut self, text: String) {
        if self.remarks.len() == BROWSER_REMARKS_MAX {
            self.remarks.pop_front();
        }
        self.remarks.push_back(text);
    }

    /// The number of the first that is there; that of the next to come if none is.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.items.front().map_or(self.next, |item| item.number)
    }

    /// The number of the next to come.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// One by its number, if it is kept.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&BrowsedItem> {
        self.items.get(self.index(number)?)
    }

    /// One by its number, if it is kept.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut BrowsedItem> {
        let index = self.index(number)?;
        self.items.get_mut(index)
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first())?).ok()
    }

    /// Those from this number on.
    pub fn since(&self, number: u64) -> impl Iterator<Item = &BrowsedItem> {
        let skipped = self.index(number).unwrap_or(0);
        self.items.iter().skip(skipped)
    }

    /// Takes the marks off all of them.
    pub fn unmark_all(&mut self) {
        self.items.iter_mut().for_each(|item| item.is_marked = false);
    }
}

/// Items that one thread adds and another shows.
#[derive(Clone, Debug, Default)]
pub struct SharedItems(Arc<Mutex<BrowsedItems>>);

impl SharedItems {
    /// The items, which are locked until this is dropped.
    pub fn lock(&self) -> MutexGuard<'_, BrowsedItems> {
        self.0.lock().unpoisoned()
    }
}

impl View for SharedItems {
    fn operation(&mut self, operation: &Operation<'_>, _: &mut Vec<u8>) {
        // Made before the items are locked: the screen waits for a short time only.
        let body = ItemBody::Operation(Box::new(Kept::new(operation)));
        self.lock().add(body, |item| {
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
        self.lock().add(ItemBody::Note(line), |item| item.time_ns = note.time_ns);
    }

    fn end(&mut self, _: &mut Vec<u8>) {
        self.lock().is_complete = true;
    }
}
