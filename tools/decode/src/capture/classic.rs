//! pcap, the format of 1998 (draft-ietf-opsawg-pcap).

use super::buffer::Buffer;
use super::{Endian, Item, Packet};
use crate::error::Error;
use crate::limits::PACKET_BYTES_MAX;
use std::io::Read;

const HEADER_BYTES: usize = 24;
const RECORD_BYTES: usize = 16;

#[derive(Debug)]
pub(super) struct Header {
    endian: Endian,
    /// How many nanoseconds the fraction of a second counts in.
    fraction_ns: u64,
    link: u32,
}

impl Header {
    pub(super) fn read(input: &mut Buffer<impl Read>, magic: [u8; 4]) -> Result<Self, Error> {
        let (endian, fraction_ns) = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => (Endian::Little, 1000),
            [0xa1, 0xb2, 0xc3, 0xd4] => (Endian::Big, 1000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Endian::Little, 1),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Endian::Big, 1),
            _ => return Err(Error::NotACapture { magic: magic.to_vec() }),
        };
        if !input.fill(HEADER_BYTES)? {
            return Err(Error::Damaged { offset: 0, what: "it ends within its header" });
        }
        // The upper half says how long a frame check sequence is.
        let link = endian.u32(input.take(HEADER_BYTES), 20).unwrap_or_default() & 0xffff;
        Ok(Header { endian, fraction_ns, link })
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
        let number = |at| self.endian.u32(input.data(), at).unwrap_or_default();
        let (seconds, fraction) = (u64::from(number(0)), u64::from(number(4)));
        let (captured, original) = (number(8) as usize, number(12) as usize);
        if captured > PACKET_BYTES_MAX {
            return Err(Error::Damaged { offset, what: "a packet longer than 262,144 bytes" });
        }
        if !input.fill(RECORD_BYTES + captured)? {
            *cut_short = true;
            return Ok(None);
        }
        let data = input.take(RECORD_BYTES + captured).get(RECORD_BYTES..).unwrap_or_default();
        Ok(Some(Item::Packet(Packet {
            time_ns: seconds * 1_000_000_000 + fraction * self.fraction_ns,
            link: self.link,
            data,
            original: original.max(captured),
        })))
    }

    pub(super) fn is_ready(&self, data: &[u8]) -> bool {
        let captured = self.endian.u32(data, 8).unwrap_or_default() as usize;
        data.len() >= RECORD_BYTES + captured
    }
}
