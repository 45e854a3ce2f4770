//! Link layers: what stands before a datagram of the internet protocol.

use super::{Content, Octets};
use crate::capture::Packet;
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

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

const VLAN_BYTES: usize = 4;

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
        if !VLAN.contains(&protocol) {
            return Some(of_protocol((protocol, frame.skip(at + 2)?)));
        }
        at += VLAN_BYTES;
    }
    Some(None)
}

fn of_protocol((protocol, rest): (u16, Octets<'_>)) -> Option<Octets<'_>> {
    [IPV4, IPV6].contains(&protocol).then_some(rest)
}
