//! Virtual machines: the daemon's rings from inside a guest, beside the ways that there were.
//!
//! A claim that needs more than the machine has is left out, and the report says why. This thread has the first
//! processor and the daemon the second, and the sides of a comparison run by turns, as in [`ring`](crate::ring).

#[cfg(target_arch = "x86_64")]
mod address_space;
mod device;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod kvm;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod ring3;
mod signatures;
mod weights;

use crate::report::{Findings, Report};
use crate::ring::common::{CLIENT, run_on, text};
use crate::ring::pkcs11;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::path::PathBuf;
use std::time::Instant;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these claims, by number, with commas between them
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=CLAIMS.len() as i64))]
    only: Vec<u8>,
    /// Rounds of what is compared by turns
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// A claim, or a few that belong together.
struct Measured {
    name: &'static str,
    /// Why this machine cannot measure it, if so.
    lacks: fn() -> Option<String>,
    /// In so many rounds.
    measure: fn(usize) -> Result<Findings, String>,
}

/// A claim's number is its place, from 1.
const CLAIMS: &[Measured] = &[
    #[cfg(target_arch = "x86_64")]
    Measured {
        name: "the ring from ring 3 of a guest",
        lacks: ring3::lacks,
        measure: ring3::measure,
    },
    Measured {
        name: "signatures from a guest",
        lacks: signatures::lacks,
        measure: signatures::measure,
    },
    Measured { name: "weights", lacks: || None, measure: weights::measure },
    Measured {
        name: "the device of a guest's kernel",
        lacks: device::lacks,
        measure: device::measure,
    },
];

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let begun = Instant::now();
    let allowed = sched_getaffinity(None).map_err(text)?;
    run_on(CLIENT)?;
    let (mut all, mut left_out, mut missed) = (Findings::default(), Vec::new(), Vec::new());
    // Whatever has to be built first.
    keyway_tests::keyway();
    for (number, claim) in (1..).zip(CLAIMS) {
        if !arguments.only.is_empty() && !arguments.only.contains(&number) {
            continue;
        }
        let name = format!("{number} {}", claim.name);
        eprintln!("{:>4} s  {name}", begun.elapsed().as_secs());
        if let Some(why) = (claim.lacks)() {
            left_out.push(format!("{name}: {why}"));
            continue;
        }
        match (claim.measure)(arguments.rounds) {
            Ok(found) => {
                all.claims.extend(found.claims);
                all.tables.extend(found.tables);
            }
            Err(why) => missed.push(format!("{name}: {why}")),
        }
    }
    let mut peers = vec!["the same ring between processes of the host".to_owned()];
    peers.push("QEMU's builtin crypto device".to_owned());
    peers.push(pkcs11::version().unwrap_or_else(|| "p11-kit is not installed".into()));
    let settings = serde_json::json!({
        "only": arguments.only, "rounds": arguments.rounds, "left_out": left_out,
        "seconds": begun.elapsed().as_secs(),
    });
    // The report says how many there are.
    let _ = sched_setaffinity(None, &allowed);
    let report = Report::new("vm", peers, settings, all.claims, all.tables);
    report.finish(arguments.json.as_deref())?;
    for claim in &left_out {
        println!("left out: {claim}");
    }
    println!("{} s in all", begun.elapsed().as_secs());
    if missed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", missed.join("; "))) }
}
