//! The options of the benchmark.

use std::path::PathBuf;

/// The options of this benchmark.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these tools, with commas between them: load, data, decode
    #[arg(long, value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// Rounds; each measures every side once
    #[arg(long, default_value_t = 5)]
    pub(super) rounds: usize,
    /// Seconds a measurement of load and of decode's proxy, after the warm-up
    #[arg(long, default_value_t = 5)]
    pub(super) seconds: u64,
    /// Write the claims to this file as JSON
    #[arg(long)]
    pub(super) json: Option<PathBuf>,
}
