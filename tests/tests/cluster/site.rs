//! A writer, and what is done with its folder and those of its followers.

use keyway_tests::{Finished, Server, finish, keyway, port};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The ends of all tokens that are made in tests.
const VALID: &str = "10m";

/// A writer with a sample, and folders beside its own.
pub struct Site {
    place: TempDir,
    pub writer: Server,
}

impl Site {
    pub fn new(people: u32) -> Site {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a");
        let writer = Server::start(&folder, &["--sample", &people.to_string()]);
        Site { place, writer }
    }

    /// A folder by its name; the writer's is `a`.
    pub fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A token of the writer.
    pub fn token(&self, more: &[&str]) -> String {
        let words = [&["token", "--valid", VALID], more].concat();
        cluster(&self.at("a"), &words).expect(0).out.trim_end().to_owned()
    }

    /// A join without a start.
    pub fn join(&self, name: &str, token: &str, url: &str) -> Command {
        let mut command = Command::new(keyway());
        command.args(["cluster", "join", "--follow", url, "--join", token, "--data"]);
        command.arg(self.at(name));
        command
    }

    /// The same, run to its end at the writer itself.
    pub fn joined(&self, name: &str, token: &str) -> Finished {
        finish(&mut self.join(name, token, self.writer.ldaps()), "")
    }

    /// A follower, started for the first time.
    pub fn follower(&self, name: &str, token: &str) -> Server {
        let (address, url) = (port(), self.writer.ldaps());
        let mut command = Command::new(keyway());
        command.args(["up", "--json", "--listen", "off", "--listen-tls", &address]);
        command.args(["--follow", url, "--join", token, "--data"]).arg(self.at(name));
        Server::spawn(&mut command)
    }

    /// The names of all members that the writer knows.
    pub fn members(&self) -> Vec<String> {
        let listed = cluster(&self.at("a"), &["members", "--json"]).expect(0).out;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let members = listed["members"].as_array().unwrap();
        members.iter().map(|member| member["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// `keyway cluster` on a folder.
pub fn cluster(data: &Path, words: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    finish(command.arg("cluster").args(words).arg("--data").arg(data), "")
}

/// All entries of a folder that no server uses.
pub fn export(data: &Path) -> String {
    let mut export = Command::new(keyway());
    finish(export.args(["directory", "export", "--data"]).arg(data), "").expect(0).out
}

/// That the store and its indexes are whole.
pub fn check(data: &Path) {
    let mut check = Command::new(keyway());
    finish(check.args(["directory", "check", "--data"]).arg(data), "").expect(0);
}

/// The identity of a folder's store.
pub fn store_of(data: &Path) -> String {
    let version = fs::read_to_string(data.join("version")).unwrap();
    version.lines().find_map(|line| line.strip_prefix("store ")).unwrap().to_owned()
}
