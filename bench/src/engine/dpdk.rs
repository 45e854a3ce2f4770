//! DPDK's cryptodev as a peer: its own `dpdk-test-crypto-perf`, which enqueues and dequeues bursts
//! on one processor and says how many cycles an operation took.
//!
//! It has two forms of the same work. Its test of throughput takes operations from a pool, fills
//! them in and gives them back, all of it timed; its count of a driver's cycles times only what
//! goes through the queue.

use crate::gauge::Gauge;
use crate::report::median;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

const PROGRAM: &str = "dpdk-test-crypto-perf";
/// No hugepages, no PCI devices, no shared configuration: nothing of the machine is touched.
const ALONE: &[&str] = &["--no-huge", "-m", "512", "--no-pci", "--no-shconf"];

/// Nanoseconds an operation, by bytes and burst.
type Cells = BTreeMap<(usize, usize), f64>;

/// Both forms; empty where DPDK is not installed or cannot run here.
#[derive(Default)]
pub struct Figures {
    /// Operations are made anew.
    pub anew: Cells,
    /// Operations are there, and go round.
    pub round: Cells,
}

/// A device and what it is asked to do.
pub struct Dpdk {
    device: &'static str,
    operation: &'static [&'static str],
}

/// The driver that does nothing.
pub const NULL: Dpdk = Dpdk {
    device: "crypto_null",
    operation: &[
        "--optype",
        "cipher-only",
        "--cipher-algo",
        "null",
        "--cipher-op",
        "encrypt",
        "--cipher-key-sz",
        "0",
        "--cipher-iv-sz",
        "0",
    ],
};

/// Intel's multi-buffer library: AES-128-CBC, then HMAC-SHA1 of the ciphertext.
pub const MULTIBUFFER: Dpdk = Dpdk {
    device: "crypto_aesni_mb",
    operation: &[
        "--optype",
        "cipher-then-auth",
        "--cipher-algo",
        "aes-cbc",
        "--cipher-op",
        "encrypt",
        "--cipher-key-sz",
        "16",
        "--cipher-iv-sz",
        "16",
        "--auth-algo",
        "sha1-hmac",
        "--auth-op",
        "generate",
        "--auth-key-sz",
        "64",
        "--digest-sz",
        "20",
    ],
};

/// Its version; `None` where it is not installed.
pub fn version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("-v").args(ALONE).stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find_map(|line| line.split_once("RTE Version: "))?;
    Some(line.1.trim_matches('\'').to_owned())
}

impl Dpdk {
    /// Medians of `runs` runs of so many operations each, repeated as others' are where a neighbour
    /// disturbs them.
    pub fn measure(
        &self,
        gauge: &mut Gauge,
        sizes: &[usize],
        bursts: &[usize],
        operations: usize,
        runs: usize,
    ) -> Figures {
        let all = (0..runs).filter_map(|_| {
            gauge.undisturbed(|| {
                let anew = self.run("throughput", sizes, bursts, operations)?;
                let (anew, clock) = throughput(&anew)?;
                let round = self.run("pmd-cyclecount", sizes, bursts, operations)?;
                Some((anew, cycle_count(&round, clock)))
            })
        });
        let (anew, round): (Vec<_>, Vec<_>) = all.unzip();
        Figures { anew: medians(&anew), round: medians(&round) }
    }

    /// The output of one of its tests.
    fn run(
        &self,
        test: &str,
        sizes: &[usize],
        bursts: &[usize],
        operations: usize,
    ) -> Option<String> {
        let list = |numbers: &[usize]| {
            numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        let output = Command::new(PROGRAM)
            .args(ALONE)
            .args(["-l", "0,1", "--vdev", self.device, "--", "--devtype", self.device])
            .args(["--ptest", test, "--silent", "--csv-friendly"])
            .args(self.operation)
            .args(["--buffer-sz", &list(sizes), "--burst-sz", &list(bursts)])
            .args(["--total-ops", &operations.to_string()])
            .stdin(Stdio::null())
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn medians(runs: &[Cells]) -> Cells {
    let keys = runs.first().into_iter().flat_map(Cells::keys);
    let of = |key| runs.iter().filter_map(|run| run.get(key).copied()).collect::<Vec<_>>();
    keys.map(|key| (*key, median(&of(key)))).collect()
}

/// The fields of lines that are numbers and nothing else.
fn rows(said: &str) -> Vec<Vec<f64>> {
    let row = |line: &str| line.split(',').map(|field| field.trim().parse().ok()).collect();
    said.lines().filter_map(row).collect()
}

/// Reads lines of lcore, bytes, burst, enqueued, dequeued, two failures, million operations a
/// second, Gbit/s, cycles: the cycles have more digits, the fastest line says how many there are in
/// a nanosecond.
fn throughput(said: &str) -> Option<(Cells, f64)> {
    let rows = rows(said);
    let rows: Vec<_> = rows.iter().filter(|row| row.len() == 10).collect();
    let fastest = rows.iter().max_by(|a, b| a[7].total_cmp(&b[7]))?;
    let clock = fastest[7] * fastest[9] / 1e3;
    Some((rows.iter().map(|row| (key(row), row[9] / clock)).collect(), clock))
}

/// Reads lines of lcore, bytes, burst, enqueued, dequeued, two counts of retries, cycles to make an
/// operation, to enqueue it, to dequeue it.
fn cycle_count(said: &str, clock: f64) -> Cells {
    let rows = rows(said);
    let rows = rows.iter().filter(|row| row.len() == 10);
    rows.map(|row| (key(row), (row[8] + row[9]) / clock)).collect()
}

fn key(row: &[f64]) -> (usize, usize) {
    (row[1] as usize, row[2] as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_the_program_says() {
        let said = "#lcore id,Buffer Size(B),Burst Size,Enqueued,Dequeued,Failed Enq,Failed Deq,\
                    Ops(Millions),Throughput(Gbps),Cycles/Buf\n\n\
                    1,64,1,20000,20000,0,0,1.000,0.700,2600.0\n\
                    1,64,32,20000,20000,0,0,10.000,4.522,260.0\n";
        let (figures, clock) = throughput(said).expect("there are two lines");
        assert_eq!(figures, Cells::from([((64, 1), 1000.0), ((64, 32), 100.0)]));
        assert_eq!(clock, 2.6);
        assert!(throughput("EAL: nothing\n").is_none());
        let said = "# lcore id,Buf Size,Burst Size,Enqueued,Dequeued,Enq Retries,Deq Retries,\
                    Cycles/Op,Cycles/Enq,Cycles/Deq\n\
                    \x20        1,        64,32,20000,20000,0,0,50.000,20.000,6.000\n";
        assert_eq!(cycle_count(said, clock), Cells::from([((64, 32), 10.0)]));
    }
}
