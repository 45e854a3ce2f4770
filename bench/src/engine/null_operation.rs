//! Claim 1: what everything around the cryptography costs, beside DPDK's null device.
//!
//! The same encryption of nothing by direct call and through a queue; the boxes of tasks go round
//! and round, so that nothing is allocated.

use super::{Arguments, Findings, best, column, dpdk, time};
use crate::gauge::Gauge;
use crate::report::{Claim, Table, median};
use indicatif::ProgressBar;
use keyway_engine::{Algorithm, Demand, Engine, IV_BYTES_MAX, Key, Operation, Parameters, Queue};
use keyway_engine::{Request, Session, Task};
use std::hint::black_box;

const BYTES: usize = 64;
/// Requests in flight at a time, and DPDK's bursts.
const DEPTHS: [usize; 5] = [1, 4, 8, 16, 32];
const CALLS: usize = 4_096;
const RUNS: usize = 60;
/// DPDK starts anew for each run, a fifth of a second.
const DPDK_RUNS: usize = 4;
const DPDK_OPERATIONS: usize = 200_000;

const DIRECT_NS_MAX: f64 = 15.0;
const QUEUED_NS_MAX: f64 = 4.0;
const DIRECT_GAIN: f64 = 1.7;

pub fn measure(arguments: &Arguments, progress: &ProgressBar) -> Result<Findings, String> {
    let engine = Engine::builder().driver(keyway_test_drivers::null()).build();
    let parameters = Parameters::new(Algorithm::Aes128Ctr, Key::Secret(&[7; 16]));
    let session = engine.session(parameters.on(Demand::Named("null"))).map_err(text)?;
    let mut queues: Vec<_> =
        DEPTHS.iter().map(|depth| Round::new(&engine, &session, *depth)).collect();
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    progress.inc_length(arguments.rounds as u64);
    let mut gauge = Gauge::new();
    for _ in 0..arguments.rounds {
        ours.push(gauge.undisturbed(|| {
            let mut call = || direct(&session);
            let mut round = best(RUNS, &mut [&mut call]);
            for queue in &mut queues {
                round.extend(best(RUNS, &mut [&mut || queue.turn()]));
            }
            round
        }));
        gauge.wait();
        theirs.push(dpdk::NULL.measure(&[BYTES], &DEPTHS, DPDK_OPERATIONS, DPDK_RUNS));
        progress.inc(1);
    }
    let dpdk = |burst: usize| -> Vec<f64> {
        theirs.iter().filter_map(|round| round.get(&(BYTES, burst)).copied()).collect()
    };
    let last = column(&ours, DEPTHS.len());
    let mut claims = vec![
        Claim::at_most("1 null operation, direct call", "ns", &column(&ours, 0), DIRECT_NS_MAX),
        Claim::at_most("1 null operation, queue, 32 in flight", "ns", &last, QUEUED_NS_MAX),
    ];
    if dpdk(1).len() == ours.len() {
        let claim = Claim::cost(
            "1 null operation, direct call",
            "ns",
            &column(&ours, 0),
            "DPDK crypto_null, burst 1",
            &dpdk(1),
        );
        claims.push(claim.demand(DIRECT_GAIN));
        let claim = Claim::cost(
            "1 null operation, queue, 32 in flight",
            "ns",
            &last,
            "DPDK crypto_null, burst 32",
            &dpdk(32),
        );
        claims.push(claim.demand(1.0));
    }
    let mut table = Table::new(
        "1 null operation, 64 B, ns an operation: medians of the rounds' bests",
        &["in flight", "Keyway, direct", "Keyway, queue", "DPDK crypto_null"],
    );
    for (index, depth) in DEPTHS.into_iter().enumerate() {
        let show = |figures: Vec<f64>| match figures[..] {
            [] => "not installed".to_owned(),
            _ => format!("{:.1}", median(&figures)),
        };
        let direct = if depth == 1 { show(column(&ours, 0)) } else { String::new() };
        let queued = show(column(&ours, index + 1));
        table.rows.push(vec![depth.to_string(), direct, queued, show(dpdk(depth))]);
    }
    Ok(Findings { claims, tables: vec![table] })
}

fn direct(session: &Session) -> f64 {
    let (iv, mut data) = ([0; IV_BYTES_MAX], [0; BYTES]);
    time(CALLS, || {
        let mut request = Request::Encrypt { iv: &iv, data: black_box(&mut data) };
        black_box(session.run(&mut request).is_ok());
    })
}

/// A queue whose tasks go round.
struct Round {
    queue: Queue,
    tasks: Vec<Box<Task>>,
    done: Vec<Box<Task>>,
}

impl Round {
    fn new(engine: &keyway_engine::Engine, session: &Session, depth: usize) -> Self {
        let task = || {
            let operation = Operation::Encrypt { iv: [0; IV_BYTES_MAX], data: vec![0; BYTES] };
            Task::new(session, operation)
        };
        let tasks = (0..depth).map(|_| task()).collect();
        Round { queue: engine.queue(depth), tasks, done: Vec::with_capacity(depth) }
    }

    fn turn(&mut self) -> f64 {
        let depth = self.queue.room();
        let turns = CALLS / depth;
        let each = time(turns, || {
            self.queue.submit(&mut self.tasks, false);
            self.queue.poll(&mut self.done);
            std::mem::swap(&mut self.tasks, &mut self.done);
        });
        each / depth as f64
    }
}

fn text(error: keyway_engine::Error) -> String {
    error.to_string()
}
