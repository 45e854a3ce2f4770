//! Attacks on the descriptor by which a client rings: its flags and its count are the client's too.

use keyway_ring::Doorbell;
use keyway_tests::cryptod::{Cryptod, beside_neighbours};
use keyway_tests::nightly;
use keyway_tests::ring_client::{Client, Pair};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{ReadWriteFlags, preadv2};
use std::io::IoSliceMut;
use std::thread;

/// Each client rings so often.
fn bursts() -> u32 {
    if nightly() { 2_000_000 } else { 100_000 }
}

/// Takes away what was rung before the daemon could. Never waits.
fn take_back(bell: &Doorbell) {
    let mut count = [0; 8];
    let parts = &mut [IoSliceMut::new(&mut count)];
    let _ = preadv2(bell, parts, u64::MAX, ReadWriteFlags::NOWAIT);
}

/// Clients with a queue pair, each on a thread of its own.
fn clients(cryptod: &Cryptod, attack: impl Fn(&mut Pair) + Sync) -> Vec<(Client, Pair)> {
    let clients = (0..4).map(|_| {
        let client = Client::new(cryptod.socket());
        let pair = client.pair(8);
        (client, pair)
    });
    let mut clients: Vec<_> = clients.collect();
    thread::scope(|scope| {
        for (_, pair) in &mut clients {
            scope.spawn(|| attack(pair));
        }
    });
    clients
}

/// The daemon is told of a ring whose count is gone when it looks, on a descriptor that waits.
#[test]
fn a_bell_that_waits_for_a_ring_holds_up_no_client() {
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        clients(cryptod, |pair| {
            fcntl_setfl(&pair.bell, OFlags::empty()).unwrap();
            for _ in 0..bursts() {
                pair.bell.ring();
                take_back(&pair.bell);
            }
        })
    });
}

/// As above, by clients that have gone when it looks.
#[test]
fn a_bell_whose_client_has_gone_holds_up_no_client() {
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        for _ in 0..20 {
            drop(clients(cryptod, |pair| {
                fcntl_setfl(&pair.bell, OFlags::empty()).unwrap();
                for _ in 0..bursts() / 100 {
                    pair.bell.ring();
                    take_back(&pair.bell);
                }
            }));
        }
    });
}

/// A count that takes no more, on a descriptor on which a write would wait.
#[test]
fn a_bell_that_is_full_holds_up_no_client() {
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        clients(cryptod, |pair| {
            take_back(&pair.bell);
            rustix::io::write(&pair.bell, &(u64::MAX - 1).to_ne_bytes()).unwrap();
            // The count is full: the daemon is told of no more rings, and that is this client's own
            // loss.
            pair.bell.ring();
            fcntl_setfl(&pair.bell, OFlags::empty()).unwrap();
        })
    });
}

/// One that rings all the time and for nothing is still served.
#[test]
fn ringing_for_nothing_harms_no_client() {
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        clients(cryptod, |pair| {
            for _ in 0..bursts() {
                pair.bell.ring();
            }
            pair.null();
        })
    });
}
