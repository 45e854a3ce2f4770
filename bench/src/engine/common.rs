//! The options of the benchmark, and how its sides are measured.

use crate::gauge::Gauge;
use crate::report::median;
use std::path::PathBuf;
use std::time::Instant;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these claims, 1 to 8, with commas between them
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(super) only: Vec<u8>,
    /// Rounds of what is compared by turns
    #[arg(long, default_value_t = 7)]
    pub(super) rounds: usize,
    /// Requests of claim 6 while drivers come and go
    #[arg(long, default_value_t = 1_000_000)]
    pub(super) requests: u64,
    /// Seed of their coming and going
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Write the claims to this file as JSON
    #[arg(long)]
    pub(super) json: Option<PathBuf>,
    /// Draw pictures into this folder
    #[arg(long)]
    pub(super) svg: Option<PathBuf>,
}

/// The time of each side: the median of so many runs by turns, each repeated where a neighbour disturbs
/// it.
pub(super) fn middle(
    gauge: &mut Gauge,
    runs: usize,
    sides: &mut [&mut dyn FnMut() -> f64],
) -> Vec<f64> {
    let mut all = vec![Vec::new(); sides.len()];
    for _ in 0..runs {
        for (figures, side) in all.iter_mut().zip(sides.iter_mut()) {
            figures.push(gauge.undisturbed(side));
        }
    }
    all.iter().map(|figures| median(figures)).collect()
}

/// The time of each side: the best of so many short runs by turns.
pub(super) fn best(runs: usize, sides: &mut [&mut dyn FnMut() -> f64]) -> Vec<f64> {
    let mut best = vec![f64::MAX; sides.len()];
    for _ in 0..runs {
        for (best, side) in best.iter_mut().zip(sides.iter_mut()) {
            *best = best.min(side());
        }
    }
    best
}

/// Nanoseconds of one of so many calls.
pub(super) fn time(calls: usize, mut call: impl FnMut()) -> f64 {
    let begun = Instant::now();
    for _ in 0..calls {
        call();
    }
    begun.elapsed().as_secs_f64() * 1e9 / calls as f64
}

/// Column `index` of rounds of figures.
pub(super) fn column(rounds: &[Vec<f64>], index: usize) -> Vec<f64> {
    rounds.iter().map(|round| round[index]).collect()
}
