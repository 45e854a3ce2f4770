//! Claim 6, first half: many threads on one small card.
//!
//! FreeBSD's test of 2003: 28 threads on a Hifn 7951, whose ring is tiny, each with one request at
//! a time, as cryptotest has them. Most requests find the ring full and wait; none may fail, and the
//! card may not wait for any of them.

use super::{Arguments, Findings};
use crate::report::{Claim, Table};
use indicatif::ProgressBar;
use keyway_engine::{Algorithm, Engine, IV_BYTES_MAX, Key, Parameters, Request, Session};
use keyway_meter::counter;
use keyway_test_drivers::Card;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const THREADS: usize = 28;
const RING: usize = 8;
/// The longest of the papers: on a busy host a thread may come late to the card.
const BYTES: usize = 16_384;
const WARM_UP: Duration = Duration::from_millis(200);
const WINDOW: Duration = Duration::from_millis(1000);
const ROUNDS: usize = 3;

/// The share of all requests, in 2003.
const BUSY_2003: f64 = 0.51;
const BUSY_MIN: f64 = 0.5;
const RATE_MIN: f64 = 0.97;

pub fn measure(_: &Arguments, progress: &ProgressBar) -> Result<Findings, String> {
    let card = Card { ring: RING, ..Card::hifn_7951() };
    let service_ns = card.operation_ns as f64 + BYTES as f64 * 8e3 / card.cipher_mbit as f64;
    let most = BYTES as f64 * 8e3 / service_ns;
    let card = keyway_test_drivers::simulated("hifn-7951", card, keyway_test_drivers::null());
    let engine = Engine::builder().legacy(true).driver(Arc::new(card.clone())).build();
    let key: [u8; 24] = std::array::from_fn(|at| at as u8 * 7);
    let parameters = Parameters::new(Algorithm::TripleDesCbc, Key::Secret(&key));
    let session = engine.session(parameters).map_err(|error| error.to_string())?;

    let (over, failed, done) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let busy = counter("engine.hifn-7951.3des-cbc.busy");
    let mut rates = Vec::new();
    let mut shares = Vec::new();
    progress.inc_length(ROUNDS as u64);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| work(&session, &over, &failed, &done));
        }
        thread::sleep(WARM_UP);
        for _ in 0..ROUNDS {
            let look = || (card.counters(), busy.value(), done.load(Ordering::Relaxed));
            let (card_before, busy_before, done_before) = look();
            thread::sleep(WINDOW);
            let (card_after, busy_after, done_after) = look();
            let passed = card_after.since(&card_before);
            rates.push(passed.bytes as f64 * 8e-6 / passed.elapsed.as_secs_f64());
            shares.push((busy_after - busy_before) as f64 / (done_after - done_before) as f64);
            progress.inc(1);
        }
        over.store(true, Ordering::Release);
    });
    let peers = vec![most; ROUNDS];
    let name = "6 28 threads on one 7951, ring of 8";
    let rate = Claim::rate(name, "Mbit/s", &rates, "the card's throughput", &peers);
    let name = "6 requests that found the card busy";
    let share = Claim::rate(name, "of 1", &shares, "FreeBSD 2003", &[BUSY_2003; ROUNDS]);
    let (failed, done) = (failed.into_inner(), done.into_inner());
    let lived = [(done - failed) as f64 / done as f64];
    let name = "6 requests that did not fail on the busy card";
    let lived = Claim::rate(name, "of 1", &lived, "all", &[1.0]);
    let mut table = Table::new("6 28 threads on one Hifn 7951", &["requests", "failed"]);
    table.rows.push(vec![done.to_string(), failed.to_string()]);
    let share = share.demand(BUSY_MIN / BUSY_2003);
    Ok(Findings {
        claims: vec![rate.demand(RATE_MIN), share, lived.demand(1.0)],
        tables: vec![table],
    })
}

fn work(session: &Session, over: &AtomicBool, failed: &AtomicU64, done: &AtomicU64) {
    let mut data = vec![0; BYTES];
    while !over.load(Ordering::Acquire) {
        let mut request = Request::Encrypt { iv: &[0; IV_BYTES_MAX], data: &mut data };
        let result = session.run(&mut request);
        done.fetch_add(1, Ordering::Relaxed);
        failed.fetch_add(u64::from(result != Ok(BYTES)), Ordering::Relaxed);
    }
}
