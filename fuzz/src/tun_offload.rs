//! What a TUN device hands over to be cut, and packets that are joined before they are written to it.

use keyway_packet_io::{Coalescer, PACKET_BYTES_MAX, VIRTIO_HEADER_BYTES, split};

const NEEDS_CHECKSUM: u8 = 1;

/// The first byte says how to read the others: as one frame of a device, or as packets, each behind its length in two
/// bytes. Packets are joined, cut again, and are those that came.
pub fn tun_offload(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    let (is_frame, joins_udp, is_repaired) = (mode & 1 != 0, mode & 2 != 0, mode & 4 != 0);
    let mut came = Vec::new();
    if is_frame {
        came = cut(data);
        let most = data.len().saturating_sub(VIRTIO_HEADER_BYTES);
        assert!(came.iter().all(|packet| !packet.is_empty() && packet.len() <= most));
    } else {
        let mut rest = data;
        while let Some((length, behind)) = rest.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
            let (packet, behind) = behind.split_at(length);
            came.push(packet.to_vec());
            rest = behind;
        }
    }
    if is_repaired {
        came.iter_mut().for_each(repair);
    }
    let mut went = Vec::new();
    let mut take = |header: &[u8; VIRTIO_HEADER_BYTES], packet: &[u8], count: usize| {
        assert!(packet.len() <= PACKET_BYTES_MAX);
        if count == 1 {
            went.push(packet.to_vec());
            return;
        }
        let packets = cut(&[header, packet].concat());
        assert_eq!(packets.len(), count);
        went.extend(packets);
    };
    let mut coalescer = Coalescer::new(joins_udp);
    for packet in &came {
        coalescer.push(packet, &mut take);
    }
    coalescer.flush(take);
    for packets in [&mut came, &mut went] {
        packets.iter_mut().for_each(|packet| forget_what_may_differ(packet));
        packets.sort();
    }
    assert_eq!(came, went);
}

/// None where the frame is refused.
fn cut(frame: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let count = split(&mut frame.to_vec(), |packet| packets.push(packet.to_vec()));
    assert_eq!(count.unwrap_or(0), packets.len());
    packets
}

/// Where addresses begin and where TCP or UDP does, and the protocol.
fn layout(packet: &[u8]) -> Option<(usize, usize, u8)> {
    match packet.first()? >> 4 {
        4 if packet.len() > 40 => Some((12, 20, packet[9])),
        6 if packet.len() > 60 => Some((8, 40, packet[6])),
        _ => None,
    }
}

/// Where a checksum of TCP or UDP is.
fn checksum_of(transport: usize, protocol: u8) -> Option<usize> {
    match protocol {
        6 => Some(transport + 16),
        17 => Some(transport + 6),
        _ => None,
    }
}

/// Puts lengths and checksums right, so that more packets can be joined.
fn repair(packet: &mut Vec<u8>) {
    packet.truncate(60_000);
    let Some((addresses, transport, protocol)) = layout(packet) else { return };
    let bytes = packet.len();
    let length = (bytes - transport) as u16;
    if transport == 20 {
        packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
        finish(packet, 0, 20, 10, &[0; 2]);
    } else {
        packet[4..6].copy_from_slice(&length.to_be_bytes());
    }
    if protocol == 17 {
        packet[transport + 4..transport + 6].copy_from_slice(&length.to_be_bytes());
    }
    if let Some(at) = checksum_of(transport, protocol) {
        let mut pseudo = u32::from(protocol) + u32::from(length);
        for pair in packet[addresses..transport].chunks_exact(2) {
            pseudo += u32::from(u16::from_be_bytes([pair[0], pair[1]]));
        }
        let pseudo = (pseudo & 0xffff) + (pseudo >> 16);
        let pseudo = ((pseudo & 0xffff) + (pseudo >> 16)) as u16;
        finish(packet, transport, bytes, at, &pseudo.to_be_bytes());
    }
}

/// Has the device's own way finish a checksum of a part of the packet, whose field has `start` before.
fn finish(packet: &mut [u8], from: usize, to: usize, at: usize, start: &[u8; 2]) {
    packet[at..at + 2].copy_from_slice(start);
    let mut frame = vec![0; VIRTIO_HEADER_BYTES];
    frame[0] = NEEDS_CHECKSUM;
    frame[8..10].copy_from_slice(&((at - from) as u16).to_ne_bytes());
    frame.extend_from_slice(&packet[from..to]);
    packet[from..to].copy_from_slice(&cut(&frame)[0]);
}

/// Packets that are equal but for this are as good: the identification of what must not be fragmented (RFC 6864), and
/// zero and its other form in checksums.
fn forget_what_may_differ(packet: &mut [u8]) {
    let Some((_, transport, protocol)) = layout(packet) else { return };
    let mut checksums = vec![checksum_of(transport, protocol)];
    if transport == 20 {
        if packet[6] & 0x40 != 0 {
            packet[4..6].fill(0);
            packet[10..12].fill(0);
        }
        checksums.push(Some(10));
    }
    for at in checksums.into_iter().flatten() {
        if packet[at..at + 2] == [0xff, 0xff] {
            packet[at..at + 2].fill(0);
        }
    }
}
