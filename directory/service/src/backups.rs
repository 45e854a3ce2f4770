//! The history of a data folder, below `cn=Backups,cn=monitor`; the age of its last backup, and a warning of one that
//! has failed.

use crate::limits::HISTORY_MONITORED_MAX;
use keyway_folder::data::name;
use keyway_folder::history::{BACKUP, Done, last_backup, read};
use keyway_ldapd::monitor_branch;
use keyway_lock::Unpoisoned;
use keyway_log::Logs;
use keyway_meter::{Gauge, gauge};
use keyway_server::VirtualEntry;
use keyway_server::log::{Severity, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// The metadata of the file that changes when it is replaced; `None` if there is none.
type Stamp = Option<(SystemTime, u64)>;

/// The last of it, as it was a second ago.
pub struct Monitor {
    folder: PathBuf,
    seen: Mutex<(Stamp, Vec<Done>)>,
    last: Gauge,
}

impl Monitor {
    /// A monitor of this data folder; the folder is not looked at yet.
    pub fn of(folder: &Path) -> Arc<Monitor> {
        let last = gauge("backup.last");
        Arc::new(Monitor { folder: folder.to_owned(), seen: Mutex::default(), last })
    }

    /// Reads it again if it has changed, and says which backup has failed since.
    pub fn look(&self, logs: &Logs) {
        let file = fs::metadata(self.folder.join(name::HISTORY)).ok();
        let stamp = file.and_then(|file| Some((file.modified().ok()?, file.len())));
        let mut seen = self.seen.lock().unpoisoned();
        if seen.0 == stamp {
            return;
        }
        let is_first = seen.0.is_none();
        let all = read(&self.folder);
        let last = last_backup(&all).and_then(|done| u64::try_from(done.unix_s).ok());
        self.last.set(last.unwrap_or_default());
        let failed = all.last().filter(|done| done.command == BACKUP && done.verdict == "failed");
        // One that a server before this one has told is no news.
        if let Some(failed) = failed.filter(|failed| !is_first && seen.1.last() != Some(failed)) {
            let why = failed.why.as_deref().unwrap_or("it is not known why");
            let text = format!("a backup failed: {why}");
            logs.say(Severity::Warning, "backup", &[("text", Value::Text(&text))]);
        }
        *seen = (stamp, all);
    }

    /// Its entries, the latest last.
    pub fn entries(&self) -> Vec<VirtualEntry> {
        let seen = self.seen.lock().unpoisoned();
        let from = seen.1.len().saturating_sub(HISTORY_MONITORED_MAX);
        let shown = seen.1.iter().enumerate().skip(from);
        let told: Vec<_> =
            shown.map(|(number, done)| (format!("Line {number}"), done.facts())).collect();
        monitor_branch(
            "Backups",
            "When all of it was exported, imported, checked and backed up",
            None,
            &told,
        )
    }
}
