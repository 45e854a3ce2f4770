//! Selectors: which packets a security association is for (RFC 4301 § 4.4.1.1).

use crate::inner_packet::InnerPacket;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// All addresses that begin with certain bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// Why a text or its parts are no [`Prefix`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixError {
    /// It is not `ADDRESS/BITS`.
    Form,
    /// The address has fewer bits.
    Bits {
        /// As many as it has.
        most: u8,
    },
    /// Bits behind the prefix are set.
    HostBits {
        /// The prefix that it lies in.
        within: Prefix,
    },
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrefixError::Form => f.write_str(
                "a prefix is an address, a slash and a number of bits, as in 10.1.0.0/24 or 2001:db8::/32",
            ),
            PrefixError::Bits { most } => write!(f, "the address has {most} bits and no more"),
            PrefixError::HostBits { within } => {
                write!(f, "bits behind the prefix are set; the network is {within}")
            }
        }
    }
}

impl std::error::Error for PrefixError {}

impl Prefix {
    /// All addresses of IPv4.
    pub const ALL_V4: Prefix =
        Prefix { address: IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), bits: 0 };
    /// All addresses of IPv6.
    pub const ALL_V6: Prefix =
        Prefix { address: IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), bits: 0 };

    /// The addresses that have the first `bits` of this one.
    ///
    /// # Errors
    /// If it has fewer bits, or others are set.
    pub fn new(address: IpAddr, bits: u8) -> Result<Self, PrefixError> {
        let most = width(address);
        if bits > most {
            return Err(PrefixError::Bits { most });
        }
        let within = Prefix { address: first_bits(address, bits), bits };
        if within.address == address { Ok(within) } else { Err(PrefixError::HostBits { within }) }
    }

    /// This address alone.
    pub fn only(address: IpAddr) -> Self {
        Prefix { address, bits: width(address) }
    }

    /// Its first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits its addresses have in common.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether it is of that address's family and has it.
    pub fn contains(&self, address: IpAddr) -> bool {
        first_bits(address, self.bits) == self.address
    }
}

/// Bits of an address.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with all bits behind these cleared.
pub(crate) fn first_bits(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits.into())).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits.into())).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// `ADDRESS/BITS`, or an address alone.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let address = |text: &str| text.parse::<IpAddr>().or(Err(PrefixError::Form));
        let Some((front, bits)) = text.split_once('/') else {
            return address(text).map(Prefix::only);
        };
        let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = bits.parse::<u16>().ok().filter(|_| digits).ok_or(PrefixError::Form)?;
        let address = address(front)?;
        Prefix::new(address, u8::try_from(bits).unwrap_or(u8::MAX))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Packets by the addresses, protocol and ports of the inside, as seen from this gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The addresses on this side.
    pub local: Prefix,
    /// The addresses on the peer's side; of the family of `local`, or no packet fits.
    pub remote: Prefix,
    /// The upper protocol; `None` for any.
    pub protocol: Option<u8>,
    /// The ports on this side. If they are not all, a packet without ports (of another protocol, or a fragment that is
    /// not the first) does not fit.
    pub local_ports: RangeInclusive<u16>,
    /// The ports on the peer's side, likewise.
    pub remote_ports: RangeInclusive<u16>,
}

/// Every port.
const ALL_PORTS: RangeInclusive<u16> = 0..=u16::MAX;

impl Selector {
    /// Every packet between these.
    pub const fn between(local: Prefix, remote: Prefix) -> Self {
        Selector { local, remote, protocol: None, local_ports: ALL_PORTS, remote_ports: ALL_PORTS }
    }

    /// Whether a packet that comes from this side fits.
    pub fn fits_outbound(&self, packet: &InnerPacket<'_>) -> bool {
        self.local.contains(packet.source())
            && self.remote.contains(packet.destination())
            && self.fits_outbound_upper(packet)
    }

    /// Whether protocol and ports of a packet that comes from this side fit.
    pub(crate) fn fits_outbound_upper(&self, packet: &InnerPacket<'_>) -> bool {
        self.fits_upper(packet.protocol(), packet.ports())
    }

    /// Whether a packet that comes from the peer fits.
    pub fn fits_inbound(&self, packet: &InnerPacket<'_>) -> bool {
        let ports = packet.ports().map(|(source, destination)| (destination, source));
        self.local.contains(packet.destination())
            && self.remote.contains(packet.source())
            && self.fits_upper(packet.protocol(), ports)
    }

    fn fits_upper(&self, protocol: u8, ports: Option<(u16, u16)>) -> bool {
        let fits = |wanted: &RangeInclusive<u16>, port: Option<u16>| {
            *wanted == ALL_PORTS || port.is_some_and(|port| wanted.contains(&port))
        };
        self.protocol.is_none_or(|wanted| wanted == protocol)
            && fits(&self.local_ports, ports.map(|ports| ports.0))
            && fits(&self.remote_ports, ports.map(|ports| ports.1))
    }
}

/// Packets that may come out of a security association: those that fit any of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selectors(pub Vec<Selector>);

impl Selectors {
    /// Every packet.
    pub fn any() -> Self {
        let all = [Prefix::ALL_V4, Prefix::ALL_V6];
        Selectors(all.map(|all| Selector::between(all, all)).into())
    }

    /// Whether a packet that comes from the peer fits one of them.
    pub fn fit_inbound(&self, packet: &InnerPacket<'_>) -> bool {
        self.0.iter().any(|selector| selector.fits_inbound(packet))
    }
}
