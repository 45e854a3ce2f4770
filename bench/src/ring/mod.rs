//! Rings and cryptod: what a request costs that is done in another process, beside the same work in
//! this one, the processors' own way from one to the other, and p11-kit.
//!
//! Eight claims, one file each, and what registration takes; the ninth is `keyway-bench binds`, the
//! tenth `keyway-bench skeleton`. This thread has the first processor and the daemon the second. The
//! sides of a comparison run by turns; a round's figure is the best of many short runs, since two
//! threads that wait for each other are both disturbed by a neighbour of one, and the median of the
//! rounds is reported. The daemon's cost is its processor time.

pub(crate) mod client;
pub(crate) mod common;
pub(crate) mod daemon;
mod hostile;
pub(crate) mod null_operation;
mod packets;
pub(crate) mod pkcs11;
mod records;
mod registration;
mod restarts;
mod signatures;
mod sleepers;

use crate::report::{Findings, Report};
pub use common::Arguments;
use common::{CLIENT, DAEMON, best, column, run_on, text};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::time::Instant;

type Measure = fn(&Arguments) -> Result<Findings, String>;

const CLAIMS: [(&str, Measure); 9] = [
    ("1 null operation", null_operation::measure),
    ("1 registration of memory", registration::measure),
    ("2 AES-128-GCM", records::measure),
    ("3 packets of sixteen clients", packets::measure),
    ("4 signatures", signatures::measure),
    ("5 p11-kit", pkcs11::measure),
    ("6 sleeping", sleepers::measure),
    ("7 a hostile client", hostile::measure),
    ("8 restarts", restarts::measure),
];

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let begun = Instant::now();
    let allowed = sched_getaffinity(None).map_err(text)?;
    run_on(CLIENT)?;
    let (mut all, mut missed) = (Findings::default(), Vec::new());
    // Whatever has to be built first.
    keyway_tests::keyway();
    for (name, measure) in CLAIMS {
        let number = name.as_bytes()[0] - b'0';
        if !arguments.only.is_empty() && !arguments.only.contains(&number) {
            continue;
        }
        eprintln!("{:>4} s  {name}", begun.elapsed().as_secs());
        match measure(arguments) {
            Ok(found) => {
                all.claims.extend(found.claims);
                all.tables.extend(found.tables);
            }
            Err(why) => missed.push(format!("{name}: {why}")),
        }
    }
    let mut peers = vec!["the same engine in this process".to_owned()];
    peers.push(pkcs11::version().unwrap_or_else(|| "p11-kit and SoftHSM are not installed".into()));
    let settings = serde_json::json!({
        "only": arguments.only, "rounds": arguments.rounds, "seconds": begun.elapsed().as_secs(),
    });
    // The report says how many there are.
    let _ = sched_setaffinity(None, &allowed);
    let report = Report::new("ring", peers, settings, all.claims, all.tables);
    report.finish(arguments.json.as_deref())?;
    println!("{} s in all; 9 is `keyway-bench binds`", begun.elapsed().as_secs());
    if missed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", missed.join("; "))) }
}
