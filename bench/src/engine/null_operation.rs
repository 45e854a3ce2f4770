//! Claim 1: what everything around the cryptography costs, beside DPDK's null device.
//!
//! An empty encryption by direct call and through a queue, in both of DPDK's forms: tasks that go round
//! and round, so that nothing is allocated, and tasks that are made anew and dropped each time.

use super::{Arguments, Findings, column, dpdk, middle, time};
use crate::gauge::Gauge;
use crate::report::{Claim, Table, median};
use indicatif::ProgressBar;
use keyway_engine::{Algorithm, Demand, Engine, IV_BYTES_MAX, Key, Operation, Parameters, Queue};
use keyway_engine::{Request, Session, Task};
use std::hint::black_box;

const BYTES: usize = 64;
/// Requests in flight at a time, and DPDK's bursts.
const DEPTHS: [usize; 5] = [1, 4, 8, 16, 32];
/// Runs of every side in a round, and operations of a run.
const RUNS: usize = 5;
const OPERATIONS: usize = 200_000;

const DIRECT_NS_MAX: f64 = 15.0;
const QUEUED_NS_MAX: f64 = 4.0;
const DIRECT_GAIN: f64 = 1.7;

pub fn measure(arguments: &Arguments, progress: &ProgressBar) -> Result<Findings, String> {
    let engine = Engine::builder().driver(keyway_test_drivers::null()).build();
    let parameters = Parameters::new(Algorithm::Aes128Ctr, Key::Secret(&[7; 16]));
    let session = engine.session(parameters.on(Demand::Named("null"))).map_err(text)?;
    // The times of each round: the direct call, then each depth with tasks that go round, then with new
    // ones.
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    progress.inc_length(arguments.rounds as u64);
    let mut gauge = Gauge::new();
    for _ in 0..arguments.rounds {
        let mut round = middle(&mut gauge, RUNS, &mut [&mut || direct(&session)]);
        for anew in [false, true] {
            for depth in DEPTHS {
                let mut queue = Round::new(&engine, &session, depth);
                let mut turn = || if anew { queue.turn_anew(&session) } else { queue.turn() };
                round.extend(middle(&mut gauge, RUNS, &mut [&mut turn]));
            }
        }
        ours.push(round);
        theirs.push(dpdk::NULL.measure(&mut gauge, &[BYTES], &DEPTHS, OPERATIONS, RUNS));
        progress.inc(1);
    }
    let direct = column(&ours, 0);
    let queued =
        |index: usize, anew: bool| column(&ours, 1 + index + if anew { DEPTHS.len() } else { 0 });
    let dpdk = |burst: usize, anew: bool| -> Vec<f64> {
        let cells = theirs.iter().map(|round| if anew { &round.anew } else { &round.round });
        cells.filter_map(|cells| cells.get(&(BYTES, burst)).copied()).collect()
    };
    let last = DEPTHS.len() - 1;
    let mut claims = vec![
        Claim::at_most("1 null operation, direct call", "ns", &direct, DIRECT_NS_MAX),
        Claim::at_most(
            "1 null operation, queue, 32 in flight",
            "ns",
            &queued(last, false),
            QUEUED_NS_MAX,
        ),
    ];
    // A direct call's request is made on the stack, which is both forms.
    for (ours, burst, anew, bar) in [
        (direct.clone(), 1, true, DIRECT_GAIN),
        (direct.clone(), 1, false, 1.0),
        (queued(last, true), 32, true, 1.0),
        (queued(last, false), 32, false, 1.0),
    ] {
        let theirs = dpdk(burst, anew);
        if theirs.len() == ours.len() {
            let (way, form) = (
                if burst == 1 { "direct call" } else { "queue, 32 in flight" },
                if anew { "made anew" } else { "going round" },
            );
            let name = format!("1 null operation, {way}, {form}");
            let peer = format!("DPDK crypto_null, burst {burst}");
            claims.push(Claim::cost(&name, "ns", &ours, &peer, &theirs).demand(bar));
        }
    }
    let mut table = Table::new(
        "1 null operation, 64 B, ns an operation: medians",
        &["in flight", "direct", "queue, going round", "DPDK", "queue, made anew", "DPDK"],
    );
    for (index, depth) in DEPTHS.into_iter().enumerate() {
        let show = |figures: Vec<f64>| match figures[..] {
            [] => "not installed".to_owned(),
            _ => format!("{:.1}", median(&figures)),
        };
        let mut row = vec![depth.to_string()];
        row.push(if depth == 1 { show(direct.clone()) } else { String::new() });
        for anew in [false, true] {
            row.extend([show(queued(index, anew)), show(dpdk(depth, anew))]);
        }
        table.rows.push(row);
    }
    Ok(Findings { claims, tables: vec![table] })
}

fn direct(session: &Session) -> f64 {
    let (iv, mut data) = ([0; IV_BYTES_MAX], [0; BYTES]);
    time(OPERATIONS, || {
        let mut request = Request::Encrypt { iv: &iv, data: black_box(&mut data) };
        black_box(session.run(&mut request).is_ok());
    })
}

/// A queue whose tasks go round, or are made for each turn.
struct Round {
    queue: Queue,
    depth: usize,
    tasks: Vec<Box<Task>>,
    done: Vec<Box<Task>>,
}

impl Round {
    fn new(engine: &Engine, session: &Session, depth: usize) -> Self {
        let tasks = (0..depth).map(|_| task(session)).collect();
        Round { queue: engine.queue(depth), depth, tasks, done: Vec::with_capacity(depth) }
    }

    fn turn(&mut self) -> f64 {
        self.turns(|queue, tasks, done| {
            queue.submit(tasks, false);
            queue.poll(done);
            std::mem::swap(tasks, done);
        })
    }

    fn turn_anew(&mut self, session: &Session) -> f64 {
        self.tasks.clear();
        let depth = self.depth;
        self.turns(|queue, tasks, done| {
            tasks.extend((0..depth).map(|_| task(session)));
            queue.submit(tasks, false);
            queue.poll(done);
            done.clear();
        })
    }

    /// Nanoseconds an operation.
    fn turns(
        &mut self,
        mut turn: impl FnMut(&mut Queue, &mut Vec<Box<Task>>, &mut Vec<Box<Task>>),
    ) -> f64 {
        let depth = self.depth;
        let each =
            time(OPERATIONS / depth, || turn(&mut self.queue, &mut self.tasks, &mut self.done));
        each / depth as f64
    }
}

fn task(session: &Session) -> Box<Task> {
    Task::new(session, Operation::encrypt([0; IV_BYTES_MAX], [0; BYTES]))
}

fn text(error: keyway_engine::Error) -> String {
    error.to_string()
}
