//! The engine: what its calls and queues cost beside the libraries and DPDK, and what batches,
//! balancing, overload, two classes and cards gain.
//!
//! Eight claims, one file each. The sides of a comparison run by turns, as often and for as many
//! operations one as the other. In claims 1 and 3 a round's figure is the median of such runs, and a run
//! that a neighbour on the same core disturbed is repeated, whichever side ran; in claims 2 and 4 it is
//! the best of short runs. The report is the median of the rounds.

mod balancing;
mod classes;
mod common;
mod contention;
mod dispatch;
mod dpdk;
mod multibuffer;
mod null_operation;
mod openssl;
mod overload;
mod records;
mod trial;

use crate::report::{Findings, Report};
pub use common::Arguments;
use common::{best, column, middle, time};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

type Measure = fn(&Arguments, &ProgressBar) -> Result<Findings, String>;

const CLAIMS: [(&str, Measure); 9] = [
    ("1 null operation", null_operation::measure),
    ("2 AES-128-GCM by direct call", records::measure),
    ("3 several requests at a time", multibuffer::measure),
    ("4 direct dispatch", dispatch::measure),
    ("5 balancing", balancing::measure),
    ("6 overload", overload::measure),
    ("6 drivers coming and going", trial::measure),
    ("7 fast beside slow", classes::measure),
    ("8 a program that computes", contention::measure),
];

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let begun = Instant::now();
    // A simulated card's interrupt comes when it is due: the system may not put timers together.
    // Where it does not listen, cards look slower.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let progress = ProgressBar::new(0);
    let style = "{elapsed:>4} {bar:24} {pos}/{len} {msg}";
    progress.set_style(ProgressStyle::with_template(style).map_err(|why| why.to_string())?);
    progress.enable_steady_tick(Duration::from_millis(200));
    let (mut all, mut missed) = (Findings::default(), Vec::new());
    for (name, measure) in CLAIMS {
        let number = name.as_bytes()[0] - b'0';
        if !arguments.only.is_empty() && !arguments.only.contains(&number) {
            continue;
        }
        progress.set_message(name);
        match measure(arguments, &progress) {
            Ok(found) => {
                all.claims.extend(found.claims);
                all.tables.extend(found.tables);
            }
            Err(why) => missed.push(format!("{name}: {why}")),
        }
    }
    progress.finish_and_clear();
    let peers = vec![
        "aws-lc-rs".to_owned(),
        dpdk::version().unwrap_or_else(|| "DPDK is not installed (Debian: dpdk-dev)".into()),
        openssl::version().unwrap_or_else(|| "OpenSSL is not installed".into()),
    ];
    let settings = serde_json::json!({
        "only": arguments.only, "rounds": arguments.rounds, "requests": arguments.requests,
        "seed": arguments.seed, "seconds": begun.elapsed().as_secs(),
    });
    let report = Report::new("engine", peers, settings, all.claims, all.tables);
    report.finish(arguments.json.as_deref())?;
    println!("{} s in all", begun.elapsed().as_secs());
    if missed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", missed.join("; "))) }
}
