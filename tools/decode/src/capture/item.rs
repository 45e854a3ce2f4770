//! The items of a capture.

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

/// The order of the octets in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endian {
    Little,
    Big,
}

impl Endian {
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let octets: [u8; 2] = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Endian::Little => u16::from_le_bytes(octets),
            Endian::Big => u16::from_be_bytes(octets),
        })
    }

    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let octets: [u8; 4] = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Endian::Little => u32::from_le_bytes(octets),
            Endian::Big => u32::from_be_bytes(octets),
        })
    }
}
