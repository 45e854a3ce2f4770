//! The content of a packet, layer by layer.

use std::net::SocketAddr;

/// A TCP segment (RFC 9293 § 3.1), as far as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The sender's address.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// The sequence number of the first octet, or of SYN.
    pub sequence: u32,
    /// The acknowledgement number, if there is one.
    pub acknowledgement: Option<u32>,
    /// Whether the connection begins with it.
    pub syn: bool,
    /// Whether the sender has no more to send.
    pub fin: bool,
    /// Whether the connection ends with it.
    pub rst: bool,
    /// The octets.
    pub payload: &'a [u8],
    /// How many octets of it follow those, and were not captured.
    pub missing: usize,
}

/// A datagram of UDP (RFC 768), as far as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The sender's address.
    pub from: SocketAddr,
    /// Its receiver.
    pub to: SocketAddr,
    /// The octets.
    pub payload: &'a [u8],
    /// How many octets of it follow those, and were not captured.
    pub missing: usize,
}

/// The content of a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A segment.
    Segment(Segment<'a>),
    /// A datagram.
    Datagram(Datagram<'a>),
    /// A fragment, kept until the others are there.
    Fragment,
    /// Another protocol.
    Other,
    /// A link layer that is not known; its number.
    UnknownLink(u32),
    /// Captured too short to see what it is, or not what its headers say.
    Unreadable,
}

/// Octets that were captured, with how many there were.
#[derive(Debug, Clone, Copy)]
pub(super) struct Octets<'a> {
    pub(super) data: &'a [u8],
    pub(super) original: usize,
}

impl<'a> Octets<'a> {
    /// The part after the first `count` octets.
    pub(super) fn skip(self, count: usize) -> Option<Self> {
        Some(Octets { data: self.data.get(count..)?, original: self.original.checked_sub(count)? })
    }

    /// No more than the first `count`: the rest is padding.
    pub(super) fn first(self, count: usize) -> Self {
        let captured = self.data.len().min(count);
        Octets {
            data: self.data.get(..captured).unwrap_or_default(),
            original: self.original.min(count),
        }
    }

    pub(super) fn u16(self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(*self.data.get(at..)?.first_chunk()?))
    }

    pub(super) fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(*self.data.get(at..)?.first_chunk()?))
    }

    pub(super) fn octet(self, at: usize) -> Option<u8> {
        self.data.get(at).copied()
    }
}
