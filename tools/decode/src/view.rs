//! How operations are told: a line each, in full, as JSON, and which of them.

mod clock;
mod full;
mod json;
mod line;
mod text;

use crate::error::Error;
use crate::operation::{Event, Note, Operation, Sink};
use crate::query::Query;
use std::io::Write;

pub use clock::{Calendar, clock};
pub use text::{plain, value};

/// One of the ways to tell of an operation.
pub trait View {
    /// Appends an operation to `out`.
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>);
    /// Appends what else happened.
    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>);
    /// Appends what stands at the end.
    fn end(&mut self, _out: &mut Vec<u8>) {}
}

/// A line for each operation.
#[derive(Debug, Default)]
pub struct Line;

/// All that is in an operation.
#[derive(Debug, Default)]
pub struct Full;

/// An object of JSON on a line for each operation.
#[derive(Debug, Default)]
pub struct Json;

/// The bytes that are gathered before they are written.
const OUTPUT_BYTES: usize = 1 << 16;

/// Writes what a view says of the operations that a query means.
#[derive(Debug)]
pub struct Printer<V, W: Write> {
    view: V,
    query: Option<Query>,
    buffer: Vec<u8>,
    output: W,
    /// How many operations there were, and how many were meant.
    pub seen: u64,
    /// How many of them were told.
    pub told: u64,
}

impl<V: View, W: Write> Printer<V, W> {
    /// One that writes to `output`.
    pub fn new(view: V, query: Option<Query>, output: W) -> Self {
        Printer { view, query, buffer: Vec::new(), output, seen: 0, told: 0 }
    }

    /// Writes what is left, and what stands at the end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(&mut self) -> Result<(), Error> {
        self.view.end(&mut self.buffer);
        self.flush()
    }

    /// The view.
    pub fn view(&self) -> &V {
        &self.view
    }

    /// The view.
    pub fn into_view(self) -> V {
        self.view
    }

    /// The output.
    pub fn into_output(self) -> W {
        self.output
    }

    fn write(&mut self) -> Result<(), Error> {
        let written = self.output.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(Error::Write)
    }
}

impl<V: View, W: Write> Sink for Printer<V, W> {
    fn operation(&mut self, operation: &Operation<'_>) -> Result<(), Error> {
        self.seen += 1;
        if self.query.as_ref().is_some_and(|query| !query.matches(operation)) {
            return Ok(());
        }
        self.told += 1;
        self.view.operation(operation, &mut self.buffer);
        if self.buffer.len() >= OUTPUT_BYTES { self.write() } else { Ok(()) }
    }

    fn note(&mut self, note: &Note<'_>) -> Result<(), Error> {
        // A query for some operations does not ask for the end of every connection.
        if self.query.is_some() && matches!(note.what, Event::Closed { .. }) {
            return Ok(());
        }
        self.view.note(note, &mut self.buffer);
        if self.buffer.len() >= OUTPUT_BYTES { self.write() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if !self.buffer.is_empty() {
            self.write()?;
        }
        self.output.flush().map_err(Error::Write)
    }
}

impl<V: View + ?Sized> View for Box<V> {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        (**self).operation(operation, out);
    }

    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>) {
        (**self).note(note, out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        (**self).end(out);
    }
}
