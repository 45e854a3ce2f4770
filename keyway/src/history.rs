//! `keyway directory history`.

use crate::cli::History;
use keyway_folder::data::{self, State};
use keyway_folder::history::{Done, last_backup, last_check, read, warnings};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::timestamp::Timestamp;
use serde_json::json;

/// Says what was done with a data folder.
///
/// # Errors
/// If it is none.
pub fn run(arguments: &History) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    if data::look(folder)? == State::Absent {
        let folder = folder.display();
        return Err(Failure::new(format!(
            "{folder} holds no data; name the folder with --data DIR"
        )));
    }
    let all = read(folder);
    let warnings = warnings(&all, Timestamp::now());
    let shown = all.get(all.len().saturating_sub(arguments.lines)..).unwrap_or_default();
    if arguments.json {
        return output::json(&json!({
            "event": "history",
            "done": shown,
            "last_export": last_backup(&all),
            "last_check": last_check(&all),
            "warnings": warnings,
        }));
    }
    for done in shown {
        output::text(line(done))?;
    }
    for warning in warnings {
        output::text(warning)?;
    }
    Ok(())
}

fn line(done: &Done) -> String {
    let mut line = format!("{}  {:<6}  {:<8}", done.time, done.command, done.verdict);
    let entries = done.entries.map(|entries| format!("{} entries", grouped(entries)));
    let bytes = done.bytes.map(|bytes| format!("{} bytes", grouped(bytes)));
    let seconds = Some(format!("{:.1} s", done.seconds));
    let base = done.base.as_ref().map(|base| format!("of {base}"));
    let file = done.file.as_ref().map(|file| match done.command.as_str() {
        "import" => format!("from {file}"),
        _ => format!("to {file}"),
    });
    let served = done.served.then(|| "beside the server".to_owned());
    let parts = [entries, bytes, seconds, base, file, served, done.why.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    line.push_str("  ");
    line.push_str(&parts.join(", "));
    // Names of files and of entries may contain any text.
    line.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
