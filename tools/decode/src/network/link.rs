//! Link layers: what stands before a datagram of the internet protocol.

use super::{Content, Octets};
use crate::capture::Packet;
use crate::capture::snoop::OTHER_LINKS;
use crate::limits::VLAN_TAGS_MAX;

/// Numbers of the registry of link-layer types.
mod number {
    pub(super) const NULL: u32 = 0;
    pub(super) const ETHERNET: u32 = 1;
    /// Raw IP, as some systems once numbered it.
    pub(super) const RAW_BSD: u32 = 12;
    pub(super) const RAW_OPENBSD: u32 = 14;
    pub(super) const RAW: u32 = 101;
    pub(super) const LOOP: u32 = 108;
    pub(super) const LINUX_COOKED: u32 = 113;
    pub(super) const IPV4: u32 = 228;
    pub(super) const IPV6: u32 = 229;
    pub(super) const LINUX_COOKED_2: u32 = 276;
}

/// Link layers that are not taken apart, by number, with what people call them.
const OTHERS: [(u32, &str); 22] = [
    (6, "token ring"),
    (9, "PPP"),
    (10, "FDDI"),
    (50, "PPP in HDLC"),
    (51, "PPP over Ethernet"),
    (104, "Cisco HDLC"),
    (105, "IEEE 802.11"),
    (107, "frame relay"),
    (119, "IEEE 802.11 with Prism headers"),
    (127, "IEEE 802.11 with radiotap headers"),
    (149, "one of a user's own"),
    (187, "Bluetooth HCI"),
    (189, "USB, as Linux has it"),
    (192, "PPI"),
    (195, "IEEE 802.15.4"),
    (220, "USB, as Linux maps it"),
    (227, "CAN"),
    (239, "NFLOG"),
    (242, "IP over InfiniBand"),
    (247, "InfiniBand"),
    (249, "USB, as Windows has it"),
    (253, "netlink"),
];

/// The name of a link layer that is not taken apart, and its number.
pub(crate) fn named(link: u32) -> String {
    match (OTHERS.iter().find(|(number, _)| *number == link), link.checked_sub(OTHER_LINKS)) {
        (Some((_, name)), _) => format!("{name} (link type {link})"),
        (None, Some(snoop)) => format!("number {snoop} of snoop"),
        (None, None) => format!("number {link}"),
    }
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

const VLAN_BYTES: usize = 4;

/// A greater number is a protocol's, this and lesser ones are lengths (IEEE 802.3).
const LENGTH_MAX: u16 = 1_500;

/// The datagram in a packet; `None` if it has another protocol's. An unknown link layer, and what
/// is shorter than its header, is an error.
pub(super) fn strip<'a>(packet: &Packet<'a>) -> Result<Option<Octets<'a>>, Content<'static>> {
    let frame = Octets { data: packet.data, original: packet.original };
    match packet.link {
        number::ETHERNET => ethernet(frame, 12),
        number::LINUX_COOKED => ethernet(frame, 14),
        number::LINUX_COOKED_2 => Some(frame.u16(0).zip(frame.skip(20)).and_then(of_protocol)),
        // The family's number differs between systems; the datagram says its version itself.
        number::NULL | number::LOOP => frame.skip(4).map(Some),
        number::RAW | number::RAW_BSD | number::RAW_OPENBSD | number::IPV4 | number::IPV6 => {
            Some(Some(frame))
        }
        unknown => return Err(Content::UnknownLink(unknown)),
    }
    .ok_or(Content::Unreadable)
}

/// A header that ends with the protocol's number, at `at`, where VLAN tags may stand instead.
fn ethernet(frame: Octets<'_>, at: usize) -> Option<Option<Octets<'_>>> {
    let mut at = at;
    for _ in 0..VLAN_TAGS_MAX {
        let protocol = frame.u16(at)?;
        if protocol <= LENGTH_MAX {
            return Some(link_control(frame.skip(at + 2)?.first(protocol.into())));
        }
        if !VLAN.contains(&protocol) {
            return Some(of_protocol((protocol, frame.skip(at + 2)?)));
        }
        at += VLAN_BYTES;
    }
    Some(None)
}

/// The octets behind a length (IEEE 802.2), if they name a protocol (RFC 1042).
fn link_control(frame: Octets<'_>) -> Option<Octets<'_>> {
    let names = frame.data.starts_with(&[0xaa, 0xaa, 0x03, 0, 0, 0]);
    of_protocol((frame.u16(6).filter(|_| names)?, frame.skip(8)?))
}

fn of_protocol((protocol, rest): (u16, Octets<'_>)) -> Option<Octets<'_>> {
    [IPV4, IPV6].contains(&protocol).then_some(rest)
}
