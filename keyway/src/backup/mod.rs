//! `keyway backup` and `keyway restore`.

mod arguments;

pub use arguments::{Backup, Restore};

use arguments::{Create, List, Prune, Run, Show, Verify};
use keyway_backup::{Keep, Listed};
use keyway_host::failure::Failure;
use keyway_host::limits::yield_to_others;
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress;
use keyway_host::shutdown::Stop;
use keyway_host::signals::Second;
use keyway_host::timestamp::{Timestamp, show_unix_us};
use keyway_service::backup::{self, AskedEntries, Created, EntriesBack, Meta, Running, Step};
use serde_json::{Value, json};
use std::path::Path;

/// Does what the arguments ask for. Returns whether all is well; what is not has been said.
///
/// # Errors
/// Whatever keeps it from being done.
pub fn run(command: &Backup) -> Result<bool, Failure> {
    yield_to_others();
    match command {
        Backup::Create(create) => made(create).map(|()| true),
        Backup::List(list) => listed(list),
        Backup::Show(show) => shown(show).map(|()| true),
        Backup::Verify(verify) => verified(verify),
        Backup::Prune(prune) => pruned(prune).map(|()| true),
        Backup::Run(run) => going_on(run).map(|()| true),
    }
}

/// Makes a data folder of a backup, or brings entries back.
///
/// # Errors
/// As [`backup::restore`] and [`EntriesBack::plan`], and if a change is refused.
pub fn restore(restore: &Restore) -> Result<(), Failure> {
    let progress = Progress::bytes("restoring", None);
    let told = &mut |done, total| bytes(&progress, done, total);
    let (place, point) = (restore.repository.place(), restore.point());
    let (named, point) = (restore.backup.as_deref(), point.as_ref());
    let asked = restore.entry.iter().chain(&restore.subtree).next();
    if let Some(dn) = asked {
        let Restore { data, scratch, memberships, .. } = restore;
        let is_subtree = restore.subtree.is_some();
        let asked = AskedEntries { dn, is_subtree, memberships: *memberships };
        let back = EntriesBack::plan(&data.folder, (&place, named, point), &asked, scratch, told)?;
        drop(progress);
        return brought_back(restore, &back);
    }
    let to = restore.to.as_deref().unwrap_or(Path::new(""));
    let restored = backup::restore(&place, named, point, to, told)?;
    drop(progress);
    let lacks = restored.meta.lacks();
    if restore.json {
        return output::json(&json!({
            "event": "restored", "folder": to, "backup": restored.backup, "position": restored.position,
            "entries": restored.entries, "incarnation": restored.incarnation, "epoch": restored.epoch, "lacks": lacks,
            "not_known_from": restored.not_known_from.map(show_unix_us),
        }));
    }
    let entries = grouped(restored.entries);
    let to = to.display().to_string();
    let at = restored.position.map(|it| format!(", at position {it}")).unwrap_or_default();
    output::text(format_args!(
        "restored {entries} entries{at}, of backup {}, to {to}",
        restored.backup
    ))?;
    lacking(&lacks);
    if let Some(from) = restored.not_known_from {
        output::note(format_args!(
            "the repository has no change behind {}: if there were any up to the time that was asked for, they are missing",
            show_unix_us(from)
        ));
    }
    output::text(format_args!("start it with: keyway up --data {}", output::shell(&to)))
}

fn brought_back(restore: &Restore, back: &EntriesBack) -> Result<(), Failure> {
    if restore.dry_run {
        return back.show(restore.json);
    }
    if !back.changes().is_empty() {
        let go_on = "the same command with --memberships does the rest";
        restore.administrator.make(&restore.data.folder, back.changes(), go_on)?;
    }
    back.report(restore.json)
}

fn lacking(lacks: &[String]) {
    for what in lacks {
        output::note(format_args!("the backup does not have {what}"));
    }
}

fn bytes(progress: &Progress, done: u64, total: u64) {
    progress.of(total);
    progress.step(done, "");
}

fn made(create: &Create) -> Result<(), Failure> {
    let progress = Progress::bytes("backing up", None);
    let told = &mut |done, total| bytes(&progress, done, total);
    let created =
        backup::create(&create.data.folder, &create.repository.place(), create.with, told)?;
    drop(progress);
    say_created(&created, create.json)
}

fn say_created(created: &Created, in_json: bool) -> Result<(), Failure> {
    let Created { name, meta, bytes, new_bytes, key_file } = created;
    if in_json {
        return output::json(&json!({
            "event": "backed up", "backup": name, "position": meta.position, "entries": meta.entries,
            "bytes": bytes, "new_bytes": new_bytes, "with": with(meta), "key_file": key_file, "left_out": meta.left_out,
        }));
    }
    for file in &meta.left_out {
        output::note(format_args!("not in the backup: {file}"));
    }
    output::text(format_args!(
        "backup {name}: {}, {} entries{}; {} bytes, of which {} are new",
        meta.with,
        grouped(meta.entries),
        position(meta.position),
        grouped(*bytes),
        grouped(*new_bytes)
    ))
}

fn position(position: Option<u64>) -> String {
    position.map(|position| format!(", position {position}")).unwrap_or_default()
}

fn with(meta: &Meta) -> Value {
    json!({ "config": meta.with.config, "keys": meta.with.keys })
}

fn listed(list: &List) -> Result<bool, Failure> {
    let repository = list.repository.place().open()?;
    let all = repository.backups().map_err(Failure::new)?;
    for Listed { name, manifest } in &all {
        let name = name.to_string();
        let meta = match manifest {
            Ok(manifest) => Meta::read(&name, &manifest.meta).map(|meta| (meta, manifest)),
            Err(why) => Err(Failure::new(why)),
        };
        match (meta, list.json) {
            (Ok((meta, manifest)), true) => output::json(&json!({
                "backup": name, "time": Timestamp::from_unix_s(manifest.created_unix_s).to_string(),
                "position": meta.position, "entries": meta.entries, "bytes": manifest.bytes, "with": with(&meta),
                "incarnation": meta.incarnation, "epoch": meta.epoch, "program": meta.version,
            }))?,
            (Ok((meta, manifest)), false) => output::text(format_args!(
                "{name}  {} entries{}, {} bytes: {}",
                grouped(meta.entries),
                position(meta.position),
                grouped(manifest.bytes),
                meta.with
            ))?,
            (Err(why), true) => {
                output::json(&json!({ "backup": name, "damaged": why.to_string() }))?
            }
            (Err(why), false) => output::text(format_args!("{name}  DAMAGED: {why}"))?,
        }
    }
    if all.is_empty() && !list.json {
        output::text("there is no backup yet")?;
    }
    Ok(all.iter().all(|one| one.manifest.is_ok()))
}

fn shown(show: &Show) -> Result<(), Failure> {
    let repository = show.repository.place().open()?;
    let found = repository.backup(&show.backup).map_err(Failure::new)?;
    let name = found.name().to_string();
    let (manifest, meta) = (found.manifest(), Meta::read(&name, &found.manifest().meta)?);
    let time = Timestamp::from_unix_s(manifest.created_unix_s).to_string();
    if show.json {
        let file = |file: &keyway_backup::StoredFile| json!({ "path": file.path, "mode": format!("{:o}", file.mode), "bytes": file.bytes });
        return output::json(&json!({
            "backup": name, "time": time, "position": meta.position, "entries": meta.entries,
            "bytes": manifest.bytes, "with": with(&meta), "incarnation": meta.incarnation, "epoch": meta.epoch,
            "program": meta.version, "lacks": meta.lacks(), "files": found.files().iter().map(file).collect::<Vec<_>>(),
        }));
    }
    output::text(format_args!(
        "backup {name}, begun {time} by version {}\n{} entries{}\nstore {}, epoch {}",
        meta.version,
        grouped(meta.entries),
        position(meta.position),
        meta.incarnation,
        meta.epoch
    ))?;
    for file in found.files() {
        output::text(format_args!("{:>14}  {:o}  {}", grouped(file.bytes), file.mode, file.path))?;
    }
    lacking(&meta.lacks());
    Ok(())
}

fn verified(verify: &Verify) -> Result<bool, Failure> {
    let progress = Progress::bytes("verifying", None);
    let scratch = verify.restore.then_some(verify.scratch.as_path());
    let told = &mut |done, total| bytes(&progress, done, total);
    let found = backup::verify(
        &verify.repository.place(),
        verify.backup.as_deref(),
        scratch,
        verify.set_aside,
        verify.noted_in.as_deref(),
        None,
        told,
    )?;
    drop(progress);
    let restored = found.restored.as_ref().map(|restored| restored.backup.clone());
    if verify.json {
        output::json(&json!({
            "event": "verified", "sound": found.is_sound(), "backups": found.backups, "chunks": found.chunks,
            "segments": found.segments, "bytes": found.bytes, "damage": found.damages, "gaps": found.gaps,
            "lacks": found.lacks, "restored": restored, "restore_failed": found.restore_failed,
            "set_aside": found.set_aside,
        }))?;
        return Ok(found.is_sound());
    }
    found.damages.iter().for_each(|damage| output::note(format_args!("DAMAGED: {damage}")));
    found.gaps.iter().for_each(output::note);
    lacking(&found.lacks);
    if let Some(why) = &found.restore_failed {
        output::note(format_args!("a restore failed: {why}"));
    }
    let read = format!(
        "{} backups, {} pieces, {} segments, {} bytes",
        grouped(found.backups),
        grouped(found.chunks),
        grouped(found.segments),
        grouped(found.bytes)
    );
    match found.damages.is_empty() {
        true if found.gaps.is_empty() => {
            output::text(format_args!("all is as it was written: {read}"))?
        }
        true => output::text(format_args!(
            "what is there is as it was written, and changes are missing: {read}"
        ))?,
        false => {
            let count = grouped(found.damages.len() as u64);
            output::text(format_args!("damaged at {count} places: {read}"))?;
        }
    }
    if found.set_aside > 0 {
        output::text(format_args!(
            "{} damaged files were moved to damaged/: the next backup writes anew what it still needs of them",
            grouped(found.set_aside)
        ))?;
    }
    if let Some(name) = restored {
        output::text(format_args!("backup {name} was restored, opened and checked"))?;
    }
    Ok(found.is_sound())
}

fn pruned(prune: &Prune) -> Result<(), Failure> {
    if [prune.keep_last, prune.keep_daily, prune.keep_weekly, prune.keep_monthly] == [0; 4] {
        return Err(Failure::usage(
            "say which backups are kept: --keep-last N, --keep-daily N, --keep-weekly N, --keep-monthly N",
        ));
    }
    let repository = prune.repository.place().open()?;
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let keep = Keep {
        last: number(prune.keep_last),
        daily: number(prune.keep_daily),
        weekly: number(prune.keep_weekly),
        monthly: number(prune.keep_monthly),
    };
    let pruned = repository.prune(keep, prune.dry_run).map_err(Failure::new)?;
    let names: Vec<String> = pruned.removed.iter().map(ToString::to_string).collect();
    if prune.json {
        return output::json(&json!({
            "event": "pruned", "dry_run": prune.dry_run, "removed": names, "kept": pruned.kept.len(),
            "held_back": pruned.held_back, "chunks": pruned.chunks,
            "segments": pruned.segments, "bytes": pruned.bytes,
        }));
    }
    if let Some(why) = &pruned.held_back {
        output::note(why);
    }
    let gone = if prune.dry_run { "would be removed" } else { "removed" };
    names.iter().try_for_each(|name| output::text(format_args!("{gone}: {name}")))?;
    output::text(format_args!(
        "{} backups {gone}, with them {} pieces and {} segments, {} bytes",
        names.len(),
        grouped(pruned.chunks),
        grouped(pruned.segments),
        grouped(pruned.bytes)
    ))
}

fn going_on(run: &Run) -> Result<(), Failure> {
    let stop = Stop::watch(Second::Ends)?;
    let running = Running { every: run.every, full_every: run.full_every, with: run.with };
    let told = &mut |step: &Step| match step {
        Step::Backup(created) => say_created(created, run.json),
        Step::Changes { position, commits } if run.json => {
            output::json(&json!({ "event": "changes", "position": position, "commits": commits }))
        }
        Step::Changes { commits: 0, .. } => Ok(()),
        Step::Changes { position, commits } => {
            output::text(format_args!("{} commits, up to position {position}", grouped(*commits)))
        }
    };
    backup::run(&run.data.folder, &run.repository.place(), &running, &stop, told)
}
