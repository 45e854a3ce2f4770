//! Snapshots for people and for programs.

use super::create::Created;
use super::meta::Meta;
use super::place::Listed;
use super::rollback::RolledBack;
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped, shell};
use serde_json::{Value, json};
use std::path::Path;

impl Created {
    /// Says what was made.
    ///
    /// # Errors
    /// If nothing reads it.
    pub fn say(&self, in_json: bool) -> Result<(), Failure> {
        if in_json {
            let mut said = facts(&self.name, &self.meta, self.bytes);
            said["event"] = "snapshot made".into();
            return output::json(&said);
        }
        output::text(format_args!("snapshot {}", line(&self.name, &self.meta, self.bytes)))
    }
}

impl RolledBack {
    /// Says what was done to a data folder.
    ///
    /// # Errors
    /// If nothing reads it.
    pub fn say(&self, folder: &Path, snapshot: &str, in_json: bool) -> Result<(), Failure> {
        let RolledBack { meta, kept, incarnation, epoch } = self;
        if in_json {
            return output::json(&json!({
                "event": "rolled back", "snapshot": snapshot, "kept": kept, "position": meta.position,
                "entries": meta.entries, "incarnation": incarnation, "epoch": epoch,
            }));
        }
        let entries = grouped(meta.entries);
        output::text(format_args!(
            "the store is that of {snapshot} again, with {entries} entries"
        ))?;
        if let Some(kept) = kept {
            output::text(format_args!("the one of before is kept as snapshot {kept}"))?;
        }
        let data = shell(&folder.to_string_lossy());
        output::text(format_args!("start it with: keyway up --data {data}"))
    }
}

/// Says which snapshots were deleted.
///
/// # Errors
/// If nothing reads it.
pub fn deleted(names: &[String], in_json: bool) -> Result<(), Failure> {
    match in_json {
        true => output::json(&json!({ "event": "deleted", "snapshots": names })),
        false => output::text(format_args!("deleted: {}", names.join(", "))),
    }
}

/// Lists snapshots. Returns whether none is damaged.
///
/// # Errors
/// If nothing reads it.
pub fn list(all: &[Listed], in_json: bool) -> Result<bool, Failure> {
    for Listed { name, meta, bytes } in all {
        match (meta, in_json) {
            (Ok(meta), true) => output::json(&facts(name, meta, *bytes))?,
            (Ok(meta), false) => output::text(line(name, meta, *bytes))?,
            (Err(why), true) => {
                output::json(&json!({ "snapshot": name, "damaged": why.to_string() }))?
            }
            (Err(why), false) => output::text(format_args!("{name}  DAMAGED: {why}"))?,
        }
    }
    if all.is_empty() && !in_json {
        output::text("there is no snapshot yet")?;
    }
    Ok(all.iter().all(|one| one.meta.is_ok()))
}

fn facts(name: &str, meta: &Meta, bytes: u64) -> Value {
    json!({
        "snapshot": name, "time": meta.time, "position": meta.position, "entries": meta.entries, "bytes": bytes,
        "incarnation": meta.incarnation, "epoch": meta.epoch, "program": meta.version,
    })
}

fn line(name: &str, meta: &Meta, bytes: u64) -> String {
    let (time, entries, bytes) = (&meta.time, grouped(meta.entries), grouped(bytes));
    let position = meta.position.map(|position| format!(", position {position}"));
    format!("{name}  {time}  {entries} entries{}, {bytes} bytes", position.unwrap_or_default())
}
