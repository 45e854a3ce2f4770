//! Claim 6: what packet protection takes of a real QUIC, quinn, over loopback.
//!
//! `keyway quic perf` measures itself, both ends in one process, with the engine's cryptography and
//! with ring's, which is quinn's default; and with AWS-LC's for comparison. All take turns in every
//! round. Shares of processor time and throughput a processor second do not depend on who else uses
//! the machine, other than by its caches.

use crate::report::{Claim, Report, Table, median};
use indicatif::{ProgressBar, ProgressStyle};
use keyway_tests::keyway;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What can be asked of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// Rounds; in each every side has a turn with everything
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds a measurement
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The AEAD: aes-128-gcm, aes-256-gcm or chacha20-poly1305
    #[arg(long, default_value = "aes-128-gcm")]
    cipher: String,
    /// Write the claims to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Keyway, quinn's default, and the other library that rustls brings.
const SIDES: [&str; 3] = ["keyway", "ring", "aws-lc"];
const TESTS: [&str; 4] = ["upload", "download", "requests", "connections"];
const STAGES: [&str; 5] =
    ["udp_send", "udp_receive", "packet_protection", "header_protection", "other"];
const CALLS: [&str; 3] = ["seal", "open", "mask"];

/// quinn's default spends at least so many times the share of its processor time.
const SHARE_MIN: f64 = 3.0;
/// Throughput a processor second is higher.
const THROUGHPUT_MIN: f64 = 1.0;

/// Measures it all.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let program = keyway();
    let progress = ProgressBar::new((arguments.rounds * SIDES.len()) as u64);
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {pos} of {len}  {msg}") {
        progress.set_style(style.progress_chars("=> "));
    }
    progress.set_prefix("keyway quic perf");
    // By side, then by round: the tests' results.
    let mut results = SIDES.map(|_| Vec::new());
    for _ in 0..arguments.rounds {
        for (side, rounds) in SIDES.iter().zip(&mut results) {
            progress.set_message(*side);
            let mut command = Command::new(program);
            command.args(["quic", "perf", "--json", "--threads", "1", "--crypto", side]);
            command.args(["--cipher", &arguments.cipher]);
            command.args(["--seconds", &arguments.seconds.to_string()]);
            rounds.push(measure(&mut command)?);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let [ours, ring, _] = &results;
    let mut claims = Vec::new();
    for test in &TESTS[..2] {
        let column = |rounds: &[Value], of: &dyn Fn(&Value) -> f64| -> Vec<f64> {
            rounds.iter().map(|round| of(&round[*test])).collect()
        };
        let share: &dyn Fn(&Value) -> f64 = &|test| 100.0 * cryptography(test);
        let (us, them) = (column(ours, share), column(ring, share));
        let name = format!("6 {test}: cryptography's share of processor time");
        claims.push(Claim::cost(&name, "%", &us, "ring", &them).demand(SHARE_MIN));
        let rate: &dyn Fn(&Value) -> f64 = &|test| figure(&test["mbit_per_cpu_second"]);
        let (us, them) = (column(ours, rate), column(ring, rate));
        let name = format!("6 {test}: data a processor second");
        claims.push(Claim::rate(&name, "Mbit", &us, "ring", &them).demand(THROUGHPUT_MIN));
    }
    let settings = json!({
        "rounds": arguments.rounds, "seconds": arguments.seconds, "cipher": arguments.cipher,
        "threads": 1,
    });
    let peers = vec!["quinn 0.11 with ring 0.17".to_owned(), "with aws-lc-rs 1.19".to_owned()];
    Report::new("quic", peers, settings, claims, vec![shares(&results), packets(&results)])
        .finish(arguments.json.as_deref())
}

/// The tests' results by name.
fn measure(command: &mut Command) -> Result<Value, String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|why| format!("{command:?}: {why}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status));
    }
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|why| why.to_string())?;
    let tests = report["tests"].as_array().into_iter().flatten();
    let named = |test: &Value| Some((test["test"].as_str()?.to_owned(), test.clone()));
    Ok(tests.filter_map(named).collect())
}

fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// Packet and header protection's part of processor time.
fn cryptography(test: &Value) -> f64 {
    let share = &test["cpu_share"];
    figure(&share["packet_protection"]) + figure(&share["header_protection"])
}

fn median_of(rounds: &[Value], of: impl Fn(&Value) -> f64) -> f64 {
    median(&rounds.iter().map(of).collect::<Vec<_>>())
}

fn shares(results: &[Vec<Value>; SIDES.len()]) -> Table {
    let mut header = vec!["test", "cryptography", "Mbit or operations / CPU s"];
    header.extend(STAGES);
    let mut table = Table::new("Shares of processor time, %: medians of the rounds", &header);
    for (at, test) in TESTS.iter().enumerate() {
        let unit = if at < 2 { "mbit_per_cpu_second" } else { "operations_per_cpu_second" };
        for (side, rounds) in SIDES.iter().zip(results) {
            let rate = median_of(rounds, |round| figure(&round[*test][unit]));
            let mut row = vec![(*test).to_owned(), (*side).to_owned(), format!("{rate:.0}")];
            row.extend(STAGES.map(|stage| {
                let share = |round: &Value| figure(&round[*test]["cpu_share"][stage]);
                format!("{:.1}", 100.0 * median_of(rounds, share))
            }));
            table.rows.push(row);
        }
    }
    table
}

fn packets(results: &[Vec<Value>; SIDES.len()]) -> Table {
    let mut header = vec!["test", "cryptography"];
    header.extend(CALLS);
    let mut table = Table::new("One packet, ns: medians of the rounds' means", &header);
    for test in &TESTS[..2] {
        for (side, rounds) in SIDES.iter().zip(results) {
            let mut row = vec![(*test).to_owned(), (*side).to_owned()];
            row.extend(CALLS.map(|call| {
                let took = |round: &Value| figure(&round[*test]["nanoseconds"][call]);
                format!("{:.0}", median_of(rounds, took))
            }));
            table.rows.push(row);
        }
    }
    table
}
