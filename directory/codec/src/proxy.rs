//! The header in which a proxy says whose connection it forwards (haproxy.org, "The PROXY protocol", versions 1
//! and 2). It comes before everything else, TLS too, and is read to its last byte and no further.

use crate::limits::PROXY_HEADER_BYTES_MAX;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Version 2 begins with these bytes. No LDAP message and no TLS handshake does.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 1 begins with these bytes.
const LINE: &[u8] = b"PROXY ";
/// The shortest header there is, `PROXY UNKNOWN\r\n`.
pub const BYTES_MIN: usize = 15;
/// The longest line of version 1, with its end.
const LINE_BYTES_MAX: usize = 107;
/// Length of what version 2 has before the addresses.
const FIXED_BYTES: usize = 16;
/// Version 2 in the upper half; the command in the lower one.
const VERSION_2: u8 = 0x20;
const LOCAL: u8 = 0;
const PROXY: u8 = 1;

/// The beginning of a connection, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// The beginning of a header, of which at least so many bytes are still to come.
    More(usize),
    /// A header.
    Header {
        /// Its length, in bytes.
        bytes: usize,
        /// Where the connection comes from. `None` if the proxy has opened it for itself (to see whether the
        /// server is there), or does not know.
        client: Option<SocketAddr>,
    },
}

/// Why it is no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoHeader(&'static str);

impl std::fmt::Display for NoHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for NoHeader {}

/// Whether bytes begin a header: six of them tell.
pub fn looks_like(bytes: &[u8]) -> bool {
    bytes.starts_with(LINE)
        || bytes.len() >= LINE.len() && SIGNATURE.starts_with(bytes)
        || bytes.starts_with(&SIGNATURE)
}

/// Reads what has come in so far.
///
/// # Errors
/// If that begins no header, or one that is too long.
pub fn read(bytes: &[u8]) -> Result<Read, NoHeader> {
    if bytes.len() < BYTES_MIN {
        return Ok(Read::More(BYTES_MIN - bytes.len()));
    }
    if bytes.starts_with(&SIGNATURE) {
        return binary(bytes);
    }
    match bytes.starts_with(LINE) {
        true => line(bytes),
        false => Err(NoHeader("it does not begin with a header of the PROXY protocol")),
    }
}

/// Version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 56324 389`.
fn line(bytes: &[u8]) -> Result<Read, NoHeader> {
    let malformed = NoHeader("its header of version 1 is malformed");
    let within = bytes.get(..LINE_BYTES_MAX.min(bytes.len())).unwrap_or(bytes);
    let Some(end) = within.windows(2).position(|two| two == b"\r\n") else {
        // A byte more may be the last one.
        return match bytes.len() < LINE_BYTES_MAX {
            true => Ok(Read::More(1)),
            false => Err(NoHeader("its header of version 1 has no end")),
        };
    };
    let text = within.get(LINE.len()..end).and_then(|text| std::str::from_utf8(text).ok());
    let mut words = text.ok_or(malformed)?.split(' ');
    let family = words.next().unwrap_or_default();
    let client = match family {
        // The rest of the line is to be ignored.
        "UNKNOWN" => None,
        "TCP4" | "TCP6" => {
            let mut word = || words.next().ok_or(malformed);
            let (from, to, from_port, to_port) = (word()?, word()?, word()?, word()?);
            let (from, to) = (address(family, from), address(family, to));
            let (from, _) = from.zip(to).ok_or(malformed)?;
            let (port, _) = port(from_port).zip(port(to_port)).ok_or(malformed)?;
            if words.next().is_some() {
                return Err(malformed);
            }
            Some(SocketAddr::new(from, port))
        }
        _ => return Err(malformed),
    };
    Ok(Read::Header { bytes: end + 2, client })
}

fn address(family: &str, text: &str) -> Option<IpAddr> {
    match family {
        "TCP4" => text.parse().ok().map(IpAddr::V4),
        _ => text.parse().ok().map(IpAddr::V6),
    }
}

/// A port in decimal digits, without a sign or zeros in front.
fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_shortest = text == "0" || !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain && is_shortest)
}

/// Version 2. The fields behind the addresses (TLVs) are left alone.
fn binary(bytes: &[u8]) -> Result<Read, NoHeader> {
    let Some(fixed) = bytes.first_chunk::<FIXED_BYTES>() else {
        return Ok(Read::More(FIXED_BYTES - bytes.len()));
    };
    let [.., command, family, high, low] = *fixed;
    let whole = FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if whole > PROXY_HEADER_BYTES_MAX {
        return Err(NoHeader("its header of version 2 is too long"));
    }
    if command & 0xf0 != VERSION_2 {
        return Err(NoHeader("its header is of an unknown version"));
    }
    let Some(rest) = bytes.get(FIXED_BYTES..whole) else {
        return Ok(Read::More(whole - bytes.len()));
    };
    let client = match command & 0x0f {
        LOCAL => None,
        PROXY => client(family, rest)?,
        _ => return Err(NoHeader("its header of version 2 has an unknown command")),
    };
    Ok(Read::Header { bytes: whole, client })
}

fn client(family: u8, rest: &[u8]) -> Result<Option<SocketAddr>, NoHeader> {
    const SHORT: NoHeader = NoHeader("its header of version 2 is too short for its addresses");
    match family {
        // Unspecified, or a Unix socket at the proxy: there is no address.
        0x00 | 0x31 => Ok(None),
        0x11 => {
            let rest = rest.first_chunk::<12>().ok_or(SHORT)?;
            let [a, b, c, d, _, _, _, _, high, low, ..] = *rest;
            Ok(Some((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])).into()))
        }
        0x21 => {
            let rest = rest.first_chunk::<36>().ok_or(SHORT)?;
            let from: [u8; 16] = *rest.first_chunk().ok_or(SHORT)?;
            let [high, low] = [rest[32], rest[33]];
            Ok(Some((Ipv6Addr::from(from), u16::from_be_bytes([high, low])).into()))
        }
        _ => Err(NoHeader("its header of version 2 is of no stream over IP")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Option<SocketAddr> {
        Some(text.parse().unwrap())
    }

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([command, family]);
        bytes.extend((rest.len() as u16).to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    /// The header, however much of it comes at a time; the bytes behind it are not looked at.
    fn whole(header: &[u8], client: Option<SocketAddr>) {
        let mut have = 0;
        loop {
            match read(&header[..have]).unwrap() {
                Read::More(more) => {
                    assert!(more > 0 && have + more <= header.len(), "{have} and {more}");
                    have += more;
                }
                found => {
                    assert_eq!(found, Read::Header { bytes: header.len(), client });
                    assert_eq!(have, header.len());
                    break;
                }
            }
        }
        assert!(looks_like(header) && looks_like(&header[..12]));
        let followed = [header, b"\x30\x0c\x02\x01\x01\r\n"].concat();
        assert_eq!(read(&followed), Ok(Read::Header { bytes: header.len(), client }));
    }

    #[test]
    fn headers_of_both_versions_say_whose_it_is() {
        whole(b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 389\r\n", at("192.0.2.1:56324"));
        whole(b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n", at("[2001:db8::1]:1"));
        whole(b"PROXY UNKNOWN\r\n", None);
        whole(b"PROXY UNKNOWN ffff:f...f:ffff and so on\r\n", None);
        let four = [192, 0, 2, 1, 192, 0, 2, 2, 0xdc, 4, 1, 0x85];
        whole(&v2(0x21, 0x11, &four), at("192.0.2.1:56324"));
        // A TLV of type 0x20 (TLS) behind it.
        whole(&v2(0x21, 0x11, &[&four[..], &[0x20, 0, 1, 7]].concat()), at("192.0.2.1:56324"));
        let mut six = [0; 36];
        (six[15], six[32], six[33]) = (1, 0x12, 0x34);
        whole(&v2(0x21, 0x21, &six), at("[::1]:4660"));
        whole(&v2(0x20, 0x00, &[]), None);
        whole(&v2(0x20, 0x11, &four), None);
        whole(&v2(0x21, 0x00, &[]), None);
        whole(&v2(0x21, 0x31, &[0; 216]), None);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(100));
        let lines = [
            "GET / HTTP/1.0\r\n\r\n",
            "PROXY TCP4 192.0.2.1\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
            "PROXY TCP4 2001:db8::1 192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n",
            "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",
            &long,
        ];
        for line in lines {
            assert!(read(line.as_bytes()).is_err(), "{line}");
        }
        for (command, family, rest) in [
            (0x31, 0x11, &[0; 12][..]),
            (0x22, 0x11, &[0; 12]),
            (0x21, 0x12, &[0; 12]),
            (0x21, 0x11, &[0; 11]),
            (0x21, 0x21, &[0; 35]),
            (0x21, 0x41, &[0; 36]),
            (0x21, 0x11, &[0; PROXY_HEADER_BYTES_MAX]),
        ] {
            assert!(read(&v2(command, family, rest)).is_err(), "{command:x} {family:x}");
        }
        assert!(
            !looks_like(b"\x30\x0c\x02\x01\x01\x60") && !looks_like(b"\r\n") && !looks_like(b"")
        );
        assert!(looks_like(b"\r\n\r\n\0\r"));
    }

    proptest! {
        /// Whatever comes: it says no more than the limit, and the same for a longer beginning.
        #[test]
        fn reading_has_bounds(bytes in prop::collection::vec(any::<u8>(), 0..300), v in 0..3_u8) {
            let bytes = match v {
                0 => bytes,
                1 => [LINE, &bytes].concat(),
                _ => [&SIGNATURE[..], &bytes].concat(),
            };
            for end in 0..=bytes.len() {
                match read(&bytes[..end]) {
                    Ok(Read::More(more)) => {
                        prop_assert!(more > 0 && end + more <= PROXY_HEADER_BYTES_MAX);
                    }
                    Ok(Read::Header { bytes: length, .. }) => prop_assert!(length <= end),
                    Err(_) => break,
                }
            }
        }
    }
}
