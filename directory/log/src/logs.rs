//! The logs of a running server: lines for files, the journal or standard error, written by a thread
//! of their own, so that no thread that logs waits for a disk.

use crate::file::last_lines;
use crate::format;
use crate::limits::LOG_FLUSH_MAX;
use crate::queue::Queue;
use crate::settings::{Settings, To};
use crate::writer::{Lines, Writer};
use keyway_folder::data::Folder;
use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use keyway_server::log::{Access, Field, Kept, Log, Severity};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// The logs, open.
pub struct Logs {
    /// The handle that the rest of the program writes with.
    pub log: Log,
    data: PathBuf,
    queue: Arc<Queue>,
    settings: Mutex<Settings>,
    writer: Option<JoinHandle<()>>,
}

impl Logs {
    /// Opens the logs of a data folder.
    ///
    /// # Errors
    /// If there is no place for the files, except on a full disk: then lines are counted until
    /// there is room. If there is no journal.
    pub fn open(folder: &Folder, settings: &Settings) -> Result<Logs, Failure> {
        let data = folder.path().to_owned();
        let writer = Writer::open(&data, settings)?;
        let queue = Arc::new(Queue::new(settings.line_form(), settings.when_full));
        let (put, sync) = (queue.clone(), queue.clone());
        let log = Log::new(move |record| put.put(record), move || sync.sync(LOG_FLUSH_MAX));
        set(&log, settings);
        let thread = std::thread::Builder::new().name("keyway-log".to_owned());
        let writer = thread
            .spawn({
                let queue = queue.clone();
                move || write(writer, &queue)
            })
            .map_err(|why| Failure::new(format!("cannot start a thread: {why}")))?;
        let settings = Mutex::new(settings.clone());
        Ok(Logs { log, data, queue, settings, writer: Some(writer) })
    }

    fn settings(&self) -> Settings {
        self.settings.lock().unpoisoned().clone()
    }

    /// Writes a line of the error log.
    pub fn say(&self, severity: Severity, event: &str, fields: &[Field<'_>]) {
        self.log.say(SystemTime::now(), severity, event, fields);
    }

    /// Writes those lines of the audit log that its files do not have: a cut of power took them. Where they went
    /// elsewhere, all of them are written again.
    pub fn write_missing(&self, kept: &[Kept]) {
        if kept.is_empty() {
            return;
        }
        let (settings, mut line) = (self.settings(), Vec::new());
        let there = match settings.to {
            To::Files => last_lines(&self.data.join(&settings.folder), "audit"),
            _ => HashSet::new(),
        };
        for one in kept {
            one.record(|record| {
                line.clear();
                format::line(&mut line, record, settings.line_form());
                if !there.contains(&line) {
                    self.log.put(record);
                }
            });
        }
        self.queue.flush(LOG_FLUSH_MAX);
    }

    /// Opens the files again, as these settings say: they may have been renamed. Lines from before
    /// are written to the old ones.
    ///
    /// # Errors
    /// As [`Logs::open`]; then all stays as it was.
    pub fn reopen(&self, settings: &Settings) -> Result<(), Failure> {
        let writer = Writer::open(&self.data, settings)?;
        self.queue.replace(writer, settings.line_form(), settings.when_full);
        set(&self.log, settings);
        self.queue.flush(LOG_FLUSH_MAX);
        *self.settings.lock().unpoisoned() = settings.clone();
        Ok(())
    }
}

/// The thread that writes: it takes what has come together until the queue is closed and empty.
fn write(mut writer: Writer, queue: &Queue) {
    let mut used = Lines::default();
    loop {
        let mut work = queue.next(used);
        writer.write(&work.lines, &work.lost, work.form, work.last);
        // The next writer brings its own files to the disk, and none of these.
        let wanted = work.sync || work.last || work.successor.is_some();
        let synced = wanted && writer.sync_audit();
        if let Some(successor) = work.successor.take() {
            writer.go_on_as(successor);
        }
        queue.finish(&work, synced);
        if work.last {
            return;
        }
        used = work.lines;
        used.iter_mut().for_each(Vec::clear);
    }
}

impl Drop for Logs {
    /// Writes all pending lines. Output that a reader blocks for longer than [`LOG_FLUSH_MAX`] is
    /// not waited for.
    fn drop(&mut self) {
        self.queue.close();
        if self.queue.flush(LOG_FLUSH_MAX)
            && let Some(writer) = self.writer.take()
        {
            // It does not panic; and if it did, no thread could be told.
            let _ = writer.join();
        }
    }
}

fn set(log: &Log, settings: &Settings) {
    match settings.to {
        To::Nowhere => log.set(Access::Off, 1, false),
        _ => log.set(settings.access, settings.access_one_in, settings.audit),
    }
}
