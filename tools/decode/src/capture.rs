//! Files of packets: pcap, pcapng and snoop, also compressed by gzip, from anything that can be read.
//!
//! The formats are read as they come, so that `tcpdump -w - |` works: no more is asked of the
//! input than the next record has. A file that ends within a record is one whose writer was
//! stopped; that is said ([`Capture::is_cut_short`]) and is no error.

mod buffer;
mod classic;
mod item;
mod next_generation;
pub(crate) mod snoop;

use crate::error::Error;
use buffer::Buffer;
use flate2::read::MultiGzDecoder;
use item::Endian;
pub use item::{Item, Packet};
use std::io::Read;

/// The magic numbers a file may begin with, as they stand in the file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

enum Format {
    Classic(classic::Header),
    NextGeneration(next_generation::Section),
    Snoop(snoop::Header),
}

/// Reads packets, one after another.
pub struct Capture<'r> {
    input: Buffer<Box<dyn Read + Send + 'r>>,
    format: Format,
    cut_short: bool,
}

impl<'r> Capture<'r> {
    /// Looks at what the input begins with.
    ///
    /// # Errors
    /// If it is no capture, or cannot be read.
    pub fn open(input: impl Read + Send + 'r) -> Result<Self, Error> {
        let mut input: Buffer<Box<dyn Read + Send + 'r>> = Buffer::new(Box::new(input));
        input.fill(GZIP.len())?;
        if input.data().starts_with(&GZIP) {
            input = Buffer::new(Box::new(MultiGzDecoder::new(input.into_read())));
        }
        input.fill(snoop::MAGIC.len())?;
        if input.data().starts_with(&snoop::MAGIC) {
            let format = Format::Snoop(snoop::Header::read(&mut input)?);
            return Ok(Capture { input, format, cut_short: false });
        }
        let magic: [u8; 4] = match input.data().first_chunk() {
            Some(magic) => *magic,
            None if input.data().is_empty() => return Err(Error::Empty),
            None => return Err(Error::NotACapture { magic: input.data().to_vec() }),
        };
        let format = if magic == SECTION {
            Format::NextGeneration(next_generation::Section::default())
        } else {
            Format::Classic(classic::Header::read(&mut input, magic)?)
        };
        Ok(Capture { input, format, cut_short: false })
    }

    /// The next packet or key log; `None` at the end.
    ///
    /// # Errors
    /// If the input cannot be read, or what comes cannot be what it says. Nothing more comes then.
    pub fn read(&mut self) -> Result<Option<Item<'_>>, Error> {
        let Self { input, format, cut_short } = self;
        match format {
            Format::Classic(header) => header.next(input, cut_short),
            Format::NextGeneration(section) => section.next(input, cut_short),
            Format::Snoop(header) => header.next(input, cut_short),
        }
    }

    /// Whether the next packet can be had without waiting for it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let data = self.input.data();
        match &self.format {
            Format::Classic(header) => header.is_ready(data),
            Format::NextGeneration(section) => section.is_ready(data),
            Format::Snoop(header) => header.is_ready(data),
        }
    }

    /// Whether it ended within a record.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.cut_short
    }
}
