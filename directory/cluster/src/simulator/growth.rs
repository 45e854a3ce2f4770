//! How lag and catch-up grow with the servers and the entries: more of both than one machine has.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use super::event::Event;
use super::options::Options;
use super::world::World;

/// Clients, which make about 500 changes a second together.
const CLIENTS: usize = 90;
/// Octets a second that a server can send.
const BANDWIDTH: u64 = 125_000_000;
/// Octets of an entry in a base.
const ENTRY: u64 = 1_500;
/// How often positions are looked at.
const STEP: Duration = Duration::from_millis(5);
/// How many changes behind counts as caught up.
const NEAR: u64 = 20;

/// What was seen.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Servers.
    pub servers: usize,
    /// Entries of a base.
    pub entries: u64,
    /// Changes a second.
    pub changes: f64,
    /// The time that followers are behind, in milliseconds: of half of all looks, and of 99 in 100.
    pub lag: [u64; 2],
    /// How long a follower takes that was down for 5 s, from its start on.
    pub restarted: Duration,
    /// How long all followers take that were cut off from the writer for 5 s, from when they may connect again.
    pub reconnected: Duration,
    /// How long the transfer of a base takes, and how long the member that took it to follow then.
    pub base: [Duration; 2],
}

/// Runs a cluster without faults, then one server after the other that has to catch up.
///
/// # Errors
/// The rule that was broken, or that a server did not catch up in ten minutes.
pub fn growth(servers: usize, entries: u64) -> Result<Growth, String> {
    let options = Options {
        members: servers.max(2),
        clients: Some(CLIENTS),
        bandwidth: Some(BANDWIDTH),
        faults: Vec::new(),
        etcd: false,
        ..Options::of(0)
    };
    let mut run = Run { world: World::begun(1, options), times: Vec::new(), lags: Vec::new() };
    run.until(Duration::from_secs(4), false)?;
    let (from, before) = (run.world.now, run.head());
    run.until(from + Duration::from_secs(10), true)?;
    let changes = (run.head() - before) as f64 / 10.0;
    run.lags.sort_unstable();
    let at =
        |hundredths: usize| run.lags.get(run.lags.len() * hundredths / 100).copied().unwrap_or(0);
    let lag = [at(50), at(99)];

    run.world.kill(1, false);
    run.until(run.world.now + Duration::from_secs(5), false)?;
    run.world.after(Duration::ZERO, Event::Start { server: 1 });
    let restarted = run.caught_up(1..2)?;

    let cut: Vec<_> = (1..servers).map(|at| (0, at)).collect();
    run.world.cuts.extend(&cut);
    run.until(run.world.now + Duration::from_secs(5), false)?;
    run.world.cuts.clear();
    let reconnected = run.caught_up(1..servers)?;

    // A base shares the writer's line with the rows that the others get.
    let copy = run.world.servers[0].store.clone();
    let transfer = Duration::from_micros(entries * ENTRY * 2 * 1_000_000 / BANDWIDTH);
    run.world.kill(1, false);
    run.until(run.world.now + transfer, false)?;
    run.world.servers[1].store = copy;
    run.world.after(Duration::ZERO, Event::Start { server: 1 });
    let base = [transfer, run.caught_up(1..2)?];
    Ok(Growth { servers, entries, changes, lag, restarted, reconnected, base })
}

struct Run {
    world: World,
    /// When the writer came to each position.
    times: Vec<Duration>,
    /// Milliseconds that a follower was behind at a look.
    lags: Vec<u64>,
}

impl Run {
    fn head(&self) -> u64 {
        self.world.servers[0].store.position()
    }

    fn until(&mut self, end: Duration, is_measured: bool) -> Result<(), String> {
        while self.world.now < end {
            self.world.run_until(end.min(self.world.now + STEP))?;
            let head = self.head() as usize;
            self.times.resize(head + 1, self.world.now);
            for follower in self.world.servers.iter().skip(1).filter(|_| is_measured) {
                let since = self.times.get(follower.store.position() as usize + 1);
                let lag = since.map_or(Duration::ZERO, |since| self.world.now - *since);
                self.lags.push(lag.as_millis() as u64);
            }
        }
        Ok(())
    }

    fn caught_up(&mut self, mut of: std::ops::Range<usize>) -> Result<Duration, String> {
        let start = self.world.now;
        let is_near =
            |run: &Run, at: usize| run.world.servers[at].store.position() + NEAR >= run.head();
        while !of.clone().all(|at| is_near(self, at)) {
            self.until(self.world.now + STEP, false)?;
            if self.world.now > start + Duration::from_secs(600) {
                return Err(format!(
                    "server {:?} does not catch up",
                    of.find(|at| !is_near(self, *at))
                ));
            }
        }
        Ok(self.world.now - start)
    }
}

impl Display for Growth {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:3} servers, {} entries, {:.0} changes/s: lag p50 {} ms, p99 {} ms; after 5 s down {:.2} s; all after 5 s cut \
             off {:.2} s; base {:.1} s, then {:.2} s",
            self.servers,
            self.entries,
            self.changes,
            self.lag[0],
            self.lag[1],
            self.restarted.as_secs_f64(),
            self.reconnected.as_secs_f64(),
            self.base[0].as_secs_f64(),
            self.base[1].as_secs_f64(),
        )
    }
}
