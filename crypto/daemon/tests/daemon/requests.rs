//! The answers that an honest client gets.

use crate::Served;
use crate::client::Client;
use crate::served::{is_served, sealed};
use keyway_ring::control::{Answer, Ask, Key};
use keyway_ring::descriptor::{Descriptor, Opcode, Segment, Status};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn a_request_is_done_and_answered() {
    let served = Served::start();
    is_served(&served.socket());
    let client = Client::new(&served.socket());
    let mut pair = client.pair(4);
    for _ in 0..100 {
        let completion = pair.null();
        assert_eq!((completion.cookie, completion.status), (77, Status::Done));
    }
    let Answer::Status(status) = client.ask(&Ask::Status) else { panic!() };
    let own = status.clients.iter().find(|it| it.queues == 1).unwrap();
    assert_eq!((own.requests, own.name.as_str(), own.process), (100, "test", std::process::id()));
}

/// Requests of many clients that wait at the same time go to the engine together, and each gets its
/// own answer.
#[test]
fn many_clients_are_served_at_the_same_time() {
    let served = Served::start();
    let socket = &served.socket();
    let known: Vec<_> = (0..=u8::MAX).map(|byte| sealed(&[byte; 100])).collect();
    let known = &known;
    thread::scope(|scope| {
        for number in 0..8_u8 {
            scope.spawn(move || {
                let client = Client::new(socket);
                let (mut pair, region, session) =
                    (client.pair(16), client.region(1 << 16), client.aes());
                for round in 0..200_u32 {
                    for cookie in 0..16_u32 {
                        let text = [number ^ round as u8; 100];
                        let offset = cookie * 128;
                        region.memory.write(offset as usize, &text).unwrap();
                        let mut descriptor = region.seal(session, &[]);
                        descriptor.cookie = cookie;
                        descriptor.segments[1] = Segment { offset, bytes: 100 };
                        pair.submit(&descriptor);
                    }
                    let expected = &known[usize::from(number ^ round as u8)];
                    for _ in 0..16 {
                        let completion = pair.completion();
                        assert_eq!(completion.status, Status::Done);
                        let text = region.bytes(completion.cookie as usize * 128, 100);
                        assert_eq!((text, completion.result), *expected);
                    }
                }
            });
        }
    });
}

/// All pairs of a client have a part of what it may have done: a thread that floods its own does not keep those of
/// other threads waiting.
#[test]
fn a_clients_pairs_take_turns() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let region = client.region(1 << 20);
    let session = client.open("sha-256", Key::None);
    let request = |cookie: u32| Descriptor {
        opcode: Opcode::Digest as u8,
        session,
        region: region.handle,
        cookie,
        segments: [
            Segment { offset: 0, bytes: 16 << 10 },
            Segment { offset: (512 << 10) + cookie * 32, bytes: 32 },
            Segment::default(),
        ],
        ..Descriptor::default()
    };
    const MANY: u32 = 1_024;
    let (mut flooded, mut others) = (client.pair(MANY), [(); 3].map(|()| client.pair(2)));
    for cookie in 0..MANY {
        flooded.submit(&request(cookie));
    }
    for (cookie, pair) in (MANY..).zip(&mut others) {
        pair.submit(&request(cookie));
    }
    let mut before = 0;
    for pair in &mut others {
        assert_eq!(pair.completion().status, Status::Done);
    }
    while flooded.end.poll().is_some() {
        before += 1;
    }
    assert!(before < MANY, "the others came after all of them");
    for _ in before..MANY {
        assert_eq!(flooded.completion().status, Status::Done);
    }
}

/// Slow requests do not stand before fast ones.
#[test]
fn fast_requests_pass_slow_ones() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let (mut pair, region) = (client.pair(8), client.region(4096));
    let slow = client.open("pbkdf2-sha-256", Key::None);
    region.memory.write(0, b"passwordsalt").unwrap();
    let mut parameters = [0; 16];
    parameters[4..8].copy_from_slice(&300_000_u32.to_ne_bytes());
    let at = |offset, bytes| Segment { offset, bytes };
    let derive = Descriptor {
        opcode: Opcode::Derive as u8,
        session: slow,
        region: region.handle,
        cookie: 1,
        parameters,
        segments: [at(0, 8), at(64, 32), at(8, 4)],
        ..Descriptor::default()
    };
    pair.submit(&derive);
    for _ in 0..10 {
        assert_eq!(pair.null().cookie, 77);
    }
    let completion = pair.completion();
    assert_eq!((completion.cookie, completion.status, completion.used), (1, Status::Done, 32));
    assert_ne!(region.bytes(64, 32), [0; 32]);
}

/// A client that sleeps over its answer is woken, and a daemon that sleeps is rung.
#[test]
fn both_sides_sleep_and_are_woken() {
    let served = Served::start();
    let client = Client::new(&served.socket());
    let mut pair = client.pair(4);
    for _ in 0..20 {
        // The daemon parks the pair when nothing comes.
        while !is_armed(&pair.memory) {
            thread::yield_now();
        }
        assert_eq!(pair.null().cookie, 77);
    }
    let Answer::Status(status) = client.ask(&Ask::Status) else { panic!() };
    assert!(status.clients[0].doorbells >= 20);
}

/// Whether the daemon wants to be rung, by the layout.
fn is_armed(memory: &keyway_ring::RingMemory) -> bool {
    let mut flag = [0; 4];
    memory.memory().read(64, &mut flag).unwrap();
    flag != [0; 4]
}

/// A new daemon takes the place of the old one under load, again and again: every request is
/// answered once and right, and what was set up before goes on.
#[test]
fn a_daemon_is_replaced_without_a_request_lost() {
    let mut served = Served::start();
    let socket = &served.socket();
    let stop = AtomicBool::new(false);
    let asleep = Client::new(socket);
    let (mut sleeping_pair, sleeping_region, session) =
        (asleep.pair(4), asleep.region(4096), asleep.aes());
    let (text, tag) = sealed(b"text");
    thread::scope(|scope| {
        let stop = &stop;
        let clients: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(move || {
                    let client = Client::new(socket);
                    let (mut pair, region, session) =
                        (client.pair(8), client.region(4096), client.aes());
                    let (text, tag) = sealed(b"text");
                    let mut answered = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let completion = pair.run(&region.seal(session, b"text"));
                        assert_eq!((completion.status, completion.cookie), (Status::Done, 5));
                        assert_eq!((region.bytes(0, 4), completion.result), (text.clone(), tag));
                        answered += 1;
                    }
                    answered
                })
            })
            .collect();
        for _ in 0..10 {
            served.replace();
            let completion = sleeping_pair.run(&sleeping_region.seal(session, b"text"));
            assert_eq!(completion.status, Status::Done);
            assert_eq!((sleeping_region.bytes(0, 4), completion.result), (text.clone(), tag));
            is_served(socket);
        }
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            assert!(client.join().unwrap() > 0);
        }
    });
}
