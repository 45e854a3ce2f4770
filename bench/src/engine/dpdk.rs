//! DPDK's cryptodev as a peer: its own `dpdk-test-crypto-perf`, which enqueues and dequeues bursts
//! on one processor and says how many operations it did a second.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

const PROGRAM: &str = "dpdk-test-crypto-perf";
/// No hugepages, no PCI devices, no shared configuration: nothing of the machine is touched.
const ALONE: &[&str] = &["--no-huge", "-m", "512", "--no-pci", "--no-shconf"];

/// Nanoseconds an operation, by bytes and burst.
pub type Figures = BTreeMap<(usize, usize), f64>;

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
    /// Best of `runs` runs of so many operations each; empty where it is not installed or cannot
    /// run here.
    pub fn measure(
        &self,
        sizes: &[usize],
        bursts: &[usize],
        operations: usize,
        runs: usize,
    ) -> Figures {
        let mut best = Figures::new();
        for _ in 0..runs {
            for (key, figure) in self.once(sizes, bursts, operations).unwrap_or_default() {
                let known = best.entry(key).or_insert(figure);
                *known = known.min(figure);
            }
        }
        best
    }

    fn once(&self, sizes: &[usize], bursts: &[usize], operations: usize) -> Option<Figures> {
        let list = |numbers: &[usize]| {
            numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        let output = Command::new(PROGRAM)
            .args(ALONE)
            .args(["-l", "0,1", "--vdev", self.device, "--", "--devtype", self.device])
            .args(["--ptest", "throughput", "--silent", "--csv-friendly"])
            .args(self.operation)
            .args(["--buffer-sz", &list(sizes), "--burst-sz", &list(bursts)])
            .args(["--total-ops", &operations.to_string()])
            .stdin(Stdio::null())
            .output()
            .ok()?;
        parse(&String::from_utf8_lossy(&output.stdout))
    }
}

/// Reads lines of lcore, bytes, burst, enqueued, dequeued, two failures, million operations a second,
/// Gbit/s, cycles: the cycles have more digits, the fastest line says how long one takes.
fn parse(said: &str) -> Option<Figures> {
    let row = |line: &str| {
        let fields: Vec<_> = line.split(',').collect();
        let number = |index: usize| fields.get(index)?.trim().parse::<f64>().ok();
        Some(((number(1)? as usize, number(2)? as usize), number(7)?, number(9)?))
    };
    let rows: Vec<_> = said.lines().filter_map(row).collect();
    let (_, rate, cycles) = rows.iter().max_by(|(_, a, _), (_, b, _)| a.total_cmp(b))?;
    let cycles_a_nanosecond = rate * cycles / 1e3;
    Some(rows.iter().map(|(key, _, cycles)| (*key, cycles / cycles_a_nanosecond)).collect())
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
        let figures = parse(said).expect("there are two lines");
        assert_eq!(figures, Figures::from([((64, 1), 1000.0), ((64, 32), 100.0)]));
        assert_eq!(parse("EAL: nothing\n"), None);
    }
}
