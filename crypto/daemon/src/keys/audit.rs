//! The audit log: a line of JSON for each change that somebody asked for and for each refusal. It
//! has no secrets.
//!
//! The file is opened anew for each line, so that it may be moved away at any time. A change is on
//! the disk with its line before the caller hears of it; a crash between the two loses the line.

use super::access::Caller;
use super::disk::FILE_MODE;
use super::error::Error;
use crate::limits::AUDIT_REFUSALS_BYTES_MAX;
use serde::Serialize;
use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// Called with what an operator should be told, from any thread.
pub(super) type Report = Box<dyn Fn(&str) + Send + Sync>;

pub(super) struct Audit {
    path: PathBuf,
    report: Report,
    /// One line at a time.
    state: Mutex<State>,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct State {
    /// It could not be written, and that was reported.
    fails: bool,
    /// It is so long that refusals are left out, and that was reported.
    full: bool,
}

/// What somebody asked for.
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
    action: &'a str,
    /// Nothing where it is no name of a key.
    key: Option<&'a str>,
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    result: String,
}

impl Audit {
    pub fn new(path: PathBuf, report: Report) -> Self {
        Audit { path, report, state: Mutex::default() }
    }

    /// Writes down what became of a change, which is on the disk when this returns.
    pub fn change(
        &self,
        asked: Asked<'_>,
        detail: Option<&str>,
        result: Result<Option<u32>, &Error>,
    ) {
        let version = result.as_ref().ok().copied().flatten();
        let result = result.map_or_else(ToString::to_string, |_| "ok".to_owned());
        self.write(&asked.line(version, detail, result), true);
    }

    /// Writes down a refusal, for its true reason.
    pub fn refusal(&self, asked: Asked<'_>, why: &Error) {
        self.write(&asked.line(None, None, why.to_string()), false);
    }

    /// What cannot be written is reported once, and once more when that is over.
    fn write(&self, line: &Line<'_>, is_change: bool) {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path.display();
        match self.append(&text, is_change) {
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

    /// Says whether there was room.
    fn append(&self, line: &[u8], is_change: bool) -> io::Result<bool> {
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).mode(FILE_MODE).open(&self.path)?;
        let before = file.metadata()?.len();
        if !is_change && before + line.len() as u64 > AUDIT_REFUSALS_BYTES_MAX {
            return Ok(false);
        }
        if let Err(why) = file.write_all(line) {
            // No half line before the next one.
            let _ = file.set_len(before);
            return Err(why);
        }
        if is_change {
            file.sync_data()?;
        }
        Ok(true)
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
            executable: by.executable.as_ref().map(|path| path.to_string_lossy()),
            action,
            key: keyway_engine::is_key_name(key).then_some(key),
            version,
            detail,
            result,
        }
    }
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
