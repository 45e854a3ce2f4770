//! Claim 5: requests spread over several cards, and small ones kept in software.
//!
//! The papers' tables 1 and 2 with simulated cards, which take as long as the real ones did: four
//! Hifn 7751, four Broadcom 5820, and all eight at once. The arithmetic is left out, since this
//! host does 3DES more slowly than four 5820 do.

use super::{Arguments, Findings, time};
use crate::plot;
use crate::report::{Claim, Table, median};
use indicatif::ProgressBar;
use keyway_engine::{
    Algorithm, Demand, Engine, IV_BYTES_MAX, Key, Operation, Parameters, Request, Session, Task,
};
use keyway_test_drivers::{Card, Simulated};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const SIZES: [usize; 6] = [16, 64, 256, 1024, 8192, 16_384];
/// Threads that each have one request done at a time, as the papers' had.
const THREADS: usize = 32;
/// Requests in flight of the one thread that has a queue.
const DEPTH: usize = 64;
const WARM_UP: Duration = Duration::from_millis(60);
const WINDOW: Duration = Duration::from_millis(240);
const ROUNDS: usize = 3;

const SHARE_MIN: f64 = 0.95;
/// Software and a 5820 differ by little a byte, so that a little of a wake-up moves the size at
/// which they meet far.
const CROSSOVER_MIN: f64 = 0.4;
/// Papers' table 1: four 7751, Mbit/s by 1 and by 32 threads; table 2: four 5820.
const PAPER_7751: [[f64; 6]; 2] =
    [[3.06, 11.45, 33.15, 59.49, 79.19, 80.75], [7.37, 27.51, 94.05, 249.17, 313.79, 320.19]];
const PAPER_5820: [[f64; 6]; 2] =
    [[5.42, 18.88, 61.94, 151.95, 300.88, 254.79], [9.91, 37.01, 120.71, 410.27, 758.85, 801.81]];

/// Who has the work done.
#[derive(Clone, Copy)]
enum Way {
    Threads(usize),
    Queue(usize),
}

const WAYS: [Way; 3] = [Way::Threads(1), Way::Threads(THREADS), Way::Queue(DEPTH)];

struct Cards {
    label: &'static str,
    engine: Engine,
    cards: Vec<Simulated>,
    /// Mbit/s of all of them.
    rated: f64,
    paper: Option<[[f64; 6]; 2]>,
}

fn key() -> [u8; 24] {
    std::array::from_fn(|at| at as u8 * 7)
}

fn session(engine: &Engine, demand: Demand<'_>) -> Result<Session, String> {
    let key = key();
    let parameters = Parameters::new(Algorithm::TripleDesCbc, Key::Secret(&key)).on(demand);
    engine.session(parameters).map_err(|error| error.to_string())
}

fn cards(label: &'static str, kinds: &[(&str, Card)], paper: Option<[[f64; 6]; 2]>) -> Cards {
    let mut cards = Vec::new();
    let mut builder = Engine::builder().legacy(true);
    for (name, card) in kinds {
        for number in 0..4 {
            let name = format!("{name}-{number}");
            let card =
                keyway_test_drivers::simulated(&name, card.clone(), keyway_test_drivers::null());
            builder = builder.driver(Arc::new(card.clone()));
            cards.push(card);
        }
    }
    let rated = kinds.iter().map(|(_, card)| 4.0 * card.cipher_mbit as f64).sum();
    Cards { label, engine: builder.build(), cards, rated, paper }
}

pub fn measure(arguments: &Arguments, progress: &ProgressBar) -> Result<Findings, String> {
    let hifn = ("hifn-7751", Card::hifn_7751());
    let broadcom = ("broadcom-5820", Card::broadcom_5820());
    let sets = [
        cards("four 7751", std::slice::from_ref(&hifn), Some(PAPER_7751)),
        cards("four 5820", std::slice::from_ref(&broadcom), Some(PAPER_5820)),
        cards("four of each", &[hifn, broadcom], None),
    ];
    let mut found = Findings::default();
    let mut table = Table::new(
        "5 3DES-CBC over several cards, Mbit/s (share of their rating)",
        &["", "bytes", "1 thread", "2003", "32 threads", "2003", "1 thread, queue of 64"],
    );
    let mut series = Vec::new();
    progress.inc_length((sets.len() * SIZES.len() * WAYS.len()) as u64);
    for (colour, set) in sets.iter().enumerate() {
        let session = session(&set.engine, Demand::Any)?;
        let mut lines = WAYS.map(|_| Vec::new());
        for (index, bytes) in SIZES.into_iter().enumerate() {
            let mut rates = Vec::new();
            for (way, line) in WAYS.into_iter().zip(&mut lines) {
                let rounds = rates_of(set, &session, way, bytes);
                line.push((bytes as f64, median(&rounds)));
                rates.push(rounds);
                progress.inc(1);
            }
            let show = |rate: f64| format!("{rate:.1} ({:.1} %)", 100.0 * rate / set.rated);
            let paper = |way: usize| set.paper.map_or(String::new(), |p| show(p[way][index]));
            let ours = |way: usize| show(median(&rates[way]));
            let row = [ours(0), paper(0), ours(1), paper(1), ours(2)];
            table.rows.push([vec![set.label.to_owned(), bytes.to_string()], row.to_vec()].concat());
            if bytes >= 8192 {
                for (way, label) in [(1, "32 threads"), (2, "a queue of 64")] {
                    let name = format!("5 {}, {bytes} B, {label}", set.label);
                    let rated = vec![set.rated; ROUNDS];
                    let claim = Claim::rate(&name, "Mbit/s", &rates[way], "their rating", &rated);
                    found.claims.push(claim.demand(SHARE_MIN));
                }
            }
        }
        for (way, points) in lines.into_iter().enumerate().skip(1) {
            let label = ["1 thread", "32 threads", "queue"][way];
            let name = format!("{}, {label}", set.label);
            series.push(plot::line(name, points, colour, way == 2));
        }
    }
    found.tables.push(table);
    if let Some(folder) = &arguments.svg {
        let labels = ("bytes a request", "Mbit/s");
        plot::draw(folder, "balancing.svg", "3DES-CBC over simulated cards", labels, series)?;
    }
    crossover(&mut found)?;
    Ok(found)
}

/// Mbit/s of all cards together, in each round.
fn rates_of(set: &Cards, session: &Session, way: Way, bytes: usize) -> Vec<f64> {
    let done = AtomicU64::new(0);
    under_load(&set.engine, session, way, bytes, &done, || {
        let look = || set.cards.iter().map(Simulated::counters).collect::<Vec<_>>();
        let before = look();
        thread::sleep(WINDOW / ROUNDS as u32);
        let passed = look().into_iter().zip(&before).map(|(after, before)| after.since(before));
        passed.map(|card| card.bytes as f64 * 8e-6 / card.elapsed.as_secs_f64()).sum()
    })
}

/// Keeps requests coming while `look` is called [`ROUNDS`] times, and counts those that are done.
fn under_load<T>(
    engine: &Engine,
    session: &Session,
    way: Way,
    bytes: usize,
    done: &AtomicU64,
    mut look: impl FnMut() -> T,
) -> Vec<T> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        match way {
            Way::Threads(threads) => {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let mut data = vec![0; bytes];
                        while !over.load(Ordering::Acquire) {
                            encrypt(session, &mut data);
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            }
            Way::Queue(depth) => {
                let over = &over;
                scope.spawn(move || {
                    let mut queue = engine.queue(depth);
                    let task = |_| {
                        Task::new(session, Operation::encrypt([0; IV_BYTES_MAX], vec![0; bytes]))
                    };
                    let mut tasks: Vec<_> = (0..depth).map(task).collect();
                    while !over.load(Ordering::Acquire) {
                        queue.submit(&mut tasks, false);
                        let found = queue.wait(&mut tasks, Duration::from_millis(100));
                        done.fetch_add(found as u64, Ordering::Relaxed);
                    }
                    while queue.in_flight() > 0 {
                        queue.wait(&mut tasks, Duration::from_millis(100));
                    }
                });
            }
        }
        thread::sleep(WARM_UP);
        let looks = (0..ROUNDS).map(|_| look()).collect();
        over.store(true, Ordering::Release);
        looks
    })
}

fn encrypt(session: &Session, data: &mut [u8]) {
    let iv = [0; IV_BYTES_MAX];
    black_box(session.run(&mut Request::Encrypt { iv: &iv, data: black_box(data) }).is_ok());
}

/// How many requests stay in software: one at a time beside one card, and many at a time beside all
/// eight.
fn crossover(found: &mut Findings) -> Result<(), String> {
    let (hifn, broadcom) = (Card::hifn_7751(), Card::broadcom_5820());
    let eight = cards("", &[("hifn-7751", hifn), ("broadcom-5820", broadcom)], None);
    eight.engine.register(keyway_drivers::software()).map_err(|error| error.to_string())?;
    let loaded = session(&eight.engine, Demand::Any)?;
    let mut lone = [
        Lone::new("one 5820", Card::broadcom_5820())?,
        Lone::new("one 5822", Card::broadcom_5822())?,
    ];
    let mut table = Table::new(
        "5 3DES-CBC requests that stay in software",
        &[
            "bytes",
            "one at a time, one 5820",
            "one at a time, one 5822",
            "64 in flight, four of each",
        ],
    );
    // Steps of the square root of two, in whole blocks.
    let sizes = (8..=28).map(|step| (f64::from(step) / 2.0).exp2() as usize / 8 * 8);
    let mut sizes: Vec<_> = sizes.collect();
    sizes.dedup();
    for bytes in sizes {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let mut row = vec![bytes.to_string()];
        row.extend(lone.iter_mut().map(|lone| percent(lone.stayed(bytes))));
        let among = bytes.is_power_of_two().then(|| percent(share_among(&eight, &loaded, bytes)));
        row.push(among.unwrap_or_default());
        table.rows.push(row);
    }
    found.tables.push(table);
    found.claims.extend(lone.iter().map(Lone::claim));
    Ok(())
}

/// Lone requests that may go to software or to one card.
struct Lone {
    label: &'static str,
    card: Simulated,
    session: Session,
    /// The size at which both should take as long: the card by its constants, software as measured.
    /// `None` where software is as fast or faster at every size.
    computed: Option<f64>,
    /// Sizes, and the part of the requests that stayed.
    shares: Vec<(usize, f64)>,
}

impl Lone {
    const REQUESTS: u32 = 200;

    fn new(label: &'static str, card: Card) -> Result<Self, String> {
        let fixed = (card.operation_ns + card.latency_ns) as f64;
        let per_byte = 8e3 / card.cipher_mbit as f64;
        let card = keyway_test_drivers::simulated("card", card, keyway_test_drivers::null());
        let builder = Engine::builder().legacy(true).driver(keyway_drivers::software());
        let engine = builder.driver(Arc::new(card.clone())).build();
        let software = session(&engine, Demand::Named("software"))?;
        let cost = |bytes: usize| {
            let mut data = vec![0; bytes];
            let runs = (0..40).map(|_| time(20, || encrypt(&software, &mut data)));
            runs.fold(f64::MAX, f64::min)
        };
        let (small, large) = (cost(64), cost(2048));
        let software_per_byte = (large - small) / (2048.0 - 64.0);
        let software_fixed = small - 64.0 * software_per_byte;
        let gained_per_byte = software_per_byte - per_byte;
        let computed =
            (gained_per_byte > 0.0).then(|| ((fixed - software_fixed) / gained_per_byte).max(1.0));
        let session = session(&engine, Demand::Any)?;
        Ok(Lone { label, card, session, computed, shares: Vec::new() })
    }

    fn stayed(&mut self, bytes: usize) -> f64 {
        let mut data = vec![0; bytes];
        let before = self.card.counters().accepted;
        (0..Self::REQUESTS).for_each(|_| encrypt(&self.session, &mut data));
        let went = self.card.counters().accepted - before;
        let stayed = 1.0 - went as f64 / f64::from(Self::REQUESTS);
        self.shares.push((bytes, stayed));
        stayed
    }

    /// Between the last size of which most stay and the next, of which most go; where the costs say
    /// that none of these sizes is worth the way, that all of them stay.
    fn claim(&self) -> Claim {
        let largest = self.shares.last().map_or(0, |(bytes, _)| *bytes);
        let computed = self.computed.filter(|computed| *computed <= largest as f64);
        let Some(computed) = computed else {
            let stayed = self.shares.iter().map(|(_, stayed)| *stayed).fold(1.0, f64::min);
            let name = format!("5 lone requests stay in software, {}, at least", self.label);
            return Claim::rate(&name, "of 1", &[stayed], "no size to leave at", &[1.0])
                .demand(0.5);
        };
        let crossing = self.shares.windows(2).find(|pair| pair[0].1 >= 0.5 && pair[1].1 < 0.5);
        // Where nothing leaves, the largest size stands for it.
        let (stays, leaves) = crossing.map_or((largest, largest), |pair| (pair[0].0, pair[1].0));
        let measured = (stays as f64 * leaves as f64).sqrt();
        let name = format!("5 from here on lone requests leave software, {}", self.label);
        Claim::cost(&name, "B", &[measured], "computed from the costs", &[computed])
            .demand(CROSSOVER_MIN)
    }
}

/// The part of the requests that the cards do not get.
fn share_among(set: &Cards, session: &Session, bytes: usize) -> f64 {
    let done = AtomicU64::new(0);
    let looks = under_load(&set.engine, session, Way::Queue(DEPTH), bytes, &done, || {
        let look = || {
            let accepted: u64 = set.cards.iter().map(|card| card.counters().accepted).sum();
            (accepted, done.load(Ordering::Relaxed))
        };
        let before = look();
        thread::sleep(WINDOW / ROUNDS as u32);
        let after = look();
        (after.0 - before.0, after.1 - before.1)
    });
    let (cards, all) = looks.into_iter().fold((0, 0), |sum, look| (sum.0 + look.0, sum.1 + look.1));
    1.0 - (cards as f64 / f64::max(all as f64, 1.0)).min(1.0)
}
