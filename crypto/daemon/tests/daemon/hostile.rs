//! A client that keeps to nothing. Whatever it does, the daemon goes on, others are served, nothing
//! of another client is seen, and what the client had is given back when it is gone.

use crate::Served;
use crate::client::Client;
use crate::served::is_served;
use keyway_daemon::limits::ClientLimits;
use keyway_ring::control::{self, Answer, Ask, Key, Step, VERSION};
use keyway_ring::descriptor::{Descriptor, Opcode, RegionHandle, Segment, SessionHandle, Status};
use keyway_ring::{SharedMemory, Socket};
use proptest::prelude::*;
use rustix::fs::FallocateFlags;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

fn at(offset: u32, bytes: u32) -> Segment {
    Segment { offset, bytes }
}

/// Point 1: no file of a client's is taken, whatever it is, and memory that the daemon made keeps its
/// length. Holes that a client makes in it are filled again.
#[test]
fn a_clients_files_are_not_taken() {
    let served = Served::start();
    let memory = SharedMemory::create(4096).unwrap();
    for files in [vec![memory.file().unwrap()], vec![memory.file().unwrap(); 8]] {
        for is_known in [true, false] {
            let client = match is_known {
                true => Client::new(&served.socket()),
                false => Client::stranger(&served.socket()),
            };
            // Where the system can keep files off, it does so before the daemon has to.
            let message = control::encode(&Ask::Region { bytes: 4096 }).unwrap();
            if client.socket.send(&message, &files).is_ok() {
                assert!(client.is_sent_away());
            }
            is_served(&served.socket());
        }
    }
    let client = Client::new(&served.socket());
    for bytes in [0, u64::MAX] {
        assert!(matches!(client.ask(&Ask::Region { bytes }), Answer::Refused { .. }));
    }
    let (mut pair, region, session) = (client.pair(8), client.region(1 << 16), client.aes());
    // The seals hold for the client, too.
    assert!(rustix::fs::ftruncate(region.memory.file().unwrap(), 0).is_err());
    let text = vec![7; 1 << 15];
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for of_the_ring in [false, true] {
        assert_eq!(pair.run(&region.seal(session, &text)).status, Status::Done);
        let memory = if of_the_ring { pair.memory.memory() } else { &region.memory };
        rustix::fs::fallocate(memory.file().unwrap(), hole, 0, 1 << 16).unwrap();
    }
    is_served(&served.socket());
}

/// Point 1: where the system does not keep files off, the daemon leaves them where they are, and closes
/// what has them elsewhere, however long that takes.
#[test]
fn files_that_cling_hold_up_no_client() {
    let served = Served::open_to_files();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut all = Vec::new();
    let hello = control::encode(&Ask::Hello { version: VERSION, name: "clings".to_owned() });
    for is_known in [true, false, true, false] {
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let peer = listener.accept().unwrap();
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::from_secs(600))).unwrap();
        stream.set_nonblocking(true).unwrap();
        while std::io::Write::write(&mut &stream, &[0; 4096]).is_ok() {}
        let (client, message) = match is_known {
            true => (Client::new(&served.socket()), control::encode(&Ask::Region { bytes: 1 })),
            false => (Client::stranger(&served.socket()), hello.clone()),
        };
        if is_known {
            // Keeps the daemon busy, so that meanwhile this process lets go of the file.
            let step = Step { algorithm: "ed25519".to_owned(), key: Key::Generate };
            (0..8).for_each(|_| client.say(&Ask::Open { steps: vec![step.clone()] }, &[]));
        }
        client.socket.send(&message.unwrap(), &[stream.as_fd()]).unwrap();
        // Where the daemon was faster, it clings here.
        thread::spawn(move || drop(stream));
        assert!(client.is_sent_away());
        all.push((client, peer));
        is_served(&served.socket());
    }
}

/// Point 2: a descriptor and the data that change while they are read. Every answer is right for
/// some moment's data, or a refusal; nothing else is written.
#[test]
fn bytes_that_change_while_read_harm_no_client() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let (mut pair, region, session) = (client.pair(8), client.region(1 << 16), client.aes());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut value = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let bytes = value.to_ne_bytes();
                let _ = region.memory.write((value >> 50) as usize * 2, &bytes);
                // The descriptors' words but for their stamps, which would end the ring's use.
                let slot = (value >> 40) as usize % 8;
                let word = (value >> 32) as usize % 7;
                let _ = pair_memory(&pair).write(256 + slot * 64 + word * 8, &bytes);
            }
        });
        let mut end = pair.memory.client_end().unwrap();
        let descriptor = region.seal(session, &[0; 3000]);
        for _ in 0..2_000 {
            end.submit(&descriptor);
            if end.must_ring() {
                pair.bell.ring();
            }
            while end.poll().is_none() {
                std::hint::spin_loop();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let _ = pair.end.poll();
    is_served(&served.socket());
}

fn pair_memory(pair: &crate::client::Pair) -> &SharedMemory {
    pair.memory.memory()
}

/// Point 3: rings full of nonsense, and stamps of all laps at once.
#[test]
fn a_spoilt_ring_is_its_clients_alone() {
    let served = Served::start();
    for pattern in [0xff_u8, 0x01, 0x00, 0xa5] {
        let client = Client::new(&served.socket());
        let mut pair = client.pair(8);
        assert_eq!(pair.null().status, Status::Done);
        let memory = pair.memory.memory();
        let bytes = vec![pattern; memory.bytes() - 256];
        for _ in 0..100 {
            memory.write(256, &bytes).unwrap();
            pair.bell.ring();
        }
        is_served(&served.socket());
    }
}

/// Point 4: handles that are guessed, were closed, or are another client's.
#[test]
fn handles_are_their_clients_and_of_their_time() {
    let served = Served::start();
    let victim = Client::new(&served.socket());
    let (victims_session, victims_region) = (victim.aes(), victim.region(4096));
    let client = Client::new(&served.socket());
    let (mut pair, region, session) = (client.pair(8), client.region(4096), client.aes());
    let descriptor = region.seal(session, b"text");
    assert_eq!(pair.run(&descriptor).status, Status::Done);
    let with = |session: SessionHandle| {
        let mut other = descriptor;
        other.session = session;
        other
    };
    let next = SessionHandle { generation: session.generation + 1, ..session };
    for wrong in [next, victims_session, SessionHandle { index: u16::MAX, generation: 0 }] {
        assert_eq!(pair.run(&with(wrong)).status, Status::NoSession);
    }
    let within = |region: RegionHandle| {
        let mut other = descriptor;
        other.region = region;
        other
    };
    let old = RegionHandle { generation: 0, ..region.handle };
    for wrong in [old, RegionHandle { index: 200, ..victims_region.handle }] {
        assert_eq!(pair.run(&within(wrong)).status, Status::BadSegment);
    }
    client.say(&Ask::Close { session: victims_session }, &[]);
    client.say(&Ask::Close { session }, &[]);
    let again = client.aes();
    assert_eq!(again.index, session.index);
    assert_eq!(pair.run(&descriptor).status, Status::NoSession);
    assert_eq!(pair.run(&with(again)).status, Status::Done);
    client.say(&Ask::Forget { region: region.handle }, &[]);
    let other = client.region(4096);
    assert_eq!(pair.run(&with(again)).status, Status::BadSegment);
    assert_eq!(pair.run(&other.seal(again, b"text")).status, Status::Done);
}

/// Point 5: segments that are too long, wrap around, or lie over each other.
#[test]
fn segments_stay_within_their_region_and_apart() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let (mut pair, region, session) = (client.pair(8), client.region(4096), client.aes());
    let end = region.memory.bytes() as u32;
    let cases = [
        [at(0, 0), at(end, 1), at(0, 0)],
        [at(0, 0), at(end - 1, 2), at(0, 0)],
        [at(u32::MAX, 1), at(0, 8), at(0, 0)],
        [at(8, u32::MAX), at(0, 8), at(0, 0)],
        [at(0, 0), at(u32::MAX, u32::MAX), at(0, 0)],
        [at(0, 16), at(8, 16), at(0, 0)],
        [at(0, 16), at(0, 16), at(0, 0)],
        [at(0, 0), at(64, 16), at(70, 1)],
    ];
    for segments in cases {
        let descriptor = Descriptor { segments, ..region.seal(session, &[]) };
        let refused = pair.run(&descriptor).status;
        assert!(matches!(refused, Status::BadSegment | Status::InvalidRequest), "{segments:?}");
    }
    let whole =
        Descriptor { segments: [at(0, 0), at(0, end), at(0, 0)], ..region.seal(session, &[]) };
    assert_eq!(pair.run(&whole).status, Status::Done);
}

/// Point 7: nothing of a text whose tag does not check is ever in the client's memory.
#[test]
fn a_forged_text_leaves_no_plaintext() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let (mut pair, region, session) = (client.pair(8), client.region(4096), client.aes());
    let sealed = pair.run(&region.seal(session, b"a text that is secret"));
    let tag = sealed.result;
    region.memory.write(21, &tag).unwrap();
    let open = Descriptor {
        opcode: Opcode::Open as u8,
        segments: [at(0, 0), at(0, 37), at(0, 0)],
        ..region.seal(session, &[])
    };
    let ciphertext = region.bytes(0, 37);
    assert_eq!(pair.run(&open).status, Status::Done);
    assert_eq!(region.bytes(0, 21), b"a text that is secret");
    region.memory.write(0, &ciphertext).unwrap();
    region.memory.write(36, &[ciphertext[36] ^ 1]).unwrap();
    let failed = pair.run(&open);
    assert_eq!((failed.status, failed.result, failed.used), (Status::Authentication, [0; 16], 0));
    let left = region.bytes(0, 21);
    assert!(
        !left.windows(4).any(|bytes| b"a text that is secret".windows(4).any(|it| it == bytes))
    );
}

/// Point 9: a client that takes no completions loses them, and no other waits.
#[test]
fn a_client_that_takes_no_answers_holds_up_no_other() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let mut pair = client.pair(4);
    let null = Descriptor { opcode: Opcode::Null as u8, ..Descriptor::default() };
    for _ in 0..1_000 {
        pair.submit(&null);
    }
    is_served(&served.socket());
}

/// Point 10: more than a client may have is refused, on the socket and in the ring.
#[test]
fn what_grows_is_bounded() {
    let limits = ClientLimits {
        queues: 2,
        sessions: 10,
        regions: 3,
        region_bytes: 64 << 10,
        request_bytes: 8 << 10,
        slow_in_flight: 2,
        ..ClientLimits::default()
    };
    let served = Served::with(limits);
    let client = Client::new(&served.socket());
    let (mut pair, region) = (client.pair(16), client.region(32 << 10));
    let _second = client.pair(1 << 20);
    assert!(matches!(client.ask(&Ask::Queue { entries: 4 }), Answer::Refused { .. }));
    assert!(matches!(client.ask(&Ask::Region { bytes: 64 << 10 }), Answer::Refused { .. }));
    let sessions: Vec<_> = (0..10).map(|_| client.aes()).collect();
    let step = Step { algorithm: "sha-256".to_owned(), key: Key::None };
    let refused = client.ask(&Ask::Open { steps: vec![step.clone()] });
    assert!(matches!(refused, Answer::Refused { status, .. } if status == Status::Busy as u8));
    let long = Descriptor {
        segments: [at(0, 0), at(0, 9 << 10), at(0, 0)],
        ..region.seal(sessions[0], &[])
    };
    assert_eq!(pair.run(&long).status, Status::InvalidRequest);
    client.say(&Ask::Close { session: sessions[0] }, &[]);
    let slow = client.open("pbkdf2-sha-256", Key::None);
    let mut parameters = [0; 16];
    parameters[4..8].copy_from_slice(&200_000_u32.to_ne_bytes());
    let derive = Descriptor {
        opcode: Opcode::Derive as u8,
        session: slow,
        region: region.handle,
        parameters,
        segments: [at(0, 8), at(64, 32), at(8, 8)],
        ..Descriptor::default()
    };
    for _ in 0..6 {
        pair.submit(&derive);
    }
    let ends: Vec<_> = (0..6).map(|_| pair.completion().status).collect();
    assert!(ends.iter().filter(|status| **status == Status::Done).count() >= 2, "{ends:?}");
    assert!(ends.contains(&Status::Busy), "{ends:?}");
    is_served(&served.socket());
}

/// Point 10: nonsense on the socket, floods of connections, and those who say nothing.
#[test]
fn the_socket_takes_no_nonsense() {
    let served = Served::start();
    for nonsense in [&b""[..], b"\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n", &[0; 100]] {
        let client = Client::stranger(&served.socket());
        if !nonsense.is_empty() {
            client.socket.send(nonsense, &[]).unwrap();
            assert!(client.is_sent_away());
        }
    }
    // A message before a hello, and a second hello.
    let rude = Client::stranger(&served.socket());
    rude.say(&Ask::Status, &[]);
    assert!(rude.is_sent_away());
    let twice = Client::new(&served.socket());
    twice.say(&Ask::Hello { version: VERSION, name: "again".to_owned() }, &[]);
    assert!(twice.is_sent_away());
    let flood: Vec<_> = (0..200).filter_map(|_| Socket::connect(&served.socket()).ok()).collect();
    drop(flood);
    is_served(&served.socket());
}

/// Point 10: a client that rings without end is listened to once a second, and has its requests
/// done all the same.
#[test]
fn a_flood_of_doorbells_is_bounded() {
    let served = Served::with(ClientLimits { doorbells: 50, ..ClientLimits::default() });
    let client = Client::new(&served.socket());
    let mut pair = client.pair(4);
    for _ in 0..20_000 {
        pair.bell.ring();
    }
    assert_eq!(pair.null().status, Status::Done);
    is_served(&served.socket());
}

/// One that is to take over and hangs has the others wait not at all, or if it has begun not for long.
#[test]
fn a_successor_that_hangs_is_given_up() {
    let served = Served::start();
    let hangs = Client::new(&served.socket());
    assert!(matches!(hangs.ask(&Ask::TakeOver), Answer::Done));
    is_served(&served.socket());
    hangs.say(&Ask::TakeOver, &[]);
    is_served(&served.socket());
    drop(hangs);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any descriptor has one answer, and it carries the cookie.
    #[test]
    fn any_descriptor_has_one_answer(
        opcodes in prop::collection::vec(0_u8..30, 1..8),
        words in prop::collection::vec(any::<[u64; 8]>(), 8),
        small in any::<bool>(),
    ) {
        thread_local! {
            static SERVED: Served = Served::start();
        }
        SERVED.with(|served| {
            let client = Client::new(&served.socket());
            let (mut pair, region) = (client.pair(8), client.region(1 << 14));
            let sessions = [
                client.aes(),
                client.open("sha-256", Key::None),
                client.open("x25519", Key::Generate),
                client.open("ed25519", Key::Generate),
                client.open("zstd", Key::None),
                client.open("random", Key::None),
            ];
            for (index, (opcode, words)) in opcodes.iter().zip(&words).enumerate() {
                let mut descriptor = Descriptor::from_words(*words);
                descriptor.opcode = *opcode;
                descriptor.region = region.handle;
                descriptor.session = sessions[words[0] as usize % sessions.len()];
                if small {
                    for (place, segment) in descriptor.segments.iter_mut().enumerate() {
                        *segment = at(place as u32 * 4096 + segment.offset % 64, segment.bytes % 128);
                    }
                }
                descriptor.cookie = index as u32;
                let completion = pair.run(&descriptor);
                assert_eq!(completion.cookie, index as u32);
            }
        });
    }
}
