//! Interfaces, addresses and routes: requests to the kernel's rtnetlink (rtnetlink(7)), each answered before the next.

use crate::limits::NETLINK_BYTES_MAX;
use crate::system;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// Bytes of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// Bytes of `struct rtmsg`.
const ROUTE_BYTES: usize = 12;

/// A connection to rtnetlink.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    answer: Vec<u8>,
}

/// A request's bytes behind its header.
struct Body(Vec<u8>);

impl Body {
    fn attribute(mut self, kind: u16, data: &[u8]) -> Body {
        self.0.extend_from_slice(&(data.len() as u16 + 4).to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

impl Netlink {
    pub fn open() -> io::Result<Netlink> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // That is rtnetlink.
            None,
        )?;
        // What is asked for is filtered by the kernel (Linux 4.20). Before, answers have more, which is filtered here.
        let on = 1_i32.to_ne_bytes();
        let _ = system::set_option(&socket, libc::SOL_NETLINK, libc::NETLINK_GET_STRICT_CHK, &on);
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0, answer: vec![0; NETLINK_BYTES_MAX] })
    }

    /// Sets an interface's longest packet, in bytes.
    pub fn set_mtu(&mut self, interface: u32, mtu: u32) -> io::Result<()> {
        let body = link(interface, 0).attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
        self.request(libc::RTM_NEWLINK, 0, body)
    }

    /// Sets how many packets may wait in an interface to be taken.
    pub fn set_queue_length(&mut self, interface: u32, packets: u32) -> io::Result<()> {
        let body = link(interface, 0).attribute(libc::IFLA_TXQLEN, &packets.to_ne_bytes());
        self.request(libc::RTM_NEWLINK, 0, body)
    }

    /// Has an interface take and give packets.
    pub fn set_up(&mut self, interface: u32) -> io::Result<()> {
        self.request(libc::RTM_NEWLINK, 0, link(interface, libc::IFF_UP as u32))
    }

    /// Gives an interface an address. An IPv6 address is not looked for among neighbours, of which a TUN device has none.
    pub fn add_address(&mut self, interface: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let flags = if address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
        let mut bytes = vec![family(address), prefix, flags, 0];
        bytes.extend_from_slice(&interface.to_ne_bytes());
        let octets = octets(address);
        let body =
            Body(bytes).attribute(libc::IFA_LOCAL, &octets).attribute(libc::IFA_ADDRESS, &octets);
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.request(libc::RTM_NEWADDR, flags as u16, body)
    }

    /// Adds a route to an interface. One that is there already stays.
    pub fn add_route(&mut self, interface: u32, to: IpAddr, prefix: u8) -> io::Result<()> {
        match self.restore_route(interface, to, prefix)? || self.has_route(interface, to, prefix)? {
            true => Ok(()),
            false => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// Adds a route to an interface, where there is none of this prefix. Whether it was added.
    pub fn restore_route(&mut self, interface: u32, to: IpAddr, prefix: u8) -> io::Result<bool> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        match self.request(libc::RTM_NEWROUTE, flags as u16, route(interface, to, prefix)?) {
            Ok(()) => Ok(true),
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(why) => Err(why),
        }
    }

    /// Removes a route of an interface. It may be gone.
    pub fn remove_route(&mut self, interface: u32, to: IpAddr, prefix: u8) -> io::Result<()> {
        match self.request(libc::RTM_DELROUTE, 0, route(interface, to, prefix)?) {
            Err(why) if why.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            result => result,
        }
    }

    fn has_route(&mut self, interface: u32, to: IpAddr, prefix: u8) -> io::Result<bool> {
        let mut bytes = vec![family(to), 0, 0, 0, libc::RT_TABLE_MAIN, 0, 0, 0];
        bytes.extend_from_slice(&[0; 4]);
        let body = Body(bytes).attribute(libc::RTA_OIF, &interface.to_ne_bytes());
        let network = octets(network(to, prefix));
        let mut has = false;
        self.ask(libc::RTM_GETROUTE, libc::NLM_F_DUMP as u16, body, |kind, answer| {
            let Some(header) = answer.get(..ROUTE_BYTES) else { return };
            // The prefix of length 0 has no destination.
            let destination = attribute(&answer[ROUTE_BYTES..], libc::RTA_DST);
            has |= kind == libc::RTM_NEWROUTE
                && header[..2] == [family(to), prefix]
                && header[4] == libc::RT_TABLE_MAIN
                && (prefix == 0 || destination == Some(&network))
                && attribute(&answer[ROUTE_BYTES..], libc::RTA_OIF)
                    == Some(&interface.to_ne_bytes()[..]);
        })?;
        Ok(has)
    }

    fn request(&mut self, kind: u16, flags: u16, body: Body) -> io::Result<()> {
        self.ask(kind, flags | libc::NLM_F_ACK as u16, body, |_, _| {})
    }

    /// Calls `each` with the kind and the bytes of each message of the answer.
    fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        body: Body,
        mut each: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        let mut message = Vec::with_capacity(HEADER_BYTES + body.0.len());
        message.extend_from_slice(&((HEADER_BYTES + body.0.len()) as u32).to_ne_bytes());
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&(flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        message.extend_from_slice(&sequence.to_ne_bytes());
        message.extend_from_slice(&[0; 4]);
        message.extend_from_slice(&body.0);
        rustix::net::send(&self.socket, &message, SendFlags::empty())?;
        loop {
            let answer = &mut self.answer[..];
            let (_, bytes) = rustix::net::recv(&self.socket, answer, RecvFlags::empty())?;
            let mut rest = self.answer.get(..bytes).unwrap_or_default();
            while let Some(header) = rest.get(..HEADER_BYTES) {
                let number =
                    |at| u32::from_ne_bytes(*header[at..].first_chunk().unwrap_or(&[0; 4]));
                let length = number(0) as usize;
                let Some(data) = rest.get(HEADER_BYTES..length) else { break };
                let kind = u16::from_ne_bytes([header[4], header[5]]);
                if number(8) == sequence {
                    match i32::from(kind) {
                        libc::NLMSG_ERROR => {
                            let code =
                                data.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                            return match code {
                                0 => Ok(()),
                                code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                            };
                        }
                        libc::NLMSG_DONE => return Ok(()),
                        _ => each(kind, data),
                    }
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// `struct ifinfomsg`, which sets these flags.
fn link(interface: u32, flags: u32) -> Body {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&interface.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    Body(bytes)
}

/// `struct rtmsg` and the attributes of a route.
fn route(interface: u32, to: IpAddr, prefix: u8) -> io::Result<Body> {
    if usize::from(prefix) > octets(to).len() * 8 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let scope = if to.is_ipv6() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
    let mut bytes = vec![family(to), prefix, 0, 0];
    bytes.extend_from_slice(&[libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST]);
    bytes.extend_from_slice(&[0; 4]);
    Ok(Body(bytes)
        .attribute(libc::RTA_DST, &octets(network(to, prefix)))
        .attribute(libc::RTA_OIF, &interface.to_ne_bytes()))
}

/// The value of the first attribute of a kind.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let header = attributes.get(..4)?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let data = attributes.get(4..length)?;
        if u16::from_ne_bytes([header[2], header[3]]) == wanted {
            return Some(data);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The address with the bits behind the prefix zero.
fn network(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}
