//! Memory that a client shares and whose pages it takes away: the daemon fills holes with zeros.

use keyway_ring::control::{self, Answer, Ask};
use keyway_ring::descriptor::Status;
use keyway_tests::cryptod::{Cryptod, beside_neighbours};
use keyway_tests::nightly;
use keyway_tests::ring_client::Client;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate};
use std::os::fd::AsFd;
use std::thread;

const BYTES: usize = 4 << 20;

fn punch(file: impl AsFd, bytes: usize) {
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, hole, 0, bytes as u64).unwrap();
}

/// Holes in regions and rings, while the daemon works there.
#[test]
fn holes_in_shared_memory_end_nothing() {
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let client = Client::new(cryptod.socket());
        let (mut pair, region, session) = (client.pair(8), client.region(BYTES), client.aes());
        let rounds = if nightly() { 10_000 } else { 200 };
        thread::scope(|scope| {
            let file = region.memory.file().unwrap();
            scope.spawn(move || (0..10 * rounds).for_each(|_| punch(file, BYTES)));
            let text = vec![7; 64 << 10];
            for _ in 0..rounds {
                assert_eq!(pair.run(&region.seal(session, &text)).status, Status::Done);
            }
        });
        // A ring without its entries is spoilt, and it is only this client's.
        punch(pair.memory.memory().file().unwrap(), pair.memory.memory().bytes());
        pair.bell.ring();
        (client, pair, region)
    });
}

/// A region is the daemon's own memory, of ordinary pages: where a client brings its own, of huge pages, whose
/// holes could not be filled, it is sent away.
#[test]
fn memory_of_a_clients_is_not_taken() {
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        for huge in [MemfdFlags::empty(), MemfdFlags::HUGETLB] {
            let client = Client::new(cryptod.socket());
            let file = rustix::fs::memfd_create("own", huge | MemfdFlags::ALLOW_SEALING).unwrap();
            rustix::fs::ftruncate(&file, BYTES as u64).unwrap();
            let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
            rustix::fs::fcntl_add_seals(&file, seals).unwrap();
            let message = control::encode(&Ask::Region { bytes: BYTES as u64 }).unwrap();
            // Where the system keeps files off, it does so before the daemon has to.
            match client.socket.send(&message, &[file.as_fd()]) {
                Ok(()) => assert!(client.is_sent_away()),
                Err(_) => assert!(matches!(client.ask(&Ask::Ping), Answer::Done)),
            }
        }
    });
}
