//! QUIC's keys: against the examples of the standards, against those of ring, in a connection, and
//! when the engine fails.

use crate::authority::{Authority, KeyType, server_config};
use crate::probe::{Op, Probe};
use keyway_engine::{Algorithm, Engine};
use keyway_tls::provider;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::quic::{
    ClientConnection, Connection, DirectionalKeys, HeaderProtectionKey, KeyChange, Keys, PacketKey,
    ServerConnection, Suite, Version,
};
use rustls::{CipherSuite, Error, Side, SupportedCipherSuite};
use std::sync::Arc;

const AES_128: CipherSuite = CipherSuite::TLS13_AES_128_GCM_SHA256;
const CHACHA20: CipherSuite = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
const TAG_BYTES: usize = 16;
/// How far behind the start of the packet number the sample lies, in bytes (RFC 9001 § 5.4.2).
const TO_SAMPLE: usize = 4;

fn suites(provider: &CryptoProvider) -> Vec<Suite> {
    let suites = provider.cipher_suites.iter();
    suites
        .filter_map(SupportedCipherSuite::tls13)
        .map(|suite| suite.quic_suite().unwrap())
        .collect()
}

fn ours() -> Vec<Suite> {
    suites(&provider(&keyway_drivers::engine()))
}

fn find(suites: &[Suite], wanted: CipherSuite) -> Suite {
    *suites.iter().find(|suite| suite.suite.common.suite == wanted).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

/// Protects a packet whose header ends in its number.
fn protect(keys: &DirectionalKeys, number: u64, header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut packet = [header, payload].concat();
    let (head, body) = packet.split_at_mut(header.len());
    let tag = keys.packet.encrypt_in_place(number, head, body).unwrap();
    packet.extend_from_slice(tag.as_ref());
    let number_bytes = usize::from(header[0] & 3) + 1;
    let number_at = header.len() - number_bytes;
    let (head, rest) = packet.split_at_mut(number_at + TO_SAMPLE);
    let (first, head) = head.split_at_mut(1);
    let sample = &rest[..keys.header.sample_len()];
    let number = &mut head[number_at - 1..number_at - 1 + number_bytes];
    keys.header.encrypt_in_place(sample, &mut first[0], number).unwrap();
    packet
}

/// The reverse: header and payload, if it is authentic. The number is known.
fn unprotect(
    keys: &DirectionalKeys,
    number: u64,
    number_at: usize,
    packet: &[u8],
) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let mut packet = packet.to_vec();
    let (head, rest) = packet.split_at_mut(number_at + TO_SAMPLE);
    let (first, head) = head.split_at_mut(1);
    let sample = &rest[..keys.header.sample_len()];
    // All four bytes that a number can have: how many it has is only known afterwards.
    keys.header.decrypt_in_place(sample, &mut first[0], &mut head[number_at - 1..])?;
    let header_bytes = number_at + usize::from(packet[0] & 3) + 1;
    let (header, body) = packet.split_at_mut(header_bytes);
    let plain = keys.packet.decrypt_in_place(number, header, body)?.to_vec();
    Ok((header.to_vec(), plain))
}

/// Keys as they are written down in the standards.
fn keys(suite: Suite, key: &str, iv: &str, header_key: &str) -> DirectionalKeys {
    let key_of = |text: &str| AeadKey::from(<[u8; 32]>::try_from(hex(text)).unwrap());
    let iv = Iv::from(<[u8; 12]>::try_from(hex(iv)).unwrap());
    DirectionalKeys {
        header: suite.quic.header_protection_key(key_of(header_key)),
        packet: suite.quic.packet_key(key_of(key), iv),
    }
}

/// The client's first ClientHello in RFC 9001 § A.2, and RFC 9369 § A.2.
const CLIENT_HELLO: &str = "\
    060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868 \
    04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578 \
    616d706c652e636f6dff01000100000a00080006001d00170018001000070005 \
    04616c706e000500050100000000003300260024001d00209370b2c9caa47fba \
    baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400 \
    0d0010000e0403050306030203080408050806002d00020101001c0002400100 \
    3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000 \
    75300901100f088394c8f03e51570806048000ffff";
/// The server's answer in RFC 9001 § A.3, and RFC 9369 § A.3.
const SERVER_HELLO: &str = "\
    02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739 \
    88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94 \
    0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00 \
    020304";

/// Initial packets as one version's standard shows them.
struct Example {
    version: Version,
    client_header: &'static str,
    client_protected: &'static str,
    client_sample: &'static str,
    client_tag: &'static str,
    server_header: &'static str,
    server_packet: &'static str,
}

/// RFC 9001 § A.1 to A.3 and RFC 9369 § A.1 to A.3.
const INITIAL: [Example; 2] = [
    Example {
        version: Version::V1,
        client_header: "c300000001088394c8f03e5157080000449e00000002",
        client_protected: "c000000001088394c8f03e5157080000449e7b9aec34",
        client_sample: "d1b1c98dd7689fb8ec11d242b123dc9b",
        client_tag: "e221af44860018ab0856972e194cd934",
        server_header: "c1000000010008f067a5502a4262b50040750001",
        server_packet: "\
            cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a \
            5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3 \
            dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84 \
            022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4 \
            2158407dd074ee",
    },
    Example {
        version: Version::V2,
        client_header: "d36b3343cf088394c8f03e5157080000449e00000002",
        client_protected: "d76b3343cf088394c8f03e5157080000449ea0c95e82",
        client_sample: "ffe67b6abcdb4298b485dd04de806071",
        client_tag: "",
        server_header: "d16b3343cf0008f067a5502a4262b50040750001",
        server_packet: "\
            dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698 \
            baeea26b91eb761d9b89237bbf87263017915358230035f7fd3945d88965cf17 \
            f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e42757507698075b2 \
            c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca8 \
            4bed8521e2e140",
    },
];

#[test]
fn initial_packets_are_those_of_the_standards() {
    let connection_id = hex("8394c8f03e515708");
    let suite = find(&ours(), AES_128);
    for example in &INITIAL {
        let client = suite.keys(&connection_id, Side::Client, example.version);
        let server = suite.keys(&connection_id, Side::Server, example.version);
        let header = hex(example.client_header);
        let mut payload = hex(CLIENT_HELLO);
        payload.resize(1162, 0);
        let packet = protect(&client.local, 2, &header, &payload);
        assert_eq!(packet.len(), 1200);
        assert_eq!(packet[..header.len()], hex(example.client_protected));
        assert_eq!(packet[22..38], hex(example.client_sample));
        assert!(packet.ends_with(&hex(example.client_tag)));
        assert_eq!(unprotect(&server.remote, 2, 18, &packet), Ok((header, payload)));

        let (header, payload) = (hex(example.server_header), hex(SERVER_HELLO));
        let packet = protect(&server.local, 1, &header, &payload);
        assert_eq!(packet, hex(example.server_packet));
        assert_eq!(unprotect(&client.remote, 1, 18, &packet), Ok((header, payload)));
    }
}

/// RFC 9001 § A.5 and RFC 9369 § A.5.
#[test]
fn short_headers_are_those_of_the_standards() {
    let suite = find(&ours(), CHACHA20);
    let v1 = keys(
        suite,
        "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8",
        "e0459b3474bdd0e44a41c144",
        "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4",
    );
    let v2 = keys(
        suite,
        "3bfcddd72bcf02541d7fa0dd1f5f9eeea817e09a6963a0e6c7df0f9a1bab90f2",
        "a6b5bc6ab7dafce30ffff5dd",
        "d659760d2ba434a226fd37b35c69e2da8211d10c4f12538787d65645d5d1b8e2",
    );
    for (keys, expected) in [
        (v1, "4cfe4189655e5cd55c41f69080575d7999c25a5bfb"),
        (v2, "5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba"),
    ] {
        let (number, header) = (654_360_564, hex("4200bff4"));
        let packet = protect(&keys, number, &header, &[1]);
        assert_eq!(packet, hex(expected));
        assert_eq!(unprotect(&keys, number, 1, &packet), Ok((header, vec![1])));
    }
}

/// Every suite, version and side; headers short and long with numbers of 1 to 4 bytes; every length
/// around blocks, and packets as large as they come.
#[test]
fn packets_are_those_of_ring() {
    let (ours, theirs) = (ours(), suites(&ring::default_provider()));
    assert_eq!(ours.len(), 3);
    let lengths = (3..70).chain([255, 256, 1_000, 1_200, 1_452, 16_000, 65_000]);
    for (length, seed) in lengths.zip(0u8..) {
        for version in [Version::V1, Version::V2] {
            for suite in &ours {
                let name = suite.suite.common.suite;
                let connection_id = [seed; 8];
                let us = suite.keys(&connection_id, Side::Client, version);
                let them = find(&theirs, name).keys(&connection_id, Side::Server, version);
                let form = if seed % 2 == 0 { 0x40 } else { 0xc0 };
                let number_bytes = usize::from(seed) % 4 + 1;
                let mut header = vec![seed; usize::from(seed) % 30 + number_bytes];
                header[0] = form | (number_bytes as u8 - 1);
                let payload: Vec<u8> = (0..length).map(|at| at as u8 ^ seed).collect();
                let number = u64::from(seed) << 40 | 7;
                let at = header.len() - number_bytes;
                // A packet with too little in it to be sampled is padded by its maker.
                let what = format!("{name:?}, {version:?}, {length} bytes, header {header:02x?}");
                let both = (header.clone(), payload.clone());
                if at == 0 {
                    continue;
                }
                let packet = protect(&us.local, number, &header, &payload);
                assert_eq!(
                    unprotect(&them.remote, number, at, &packet).as_ref(),
                    Ok(&both),
                    "{what}"
                );
                let packet = protect(&them.local, number, &header, &payload);
                assert_eq!(
                    unprotect(&us.remote, number, at, &packet).as_ref(),
                    Ok(&both),
                    "{what}"
                );
            }
        }
    }
}

/// All first bytes, with as much of the packet as a caller may hand over for its number: bits that
/// are not the number's stay.
#[test]
fn header_masks_are_those_of_ring() {
    let (ours, theirs) = (ours(), suites(&ring::default_provider()));
    for suite in &ours {
        let key = |suite: &Suite| suite.keys(&[9; 8], Side::Client, Version::V1).local.header;
        let keys = [key(suite), key(&find(&theirs, suite.suite.common.suite))];
        for (first, bytes) in (0..=255u8).flat_map(|first| (0..=4).map(move |bytes| (first, bytes)))
        {
            let sample = [first ^ bytes as u8; 16];
            let [us, them] = keys.each_ref().map(|key| {
                let (mut heads, mut numbers) = ([first; 2], [[0x5a; 4]; 2]);
                let number = &mut numbers[0][..bytes];
                key.encrypt_in_place(&sample, &mut heads[0], number).unwrap();
                let number = &mut numbers[1][..bytes];
                key.decrypt_in_place(&sample, &mut heads[1], number).unwrap();
                (heads, numbers)
            });
            assert_eq!(us, them, "{:?}, {first:02x}, {bytes} bytes", suite.suite.common.suite);
        }
    }
}

#[test]
fn limits_are_those_of_the_standard() {
    let theirs = suites(&ring::default_provider());
    for suite in &ours() {
        let theirs = find(&theirs, suite.suite.common.suite);
        let [us, them] = [suite, &theirs].map(|suite| {
            let keys = suite.keys(&[1; 8], Side::Client, Version::V1).local.packet;
            (keys.confidentiality_limit(), keys.integrity_limit(), keys.tag_len())
        });
        assert_eq!(us, them);
        let is_chacha20 = suite.suite.common.suite == CHACHA20;
        assert_eq!(us.1, 1 << if is_chacha20 { 36 } else { 52 });
    }
}

#[test]
fn a_packet_that_was_changed_does_not_open() {
    for suite in ours() {
        let client = suite.keys(&[2; 8], Side::Client, Version::V1);
        let server = suite.keys(&[2; 8], Side::Server, Version::V1);
        let header = hex("4301020304050607080a0b0c0d");
        let at = header.len() - 4;
        let packet = protect(&client.local, 9, &header, &[5; 40]);
        assert!(unprotect(&server.remote, 9, at, &packet).is_ok());
        for byte in 0..packet.len() {
            for bit in 0..8 {
                let mut packet = packet.clone();
                packet[byte] ^= 1 << bit;
                let opened = unprotect(&server.remote, 9, at, &packet);
                assert_eq!(opened, Err(Error::DecryptError), "byte {byte}, bit {bit}");
            }
        }
        let another = unprotect(&server.remote, 10, at, &packet);
        assert_eq!(another, Err(Error::DecryptError));
        // Cut short, so far that not even a tag is left.
        for length in 0..TAG_BYTES {
            let mut cut = [0; TAG_BYTES];
            let cut = server.remote.packet.decrypt_in_place(9, &header, &mut cut[..length]);
            assert_eq!(cut, Err(Error::DecryptError));
        }
    }
}

/// A packet that does not open is not left decrypted in the buffer either.
#[test]
fn nothing_of_a_forged_packet_is_released() {
    for suite in ours() {
        let client = suite.keys(&[3; 8], Side::Client, Version::V1);
        let server = suite.keys(&[3; 8], Side::Server, Version::V1);
        let plain = [b'p'; 200];
        let mut data = plain.to_vec();
        let tag = client.local.packet.encrypt_in_place(1, b"header", &mut data).unwrap();
        data.extend_from_slice(tag.as_ref());
        let last = data.len() - 1;
        data[last] ^= 1;
        let opened = server.remote.packet.decrypt_in_place(1, b"header", &mut data);
        assert_eq!(opened, Err(Error::DecryptError));
        assert!(!data.windows(8).any(|part| part == [b'p'; 8]));
    }
}

#[test]
fn lengths_that_no_packet_has_are_refused() {
    for suite in ours() {
        let header = suite.keys(&[4; 8], Side::Client, Version::V1).local.header;
        for (sample, number) in [(15, 1), (17, 1), (0, 0), (16, 5)] {
            let (mut first, mut bytes) = (0x43, [7; 5]);
            let result =
                header.encrypt_in_place(&[0; 17][..sample], &mut first, &mut bytes[..number]);
            assert!(matches!(result, Err(Error::General(_))));
            let result =
                header.decrypt_in_place(&[0; 17][..sample], &mut first, &mut bytes[..number]);
            assert!(matches!(result, Err(Error::General(_))));
            assert_eq!((first, bytes), (0x43, [7; 5]));
        }
    }
}

/// Client and server, each with an engine, up to the keys of the data.
fn connect(version: Version, suite: CipherSuite) -> [(Keys, rustls::quic::Secrets); 2] {
    let authority = Authority::new(KeyType::P256);
    let identity = authority.issue(KeyType::P256);
    let engine = keyway_drivers::engine;
    let mut server = server_config(&engine(), identity.chain, identity.key, None).unwrap();
    let mut restricted = (*provider(&engine())).clone();
    restricted.cipher_suites.retain(|other| other.suite() == suite);
    let mut client = rustls::ClientConfig::builder_with_provider(Arc::new(restricted))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(authority.roots())
        .with_no_client_auth();
    client.alpn_protocols = vec![b"hq-interop".to_vec()];
    server.alpn_protocols = client.alpn_protocols.clone();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(client.into(), version, name, b"client".to_vec()).unwrap();
    let server = ServerConnection::new(server.into(), version, b"server".to_vec()).unwrap();
    let mut sides = [Connection::Client(client), Connection::Server(server)];
    let mut keys = [const { Vec::new() }; 2];
    for turn in 0..6 {
        let (from, to) = (turn % 2, 1 - turn % 2);
        // One piece for each of the keys that it is sent under.
        loop {
            let mut piece = Vec::new();
            let change = sides[from].write_hs(&mut piece);
            if piece.is_empty() && change.is_none() {
                break;
            }
            sides[to].read_hs(&piece).unwrap();
            keys[from].extend(change);
        }
    }
    assert_eq!(sides[0].quic_transport_parameters(), Some(&b"server"[..]));
    assert_eq!(sides[1].quic_transport_parameters(), Some(&b"client"[..]));
    keys.map(|changes| {
        let last = changes.into_iter().last();
        let Some(KeyChange::OneRtt { keys, next }) = last else { panic!("no keys for data") };
        (keys, next)
    })
}

/// The handshake, data both ways, and keys that are renewed again and again.
#[test]
fn a_connection_and_its_key_updates() {
    for version in [Version::V1, Version::V2] {
        for suite in ours().iter().map(|suite| suite.suite.common.suite) {
            let [(mut client, mut client_next), (mut server, mut server_next)] =
                connect(version, suite);
            let header = hex("4101020304050607080001");
            let at = header.len() - 2;
            for round in 0..4u8 {
                let data = vec![round; 1_300];
                let there = protect(&client.local, 1, &header, &data);
                assert_eq!(unprotect(&server.remote, 1, at, &there).unwrap().1, data);
                let back = protect(&server.local, 1, &header, &data);
                assert_eq!(unprotect(&client.remote, 1, at, &back).unwrap().1, data);
                let (ours, theirs) =
                    (client_next.next_packet_keys(), server_next.next_packet_keys());
                (client.local.packet, client.remote.packet) = (ours.local, ours.remote);
                (server.local.packet, server.remote.packet) = (theirs.local, theirs.remote);
                // The old packet does not open under the new key; its mask is still the same.
                assert_eq!(unprotect(&server.remote, 1, at, &there), Err(Error::DecryptError));
            }
        }
    }
}

/// The directional keys of an engine that writes down what it is asked.
fn watched(probe: &Probe, suite: CipherSuite) -> (DirectionalKeys, DirectionalKeys) {
    let suites = suites(&provider(&probe.engine()));
    let keys = |side| find(&suites, suite).keys(&[5; 8], side, Version::V1);
    let (client, server) = (keys(Side::Client), keys(Side::Server));
    probe.restart(0..0);
    (client.local, server.remote)
}

#[test]
fn a_packet_is_two_requests_on_each_side() {
    for (suite, aead, mask) in [
        (AES_128, Algorithm::Aes128Gcm, Algorithm::QuicMaskAes128),
        (CHACHA20, Algorithm::ChaCha20Poly1305, Algorithm::QuicMaskChaCha20),
    ] {
        let probe = Probe::new();
        let (from, to) = watched(&probe, suite);
        let packet = protect(&from, 3, &hex("4002"), &[0; 30]);
        assert_eq!(probe.events(), [(Op::Seal, aead), (Op::Mask, mask)]);
        unprotect(&to, 3, 1, &packet).unwrap();
        assert_eq!(probe.events()[2..], [(Op::Mask, mask), (Op::OpenRecord, aead)]);
    }
}

/// quinn panics on an error from here, so a packet that the engine fails on leaves as noise, which
/// the peer drops.
#[test]
fn what_the_engine_fails_on_is_noise() {
    let plain = [b'p'; 64];
    let (header, at) = (hex("4102030405060708090001"), 9);
    for suite in [AES_128, CHACHA20] {
        let probe = Probe::new();
        let (from, to) = watched(&probe, suite);
        let mut seen = vec![protect(&from, 1, &header, &plain)];
        // The payload, then the mask; then also the random bytes that stand in for them.
        for fails in [0..1, 0..1, 1..2, 1..2, 0..usize::MAX] {
            let sealing = fails.contains(&0);
            probe.restart(fails);
            let packet = protect(&from, 1, &header, &plain);
            probe.restart(0..0);
            assert!(!packet.windows(8).any(|part| part == [b'p'; 8]));
            assert_eq!(unprotect(&to, 1, at, &packet), Err(Error::DecryptError));
            for other in &seen {
                let (masked, sealed) = (other[..11] != packet[..11], other[11..] != packet[11..]);
                assert!(if sealing { sealed } else { masked }, "{packet:02x?} and {other:02x?}");
            }
            seen.push(packet);
        }
        // The receiver's: the mask, then the payload.
        for fails in [0..1, 0..usize::MAX, 1..2] {
            probe.restart(fails);
            let opened = unprotect(&to, 1, at, &seen[0]);
            assert!(opened.is_err());
            probe.restart(0..0);
        }
        assert!(unprotect(&to, 1, at, &seen[0]).is_ok());
    }
}

/// An engine that refuses a key has no packets, and no panic either.
#[test]
fn a_key_that_the_engine_refuses_protects_nothing() {
    let probe = Probe::new();
    let suites = suites(&provider(&probe.engine()));
    let suite = find(&suites, CHACHA20);
    probe.restart(0..usize::MAX);
    let iv = || Iv::from([9; 12]);
    let packet: Box<dyn PacketKey> = suite.quic.packet_key(AeadKey::from([8; 32]), iv());
    let header: Box<dyn HeaderProtectionKey> =
        suite.quic.header_protection_key(AeadKey::from([8; 32]));
    let mut data = [b'p'; 64];
    packet.encrypt_in_place(1, b"header", &mut data).unwrap();
    assert!(!data.windows(8).any(|part| part == [b'p'; 8]));
    assert!(packet.decrypt_in_place(1, b"header", &mut data).is_err());
    header.encrypt_in_place(&[0; 16], &mut 0x40, &mut [1]).unwrap();
}

/// Without a driver for its masks a suite is one of TLS over TCP only.
#[test]
fn keys_need_masks() {
    let engine: Engine = Probe::without(&[Algorithm::QuicMaskAes256]).engine();
    for suite in provider(&engine).cipher_suites.iter().filter_map(SupportedCipherSuite::tls13) {
        let is_aes_256 = suite.common.suite == CipherSuite::TLS13_AES_256_GCM_SHA384;
        assert_eq!(suite.quic.is_none(), is_aes_256);
    }
}
