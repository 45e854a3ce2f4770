//! The arguments about results.

use clap::Args;
use std::path::PathBuf;

/// The rules that make a result fail, and where it goes.
#[derive(Debug, Args)]
pub struct Output {
    /// Fail if this comes true (repeatable): 'p99 > 20ms', 'errors > 0.1%', 'auth max > 1s or lag > 5ms'
    #[arg(long, value_name = "RULE")]
    pub fail_if: Vec<String>,
    #[command(flatten)]
    pub kept: Kept,
}

/// Where it goes.
#[derive(Debug, Args)]
pub struct Kept {
    /// Write the result to a file, as JSON with its histograms
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the result as one line of JSON
    #[arg(long)]
    pub json: bool,
    /// No lines while it goes on
    #[arg(long)]
    pub quiet: bool,
}

/// Make a page of HTML of a result: tables and pictures, in one file that needs nothing else
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load report a.json > a.html
      from what --output a.json wrote, of a run or of a search for the knee")]
pub struct Report {
    /// The result
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
}

/// Show two results beside one another, and whether differences are more than noise
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway load compare before.json after.json
      rates, errors and percentiles of both; the noise is what each figure varies by within the runs
  keyway load compare knee-before.json knee-after.json
      which knee is higher, if that can be said, and latencies at the rates that both have tried")]
pub struct Compare {
    /// The first result
    #[arg(value_name = "A")]
    pub one: PathBuf,
    /// The second
    #[arg(value_name = "B")]
    pub other: PathBuf,
}
