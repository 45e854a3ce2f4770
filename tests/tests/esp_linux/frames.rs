//! Frames of the wire between gateway and guest: what they are, and others made of them.

use std::net::IpAddr;

/// An Ethernet header, in bytes.
const ETHERNET: usize = 14;
const UDP: u8 = 17;
const ESP: u8 = 50;

/// What a frame is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// An ESP packet in IP or in UDP: which bytes of the frame it is.
    Esp { at: usize, udp: bool },
    /// Another IP packet, with its protocol.
    Other { protocol: u8 },
    /// Neighbour discovery, ARP and the like, and what keeps a NAT's mapping (RFC 3948 § 2.3).
    Link,
}

/// A frame that was looked at.
pub struct Frame<'a> {
    bytes: &'a [u8],
    pub kind: Kind,
}

impl<'a> Frame<'a> {
    pub fn of(bytes: &'a [u8]) -> Frame<'a> {
        Frame { bytes, kind: kind(bytes) }
    }

    /// The ESP packet, from its SPI to its ICV.
    pub fn esp(&self) -> Option<&'a [u8]> {
        match self.kind {
            Kind::Esp { at, .. } => Some(&self.bytes[at..end(self.bytes)]),
            _ => None,
        }
    }

    /// The ESP packet's SPI, and the low half of its number.
    pub fn spi_and_number(&self) -> Option<(u32, u32)> {
        let word =
            |at: usize| Some(u32::from_be_bytes(self.esp()?.get(at..at + 4)?.try_into().ok()?));
        Some((word(0)?, word(4)?))
    }

    /// A frame as this one with another ESP packet: lengths and checksums fit.
    pub fn with_esp(&self, esp: &[u8]) -> Vec<u8> {
        let Kind::Esp { at, udp } = self.kind else { panic!("no ESP packet") };
        let mut frame = [&self.bytes[..at], esp].concat();
        if udp {
            let length = (8 + esp.len()) as u16;
            frame[at - 4..at - 2].copy_from_slice(&length.to_be_bytes());
        }
        finish(&mut frame);
        frame
    }
}

/// The ECN bits of a frame's outer header.
pub fn ecn(frame: &[u8]) -> u8 {
    let ip = &frame[ETHERNET..];
    if ip[0] >> 4 == 4 { ip[1] & 3 } else { (ip[1] >> 4) & 3 }
}

/// Sets them.
pub fn set_ecn(frame: &mut [u8], ecn: u8) {
    let ip = &mut frame[ETHERNET..];
    if ip[0] >> 4 == 4 {
        ip[1] = ip[1] & !3 | ecn;
    } else {
        ip[1] = ip[1] & !0x30 | ecn << 4;
    }
    finish(frame);
}

/// Whether its IP packet is a fragment.
pub fn is_fragment(frame: &[u8]) -> bool {
    let ip = &frame[ETHERNET..];
    if ip[0] >> 4 == 4 { ip[6] & 0x3f != 0 || ip[7] != 0 } else { ip[6] == 44 }
}

/// The frame as two fragments of its IP packet, the first with so many bytes of payload, which eight divides.
pub fn fragments(frame: &[u8], bytes: usize, identification: u32) -> [Vec<u8>; 2] {
    let whole = &frame[..end(frame)];
    let v4 = whole[ETHERNET] >> 4 == 4;
    let header = ETHERNET + if v4 { usize::from(whole[ETHERNET] & 15) * 4 } else { 40 };
    let (head, payload) = whole.split_at(header);
    let (first, second) = payload.split_at(bytes);
    [(first, 0, true), (second, bytes, false)].map(|(part, offset, more)| {
        let mut fragment = head.to_vec();
        let place = (offset as u16 / 8, u16::from(more));
        if v4 {
            let ip = &mut fragment[ETHERNET..];
            ip[4..6].copy_from_slice(&(identification as u16).to_be_bytes());
            ip[6..8].copy_from_slice(&(place.1 << 13 | place.0).to_be_bytes());
        } else {
            // RFC 8200 § 4.5
            let next = std::mem::replace(&mut fragment[ETHERNET + 6], 44);
            fragment.extend([next, 0]);
            fragment.extend((place.0 << 3 | place.1).to_be_bytes());
            fragment.extend(identification.to_be_bytes());
        }
        fragment.extend(part);
        set_length(&mut fragment);
        fragment
    })
}

/// A UDP datagram between two addresses, to this port, in clear text.
pub fn datagram(ethernet: &[u8], from: IpAddr, to: IpAddr, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = ethernet[..12].to_vec();
    let length = (8 + payload.len()) as u16;
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            frame.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0]);
            frame.extend(from.octets().iter().chain(&to.octets()));
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, UDP, 64]);
            frame.extend(from.octets().iter().chain(&to.octets()));
        }
        _ => panic!("two families"),
    }
    frame.extend(4500u16.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    finish(&mut frame);
    frame
}

/// The frame with another source in its outer header.
pub fn from(frame: &[u8], source: IpAddr) -> Vec<u8> {
    let mut frame = frame.to_vec();
    match source {
        IpAddr::V4(it) => frame[ETHERNET + 12..ETHERNET + 16].copy_from_slice(&it.octets()),
        IpAddr::V6(it) => frame[ETHERNET + 8..ETHERNET + 24].copy_from_slice(&it.octets()),
    }
    finish(&mut frame);
    frame
}

/// Sets the length in the IP header and all checksums outside of ESP by what there is behind.
pub fn finish(frame: &mut [u8]) {
    set_length(frame);
    let ip = &mut frame[ETHERNET..];
    let (header, protocol, pseudo) = if ip[0] >> 4 == 4 {
        (usize::from(ip[0] & 15) * 4, ip[9], ip[12..20].to_vec())
    } else {
        (40, ip[6], ip[8..40].to_vec())
    };
    if protocol == UDP {
        let udp = &mut ip[header..];
        let length = udp.len() as u32;
        udp[6..8].fill(0);
        let start = u32::from(!checksum(&pseudo, u32::from(UDP) + length));
        let sum = checksum(udp, start);
        udp[6..8].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
    }
}

fn set_length(frame: &mut [u8]) {
    let ip = &mut frame[ETHERNET..];
    if ip[0] >> 4 == 4 {
        let header = usize::from(ip[0] & 15) * 4;
        let length = ip.len() as u16;
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        ip[10..12].fill(0);
        let sum = checksum(&ip[..header], 0);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        let length = (ip.len() - 40) as u16;
        ip[4..6].copy_from_slice(&length.to_be_bytes());
    }
}

/// The Internet checksum (RFC 1071).
pub fn checksum(bytes: &[u8], start: u32) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|two| u32::from(u16::from_be_bytes([two[0], two.get(1).copied().unwrap_or(0)])));
    let mut sum = words.fold(start, |sum, word| sum + word);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Where the IP packet ends: short frames have more bytes.
fn end(frame: &[u8]) -> usize {
    let ip = &frame[ETHERNET..];
    let length = if ip[0] >> 4 == 4 {
        usize::from(u16::from_be_bytes([ip[2], ip[3]]))
    } else {
        40 + usize::from(u16::from_be_bytes([ip[4], ip[5]]))
    };
    frame.len().min(ETHERNET + length)
}

fn kind(frame: &[u8]) -> Kind {
    let (protocol, at) = match (frame.get(12..14), frame.get(ETHERNET..)) {
        (Some([8, 0]), Some(ip)) if ip.len() >= 20 => (ip[9], usize::from(ip[0] & 15) * 4),
        (Some([0x86, 0xdd]), Some(ip)) if ip.len() >= 40 => match ip[6] {
            // Multicast reports have options before them.
            0 => return Kind::Link,
            58 if (130..=137).contains(&ip.get(40).copied().unwrap_or(0)) => return Kind::Link,
            protocol => (protocol, 40),
        },
        _ => return Kind::Link,
    };
    let at = ETHERNET + at;
    match (protocol, frame.get(at..at + 8)) {
        (ESP, Some(_)) => Kind::Esp { at, udp: false },
        (UDP, Some([.., _, _, _, _])) if frame[at + 2..at + 4] == 4500u16.to_be_bytes() => {
            let length = u16::from_be_bytes([frame[at + 4], frame[at + 5]]);
            match frame.get(at + 8..at + 12) {
                _ if length == 9 && frame.get(at + 8) == Some(&0xff) => Kind::Link,
                Some([0, 0, 0, 0]) | None => Kind::Other { protocol },
                Some(_) => Kind::Esp { at: at + 8, udp: true },
            }
        }
        _ => Kind::Other { protocol },
    }
}
