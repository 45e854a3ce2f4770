//! Claim 7: a fast request beside a saturated slow class.
//!
//! Short seals on processor 0, each timed by itself, with and without Argon2id on processor 1. Both
//! sides pay for the clock alike, and nothing is subtracted.

use super::{Arguments, Findings};
use crate::report::{Claim, Table, median};
use indicatif::ProgressBar;
use keyway_engine::{
    Algorithm, Cost, Derivation, Engine, Error, Key, NONCE_BYTES, Parameters, Session,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BYTES: usize = 64;
/// Derivations that keep the pool busy for one measurement.
const DERIVATIONS: usize = 6;
/// Seals timed between two looks at the pool.
const CHUNK: usize = 20_000;
const SAMPLES_MAX: usize = 1_000_000;

const SLOWDOWN_MAX: f64 = 1.5;

pub fn measure(arguments: &Arguments, progress: &ProgressBar) -> Result<Findings, String> {
    let everywhere = sched_getaffinity(None).map_err(|why| why.to_string())?;
    if !(everywhere.is_set(0) && everywhere.is_set(1)) {
        eprintln!("claim 7 needs processors 0 and 1, and is left out");
        return Ok(Findings::default());
    }
    // The pool's thread stays where the thread that made it was.
    pin(1)?;
    let engine = Engine::builder().driver(keyway_drivers::software()).slow_pool(1, DERIVATIONS);
    let engine = engine.build();
    pin(0)?;
    let result = rounds(arguments, progress, &engine);
    sched_setaffinity(None, &everywhere).map_err(|why| why.to_string())?;
    result
}

fn pin(processor: usize) -> Result<(), String> {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).map_err(|why| format!("processor {processor}: {why}"))
}

/// The shares of requests that are looked at.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

fn rounds(
    arguments: &Arguments,
    progress: &ProgressBar,
    engine: &Engine,
) -> Result<Findings, String> {
    let text = |error: Error| error.to_string();
    let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16]));
    let session = engine.session(parameters).map_err(text)?;
    let pending = Arc::new(AtomicUsize::new(0));
    let mut samples = Vec::with_capacity(SAMPLES_MAX + CHUNK);
    let (mut beside, mut alone) = (Vec::new(), Vec::new());
    progress.inc_length(arguments.rounds as u64);
    for _ in 0..arguments.rounds {
        for _ in 0..DERIVATIONS {
            let left = pending.clone();
            left.fetch_add(1, Ordering::AcqRel);
            let done = Box::new(move |_| {
                left.fetch_sub(1, Ordering::AcqRel);
            });
            engine.submit(derivation(), done).map_err(text)?;
        }
        samples.clear();
        while samples.len() < SAMPLES_MAX {
            let before = samples.len();
            seals(&session, CHUNK, &mut samples);
            if pending.load(Ordering::Acquire) == 0 {
                samples.truncate(before);
                break;
            }
        }
        if samples.is_empty() {
            return Err("the slow class was done before anything was measured".into());
        }
        let taken = samples.len();
        beside.push(quantiles(&mut samples));
        while pending.load(Ordering::Acquire) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        samples.clear();
        seals(&session, taken, &mut samples);
        alone.push(quantiles(&mut samples));
        progress.inc(1);
    }
    let mut table = Table::new(
        "7 AES-128-GCM seal of 64 B on one processor, ns, clock included",
        &["", "alone", "Argon2id on the other", "times"],
    );
    for (index, name) in ["median", "p99", "p99.9"].into_iter().enumerate() {
        let of = |rounds: &[[f64; 3]]| {
            median(&rounds.iter().map(|round| round[index]).collect::<Vec<_>>())
        };
        let (alone, beside) = (of(&alone), of(&beside));
        let row = [format!("{alone:.0}"), format!("{beside:.0}"), format!("{:.2}", beside / alone)];
        table.rows.push([vec![name.to_owned()], row.to_vec()].concat());
    }
    let p99 = |rounds: &[[f64; 3]]| rounds.iter().map(|round| round[1]).collect::<Vec<_>>();
    let name = "7 p99 of a 64 B seal, slow class saturated";
    let claim = Claim::cost(name, "ns", &p99(&beside), "the same, slow class idle", &p99(&alone));
    Ok(Findings { claims: vec![claim.demand(1.0 / SLOWDOWN_MAX)], tables: vec![table] })
}

/// OWASP's Argon2id.
fn derivation() -> Derivation {
    Derivation {
        algorithm: Algorithm::Argon2id,
        cost: Cost::Argon2 { memory_kib: 19_456, passes: 2, lanes: 1 },
        password: b"correct horse battery staple".to_vec().into(),
        salt: vec![7; 16],
        output_bytes: 32,
    }
}

/// Times so many seals, each by itself, in nanoseconds.
fn seals(session: &Session, count: usize, samples: &mut Vec<u32>) {
    let mut data = [0; BYTES];
    for number in 0..count as u64 {
        let mut nonce = [0; NONCE_BYTES];
        nonce[..8].copy_from_slice(&number.to_ne_bytes());
        let begun = Instant::now();
        black_box(session.seal(&nonce, &[], black_box(&mut data)).is_ok());
        samples.push(begun.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32);
    }
}

fn quantiles(samples: &mut [u32]) -> [f64; 3] {
    QUANTILES.map(|quantile| {
        let index = (samples.len() as f64 * quantile) as usize;
        f64::from(*samples.select_nth_unstable(index).1)
    })
}
