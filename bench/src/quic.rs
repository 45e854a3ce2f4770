//! Claim 6: what packet protection takes of a real QUIC, quinn, over loopback.
//!
//! `keyway quic perf` measures itself, both ends in one process, with the engine's cryptography and
//! with ring's, which is quinn's default; and with AWS-LC's for comparison. They take turns of a
//! part of a second, in one order and then in the other, so that whatever else the machine does
//! falls on all of them. A turn before or after which a neighbour is on this core is taken again,
//! and of each side's turns the best quarter counts: a neighbour who comes and goes within a turn
//! only takes away. Connections are compared with one key exchange on all sides, X25519; the
//! engine's own choice is shown beside that.

use crate::gauge::Gauge;
use crate::packet::Bound;
use crate::report::{Claim, Report, Table, median};
use indicatif::{ProgressBar, ProgressStyle};
use keyway_tests::keyway;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// Rounds; in each every side has a turn with everything, and the best quarter counts
    #[arg(long, default_value_t = 16)]
    rounds: usize,
    /// Seconds a measurement: the shorter, the fewer are disturbed
    #[arg(long, default_value_t = 0.25)]
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
/// The measurements, by the name of the test and of the key exchange that is demanded.
const TESTS: [(&str, Option<&str>); 5] = [
    ("upload", None),
    ("download", None),
    ("requests", None),
    ("connections", Some("x25519")),
    ("connections", None),
];
/// Those that move data.
const MOVES: usize = 2;
/// The one whose connections are compared.
const CONNECTIONS: usize = 3;
const STAGES: [&str; 5] =
    ["udp_send", "udp_receive", "packet_protection", "header_protection", "other"];
const CALLS: [&str; 3] = ["seal", "open", "mask"];

/// Length of most packets' payload, in bytes: MTU discovery ends at datagrams of 1,452.
const PACKET_BYTES: usize = 1_425;

/// quinn's default spends at least so many times the share of its processor time.
const SHARE_MIN: f64 = 3.0;
/// Throughput a processor second is higher, and so are connections.
const RATE_MIN: f64 = 1.0;

/// The results of a side, by test, then by turn: the output of `keyway quic perf`.
type Results = [Vec<Value>; TESTS.len()];

/// Measures it all.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let program = keyway();
    let progress = ProgressBar::new((arguments.rounds * TESTS.len() * SIDES.len()) as u64);
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {pos} of {len}  {msg}") {
        progress.set_style(style.progress_chars("=> "));
    }
    progress.set_prefix("keyway quic perf");
    let mut gauge = Gauge::new();
    let mut results: [Results; SIDES.len()] = Default::default();
    for round in 0..arguments.rounds {
        for (at, (test, group)) in TESTS.iter().enumerate() {
            let mut turns: [usize; SIDES.len()] = std::array::from_fn(|side| side);
            if round % 2 == 1 {
                turns.reverse();
            }
            for side in turns {
                progress.set_message(SIDES[side]);
                let mut command = Command::new(program);
                command.args(["quic", "perf", "--json", "--threads", "1", "--test", test]);
                command.args(["--crypto", SIDES[side], "--cipher", &arguments.cipher]);
                command.args(["--seconds", &arguments.seconds.to_string()]);
                command.args(group.iter().flat_map(|group| ["--group", group]));
                results[side][at].push(gauge.undisturbed(|| measure(&mut command))?);
                progress.inc(1);
            }
        }
    }
    progress.finish_and_clear();
    for results in &mut results {
        for (at, turns) in results.iter_mut().enumerate() {
            turns.sort_by(|a, b| rate(b, at).total_cmp(&rate(a, at)));
            turns.truncate(arguments.rounds.div_ceil(4));
        }
    }
    let [ours, ring, _] = &results;
    let mut claims = Vec::new();
    let column = |side: &Results, at: usize, of: &dyn Fn(&Value) -> f64| -> Vec<f64> {
        side[at].iter().map(of).collect()
    };
    for (at, (test, _)) in TESTS.iter().enumerate().take(MOVES) {
        let share: &dyn Fn(&Value) -> f64 = &|test| 100.0 * cryptography(test);
        let (us, them) = (column(ours, at, share), column(ring, at, share));
        let name = format!("6 {test}: cryptography's share of processor time");
        claims.push(Claim::cost(&name, "%", &us, "ring", &them).demand(SHARE_MIN));
        let rate: &dyn Fn(&Value) -> f64 = &|test| rate(test, at);
        let (us, them) = (column(ours, at, rate), column(ring, at, rate));
        let name = format!("6 {test}: data a processor second");
        claims.push(Claim::rate(&name, "Mbit", &us, "ring", &them).demand(RATE_MIN));
    }
    let rate: &dyn Fn(&Value) -> f64 = &|test| rate(test, CONNECTIONS);
    let (us, them) = (column(ours, CONNECTIONS, rate), column(ring, CONNECTIONS, rate));
    let name = "6 connections: X25519, a processor second";
    claims.push(Claim::rate(name, "connections", &us, "ring", &them).demand(RATE_MIN));
    let settings = json!({
        "rounds": arguments.rounds, "seconds": arguments.seconds, "cipher": arguments.cipher,
        "threads": 1,
    });
    let peers = vec!["quinn 0.11 with ring 0.17".to_owned(), "with aws-lc-rs 1.19".to_owned()];
    let mut tables = vec![shares(&results), packets(&results)];
    // Without a C compiler there is no bound.
    if arguments.cipher == "aes-128-gcm"
        && let Ok(folder) = tempfile::tempdir()
        && let Ok(bound) = Bound::measure(folder.path())
    {
        tables.push(limit(&bound, ours, ring));
    }
    Report::new("quic", peers, settings, claims, tables).finish(arguments.json.as_deref())
}

/// The result of the one test.
fn measure(command: &mut Command) -> Result<Value, String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|why| format!("{command:?}: {why}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status));
    }
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|why| why.to_string())?;
    Ok(report["tests"][0].clone())
}

/// Megabits or operations a second of processor time.
fn rate(turn: &Value, test: usize) -> f64 {
    let moves = test < MOVES;
    figure(&turn[if moves { "mbit_per_cpu_second" } else { "operations_per_cpu_second" }])
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

fn shares(results: &[Results; SIDES.len()]) -> Table {
    let mut header = vec!["test", "cryptography", "Mbit or operations / CPU s"];
    header.extend(STAGES);
    let mut table = Table::new("Shares of processor time, %: medians of the best turns", &header);
    for (at, (test, group)) in TESTS.iter().enumerate() {
        let name = group.map_or((*test).to_owned(), |group| format!("{test}, {group}"));
        for (side, results) in SIDES.iter().zip(results) {
            let rate = median_of(&results[at], |turn| rate(turn, at));
            let mut row = vec![name.clone(), (*side).to_owned(), format!("{rate:.0}")];
            row.extend(STAGES.map(|stage| {
                let share = |test: &Value| figure(&test["cpu_share"][stage]);
                format!("{:.1}", 100.0 * median_of(&results[at], share))
            }));
            table.rows.push(row);
        }
    }
    table
}

fn packets(results: &[Results; SIDES.len()]) -> Table {
    let mut header = vec!["test", "cryptography"];
    header.extend(CALLS);
    let mut table = Table::new("One packet, ns: medians of the best turns' means", &header);
    for (at, (test, _)) in TESTS.iter().enumerate().take(MOVES) {
        for (side, results) in SIDES.iter().zip(results) {
            let mut row = vec![(*test).to_owned(), (*side).to_owned()];
            row.extend(CALLS.map(|call| {
                let took = |test: &Value| figure(&test["nanoseconds"][call]);
                format!("{:.0}", median_of(&results[at], took))
            }));
            table.rows.push(row);
        }
    }
    table
}

/// The need of a third of ring's share here: a packet there and back, header and payload, in a third of
/// ring's time, and a little less for the part of the whole that this takes off.
fn limit(bound: &Bound, ours: &Results, ring: &Results) -> Table {
    let header = ["test", "ring", "Keyway", "a third of ring's share", "the processor's bound"];
    let title = format!(
        "A packet of {PACKET_BYTES} B sealed and opened, its header masked and unmasked, ns (the \
         bound: {:.1} cycles each 64 B at {:.2} GHz)",
        bound.cycles_of_64_bytes(),
        bound.clock
    );
    let mut table = Table::new(&title, &header);
    for (at, (test, _)) in TESTS.iter().enumerate().take(MOVES) {
        let both = |test: &Value| {
            let of = |call: &str| figure(&test["nanoseconds"][call]);
            of("seal") + of("open") + 2.0 * of("mask")
        };
        let (us, them) = (median_of(&ours[at], both), median_of(&ring[at], both));
        // With all else as it is: t / (t + rest) = share / 3, where them / (them + rest) = share.
        let share = median_of(&ring[at], cryptography);
        let third = them / (SHARE_MIN + (SHARE_MIN - 1.0) * share / (1.0 - share));
        let figures = [them, us, third, 2.0 * bound.packet(PACKET_BYTES)];
        let mut row = vec![(*test).to_owned()];
        row.extend(figures.map(|nanoseconds| format!("{nanoseconds:.0}")));
        table.rows.push(row);
    }
    table
}
