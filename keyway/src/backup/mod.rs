//! `keyway backup` and `keyway restore`.

mod arguments;

pub use arguments::{Backup, Restore};

use arguments::{Create, Prune, Run, Verify};
use keyway_backup::Keep;
use keyway_host::failure::Failure;
use keyway_host::limits::yield_to_others;
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress;
use keyway_host::shutdown::Stop;
use keyway_host::signals::Second;
use keyway_host::timestamp::show_unix_us;
use keyway_service::backup::{self, AskedEntries, EntriesBack, Running, Step, told};
use serde_json::json;
use std::path::Path;

/// Does what the arguments ask for. Returns whether all is well; what is not has been said.
///
/// # Errors
/// Whatever keeps it from being done.
pub fn run(command: &Backup) -> Result<bool, Failure> {
    yield_to_others();
    match command {
        Backup::Create(create) => made(create).map(|()| true),
        Backup::List(list) => told::list(&list.repository.place(), list.json),
        Backup::Show(show) => {
            told::show(&show.repository.place(), &show.backup, show.json).map(|()| true)
        }
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
    told::lacking(&lacks);
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
    created.say(create.json)
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
    found.say(verify.json)
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
        Step::Backup(created) => created.say(run.json),
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
