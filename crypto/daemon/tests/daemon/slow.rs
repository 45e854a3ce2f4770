//! Work that takes long, beside others' that does not.

use crate::Served;
use crate::client::{Client, Pair, Region};
use crate::served::is_served;
use keyway_daemon::Weights;
use keyway_daemon::keys::Who;
use keyway_daemon::limits::{ClientLimits, SharedLimits};
use keyway_engine::Algorithm;
use keyway_ring::control::{Answer, Ask, Key, KeyAsk, KeyPolicy, Step};
use keyway_ring::descriptor::{Descriptor, Opcode, Segment, SessionHandle, Status};

fn at(offset: u32, bytes: u32) -> Segment {
    Segment { offset, bytes }
}

/// A password of 8 bytes and a salt of 16, derived into 23 bytes or fewer.
fn derive(region: &Region, session: SessionHandle, cost: [u32; 4], bytes: u32) -> Descriptor {
    let mut parameters = [0; 16];
    for (place, number) in parameters.chunks_exact_mut(4).zip(cost) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    Descriptor {
        opcode: Opcode::Derive as u8,
        session,
        region: region.handle,
        parameters,
        segments: [at(0, 8), at(64, bytes), at(8, 16)],
        ..Descriptor::default()
    }
}

/// Answers that are there, and those that are not.
fn waits(pair: &mut Pair, submitted: usize, answered: &mut Vec<Status>) -> usize {
    while let Some(completion) = pair.end.poll() {
        answered.push(completion.status);
    }
    submitted - answered.len()
}

/// One client's long queue delays neither another's short work nor its long one, and is gone with
/// its client.
#[test]
fn one_clients_passwords_hold_up_no_client() {
    let served = Served::start();
    let slow = Client::new(&served.socket());
    let (mut pair, region) = (slow.pair(64), slow.region(4096));
    let bcrypt = slow.open("bcrypt", Key::None);
    // About three seconds each.
    let long = derive(&region, bcrypt, [3, 15, 0, 0], 23);
    (0..64).for_each(|_| pair.submit(&long));
    let mut answered = Vec::new();

    let other = Client::new(&served.socket());
    let (mut its, memory) = (other.pair(8), other.region(4096));
    let ecdsa = other.open("ecdsa-p384-sha-384", Key::Generate);
    let sign = Descriptor {
        opcode: Opcode::Sign as u8,
        session: ecdsa,
        region: memory.handle,
        segments: [at(0, 9), at(64, 160), at(0, 0)],
        ..Descriptor::default()
    };
    for _ in 0..10 {
        assert_eq!(its.run(&sign).status, Status::Done);
    }
    let argon2 = other.open("argon2id", Key::None);
    let password = derive(&memory, argon2, [1, 64 << 10, 3, 1], 32);
    assert_eq!(its.run(&password).status, Status::Done);
    // In the order of their coming, that would have been after all of the others.
    assert!(waits(&mut pair, 64, &mut answered) > 32, "{answered:?}");
    assert!(answered.iter().all(|status| *status == Status::Done), "{answered:?}");

    let dropped = || keyway_meter::counter("cryptod.slow.dropped").value();
    let before = dropped();
    drop(slow);
    while dropped() - before < 32 {
        is_served(&served.socket());
    }
    assert_eq!(its.run(&password).status, Status::Done);
    // Dropping the daemon waits for none of it.
}

/// More than a request may take is refused before it is begun.
#[test]
fn what_would_take_too_long_is_refused() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let (mut pair, region) = (client.pair(8), client.region(4096));
    let open = |algorithm| client.open(algorithm, Key::None);
    let (bcrypt, argon2, pbkdf2) = (open("bcrypt"), open("argon2id"), open("pbkdf2-sha-256"));
    let costs = [
        derive(&region, bcrypt, [3, 20, 0, 0], 23),
        derive(&region, argon2, [1, 1 << 20, 1, 1], 32),
        derive(&region, argon2, [1, 128 << 10, 64, 1], 32),
        derive(&region, pbkdf2, [0, 20_000_000, 0, 0], 1_000),
    ];
    for descriptor in costs {
        assert_eq!(pair.run(&descriptor).status, Status::InvalidRequest, "{descriptor:?}");
    }
    assert_eq!(pair.run(&derive(&region, bcrypt, [3, 6, 0, 0], 23)).status, Status::Done);
}

/// Requests of many bytes stand before no small one, and come out right.
#[test]
fn large_requests_hold_up_no_small_one() {
    const LARGE: u32 = 16 << 20;
    let served = Served::start();
    let mut clients: Vec<_> = (0..8)
        .map(|_| {
            let client = Client::new(&served.socket());
            let (pair, region) = (client.pair(4), client.region(2 * LARGE as usize));
            let session = client.open("deflate", Key::None);
            (client, pair, region, session)
        })
        .collect();
    let mut chance = 1_u64;
    let noise = std::iter::repeat_with(|| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (chance >> 60) as u8
    });
    let noise: Vec<u8> = noise.take(LARGE as usize).collect();
    let small = Client::new(&served.socket());
    let (mut its, memory) = (small.pair(4), small.region(4096));
    let sha = small.open("sha-256", Key::None);
    let hash = |region: &Region, session, bytes| Descriptor {
        opcode: Opcode::Digest as u8,
        session,
        region: region.handle,
        segments: [at(0, bytes), at(bytes, 32), at(0, 0)],
        ..Descriptor::default()
    };
    for (_, pair, region, session) in &mut clients {
        region.memory.write(0, &noise).unwrap();
        pair.submit(&Descriptor {
            opcode: Opcode::Compress as u8,
            session: *session,
            region: region.handle,
            segments: [at(0, LARGE), at(LARGE, LARGE), at(0, 0)],
            ..Descriptor::default()
        });
    }
    assert_eq!(its.run(&hash(&memory, sha, 64)).status, Status::Done);
    let unanswered = clients.iter().filter(|(_, pair, ..)| !pair.end.is_ready()).count();
    assert!(unanswered >= 5, "{unanswered}");
    for (_, pair, ..) in &mut clients {
        assert_eq!(pair.completion().status, Status::Done);
    }

    // The same bytes as an engine of one's own makes of them, and nothing of a hole is made a page.
    let (client, pair, region, _) = &mut clients[0];
    let session = client.open("sha-256", Key::None);
    let digest = |bytes: &[u8]| {
        let mut out = [0; 32];
        let engine = keyway_drivers::engine();
        engine.digest(Algorithm::Sha256, &[bytes], &mut out).unwrap();
        out.to_vec()
    };
    assert_eq!(pair.run(&hash(region, session, LARGE)).status, Status::Done);
    assert_eq!(region.bytes(LARGE as usize, 32), digest(&noise));
    let sparse = client.region(LARGE as usize + 4096);
    assert_eq!(pair.run(&hash(&sparse, session, LARGE)).status, Status::Done);
    assert_eq!(sparse.bytes(LARGE as usize, 32), digest(&vec![0; LARGE as usize]));
    let stat = rustix::fs::fstat(sparse.memory.file().unwrap()).unwrap();
    // Where the system has no huge pages to give.
    if stat.st_blksize < 1 << 20 {
        assert!(stat.st_blocks * 512 < 1 << 20, "{} blocks", stat.st_blocks);
    }
}

/// A large text is sealed under a nonce that the daemon makes, like any other.
#[test]
fn large_texts_are_sealed_under_keys_of_the_daemon() {
    const LARGE: u32 = 1 << 20;
    let served = Served::start();
    let client = Client::new(&served.socket());
    let policy = KeyPolicy {
        algorithms: vec!["aes-128-gcm".to_owned()],
        purposes: Vec::new(),
        callers: vec!["everybody".to_owned()],
    };
    let generate = KeyAsk::Generate { name: "large".to_owned(), policy };
    assert_eq!(client.ask(&Ask::Keys(generate)), Answer::Done);
    let session = client.open("aes-128-gcm", Key::Named("large".to_owned()));
    let (mut pair, region) = (client.pair(4), client.region(LARGE as usize + 4096));
    let text: Vec<u8> = (0..LARGE).map(|at| at as u8).collect();
    region.memory.write(0, &text).unwrap();
    let seal = Descriptor {
        opcode: Opcode::Seal as u8,
        session,
        region: region.handle,
        segments: [at(0, 0), at(0, LARGE), at(LARGE + 64, 12)],
        ..Descriptor::default()
    };
    let sealed = pair.run(&seal);
    assert_eq!((sealed.status, sealed.used), (Status::Done, LARGE));
    region.memory.write(LARGE as usize, &sealed.result).unwrap();
    let nonce = region.bytes(LARGE as usize + 64, 12);
    assert_ne!(nonce, [0; 12]);
    let mut parameters = [0; 16];
    parameters[..12].copy_from_slice(&nonce);
    let segments = [at(0, 0), at(0, LARGE + 16), at(0, 0)];
    let open = Descriptor { opcode: Opcode::Open as u8, parameters, segments, ..seal };
    assert_eq!(pair.run(&open).status, Status::Done);
    assert_eq!(region.bytes(0, LARGE as usize), text);
}

/// Some get more than others, by who they are and by the keys that they name.
#[test]
fn weights_are_of_users_and_keys() {
    let own = Who { uid: Some(rustix::process::getuid().as_raw()), ..Who::ANY };
    let absent = Who { uid: Some(4_000_000), ..Who::ANY };
    let weights =
        Weights { clients: vec![(own, 3), (absent, 50)], keys: vec![("large".to_owned(), 7)] };
    let step = |key| [Step { algorithm: "ed25519".to_owned(), key }];
    assert_eq!(weights.of_session(&step(Key::Named("large".to_owned()))), 7);
    assert_eq!(weights.of_session(&step(Key::Named("other".to_owned()))), 1);
    let shared = SharedLimits::of_this_machine();
    let served = Served::sharing(ClientLimits::default(), shared, weights);
    let client = Client::new(&served.socket());
    let Answer::Status(status) = client.ask(&Ask::Status) else { panic!() };
    assert_eq!(status.clients[0].weight, 3);
    is_served(&served.socket());
}
