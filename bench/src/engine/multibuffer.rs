//! Claim 3: AES-128-CBC with HMAC-SHA1, encrypt-then-MAC, several requests at a time.
//!
//! The drivers `multibuffer` and `software` through the same kind of queue, and DPDK with Intel's
//! multi-buffer library, which gains as much from a batch and loses much without one.

use super::{Arguments, Findings, best, dpdk, openssl, time};
use crate::gauge::Gauge;
use crate::report::{Claim, Table, median};
use indicatif::ProgressBar;
use keyway_engine::{
    Algorithm, Demand, Direction, Engine, Error, Iv, Key, Operation, Parameters, Part, Queue,
    Session, Step, Task,
};

const SIZES: [usize; 5] = [64, 256, 1024, 2048, 8192];
/// Requests that wait at a time, and DPDK's bursts.
const DEPTHS: [usize; 5] = [1, 4, 8, 16, 32];
/// OpenSSL takes a second for each.
const OPENSSL_SIZES: [usize; 3] = [64, 1024, 8192];
const TAG_BYTES: usize = 20;
const RUNS: usize = 12;
/// Bytes worked on in a run.
const RUN_BYTES: usize = 100_000;
const DPDK_RUNS: usize = 2;
const DPDK_OPERATIONS: usize = 3_200;

/// At 32 waiting and 1 KiB.
const GAIN: f64 = 5.0;

pub fn measure(arguments: &Arguments, progress: &ProgressBar) -> Result<Findings, String> {
    let Some(driver) = keyway_drivers::multibuffer() else {
        eprintln!("claim 3 needs a processor with AVX-512 and VAES, and is left out");
        return Ok(Findings::default());
    };
    let text = |error: Error| error.to_string();
    let engine = Engine::builder().driver(driver).driver(keyway_drivers::software()).build();
    let steps = [
        Step { algorithm: Algorithm::Aes128Cbc, key: Key::Secret(&[7; 16]) },
        Step { algorithm: Algorithm::HmacSha1, key: Key::Secret(&[9; 20]) },
    ];
    let open = |name| engine.session(Parameters::chain(&steps).on(Demand::Named(name)));
    let multibuffer = open("multibuffer").map_err(text)?;
    let software = open("software").map_err(text)?;
    agree(&engine, &multibuffer, &software)?;

    // Of each size and depth, of each round: multibuffer, software.
    let mut ours = vec![Vec::new(); SIZES.len() * DEPTHS.len()];
    let mut theirs = Vec::new();
    progress.inc_length(arguments.rounds as u64);
    let mut gauge = Gauge::new();
    for _ in 0..arguments.rounds {
        for (cell, figures) in ours.iter_mut().enumerate() {
            let (bytes, depth) = (SIZES[cell / DEPTHS.len()], DEPTHS[cell % DEPTHS.len()]);
            let mut multibuffer = Round::new(&engine, &multibuffer, bytes, depth);
            let mut software = Round::new(&engine, &software, bytes, depth);
            figures.push(gauge.undisturbed(|| {
                best(RUNS, &mut [&mut || multibuffer.turn(), &mut || software.turn()])
            }));
        }
        gauge.wait();
        theirs.push(dpdk::MULTIBUFFER.measure(&SIZES, &DEPTHS, DPDK_OPERATIONS, DPDK_RUNS));
        progress.inc(1);
    }
    let of = |bytes: usize, depth: usize, side: usize| -> Vec<f64> {
        let find = |list: &[usize], value| list.iter().position(|one| *one == value).unwrap_or(0);
        let cell = find(&SIZES, bytes) * DEPTHS.len() + find(&DEPTHS, depth);
        super::column(&ours[cell], side)
    };
    let dpdk = |bytes: usize, depth: usize| -> Vec<f64> {
        theirs.iter().filter_map(|round| round.get(&(bytes, depth)).copied()).collect()
    };

    let mut found = Findings::default();
    let mut compare = |bytes, depth, peer: &str, theirs: Vec<f64>, bar| {
        let ours = of(bytes, depth, 0);
        if theirs.len() == ours.len() {
            let name = format!("3 AES-128-CBC + HMAC-SHA1, {bytes} B, {depth} waiting");
            found.claims.push(Claim::cost(&name, "ns", &ours, peer, &theirs).demand(bar));
        }
    };
    for bytes in SIZES {
        let bar = if bytes == 1024 { GAIN } else { 1.0 };
        compare(bytes, 32, "driver software", of(bytes, 32, 1), bar);
        compare(bytes, 1, "driver software", of(bytes, 1, 1), NOT_SLOWER);
        compare(bytes, 32, "DPDK aesni_mb, burst 32", dpdk(bytes, 32), 1.0);
        compare(bytes, 1, "DPDK aesni_mb, burst 1", dpdk(bytes, 1), 1.0);
    }
    let mut table = Table::new(
        "3 AES-128-CBC + HMAC-SHA1, ns a request: medians of the rounds' bests \
         (OpenSSL: its stitched MAC-then-encrypt, processor time)",
        &["bytes", "waiting", "multibuffer", "software", "times", "DPDK aesni_mb", "OpenSSL"],
    );
    for bytes in SIZES {
        for depth in DEPTHS {
            let show = |figure: f64| format!("{figure:.0}");
            let (ours, software) = (median(&of(bytes, depth, 0)), median(&of(bytes, depth, 1)));
            let dpdk = Some(dpdk(bytes, depth)).filter(|all| !all.is_empty());
            let openssl = (depth == 1 && OPENSSL_SIZES.contains(&bytes))
                .then(|| openssl::speed("aes-128-cbc-hmac-sha1", bytes));
            table.rows.push(vec![
                bytes.to_string(),
                depth.to_string(),
                show(ours),
                show(software),
                format!("{:.2}", software / ours),
                dpdk.map_or("not installed".into(), |all| show(median(&all))),
                openssl.flatten().map(show).unwrap_or_default(),
            ]);
        }
    }
    found.tables.push(table);
    Ok(found)
}

/// Alone both drivers do the same, so that only chance is between them.
const NOT_SLOWER: f64 = 0.97;

fn operation(bytes: usize) -> Operation {
    let length = bytes + TAG_BYTES;
    Operation::Chain {
        direction: Direction::Protect,
        data: (0..length).map(|at| at as u8).collect(),
        length,
        parts: vec![
            Part::Cipher { iv: Iv::Given([3; 16]), text: 0..bytes },
            Part::Mac { over: 0..bytes, tag: bytes..length },
        ],
    }
}

/// Both drivers must put out the same before either is measured.
fn agree(engine: &Engine, one: &Session, other: &Session) -> Result<(), String> {
    let mut outputs = Vec::new();
    for session in [one, other] {
        let mut tasks: Vec<_> =
            SIZES.into_iter().cycle().take(32).map(|b| Task::new(session, operation(b))).collect();
        let (mut queue, mut done) = (engine.queue(32), Vec::new());
        queue.submit(&mut tasks, false);
        while queue.in_flight() > 0 {
            queue.poll(&mut done);
        }
        let mut data = Vec::new();
        for task in done {
            task.result().map_err(|error| error.to_string())?;
            if let Operation::Chain { data: sealed, .. } = task.operation {
                data.push(sealed);
            }
        }
        data.sort();
        outputs.push(data);
    }
    if outputs[0] == outputs[1] { Ok(()) } else { Err("the drivers disagree".into()) }
}

/// A queue whose tasks go round.
struct Round {
    queue: Queue,
    tasks: Vec<Box<Task>>,
    done: Vec<Box<Task>>,
    turns: usize,
}

impl Round {
    fn new(engine: &Engine, session: &Session, bytes: usize, depth: usize) -> Self {
        let tasks = (0..depth).map(|_| Task::new(session, operation(bytes))).collect();
        let turns = (RUN_BYTES / bytes / depth).max(1);
        Round { queue: engine.queue(depth), tasks, done: Vec::with_capacity(depth), turns }
    }

    /// Nanoseconds a request.
    fn turn(&mut self) -> f64 {
        let depth = self.queue.room();
        let each = time(self.turns, || {
            self.queue.submit(&mut self.tasks, false);
            while self.queue.in_flight() > 0 {
                self.queue.poll(&mut self.done);
            }
            std::mem::swap(&mut self.tasks, &mut self.done);
        });
        each / depth as f64
    }
}
