//! Requests that are done, and requests that are refused while their ring goes on.

use crate::front_end::message::*;
use crate::front_end::*;
use keyway_engine::{Algorithm, Request, SignatureParameters};
use keyway_vhost_user::Limits;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// SP 800-38A § F.2: keys and ciphertexts. The IV and the text are always the same.
const VECTORS: [(&str, &str); 3] = [
    (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "7649abac8119b246cee98e9b12e9197d 5086cb9b507219ee95db113a917678b2
         73bed6b8e3c1743b7116e69e22229516 3ff1caa1681fac09120eca307586e1a7",
    ),
    (
        "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
        "4f021db243bc633d7178183a9fa071e8 b4d9ada9ad7dedf4e5e738763f69145a
         571b242012fb7ae07fa9baac3df102e0 08b0e27988598881d920a9e64f5615cd",
    ),
    (
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        "f58c4c04d6e5f1ba779eabfb5f7bfbd6 9cfc4e967edb808d679f777bc6702c7d
         39f23369a9d9bacfa530e26304231461 b2eb05e2c39be9fcda6c19078c6a9d1b",
    ),
];
const TEXT: &str = "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51
                    30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710";

/// A session in QEMU's layout before 7.1, with an operation's number in front, and in its layout of today.
fn other_layouts(key: &[u8], decrypts: bool) -> [(Vec<u8>, usize); 2] {
    let direction = 1 + u8::from(decrypts);
    let mut before = vec![0; 632];
    (before[8], before[12], before[16]) = (2, 3, key.len() as u8);
    (before[36], before[37]) = (1, direction);
    before[56..56 + key.len()].copy_from_slice(key);
    let mut later = vec![0; 1_072];
    (later[0], later[8], later[12]) = (2, 3, key.len() as u8);
    (later[32], later[33]) = (1, direction);
    later[56..56 + key.len()].copy_from_slice(key);
    [(before, 0), (later, 1_064)]
}

#[test]
fn cbc_of_sp_800_38a_both_ways_by_each_layout_and_by_the_control_queue() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    let (iv, text): (Vec<u8>, _) = ((0..16).collect(), hex(TEXT));
    for (key, sealed) in VECTORS.map(|(key, sealed)| (hex(key), hex(sealed))) {
        for decrypts in [false, true] {
            let (source, expected) = if decrypts { (&sealed, &text) } else { (&text, &sealed) };
            let mut sessions = vec![front_end.open(&key, decrypts) as u64];
            for (session, at) in other_layouts(&key, decrypts) {
                let answer = front_end.ask(CREATE_SESSION, &session);
                assert_eq!(answer.len(), session.len());
                sessions.push(u64::from_le_bytes(answer[at..at + 8].try_into().unwrap()));
            }
            let words =
                [(0, 2), (16, 3), (20, key.len() as u32), (24, 1 + u32::from(decrypts)), (64, 1)];
            let (session, 0) = front_end.control(&header(&words), &key) else { panic!() };
            sessions.push(session);
            for session in sessions {
                let request = cipher(decrypts, session, 64);
                let done = front_end.request(0, &[&request, &iv, source], 64);
                assert_eq!(done, (expected.clone(), 0, 65));
                // In pieces that do not respect the parts.
                let whole = [&request[..], &iv, source].concat();
                let pieces: Vec<&[u8]> = whole.chunks(29).collect();
                assert_eq!(front_end.request(0, &pieces, 64), (expected.clone(), 0, 65));
            }
        }
    }
    assert_eq!(device.reported(), [""; 0]);
}

/// As many as the ring has, again and again, over the end of its indexes, with room for nothing else to change.
#[test]
fn many_at_a_time_are_answered_in_order_once_each() {
    let device = Device::start(Limits::default());
    let mut front_end = device.connect();
    front_end.begin();
    front_end.set_memory();
    (front_end.available, front_end.used) = ([65_500, 0], [65_500, 0]);
    front_end.write(available_at(0) + 2, &65_500_u16.to_le_bytes());
    front_end.write(used_at(0) + 2, &65_500_u16.to_le_bytes());
    front_end.start(0);
    let session = front_end.open(&[9; 32], false) as u64;
    let request = front_end.buffer(&cipher(false, session, 32));
    let iv = front_end.buffer(&[1; 16]);
    let source = front_end.buffer(&[2; 32]);
    let results: Vec<_> = (0..SIZE).map(|_| front_end.buffer(&[0xee; 33])).collect();
    let mut before = Vec::new();
    for round in 0..20 {
        for head in (0..SIZE).rev() {
            let result = results[usize::from(head)];
            front_end.write(result.0 - GUEST, &[0xee; 33]);
            front_end.put(0, head, &[request, iv, source], &[result], true);
        }
        if round == 0 {
            before = front_end.others(&results);
        }
        let available = available_at(0) as usize;
        before[available..available + 0x1000]
            .copy_from_slice(&front_end.read(available_at(0), 0x1000));
        front_end.kick(0);
        let heads: Vec<_> = (0..u32::from(SIZE)).rev().map(|head| (head, 33)).collect();
        assert_eq!(front_end.wait(0, SIZE), heads);
        let first = front_end.read(results[0].0 - GUEST, 33);
        assert!(first[32] == 0 && first[..32] != [0xee; 32]);
        for result in &results {
            assert_eq!(front_end.read(result.0 - GUEST, 33), first);
        }
        assert!(front_end.others(&results) == before, "something else has changed");
        // The driver is to notify of the next one.
        front_end.settle();
        assert_eq!(front_end.word(used_at(0)), 0);
        let event = front_end.word(used_at(0) + 4 + 8 * u64::from(SIZE));
        assert_eq!(event, front_end.available[0]);
    }
}

/// Descriptors in the ring itself, without a table.
#[test]
fn a_request_without_an_indirect_table() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    let session = front_end.open(&[9; 32], false) as u64;
    let readable = [&cipher(false, session, 32)[..], &[1; 16], &[2; 32]];
    let expected = front_end.request(0, &readable, 32).0;
    let readable = readable.map(|bytes| front_end.buffer(bytes));
    let (result, status) = (front_end.buffer(&[0; 32]), front_end.buffer(&[0xee]));
    front_end.put(0, 7, &readable, &[result, status], false);
    front_end.kick(0);
    assert_eq!(front_end.wait(0, 1), [(7, 33)]);
    assert_eq!(front_end.read(result.0 - GUEST, 32), expected);
    assert_eq!(front_end.read(status.0 - GUEST, 1), [0]);
}

/// PKCS#8 of 2,048 bits: the PKCS#1 is behind 26 bytes.
const RSA_PKCS8: &[u8] = include_bytes!("../../../conformance/keys/rsa-2048.pkcs8");

fn akcipher(operation: u32, session: u64, source: usize, destination: usize) -> Vec<u8> {
    header(&[
        (0, 0x400 + operation),
        (4, 1),
        (8, session as u32),
        (24, source as u32),
        (28, destination as u32),
    ])
}

fn rsa_session(key_type: u32, key: &[u8], padding: u32, hash: u32) -> Vec<u8> {
    let words =
        [16, 20, 24, 28, 32].into_iter().zip([1, key_type, key.len() as u32, padding, hash]);
    header(&[&[(0, 0x404)], &words.collect::<Vec<_>>()[..]].concat())
}

#[test]
fn rsa_by_the_control_queue() {
    let device = Device::start(Limits::default());
    let mut front_end = FrontEnd::ready(&device);
    let (private, engine) = (&RSA_PKCS8[26..], keyway_drivers::engine());
    let parameters =
        keyway_engine::Parameters::new(Algorithm::RsaPkcs1, keyway_engine::Key::Pkcs1(private));
    let public = engine.session(parameters).unwrap().public_key().unwrap();
    let (signs, 0) = front_end.control(&rsa_session(2, private, 1, 6), private) else { panic!() };
    let (verifies, 0) = front_end.control(&rsa_session(1, &public, 1, 6), &public) else {
        panic!()
    };
    let digest = [7; 32];
    let (signature, 0, 257) = front_end.request(0, &[&akcipher(2, signs, 32, 256), &digest], 256)
    else {
        panic!("it signs")
    };
    let verify = &mut Request::Verify {
        public_key: &public,
        message: &digest,
        parameters: SignatureParameters::digest(Algorithm::Sha256),
        signature: &signature,
    };
    engine.run(Algorithm::RsaPkcs1, verify).unwrap();
    let verify = akcipher(3, verifies, 256, 32);
    assert_eq!(front_end.request(0, &[&verify, &signature, &digest], 0).1, 0);
    assert_eq!(front_end.request(0, &[&verify, &signature, &[8; 32]], 0).1, 6);
    let (sealed, 0, 257) = front_end.request(0, &[&akcipher(0, verifies, 5, 256), b"hello"], 256)
    else {
        panic!("it encrypts")
    };
    let (text, 0, 6) = front_end.request(0, &[&akcipher(1, signs, 256, 256), &sealed], 256) else {
        panic!("it decrypts")
    };
    assert_eq!(text[..5], *b"hello");
    let short = front_end.request(0, &[&akcipher(1, signs, 256, 4), &sealed], 8);
    assert_eq!(short, (vec![0xee; 8], 1, 1), "a result that does not fit is not cut");
    // A public key does nothing that takes the private one, and room is asked for first.
    assert_eq!(front_end.request(0, &[&akcipher(2, verifies, 32, 256), &digest], 256).1, 4);
    assert_eq!(front_end.request(0, &[&akcipher(2, signs, 32, 255), &digest], 255).1, 1);
    assert_eq!(front_end.request(0, &[&akcipher(2, signs, 31, 256), &digest], 256).1, 1);
    // Without padding, of a hash that signs nothing, and keys that are none.
    assert_eq!(front_end.control(&rsa_session(2, private, 0, 0), private).1, 3);
    assert_eq!(front_end.control(&rsa_session(2, private, 1, 4), private).1, 3);
    for (key_type, key) in [(1, private), (2, &public), (1, &public[1..]), (2, &[0; 9])] {
        assert_eq!(front_end.control(&rsa_session(key_type, key, 1, 6), key).1, 6);
    }
    assert_eq!(front_end.control(&rsa_session(1, &public, 1, 6), &public[1..]).1, 2);
    let closed = front_end.request(1, &[&header(&[(0, 0x405), (16, signs as u32)])], 0);
    assert_eq!((closed.1, closed.2), (0, 1));
    assert_eq!(front_end.request(0, &[&akcipher(2, signs, 32, 256), &digest], 256).1, 4);
}

#[test]
fn requests_that_do_not_fit_are_refused_and_the_ring_goes_on() {
    let device = Device::start(Limits { sessions: 4, request_bytes: 4_096 });
    let mut front_end = FrontEnd::ready(&device);
    let encrypts = front_end.open(&[1; 16], false) as u64;
    let (iv, text) = ([0; 16], [1; 32]);
    let mut refused = |status: u8, readable: &[&[u8]], room: usize| {
        let done = front_end.request(0, readable, room);
        assert_eq!(done, (vec![0xee; room], status, 1), "{readable:x?}");
    };
    refused(2, &[&[0; 71]], 0);
    refused(2, &[], 0);
    refused(2, &[&[0xff; 72]], 5);
    refused(4, &[&cipher(false, 77, 32), &iv, &text], 32);
    refused(1, &[&cipher(true, encrypts, 32), &iv, &text], 32);
    refused(1, &[&cipher(false, encrypts, 31), &iv, &text], 32);
    refused(2, &[&cipher(false, encrypts, 64), &iv, &text], 64);
    refused(2, &[&cipher(false, encrypts, 32), &iv, &text], 31);
    refused(1, &[&cipher(false, encrypts, 4_112), &iv, &[0; 4_112]], 4_112);
    refused(1, &[&cipher(false, encrypts, u32::MAX), &iv, &text], 32);
    let words = [(8, encrypts as u32), (24, 16), (28, 32), (32, 16), (64, 1)];
    refused(1, &[&header(&words), &iv, &text], 32);
    let words = [(8, encrypts as u32), (24, u32::MAX), (28, 32), (32, 32), (64, 1)];
    refused(2, &[&header(&words), &iv, &text], 32);
    let words = [(8, encrypts as u32), (24, 0), (28, 32), (32, 32), (64, 1)];
    refused(1, &[&header(&words), &iv, &text], 32);
    let words = [(0, 0x400), (8, encrypts as u32), (24, 32), (28, 32)];
    refused(4, &[&header(&words), &text], 32);
    front_end.works();
    assert_eq!(device.reported(), [""; 0]);
}

#[test]
fn the_configuration_says_what_there_is() {
    let device = Device::start(Limits { sessions: 4, request_bytes: 4_096 });
    let mut front_end = device.connect();
    let ask = |offset: u32, bytes: u32| {
        let words = [offset, bytes, 7];
        let mut payload: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        payload.resize(12 + 56, 0);
        payload
    };
    let whole = front_end.ask(GET_CONFIG, &ask(0, 56));
    assert_eq!(whole[..12], [0, 0, 0, 0, 56, 0, 0, 0, 7, 0, 0, 0]);
    let word = |at: usize| u32::from_le_bytes(whole[12 + at..16 + at].try_into().unwrap());
    assert_eq!([0, 4, 8, 12, 36, 44, 48, 52].map(word), [1, 1, 0b10001, 8, 32, 2, 4_096, 0]);
    assert_eq!(front_end.ask(GET_CONFIG, &ask(12, 4))[12..], whole[24..28]);
    for (offset, bytes) in [(56, 1), (0, 57), (u32::MAX, u32::MAX)] {
        assert_eq!(front_end.ask(GET_CONFIG, &ask(offset, bytes)).len(), 12);
    }
}

#[test]
fn as_many_sessions_as_there_may_be_each_connection() {
    let device = Device::start(Limits { sessions: 5, ..Limits::default() });
    for _ in 0..3 {
        let mut front_end = FrontEnd::ready(&device);
        let opened: Vec<_> = (0..8).map(|_| front_end.open(&[1; 16], false)).collect();
        assert_eq!(opened, [1, 2, 3, 4, 5, -1, -1, -1]);
        let words = [(0, 2), (16, 3), (20, 16), (24, 1), (64, 1)];
        assert_eq!(front_end.control(&header(&words), &[1; 16]), (0, 5));
        front_end.send(CLOSE_SESSION, false, &3_u64.to_le_bytes(), &[]);
        front_end.send(CLOSE_SESSION, false, &99_u64.to_le_bytes(), &[]);
        assert_eq!(front_end.open(&[1; 16], false), 6);
        assert_eq!(front_end.open(&[1; 17], false), -1);
        let gone = front_end.request(0, &[&cipher(false, 3, 16), &[0; 16], &[0; 16]], 16);
        assert_eq!(gone.1, 4);
    }
}
