//! No key stays behind on the stack of a thread that opened a session, used it and dropped it.
//!
//! Each case runs on a thread of its own, which then reads its stack below itself as the system
//! shows it, and looks for the key and for what AES, HMAC and the library's numbers make of it.

use aws_lc_rs::encoding::AsBigEndian;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair,
};
use keyway_drivers::{multibuffer, simd_on, software};
use keyway_engine::{
    Algorithm, Driver, Engine, Key, Kind, NONCE_BYTES, Operation, PacketKey, PacketKeys,
    Parameters, Request, Task, workload,
};
use keyway_simd::packet::PacketBackend;
use std::collections::HashSet;
use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;

/// Bytes of what is looked for: a register's half is found, too.
const PIECE: usize = 8;

type Pieces = HashSet<[u8; PIECE]>;

/// How often any of these pieces lies on the stack that `work` has left.
fn traces(pieces: &Pieces, work: impl FnOnce() + Send) -> usize {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, || {
            with_room_above(work);
            let stack = stack_below();
            // A byte that was never touched is zero, as no piece is: a debug build is slow enough.
            let untouched = stack.iter().take_while(|byte| **byte == 0).count();
            let touched = &stack[untouched.saturating_sub(PIECE)..];
            let begin: HashSet<u8> = pieces.iter().map(|piece| piece[0]).collect();
            let begins: [bool; 256] = std::array::from_fn(|byte| begin.contains(&(byte as u8)));
            let is_piece =
                |window: &&[u8]| begins[usize::from(window[0])] && pieces.contains(*window);
            touched.windows(PIECE).filter(is_piece).count()
        });
        thread.unwrap().join().unwrap()
    })
}

/// Calls it with its frames so far below that what looks at them later overwrites none.
#[inline(never)]
fn with_room_above(work: impl FnOnce()) {
    let capacity = black_box([0_u8; 32 << 10]);
    work();
    black_box(&capacity);
}

/// This thread's stack, from its end up to this function.
#[inline(never)]
fn stack_below() -> Vec<u8> {
    let here = 0_u8;
    let here = std::ptr::from_ref(black_box(&here)).addr() as u64;
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let number = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
    let ranges = maps.lines().filter_map(|line| line.split(' ').next()?.split_once('-'));
    let mut ranges = ranges.map(|(start, end)| number(start)..number(end));
    let range = ranges.find(|range| range.contains(&here)).unwrap();
    let mut stack = vec![0; (here - range.start) as usize];
    File::open("/proc/self/mem").unwrap().read_exact_at(&mut stack, range.start).unwrap();
    stack
}

/// All the pieces of some secret.
fn cut(secret: &[u8], pieces: &mut Pieces) {
    // A piece of nothing but zeros is everywhere.
    let cut = secret.as_chunks::<PIECE>().0.iter().filter(|piece| **piece != [0; PIECE]);
    pieces.extend(cut);
}

/// The pieces of a symmetric key, of HMAC's blocks and of AES's round keys.
fn symmetric(key: &[u8], pieces: &mut Pieces) {
    cut(key, pieces);
    for pad in [0x36, 0x5c] {
        cut(&key.iter().map(|byte| byte ^ pad).collect::<Vec<_>>(), pieces);
    }
    if matches!(key.len(), 16 | 32) {
        cut(&round_keys(key), pieces);
    }
    // XTS, and HMAC, take two.
    if key.len() > 16 {
        let (one, other) = key.split_at(key.len() / 2);
        [one, other].into_iter().filter(|half| matches!(half.len(), 16 | 32)).for_each(|half| {
            cut(&round_keys(half), pieces);
        });
    }
}

/// FIPS 197 § 5.2.
fn round_keys(key: &[u8]) -> Vec<u8> {
    let (words, rounds) = (key.len() / 4, key.len() / 4 + 6);
    let mut schedule: Vec<[u8; 4]> = key.as_chunks().0.to_vec();
    let mut constant = 1;
    for at in words..4 * (rounds + 1) {
        let mut word = schedule[at - 1];
        if at % words == 0 {
            word.rotate_left(1);
            word = word.map(substitute);
            word[0] ^= constant;
            constant = doubled(constant);
        } else if words > 6 && at % words == 4 {
            word = word.map(substitute);
        }
        let before = schedule[at - words];
        schedule.push(std::array::from_fn(|byte| word[byte] ^ before[byte]));
    }
    schedule.concat()
}

fn doubled(byte: u8) -> u8 {
    (byte << 1) ^ ((byte >> 7) * 0x1b)
}

/// AES's S-box (FIPS 197 § 5.1.1): the inverse, which is the power of 254, and a sum of rotations.
fn substitute(byte: u8) -> u8 {
    let times = |a: u8, b: u8| {
        let terms = (0..8).scan(a, |a, _| Some(std::mem::replace(a, doubled(*a))));
        terms.enumerate().fold(0, |sum, (bit, term)| sum ^ ((b >> bit & 1) * term))
    };
    let inverse = (0..254).fold(1, |product, _| times(product, byte));
    (0..5).fold(0x63, |sum, bits| sum ^ inverse.rotate_left(bits))
}

fn random(bytes: usize) -> Vec<u8> {
    let mut random = vec![0; bytes];
    aws_lc_rs::rand::fill(&mut random).unwrap();
    random
}

/// Every driver that keeps keys in its own way.
fn drivers() -> Vec<Arc<dyn Driver>> {
    let backends = PacketBackend::available().map(simd_on);
    backends.chain([software()]).chain(multibuffer()).collect()
}

/// The requests to a session of this algorithm.
fn operations(algorithm: Algorithm) -> Vec<Operation> {
    let peer = match algorithm {
        Algorithm::X25519 => vec![9; 32],
        _ => vec![0; algorithm.public_key_bytes().unwrap_or(0)],
    };
    let first = workload::operation(&[algorithm], vec![5; 512], peer, 8_192);
    let second = match algorithm.kind() {
        Kind::Exchange => Some(Operation::public_key(algorithm)),
        _ => workload::inverse(&first, 512),
    };
    [Some(first), second].into_iter().flatten().collect()
}

/// Opens a session, has it do everything it can, by direct calls and through a queue, and drops it.
fn use_key(driver: &Arc<dyn Driver>, algorithm: Algorithm, key: Key<'_>) {
    let engine = Engine::builder().legacy(true).driver(driver.clone()).build();
    let session = engine.session(Parameters::new(algorithm, key)).unwrap();
    for mut operation in operations(algorithm) {
        // Some of what it is asked is not authentic; it is worked on all the same.
        let _ = operation.with(|request: &mut Request<'_>| session.run(request));
    }
    let mut queue = engine.queue(64);
    let many = (0..16).flat_map(|_| operations(algorithm));
    let mut tasks: Vec<_> = many.map(|operation| Task::new(&session, operation)).collect();
    queue.submit(&mut tasks, false);
    let mut done = Vec::new();
    while queue.in_flight() > 0 {
        queue.wait(&mut done, std::time::Duration::from_secs(10));
    }
}

/// Left on the stack, a key is found: what the others find nothing with can find something.
#[test]
fn what_is_left_is_found() {
    #[inline(never)]
    fn careless(key: &[u8]) -> usize {
        let copy: [u8; 32] = key.try_into().unwrap();
        black_box(&copy).iter().map(|byte| usize::from(*byte)).sum()
    }
    let key = random(32);
    let mut pieces = Pieces::new();
    symmetric(&key, &mut pieces);
    assert!(traces(&pieces, || assert!(careless(black_box(&key)) > 0)) >= 4);
    assert_eq!(traces(&pieces, || ()), 0);
    // FIPS 197 § A.1: the last round key.
    let key = [0x2b7e_1516_u32, 0x28ae_d2a6, 0xabf7_1588, 0x09cf_4f3c].map(u32::to_be_bytes);
    let last = [0xd014_f9a8_u32, 0xc9ee_2589, 0xe13f_0cc8, 0xb663_0ca6].map(u32::to_be_bytes);
    assert_eq!(round_keys(&key.concat())[160..], last.concat());
}

#[test]
fn no_symmetric_key_stays_on_the_stack() {
    let mut left = Vec::new();
    let mut looked_at = 0;
    for driver in drivers() {
        for &algorithm in Algorithm::ALL {
            let bytes = workload::secret_bytes(algorithm);
            let Some(bytes) = bytes.filter(|_| driver.supports(&[algorithm])) else { continue };
            looked_at += 1;
            let mut pieces = Pieces::new();
            let keys: Vec<_> = (0..3).map(|_| random(bytes)).collect();
            keys.iter().for_each(|key| symmetric(key, &mut pieces));
            let iv: Box<[u8; NONCE_BYTES]> = random(NONCE_BYTES).try_into().unwrap();
            let packet_key = |key| PacketKey { key, iv: &iv };
            let key = match algorithm.kind() {
                Kind::Packet => Key::Packet(PacketKeys {
                    next: Some(packet_key(&keys[2])),
                    ..PacketKeys::new(&keys[0], packet_key(&keys[1]))
                }),
                _ => Key::Secret(&keys[0]),
            };
            let found = traces(&pieces, || use_key(&driver, algorithm, key));
            if found > 0 {
                left.push(format!("{} {algorithm}: {found}", driver.name()));
            }
        }
    }
    assert!(looked_at > 40, "{looked_at}");
    assert!(left.is_empty(), "{}", left.join("\n"));
}

#[test]
fn no_private_key_stays_on_the_stack() {
    let mut left = Vec::new();
    let mut look = |algorithm: Algorithm, private: &[u8], key: Key<'_>| {
        let mut pieces = Pieces::new();
        cut(private, &mut pieces);
        // As the library's numbers have it.
        cut(&private.iter().rev().copied().collect::<Vec<_>>(), &mut pieces);
        let found = traces(&pieces, || use_key(&software(), algorithm, key));
        if found > 0 {
            left.push(format!("{algorithm}: {found}"));
        }
    };
    let mut scalar = |algorithm: Algorithm, bytes| {
        let mut private = random(bytes);
        // Below every group's order.
        private[0] = 1;
        look(algorithm, &private, Key::Secret(&private));
    };
    scalar(Algorithm::X25519, 32);
    scalar(Algorithm::EcdhP256, 32);
    scalar(Algorithm::EcdhP384, 48);
    scalar(Algorithm::Ffdhe2048, 32);
    for (algorithm, named) in [
        (Algorithm::EcdsaP256Sha256, &ECDSA_P256_SHA256_ASN1_SIGNING),
        (Algorithm::EcdsaP384Sha384, &ECDSA_P384_SHA384_ASN1_SIGNING),
    ] {
        let pair = EcdsaKeyPair::generate(named).unwrap();
        let private = pair.private_key().as_be_bytes().unwrap();
        look(algorithm, private.as_ref(), Key::Pkcs8(pair.to_pkcs8v1().unwrap().as_ref()));
    }
    let mut seed = hex_of_ed25519();
    let private = random(32);
    seed.extend_from_slice(&private);
    look(Algorithm::Ed25519, &private, Key::Pkcs8(&seed));
    assert!(left.is_empty(), "{}", left.join("\n"));
}

/// The bytes before the 32 of an Ed25519 key in PKCS#8 (RFC 8410 § 7).
fn hex_of_ed25519() -> Vec<u8> {
    vec![0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20]
}
