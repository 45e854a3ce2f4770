//! The header of an IP packet, read once.

use crate::checksum;
use crate::limits::EXTENSION_HEADERS_MAX;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Numbers of protocols and next headers.
pub(crate) mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ICMP: u8 = 1;
    pub const IPV4: u8 = 4;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const DCCP: u8 = 33;
    pub const IPV6: u8 = 41;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const ICMPV6: u8 = 58;
    pub const NONE: u8 = 59;
    pub const DESTINATION: u8 = 60;
    pub const SCTP: u8 = 132;
    pub const UDP_LITE: u8 = 136;
}

/// Bytes of the header of IPv4 without options.
pub(crate) const IPV4_BYTES: usize = 20;
/// Bytes of the header of IPv6 without extensions.
pub(crate) const IPV6_BYTES: usize = 40;

/// The bits of the traffic class that are for congestion (RFC 3168 § 5).
const ECN_MASK: u8 = 3;

/// No whole IP packet: wrong lengths, another version, or headers that reach out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no whole IP packet")
    }
}

impl std::error::Error for Malformed {}

/// An IP packet whose header was read and checked: versions, lengths, extension headers, fragments, ports. The
/// header's checksum was not checked: routers do that.
#[derive(Clone, Copy, Debug)]
pub struct InnerPacket<'a> {
    bytes: &'a [u8],
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ports: Option<(u16, u16)>,
    traffic_class: u8,
    /// Where the upper protocol's header begins.
    upper_at: usize,
    is_fragment: bool,
    is_later_fragment: bool,
    dont_fragment: bool,
    /// It has headers that routers look at, or that of a fragment.
    for_routers: bool,
}

impl<'a> InnerPacket<'a> {
    /// Reads the packet at the front of these bytes. Bytes behind it are left out.
    ///
    /// # Errors
    /// [`Malformed`] if there is none.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match bytes.first().map(|first| first >> 4) {
            Some(4) => Self::parse_v4(bytes),
            Some(6) => Self::parse_v6(bytes),
            _ => None,
        }
        .ok_or(Malformed)
    }

    fn parse_v4(bytes: &'a [u8]) -> Option<Self> {
        let fixed: &[u8; IPV4_BYTES] = bytes.first_chunk()?;
        let header_bytes = usize::from(fixed[0] & 15) * 4;
        let bytes = bytes.get(..usize::from(word(fixed, 2)?))?;
        if header_bytes < IPV4_BYTES || header_bytes > bytes.len() {
            return None;
        }
        let fragment = word(fixed, 6)?;
        let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *fixed;
        let (is_fragment, is_later_fragment) = (fragment & 0x3fff != 0, fragment & 0x1fff != 0);
        let mut packet = InnerPacket {
            bytes,
            source: Ipv4Addr::new(s0, s1, s2, s3).into(),
            destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
            protocol: fixed[9],
            ports: None,
            traffic_class: fixed[1],
            upper_at: header_bytes,
            is_fragment,
            is_later_fragment,
            dont_fragment: fragment & 0x4000 != 0,
            for_routers: header_bytes > IPV4_BYTES,
        };
        packet.ports = packet.find_ports();
        Some(packet)
    }

    fn parse_v6(bytes: &'a [u8]) -> Option<Self> {
        let fixed: &[u8; IPV6_BYTES] = bytes.first_chunk()?;
        let payload_bytes = usize::from(word(fixed, 4)?);
        let bytes = bytes.get(..IPV6_BYTES + payload_bytes)?;
        let address = |at: usize| Some(Ipv6Addr::from(*fixed.get(at..)?.first_chunk::<16>()?));
        let mut packet = InnerPacket {
            bytes,
            source: address(8)?.into(),
            destination: address(24)?.into(),
            protocol: fixed[6],
            ports: None,
            traffic_class: (word(fixed, 0)? >> 4) as u8,
            upper_at: IPV6_BYTES,
            is_fragment: false,
            is_later_fragment: false,
            dont_fragment: true,
            for_routers: false,
        };
        packet.skip_extensions()?;
        packet.ports = packet.find_ports();
        Some(packet)
    }

    /// Goes behind the extension headers of IPv6 (RFC 8200 § 4).
    fn skip_extensions(&mut self) -> Option<()> {
        use protocol::*;
        for _ in 0..EXTENSION_HEADERS_MAX {
            let here = self.bytes.get(self.upper_at..)?;
            let bytes = match self.protocol {
                HOP_BY_HOP | ROUTING => {
                    self.for_routers = true;
                    (usize::from(*here.get(1)?) + 1) * 8
                }
                DESTINATION => (usize::from(*here.get(1)?) + 1) * 8,
                FRAGMENT => {
                    let fragment = word(here, 2)?;
                    self.is_fragment |= fragment & 0xfff9 != 0;
                    self.is_later_fragment |= fragment & 0xfff8 != 0;
                    self.for_routers = true;
                    8
                }
                _ => return Some(()),
            };
            self.protocol = *here.first()?;
            here.get(..bytes)?;
            self.upper_at += bytes;
            if self.is_later_fragment {
                return Some(());
            }
        }
        None
    }

    fn find_ports(&self) -> Option<(u16, u16)> {
        use protocol::*;
        let has_ports = matches!(self.protocol, TCP | UDP | DCCP | SCTP | UDP_LITE);
        if !has_ports || self.is_later_fragment {
            return None;
        }
        let upper = self.upper();
        Some((word(upper, 0)?, word(upper, 2)?))
    }

    /// The whole packet, as long as its header says.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its source.
    pub fn source(&self) -> IpAddr {
        self.source
    }

    /// Its destination.
    pub fn destination(&self) -> IpAddr {
        self.destination
    }

    /// The number of the upper protocol, behind extension headers of IPv6; of a fragment that is not the first, that of
    /// the header that was behind the fragment's in the whole packet.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// The ports of source and destination, where the protocol has them (TCP, UDP, UDP-Lite, SCTP, DCCP) and they are in
    /// this packet.
    pub fn ports(&self) -> Option<(u16, u16)> {
        self.ports
    }

    /// Whether it is a fragment of a packet, and not all of it.
    pub fn is_fragment(&self) -> bool {
        self.is_fragment
    }

    /// Whether it is a fragment that is not the first.
    pub fn is_later_fragment(&self) -> bool {
        self.is_later_fragment
    }

    /// The two bits of congestion notification (RFC 3168 § 5): 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub fn ecn(&self) -> u8 {
        self.traffic_class & ECN_MASK
    }

    /// The six bits of differentiated services (RFC 2474 § 3).
    pub fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// Whether no router may cut it into fragments: IPv6, or DF is set.
    pub fn dont_fragment(&self) -> bool {
        self.dont_fragment
    }

    /// The bytes behind its header and the extension headers that were understood.
    pub(crate) fn upper(&self) -> &'a [u8] {
        self.bytes.get(self.upper_at..).unwrap_or_default()
    }

    /// The next header and the payload that transport mode seals (RFC 4303 § 3.1.1). `None` if it cannot.
    pub(crate) fn transport(&self) -> Option<(u8, &'a [u8])> {
        if self.is_fragment || self.for_routers {
            return None;
        }
        match self.source {
            IpAddr::V4(_) => Some((*self.bytes.get(9)?, self.bytes.get(IPV4_BYTES..)?)),
            IpAddr::V6(_) => Some((*self.bytes.get(6)?, self.bytes.get(IPV6_BYTES..)?)),
        }
    }
}

/// Sets the congestion bits of a packet that was parsed, and its checksum.
pub(crate) fn set_ecn(packet: &mut [u8], ecn: u8) {
    match packet {
        [first, class, _, _, _, _, _, _, _, _, high, low, ..] if *first >> 4 == 4 => {
            let old = [*first, *class];
            *class = *class & !ECN_MASK | ecn & ECN_MASK;
            [*high, *low] = checksum::updated([*high, *low], old, [*first, *class]);
        }
        [first, second, ..] if *first >> 4 == 6 => {
            *second = *second & !(ECN_MASK << 4) | (ecn & ECN_MASK) << 4;
        }
        _ => {}
    }
}

/// Writes the header of a packet that came in transport mode: 20 or 40 bytes, for a payload of so many. Returns `None`
/// if the addresses are not of one family, or the payload is too long for it.
pub(crate) fn write_header(
    header: &mut [u8],
    (source, destination): (IpAddr, IpAddr),
    (next_header, payload_bytes): (u8, usize),
    ecn: u8,
) -> Option<()> {
    let ecn = ecn & ECN_MASK;
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header: &mut [u8; IPV4_BYTES] = header.try_into().ok()?;
            let [high, low] = u16::try_from(IPV4_BYTES + payload_bytes).ok()?.to_be_bytes();
            let fields = [0x45, ecn, high, low, 0, 0, 0x40, 0, HOPS, next_header, 0, 0];
            let (front, addresses) = header.split_first_chunk_mut::<12>()?;
            *front = fields;
            let both = [source.octets(), destination.octets()];
            addresses.copy_from_slice(both.as_flattened());
            let sum = checksum::checksum(&header[..], 0);
            header[10..12].copy_from_slice(&sum);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header: &mut [u8; IPV6_BYTES] = header.try_into().ok()?;
            let [high, low] = u16::try_from(payload_bytes).ok()?.to_be_bytes();
            let (front, addresses) = header.split_first_chunk_mut::<8>()?;
            *front = [0x60, ecn << 4, 0, 0, high, low, next_header, HOPS];
            let both = [source.octets(), destination.octets()];
            addresses.copy_from_slice(both.as_flattened());
        }
        _ => return None,
    }
    Some(())
}

/// The hops that a packet which has arrived may still go.
pub(crate) const HOPS: u8 = 64;

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
