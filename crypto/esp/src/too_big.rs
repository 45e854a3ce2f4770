//! The answer to a packet that is too long for the way (RFC 1191 § 4, RFC 4443 § 3.2).

use crate::checksum::{checksum, sum};
use crate::inner_packet::{IPV4_BYTES, IPV6_BYTES, InnerPacket, protocol, write_header};
use crate::limits::IPV6_MTU_MIN;
use std::net::IpAddr;

/// Most bytes of an ICMP message with its IP header (RFC 1812 § 4.3.2.3).
const ICMP_BYTES_MAX: usize = 576;
/// The header of an ICMP error, in bytes.
const ICMP_HEADER_BYTES: usize = 8;
/// "Destination unreachable", "fragmentation needed and DF set".
const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
/// "Packet too big".
const PACKET_TOO_BIG: [u8; 2] = [2, 0];

/// A message for the sender of this inner packet, which says how long packets may be: ICMP "fragmentation needed" or
/// ICMPv6 "packet too big", a whole IP packet. For IPv6 it says 1,280 at least: a gateway with less to offer has to cut
/// the outer packets.
///
/// `from` is the address that it is sent from. `None` where no such message may be sent (RFC 1122 § 3.2.2, RFC 4443
/// § 2.4): about an IPv4 packet that may be cut, or is to many, or is a fragment that is not the first; about an ICMP
/// error; to a sender that is not one host; and where `from` is of another family.
pub fn too_big(inner: &InnerPacket<'_>, mtu: u32, from: IpAddr) -> Option<Vec<u8>> {
    if !is_host(inner.source()) || !inner.dont_fragment() || is_icmp_error(inner) {
        return None;
    }
    let (header_bytes, most, [kind, code], number) = match (inner.destination(), from) {
        (IpAddr::V4(to), IpAddr::V4(_)) => {
            if to.is_multicast() || to.is_broadcast() || inner.is_later_fragment() {
                return None;
            }
            (IPV4_BYTES, ICMP_BYTES_MAX, FRAGMENTATION_NEEDED, protocol::ICMP)
        }
        (IpAddr::V6(_), IpAddr::V6(_)) => {
            (IPV6_BYTES, IPV6_MTU_MIN as usize, PACKET_TOO_BIG, protocol::ICMPV6)
        }
        _ => return None,
    };
    let mtu = match from {
        IpAddr::V4(_) => mtu.min(u16::MAX.into()),
        IpAddr::V6(_) => mtu.max(IPV6_MTU_MIN),
    };
    let quoted = inner.bytes();
    let quoted = quoted.get(..most - header_bytes - ICMP_HEADER_BYTES).unwrap_or(quoted);
    let mut message = vec![0; header_bytes];
    message.extend([kind, code, 0, 0]);
    // In ICMP the MTU is the lower half of the word.
    message.extend(mtu.to_be_bytes());
    message.extend(quoted);
    let (header, icmp) = message.split_at_mut(header_bytes);
    let to = inner.source();
    write_header(header, (from, to), (number, icmp.len()), 0)?;
    let pseudo = match (from, to) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let words = [[0, 0], (icmp.len() as u16).to_be_bytes(), [0, number]];
            sum(words.as_flattened(), sum([from.octets(), to.octets()].as_flattened(), 0))
        }
        _ => 0,
    };
    let made = checksum(icmp, pseudo);
    icmp.get_mut(2..4)?.copy_from_slice(&made);
    Some(message)
}

/// Whether it is one host's address.
fn is_host(address: IpAddr) -> bool {
    let many = match address {
        IpAddr::V4(address) => address.is_broadcast() || address.octets()[0] == 0,
        IpAddr::V6(_) => false,
    };
    !(many || address.is_unspecified() || address.is_multicast())
}

/// Whether it is an error of ICMP, or one might be in it.
fn is_icmp_error(inner: &InnerPacket<'_>) -> bool {
    let kind = inner.upper().first();
    match inner.protocol() {
        // RFC 1122 § 3.2.2: unreachable, source quench, redirect, time exceeded, parameter problem.
        protocol::ICMP => kind.is_none_or(|kind| matches!(kind, 3 | 4 | 5 | 11 | 12)),
        // RFC 4443 § 2.1: errors have no highest bit; redirects are none.
        protocol::ICMPV6 if inner.is_later_fragment() => false,
        protocol::ICMPV6 => kind.is_none_or(|kind| *kind < 128 || *kind == 137),
        _ => false,
    }
}
