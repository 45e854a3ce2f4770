//! Associations and packets for tests.

use keyway_engine::{Algorithm, Engine, Key, Parameters};
use keyway_esp::{
    Cause, Dispatch, Inbound, InboundSa, InnerPacket, Lifetime, Mode, Opener, OutboundSa, Outer,
    SaKey, SaParameters, Sealer, Selectors, Suite, Time,
};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// One engine for all tests.
pub static ENGINE: LazyLock<Engine> = LazyLock::new(keyway_drivers::engine);

pub const NOW: Time = Time(1_000_000_000);
pub const SPI: u32 = 0x1001;
pub const SALT: [u8; 4] = [0xa0, 0xa1, 0xa2, 0xa3];

/// A key of the right length.
pub fn key(suite: Suite) -> Vec<u8> {
    (0..suite.key_bytes() + suite.mac_key_bytes()).map(|at| at as u8 ^ 0x5a).collect()
}

#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub suite: Suite,
    pub mode: Mode,
    pub esn: bool,
}

impl Kind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Kind> {
        let modes = [Mode::Tunnel, Mode::Transport];
        Suite::ALL.into_iter().flat_map(move |suite| {
            modes
                .into_iter()
                .flat_map(move |mode| [false, true].map(|esn| Kind { suite, mode, esn }))
        })
    }

    pub fn parameters<'a>(self, key: &'a [u8], lifetime: Lifetime) -> SaParameters<'a> {
        let Kind { suite, mode, esn } = self;
        let key = SaKey::Secret(key);
        SaParameters { spi: SPI, suite, key, salt: SALT, mode, esn, lifetime }
    }
}

/// Both ends of one direction.
pub struct Pair {
    pub out: Arc<OutboundSa>,
    pub inside: Arc<InboundSa>,
    pub inbound: Inbound,
    pub sealer: Sealer,
    pub opener: Opener,
}

impl Pair {
    pub fn new(kind: Kind, numbers: Range<u64>, window: u32) -> Pair {
        Pair::with(kind, numbers, window, Selectors::any(), Lifetime::default(), Dispatch::Queued)
    }

    pub fn with(
        kind: Kind,
        numbers: Range<u64>,
        window: u32,
        selectors: Selectors,
        lifetime: Lifetime,
        dispatch: Dispatch,
    ) -> Pair {
        let key = key(kind.suite);
        let parameters = kind.parameters(&key, lifetime);
        let first = numbers.start;
        let out = OutboundSa::new(&ENGINE, &parameters, numbers, 0x0123_4567_89ab_cdef, NOW);
        let inside = InboundSa::new(&ENGINE, &parameters, window, selectors, NOW);
        let inside = Arc::new(inside.expect("parameters are right"));
        if kind.esn && first > 1 {
            inside.begin_after(first - 1);
        }
        Pair {
            out: Arc::new(out.expect("parameters are right")),
            inbound: Inbound::new([inside.clone()]).expect("one"),
            inside,
            sealer: Sealer::new(&ENGINE, dispatch),
            opener: Opener::new(&ENGINE, dispatch),
        }
    }

    /// Seals these in one batch.
    pub fn seal(&mut self, packets: &[Vec<u8>]) -> Vec<Result<Vec<u8>, Cause>> {
        for (user, packet) in (0_u64..).zip(packets) {
            let packet = InnerPacket::parse(packet).expect("it is one");
            self.sealer.push(&self.out, &packet, user).expect("there is room");
        }
        let mut sealed = Vec::new();
        self.sealer.seal(NOW, |user, result| {
            assert_eq!(user, sealed.len() as u64);
            sealed.push(result.map(|packet| {
                let mut bytes = Vec::new();
                packet.write_to(&mut bytes);
                assert_eq!(bytes.len(), packet.len());
                bytes
            }));
        });
        assert_eq!(sealed.len(), packets.len());
        assert!(self.sealer.is_empty());
        sealed
    }

    /// Opens these in one batch.
    pub fn open(&mut self, packets: &[Vec<u8>], outer: Outer) -> Vec<Result<Vec<u8>, Cause>> {
        let mut results = Vec::new();
        let mut pushed = Vec::new();
        for packet in packets {
            let result = self.opener.push(&self.inbound, packet, outer);
            pushed.push(result.is_ok());
            results.push(result.map(|()| Vec::new()));
        }
        let mut places = results.iter_mut().filter(|result| result.is_ok());
        self.opener.open(NOW, |result, sa| {
            assert_eq!(sa.spi(), SPI);
            *places.next().expect("no more than were pushed") =
                result.map(|packet| packet.to_vec());
        });
        assert!(places.next().is_none() && self.opener.is_empty());
        results
    }
}

/// The outer header of these packets in tests: in transport mode its addresses are the packet's own.
pub fn outer(packet: &[u8]) -> Outer {
    let packet = InnerPacket::parse(packet).expect("it is one");
    Outer { source: packet.source(), destination: packet.destination(), ecn: packet.ecn() }
}

pub fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A UDP packet of IPv4 as transport mode gives it back: no identification, DF, 64 hops. Its checksums are right but for
/// UDP's, which is none.
pub fn udp4(payload: &[u8]) -> Vec<u8> {
    ipv4(17, &udp(5353, 53, payload))
}

/// Likewise of IPv6.
pub fn udp6(payload: &[u8]) -> Vec<u8> {
    ipv6(17, &udp(5353, 53, payload))
}

pub fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let words = [source, destination, length, 0].map(u16::to_be_bytes);
    [words.as_flattened(), payload].concat()
}

pub fn ipv4(protocol: u8, upper: &[u8]) -> Vec<u8> {
    let length = (20 + upper.len() as u16).to_be_bytes();
    let mut header = vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, protocol, 0, 0];
    header.extend([10, 1, 0, 5, 10, 2, 0, 7]);
    set_checksum(&mut header);
    [&header, upper].concat()
}

pub fn ipv6(next_header: u8, upper: &[u8]) -> Vec<u8> {
    let length = (upper.len() as u16).to_be_bytes();
    let mut header = vec![0x60, 0, 0, 0, length[0], length[1], next_header, 64];
    let (source, destination) = (0xfd00_0001_u128 << 96 | 5, 0xfd00_0002_u128 << 96 | 7);
    header.extend([source.to_be_bytes(), destination.to_be_bytes()].as_flattened());
    [&header, upper].concat()
}

/// Writes the checksum of an IPv4 header of 20 bytes.
pub fn set_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let made = !sum(&header[..20]);
    header[10..12].copy_from_slice(&made.to_be_bytes());
}

/// The sum of RFC 1071, word by word.
pub fn sum(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0_u16, |sum, word| {
        let word = u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]);
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

/// The ESP packet of AES-128-GCM with this text, which has its trailer already: authentic, whatever is in it.
pub fn with_text(kind: Kind, number: u64, text: &[u8]) -> Vec<u8> {
    assert_eq!(kind.suite, Suite::Aes128Gcm);
    let key = key(kind.suite);
    let session = ENGINE.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&key)));
    let iv = number.to_be_bytes();
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&SALT);
    nonce[4..].copy_from_slice(&iv);
    let low = (number as u32).to_be_bytes();
    let aad = match kind.esn {
        true => [&SPI.to_be_bytes()[..], &number.to_be_bytes()].concat(),
        false => [SPI.to_be_bytes(), low].concat(),
    };
    let mut data = text.to_vec();
    let tag = session.expect("a key").seal(&nonce, &aad, &mut data).expect("sealed");
    [&SPI.to_be_bytes()[..], &low, &iv, &data, &tag].concat()
}
