//! Datagrams that a gateway of ESP receives: of strangers, of the peer, spoilt on their way, and of a peer that is
//! hostile and has the key.

use keyway_engine::{
    Algorithm, Direction, Engine, Iv, Key, Parameters, Part, Request, Session, Step,
};
use keyway_esp::{
    Cause, Dispatch, Encapsulated, Inbound, InboundSa, InnerPacket, Lifetime, Mode, Opener,
    OutboundSa, Outer, SaKey, SaParameters, Sealer, Selectors, Suite, Time, encapsulated, too_big,
};
use std::sync::{Arc, LazyLock};

const SPI: u32 = 0x1001;
const SALT: [u8; 4] = [1, 2, 3, 4];
const NOW: Time = Time(0);
const KEY: [u8; 64] = [7; 64];

static ENGINE: LazyLock<Engine> = LazyLock::new(keyway_drivers::engine);

/// Takes the first byte as the kind of an association, the second as the outer header's congestion bits and as the way
/// to the engine, and the rest as records that come in.
pub fn esp_receive(data: &[u8]) {
    let Some((&[kind, flags], records)) = data.split_first_chunk() else { return };
    let kind = usize::from(kind);
    let suite = Suite::ALL[kind % 7];
    let mode = if kind / 7 % 2 == 0 { Mode::Tunnel } else { Mode::Transport };
    let key = &KEY[..suite.key_bytes() + suite.mac_key_bytes()];
    let (esn, lifetime) = (kind / 14 % 2 == 1, Lifetime::default());
    let key = SaKey::Secret(key);
    let parameters = SaParameters { spi: SPI, suite, key, salt: SALT, mode, esn, lifetime };
    let dispatch = if flags & 4 == 0 { Dispatch::Queued } else { Dispatch::Direct };
    let mut gateway = Gateway::new(&parameters, dispatch);
    let ends = if flags & 8 == 0 { ("10.1.0.5", "10.2.0.7") } else { ("fd00:1::5", "fd00:2::7") };
    let [source, destination] =
        [ends.0, ends.1].map(|text| text.parse().expect("it is an address"));
    let outer = Outer { source, destination, ecn: flags & 3 };
    let mut rest = records;
    // Some batches of some packets.
    for _ in 0..4 {
        rest = gateway.batch(rest, outer, &parameters);
    }
}

struct Gateway {
    out: Arc<OutboundSa>,
    inside: Arc<InboundSa>,
    inbound: Inbound,
    sealer: Sealer,
    opener: Opener,
}

/// The fate that a packet which was pushed has to have.
enum Expected {
    /// It was sealed from this and has not come before.
    Packet(Vec<u8>),
    /// Nothing: it is not authentic, or came before.
    Nothing,
    /// Whatever is in this text, if it is a packet.
    Within(Vec<u8>),
    /// It may have been sealed with the key, for the key is known here.
    Anything,
}

impl Gateway {
    fn new(parameters: &SaParameters<'_>, dispatch: Dispatch) -> Self {
        let out = OutboundSa::new(&ENGINE, parameters, 1_000..1 << 20, 5, NOW);
        let inside = InboundSa::new(&ENGINE, parameters, 64, Selectors::any(), NOW);
        let inside = Arc::new(inside.expect("it fits"));
        Gateway {
            out: Arc::new(out.expect("it fits")),
            inbound: Inbound::new([inside.clone()]).expect("there is one"),
            inside,
            sealer: Sealer::new(&ENGINE, dispatch),
            opener: Opener::new(&ENGINE, dispatch),
        }
    }

    /// Takes records until the batch is full, and returns the rest.
    fn batch<'a>(
        &mut self,
        mut rest: &'a [u8],
        outer: Outer,
        parameters: &SaParameters<'_>,
    ) -> &'a [u8] {
        let mut expected = Vec::new();
        let highest = self.inside.highest();
        let mut sealed: Vec<Vec<u8>> = Vec::new();
        while let Some((&[kind, a, b], bytes)) = rest.split_first_chunk() {
            let length = usize::from(u16::from_be_bytes([a, b])).min(bytes.len());
            let (record, after) = bytes.split_at(length);
            rest = after;
            let (datagram, expects) = match kind % 5 {
                0 => match encapsulated(record) {
                    Encapsulated::Esp(esp) => (esp.to_vec(), Expected::Anything),
                    _ => continue,
                },
                1 => match self.seal(record) {
                    Some((packet, inner)) => (packet, Expected::Packet(inner)),
                    None => continue,
                },
                // Three bytes say where it is spoilt, and how.
                2 => {
                    let Some((&[high, low, by], inner)) = record.split_first_chunk() else {
                        continue;
                    };
                    let Some((mut packet, inner)) = self.seal(inner) else { continue };
                    let at = usize::from(u16::from_be_bytes([high, low])) % packet.len();
                    packet[at] ^= by;
                    let same = by == 0;
                    (packet, if same { Expected::Packet(inner) } else { Expected::Nothing })
                }
                3 => match authentic(parameters, 2_000 + sealed.len() as u64, record) {
                    Some(packet) => (packet, Expected::Within(record.to_vec())),
                    None => continue,
                },
                // A copy of one before.
                _ => match sealed.get(usize::from(record.first().copied().unwrap_or(0))) {
                    Some(packet) => (packet.clone(), Expected::Nothing),
                    None => continue,
                },
            };
            if self.opener.push(&self.inbound, &datagram, outer).is_ok() {
                expected.push(expects);
            }
            sealed.push(datagram);
            if sealed.len() == 20 {
                break;
            }
        }
        let opened_before = self.inside.use_().packets;
        let mut expected = expected.into_iter();
        let (inside, mut good) = (&self.inside, 0);
        self.opener.open(NOW, |result, _| {
            let expected = expected.next().expect("as many as were pushed");
            if let Ok(packet) = &result {
                good += 1;
                let parsed = InnerPacket::parse(packet).expect("what comes out is a packet");
                assert_eq!(parsed.bytes().len(), packet.len());
                let _ = too_big(&parsed, 1_300, outer.destination);
            }
            match (expected, result) {
                (Expected::Anything, _) | (Expected::Nothing | Expected::Within(_), Err(_)) => {}
                (Expected::Nothing, Ok(_)) => panic!("a packet that is none was accepted"),
                (Expected::Packet(inner), Ok(packet)) => {
                    assert_eq!(kept(&inner, inside.mode()), kept(packet, inside.mode()));
                }
                (Expected::Packet(_), Err(cause)) => {
                    // Authentic ones of records before may have moved the window, and the outer header may be of
                    // another family.
                    use Cause::{Dummy, Ecn, Malformed, Replay, Transport};
                    assert!(
                        matches!(cause, Dummy | Ecn | Malformed | Replay | Transport),
                        "{cause}"
                    );
                }
                (Expected::Within(text), Ok(packet)) => {
                    let text = match inside.mode() {
                        Mode::Tunnel => kept(&text, Mode::Tunnel),
                        Mode::Transport => text,
                    };
                    assert!(text.starts_with(&kept(packet, inside.mode())));
                }
            }
        });
        assert!(expected.next().is_none());
        assert!(self.inside.highest() >= highest);
        assert!(self.inside.use_().packets - opened_before >= good);
        rest
    }

    /// Seals bytes that are an IP packet.
    fn seal(&mut self, bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let inner = InnerPacket::parse(bytes).ok()?;
        self.sealer.push(&self.out, &inner, 0).ok()?;
        let mut packet = Vec::new();
        self.sealer.seal(NOW, |_, sealed| sealed.expect("there are numbers").write_to(&mut packet));
        Some((packet, inner.bytes().to_vec()))
    }
}

/// The bytes that a packet brings through unchanged: in tunnel mode all but the congestion bits and the checksum over them, in
/// transport mode what is behind the header.
fn kept(packet: &[u8], mode: Mode) -> Vec<u8> {
    let v4 = packet.first().is_some_and(|first| first >> 4 == 4);
    let mut kept = packet.to_vec();
    match (mode, v4) {
        (Mode::Transport, _) => {
            kept.drain(..kept.len().min(if v4 { 20 } else { 40 }));
        }
        (Mode::Tunnel, true) => {
            kept.iter_mut().skip(1).take(1).for_each(|class| *class &= !3);
            kept.iter_mut().skip(10).take(2).for_each(|sum| *sum = 0);
        }
        (Mode::Tunnel, false) => kept.iter_mut().skip(1).take(1).for_each(|class| *class &= !0x30),
    }
    kept
}

/// An ESP packet of this number with this text, which has its trailer already or none: authentic, whatever it is. `None`
/// if the text is no whole blocks.
fn authentic(parameters: &SaParameters<'_>, number: u64, text: &[u8]) -> Option<Vec<u8>> {
    let suite = parameters.suite;
    let block = if suite.is_aead() { 4 } else { 16 };
    if text.is_empty() || !text.len().is_multiple_of(block) {
        return None;
    }
    let SaKey::Secret(key) = parameters.key else { return None };
    let (front, back) = key.split_at(suite.key_bytes());
    let algorithm = match suite {
        Suite::Aes128Gcm => Algorithm::Aes128Gcm,
        Suite::Aes256Gcm => Algorithm::Aes256Gcm,
        Suite::ChaCha20Poly1305 => Algorithm::ChaCha20Poly1305,
        Suite::Aes128CbcSha1 | Suite::Aes128CbcSha256 => Algorithm::Aes128Cbc,
        Suite::Aes256CbcSha1 | Suite::Aes256CbcSha256 => Algorithm::Aes256Cbc,
    };
    let (spi, low) = (SPI.to_be_bytes(), (number as u32).to_be_bytes());
    let high = ((number >> 32) as u32).to_be_bytes();
    let high = if parameters.esn { &high[..] } else { &[] };
    let iv = vec![9; suite.iv_bytes()];
    let open = |parameters: Parameters<'_>| -> Session {
        ENGINE.session(parameters).expect("the key has its length")
    };
    if suite.is_aead() {
        let session = open(Parameters::new(algorithm, Key::Secret(front)));
        let nonce: Vec<u8> = SALT.iter().chain(&iv).copied().collect();
        let nonce = nonce.first_chunk().expect("it has 12 bytes");
        let mut data = text.to_vec();
        let aad = [&spi[..], high, &low].concat();
        let tag = session.seal(nonce, &aad, &mut data).expect("it is short");
        return Some([&spi[..], &low, &iv, &data, &tag].concat());
    }
    let mac = if suite.mac_key_bytes() == 20 { Algorithm::HmacSha1 } else { Algorithm::HmacSha256 };
    let steps = [
        Step { algorithm, key: Key::Secret(front) },
        Step { algorithm: mac, key: Key::Secret(back) },
    ];
    let session = open(Parameters::chain(&steps));
    let mut data = [&spi[..], &low, &iv, text, high].concat();
    let (text_end, covered) = (24 + text.len(), data.len());
    data.resize(covered + suite.icv_bytes(), 0);
    let length = data.len();
    let parts = [
        Part::Cipher { iv: Iv::At(8), text: 24..text_end },
        Part::Mac { over: 0..covered, tag: covered..length },
    ];
    let direction = Direction::Protect;
    let chain = &mut Request::Chain { direction, data: &mut data, length, parts: &parts };
    session.run(chain).expect("its parts are within it");
    data.drain(text_end..covered);
    Some(data)
}
