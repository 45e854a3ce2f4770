//! The flag `--data`, which most commands have.

use clap::Args;
use std::path::PathBuf;

/// Where the data is.
#[derive(Debug, Args)]
pub struct Data {
    /// The data folder
    #[arg(long = "data", value_name = "DIR", default_value = "keyway-data")]
    pub folder: PathBuf,
}

/// Where the data is, and the form of the answer.
#[derive(Debug, Args)]
pub struct DataAndForm {
    /// The data folder
    #[arg(long = "data", value_name = "DIR", default_value = "keyway-data")]
    pub folder: PathBuf,
    /// Answer in JSON: one line, or one for each
    #[arg(long)]
    pub json: bool,
}
