//! `keyway snapshot`.

mod arguments;

pub use arguments::Snapshot;

use arguments::{Create, Delete, List, Rollback};
use keyway_folder::user::become_owner;
use keyway_host::failure::Failure;
use keyway_host::limits::yield_to_others;
use keyway_host::output::{self, grouped, shell};
use keyway_host::progress::Progress;
use keyway_service::snapshot::{self, Listed, Meta, RolledBack};
use serde_json::{Value, json};

/// Does what the arguments ask for. Returns whether all is well; what is not has been said.
///
/// # Errors
/// Whatever keeps it from being done.
pub fn run(command: &Snapshot) -> Result<bool, Failure> {
    match command {
        Snapshot::Create(create) => created(create).map(|()| true),
        Snapshot::List(list) => listed(list),
        Snapshot::Delete(delete) => deleted(delete).map(|()| true),
        Snapshot::Rollback(rollback) => rolled_back(rollback).map(|()| true),
    }
}

fn created(create: &Create) -> Result<(), Failure> {
    become_owner(&create.data.folder)?;
    yield_to_others();
    let progress = Progress::bytes("copying", None);
    let told = &mut |done, total| bytes(&progress, done, total);
    let made = snapshot::create(&create.data.folder, create.name.as_deref(), told)?;
    drop(progress);
    if create.json {
        let mut said = facts(&made.name, &made.meta, made.bytes);
        said["event"] = "snapshot made".into();
        return output::json(&said);
    }
    output::text(format_args!("snapshot {}", line(&made.name, &made.meta, made.bytes)))
}

fn listed(list: &List) -> Result<bool, Failure> {
    become_owner(&list.data.folder)?;
    let all = snapshot::list(&list.data.folder)?;
    for Listed { name, meta, bytes } in &all {
        match (meta, list.json) {
            (Ok(meta), true) => output::json(&facts(name, meta, *bytes))?,
            (Ok(meta), false) => output::text(line(name, meta, *bytes))?,
            (Err(why), true) => {
                output::json(&json!({ "snapshot": name, "damaged": why.to_string() }))?
            }
            (Err(why), false) => output::text(format_args!("{name}  DAMAGED: {why}"))?,
        }
    }
    if all.is_empty() && !list.json {
        output::text("there is no snapshot yet")?;
    }
    Ok(all.iter().all(|one| one.meta.is_ok()))
}

fn deleted(delete: &Delete) -> Result<(), Failure> {
    become_owner(&delete.data.folder)?;
    snapshot::delete(&delete.data.folder, &delete.names)?;
    match delete.json {
        true => output::json(&json!({ "event": "deleted", "snapshots": delete.names })),
        false => output::text(format_args!("deleted: {}", delete.names.join(", "))),
    }
}

fn rolled_back(rollback: &Rollback) -> Result<(), Failure> {
    let (folder, name) = (&rollback.data.folder, &rollback.name);
    become_owner(folder)?;
    let progress = Progress::bytes("copying", None);
    let told = &mut |done, total| bytes(&progress, done, total);
    let RolledBack { meta, kept, incarnation, epoch } =
        snapshot::rollback(folder, name, rollback.discard, told)?;
    drop(progress);
    if rollback.json {
        return output::json(&json!({
            "event": "rolled back", "snapshot": name, "kept": kept, "position": meta.position, "entries": meta.entries,
            "incarnation": incarnation, "epoch": epoch,
        }));
    }
    let entries = grouped(meta.entries);
    output::text(format_args!("the store is that of {name} again, with {entries} entries"))?;
    if let Some(kept) = kept {
        output::text(format_args!("the one of before is kept as snapshot {kept}"))?;
    }
    let data = shell(&folder.to_string_lossy());
    output::text(format_args!("start it with: keyway up --data {data}"))
}

fn bytes(progress: &Progress, done: u64, total: u64) {
    progress.of(total);
    progress.step(done, "");
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
