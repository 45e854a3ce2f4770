//! `keyway doctor`.

use crate::data_flag::Data;
use clap::Args;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::progress::Progress;
use keyway_service::doctor::{self, Finding, Verdict};
use serde_json::json;

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
    let count = |verdict| findings.iter().filter(|one| one.verdict == verdict).count();
    let (faults, warnings) = (count(Verdict::Fault), count(Verdict::Warning));
    if arguments.json {
        let line = |one: &Finding| {
            output::json(&json!({
                "event": "found", "about": one.about, "verdict": one.verdict, "found": one.found,
                "advice": one.advice,
            }))
        };
        findings.iter().try_for_each(line)?;
        output::json(&json!({ "event": "examined", "faults": faults, "warnings": warnings }))?;
        return Ok(faults == 0);
    }
    for Finding { about, verdict, found, advice } in &findings {
        let verdict = match verdict {
            Verdict::Good => "good",
            Verdict::Unknown => "?",
            Verdict::Warning => "WARNING",
            Verdict::Fault => "FAULT",
        };
        output::text(format_args!("{verdict:<8} {about:<14} {found}"))?;
        if let Some(advice) = advice {
            output::text(format_args!("{:<8} {:<14} -> {advice}", "", ""))?;
        }
    }
    output::text(match (faults, warnings) {
        (0, 0) => "nothing is to be done".to_owned(),
        _ => format!("{faults} faults, {warnings} warnings"),
    })?;
    Ok(faults == 0)
}
