//! The PROXY protocol: a header before a connection's octets that names the client
//! (haproxy.org, "The PROXY protocol", versions 1 and 2).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// A line of text
    V1,
    /// The binary form
    V2,
}

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, a connection that is forwarded.
const PROXY: u8 = 0x21;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// The header of a connection from `client`, which has connected to `own`. It is sent before everything else.
#[must_use]
pub fn header(version: ProxyProtocol, client: SocketAddr, own: SocketAddr) -> Vec<u8> {
    match (version, client.ip(), own.ip()) {
        (ProxyProtocol::V1, IpAddr::V4(from), IpAddr::V4(to)) => {
            format!("PROXY TCP4 {from} {to} {} {}\r\n", client.port(), own.port()).into_bytes()
        }
        (ProxyProtocol::V1, from, to) => {
            let (from, to) = (v6(from), v6(to));
            format!("PROXY TCP6 {from} {to} {} {}\r\n", client.port(), own.port()).into_bytes()
        }
        (ProxyProtocol::V2, IpAddr::V4(from), IpAddr::V4(to)) => {
            binary(TCP4, &[from.octets(), to.octets()].concat(), client, own)
        }
        (ProxyProtocol::V2, from, to) => {
            binary(TCP6, &[v6(from).octets(), v6(to).octets()].concat(), client, own)
        }
    }
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn binary(family: u8, addresses: &[u8], client: SocketAddr, own: SocketAddr) -> Vec<u8> {
    let length = u16::try_from(addresses.len() + 4).unwrap_or(u16::MAX);
    let mut out = SIGNATURE.to_vec();
    out.extend([PROXY, family]);
    out.extend(length.to_be_bytes());
    out.extend(addresses);
    out.extend(client.port().to_be_bytes());
    out.extend(own.port().to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_say_who_it_is() {
        let end = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (client, own) = (end("192.0.2.1:56324"), end("192.0.2.2:443"));
        let line = header(ProxyProtocol::V1, client, own);
        assert_eq!(line, b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n");
        let line = header(ProxyProtocol::V1, end("[2001:db8::1]:1"), end("[2001:db8::2]:2"));
        assert_eq!(line, b"PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n");
        let bytes = header(ProxyProtocol::V2, client, own);
        assert_eq!(bytes[..12], SIGNATURE);
        let rest = [0x21, 0x11, 0, 12, 192, 0, 2, 1, 192, 0, 2, 2, 0xdc, 4, 1, 0xbb];
        assert_eq!(bytes[12..], rest);
        assert_eq!(header(ProxyProtocol::V2, end("[::1]:1"), end("[::1]:2")).len(), 16 + 36);
    }
}
