//! Measures what counters and histograms cost:
//! `cargo run --release -p keyway-meter --example counting`.

use keyway_meter::{counter, histogram};
use std::hint::black_box;
use std::time::Instant;

const ADDITIONS: u32 = 50_000_000;
const RUNS: usize = 7;

fn main() {
    let counter = counter("engine.measure.measure.operations");
    best("increment", || {
        for _ in 0..ADDITIONS {
            black_box(counter).increment();
        }
    });
    let histogram = histogram("engine.measure.measure.run");
    best("record", || {
        for n in 0..ADDITIONS {
            black_box(histogram).record(black_box(u64::from(n & 0xffff)));
        }
    });
    let plain = std::sync::atomic::AtomicU64::new(0);
    best("fetch_add on one atomic", || {
        for _ in 0..ADDITIONS {
            black_box(&plain).fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    best("empty loop", || {
        for _ in 0..ADDITIONS {
            black_box(counter);
        }
    });
    assert_eq!(counter.value(), u64::from(ADDITIONS) * RUNS as u64);
    assert_eq!(histogram.read().count, u64::from(ADDITIONS) * RUNS as u64);
}

fn best(what: &str, run: impl Fn()) {
    let best = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e9 / f64::from(ADDITIONS)
        })
        .fold(f64::INFINITY, f64::min);
    println!("{what}: {best:.2} ns");
}
