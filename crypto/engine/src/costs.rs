//! The cost of a driver's work: a line through two measured points, bent by what is seen later.
//!
//! ```text
//! nanoseconds(bytes) = (fixed + per_byte · bytes) · correction[size class]
//! ```
//!
//! There are two such lines. *Single*: the time until the result of a lone request is there, with
//! the way to the driver and the wake-up. *Batched*: the time that one of many requests occupies
//! the driver.
//!
//! [`finish`] is all the arithmetic of the scheduler: costs in, a time out.

use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Size classes: up to 64 bytes, and then each four times the one before, the last without end.
pub(crate) const CLASSES: usize = 7;
/// Weight of a new sample in the exponential average.
const WEIGHT: f32 = 1.0 / 8.0;
/// A sample is clamped to within this factor of what was expected. A page fault or a busy host can
/// stretch one a thousandfold, which says nothing about the driver.
const SAMPLE_FACTOR: f32 = 4.0;
/// A correction stays within this factor of the measured line, both ways.
const CORRECTION_FACTOR: f32 = 64.0;

/// How a request goes to its driver: by itself, or as one of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Single,
    Batched,
}

/// Costs of one driver for one algorithm or chain. All threads read and correct them at once.
#[derive(Default)]
pub(crate) struct Costs {
    lines: [Line; 2],
    calibrated: AtomicBool,
    /// Held during a measurement.
    pub measuring: Mutex<()>,
    /// Whether they were set by hand. Then nothing is corrected.
    fixed: AtomicBool,
}

struct Line {
    fixed: AtomicU64,
    per_byte: AtomicU64,
    correction: [AtomicU32; CLASSES],
}

impl Default for Line {
    fn default() -> Self {
        Line {
            fixed: AtomicU64::new(0),
            per_byte: AtomicU64::new(0),
            correction: [const { AtomicU32::new(1f32.to_bits()) }; CLASSES],
        }
    }
}

/// The cost of one request: `fixed` nanoseconds and `per_byte` for each byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    /// Nanoseconds, whatever the size.
    pub fixed: f64,
    /// Nanoseconds a byte.
    pub per_byte: f64,
}

impl Linear {
    /// Nanoseconds for so many bytes.
    pub fn nanoseconds(&self, bytes: usize) -> f64 {
        self.fixed + self.per_byte * bytes as f64
    }

    /// The line through two measurements, each bytes and nanoseconds; flat if it would fall.
    pub(crate) fn through((a, fast): (usize, f64), (b, slow): (usize, f64)) -> Linear {
        let per_byte = if b > a { ((slow - fast) / (b - a) as f64).max(0.0) } else { 0.0 };
        Linear { fixed: (fast - per_byte * a as f64).max(0.0), per_byte }
    }
}

pub(crate) fn class(bytes: usize) -> usize {
    let octaves = (bytes.max(1) - 1).checked_ilog2().map_or(0, |log| log as usize + 1);
    (octaves.saturating_sub(5) / 2).min(CLASSES - 1)
}

/// The sizes of a class, from the least to the greatest.
pub(crate) fn sizes(class: usize) -> RangeInclusive<usize> {
    let end = |class: usize| 64 << (2 * class);
    let least = class.checked_sub(1).map_or(0, |before| end(before) + 1);
    least..=if class + 1 < CLASSES { end(class) } else { usize::MAX }
}

/// The scheduler's knowledge of a driver besides its costs.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Whether the work takes the caller's own time.
    pub on_caller: bool,
    /// Nanoseconds until the driver has done what it has accepted.
    pub wait: f64,
}

/// Nanoseconds from now until a driver of these costs has finished a request.
///
/// A driver that works beside the caller first does what it has accepted. One that works in the
/// caller's own time waits for `ahead`, what the caller has to do first; in a batch it takes what
/// one of many takes.
#[inline]
pub(crate) fn finish(load: Load, single: f64, batched: f64, mode: Mode, ahead: f64) -> f64 {
    if !load.on_caller {
        return load.wait + single.max(batched);
    }
    ahead
        + match mode {
            Mode::Single => single,
            Mode::Batched => batched.min(single),
        }
}

impl Costs {
    pub fn is_calibrated(&self) -> bool {
        self.calibrated.load(Relaxed)
    }

    /// Sets what was measured, unless costs were set by hand.
    pub fn calibrate(&self, single: Linear, batched: Linear) {
        if !self.fixed.load(Relaxed) {
            self.set(single, batched);
            self.calibrated.store(true, Relaxed);
        }
    }

    /// Sets costs by hand: from now on nothing changes them.
    pub fn fix(&self, single: Linear, batched: Linear) {
        self.fixed.store(true, Relaxed);
        self.set(single, batched);
        self.calibrated.store(true, Relaxed);
    }

    fn set(&self, single: Linear, batched: Linear) {
        for (line, cost) in self.lines.iter().zip([single, batched]) {
            line.fixed.store(cost.fixed.to_bits(), Relaxed);
            line.per_byte.store(cost.per_byte.to_bits(), Relaxed);
            for correction in &line.correction {
                correction.store(1f32.to_bits(), Relaxed);
            }
        }
    }

    /// Nanoseconds that a request of so many bytes is expected to take. It is 0 while nothing is
    /// known, so that an unknown driver is tried.
    #[inline]
    pub fn predict(&self, mode: Mode, bytes: usize) -> f64 {
        let line = &self.lines[mode as usize];
        let correction = f32::from_bits(line.correction[class(bytes)].load(Relaxed));
        line.cost().nanoseconds(bytes) * f64::from(correction)
    }

    /// Takes a sample into the average.
    pub fn observe(&self, mode: Mode, bytes: usize, nanoseconds: u64) {
        if self.fixed.load(Relaxed) {
            return;
        }
        let line = &self.lines[mode as usize];
        let expected = line.cost().nanoseconds(bytes);
        if expected <= 0.0 {
            // Nothing was measured yet, or nothing can be: the first request is the measurement.
            let cost = Linear { fixed: nanoseconds as f64, per_byte: 0.0 };
            return self.set(cost, cost);
        }
        let cell = &line.correction[class(bytes)];
        let old = f32::from_bits(cell.load(Relaxed));
        let seen = (nanoseconds as f64 / expected) as f32;
        let seen = seen.clamp(old / SAMPLE_FACTOR, old * SAMPLE_FACTOR);
        let new = (old + (seen - old) * WEIGHT).clamp(1.0 / CORRECTION_FACTOR, CORRECTION_FACTOR);
        // Two threads at once may lose a sample, which an average can bear.
        cell.store(new.to_bits(), Relaxed);
    }

    /// The measured lines (single, batched) and the corrections of each.
    pub fn show(&self) -> [(Linear, [f32; CLASSES]); 2] {
        self.lines.each_ref().map(|line| {
            (line.cost(), line.correction.each_ref().map(|cell| f32::from_bits(cell.load(Relaxed))))
        })
    }
}

impl Line {
    fn cost(&self) -> Linear {
        Linear {
            fixed: f64::from_bits(self.fixed.load(Relaxed)),
            per_byte: f64::from_bits(self.per_byte.load(Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_end_where_they_say() {
        let ends = [64, 256, 1024, 4096, 16384, 65536];
        for (index, end) in ends.into_iter().enumerate() {
            assert_eq!((class(end), class(end + 1)), (index, index + 1));
        }
        assert_eq!((class(0), class(usize::MAX)), (0, CLASSES - 1));
        for index in 0..CLASSES {
            let sizes = sizes(index);
            assert_eq!((class(*sizes.start()), class(*sizes.end())), (index, index));
        }
        assert_eq!((*sizes(0).start(), *sizes(1).start()), (0, 65));
    }

    #[test]
    fn a_line_goes_through_its_points_and_samples_bend_it() {
        let cost = Linear::through((64, 164.0), (1064, 1164.0));
        assert_eq!(cost, Linear { fixed: 100.0, per_byte: 1.0 });
        let costs = Costs::default();
        assert_eq!(costs.predict(Mode::Single, 100), 0.0);
        costs.observe(Mode::Single, 1, 50);
        assert_eq!(costs.predict(Mode::Single, 100), 50.0);
        assert!(!costs.is_calibrated());
        costs.calibrate(cost, cost);
        assert_eq!(costs.predict(Mode::Single, 100), 200.0);
        for _ in 0..100 {
            costs.observe(Mode::Single, 100, 400);
        }
        assert!((costs.predict(Mode::Single, 100) - 400.0).abs() < 5.0);
        assert_eq!(costs.predict(Mode::Single, 10_000), 10_100.0);
        assert_eq!(costs.predict(Mode::Batched, 100), 200.0);
        costs.fix(cost, cost);
        costs.observe(Mode::Single, 100, 4_000);
        assert_eq!(costs.predict(Mode::Single, 100), 200.0);
    }
}
