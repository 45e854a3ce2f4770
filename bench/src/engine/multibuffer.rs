//! Claim 3: AES-128-CBC with HMAC-SHA1, encrypt-then-MAC, several requests at a time.
//!
//! The drivers `multibuffer` and `software` through the same kind of queue, and DPDK with Intel's
//! multi-buffer library, which gains as much from a batch and loses much without one.

use super::{Arguments, Findings, dpdk, middle, openssl, time};
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
/// Runs of every side in a round, and operations of a run.
const RUNS: usize = 3;
const OPERATIONS: usize = 3_200;

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

    // The times of each size and depth, of each round: multibuffer and software with tasks that go
    // round, multibuffer with new ones.
    let mut ours = vec![Vec::new(); SIZES.len() * DEPTHS.len()];
    let mut theirs = Vec::new();
    progress.inc_length(arguments.rounds as u64);
    let mut gauge = Gauge::new();
    for _ in 0..arguments.rounds {
        for (cell, figures) in ours.iter_mut().enumerate() {
            let (bytes, depth) = (SIZES[cell / DEPTHS.len()], DEPTHS[cell % DEPTHS.len()]);
            let round = |session| Round::new(&engine, session, bytes, depth);
            let [mut ours, mut theirs] = [round(&multibuffer), round(&software)];
            let mut anew = round(&multibuffer);
            let mut sides: [&mut dyn FnMut() -> f64; 3] =
                [&mut || ours.turn(), &mut || theirs.turn(), &mut || anew.turn_anew(&multibuffer)];
            figures.push(middle(&mut gauge, RUNS, &mut sides));
        }
        theirs.push(dpdk::MULTIBUFFER.measure(&mut gauge, &SIZES, &DEPTHS, OPERATIONS, RUNS));
        progress.inc(1);
    }
    let of = |bytes: usize, depth: usize, side: usize| -> Vec<f64> {
        let find = |list: &[usize], value| list.iter().position(|one| *one == value).unwrap_or(0);
        let cell = find(&SIZES, bytes) * DEPTHS.len() + find(&DEPTHS, depth);
        super::column(&ours[cell], side)
    };
    let dpdk = |bytes: usize, depth: usize, anew: bool| -> Vec<f64> {
        let cells = theirs.iter().map(|round| if anew { &round.anew } else { &round.round });
        cells.filter_map(|cells| cells.get(&(bytes, depth)).copied()).collect()
    };

    let mut found = Findings::default();
    let mut compare = |bytes, depth, form: usize, peer: &str, theirs: Vec<f64>, bar| {
        let ours = of(bytes, depth, form);
        if theirs.len() == ours.len() {
            let made = if form == ANEW { ", made anew" } else { "" };
            let name = format!("3 AES-128-CBC + HMAC-SHA1, {bytes} B, {depth} waiting{made}");
            found.claims.push(Claim::cost(&name, "ns", &ours, peer, &theirs).demand(bar));
        }
    };
    for bytes in SIZES {
        let bar = if bytes == 1024 { GAIN } else { 1.0 };
        compare(bytes, 32, ROUND, "driver software", of(bytes, 32, SOFTWARE), bar);
        compare(bytes, 1, ROUND, "driver software", of(bytes, 1, SOFTWARE), NOT_SLOWER);
        for (depth, peer) in [(32, "DPDK aesni_mb, burst 32"), (1, "DPDK aesni_mb, burst 1")] {
            compare(bytes, depth, ANEW, peer, dpdk(bytes, depth, true), 1.0);
        }
        // Going round it fills a ring of 2,048 before it takes anything out, whatever the burst.
        compare(bytes, 32, ROUND, "DPDK aesni_mb, ring full", dpdk(bytes, 32, false), 1.0);
    }
    let mut table = Table::new(
        "3 AES-128-CBC + HMAC-SHA1, ns a request: medians \
         (OpenSSL: its stitched MAC-then-encrypt, processor time)",
        &[
            "bytes",
            "waiting",
            "multibuffer",
            "software",
            "times",
            "DPDK aesni_mb, ring full",
            "multibuffer, made anew",
            "DPDK",
            "OpenSSL",
        ],
    );
    for bytes in SIZES {
        for depth in DEPTHS {
            let show = |figure: f64| format!("{figure:.0}");
            let [ours, software, anew] =
                [ROUND, SOFTWARE, ANEW].map(|side| median(&of(bytes, depth, side)));
            let dpdk = |anew| match dpdk(bytes, depth, anew)[..] {
                [] => "not installed".to_owned(),
                ref all => show(median(all)),
            };
            let openssl = (depth == 1 && OPENSSL_SIZES.contains(&bytes))
                .then(|| openssl::speed("aes-128-cbc-hmac-sha1", bytes));
            table.rows.push(vec![
                bytes.to_string(),
                depth.to_string(),
                show(ours),
                show(software),
                format!("{:.2}", software / ours),
                dpdk(false),
                show(anew),
                dpdk(true),
                openssl.flatten().map(show).unwrap_or_default(),
            ]);
        }
    }
    found.tables.push(table);
    Ok(found)
}

/// The measurements of a size and depth, as columns.
const ROUND: usize = 0;
const SOFTWARE: usize = 1;
const ANEW: usize = 2;

/// Alone both drivers do the same, so that only chance is between them.
const NOT_SLOWER: f64 = 0.97;

fn operation(bytes: usize) -> Operation {
    let length = bytes + TAG_BYTES;
    let data: Vec<_> = (0..length).map(|at| at as u8).collect();
    let parts = [
        Part::Cipher { iv: Iv::Given([3; 16]), text: 0..bytes },
        Part::Mac { over: 0..bytes, tag: bytes..length },
    ];
    Operation::chain(Direction::Protect, data, 0, parts)
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
                data.push(sealed.into_vec());
            }
        }
        data.sort();
        outputs.push(data);
    }
    if outputs[0] == outputs[1] { Ok(()) } else { Err("the drivers disagree".into()) }
}

/// A queue whose tasks go round, or are made for each turn.
struct Round {
    queue: Queue,
    bytes: usize,
    depth: usize,
    tasks: Vec<Box<Task>>,
    done: Vec<Box<Task>>,
}

impl Round {
    fn new(engine: &Engine, session: &Session, bytes: usize, depth: usize) -> Self {
        let tasks = (0..depth).map(|_| Task::new(session, operation(bytes))).collect();
        Round { queue: engine.queue(depth), bytes, depth, tasks, done: Vec::with_capacity(depth) }
    }

    /// Nanoseconds a request.
    fn turn(&mut self) -> f64 {
        let each = time(OPERATIONS / self.depth, || {
            self.run();
            std::mem::swap(&mut self.tasks, &mut self.done);
        });
        each / self.depth as f64
    }

    fn turn_anew(&mut self, session: &Session) -> f64 {
        self.tasks.clear();
        let each = time(OPERATIONS / self.depth, || {
            let task = || Task::new(session, operation(self.bytes));
            self.tasks.extend((0..self.depth).map(|_| task()));
            self.run();
            self.done.clear();
        });
        each / self.depth as f64
    }

    fn run(&mut self) {
        self.queue.submit(&mut self.tasks, false);
        while self.queue.in_flight() > 0 {
            self.queue.poll(&mut self.done);
        }
    }
}
