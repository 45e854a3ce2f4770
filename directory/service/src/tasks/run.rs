//! A task, done.

use super::board::{Begun, Outcome, Progress};
use super::work::{FILE_END, Work};
use crate::backup::{self, Place, SecretSource, Verified, With};
use crate::export::{Counted, failed};
use crate::instance::entry_count;
use crate::limits::{TASK_BUFFER_BYTES, TASK_RESULT_LINES_MAX};
use keyway_config::{TaskSecret, Tasks as Places};
use keyway_folder::data;
use keyway_folder::history::Done;
use keyway_host::atomic_file::{Target, discard_drafts};
use keyway_host::failure::Failure;
use keyway_host::output::grouped;
use keyway_host::shutdown::{Stop, Stoppable};
use keyway_log::folder_mode;
use keyway_server::Directory;
use keyway_store::Store;
use std::cell::Cell;
use std::fs::{self, DirBuilder};
use std::io::{BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Weak;
use std::time::Instant;

/// The backups of a server have what it can read.
const WITH: With = With { config: true, keys: false };

/// A server as tasks work on it.
pub struct Runner {
    /// Its data folder.
    pub folder: PathBuf,
    /// Its directory, which has the tree of the tasks.
    pub directory: Weak<Directory>,
    /// Its store.
    pub store: Store,
    /// The places that its configuration names, from the root on.
    pub places: Places,
    /// The socket of its cryptod.
    pub cryptod: PathBuf,
}

impl Runner {
    /// Takes away what a server before this one has left of exports that were under way.
    pub(super) fn tidy(&self) {
        discard_drafts(&self.places.exports, FILE_END);
    }

    /// Does it.
    pub(super) fn run(&self, task: &Begun) -> Outcome {
        let Begun { work, progress, stop, .. } = task;
        let done = match work {
            Work::Export { base, file } => self.export(base.as_deref(), file, stop, progress),
            Work::Backup => self.back_up(stop, progress),
            Work::Verify => self.verify(stop, progress),
        };
        done.unwrap_or_else(|why| {
            let line = if stop.is_asked() { "it was stopped".to_owned() } else { why.to_string() };
            Outcome { is_well: false, lines: vec![line] }
        })
    }

    fn export(
        &self,
        base: Option<&str>,
        file: &str,
        stop: &Stop,
        progress: &Progress,
    ) -> Result<Outcome, Failure> {
        let begun = Instant::now();
        let path = self.places.exports.join(file);
        let mut done = Done { served: true, ..Done::new("export", Some(&path)) };
        done.base = base.map(ToOwned::to_owned);
        let exported = self.export_to(&path, base, stop, progress);
        done.seconds = begun.elapsed().as_secs_f64();
        let done = match &exported {
            Ok((entries, bytes)) => {
                (done.entries, done.bytes) = (Some(*entries), Some(*bytes));
                done.with(if base.is_some() { "subtree" } else { "whole" }, None)
            }
            Err(why) => done.with("failed", Some(&why.to_string())),
        };
        if exported.is_ok() || !stop.is_asked() {
            done.record(&self.folder);
        }
        let (entries, bytes) = exported?;
        let (entries, bytes) = (grouped(entries), grouped(bytes));
        Ok(well(format!("exported {entries} entries, {bytes} bytes, into {}", path.display())))
    }

    fn export_to(
        &self,
        path: &PathBuf,
        base: Option<&str>,
        stop: &Stop,
        progress: &Progress,
    ) -> Result<(u64, u64), Failure> {
        let directory = self.directory.upgrade().ok_or_else(|| Failure::new("the server ends"))?;
        let (folder, mode) = (&self.places.exports, self.places.mode);
        data::is_not_own(&self.folder, path)?;
        let made = DirBuilder::new().recursive(true).mode(folder_mode(mode)).create(folder);
        made.map_err(|why| Failure::system("make the folder of exports", folder, &why))?;
        if fs::symlink_metadata(path).is_ok() {
            let path = path.display();
            return Err(Failure::new(format!("{path} is there already: name another file")));
        }
        // How many there are below one is not known.
        let total = base.map_or_else(|| entry_count(&self.store), |_| Ok(0))?;
        let target = Target::open(path, &[])?;
        let bytes = Cell::new(0);
        let counted = Counted::new(target.writer()?, &bytes);
        let stoppable = Stoppable::new(counted, Some(stop));
        let mut out = BufWriter::with_capacity(TASK_BUFFER_BYTES, stoppable);
        let exported =
            directory.export(base, &mut out, &mut |entries| progress.set(entries, total));
        let entries = exported.map_err(|why| failed(&target, why, base))?;
        out.flush().map_err(|why| target.cannot_write(&why))?;
        target.set_mode(mode)?;
        target.finish_new()?;
        Ok((entries, bytes.get()))
    }

    fn back_up(&self, stop: &Stop, progress: &Progress) -> Result<Outcome, Failure> {
        let place = self.repository()?;
        let created = backup::create_served(
            &self.folder,
            &self.store,
            &place,
            WITH,
            stop,
            &mut |done, of| progress.set(done, of),
        )?;
        let (entries, bytes) = (grouped(created.meta.entries), grouped(created.bytes));
        let new = grouped(created.new_bytes);
        let line =
            format!("backup {}: {entries} entries, {bytes} bytes, {new} of them new", created.name);
        Ok(well(line))
    }

    fn verify(&self, stop: &Stop, progress: &Progress) -> Result<Outcome, Failure> {
        let place = self.repository()?;
        let folder = Some(self.folder.as_path());
        let verified =
            backup::verify(&place, None, None, false, folder, Some(stop), &mut |done, of| {
                progress.set(done, of)
            })?;
        let Verified { backups, chunks, bytes, segments, damages, gaps, .. } = &verified;
        let (chunks, bytes) = (grouped(*chunks), grouped(*bytes));
        let verdict = match damages.len() {
            0 => "sound".to_owned(),
            damaged => format!("{} damaged", grouped(damaged as u64)),
        };
        let first = format!(
            "{backups} backups, {segments} segments, {chunks} pieces of {bytes} bytes: {verdict}"
        );
        let more = damages.iter().chain(gaps).take(TASK_RESULT_LINES_MAX).cloned();
        let lines = [first].into_iter().chain(more).collect();
        Ok(Outcome { is_well: verified.is_sound(), lines })
    }

    fn repository(&self) -> Result<Place, Failure> {
        let Some(folder) = self.places.repository.clone() else {
            return Err(Failure::new(
                "no repository is named: make one with keyway backup create, name it in [tasks] of keyway.toml, and start \
                 the server again",
            ));
        };
        if let Some(TaskSecret::KeyFile(path) | TaskSecret::PassphraseFile(path)) =
            &self.places.secret
        {
            let file = fs::metadata(path).map_err(|why| Failure::system("read", path, &why))?;
            if !file.is_file() {
                // It would be waited for, and with it every other task.
                return Err(Failure::new(format!("{} is no plain file", path.display())));
            }
        }
        let secret = Some(match self.places.secret.clone() {
            Some(TaskSecret::KeyFile(path)) => SecretSource::KeyFile(path),
            Some(TaskSecret::PassphraseFile(path)) => SecretSource::PassphraseFile(path),
            None => SecretSource::Cryptod { name: None, socket: self.cryptod.clone() },
        });
        Ok(Place { folder, secret })
    }
}

fn well(line: String) -> Outcome {
    Outcome { is_well: true, lines: vec![line] }
}
