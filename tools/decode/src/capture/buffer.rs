//! Bytes read ahead, and no more asked for than are needed.

use crate::error::Error;
use std::io::{self, Cursor, Read};

/// How much is asked of the input at a time.
const READ_BYTES: usize = 1 << 18;

pub(super) struct Buffer<R> {
    input: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes were consumed in all.
    offset: u64,
}

impl<R: Read> Buffer<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, bytes: vec![0; READ_BYTES], start: 0, end: 0, offset: 0 }
    }

    /// Data that was read and not consumed.
    pub(super) fn data(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The first `count` bytes of [`Buffer::data`], which are then consumed.
    pub(super) fn take(&mut self, count: usize) -> &[u8] {
        let taken = count.min(self.end - self.start);
        let from = self.start;
        self.start += taken;
        self.offset += taken as u64;
        self.bytes.get(from..self.start).unwrap_or_default()
    }

    /// Reads until there are `count` bytes. `false` if the input ends before that.
    pub(super) fn fill(&mut self, count: usize) -> Result<bool, Error> {
        while self.end - self.start < count {
            self.make_room(count);
            let space = self.bytes.get_mut(self.end..).unwrap_or_default();
            match self.input.read(space) {
                Ok(0) => return Ok(false),
                Ok(read) => self.end += read,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(Error::Read(why)),
            }
        }
        Ok(true)
    }

    fn make_room(&mut self, count: usize) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + count > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if count > self.bytes.len() {
            self.bytes.resize(count, 0);
        }
    }

    /// The input again, with what was read of it in front.
    pub(super) fn into_read(mut self) -> io::Chain<Cursor<Vec<u8>>, R> {
        self.bytes.truncate(self.end);
        self.bytes.drain(..self.start);
        Cursor::new(self.bytes).chain(self.input)
    }
}
