//! The history of a data folder, below `cn=Backups,cn=monitor`.

use crate::limits::HISTORY_MONITORED_MAX;
use keyway_folder::data::name;
use keyway_folder::history::{Done, read};
use keyway_ldapd::monitor_branch;
use keyway_lock::Unpoisoned;
use keyway_server::VirtualEntry;
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
}

impl Monitor {
    /// A monitor of this data folder; the folder is not looked at yet.
    pub fn of(folder: &Path) -> Arc<Monitor> {
        Arc::new(Monitor { folder: folder.to_owned(), seen: Mutex::default() })
    }

    /// Reads it again if it has changed.
    pub fn look(&self) {
        let file = fs::metadata(self.folder.join(name::HISTORY)).ok();
        let stamp = file.and_then(|file| Some((file.modified().ok()?, file.len())));
        let mut seen = self.seen.lock().unpoisoned();
        if seen.0 != stamp {
            *seen = (stamp, read(&self.folder));
        }
    }

    /// Its entries, the latest last.
    pub fn entries(&self) -> Vec<VirtualEntry> {
        let seen = self.seen.lock().unpoisoned();
        let from = seen.1.len().saturating_sub(HISTORY_MONITORED_MAX);
        let shown = seen.1.iter().enumerate().skip(from);
        let told: Vec<_> =
            shown.map(|(number, done)| (format!("Line {number}"), done.facts())).collect();
        monitor_branch("Backups", "When all of it was exported, imported and checked", None, &told)
    }
}
