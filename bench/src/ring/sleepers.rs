//! Claim 6: both ends asleep. How often one wakes the other, what one wake-up brings over load, and
//! what a daemon without work costs.

use super::client::{Client, Region, Ring};
use super::daemon::Daemon;
use super::{Arguments, text};
use crate::report::{Claim, Findings, Table};
use keyway_engine::Algorithm;
use keyway_ring::control::{ClientStatus, Key, Secret};
use keyway_ring::descriptor::{Opcode, Segment, SessionHandle};
use std::thread;
use std::time::Duration;

/// In flight, from one at a time to a full ring.
const DEPTHS: [usize; 4] = [1, 4, 16, 32];
const BYTES: u32 = 1504;
/// Requests of each depth.
const REQUESTS: u64 = 3_200;
/// Requests that come one by one.
const APART: u64 = 200;
/// Longer than a daemon polls for nothing.
const PAUSE: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_secs(2);
/// The share of the time that a daemon may spend meanwhile.
const IDLE_MOST: f64 = 1e-4;
/// Completions that one wake-up brings where 32 are in flight.
const BATCH_MIN: f64 = 2.0;

pub fn measure(_: &Arguments) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let daemon = Daemon::start(folder.path(), &[])?;
    let client = Client::connect(daemon.socket(), NAME)?;
    let (ring, region) = (client.ring(64)?, client.region(64 << 12)?);
    let session = client.open(Algorithm::Aes128Gcm, Key::Secret(Secret(vec![7; 16])))?;
    let mut load = Load { client, ring, region, session };

    let mut table = Table::new(
        "6 AES-128-GCM of 1504 B, who waits sleeps at once",
        &["in flight", "requests", "doorbells", "wake-ups", "completions a wake-up"],
    );
    let mut row = |name: &str, events: &Events| {
        let Events { requests, doorbells, wakeups } = events;
        let mut row = vec![name.to_owned()];
        row.extend([requests, doorbells, wakeups].map(u64::to_string));
        row.push(format!("{:.1}", events.batch()));
        table.rows.push(row);
    };
    let apart = load.run(1, APART, Some(PAUSE))?;
    row("1, now and then", &apart);
    let each = |count: u64| [count as f64 / apart.requests as f64];
    let mut claims = vec![
        Claim::at_most("6 doorbells a request, both asleep", "of 1", &each(apart.doorbells), 1.0),
        Claim::at_most("6 wake-ups a request, both asleep", "of 1", &each(apart.wakeups), 1.0),
    ];
    for depth in DEPTHS {
        let events = load.run(depth, REQUESTS, None)?;
        row(&depth.to_string(), &events);
        if depth == DEPTHS[DEPTHS.len() - 1] {
            let name = "6 completions a wake-up, 32 in flight";
            let claim = Claim::rate(name, "of 1", &[events.batch()], "without batches", &[1.0]);
            claims.push(claim.demand(BATCH_MIN));
        }
    }
    // Its tidying up is done by then.
    thread::sleep(PAUSE * 100);
    let before = daemon.time();
    thread::sleep(IDLE);
    let spent = daemon.time().saturating_sub(before).as_secs_f64() / IDLE.as_secs_f64();
    let name = "6 processor time of an idle daemon, of the time";
    claims.push(Claim::at_most(name, "of 1", &[spent.max(1e-9)], IDLE_MOST));
    Ok(Findings { claims, tables: vec![table] })
}

const NAME: &str = "sleepers";

/// The counts of events.
struct Events {
    requests: u64,
    doorbells: u64,
    wakeups: u64,
}

impl Events {
    fn batch(&self) -> f64 {
        self.requests as f64 / self.wakeups.max(1) as f64
    }

    fn since(before: &ClientStatus, after: &ClientStatus) -> Self {
        Events {
            requests: after.requests - before.requests,
            doorbells: after.doorbells - before.doorbells,
            wakeups: after.wakeups - before.wakeups,
        }
    }
}

struct Load {
    client: Client,
    ring: Ring,
    region: Region,
    session: SessionHandle,
}

impl Load {
    /// So many requests, so many in flight, apart by a pause.
    fn run(
        &mut self,
        depth: usize,
        requests: u64,
        pause: Option<Duration>,
    ) -> Result<Events, String> {
        let before = self.client.status(NAME)?;
        let request = |slot: u32| {
            let data = Segment { offset: slot << 12, bytes: BYTES };
            self.region.request(Opcode::Seal, self.session, slot, data)
        };
        let mut free: Vec<u32> = (0..depth as u32).collect();
        let (mut left, mut done) = (requests, 0);
        while done < requests {
            if let Some(pause) = pause {
                thread::sleep(pause);
            }
            while left > 0
                && let Some(slot) = free.pop()
            {
                self.ring.submit(&request(slot));
                left -= 1;
            }
            self.ring.ring();
            let found = done;
            while found == done {
                while let Some(completion) = self.ring.poll() {
                    free.push(completion.cookie);
                    done += 1;
                }
                if found == done {
                    self.ring.sleep();
                }
            }
        }
        let after = self.client.status(NAME)?;
        Ok(Events::since(&before, &after))
    }
}
