//! The use of this machine during a run, as the kernel counts it (proc(5)); no command is parsed.

use serde::Serialize;
use std::fs;
use std::time::Instant;

/// A second of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HostUse {
    /// The share of all cores that were busy.
    pub cpu_share: f64,
    /// Memory that is to be had without swapping, in bytes.
    pub memory_bytes: u64,
    /// Bytes written to disks, a second.
    pub written_bytes: f64,
    /// Bytes received over the network, a second; not those from this machine itself.
    pub received_bytes: f64,
    /// Bytes sent over it.
    pub sent_bytes: f64,
}

/// Counters that only grow.
#[derive(Debug, Clone, Copy)]
struct Counters {
    busy: u64,
    all: u64,
    written: u64,
    received: u64,
    sent: u64,
}

/// Looks at the counters, again and again.
#[derive(Debug)]
pub struct Host {
    last: Option<(Counters, Instant)>,
}

impl Default for Host {
    fn default() -> Host {
        Host::new()
    }
}

impl Host {
    /// Begins to look.
    #[must_use]
    pub fn new() -> Host {
        Host { last: read().map(|counters| (counters, Instant::now())) }
    }

    /// Since the last look; `None` where there is no /proc.
    pub fn look(&mut self) -> Option<HostUse> {
        let (now, at) = (read()?, Instant::now());
        let (before, then) = self.last.replace((now, at))?;
        let seconds = at.duration_since(then).as_secs_f64().max(1e-3);
        let grown = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let a_second = |now, before| grown(now, before) / seconds;
        Some(HostUse {
            cpu_share: grown(now.busy, before.busy) / grown(now.all, before.all).max(1.0),
            memory_bytes: 1_024 * named(&file("/proc/meminfo")?, "MemAvailable:")?,
            written_bytes: a_second(now.written, before.written),
            received_bytes: a_second(now.received, before.received),
            sent_bytes: a_second(now.sent, before.sent),
        })
    }
}

fn file(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn read() -> Option<Counters> {
    let (busy, all) = processors(&file("/proc/stat")?)?;
    let written = 1_024 * named(&file("/proc/vmstat")?, "pgpgout")?;
    let (received, sent) = network(&file("/proc/net/dev")?);
    Some(Counters { busy, all, written, received, sent })
}

/// The number after a name at the beginning of a line.
fn named(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Ticks of all processors that were busy, and all.
fn processors(stat: &str) -> Option<(u64, u64)> {
    let ticks: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).flat_map(str::parse).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
    let ticks = ticks.get(..8)?;
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.get(3..5)?.iter().sum();
    Some((all - idle, all))
}

/// Bytes received and sent by all devices but the loopback.
fn network(dev: &str) -> (u64, u64) {
    let devices = dev.lines().filter_map(|line| line.split_once(':'));
    let bytes = devices.filter(|(name, _)| name.trim() != "lo").map(|(_, counters)| {
        let mut counters = counters.split_whitespace().flat_map(str::parse::<u64>);
        (counters.next().unwrap_or_default(), counters.nth(7).unwrap_or_default())
    });
    bytes.fold((0, 0), |(received, sent), (more, further)| (received + more, sent + further))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says() {
        let stat = "cpu  10 1 5 100 20 2 3 4 9 0\ncpu0 1 2 3\n";
        assert_eq!(processors(stat), Some((25, 145)));
        assert_eq!(named("MemTotal: 5 kB\nMemAvailable:   77 kB\n", "MemAvailable:"), Some(77));
        let dev = "Inter-| Receive\n face |bytes\n    lo: 5 0 0 0 0 0 0 0 6 0\n  eth0: 70 1 0 0 0 0 0 0 80 2 0 0\n";
        assert_eq!(network(dev), (70, 80));
    }

    #[test]
    fn a_look_is_a_share() {
        let mut host = Host::new();
        let seen = host.look().unwrap();
        assert!((0.0..=1.0).contains(&seen.cpu_share) && seen.memory_bytes > 0);
    }
}
