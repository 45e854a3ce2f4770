//! The audit log: a line of JSON for each requested change and for each refusal. It has no secrets.
//!
//! The file is opened anew for each line, so that it may be moved away at any time. A change is on
//! the disk with its line before the caller hears of it; a crash between the two loses the line.
//!
//! Refusals, and those of changes in name spaces too, are written for each user only now and then once there were
//! many ([`super::refusals`]); how many were not is in a line of its own.

use super::access::Caller;
use super::disk::FILE_MODE;
use super::error::Error;
use super::name::is_lookable;
use super::refusals::{Refusals, Unwritten};
use crate::limits::AUDIT_REFUSALS_BYTES_MAX;
use keyway_lock::Unpoisoned;
use rustix::fs::OFlags;
use serde::Serialize;
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// Called with what an operator should be told, from any thread.
pub(super) type Report = Box<dyn Fn(&str) + Send + Sync>;

pub(super) struct Audit {
    path: PathBuf,
    report: Report,
    /// One line at a time.
    appending: Mutex<()>,
    state: Mutex<State>,
    refusals: Mutex<Refusals>,
}

/// Its name, in the store's folder.
pub(super) const FILE: &str = "audit.log";
/// As much of its end as surely has the last change, in bytes.
const END_BYTES: u64 = 256 << 10;

/// The generation of the store after the last change that a log tells of; `None` if it tells of none.
pub(super) fn last_generation(folder: &Path) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Logged {
        generation: Option<u64>,
    }
    let mut file = File::open(folder.join(FILE)).ok()?;
    let start = file.metadata().ok().filter(|it| it.is_file())?.len().saturating_sub(END_BYTES);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut end = Vec::new();
    file.take(END_BYTES).read_to_end(&mut end).ok()?;
    let lines = end.rsplit(|byte| *byte == b'\n');
    let logged = lines.filter_map(|line| serde_json::from_slice::<Logged>(line).ok());
    logged.into_iter().find_map(|line| line.generation)
}

#[derive(Clone, Copy, Default, PartialEq)]
struct State {
    /// It could not be written, and that was reported.
    fails: bool,
    /// It is so long that refusals are left out, and that was reported.
    full: bool,
}

/// A request, as the log tells it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub action: &'static str,
    pub key: &'a str,
    pub by: &'a Caller,
    pub now: SystemTime,
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    uid: u32,
    gid: u32,
    pid: u32,
    executable: Option<Cow<'a, str>>,
    /// The virtual machine that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    vm: Option<&'a str>,
    /// Why there is no executable, of one who was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    unseen: Option<String>,
    action: &'a str,
    /// Nothing where it is no name of a key.
    key: Option<&'a str>,
    version: Option<u32>,
    /// That of the store after a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    result: String,
}

/// Refusals that have no lines.
#[derive(Serialize)]
struct Summary {
    time: String,
    /// Nothing for several.
    uid: Option<u32>,
    action: &'static str,
    count: u64,
    /// When the first of them was.
    since: String,
    result: &'static str,
}

impl Audit {
    pub fn new(path: PathBuf, report: Report) -> Self {
        Audit {
            path,
            report,
            appending: Mutex::default(),
            state: Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    /// Tells an operator something.
    pub fn report(&self, what: &str) {
        (self.report)(what);
    }

    /// Writes down what became of a change, which is on the disk when this returns.
    pub fn change(
        &self,
        asked: Asked<'_>,
        detail: Option<&str>,
        generation: u64,
        result: Result<Option<u32>, &Error>,
    ) {
        if result.is_err() && !is_manager(asked.by) && !self.may_refuse(asked) {
            return;
        }
        let version = result.as_ref().ok().copied().flatten();
        let generation = result.is_ok().then_some(generation);
        let result = result.map_or_else(ToString::to_string, |_| "ok".to_owned());
        let line = asked.line(version, detail, result);
        self.write(&Line { generation, ..line }, true);
    }

    /// Writes down a refusal, for its true reason.
    pub fn refusal(&self, asked: Asked<'_>, why: &Error) {
        if !self.may_refuse(asked) {
            return;
        }
        let mut line = asked.line(None, None, why.to_string());
        line.unseen = asked.by.executable.as_ref().err().map(ToString::to_string);
        self.write(&line, false);
    }

    /// Whether a refusal is written down.
    fn may_refuse(&self, asked: Asked<'_>) -> bool {
        let (may, unwritten) = {
            let mut refusals = self.refusals.lock().unpoisoned();
            refusals.came(asked.by.uid, asked.now)
        };
        self.sum_up(unwritten, asked.now);
        may
    }

    /// Whether it is so long that only administrators may make it longer.
    pub fn is_full(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|it| it.len() >= AUDIT_REFUSALS_BYTES_MAX)
    }

    /// Writes down how many refusals were not, where that is due.
    pub fn settle(&self, now: SystemTime) {
        let due = {
            let mut refusals = self.refusals.lock().unpoisoned();
            refusals.due(now)
        };
        self.sum_up(due, now);
    }

    fn sum_up(&self, all: impl IntoIterator<Item = Unwritten>, now: SystemTime) {
        for Unwritten { uid, count, since } in all {
            let line = Summary {
                time: rfc3339(now),
                uid,
                action: "refusals",
                count,
                since: rfc3339(since),
                result: match uid {
                    Some(_) => "more refusals of this user were not written, since they were many",
                    None => "more refusals of other users were not written, since they were many",
                },
            };
            self.write(&line, false);
        }
    }

    /// A line that cannot be written is reported once, and once more when that is over.
    fn write(&self, line: &impl Serialize, is_change: bool) {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        let appended = {
            let _one = self.appending.lock().unpoisoned();
            self.append(&text, is_change)
        };
        // A refusal does not wait until a change is on the disk.
        let written = appended.and_then(|file| match &file {
            Some(file) if is_change => file.sync_data().map(|()| true),
            file => Ok(file.is_some()),
        });
        let path = self.path.display();
        let mut state = self.state.lock().unpoisoned();
        match written {
            Ok(written) => {
                if !written && !state.full {
                    (self.report)(&format!(
                        "{path}: the audit log is full: refusals are not written until it is moved away"
                    ));
                }
                if state.fails {
                    (self.report)(&format!("{path}: the audit log can be written again"));
                }
                *state = State { fails: false, full: !written || state.full && is_change };
            }
            Err(why) if !state.fails => {
                (self.report)(&format!(
                    "{path}: the audit log cannot be written, and lines of it are lost: {why}"
                ));
                state.fails = true;
            }
            Err(_) => {}
        }
    }

    /// Adds a line, and gives the file; `None` if there was no room.
    fn append(&self, line: &[u8], is_change: bool) -> io::Result<Option<File>> {
        let mut options = OpenOptions::new();
        // To open a FIFO would wait for a reader.
        options
            .append(true)
            .create(true)
            .mode(FILE_MODE)
            .custom_flags(OFlags::NONBLOCK.bits() as i32);
        let mut file = options.open(&self.path)?;
        let before = file.metadata()?.len();
        if !is_change && before + line.len() as u64 > AUDIT_REFUSALS_BYTES_MAX {
            return Ok(None);
        }
        if let Err(why) = file.write_all(line) {
            // No half line before the next one.
            let _ = file.set_len(before);
            return Err(why);
        }
        Ok(Some(file))
    }
}

impl<'a> Asked<'a> {
    fn line(self, version: Option<u32>, detail: Option<&'a str>, result: String) -> Line<'a> {
        let Asked { action, key, by, now } = self;
        Line {
            time: rfc3339(now),
            uid: by.uid,
            gid: by.gid,
            pid: by.pid,
            executable: by.executable.as_ref().ok().map(|path| path.to_string_lossy()),
            vm: by.vm.as_deref(),
            action,
            key: is_lookable(key).then_some(key),
            version,
            generation: None,
            detail,
            unseen: None,
            result,
        }
    }
}

/// Whether it is root or this process' own user, whose refusals are all written.
fn is_manager(caller: &Caller) -> bool {
    caller.vm.is_none() && (caller.uid == 0 || caller.uid == rustix::process::geteuid().as_raw())
}

/// Seconds since 1970; 0 for what was before.
pub(super) fn unix_s(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// RFC 3339, in UTC.
fn rfc3339(at: SystemTime) -> String {
    let seconds = i64::try_from(unix_s(at)).unwrap_or(i64::MAX);
    let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
