//! How long it takes until a follower shows a change that its writer has acknowledged, while others come at a rate.

use super::servers::Cluster;
use crate::ldap::{SUFFIX, add};
use keyway_tests::client::Client;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Connections that make the changes.
const WRITERS: u32 = 16;
/// From one change that is looked for to the next.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The times of one round.
pub struct Lag {
    /// In milliseconds, in their order.
    pub times_ms: Vec<f64>,
    /// Changes a second that were made.
    pub rate: f64,
}

impl Lag {
    /// The time that this part of them does not exceed.
    pub fn percentile(&self, part: f64) -> f64 {
        let at = (self.times_ms.len() as f64 * part).ceil() as usize;
        self.times_ms.get(at.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// Makes so many changes a second for so long, and looks for some of them at the last follower.
pub fn measure(cluster: &Cluster, rate: f64, seconds: f64) -> Result<Lag, String> {
    let (ends, made) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        writers.push(cluster.connect(0)?);
    }
    let mut probe = (cluster.connect(0)?, cluster.connect(cluster.servers.len() - 1)?);
    let begun = Instant::now();
    let every = Duration::from_secs_f64(f64::from(WRITERS) / rate);
    let looked = thread::scope(|scope| {
        let threads: Vec<_> = writers
            .into_iter()
            .zip(0..)
            .map(|(client, number)| {
                let first = begun + every * number / WRITERS;
                let (ends, made) = (&ends, &made);
                scope.spawn(move || paced(client, (first, every), ends, made))
            })
            .collect();
        let looked = look(&mut probe, begun + Duration::from_secs_f64(seconds));
        ends.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a client panicked")??;
        }
        looked
    });
    let mut times_ms = looked?;
    let made = made.load(Ordering::Relaxed) + times_ms.len() as u64;
    times_ms.sort_by(f64::total_cmp);
    Ok(Lag { times_ms, rate: made as f64 / begun.elapsed().as_secs_f64() })
}

/// Adds at these times. One that is late is made at once.
fn paced(
    mut client: Client,
    (mut next, every): (Instant, Duration),
    ends: &AtomicBool,
    made: &AtomicU64,
) -> Result<(), String> {
    while !ends.load(Ordering::Relaxed) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        add(&mut client)?;
        made.fetch_add(1, Ordering::Relaxed);
        next += every;
    }
    Ok(())
}

/// Changes one entry at the writer again and again, and compares it at the follower until that has the new value.
fn look((writer, follower): &mut (Client, Client), end: Instant) -> Result<Vec<f64>, String> {
    let entry = format!("ou=People,{SUFFIX}");
    let (mut times, mut number) = (Vec::new(), 0_u64);
    while Instant::now() < end || times.is_empty() {
        number += 1;
        let value = format!("change {number} of {end:?}");
        writer.replace_values(&entry, "description", &[&value])?;
        let acknowledged = Instant::now();
        // An entry without the attribute, as it is at first, is no failure.
        while !follower.compare(&entry, "description", &value).unwrap_or(false) {
            if acknowledged.elapsed() > Duration::from_secs(30) {
                return Err("a follower does not get a change within 30 s".into());
            }
        }
        times.push(acknowledged.elapsed().as_secs_f64() * 1e3);
        thread::sleep(LOOK_EVERY);
    }
    Ok(times)
}
