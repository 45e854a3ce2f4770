//! pcapng (draft-ietf-opsawg-pcapng): blocks of many kinds, of which packets, interfaces and
//! secrets are read and all others passed over.

use super::buffer::Buffer;
use super::{Endian, Item, Packet};
use crate::error::Error;
use crate::limits::{BLOCK_BYTES_MAX, INTERFACES_MAX};
use std::io::Read;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const SECRETS: u32 = 10;
const TLS_KEY_LOG: u32 = 0x544c_534b;

/// The options of an interface that change what its times mean.
const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;

const BLOCK_BYTES_MIN: usize = 12;

/// The state of a section that its blocks depend on.
pub(super) struct Section {
    endian: Endian,
    interfaces: Vec<Interface>,
}

impl Default for Section {
    fn default() -> Self {
        Section { endian: Endian::Little, interfaces: Vec::new() }
    }
}

#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    /// A unit of time is this many nanoseconds, divided by the other.
    multiply: u64,
    divide: u64,
    offset_s: u64,
}

impl Interface {
    fn time_ns(&self, high: u32, low: u32) -> u64 {
        let units = u64::from(high) << 32 | u64::from(low);
        let ns = match self.divide {
            1 => units.saturating_mul(self.multiply),
            divide => {
                let ns = u128::from(units) * u128::from(self.multiply) / u128::from(divide);
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        };
        ns.saturating_add(self.offset_s.saturating_mul(1_000_000_000))
    }
}

/// The contents of a block that is of use.
enum Kind {
    Packet { interface: u32, high: u32, low: u32, captured: u32, original: u32, at: usize },
    KeyLog { length: usize },
    Other,
}

impl Section {
    pub(super) fn next<'b>(
        &mut self,
        input: &'b mut Buffer<impl Read>,
        cut_short: &mut bool,
    ) -> Result<Option<Item<'b>>, Error> {
        let (offset, length, kind) = loop {
            let offset = input.offset();
            let Some(length) = self.block(input, cut_short)? else { return Ok(None) };
            let block = input.data().get(..length).unwrap_or_default();
            match self.look(block) {
                Some(Kind::Other) => input.take(length),
                Some(kind) => break (offset, length, kind),
                None => {
                    let what = "a block that is too short for its kind";
                    return Err(Error::Damaged { offset, what });
                }
            };
        };
        let damaged = |what| Error::Damaged { offset, what };
        let contents = input.take(length).get(..length - 4).unwrap_or_default();
        match kind {
            Kind::Other => Ok(None),
            Kind::KeyLog { length } => {
                let lines = contents.get(16..).and_then(|rest| rest.get(..length));
                lines.map(|lines| Some(Item::KeyLog(lines))).ok_or(damaged("secrets cut off"))
            }
            Kind::Packet { interface, high, low, captured, original, at } => {
                let interface = self.interfaces.get(interface as usize);
                let interface = interface.ok_or(damaged("a packet of no interface"))?;
                let data = contents.get(at..).and_then(|rest| rest.get(..captured as usize));
                let data = data.ok_or(damaged("a packet longer than its block"))?;
                Ok(Some(Item::Packet(Packet {
                    time_ns: interface.time_ns(high, low),
                    link: interface.link,
                    data,
                    original: (original as usize).max(data.len()),
                })))
            }
        }
    }

    /// Has the next block in the buffer, and gives its length.
    fn block(
        &mut self,
        input: &mut Buffer<impl Read>,
        cut_short: &mut bool,
    ) -> Result<Option<usize>, Error> {
        let offset = input.offset();
        let damaged = |what| Error::Damaged { offset, what };
        if !input.fill(BLOCK_BYTES_MIN)? {
            *cut_short = !input.data().is_empty();
            return Ok(None);
        }
        if Endian::Little.u32(input.data(), 0) == Some(SECTION_HEADER) {
            self.endian = match input.data().get(8..12) {
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => Endian::Little,
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => Endian::Big,
                _ => return Err(damaged("a section without a byte order")),
            };
            self.interfaces.clear();
        }
        let length = self.endian.u32(input.data(), 4).unwrap_or_default() as usize;
        if length < BLOCK_BYTES_MIN || !length.is_multiple_of(4) {
            return Err(damaged("a block whose length cannot be"));
        }
        if length > BLOCK_BYTES_MAX {
            return Err(damaged("a block longer than 16 MiB"));
        }
        if !input.fill(length)? {
            *cut_short = true;
            return Ok(None);
        }
        Ok(Some(length))
    }

    /// The kind of a block; `None` if it is too short.
    fn look(&mut self, block: &[u8]) -> Option<Kind> {
        let endian = self.endian;
        let number = |at| endian.u32(block, at);
        Some(match number(0)? {
            INTERFACE => {
                let interface = interface(endian, block)?;
                if self.interfaces.len() < INTERFACES_MAX {
                    self.interfaces.push(interface);
                }
                Kind::Other
            }
            ENHANCED_PACKET => Kind::Packet {
                interface: number(8)?,
                high: number(12)?,
                low: number(16)?,
                captured: number(20)?,
                original: number(24)?,
                at: 28,
            },
            OBSOLETE_PACKET => Kind::Packet {
                interface: u32::from(endian.u16(block, 8)?),
                high: number(12)?,
                low: number(16)?,
                captured: number(20)?,
                original: number(24)?,
                at: 28,
            },
            SIMPLE_PACKET => {
                let original = number(8)?;
                // It may be padded, or cut by the interface's limit.
                let space = u32::try_from(block.len().checked_sub(16)?).ok()?;
                let captured = original.min(space);
                Kind::Packet { interface: 0, high: 0, low: 0, captured, original, at: 12 }
            }
            SECRETS if number(8)? == TLS_KEY_LOG => Kind::KeyLog { length: number(12)? as usize },
            _ => Kind::Other,
        })
    }

    pub(super) fn is_ready(&self, data: &[u8]) -> bool {
        let length = self.endian.u32(data, 4).unwrap_or_default() as usize;
        data.len() >= BLOCK_BYTES_MIN && data.len() >= length
    }
}

/// The description of an interface, with those of its options that are of use.
fn interface(endian: Endian, block: &[u8]) -> Option<Interface> {
    let link = u32::from(endian.u16(block, 8)?);
    let mut interface = Interface { link, multiply: 1000, divide: 1, offset_s: 0 };
    let mut at = 16;
    let end = block.len().checked_sub(4)?;
    while at + 4 <= end {
        let (code, length) = (endian.u16(block, at)?, usize::from(endian.u16(block, at + 2)?));
        let value = block.get(at + 4..at + 4 + length).unwrap_or_default();
        match (code, value) {
            (0, _) => break,
            (OPTION_RESOLUTION, [resolution]) => resolve(&mut interface, *resolution),
            (OPTION_OFFSET, value) if value.len() == 8 => {
                let halves = (endian.u32(value, 0)?, endian.u32(value, 4)?);
                let (high, low) = match endian {
                    Endian::Little => (halves.1, halves.0),
                    Endian::Big => halves,
                };
                interface.offset_s = u64::from(high) << 32 | u64::from(low);
            }
            _ => {}
        }
        at += 4 + length.next_multiple_of(4);
    }
    Some(interface)
}

/// A power of ten, or with the upper bit of two, that a second is divided by.
fn resolve(interface: &mut Interface, resolution: u8) {
    let exponent = u32::from(resolution & 0x7f);
    (interface.multiply, interface.divide) = match resolution & 0x80 {
        0 if exponent <= 9 => (10_u64.pow(9 - exponent), 1),
        0 => (1, 10_u64.checked_pow(exponent - 9).unwrap_or(u64::MAX)),
        _ => (1_000_000_000, 1_u64.checked_shl(exponent).unwrap_or(u64::MAX)),
    };
}
