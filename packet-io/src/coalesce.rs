//! Packets of a flow joined to one, as the kernel's own GRO would join them (`tcp4_gro_receive`, `udp_gro_receive`), so
//! that a TUN device is given fewer, longer packets.

use crate::checksum::sum;
use crate::flow::{Flow, TCP, TCP_LAST, may_be_of_a_flow};
use crate::limits::{FLOWS_MAX, JOINED_BYTES_MAX, SEGMENTS_MAX};
use crate::virtio::{Checksum, Gso, VIRTIO_HEADER_BYTES, VirtioHeader};

/// Packets that may be joined to those to come, one of each flow.
///
/// It gives out a virtio header, a packet, and how many packets that was. Packets of a flow keep their order.
#[derive(Debug)]
pub struct Coalescer {
    /// The kernel takes joined UDP too.
    joins_udp: bool,
    /// In the order in which they began.
    held: Vec<Held>,
    /// Buffers of such that were given out. The last is the warmest.
    free: Vec<Vec<u8>>,
}

/// A packet, or several joined.
#[derive(Debug)]
struct Held {
    /// Of the first packet.
    flow: Flow,
    packet: Vec<u8>,
    /// Bytes of data of the first packet, and of all others but the last.
    segment_bytes: usize,
    segments: usize,
    /// The checksum of the first packet was looked at. That of one that stays alone is left to the kernel.
    is_intact: bool,
    /// IPv4: all have the identification of the first.
    has_one_identification: bool,
}

impl Coalescer {
    /// `joins_udp`: whether the device takes joined UDP packets (`TUN_F_USO4` and `TUN_F_USO6`, Linux 6.2).
    #[must_use]
    pub fn new(joins_udp: bool) -> Coalescer {
        Coalescer { joins_udp, held: Vec::new(), free: Vec::new() }
    }

    /// Takes a packet of any kind and length. What cannot be joined goes out at once, behind what is held of its flow.
    pub fn push(
        &mut self,
        packet: &[u8],
        mut out: impl FnMut(&[u8; VIRTIO_HEADER_BYTES], &[u8], usize),
    ) {
        let Some(flow) = Flow::of(packet) else {
            if may_be_of_a_flow(packet) {
                self.flush(&mut out);
            }
            return out(&VirtioHeader::default().write(), packet, 1);
        };
        if flow.protocol != TCP && !self.joins_udp {
            return out(&VirtioHeader::default().write(), packet, 1);
        }
        if let Some(at) = self.held.iter().position(|held| held.is_of(&flow, packet)) {
            let held = &mut self.held[at];
            if flow.is_joinable && held.takes(&flow, packet) {
                if held.join(&flow, packet) {
                    self.give_out(at, &mut out);
                }
                return;
            }
            self.give_out(at, &mut out);
        }
        if !flow.is_joinable || flow.is_last {
            return out(&VirtioHeader::default().write(), packet, 1);
        }
        if self.held.len() == FLOWS_MAX {
            self.give_out(0, &mut out);
        }
        let mut buffer = self.free.pop().unwrap_or_else(|| Vec::with_capacity(JOINED_BYTES_MAX));
        buffer.clear();
        buffer.extend_from_slice(packet);
        self.held.push(Held {
            flow,
            segment_bytes: packet.len() - flow.header_bytes,
            segments: 1,
            is_intact: false,
            has_one_identification: false,
            packet: buffer,
        });
    }

    /// Gives out all that is held.
    pub fn flush(&mut self, mut out: impl FnMut(&[u8; VIRTIO_HEADER_BYTES], &[u8], usize)) {
        for mut held in self.held.drain(..) {
            let header = held.finish();
            out(&header.write(), &held.packet, held.segments);
            self.free.push(held.packet);
        }
    }

    fn give_out(
        &mut self,
        at: usize,
        out: &mut impl FnMut(&[u8; VIRTIO_HEADER_BYTES], &[u8], usize),
    ) {
        let mut held = self.held.remove(at);
        let header = held.finish();
        out(&header.write(), &held.packet, held.segments);
        self.free.push(held.packet);
    }
}

impl Held {
    fn is_of(&self, flow: &Flow, packet: &[u8]) -> bool {
        self.flow.hash == flow.hash
            && self.flow.is_ipv6 == flow.is_ipv6
            && self.flow.protocol == flow.protocol
            && self.flow.key(&self.packet) == flow.key(packet)
    }

    /// Whether a joinable packet of the flow can be the next segment. Both are intact then.
    fn takes(&mut self, flow: &Flow, packet: &[u8]) -> bool {
        let data = packet.len() - flow.header_bytes;
        let (segments_max, has_next) = match flow.protocol {
            TCP => (usize::MAX, self.has_next_of_tcp(flow, packet)),
            _ => (SEGMENTS_MAX, true),
        };
        let fits = has_next
            && data <= self.segment_bytes
            && self.segments < segments_max
            && self.packet.len() + data <= JOINED_BYTES_MAX
            && self.has_ip_header_of(flow, packet);
        if !fits || !flow.is_intact(packet) {
            return false;
        }
        self.is_intact = self.is_intact || self.flow.is_intact(&self.packet);
        self.is_intact
    }

    fn has_next_of_tcp(&self, flow: &Flow, packet: &[u8]) -> bool {
        if flow.header_bytes != self.flow.header_bytes {
            return false;
        }
        let (from, to) = (flow.transport(), flow.header_bytes);
        let (first, next) = (&self.packet[from..to], &packet[from..to]);
        let gathered = (self.packet.len() - self.flow.header_bytes) as u32;
        // Acknowledgement, header's length and flags, window, options.
        word(next, 4) == word(first, 4).wrapping_add(gathered)
            && first[8..13] == next[8..13]
            && (first[13] ^ next[13]) & !TCP_LAST == 0
            && first[14..16] == next[14..16]
            && first[20..] == next[20..]
    }

    /// The rest is equal by the flow, or of each packet.
    fn has_ip_header_of(&mut self, flow: &Flow, packet: &[u8]) -> bool {
        let first = &self.packet;
        if flow.is_ipv6 {
            // Version, traffic class and flow label; hop limit.
            return first[..4] == packet[..4] && first[7] == packet[7];
        }
        let has_df = first[6] & 0x40 != 0;
        let (start, next) = (number(first, 4), number(packet, 4));
        if has_df && next == start && self.segments == 1 {
            self.has_one_identification = true;
        }
        let expected = match self.has_one_identification {
            true => start,
            false => start.wrapping_add(self.segments as u16),
        };
        // Type of service; DF; time to live.
        first[1] == packet[1] && first[6] == packet[6] && first[8] == packet[8] && next == expected
    }

    /// Whether nothing may follow.
    fn join(&mut self, flow: &Flow, packet: &[u8]) -> bool {
        let data = &packet[flow.header_bytes..];
        self.packet.extend_from_slice(data);
        self.segments += 1;
        if flow.protocol == TCP {
            let at = flow.transport() + 13;
            self.packet[at] |= packet[at] & TCP_LAST;
        }
        flow.is_last || data.len() < self.segment_bytes
    }

    /// Writes the headers of what was joined.
    fn finish(&mut self) -> VirtioHeader {
        if self.segments == 1 {
            return VirtioHeader::default();
        }
        let bytes = self.packet.len();
        let Flow { is_ipv6, protocol, header_bytes, .. } = self.flow;
        let transport = self.flow.transport();
        let packet = &mut self.packet;
        if is_ipv6 {
            put(packet, 4, (bytes - 40) as u16);
        } else {
            put(packet, 2, bytes as u16);
            put(packet, 10, 0);
            let checksum = !sum(&packet[..transport]);
            put(packet, 10, checksum);
        }
        let (field, gso) = match (protocol, is_ipv6) {
            (TCP, false) => (16, Gso::Tcp4),
            (TCP, true) => (16, Gso::Tcp6),
            _ => {
                put(packet, transport + 4, (bytes - transport) as u16);
                (6, Gso::Udp)
            }
        };
        let pseudo = self.flow.pseudo_header(packet);
        put(packet, transport + field, pseudo);
        VirtioHeader {
            gso: Some(gso),
            header_bytes: header_bytes as u16,
            segment_bytes: self.segment_bytes as u16,
            checksum: Some(Checksum { start: transport as u16, field: field as u16 }),
        }
    }
}

fn number(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn put(packet: &mut [u8], at: usize, value: u16) {
    packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
