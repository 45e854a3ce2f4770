//! QUIC's packets through the engine: numbers go up, limits hold, phases are found, queues do what
//! direct calls do.

use keyway_drivers::{simd_on, software};
use keyway_engine::{
    Algorithm, Demand, Engine, Error, Key, Nonces, Opened, Operation, PacketKey, PacketKeys,
    Parameters, Phase, Request, Session, TAG_BYTES, Task, Usage,
};
use keyway_simd::packet::PacketBackend;
use std::time::Duration;

const ALGORITHM: Algorithm = Algorithm::QuicAes128Gcm;
const HEADER_BYTES: usize = 10;
const TEXT: &[u8] = b"what the packet is for, and what no outsider may read or change";
const IV: [u8; 12] = [3; 12];

fn keys(first: &[u8; 16]) -> PacketKeys<'_> {
    PacketKeys::new(&[9; 16], PacketKey { key: first, iv: &IV })
}

fn parameters() -> Parameters<'static> {
    Parameters::new(ALGORITHM, Key::Packet(keys(&[1; 16])))
}

/// An engine for each backend, and one with `software` only.
fn engines() -> Vec<Engine> {
    let backends =
        PacketBackend::available().map(|backend| Engine::builder().driver(simd_on(backend)));
    backends.chain([Engine::builder().driver(software())]).map(|builder| builder.build()).collect()
}

/// A short header with two bytes for the number, text, and room.
fn packet(phase: bool) -> Vec<u8> {
    let mut packet = vec![0x41 | u8::from(phase) << 2; HEADER_BYTES];
    packet.extend_from_slice(TEXT);
    packet.extend_from_slice(&[0; TAG_BYTES]);
    packet
}

fn protect(session: &Session, number: u64, packet: &mut [u8]) -> Result<usize, Error> {
    session.run(&mut Request::Protect { number, header_bytes: HEADER_BYTES, packet })
}

fn unprotect(session: &Session, packet: &mut [u8]) -> Result<Opened, Error> {
    let mut opened = Opened::default();
    let (largest, number_at) = (Some(1_000), HEADER_BYTES - 2);
    let request = &mut Request::Unprotect { largest, number_at, packet, opened: &mut opened };
    let bytes = session.run(request)?;
    assert_eq!(&packet[opened.header_bytes..opened.header_bytes + bytes], TEXT);
    Ok(opened)
}

#[test]
fn a_number_that_is_not_higher_is_refused_and_nothing_is_touched() {
    for engine in engines() {
        let session = engine.session(parameters()).unwrap();
        for number in [0, 1, 7, 1 << 40] {
            assert!(protect(&session, number, &mut packet(false)).is_ok(), "{number}");
            for again in [number, number / 2] {
                let mut untouched = packet(false);
                let refused = protect(&session.clone(), again, &mut untouched);
                assert!(matches!(refused, Err(Error::InvalidRequest(_))), "{again}");
                assert_eq!(untouched, packet(false));
            }
        }
        let given = engine.session(parameters().nonces(Nonces::Given)).unwrap();
        let (mut first, mut second) = (packet(false), packet(false));
        assert!(protect(&given, 5, &mut first).is_ok() && protect(&given, 5, &mut second).is_ok());
        assert_eq!(first, second);
    }
}

#[test]
fn a_queue_refuses_numbers_as_a_direct_call_does() {
    for engine in engines() {
        let session = engine.session(parameters()).unwrap();
        let mut queue = engine.queue(64);
        let numbers = [1, 2, 3, 4, 4, 5, 3, 6, 8, 7, 9];
        let fresh = [true, true, true, true, false, true, false, true, true, false, true];
        // The first may open the session's way; the others follow it together.
        for start in [0, 100, 200] {
            let task = |number: &u64| {
                let number = start + number;
                let operation = Operation::protect(number, HEADER_BYTES, packet(false));
                Task::tagged(&session, operation, number - start)
            };
            let mut tasks: Vec<_> = numbers.iter().map(task).collect();
            assert_eq!(queue.submit(&mut tasks, false), numbers.len());
            let mut done = Vec::new();
            while queue.in_flight() > 0 {
                queue.wait(&mut done, Duration::from_secs(5));
            }
            let mut succeeded: Vec<_> =
                done.iter().filter(|task| task.result().is_ok()).map(|task| task.user).collect();
            succeeded.sort_unstable();
            let pairs = numbers.iter().zip(fresh);
            let expected: Vec<_> = pairs.filter(|(_, fresh)| *fresh).map(|(n, _)| *n).collect();
            assert_eq!(succeeded, expected);
            for mut task in done {
                let Operation::Protect { packet, .. } = &mut task.operation else { panic!() };
                match task.user {
                    // A number came twice: the refused side has the plaintext still.
                    _ if packet[HEADER_BYTES..].starts_with(TEXT) => {}
                    number => {
                        let opened = unprotect(&session, packet).unwrap();
                        assert_eq!(opened.number, start + number);
                    }
                }
            }
        }
    }
}

/// A session that has its keys updated is still told every number once; one that is opened anew
/// with the keys that go on would take them all again.
#[test]
fn an_update_of_keys_forgets_no_number() {
    let second = PacketKey { key: &[2; 16], iv: &[4; 12] };
    let with_next = PacketKeys { next: Some(second), ..keys(&[1; 16]) };
    let updated = PacketKeys {
        current: second,
        phase: true,
        since: 9,
        previous: Some(keys(&[1; 16]).current),
        ..keys(&[1; 16])
    };
    for engine in engines() {
        let mut session = engine.session(parameters()).unwrap();
        let peer = engine.session(Parameters::new(ALGORITHM, Key::Packet(updated))).unwrap();
        protect(&session, 7, &mut packet(false)).unwrap();
        let before = session.clone();
        // The key after the current one has come; the current one is the same.
        session.update(with_next).unwrap();
        for used in [0, 6, 7] {
            let mut untouched = packet(false);
            let refused = protect(&session, used, &mut untouched);
            assert!(matches!(refused, Err(Error::InvalidRequest(_))), "{used}");
            assert_eq!(untouched, packet(false));
        }
        let mut eighth = packet(false);
        protect(&session, 8, &mut eighth).unwrap();
        assert_eq!(unprotect(&peer, &mut eighth.clone()).unwrap().phase, Phase::Previous);
        // A clone from before has the keys too, and does not know which numbers come now.
        assert!(matches!(protect(&before, 100, &mut packet(false)), Err(Error::InvalidRequest(_))));
        assert_eq!(unprotect(&before, &mut eighth).unwrap().number, 8);
        assert!(matches!(before.clone().update(with_next), Err(Error::InvalidRequest(_))));
        // The keys are updated, and so is what a queue does.
        session.update(updated).unwrap();
        let mut queue = engine.queue(8);
        let task = |number| {
            Task::tagged(&session, Operation::protect(number, HEADER_BYTES, packet(true)), number)
        };
        queue.submit(&mut [7, 8, 9, 10].map(task).into(), false);
        let mut done = Vec::new();
        while queue.in_flight() > 0 {
            queue.wait(&mut done, Duration::from_secs(5));
        }
        for mut task in done {
            assert_eq!(task.result().is_ok(), task.user > 8, "{}", task.user);
            let Operation::Protect { packet, .. } = &mut task.operation else { panic!() };
            if task.user > 8 {
                assert_eq!(unprotect(&peer, packet).unwrap().phase, Phase::Current);
            }
        }
        // Keys that cannot be opened leave it as it was.
        let short = PacketKeys { header: &[9; 15], ..updated };
        assert!(matches!(session.update(short), Err(Error::InvalidKey(_))));
        protect(&session, 11, &mut packet(true)).unwrap();
    }
}

/// Limits on how often a key seals begin anew with another key, and only with another.
#[test]
fn an_update_of_keys_keeps_count_of_what_they_did() {
    for engine in engines() {
        let usage = Usage { seals_max: 2, forgeries_max: 2 };
        let mut session = engine.session(parameters().usage(usage)).unwrap();
        protect(&session, 0, &mut packet(false)).unwrap();
        session.update(keys(&[1; 16])).unwrap();
        protect(&session, 1, &mut packet(false)).unwrap();
        assert!(matches!(protect(&session, 2, &mut packet(false)), Err(Error::Exhausted(_))));
        assert_eq!(unprotect(&session, &mut packet(false)), Err(Error::Authentication));
        session.update(keys(&[2; 16])).unwrap();
        protect(&session, 3, &mut packet(false)).unwrap();
        assert_eq!(unprotect(&session, &mut packet(false)), Err(Error::Authentication));
        assert!(matches!(unprotect(&session, &mut packet(false)), Err(Error::Exhausted(_))));
    }
}

#[test]
fn a_batch_comes_out_as_one_by_one() {
    for engine in engines() {
        let given = || engine.session(parameters().nonces(Nonces::Given)).unwrap();
        let (one, many) = (given(), given());
        let mut queue = engine.queue(256);
        let lengths = (0..200_usize).map(|at| at * 7 % 300);
        let packets = lengths.enumerate().map(|(at, text)| {
            let mut packet = vec![at as u8; HEADER_BYTES + 2 + text + TAG_BYTES];
            packet[0] = 0x41;
            packet
        });
        let packets: Vec<_> = packets.collect();
        let task = |(number, packet): (usize, &Vec<u8>)| {
            let number = number as u64;
            Task::tagged(&many, Operation::protect(number, HEADER_BYTES, packet.clone()), number)
        };
        let mut tasks: Vec<_> = packets.iter().enumerate().map(task).collect();
        let (mut done, mut back) = (Vec::new(), Vec::new());
        queue.submit(&mut tasks, true);
        while queue.in_flight() > 0 {
            queue.wait(&mut done, Duration::from_secs(5));
        }
        for mut task in done {
            assert!(task.result().is_ok());
            let number = task.user;
            let mut alone = packets[number as usize].clone();
            protect(&one, number, &mut alone).unwrap();
            let Operation::Protect { packet, .. } = &mut task.operation else { panic!() };
            assert_eq!(packet[..], alone);
            // Every third is not what was protected.
            if number % 3 == 0 {
                packet[HEADER_BYTES + 1] ^= 1;
            }
            let operation = Operation::unprotect(Some(number), HEADER_BYTES - 2, packet.clone());
            back.push(Task::tagged(&many, operation, number));
        }
        let mut done = Vec::new();
        queue.submit(&mut back, false);
        while queue.in_flight() > 0 {
            queue.wait(&mut done, Duration::from_secs(5));
        }
        assert_eq!(done.len(), packets.len());
        for task in done {
            let Operation::Unprotect { packet, opened, .. } = &task.operation else { panic!() };
            let original = &packets[task.user as usize];
            if task.user % 3 == 0 {
                assert_eq!(task.result(), Err(Error::Authentication));
                continue;
            }
            let bytes = task.result().unwrap();
            let text = HEADER_BYTES..HEADER_BYTES + bytes;
            assert_eq!((opened.number, opened.phase), (task.user, Phase::Current));
            assert_eq!(packet[text.clone()], original[text]);
        }
    }
}

#[test]
fn the_phase_of_a_packet_chooses_its_key() {
    let all = [[1; 16], [2; 16], [3; 16]];
    for engine in engines() {
        let sender = |key: &[u8; 16]| {
            engine.session(Parameters::new(ALGORITHM, Key::Packet(keys(key)))).unwrap()
        };
        let key = |key| PacketKey { key, iv: &IV };
        let (previous, next) = (Some(key(&all[0][..])), Some(key(&all[2][..])));
        let ready = PacketKeys { phase: true, since: 900, previous, next, ..keys(&all[1]) };
        let open = |keys| engine.session(Parameters::new(ALGORITHM, Key::Packet(keys))).unwrap();
        let receiver = open(ready);
        let cases = [
            (&all[0], false, 899, Phase::Previous),
            (&all[1], true, 900, Phase::Current),
            (&all[1], true, 890, Phase::Current),
            (&all[2], false, 1_001, Phase::Next),
        ];
        for (key, phase, number, expected) in cases {
            let mut packet = packet(phase);
            protect(&sender(key), number, &mut packet).unwrap();
            let opened = unprotect(&receiver, &mut packet).unwrap();
            assert_eq!(opened, Opened { number, header_bytes: HEADER_BYTES, phase: expected });
        }
        let mut unknown = packet(false);
        protect(&sender(&all[2]), 1_001, &mut unknown).unwrap();
        let old = open(PacketKeys { next: None, ..ready });
        assert_eq!(unprotect(&old, &mut unknown), Err(Error::Authentication));
        assert_eq!(unknown[HEADER_BYTES..HEADER_BYTES + TEXT.len()], vec![0; TEXT.len()]);
    }
}

#[test]
fn a_key_is_used_as_often_as_it_may() {
    for engine in engines() {
        let usage = Usage { seals_max: 3, forgeries_max: 2 };
        let session = engine.session(parameters().usage(usage)).unwrap();
        let mut last = Vec::new();
        for number in 0..3 {
            last = packet(false);
            protect(&session, number, &mut last).unwrap();
        }
        let exhausted = protect(&session, 3, &mut packet(false));
        assert!(matches!(exhausted, Err(Error::Exhausted(_))));
        assert!(unprotect(&session, &mut last.clone()).is_ok());
        for _ in 0..2 {
            let forged = unprotect(&session, &mut packet(false));
            assert_eq!(forged, Err(Error::Authentication));
        }
        assert!(matches!(unprotect(&session, &mut last), Err(Error::Exhausted(_))));
    }
}

#[test]
fn who_has_a_choice_gets_the_same_bytes_everywhere() {
    let builder = Engine::builder().driver(software());
    let backends = PacketBackend::available().last();
    let engine = backends.into_iter().fold(builder, |all, one| all.driver(simd_on(one))).build();
    let mut made = [Demand::Any, Demand::Named("software"), Demand::Named("simd")].map(|demand| {
        let session = engine.session(parameters().on(demand)).unwrap();
        let mut packet = packet(false);
        protect(&session, 77, &mut packet).unwrap();
        packet
    });
    made.sort();
    assert_eq!(made[0], made[2]);
}
