//! Addresses and control messages as the system's calls have them.

use crate::system::ADDRESS_BYTES;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Bytes of `struct sockaddr_in`.
const ADDRESS_BYTES_V4: usize = size_of::<libc::sockaddr_in>();
/// Bytes of a control message's header.
const CONTROL_HEADER_BYTES: usize = size_of::<libc::cmsghdr>();
/// Control messages begin at multiples of this.
const CONTROL_ALIGN: usize = size_of::<usize>();

/// An address of one family as the system has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAddress {
    bytes: [u8; ADDRESS_BYTES],
    used: usize,
}

impl RawAddress {
    /// `is_ipv6`: the socket is, so that an IPv4 address is mapped (RFC 4291, section 2.5.5.2).
    pub fn new(address: SocketAddr, is_ipv6: bool) -> RawAddress {
        let mut bytes = [0; ADDRESS_BYTES];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let address = match address {
            SocketAddr::V4(address) if !is_ipv6 => {
                bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                bytes[4..8].copy_from_slice(&address.ip().octets());
                return RawAddress { bytes, used: ADDRESS_BYTES_V4 };
            }
            SocketAddr::V4(address) => {
                SocketAddrV6::new(address.ip().to_ipv6_mapped(), address.port(), 0, 0)
            }
            SocketAddr::V6(address) => address,
        };
        bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        bytes[8..24].copy_from_slice(&address.ip().octets());
        bytes[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
        RawAddress { bytes, used: ADDRESS_BYTES }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

/// The address; a mapped one is IPv4. None where it is of another family.
pub(crate) fn read_address(bytes: &[u8; ADDRESS_BYTES]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    match i32::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
        libc::AF_INET => {
            let octets: [u8; 4] = *bytes[4..].first_chunk()?;
            Some(SocketAddrV4::new(Ipv4Addr::from(octets), port).into())
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = *bytes[8..].first_chunk()?;
            let address = Ipv6Addr::from(octets);
            if let Some(address) = address.to_ipv4_mapped() {
                return Some(SocketAddrV4::new(address, port).into());
            }
            let scope = u32::from_ne_bytes(*bytes[24..].first_chunk()?);
            Some(SocketAddrV6::new(address, port, 0, scope).into())
        }
        _ => None,
    }
}

/// Control messages of a datagram to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    bytes: [u8; 64],
    used: usize,
}

impl Control {
    /// None.
    pub const NONE: Control = Control { bytes: [0; 64], used: 0 };

    /// Adds one of at most [`CONTROL_ALIGN`] bytes. Two fit.
    pub fn add(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        let message = &mut self.bytes[self.used..];
        let length = CONTROL_HEADER_BYTES + data.len();
        let (word, int) = (size_of::<usize>(), size_of::<libc::c_int>());
        message[..word].copy_from_slice(&length.to_ne_bytes());
        message[word..word + int].copy_from_slice(&level.to_ne_bytes());
        message[word + int..word + 2 * int].copy_from_slice(&kind.to_ne_bytes());
        message[CONTROL_HEADER_BYTES..length].copy_from_slice(data);
        self.used += length.next_multiple_of(CONTROL_ALIGN);
    }

    /// The first of them alone, which has at most [`CONTROL_ALIGN`] bytes.
    pub fn first(&self) -> Control {
        let used = self.used.min(CONTROL_HEADER_BYTES + CONTROL_ALIGN);
        Control { used, ..*self }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

/// What the control messages of a datagram that was received say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// IPv4's type of service, or IPv6's traffic class.
    pub traffic_class: u8,
    pub destination: Option<IpAddr>,
    /// Bytes of each datagram, where several were joined.
    pub segment_bytes: Option<usize>,
}

impl Told {
    /// Reads as far as they are sound.
    pub fn read(mut control: &[u8]) -> Told {
        let mut told = Told::default();
        let (word, int) = (size_of::<usize>(), size_of::<libc::c_int>());
        while let Some(header) = control.get(..CONTROL_HEADER_BYTES) {
            let length =
                header[..word].first_chunk().map_or(0, |bytes| usize::from_ne_bytes(*bytes));
            let Some(data) = control.get(CONTROL_HEADER_BYTES..length) else { break };
            told.take(read_int(&header[word..]), read_int(&header[word + int..]), data);
            let next = length.next_multiple_of(CONTROL_ALIGN);
            control = control.get(next..).unwrap_or_default();
        }
        told
    }

    fn take(&mut self, level: i32, kind: i32, data: &[u8]) {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                self.traffic_class = data.first().copied().unwrap_or_default();
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => self.traffic_class = read_int(data) as u8,
            // `struct in_pktinfo`: the interface, the local address, the destination of the header.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let octets = data.get(8..).and_then(|data| data.first_chunk::<4>());
                self.destination = octets.map(|&octets| IpAddr::from(octets));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let octets = data.first_chunk::<16>();
                self.destination = octets.map(|&octets| IpAddr::from(octets).to_canonical());
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                self.segment_bytes = usize::try_from(read_int(data)).ok();
            }
            _ => {}
        }
    }
}

/// An `int` at the start of the bytes; 0 where they are fewer.
fn read_int(bytes: &[u8]) -> i32 {
    bytes.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_come_back() {
        for (text, is_ipv6) in [
            ("192.0.2.1:4500", false),
            ("192.0.2.1:4500", true),
            ("[2001:db8::1]:7", true),
            ("[fe80::1%3]:0", true),
        ] {
            let address: SocketAddr = text.parse().unwrap();
            let raw = RawAddress::new(address, is_ipv6);
            assert_eq!(read_address(&raw.bytes), Some(address));
        }
        assert_eq!(read_address(&[0; ADDRESS_BYTES]), None);
    }

    #[test]
    fn control_messages_come_back() {
        let mut control = Control::NONE;
        control.add(libc::IPPROTO_IP, libc::IP_TOS, &3_i32.to_ne_bytes());
        control.add(libc::SOL_UDP, libc::UDP_GRO, &1_400_i32.to_ne_bytes());
        let told = Told::read(control.as_bytes());
        assert_eq!(told.traffic_class, 3);
        assert_eq!(told.segment_bytes, Some(1_400));
    }

    proptest! {
        #[test]
        fn any_control_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            Told::read(&bytes);
        }
    }
}
