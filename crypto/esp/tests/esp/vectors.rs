//! Packets of others: of the standards, and of Scapy, made by `vectors/make.py`.

use crate::support::{ENGINE, NOW, address, ipv4};
use keyway_esp::{
    Dispatch, Inbound, InboundSa, InnerPacket, Lifetime, Mode, Opener, OutboundSa, Outer, SaKey,
    SaParameters, Sealer, Selectors, Suite,
};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Clone, Deserialize)]
struct Vector {
    suite: String,
    mode: String,
    esn: bool,
    spi: u32,
    number: u64,
    key: String,
    salt: String,
    iv: String,
    outer: [String; 2],
    inner: String,
    esp: String,
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks(2);
    digits
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("digits");
            u8::from_str_radix(pair, 16).expect("digits")
        })
        .collect()
}

/// It comes out of its packet; with an AEAD, where the initialisation vector can be chosen, the packet comes out of it.
fn check(vector: &Vector, dispatch: Dispatch) {
    let suite = Suite::from_name(&vector.suite).expect("a suite");
    let mode = if vector.mode == "tunnel" { Mode::Tunnel } else { Mode::Transport };
    let (key, inner, esp) = (bytes(&vector.key), bytes(&vector.inner), bytes(&vector.esp));
    let parameters = SaParameters {
        spi: vector.spi,
        suite,
        key: SaKey::Secret(&key),
        salt: bytes(&vector.salt).try_into().expect("4 bytes"),
        mode,
        esn: vector.esn,
        lifetime: Lifetime::default(),
    };
    let sa = InboundSa::new(&ENGINE, &parameters, 64, Selectors::any(), NOW).expect("it fits");
    sa.begin_after(vector.number - 1);
    let inbound = Inbound::new([Arc::new(sa)]).expect("one");
    let [source, destination] = vector.outer.each_ref().map(|text| address(text));
    let outer = Outer { source, destination, ecn: 0 };
    let mut opener = Opener::new(&ENGINE, dispatch);
    opener.push(&inbound, &esp, outer).expect("it fits");
    let mut opened = 0;
    opener.open(NOW, |result, _| {
        assert_eq!(result.expect("it is authentic"), inner);
        opened += 1;
    });
    assert_eq!(opened, 1);
    assert_eq!(inbound.get(vector.spi).expect("it is there").highest(), vector.number);

    if !suite.is_aead() {
        return;
    }
    let iv = u64::from_be_bytes(bytes(&vector.iv).try_into().expect("8 bytes"));
    let (numbers, base) = (vector.number..vector.number + 1, iv.wrapping_sub(vector.number));
    let sa = OutboundSa::new(&ENGINE, &parameters, numbers, base, NOW).expect("it fits");
    let mut sealer = Sealer::new(&ENGINE, dispatch);
    let packet = InnerPacket::parse(&inner).expect("a packet");
    sealer.push(&Arc::new(sa), &packet, 7).expect("it fits");
    let mut sealed = Vec::new();
    sealer.seal(NOW, |user, packet| {
        assert_eq!(user, 7);
        packet.expect("it has a number").write_to(&mut sealed);
    });
    assert_eq!(sealed, esp);
    assert_eq!(suite.sealed_bytes(payload_bytes(&inner, mode)), esp.len());
}

fn payload_bytes(inner: &[u8], mode: Mode) -> usize {
    match (mode, inner[0] >> 4) {
        (Mode::Tunnel, _) => inner.len(),
        (Mode::Transport, 4) => inner.len() - 20,
        (Mode::Transport, _) => inner.len() - 40,
    }
}

#[test]
fn packets_of_scapy() {
    let vectors: Vec<Vector> =
        serde_json::from_str(include_str!("../vectors/scapy.json")).expect("the vectors");
    let mut kinds = BTreeSet::new();
    for vector in &vectors {
        let families = (vector.inner.starts_with('4'), vector.outer[0].contains('.'));
        kinds.insert((&vector.suite, &vector.mode, vector.esn, families));
        check(vector, Dispatch::Queued);
        check(vector, Dispatch::Direct);
    }
    // Seven suites, with and without extended numbers: four mixtures of families in tunnels, two without.
    assert_eq!(kinds.len(), 7 * 2 * 6);
}

/// RFC 7634 appendix A.
#[test]
fn the_packet_of_rfc_7634() {
    let vector = Vector {
        suite: "chacha20-poly1305".into(),
        mode: "tunnel".into(),
        esn: false,
        spi: 0x0102_0304,
        number: 5,
        key: "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f".into(),
        salt: "a0a1a2a3".into(),
        iv: "1011121314151617".into(),
        outer: ["203.0.113.153".into(), "203.0.113.5".into()],
        inner: "45000054a6f200004001e778c6336405c000020508005b7a3a080000553bec10\
                0007362708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223\
                2425262728292a2b2c2d2e2f3031323334353637"
            .into(),
        esp: "0102030400000005101112131415161724039428b97f417e3c13753a4f05087b\
              67c352e6a7fab1b982d466ef407ae5c614ee8099d52844eb61aa95dfab4c02f7\
              2aa71e7c4c4f64c9befe2facc638e8f3cbec163fac469b502773f6fb94e664da\
              9165b82829f641e076aaa8266b7fb0f7b11b369907e1ad43"
            .into(),
    };
    check(&vector, Dispatch::Queued);
    check(&vector, Dispatch::Direct);
}

/// A packet of draft-mcgrew-gcm-test-01, with an extended number whose lower half is 0. Its next header says ICMP, so that
/// it is taken as one of transport mode.
#[test]
fn a_packet_of_the_tests_of_aes_gcm_esp() {
    let text = "45000048699a000080114db7c0a80102c0a801010a9bf15638d3010000010000\
                00000000045f736970045f756470037369700963796265726369747902646b00\
                00210001";
    let vector = Vector {
        suite: "aes-128-gcm".into(),
        mode: "transport".into(),
        esn: true,
        spi: 0x4321,
        number: 0x8765_4321_0000_0000,
        key: "4c80cdefbb5d10da906ac73c3613a634".into(),
        salt: "2e443b68".into(),
        iv: "4956ed7e3b244cfe".into(),
        outer: ["10.1.0.5".into(), "10.2.0.7".into()],
        inner: ipv4(1, &bytes(text)).iter().map(|byte| format!("{byte:02x}")).collect(),
        esp: "00004321000000004956ed7e3b244cfe\
              fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34\
              cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce\
              61bc17d768fd9732459018148f6cbe722fd04796562dfdb4"
            .into(),
    };
    check(&vector, Dispatch::Queued);
    check(&vector, Dispatch::Direct);
}
