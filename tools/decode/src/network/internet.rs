//! IPv4 (RFC 791) and IPv6 (RFC 8200), and the headers of TCP (RFC 9293) and UDP (RFC 768) in them.

use super::fragments::{Fragment, Fragments, Key};
use super::{Content, Datagram as Message, Octets, Segment};
use crate::limits::EXTENSION_HEADERS_MAX;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_BYTES: usize = 8;

/// Extension headers of IPv6, by number.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;

const IPV4_BYTES_MIN: usize = 20;
const IPV6_BYTES: usize = 40;
const TCP_BYTES_MIN: usize = 20;

/// A datagram above the internet layer.
struct Datagram<'a> {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    /// Its identification and place, if it is a fragment.
    fragment: Option<(u32, Fragment)>,
    rest: Octets<'a>,
}

pub(super) fn content<'a>(fragments: &'a mut Fragments, octets: Octets<'a>) -> Content<'a> {
    let datagram = match octets.octet(0).map(|octet| octet >> 4) {
        Some(4) => ipv4(octets),
        Some(6) => ipv6(octets),
        Some(_) => return Content::Other,
        None => return Content::Unreadable,
    };
    let Some(datagram) = datagram else { return Content::Unreadable };
    let protocol = datagram.protocol;
    if protocol != TCP && protocol != UDP {
        return Content::Other;
    }
    let (source, destination) = (datagram.source, datagram.destination);
    let rest = match datagram.fragment {
        None => datagram.rest,
        Some((identification, place)) => {
            let key = Key { source, destination, identification };
            let whole = datagram.rest.data.len() == datagram.rest.original;
            match fragments.add(key, place, datagram.rest.data, whole) {
                Some(data) => Octets { data, original: data.len() },
                None => return Content::Fragment,
            }
        }
    };
    let content = match protocol {
        UDP => message(source, destination, rest).map(Content::Datagram),
        _ => segment(source, destination, rest).map(Content::Segment),
    };
    content.unwrap_or(Content::Unreadable)
}

fn message(source: IpAddr, destination: IpAddr, octets: Octets<'_>) -> Option<Message<'_>> {
    let payload = octets.skip(UDP_BYTES)?;
    let length = usize::from(octets.u16(4)?).checked_sub(UDP_BYTES)?;
    let payload = payload.first(length);
    Some(Message {
        from: SocketAddr::new(source, octets.u16(0)?),
        to: SocketAddr::new(destination, octets.u16(2)?),
        payload: payload.data,
        missing: payload.original - payload.data.len(),
    })
}

fn ipv4(octets: Octets<'_>) -> Option<Datagram<'_>> {
    let header = usize::from(octets.octet(0)? & 0x0f) * 4;
    if header < IPV4_BYTES_MIN {
        return None;
    }
    // Captured before the network card cut it into packets, its length may be nought.
    let octets = match usize::from(octets.u16(2)?) {
        0 => octets,
        total => octets.first(total),
    };
    let (flags, more) = (octets.u16(6)?, octets.u16(6)? & 0x2000 != 0);
    let offset = usize::from(flags & 0x1fff) * 8;
    let fragment = (more || offset > 0)
        .then(|| Some((u32::from(octets.u16(4)?), Fragment { offset, more })))
        .flatten();
    Some(Datagram {
        source: Ipv4Addr::from_bits(octets.u32(12)?).into(),
        destination: Ipv4Addr::from_bits(octets.u32(16)?).into(),
        protocol: octets.octet(9)?,
        fragment,
        rest: octets.skip(header)?,
    })
}

fn ipv6(octets: Octets<'_>) -> Option<Datagram<'_>> {
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = *octets.data.get(at..)?.first_chunk()?;
        Some(Ipv6Addr::from(octets).into())
    };
    let payload = octets.skip(IPV6_BYTES)?;
    let mut datagram = Datagram {
        source: address(8)?,
        destination: address(24)?,
        protocol: octets.octet(6)?,
        fragment: None,
        rest: match usize::from(octets.u16(4)?) {
            0 => payload,
            length => payload.first(length),
        },
    };
    for _ in 0..EXTENSION_HEADERS_MAX {
        if !extension(&mut datagram)? {
            break;
        }
    }
    Some(datagram)
}

/// Steps over an extension header. `false` if there is none, or what follows is not to be read yet.
fn extension(datagram: &mut Datagram<'_>) -> Option<bool> {
    let rest = datagram.rest;
    let length = match datagram.protocol {
        HOP_BY_HOP | ROUTING | DESTINATION => (usize::from(rest.octet(1)?) + 1) * 8,
        AUTHENTICATION => (usize::from(rest.octet(1)?) + 2) * 4,
        FRAGMENT => 8,
        _ => return Some(false),
    };
    let is_fragment = datagram.protocol == FRAGMENT;
    if is_fragment {
        let (place, identification) = (rest.u16(2)?, rest.u32(4)?);
        let place = Fragment { offset: usize::from(place & 0xfff8), more: place & 1 != 0 };
        // One that is alone is no fragment (RFC 6946).
        datagram.fragment = (place.offset > 0 || place.more).then_some((identification, place));
    }
    datagram.protocol = rest.octet(0)?;
    datagram.rest = rest.skip(length)?;
    Some(datagram.fragment.is_none())
}

fn segment(source: IpAddr, destination: IpAddr, octets: Octets<'_>) -> Option<Segment<'_>> {
    let header = usize::from(octets.octet(12)? >> 4) * 4;
    if header < TCP_BYTES_MIN {
        return None;
    }
    let flags = octets.octet(13)?;
    // Options may be cut off: what counts is how much of the payload is there.
    let missing_header = header.saturating_sub(octets.data.len());
    let payload = octets.data.get(header..).unwrap_or_default();
    let original = octets.original.checked_sub(header)?;
    Some(Segment {
        from: SocketAddr::new(source, octets.u16(0)?),
        to: SocketAddr::new(destination, octets.u16(2)?),
        sequence: octets.u32(4)?,
        acknowledgement: (flags & 0x10 != 0).then_some(octets.u32(8)?),
        syn: flags & 0x02 != 0,
        fin: flags & 0x01 != 0,
        rst: flags & 0x04 != 0,
        payload,
        missing: if missing_header > 0 { original } else { original - payload.len() },
    })
}
