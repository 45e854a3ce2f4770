//! The history of a data folder: a line of JSON in `DIR/history.jsonl` for each import, export, check, backup
//! and rollback, and each verification of backups.
//!
//! It is for people who want to know how old a backup is. Nothing depends on it: a line that makes no sense
//! is left out, and one that cannot be written is a warning.

use crate::data::{self, State, name};
use crate::limits::{
    CHECK_OLD, EXPORT_OLD, HISTORY_BYTES_MAX, HISTORY_LINES_MAX, HISTORY_TEXT_CHARS_MAX,
};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::timestamp::{DAY_S, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, absolute};
use std::time::Duration;

/// The command that is written down for a backup in a repository.
pub const BACKUP: &str = "backup";
/// The command that is written down for a verification of a repository.
pub const VERIFY: &str = "verify";
/// The verdict on changes that were put into a repository behind a backup. Only the last line of these is kept.
pub const CHANGES: &str = "changes";

/// Something that was done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// When it was done, in seconds since 1970.
    pub unix_s: i64,
    /// That time for people (RFC 3339, UTC).
    pub time: String,
    /// `import`, `export`, `check`, `backup`, `rollback` or `verify`.
    pub command: String,
    /// `whole`, `subtree`, `in part` or `changes` of what went in or out, `sound` or `damaged` of a store
    /// or of backups, or `failed`.
    pub verdict: String,
    /// Entries, or records of an import.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// The file's size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How long it took.
    pub seconds: f64,
    /// The file; none for standard input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The entry whose subtree was exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Whether a server went on serving meanwhile.
    #[serde(default)]
    pub served: bool,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Done {
    /// Something that begins now.
    pub fn new(command: &str, file: Option<&Path>) -> Done {
        let file = file.filter(|file| file.as_os_str() != "-");
        let place = |file: &Path| absolute(file).unwrap_or_else(|_| file.to_owned());
        let file = file.map(|file| shortened(&place(file).display().to_string()));
        Done { command: command.to_owned(), file, ..Done::default() }
    }

    /// With what came of it.
    #[must_use]
    pub fn with(mut self, verdict: &str, why: Option<&str>) -> Done {
        self.verdict = verdict.to_owned();
        self.why = why.map(shortened);
        self
    }

    /// Writes it down in this data folder, if it is one.
    pub fn record(mut self, folder: &Path) {
        let now = Timestamp::now();
        (self.unix_s, self.time) = (now.unix_s(), now.to_string());
        if data::look(folder).ok() != Some(State::Ours) {
            return;
        }
        if let Err(why) = self.append(folder) {
            output::note(format_args!("warning: this is not written down: {why}"));
        }
    }

    fn append(self, folder: &Path) -> Result<(), Failure> {
        let _lock = data::lock_edits(folder)?;
        let mut all = read(folder);
        if self.verdict == CHANGES {
            all.retain(|done| done.verdict != CHANGES);
        }
        all.push(self);
        let mut lines = Vec::new();
        let mut bytes = 0;
        for done in all.iter().rev().take(HISTORY_LINES_MAX) {
            let line = serde_json::to_string(done).map_err(Failure::new)? + "\n";
            bytes += line.len();
            if bytes > HISTORY_BYTES_MAX {
                break;
            }
            lines.push(line);
        }
        lines.reverse();
        data::write_secret(folder, name::HISTORY, lines.concat().as_bytes())
    }

    /// Whether all that there was then can be had back: by an export of everything, or a backup, or the changes
    /// since one.
    fn is_backup(&self) -> bool {
        match self.command.as_str() {
            "export" => self.verdict == "whole",
            BACKUP => self.verdict == "whole" || self.verdict == CHANGES,
            _ => false,
        }
    }

    /// Whether it was to be such a one.
    fn was_to_be_backup(&self) -> bool {
        self.command == BACKUP || self.command == "export" && self.base.is_none()
    }

    /// Its text in `cn=monitor`.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let facts = [
            ("unix_s", Some(self.unix_s.to_string())),
            ("time", Some(self.time.clone())),
            ("command", Some(self.command.clone())),
            ("verdict", Some(self.verdict.clone())),
            ("entries", number(self.entries)),
            ("bytes", number(self.bytes)),
            ("seconds", Some(format!("{:.3}", self.seconds))),
            ("file", self.file.clone()),
            ("base", self.base.clone()),
            ("served", Some(self.served.to_string())),
            ("why", self.why.clone()),
        ];
        facts.into_iter().filter_map(|(fact, value)| Some((fact, value?))).collect()
    }

    /// Reads those facts.
    pub fn of_facts(facts: &BTreeMap<String, String>) -> Option<Done> {
        let text = |fact: &str| facts.get(fact).cloned();
        let number = |fact: &str| facts.get(fact)?.parse().ok();
        Some(Done {
            unix_s: facts.get("unix_s")?.parse().ok()?,
            time: text("time")?,
            command: text("command")?,
            verdict: text("verdict")?,
            entries: number("entries"),
            bytes: number("bytes"),
            seconds: facts.get("seconds")?.parse().ok()?,
            file: text("file"),
            base: text("base"),
            served: facts.get("served").is_some_and(|served| served == "true"),
            why: text("why"),
        })
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(HISTORY_TEXT_CHARS_MAX).collect()
}

/// The history of a data folder, the latest last.
pub fn read(folder: &Path) -> Vec<Done> {
    let text = data::read(&folder.join(name::HISTORY)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The last backup or export of everything that went well.
pub fn last_backup(all: &[Done]) -> Option<&Done> {
    all.iter().rev().find(|done| done.is_backup())
}

/// The last check.
pub fn last_check(all: &[Done]) -> Option<&Done> {
    all.iter().rev().find(|done| done.command == "check" && done.verdict != "failed")
}

/// The last verification of backups.
pub fn last_verification(all: &[Done]) -> Option<&Done> {
    all.iter().rev().find(|done| done.command == VERIFY && done.verdict != "failed")
}

/// Warnings about it.
pub fn warnings(all: &[Done], now: Timestamp) -> Vec<String> {
    let age = |done: &Done| now.unix_s().saturating_sub(done.unix_s).max(0);
    let is_old = |done: &Done, old: Duration| age(done).unsigned_abs() > old.as_secs();
    let days = |done: &Done| age(done) / DAY_S;
    let mut warnings = Vec::new();
    match last_backup(all) {
        None => {
            warnings.push("No export of everything is known of, and there is no backup.".to_owned())
        }
        Some(done) if is_old(done, EXPORT_OLD) => {
            warnings.push(format!(
                "The last {} of everything is {} days old.",
                done.command,
                days(done)
            ));
        }
        Some(_) => {}
    }
    let tried = all.iter().rev().find(|done| done.was_to_be_backup());
    if let Some(failed) = tried.filter(|done| done.verdict == "failed") {
        let why = failed.why.as_deref().unwrap_or("it is not known why");
        warnings.push(format!("The last {} failed: {why}.", failed.command));
    }
    let has_repository = all.iter().any(|done| done.command == BACKUP);
    match last_verification(all) {
        None if has_repository => warnings.push("No backup was ever verified.".to_owned()),
        Some(done) if done.verdict != "sound" => {
            let why = done.why.as_deref().unwrap_or("the repository is damaged");
            warnings.push(format!("The last verification of backups found damage: {why}."));
        }
        Some(done) if is_old(done, CHECK_OLD) => {
            warnings.push(format!("The last verification of backups is {} days old.", days(done)))
        }
        _ => {}
    }
    match last_check(all) {
        None => warnings.push("The store was never checked.".to_owned()),
        Some(done) if done.verdict != "sound" => {
            let why = done.why.as_deref().unwrap_or("the store is damaged");
            warnings.push(format!("The last check found damage: {why}."));
        }
        Some(done) if is_old(done, CHECK_OLD) => {
            warnings.push(format!("The last check is {} days old.", days(done)));
        }
        Some(_) => {}
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Folder;

    fn done(command: &str, verdict: &str, day: i64) -> Done {
        let time = Timestamp::from_unix_s(day * DAY_S);
        Done { unix_s: time.unix_s(), time: time.to_string(), ..Done::new(command, None) }
            .with(verdict, None)
    }

    #[test]
    fn old_and_missing_backups_are_warned_of() {
        let at = |day: i64| Timestamp::from_unix_s(day * DAY_S);
        let none = warnings(&[], at(100));
        assert!(none[0].contains("there is no backup") && none[1].contains("never checked"));
        let well = [done("export", "whole", 99), done("check", "sound", 80)];
        assert_eq!(warnings(&well, at(100)), [""; 0]);
        // A clock that was set back.
        assert_eq!(warnings(&well, at(10)), [""; 0]);
        assert_eq!(warnings(&well, at(107)), ["The last export of everything is 8 days old."]);
        let part = [well.as_slice(), &[done("export", "subtree", 107)]].concat();
        assert_eq!(warnings(&part, at(107)).len(), 1);
        let failed = [well.as_slice(), &[done("export", "failed", 100)]].concat();
        assert!(warnings(&failed, at(100))[0].contains("failed"));
        let backup = [well.as_slice(), &[done(BACKUP, "whole", 100)]].concat();
        assert_eq!(warnings(&backup, at(100)), ["No backup was ever verified."]);
        let verified = [backup.as_slice(), &[done(VERIFY, "sound", 100)]].concat();
        assert_eq!(warnings(&verified, at(100)), [""; 0]);
        let old = [verified.as_slice(), &[done(BACKUP, "whole", 131), done("check", "sound", 131)]];
        assert!(warnings(&old.concat(), at(131))[0].contains("31 days old"));
        let spoilt = [verified.as_slice(), &[done(VERIFY, "damaged", 100)]].concat();
        assert!(warnings(&spoilt, at(100))[0].contains("found damage"));
        let damaged = [well.as_slice(), &[done("check", "damaged", 100)]].concat();
        assert!(warnings(&damaged, at(100))[0].contains("found damage"));
    }

    #[test]
    fn it_is_bounded_and_no_damage_to_it_matters() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), Timestamp::now()).unwrap();
        std::fs::write(folder.file(name::HISTORY), "{\"unix_s\":1}\n\nno JSON\n").unwrap();
        done("check", "sound", 1).record(place.path());
        assert_eq!(read(place.path()).len(), 1);
        let line = serde_json::to_string(&done("check", "sound", 2)).unwrap() + "\n";
        let text = line.repeat(HISTORY_LINES_MAX + 5);
        std::fs::write(folder.file(name::HISTORY), text).unwrap();
        done("export", "whole", 3).record(place.path());
        let all = read(place.path());
        assert_eq!(all.len(), HISTORY_LINES_MAX);
        assert_eq!(all.last().map(|done| done.command.as_str()), Some("export"));
        for bad in [&b"\xff\xfe"[..], &vec![b'x'; 2 << 20]] {
            std::fs::write(folder.file(name::HISTORY), bad).unwrap();
            done("export", "whole", 4).record(place.path());
            assert_eq!(read(place.path()).len(), 1);
        }
        // Without a data folder nothing is written.
        let other = tempfile::tempdir().unwrap();
        done("export", "failed", 4).record(other.path());
        assert!(!other.path().join(name::HISTORY).exists());
    }

    #[test]
    fn what_is_told_over_ldap_is_the_same() {
        let one = Done {
            entries: Some(3),
            seconds: 0.25,
            served: true,
            base: Some("o=x=y".to_owned()),
            ..done("export", "subtree", 5)
        };
        let facts = one.facts().into_iter().map(|(name, value)| (name.to_owned(), value));
        assert_eq!(Done::of_facts(&facts.collect()), Some(one));
        assert_eq!(Done::of_facts(&BTreeMap::new()), None);
    }
}
