//! Whether another process runs on this core.
//!
//! A neighbour on the same core takes half of what it can do at a time, which code that keeps it
//! busy feels by half as much again, and code that waits not at all. So does the gauge: what is
//! measured between readings that are not at their best says more of the neighbour.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// A reading may take so many times the best there was.
const READING_MAX: f64 = 1.1;
/// Between two looks at a neighbour.
const PAUSE: Duration = Duration::from_millis(2);
/// How long a measurement waits for the neighbour to go.
const PATIENCE: Duration = Duration::from_secs(3);
/// Times that something is measured before it is taken as it is.
const ATTEMPTS: usize = 4;

/// The readings of one thread.
pub struct Gauge {
    /// The best there was, in nanoseconds.
    best: f64,
}

impl Gauge {
    pub fn new() -> Self {
        Gauge { best: (0..200).map(|_| reading()).fold(f64::MAX, f64::min) }
    }

    /// Whether a reading is as good as it gets.
    pub fn is_calm(&mut self) -> bool {
        let reading = reading();
        self.best = self.best.min(reading);
        reading < self.best * READING_MAX
    }

    /// Waits for a neighbour to go, for some seconds at most.
    pub fn wait(&mut self) {
        let begun = Instant::now();
        while !self.is_calm() && begun.elapsed() < PATIENCE {
            thread::sleep(PAUSE);
        }
    }

    /// The result of `measure` without a disturbance; where neighbours leave no peace, its last result.
    pub fn undisturbed<R>(&mut self, mut measure: impl FnMut() -> R) -> R {
        for _ in 1..ATTEMPTS {
            self.wait();
            let measured = measure();
            if self.is_calm() {
                return measured;
            }
        }
        measure()
    }
}

/// Nanoseconds of chains that only overlap as far as the core looks ahead, which a neighbour on the
/// same core halves.
fn reading() -> f64 {
    let begun = Instant::now();
    for round in 0..128_u64 {
        let mut x = round;
        for _ in 0..48 {
            x = (x ^ round).wrapping_add(0x9e37_79b9);
        }
        black_box(x);
    }
    begun.elapsed().as_nanos() as f64
}
