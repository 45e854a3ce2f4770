//! The options of the benchmark, and how its sides are measured and placed.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these claims, 1 to 8, with commas between them
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(super) only: Vec<u8>,
    /// Rounds of what is compared by turns
    #[arg(long, default_value_t = 7)]
    pub(super) rounds: usize,
    /// Write the claims to this file as JSON
    #[arg(long)]
    pub(super) json: Option<PathBuf>,
}

/// The processor of this process, and the daemon's.
pub(crate) const CLIENT: usize = 0;

pub(crate) const DAEMON: usize = 1;

/// From now on this thread, and what it starts, runs on that processor alone.
pub(crate) fn run_on(which: usize) -> Result<(), String> {
    let processor = processor(which).ok_or("it takes two processors")?;
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).map_err(|why| why.to_string())
}

/// From now on this thread, and what it starts, runs on any processor that this process had at first.
pub(crate) fn run_anywhere() -> Result<(), String> {
    let mut set = CpuSet::new();
    processors().iter().for_each(|processor| set.set(*processor));
    sched_setaffinity(None, &set).map_err(|why| why.to_string())
}

/// The system's number of that processor.
pub(crate) fn processor(which: usize) -> Option<usize> {
    processors().get(which).copied()
}

/// Those of this process, before a thread of it was placed.
fn processors() -> &'static [usize] {
    static PROCESSORS: OnceLock<Vec<usize>> = OnceLock::new();
    PROCESSORS.get_or_init(|| {
        let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect()
    })
}

/// The time of each side: the best of so many short runs by turns.
pub(crate) fn best<const N: usize>(
    runs: usize,
    mut sides: [&mut dyn FnMut() -> f64; N],
) -> [f64; N] {
    let mut best = [f64::MAX; N];
    for _ in 0..runs {
        for (best, side) in best.iter_mut().zip(&mut sides) {
            *best = best.min(side());
        }
    }
    best
}

/// One side's figure of each round.
pub(crate) fn column<const N: usize>(rounds: &[[f64; N]], side: usize) -> Vec<f64> {
    rounds.iter().map(|round| round[side]).collect()
}

pub(crate) fn text(why: impl std::fmt::Display) -> String {
    why.to_string()
}
