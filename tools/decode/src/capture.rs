//! Files of packets: pcap, pcapng and snoop, also compressed by gzip, from anything that can be read.
//!
//! The formats are read as they come, so that `tcpdump -w - |` works: no more is asked of the
//! input than the next record has. A file that ends within a record is one whose writer was
//! stopped; that is said ([`Capture::is_cut_short`]) and is no error.

mod buffer;
mod classic;
mod next_generation;
pub(crate) mod snoop;

use crate::error::Error;
use buffer::Buffer;
use flate2::read::MultiGzDecoder;
use std::io::Read;

/// The magic numbers a file may begin with, as they stand in the file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// An item of a capture.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A packet.
    Packet(Packet<'a>),
    /// Lines of a TLS key log that came with the packets.
    KeyLog(&'a [u8]),
}

/// A packet as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When, in nanoseconds since 1970 (UTC).
    pub time_ns: u64,
    /// The number of the link layer (`LINKTYPE_` of the registry of tcpdump.org); from 65,536 on
    /// one that only snoop knows.
    pub link: u32,
    /// The octets that were captured.
    pub data: &'a [u8],
    /// How many octets it had on the wire, at least as many as were captured.
    pub original: usize,
}

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

/// The order of the octets in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endian {
    Little,
    Big,
}

impl Endian {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let octets: [u8; 2] = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Endian::Little => u16::from_le_bytes(octets),
            Endian::Big => u16::from_be_bytes(octets),
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let octets: [u8; 4] = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Endian::Little => u32::from_le_bytes(octets),
            Endian::Big => u32::from_be_bytes(octets),
        })
    }
}
