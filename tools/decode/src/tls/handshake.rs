//! The few messages of a handshake that say which keys are used.

use super::Reason;
use crate::limits::HANDSHAKE_BYTES_MAX;

pub(super) const CLIENT_HELLO: u8 = 1;
pub(super) const SERVER_HELLO: u8 = 2;
pub(super) const FINISHED: u8 = 20;
pub(super) const KEY_UPDATE: u8 = 24;

const HEADER_BYTES: usize = 4;
const SUPPORTED_VERSIONS: u16 = 43;
const TLS13: [u8; 2] = [3, 4];

/// The random of a ServerHello that asks for another ClientHello (RFC 8446 § 4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Messages of one side, which may be in several records, or several in one.
#[derive(Debug, Default)]
pub(super) struct Messages {
    octets: Vec<u8>,
}

impl Messages {
    pub(super) fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.octets.len()
    }

    /// The next whole one: its type and its body.
    pub(super) fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>, Reason> {
        let Some([kind, a, b, c]) = self.octets.first_chunk().copied() else { return Ok(None) };
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        if length > HANDSHAKE_BYTES_MAX {
            return Err("a TLS handshake message longer than any".into());
        }
        let end = HEADER_BYTES + length;
        let Some(body) = self.octets.get(HEADER_BYTES..end) else { return Ok(None) };
        let body = body.to_vec();
        self.octets.drain(..end);
        Ok(Some((kind, body)))
    }
}

pub(super) fn client_random(body: &[u8]) -> Option<[u8; 32]> {
    body.get(2..)?.first_chunk().copied()
}

/// A server's choice.
#[derive(Debug)]
pub(super) struct Hello {
    pub(super) random: [u8; 32],
    pub(super) suite: u16,
    pub(super) is_tls13: bool,
    pub(super) is_retry: bool,
}

pub(super) fn server_hello(body: &[u8]) -> Option<Hello> {
    let random = *body.get(2..)?.first_chunk()?;
    let session = usize::from(*body.get(34)?);
    let rest = body.get(35 + session..)?;
    let suite = u16::from_be_bytes(*rest.first_chunk()?);
    let mut extensions = rest.get(5..).unwrap_or_default();
    let mut is_tls13 = false;
    while let Some([a, b, c, d]) = extensions.first_chunk().copied() {
        let (kind, length) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let end = 4 + usize::from(length);
        let value = extensions.get(4..end)?;
        is_tls13 |= kind == SUPPORTED_VERSIONS && value == TLS13;
        extensions = extensions.get(end..)?;
    }
    Some(Hello { random, suite, is_tls13, is_retry: random == RETRY })
}
