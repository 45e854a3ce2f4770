//! Daemons that take another one's place, or seem to: what its clients notice.

use keyway_engine::{Algorithm, Request};
use keyway_ring::control::{Answer, Ask, Key};
use keyway_ring::descriptor::{Descriptor, Opcode, Segment, Status};
use keyway_tests::cryptod::{Cryptod, Neighbour, beside_neighbours};
use keyway_tests::nightly;
use keyway_tests::ring_client::Client;

/// Slow requests that are under way do not keep another daemon from taking over, nor the others from being
/// served: the new daemon does them again, and each has one answer.
#[test]
fn slow_work_is_handed_over() {
    let (requests, iterations) = if nightly() { (32, 20_000_000_u32) } else { (6, 1_000_000) };
    let old = Cryptod::start(&[]);
    let folder = old.folder().clone();
    let client = Client::new(old.socket());
    let (mut pair, region) = (client.pair(64), client.region(1 << 16));
    let session = client.open("pbkdf2-sha-256", Key::None);
    let (mut parameters, at) = ([0; 16], |offset, bytes| Segment { offset, bytes });
    parameters[4..8].copy_from_slice(&iterations.to_ne_bytes());
    region.memory.write(0, b"passwordsalt").unwrap();
    for cookie in 0..requests {
        pair.submit(&Descriptor {
            opcode: Opcode::Derive as u8,
            session,
            region: region.handle,
            cookie,
            parameters,
            segments: [at(0, 8), at(64 + 64 * cookie, 32), at(8, 4)],
            ..Descriptor::default()
        });
    }
    let neighbours = Neighbour::all(&old);
    let new = Cryptod::start_on(&folder, &["--take-over"]);
    neighbours.iter().for_each(Neighbour::goes_on);
    let mut answered = Vec::new();
    for _ in 0..requests {
        let completion = pair.completion();
        assert_eq!((completion.status, completion.used), (Status::Done, 32));
        answered.push(completion.cookie);
    }
    answered.sort_unstable();
    assert_eq!(answered, (0..requests).collect::<Vec<_>>());
    let mut expected = [0; 32];
    let cost = keyway_engine::Cost::Pbkdf2 { iterations };
    let (password, salt) = (&b"password"[..], &b"salt"[..]);
    let mut derive = Request::Derive { cost, password, salt, out: &mut expected };
    keyway_drivers::engine().run(Algorithm::Pbkdf2Sha256, &mut derive).unwrap();
    for cookie in 0..requests as usize {
        assert_eq!(region.bytes(64 + 64 * cookie, 32), expected);
    }
    neighbours.iter().for_each(Neighbour::goes_on);
    drop(neighbours);
    drop(old);
    assert!(new.stop().success());
}

/// A successor that asks for everything and then does nothing holds up no client. One that has said
/// that it is at work may hold clients up, but not for long. Another can take over after it.
#[test]
fn a_successor_that_does_nothing_harms_no_client() {
    let cryptod = Cryptod::start(&[]);
    let folder = cryptod.folder().clone();
    beside_neighbours(cryptod, |cryptod| {
        let [once, twice] = [(); 2].map(|()| Client::new(cryptod.socket()));
        assert!(matches!(once.ask(&Ask::TakeOver), Answer::Done));
        assert!(matches!(twice.ask(&Ask::TakeOver), Answer::Done));
        twice.say(&Ask::TakeOver, &[]);
        Neighbour::all(cryptod).iter().for_each(Neighbour::goes_on);
        let key = ["key", "list", "--json", "--data"];
        let mut list = std::process::Command::new(keyway_tests::keyway());
        list.args(key).arg(folder.path().join("data"));
        assert!(list.output().unwrap().status.success());
        (once, twice)
    });
}
