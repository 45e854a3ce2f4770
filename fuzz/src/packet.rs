//! QUIC packets and sealed messages, in every backend: what one makes of them, all make of them.

use keyway_simd::Fault;
use keyway_simd::packet::{
    Aead, HeaderKey, NONCE_BYTES, Open, Opened, PacketBackend, PacketKey, Phases, Protect, Refusal,
    Seal, TAG_BYTES, Unprotect, Used,
};
use std::array;
use std::fmt::Debug;
use std::sync::LazyLock;

const AEADS: [Aead; 3] = [Aead::Aes128Gcm, Aead::Aes256Gcm, Aead::ChaCha20Poly1305];

/// A backend and its keys, one pair for each AEAD. The key of AES-128 is that of RFC 9001 appendix
/// A.3, that of ChaCha20 of A.5, so that a seed may be a packet that is right.
struct Kit {
    backend: PacketBackend,
    keys: [(PacketKey, HeaderKey); 3],
}

static KITS: LazyLock<Vec<Kit>> = LazyLock::new(|| {
    let keys: [(&[u8], u128, &[u8]); 3] = [
        (
            &0xcf3a_5331_653c_364c_88f0_f379_b606_7e37_u128.to_be_bytes(),
            0x0ac1_493c_a190_5853_b0bb_a03e,
            &0xc206_b8d9_b9f0_f376_4443_0b49_0eea_a314_u128.to_be_bytes(),
        ),
        (&[1; 32], 2, &[3; 32]),
        (
            &wide(
                0xc6d9_8ff3_441c_3fe1_b218_2094_f69c_aa2e,
                0xd4b7_16b6_5488_960a_7a98_4979_fb23_e1c8,
            ),
            0xe045_9b34_74bd_d0e4_4a41_c144,
            &wide(
                0x25a2_82b9_e82f_06f2_1f48_8917_a4fc_8f1b,
                0x7357_3685_6085_97d0_efcb_076b_0ab7_a7a4,
            ),
        ),
    ];
    let kit = |backend: PacketBackend| {
        let keys = array::from_fn(|at| {
            let (aead, (key, iv, header_key)) = (AEADS[at], keys[at]);
            let key = backend.aead_key(aead, key).expect("its length is right");
            let iv = *iv.to_be_bytes().last_chunk::<NONCE_BYTES>().expect("it is shorter");
            (PacketKey::new(key, iv), backend.header_key(aead, header_key).expect("as above"))
        });
        Kit { backend, keys }
    };
    PacketBackend::available().map(kit).collect()
});

fn wide(high: u128, low: u128) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&high.to_be_bytes());
    bytes[16..].copy_from_slice(&low.to_be_bytes());
    bytes
}

/// The first bytes of an input, which say how the others are read.
struct Shape {
    /// The AEAD of the first packet; the others follow in turn.
    aead: usize,
    /// Length of a packet; the last one is what is left.
    packet_bytes: usize,
    /// Where the number starts, or how long the header is.
    at: usize,
    /// The packet's number, or the largest seen.
    number: u64,
}

/// Takes bytes as packets that came in, as messages that came in, and as packets to send.
pub fn packet(data: &[u8]) {
    let Some((&[aead, at, a, b, number @ ..], bytes)) = data.split_first_chunk::<12>() else {
        return;
    };
    let shape = Shape {
        aead: usize::from(aead),
        packet_bytes: usize::from(u16::from_be_bytes([a, b])).max(1),
        at: usize::from(at),
        number: u64::from_be_bytes(number),
    };
    // A packet of nothing, too; and each has memory of its own, so that a sanitizer sees its ends.
    let packets: Vec<Box<[u8]>> =
        bytes.chunks(shape.packet_bytes).chain([&[][..]]).map(Box::from).take(20).collect();
    received(&shape, &packets);
    opened(&shape, &packets);
    sent(&shape, &packets);
}

/// Does the same in every backend and compares what comes out.
fn in_all<T: PartialEq + Debug>(run: impl Fn(&Kit) -> T) -> T {
    let mut results = KITS.iter().map(|kit| (kit.backend.name(), run(kit)));
    let (name, first) = results.next().expect("there is a backend everywhere");
    for (other, result) in results {
        assert_eq!(result, first, "{other}, then {name}");
    }
    first
}

type Packets = Vec<Box<[u8]>>;

fn unprotected(
    shape: &Shape,
    packets: &Packets,
    largest: Option<u64>,
    number_at: usize,
) -> (Packets, Vec<Result<Opened, Refusal>>) {
    in_all(|kit| {
        let mut packets = packets.clone();
        let mut unprotects: Vec<_> = packets
            .iter_mut()
            .zip(kit.keys.iter().cycle().skip(shape.aead % 3))
            .map(|(packet, (key, header_key))| {
                // With a key for each phase nothing is refused without being looked at.
                let phases = Phases { next: Some(key), previous: Some(key), ..Phases::only(key) };
                Unprotect::new(phases, header_key, largest, number_at, packet)
            })
            .collect();
        kit.backend.unprotect(&mut unprotects);
        let verdicts = unprotects.iter().map(|unprotect| unprotect.verdict).collect();
        (packets, verdicts)
    })
}

fn received(shape: &Shape, packets: &Packets) {
    let (left, verdicts) = unprotected(shape, packets, Some(shape.number), shape.at);
    for ((came, left), verdict) in packets.iter().zip(&left).zip(verdicts) {
        match verdict {
            Ok(opened) => assert!(opened.number < 1 << 62 && opened.header_bytes > shape.at),
            Err(Refusal::Length) => assert_eq!(left, came),
            Err(_) => {
                let payload = &left[(shape.at + 4).min(left.len() - TAG_BYTES)..];
                assert!(payload[..payload.len() - TAG_BYTES].iter().all(|byte| *byte == 0));
            }
        }
    }
}

fn opened(shape: &Shape, packets: &Packets) {
    let (data, verdicts) = in_all(|kit| {
        let mut packets = packets.clone();
        let mut opens = Vec::new();
        for (packet, (key, _)) in
            packets.iter_mut().zip(kit.keys.iter().cycle().skip(shape.aead % 3))
        {
            let Some((rest, tag)) = packet.split_last_chunk_mut() else { continue };
            let (aad, data) = rest.split_at_mut(shape.at.min(rest.len()));
            let (key, nonce) = (key.key(), key.nonce(shape.number));
            opens.push(Open { key, nonce, aad, data, tag: *tag, authentic: true });
        }
        kit.backend.open(&mut opens).expect("they are short");
        let verdicts: Vec<bool> = opens.iter().map(|open| open.authentic).collect();
        (packets, verdicts)
    });
    // Sealed again, what was authentic is what it was, and anything is authentic.
    for kit in &*KITS {
        let mut sealed = data.clone();
        let long = packets.iter().filter(|packet| packet.len() >= TAG_BYTES).count();
        assert_eq!(long, verdicts.len());
        for (at, packet) in sealed.iter_mut().enumerate() {
            let (key, _) = &kit.keys[(at + shape.aead) % 3];
            let Some((rest, tag)) = packet.split_last_chunk_mut() else { continue };
            let (aad, data) = rest.split_at_mut(shape.at.min(rest.len()));
            let (key, nonce) = (key.key(), key.nonce(shape.number));
            let before = data.to_vec();
            kit.backend.seal(&mut [Seal { key, nonce, aad, data, tag }]).expect("they are short");
            let mut open = [Open { key, nonce, aad, data, tag: *tag, authentic: false }];
            kit.backend.open(&mut open).expect("they are short");
            assert!(open[0].authentic && *open[0].data == before);
        }
    }
}

fn sent(shape: &Shape, packets: &Packets) {
    // A phase would be the other key's.
    let mut packets = packets.clone();
    packets.iter_mut().filter_map(|packet| packet.first_mut()).for_each(|first| *first &= !4);
    packets.pop();
    let (protected, result) = in_all(|kit| {
        let mut packets = packets.clone();
        let mut protects: Vec<_> = packets
            .iter_mut()
            .zip(kit.keys.iter().cycle().skip(shape.aead % 3))
            .map(|(packet, (key, header_key))| Protect {
                key,
                header_key,
                number: shape.number,
                header_bytes: shape.at,
                packet,
            })
            .collect();
        let result = kit.backend.protect(&mut protects);
        (packets, result)
    });
    if let Err(Fault { job, .. }) = result {
        assert!(job < packets.len());
        assert_eq!(protected, packets);
        return;
    }
    for (at, (sent, clear)) in protected.into_iter().zip(packets).enumerate() {
        let shape = Shape { aead: shape.aead + at, ..*shape };
        let number_at = shape.at - usize::from(clear[0] & 3) - 1;
        let largest = shape.number.checked_sub(1);
        let (received, verdicts) = unprotected(&shape, &vec![sent], largest, number_at);
        let opened = Opened { number: shape.number, header_bytes: shape.at, used: Used::Current };
        assert_eq!(verdicts, [Ok(opened)]);
        let payload = shape.at..clear.len() - TAG_BYTES;
        assert_eq!(received[0][payload.clone()], clear[payload]);
        assert_eq!(received[0][..number_at], clear[..number_at]);
    }
}
