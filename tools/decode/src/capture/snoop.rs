//! snoop, the format of Solaris (RFC 1761).

use super::buffer::Buffer;
use super::{Endian, Item, Packet};
use crate::error::Error;
use crate::limits::PACKET_BYTES_MAX;
use std::io::Read;

/// A file begins with these bytes.
pub(super) const MAGIC: [u8; 8] = *b"snoop\0\0\0";

const HEADER_BYTES: usize = 16;
const RECORD_BYTES: usize = 24;
/// Versions 1 and 2 differ in nothing that matters here.
const VERSIONS: [u32; 2] = [1, 2];

/// Link layers by their numbers in this format, and in the registry of link-layer types.
const LINKS: [(u32, u32); 7] = [(0, 1), (2, 6), (4, 1), (5, 104), (6, 9), (8, 10), (0x1a, 242)];
/// Added to the number of a link layer that is not in that registry.
pub(crate) const OTHER_LINKS: u32 = 1 << 16;

#[derive(Debug)]
pub(super) struct Header {
    link: u32,
}

impl Header {
    pub(super) fn read(input: &mut Buffer<impl Read>) -> Result<Self, Error> {
        if !input.fill(HEADER_BYTES)? {
            return Err(Error::Damaged { offset: 0, what: "it ends within its header" });
        }
        let header = input.take(HEADER_BYTES);
        let number = |at| Endian::Big.u32(header, at).unwrap_or_default();
        if !VERSIONS.contains(&number(8)) {
            return Err(Error::Damaged { offset: 8, what: "it is of no known version of snoop" });
        }
        let link = number(12);
        let known = LINKS.iter().find(|(snoop, _)| *snoop == link);
        let link = known.map_or(OTHER_LINKS.saturating_add(link), |(_, registered)| *registered);
        Ok(Header { link })
    }

    pub(super) fn next<'b>(
        &self,
        input: &'b mut Buffer<impl Read>,
        cut_short: &mut bool,
    ) -> Result<Option<Item<'b>>, Error> {
        if !input.fill(RECORD_BYTES)? {
            *cut_short = !input.data().is_empty();
            return Ok(None);
        }
        let offset = input.offset();
        let number = |at| Endian::Big.u32(input.data(), at).unwrap_or_default();
        let (original, captured) = (number(0) as usize, number(4) as usize);
        let record = number(8) as usize;
        let (seconds, microseconds) = (u64::from(number(16)), u64::from(number(20)));
        if captured > PACKET_BYTES_MAX {
            return Err(Error::Damaged { offset, what: "a packet longer than 262,144 bytes" });
        }
        // Its padding is part of it; how much that is differs between writers.
        if record < RECORD_BYTES + captured || record > RECORD_BYTES + PACKET_BYTES_MAX {
            return Err(Error::Damaged {
                offset,
                what: "a record of another length than its packet",
            });
        }
        if !input.fill(record)? {
            *cut_short = true;
            return Ok(None);
        }
        let record = input.take(record);
        let data = record.get(RECORD_BYTES..RECORD_BYTES + captured).unwrap_or_default();
        Ok(Some(Item::Packet(Packet {
            time_ns: seconds * 1_000_000_000 + microseconds * 1000,
            link: self.link,
            data,
            original: original.max(captured),
        })))
    }

    pub(super) fn is_ready(&self, data: &[u8]) -> bool {
        let record = Endian::Big.u32(data, 8).unwrap_or_default() as usize;
        data.len() >= record.max(RECORD_BYTES)
    }
}
