//! Clients leave nothing behind when they die. A process of its own, since its open files are
//! counted.

#[path = "../daemon/client.rs"]
mod client;
#[path = "../daemon/served.rs"]
mod served;

use client::Client;
use served::{Served, is_served};
use std::time::{Duration, Instant};

/// How long something may take that takes no time.
const LONG: Duration = Duration::from_secs(60);

/// Point 11 of the hostile client's list.
#[test]
fn death_in_every_state_gives_everything_back() {
    let served = Served::start();
    let socket = &served.socket();
    is_served(socket);
    let open_files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open_files();
    for round in 0..60 {
        let client = Client::stranger(socket);
        if round % 6 == 0 {
            continue;
        }
        drop(client);
        let client = Client::new(socket);
        if round % 6 == 1 {
            continue;
        }
        let (mut pair, region, session) = (client.pair(16), client.region(1 << 16), client.aes());
        if round % 6 == 2 {
            continue;
        }
        for _ in 0..round % 16 {
            pair.submit(&region.seal(session, &[1; 1000]));
        }
        if round % 6 == 3 {
            pair.submit(&region.seal(session, &[1; 1000]));
            pair.completion();
        }
    }
    // The control thread hears of each death in its turn, and the pumps let go when they have
    // theirs.
    let begun = Instant::now();
    let mut after = usize::MAX;
    while after > before + 2 && begun.elapsed() < LONG {
        is_served(socket);
        after = open_files();
    }
    assert!(after <= before + 2, "{before} files before, {after} after");
}
