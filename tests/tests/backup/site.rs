//! A repository, the data folder that its backups are of, and the program with both.

use keyway_tests::{Finished, finish, keyway};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program with a data folder.
pub fn keyway_with(words: &[&str], data: &Path) -> Command {
    let mut command = Command::new(keyway());
    command.args(words).arg("--data").arg(data);
    command
}

/// The last line of what it said.
pub fn json(finished: &Finished) -> Value {
    let line = finished.out.lines().last().unwrap_or_default();
    serde_json::from_str(line)
        .unwrap_or_else(|why| panic!("{}{}: {why}", finished.out, finished.err))
}

/// Asserts that it ended by itself, well or with a message.
#[track_caller]
pub fn ended(finished: Finished) -> Finished {
    let said = format!("{}{}", finished.out, finished.err);
    assert!([0, 1].contains(&finished.code), "status {}: {said}", finished.code);
    assert!(!said.contains("panicked"), "{said}");
    assert!(finished.code == 0 || said.len() > 20, "it says nothing: {said:?}");
    finished
}

/// All files below a folder, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

pub struct Site {
    pub data: PathBuf,
    pub repository: PathBuf,
    pub key: PathBuf,
}

impl Site {
    /// With everything in one folder.
    pub fn in_folder(folder: &Path) -> Site {
        Site::new(folder, folder)
    }

    /// With data folder and key in one folder, and the repository in another.
    pub fn new(folder: &Path, backups: &Path) -> Site {
        let [data, key] = ["data", "backup.key"].map(|name| folder.join(name));
        Site { data, repository: backups.join("repository"), key }
    }

    /// A command on the repository.
    pub fn command<S: AsRef<OsStr>>(&self, words: &[&str], flags: &[S]) -> Command {
        let mut command = Command::new(keyway());
        command.args(words).arg(&self.repository).arg("--key-file").arg(&self.key).args(flags);
        command
    }

    pub fn create_command(&self) -> Command {
        let mut create = self.command(&["backup", "create"], &["--json", "--with", "keys,config"]);
        create.arg("--data").arg(&self.data);
        create
    }

    /// Makes a backup; the line that tells of it.
    pub fn create(&self) -> Value {
        json(&finish(&mut self.create_command(), "").expect(0))
    }

    pub fn restore_command(&self, to: &Path, flags: &[&str]) -> Command {
        let mut restore = self.command(&["restore"], flags);
        restore.arg("--json").arg("--to").arg(to);
        restore
    }

    /// How a restore ended. It was done, or has left nothing.
    pub fn try_restore(&self, to: &Path, flags: &[&str]) -> Finished {
        let restored = ended(finish(&mut self.restore_command(to, flags), ""));
        assert_eq!(to.exists(), restored.code == 0, "{}{}", restored.out, restored.err);
        restored
    }

    pub fn verify(&self, flags: &[&str]) -> Finished {
        let mut verify = self.command(&["backup", "verify"], flags);
        ended(finish(verify.arg("--json"), ""))
    }

    /// Names of the backups, oldest first.
    pub fn list(&self) -> Vec<String> {
        let listed = finish(&mut self.command(&["backup", "list"], &["--json"]), "").expect(0);
        let name = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["backup"].as_str().unwrap().to_owned()
        };
        listed.out.lines().map(name).collect()
    }
}
