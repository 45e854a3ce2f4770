//! The header that the kernel and a TUN device's owner put before each packet (`struct virtio_net_hdr`, VIRTIO 1.3,
//! section 5.1.6). Its numbers are in the host's byte order.

/// Bytes of the header.
pub const VIRTIO_HEADER_BYTES: usize = 10;

/// The checksum is to be finished from `checksum_start` on.
const NEEDS_CHECKSUM: u8 = 1;
/// A TCP packet to be cut has the congestion window reduced flag: its first segment alone.
const ECN: u8 = 0x80;

/// What is to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gso {
    Tcp4,
    Tcp6,
    Udp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VirtioHeader {
    pub gso: Option<Gso>,
    /// Bytes of headers, up to the data of TCP or UDP. A hint to the kernel, not looked at here.
    pub header_bytes: u16,
    /// Bytes of data in a segment.
    pub segment_bytes: u16,
    pub checksum: Option<Checksum>,
}

/// A checksum that is not finished: the field has the pseudo-header's sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    /// Where in the packet the bytes begin that it is of.
    pub start: u16,
    /// Where its field is, from there.
    pub field: u16,
}

impl VirtioHeader {
    /// None where it asks for what was not agreed on.
    pub fn read(bytes: &[u8; VIRTIO_HEADER_BYTES]) -> Option<VirtioHeader> {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let gso = match bytes[1] & !ECN {
            0 => None,
            1 => Some(Gso::Tcp4),
            4 => Some(Gso::Tcp6),
            5 => Some(Gso::Udp),
            _ => return None,
        };
        let checksum = Checksum { start: number(6), field: number(8) };
        Some(VirtioHeader {
            gso,
            header_bytes: number(2),
            segment_bytes: number(4),
            checksum: (bytes[0] & NEEDS_CHECKSUM != 0).then_some(checksum),
        })
    }

    pub fn write(&self) -> [u8; VIRTIO_HEADER_BYTES] {
        let mut bytes = [0; VIRTIO_HEADER_BYTES];
        bytes[1] = match self.gso {
            None => 0,
            Some(Gso::Tcp4) => 1,
            Some(Gso::Tcp6) => 4,
            Some(Gso::Udp) => 5,
        };
        bytes[2..4].copy_from_slice(&self.header_bytes.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.segment_bytes.to_ne_bytes());
        if let Some(checksum) = self.checksum {
            bytes[0] = NEEDS_CHECKSUM;
            bytes[6..8].copy_from_slice(&checksum.start.to_ne_bytes());
            bytes[8..10].copy_from_slice(&checksum.field.to_ne_bytes());
        }
        bytes
    }
}
