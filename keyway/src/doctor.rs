//! `keyway doctor`.

use crate::data_flag::Data;
use clap::Args;
use keyway_host::failure::Failure;
use keyway_host::progress::Progress;
use keyway_service::{doctor, finding};

/// Examine a data folder and its machine: what endangers data or keys, and what helps
///
/// It looks at the file system and its mount options, at the room that is left, at how long the disk takes to say that
/// something is safe, at permissions, limits, swap, the clock, the settings, the store's size, and at the age of the
/// last backup, of its verification and of the last check. It changes nothing, and works while a server runs: limits
/// are then those of the server. The exit status is 1 if there is a fault.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway doctor
      look at ./keyway-data and the machine
  keyway doctor --data /srv/directory --json
      a line of JSON for each finding (good, unknown, warning, fault), and one with their numbers")]
pub struct Doctor {
    #[command(flatten)]
    pub data: Data,
    /// A line of JSON for each finding
    #[arg(long)]
    pub json: bool,
}

/// Examines it. Returns whether there is no fault.
///
/// # Errors
/// If there is no data folder.
pub fn run(arguments: &Doctor) -> Result<bool, Failure> {
    let progress = Progress::steps("measuring the disk", 0);
    let findings = doctor::examine(&arguments.data.folder, &mut |done, of| {
        progress.of(of);
        progress.step(done, "");
    })?;
    drop(progress);
    finding::say(&findings, arguments.json)
}
