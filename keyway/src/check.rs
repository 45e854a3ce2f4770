//! `keyway directory check`.

use crate::cli::Check;
use crate::failure::Failure;
use crate::offline;
use crate::output::{self, grouped};
use serde_json::json;
use std::time::Instant;

/// Checks the store of a data folder, and that each entry is found by the keys it should have.
///
/// # Errors
/// If there is none, it is in use, or it contradicts itself.
pub fn run(arguments: &Check) -> Result<(), Failure> {
    let opened = offline::open(&arguments.data.folder)?;
    let started = Instant::now();
    let checked = opened.instance.directory.check().map_err(|why| {
        Failure::new(format!("{why}; restore it from a backup, or import an export of it"))
    })?;
    let seconds = started.elapsed().as_secs_f64();
    opened.instance.close()?;
    if arguments.json {
        return output::json(&json!({
            "event": "checked",
            "sound": true,
            "entries": checked.entries,
            "postings": checked.postings,
            "seconds": seconds,
        }));
    }
    output::text(format_args!(
        "{} entries and {} index postings fit together",
        grouped(checked.entries),
        grouped(checked.postings)
    ))
}
