//! The headers of a packet that may be joined to others of its flow.

use crate::checksum::{fold, pseudo_header, sum};

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// A packet of TCP or UDP, directly behind an IPv4 header without options or an IPv6 header, and no fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Of addresses, ports and protocol.
    pub hash: u64,
    pub is_ipv6: bool,
    pub protocol: u8,
    /// Bytes of headers, up to the data of TCP or UDP.
    pub header_bytes: usize,
    /// Whether it may be joined at all: it has data and nothing that a receiver has to see by itself.
    pub is_joinable: bool,
    /// Whether nothing may be joined behind it: TCP's PSH or FIN.
    pub is_last: bool,
}

/// TCP's flags that a joined packet may have; all others are a packet's own.
const TCP_FIN: u8 = 0x01;
pub(crate) const TCP_PSH: u8 = 0x08;
const TCP_ACK: u8 = 0x10;
const TCP_ECE: u8 = 0x40;
/// Those of a joined packet's last segment.
pub(crate) const TCP_LAST: u8 = TCP_FIN | TCP_PSH;

impl Flow {
    /// None where it is another packet, or its lengths contradict one another.
    pub fn of(packet: &[u8]) -> Option<Flow> {
        let is_ipv6 = packet.first()? >> 4 == 6;
        let (protocol, is_sound) = match is_ipv6 {
            false => {
                let header: &[u8; 20] = packet.first_chunk()?;
                // The one flag is DF, and the offset zero.
                if header[0] != 0x45
                    || usize::from(number(header, 2)) != packet.len()
                    || number(header, 6) & !0x4000 != 0
                {
                    return None;
                }
                (header[9], sum(header) == 0xffff)
            }
            true => {
                let header: &[u8; 40] = packet.first_chunk()?;
                if usize::from(number(header, 4)) + 40 != packet.len() {
                    return None;
                }
                (header[6], true)
            }
        };
        let transport = packet.get(if is_ipv6 { 40 } else { 20 }..)?;
        let (header, is_joinable, is_last) = match protocol {
            TCP => {
                let header: &[u8; 20] = transport.first_chunk()?;
                let flags = header[13];
                let bytes = usize::from(header[12] >> 4) * 4;
                if bytes < 20 || bytes > transport.len() {
                    return None;
                }
                let usual = flags & !(TCP_LAST | TCP_ECE) == TCP_ACK;
                (bytes, usual, flags & TCP_LAST != 0)
            }
            UDP => {
                let header: &[u8; 8] = transport.first_chunk()?;
                if usize::from(number(header, 4)) != transport.len() {
                    return None;
                }
                // Without a checksum it stays alone, as in the kernel.
                (8, number(header, 6) != 0, false)
            }
            _ => return None,
        };
        let mut flow = Flow {
            hash: u64::from(protocol),
            is_ipv6,
            protocol,
            header_bytes: packet.len() - transport.len() + header,
            is_joinable: is_sound && is_joinable && header < transport.len(),
            is_last,
        };
        for word in flow.key(packet).as_chunks::<4>().0 {
            let word = u64::from(u32::from_ne_bytes(*word));
            flow.hash = (flow.hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        Some(flow)
    }

    /// Where TCP or UDP begins.
    pub fn transport(&self) -> usize {
        if self.is_ipv6 { 40 } else { 20 }
    }

    /// Where the addresses are, which the ports follow.
    fn addresses(&self) -> usize {
        if self.is_ipv6 { 8 } else { 12 }
    }

    /// Addresses and ports.
    pub fn key<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[self.addresses()..self.transport() + 4]
    }

    /// The pseudo-header's sum of a packet of this flow, or of several joined.
    pub fn pseudo_header(&self, packet: &[u8]) -> u16 {
        let addresses = &packet[self.addresses()..self.transport()];
        pseudo_header(addresses, self.protocol, packet.len() - self.transport())
    }

    /// Whether the checksum of TCP or UDP is right.
    pub fn is_intact(&self, packet: &[u8]) -> bool {
        fold(&[self.pseudo_header(packet), sum(&packet[self.transport()..])]) == 0xffff
    }
}

/// Whether a packet without a [`Flow`] may belong to one nevertheless: a fragment, or such with more headers.
pub(crate) fn may_be_of_a_flow(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(9).is_some_and(|&protocol| protocol == TCP || protocol == UDP),
        // Hop-by-hop options, routing, fragment, destination options (RFC 8200, section 4).
        Some(6) => packet.get(6).is_some_and(|next| [0, 43, 44, 60, TCP, UDP].contains(next)),
        _ => false,
    }
}

fn number(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
