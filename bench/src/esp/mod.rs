//! The gateway (`keyway esp`): packets of a TUN device that go over the network as ESP, beside other programs that do so
//! in user space.
//!
//! All gateways have the second processor, where two of a make run on two hosts (see [`network`]); the sender and the
//! sink have the first, and their time does not count. A figure is in packets that arrived for a second of the
//! processor, the gateways' part of the system's work included (see [`gateway::Gateway::time`]). The makes run by turns.

mod cryptography;
mod dispatch;
pub(crate) mod forward;
mod gateway;
mod keyway;
mod network;
mod packets;
mod peers;
mod traffic;

use crate::report::{Findings, Report};
use crate::ring::common::{CLIENT, run_on, text};
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
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// In so many rounds.
type Measure = fn(usize) -> Result<Findings, String>;

/// A claim's number is its place, from 1.
const CLAIMS: [(&str, Measure); 2] =
    [("packets", packets::measure), ("direct and queued dispatch", dispatch::measure)];

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let begun = Instant::now();
    if !rustix::process::geteuid().is_root() {
        return Err(
            "network namespaces and TUN devices are root's to make: run this as root".into()
        );
    }
    let allowed = sched_getaffinity(None).map_err(text)?;
    // Whatever has to be built first.
    keyway_tests::keyway();
    run_on(CLIENT)?;
    let (mut all, mut missed) = (Findings::default(), Vec::new());
    for (number, (name, measure)) in (1..).zip(CLAIMS) {
        if !arguments.only.is_empty() && !arguments.only.contains(&number) {
            continue;
        }
        eprintln!("{:>4} s  {number} {name}", begun.elapsed().as_secs());
        match measure(arguments.rounds) {
            Ok(found) => {
                all.claims.extend(found.claims);
                all.tables.extend(found.tables);
            }
            Err(why) => missed.push(format!("{number} {name}: {why}")),
        }
    }
    let settings = serde_json::json!({
        "only": arguments.only, "rounds": arguments.rounds, "seconds": begun.elapsed().as_secs(),
    });
    // The report says how many there are.
    let _ = sched_setaffinity(None, &allowed);
    let report = Report::new("esp", packets::versions(), settings, all.claims, all.tables);
    report.finish(arguments.json.as_deref())?;
    println!("{} s in all", begun.elapsed().as_secs());
    if missed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", missed.join("; "))) }
}
