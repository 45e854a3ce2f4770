//! Crowds: connections of one user, open files, sessions and memory, as many as it gets.

use keyway_ring::control::{Answer, Ask, Key, KeyAsk, KeyPolicy, Step};
use keyway_ring::descriptor::{Descriptor, Opcode, Segment, Status};
use keyway_tests::cryptod::{Cryptod, as_user, beside_neighbours, eventually};
use keyway_tests::ring_client::Client;
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

/// Users that this machine need not know.
const HOSTILE: u32 = 64_001;
const HONEST: u32 = 64_002;

/// Lets this process have as many open files as it may.
fn many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Only root becomes other users.
fn is_root() -> bool {
    let is_root = getuid().is_root();
    if !is_root {
        eprintln!("left out: only root becomes other users");
    }
    is_root
}

/// Whether a client was told to ask for less.
fn is_told(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused { status, why } if *status == Status::Busy as u8
        && why.starts_with("your user (uid 64001) has as many"))
}

/// That others are served, and that root may do what only root may.
fn others_are_served(cryptod: &Cryptod) {
    as_user(HONEST, || {
        let client = Client::new(cryptod.socket());
        let (mut pair, region, session) = (client.pair(8), client.region(4096), client.aes());
        assert_eq!(pair.run(&region.seal(session, b"text")).status, Status::Done);
    });
    let root = Client::new(cryptod.socket());
    let name = "theirs".to_owned();
    let answer = root.ask(&Ask::Keys(KeyAsk::Generate {
        name: name.clone(),
        policy: KeyPolicy { algorithms: vec!["ed25519".to_owned()], ..KeyPolicy::default() },
    }));
    assert_eq!(answer, Answer::Done);
    assert_eq!(root.ask(&Ask::Keys(KeyAsk::Revoke { name })), Answer::Done);
}

/// Connections that say nothing, by the hundred, of a user who may be a client.
#[test]
fn silent_connections_lock_out_no_client() {
    if !is_root() {
        return;
    }
    many_files();
    beside_neighbours(Cryptod::for_every_user(&[]), |cryptod| {
        let connect = || (0..300).map(|_| Client::stranger(cryptod.socket())).collect::<Vec<_>>();
        let silent = as_user(HOSTILE, connect);
        others_are_served(cryptod);
        silent
    });
}

/// As many clients of one user as the daemon takes at all.
#[test]
fn clients_of_one_user_lock_out_no_other() {
    if !is_root() {
        return;
    }
    many_files();
    beside_neighbours(Cryptod::for_every_user(&["--limit", "clients=100"]), |cryptod| {
        let (clients, refused) = as_user(HOSTILE, || {
            let clients: Vec<_> = (0..25).map(|_| Client::new(cryptod.socket())).collect();
            (clients, Client::stranger(cryptod.socket()).hear().0)
        });
        assert!(is_told(&refused), "{refused:?}");
        others_are_served(cryptod);
        clients
    });
}

/// Queue pairs, each of which takes files of the daemon's.
#[test]
fn one_user_does_not_take_all_files() {
    if !is_root() {
        return;
    }
    many_files();
    beside_neighbours(Cryptod::for_every_user(&["--limit", "files=2000"]), |cryptod| {
        let before = cryptod.open_files();
        let clients = as_user(HOSTILE, || {
            let mut clients = Vec::new();
            loop {
                let client = Client::new(cryptod.socket());
                for _ in 0..64 {
                    client.say(&Ask::Queue { entries: 2 }, &[]);
                    let (answer, received) = client.hear();
                    drop(received);
                    if is_told(&answer) {
                        clients.push(client);
                        return clients;
                    }
                }
                clients.push(client);
            }
        });
        assert!(cryptod.open_files() - before <= 2_000, "{}", cryptod.open_files());
        others_are_served(cryptod);
        drop(clients);
        eventually("its files are closed", || cryptod.open_files() < before + 100);
    });
}

/// A large region that its client has never touched costs the daemon nothing, and what worked on it is given
/// back.
#[test]
fn untouched_memory_counts_for_no_client() {
    const REGION: usize = 480 << 20;
    const PART: u32 = 60 << 20;
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let before = cryptod.figure("VmRSS");
        let client = Client::new(cryptod.socket());
        let mut pair = client.pair(4);
        let region = client.region(REGION);
        let session = client.open("sha-256", Key::None);
        for offset in (0..REGION as u32 - PART).step_by(PART as usize) {
            let hash = Descriptor {
                opcode: Opcode::Digest as u8,
                session,
                region: region.handle,
                segments: [
                    Segment { offset: offset + 64, bytes: PART },
                    Segment { offset, bytes: 32 },
                    Segment::default(),
                ],
                ..Descriptor::default()
            };
            assert_eq!(pair.run(&hash).status, Status::Done);
        }
        let after = cryptod.figure("VmRSS");
        assert!(after < before + (64 << 10), "{before} KiB before, {after} KiB after");
        (client, region)
    });
}

/// Sessions and memory, as much as one user gets.
#[test]
fn one_user_does_not_take_all_memory() {
    if !is_root() {
        return;
    }
    let limits = ["--limit", "memory-of-user=64M", "--limit", "sessions-of-user=2000"];
    beside_neighbours(Cryptod::for_every_user(&limits), |cryptod| {
        let before = cryptod.figure("VmRSS");
        let clients = as_user(HOSTILE, || {
            let clients = [0; 4].map(|_| Client::new(cryptod.socket()));
            let ask = || {
                let step = Step { algorithm: "sha-256".to_owned(), key: Key::None };
                Ask::Open { steps: vec![step] }
            };
            let opened = (0..10_000).take_while(|at| !is_told(&clients[at % 4].ask(&ask())));
            assert_eq!(opened.count(), 2_000);
            let regions = (0..100).map_while(|at| {
                clients[at % 4].say(&Ask::Region { bytes: 4 << 20 }, &[]);
                let (answer, received) = clients[at % 4].hear();
                (!is_told(&answer)).then_some(received)
            });
            assert_eq!(regions.count(), 16);
            clients
        });
        others_are_served(cryptod);
        let after = cryptod.figure("VmRSS");
        assert!(after < before + (128 << 10), "{before} KiB before, {after} KiB after");
        clients
    });
}

/// Memory that others need, once all who used it have left.
#[test]
fn what_all_had_is_given_back_when_they_have_left() {
    many_files();
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let before = cryptod.figure("VmRSS");
        let clients: Vec<_> = (0..4).map(|_| Client::new(cryptod.socket())).collect();
        for client in &clients {
            for _ in 0..2_000 {
                client.aes();
            }
        }
        let taken = cryptod.figure("VmRSS") - before;
        assert!(taken > 8 << 10, "{taken} KiB for 8,000 sessions");
        drop(clients);
        eventually("it is given back", || cryptod.figure("VmRSS") < before + taken / 2);
    });
}
