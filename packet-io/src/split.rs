//! What a TUN device hands over as one, cut into the packets that go over the wire.

use crate::checksum::{field, fold, sum};
use crate::virtio::{Checksum, Gso, VIRTIO_HEADER_BYTES, VirtioHeader};
use std::fmt;

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// Header and packet contradict one another, or the header asks for what the device does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the virtio header does not fit its packet")
    }
}

impl std::error::Error for Malformed {}

/// Where the parts of a packet to be cut are.
#[derive(Clone, Copy)]
struct Layout {
    is_ipv6: bool,
    is_tcp: bool,
    /// Where TCP or UDP begins.
    transport: usize,
    /// Where its checksum is.
    checksum: usize,
    /// Where its data begins.
    data: usize,
}

/// Calls `each` with the packets of a frame, which is a virtio header and what follows it; returns their count.
///
/// Each packet lies where its data lay in the frame: its headers are put before them, over the data of the packet before,
/// which `each` has seen. So no data is copied. Segments are numbered as Linux numbers them: IPv4's identification
/// goes up by one, CWR is the first one's, FIN and PSH are the last one's.
///
/// # Errors
/// [`Malformed`]; `each` was not called.
pub fn split(frame: &mut [u8], mut each: impl FnMut(&[u8])) -> Result<usize, Malformed> {
    let (header, packet) = frame.split_first_chunk_mut::<VIRTIO_HEADER_BYTES>().ok_or(Malformed)?;
    let header = VirtioHeader::read(header).ok_or(Malformed)?;
    if let Some(gso) = header.gso {
        let layout = Layout::of(packet, gso, header.checksum.ok_or(Malformed)?)?;
        if header.segment_bytes == 0 {
            return Err(Malformed);
        }
        return Ok(cut(packet, layout, usize::from(header.segment_bytes), each));
    }
    if packet.is_empty() {
        return Err(Malformed);
    }
    if let Some(Checksum { start, field: at }) = header.checksum {
        let part = packet.get_mut(usize::from(start)..).ok_or(Malformed)?;
        let value = field(sum(part)).to_be_bytes();
        let at = usize::from(at);
        part.get_mut(at..at + 2).ok_or(Malformed)?.copy_from_slice(&value);
    }
    each(packet);
    Ok(1)
}

impl Layout {
    fn of(packet: &[u8], gso: Gso, checksum: Checksum) -> Result<Layout, Malformed> {
        let transport = usize::from(checksum.start);
        let is_ipv6 = match packet.first().ok_or(Malformed)? >> 4 {
            4 if gso != Gso::Tcp6 => false,
            6 if gso != Gso::Tcp4 => true,
            _ => return Err(Malformed),
        };
        // Between IPv6's header and TCP there may be others, which the kernel went over.
        let begins_well = match is_ipv6 {
            false => transport >= 20 && transport == usize::from(packet[0] & 15) * 4,
            true => transport >= 40,
        };
        let is_tcp = gso != Gso::Udp;
        let (header, offset) = match is_tcp {
            true => {
                let words = packet.get(transport + 12).ok_or(Malformed)? >> 4;
                (usize::from(words) * 4, 16)
            }
            false => (8, 6),
        };
        let least = if is_tcp { 20 } else { 8 };
        let data = transport + header;
        if !begins_well
            || header < least
            || usize::from(checksum.field) != offset
            || data >= packet.len()
        {
            return Err(Malformed);
        }
        Ok(Layout { is_ipv6, is_tcp, transport, checksum: transport + offset, data })
    }
}

/// The count of segments.
fn cut(
    packet: &mut [u8],
    layout: Layout,
    segment_bytes: usize,
    mut each: impl FnMut(&[u8]),
) -> usize {
    let Layout { is_ipv6, is_tcp, transport, checksum, data } = layout;
    let total = packet.len();
    let count = (total - data).div_ceil(segment_bytes);
    let identification = number(packet, 4);
    let sequence = u32::from_be_bytes([
        packet[transport + 4],
        packet[transport + 5],
        packet[transport + 6],
        packet[transport + 7],
    ]);
    let flags = if is_tcp { packet[transport + 13] } else { 0 };
    // The field has the pseudo-header's sum with the length of all: without it, that of each is added.
    let pseudo = fold(&[number(packet, checksum), !((total - transport) as u16)]);
    for index in 0..count {
        let start = index * segment_bytes;
        let end = total.min(start + data + segment_bytes);
        if index > 0 {
            let before = start - segment_bytes;
            packet.copy_within(before..before + data, start);
        }
        let segment = &mut packet[start..end];
        let bytes = segment.len();
        if is_ipv6 {
            put(segment, 4, (bytes - 40) as u16);
        } else {
            put(segment, 2, bytes as u16);
            put(segment, 4, identification.wrapping_add(index as u16));
            put(segment, 10, 0);
            let value = !sum(&segment[..transport]);
            put(segment, 10, value);
        }
        if is_tcp {
            let sequence = sequence.wrapping_add(start as u32).to_be_bytes();
            segment[transport + 4..transport + 8].copy_from_slice(&sequence);
            let mut kept = flags;
            if index > 0 {
                kept &= !TCP_CWR;
            }
            if index + 1 < count {
                kept &= !(TCP_FIN | TCP_PSH);
            }
            segment[transport + 13] = kept;
        } else {
            put(segment, transport + 4, (bytes - transport) as u16);
        }
        put(segment, checksum, fold(&[pseudo, (bytes - transport) as u16]));
        let value = field(sum(&segment[transport..]));
        put(segment, checksum, value);
        each(segment);
    }
    count
}

fn number(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}

fn put(packet: &mut [u8], at: usize, value: u16) {
    packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
