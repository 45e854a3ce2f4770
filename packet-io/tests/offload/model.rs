//! Packets built from nothing, field by field, with the checksum as RFC 1071 describes it.

/// A TCP or UDP packet, or one to be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub is_ipv6: bool,
    pub is_tcp: bool,
    pub from: u8,
    pub port: u16,
    pub traffic_class: u8,
    pub identification: u16,
    pub has_df: bool,
    pub hop_limit: u8,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    pub window: u16,
    /// Of TCP, a multiple of 4 bytes.
    pub options: Vec<u8>,
    pub data: Vec<u8>,
}

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const PSH: u8 = 0x08;
pub const ACK: u8 = 0x10;
pub const URG: u8 = 0x20;
pub const ECE: u8 = 0x40;
pub const CWR: u8 = 0x80;

impl Packet {
    pub fn tcp(is_ipv6: bool, sequence: u32, data: Vec<u8>) -> Packet {
        Packet {
            is_ipv6,
            is_tcp: true,
            from: 1,
            port: 5_001,
            traffic_class: 0,
            identification: 7,
            has_df: true,
            hop_limit: 64,
            sequence,
            acknowledgement: 99,
            flags: ACK,
            window: 501,
            options: vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
            data,
        }
    }

    pub fn udp(is_ipv6: bool, data: Vec<u8>) -> Packet {
        Packet { is_tcp: false, options: Vec::new(), ..Packet::tcp(is_ipv6, 0, data) }
    }

    fn transport_header_bytes(&self) -> usize {
        if self.is_tcp { 20 + self.options.len() } else { 8 }
    }

    fn network_header_bytes(&self) -> usize {
        if self.is_ipv6 { 40 } else { 20 }
    }

    /// Whole, with its checksums.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.with_pseudo_sum();
        let at = self.checksum();
        let start = self.network_header_bytes();
        let value = match !sum(&bytes[start..]) {
            0 => 0xffff,
            value => value,
        };
        bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
        bytes
    }

    fn checksum(&self) -> usize {
        self.network_header_bytes() + if self.is_tcp { 16 } else { 6 }
    }

    /// With the pseudo-header's sum in the place of the checksum of TCP or UDP.
    fn with_pseudo_sum(&self) -> Vec<u8> {
        let length = self.transport_header_bytes() + self.data.len();
        let protocol = if self.is_tcp { 6 } else { 17 };
        let mut bytes = Vec::new();
        let addresses;
        if self.is_ipv6 {
            bytes.extend([0x60 | self.traffic_class >> 4, self.traffic_class << 4, 0, 0]);
            bytes.extend((length as u16).to_be_bytes());
            bytes.extend([protocol, self.hop_limit]);
            addresses = bytes.len();
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, self.from]);
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        } else {
            bytes.extend([0x45, self.traffic_class]);
            bytes.extend((20 + length as u16).to_be_bytes());
            bytes.extend(self.identification.to_be_bytes());
            bytes.extend([if self.has_df { 0x40 } else { 0 }, 0]);
            bytes.extend([self.hop_limit, protocol, 0, 0]);
            addresses = bytes.len();
            bytes.extend([10, 0, 0, self.from, 10, 0, 1, 0]);
            let header = !sum(&bytes);
            bytes[10..12].copy_from_slice(&header.to_be_bytes());
        }
        let mut pseudo = bytes[addresses..].to_vec();
        pseudo.extend((length as u32).to_be_bytes());
        pseudo.extend([0, 0, 0, protocol]);
        let pseudo = sum(&pseudo).to_be_bytes();
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(443_u16.to_be_bytes());
        if self.is_tcp {
            bytes.extend(self.sequence.to_be_bytes());
            bytes.extend(self.acknowledgement.to_be_bytes());
            bytes.extend([(5 + self.options.len() as u8 / 4) << 4, self.flags]);
            bytes.extend(self.window.to_be_bytes());
            bytes.extend(pseudo);
            bytes.extend([0, 0]);
            bytes.extend(&self.options);
        } else {
            bytes.extend((length as u16).to_be_bytes());
            bytes.extend(pseudo);
        }
        bytes.extend(&self.data);
        bytes
    }

    /// What the kernel hands over, to be cut into segments of so many bytes.
    pub fn frame(&self, segment_bytes: usize) -> Vec<u8> {
        let kind = match (self.is_tcp, self.is_ipv6) {
            (true, false) => 1,
            (true, true) => 4,
            (false, _) => 5,
        };
        let ecn = if self.is_tcp && self.flags & CWR != 0 { 0x80 } else { 0 };
        let mut frame = vec![1, kind | ecn];
        let headers = self.network_header_bytes() + self.transport_header_bytes();
        frame.extend((headers as u16).to_ne_bytes());
        frame.extend((segment_bytes as u16).to_ne_bytes());
        frame.extend((self.network_header_bytes() as u16).to_ne_bytes());
        let field = self.checksum() - self.network_header_bytes();
        frame.extend((field as u16).to_ne_bytes());
        frame.extend(self.with_pseudo_sum());
        frame
    }

    /// What goes over the wire in its place.
    pub fn segments(&self, segment_bytes: usize) -> Vec<Packet> {
        let pieces = self.data.chunks(segment_bytes);
        let last = pieces.len().saturating_sub(1);
        let each = pieces.enumerate().map(|(index, data)| Packet {
            identification: self.identification.wrapping_add(index as u16),
            sequence: self.sequence.wrapping_add((index * segment_bytes) as u32),
            flags: match index {
                0 if last == 0 => self.flags,
                0 => self.flags & !(PSH | FIN),
                _ if index == last => self.flags & !CWR,
                _ => self.flags & !(CWR | PSH | FIN),
            },
            data: data.to_vec(),
            ..self.clone()
        });
        each.collect()
    }
}

/// The one's complement sum of 16-bit words.
fn sum(bytes: &[u8]) -> u16 {
    let mut total = 0_u32;
    for pair in bytes.chunks(2) {
        total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}
