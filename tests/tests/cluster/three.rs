//! Three servers of one directory whose ways to each other, and their clients' to them, are links of the test's.

use crate::relay::{CLIENTS, Network};
use crate::site::cluster;
use crate::wire::Wire;
use keyway_codec::message::{ChangeOperation, ResultCode};
use keyway_tests::cryptod::eventually;
use keyway_tests::{Server, finish, keyway, port, secret};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const SERVERS: usize = 3;
pub const NAMES: [&str; SERVERS] = ["a", "b", "c"];

/// How long a command is waited for that asks a server which may be paused; and a promotion, which waits for others itself.
const COMMAND_WAIT: &str = "20";
const PROMOTE_WAIT: &str = "60";

/// How long a client of a test waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The servers.
pub struct Three {
    place: TempDir,
    pub network: Network,
    /// Where each listens, without TLS and with it.
    addresses: [(String, String); SERVERS],
    pub servers: [Option<Server>; SERVERS],
    is_paused: [bool; SERVERS],
}

impl Three {
    /// A writer with a small sample, and two that follow it.
    pub fn new() -> Three {
        Three::with(|_| ())
    }

    /// The same, with something done to the first folder before others have it too.
    pub fn with(prepare: impl FnOnce(&Path)) -> Three {
        Three::filled("", &["--sample", "20"], prepare)
    }

    /// The same, with these settings, and these flags of `keyway up` in place of the sample.
    pub fn filled(settings: &str, flags: &[&str], prepare: impl FnOnce(&Path)) -> Three {
        let place = tempfile::tempdir().unwrap();
        let network = Network::default();
        let addresses = [(); SERVERS].map(|()| (port(), port()));
        let urls: Vec<String> = (0..SERVERS)
            .map(|at| {
                let to = (at, addresses[at].1.clone());
                format!("ldaps://{}", network.listen(None, move || to.clone()))
            })
            .collect();
        let (servers, is_paused) = ([const { None }; SERVERS], [false; SERVERS]);
        let mut three = Three { place, network, addresses, servers, is_paused };
        if !settings.is_empty() {
            fs::create_dir(three.at(0)).unwrap();
            secret(&three.at(0).join("keyway.toml"), settings);
        }
        three.start_with(0, flags);
        three.stop(0);
        prepare(&three.at(0));
        for at in 0..SERVERS {
            if at > 0 {
                let token = cluster(&three.at(0), &["token", "--name", NAMES[at]]).expect(0).out;
                let words = [
                    "cluster",
                    "join",
                    "--follow",
                    &urls[0],
                    "--url",
                    &urls[at],
                    "--join",
                    token.trim_end(),
                ];
                let mut join = Command::new(keyway());
                finish(join.args(words).arg("--data").arg(three.at(at)), "").expect(0);
            }
            three.set(at, "cluster.url", &urls[at]);
            three.start(at);
        }
        three.wait_until_all_take_changes();
        three
    }

    fn wait_until_all_take_changes(&self) {
        let base = "ou=Groups,dc=example,dc=com";
        for server in 0..SERVERS {
            let mut admin = self.admin(server);
            eventually("changes are taken", || {
                let change = [(ChangeOperation::Replace, "description", &["begun"] as &[&str])];
                admin.modify(base, &change, &[]).unwrap().code == ResultCode::Success
            });
        }
    }

    pub fn at(&self, server: usize) -> PathBuf {
        self.place.path().join(NAMES[server])
    }

    /// Where a server takes clients, without TLS.
    pub fn ldap(&self, server: usize) -> &str {
        &self.addresses[server].0
    }

    /// The same, with TLS.
    pub fn ldaps(&self, server: usize) -> &str {
        &self.addresses[server].1
    }

    /// Where clients connect, for a server that `pick` says.
    pub fn clients(&self, mut pick: impl FnMut() -> usize + Send + 'static) -> String {
        let all = self.addresses.clone().map(|(ldap, _)| ldap);
        self.network.listen(Some(CLIENTS), move || {
            let server = pick();
            (server, all[server].clone())
        })
    }

    /// A connection to a server as its administrator.
    pub fn admin(&self, server: usize) -> Wire {
        self.bound(server, "cn=admin,cn=keyway", &self.password())
    }

    /// A connection to a server as this user.
    pub fn bound(&self, server: usize, name: &str, password: &str) -> Wire {
        let connected = Wire::connect(self.ldap(server), PATIENCE);
        let mut wire = connected.unwrap_or_else(|why| {
            panic!("{} cannot be reached: {why}\n{}", NAMES[server], self.logs())
        });
        wire.bind(name, password).unwrap().ok();
        wire
    }

    /// Changes a setting of a server's, which it takes if it runs.
    pub fn set(&self, server: usize, key: &str, value: &str) {
        set(&self.at(server), key, value);
    }

    /// Waits until all servers have what the writer has now.
    pub fn wait_for_all(&self) {
        let begun = Instant::now();
        loop {
            let all: Vec<_> = (0..SERVERS).map(|server| self.status(server)).collect();
            if self.are_one(&all) {
                return;
            }
            let is_early = begun.elapsed() < PATIENCE;
            assert!(is_early, "not all have what the writer has:\n{all:#?}\n{}", self.logs());
        }
    }

    pub fn password(&self) -> String {
        fs::read_to_string(self.at(0).join("admin-password")).unwrap().trim_end().to_owned()
    }

    pub fn start(&mut self, server: usize) {
        self.start_with(server, &[]);
    }

    fn start_with(&mut self, at: usize, more: &[&str]) {
        let (ldap, ldaps) = &self.addresses[at];
        let mut up = Command::new(keyway());
        up.args(["up", "--json", "--listen", ldap, "--listen-tls", ldaps, "--data"]);
        self.network.runs(at, self.at(at));
        let server = Server::spawn(up.arg(self.at(at)).args(more).stderr(self.log(at)));
        self.servers[at] = Some(server);
    }

    /// What a server says on standard error goes to a file beside its folder.
    fn log(&self, at: usize) -> fs::File {
        let file = self.place.path().join(format!("{}.err", NAMES[at]));
        fs::File::options().create(true).append(true).open(file).unwrap()
    }

    pub fn stop(&mut self, server: usize) {
        self.resume(server);
        if let Some(running) = self.servers[server].take() {
            let ended = running.stop();
            assert!(ended.success(), "{}: {ended}\n{}", NAMES[server], self.logs());
        }
    }

    /// kill -9.
    pub fn kill(&mut self, server: usize) {
        self.is_paused[server] = false;
        if let Some(mut server) = self.servers[server].take() {
            server.kill();
        }
    }

    pub fn pause(&mut self, server: usize) {
        self.is_paused[server] |= self.signal(server, Signal::STOP);
    }

    pub fn resume(&mut self, server: usize) {
        if std::mem::take(&mut self.is_paused[server]) {
            self.signal(server, Signal::CONT);
        }
    }

    fn signal(&self, server: usize, signal: Signal) -> bool {
        let Some(server) = &self.servers[server] else { return false };
        for pid in server.server_pids() {
            let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
            let _ = rustix::process::kill_process(pid, signal);
        }
        true
    }

    pub fn is_up(&self, server: usize) -> bool {
        self.servers[server].is_some() && !self.is_paused[server]
    }

    /// `keyway cluster` at a server, which answers JSON; `None` if it says no, or nothing for long.
    pub fn asked(&self, server: usize, word: &str) -> Result<Value, String> {
        let mut command = Command::new("timeout");
        let wait = if word == "promote" { PROMOTE_WAIT } else { COMMAND_WAIT };
        command.arg(wait).arg(keyway()).args(["cluster", word, "--json", "--data"]);
        let said = finish(command.arg(self.at(server)), "");
        match said.code {
            0 => Ok(serde_json::from_str(&said.out).unwrap()),
            _ => Err(format!("{}{}", said.out, said.err)),
        }
    }

    /// How a server is, by itself.
    pub fn status(&self, server: usize) -> Result<Value, String> {
        self.asked(server, "status")
    }

    /// Gives a server the writer's contents and starts it again; whether there was a writer.
    pub fn rejoin(&mut self, server: usize) -> Result<Value, String> {
        self.kill(server);
        let rejoined = self.asked(server, "rejoin");
        self.start(server);
        rejoined
    }

    /// All that members have written out of what only they had.
    pub fn own_changes(&self) -> String {
        let mut all = String::new();
        for server in 0..SERVERS {
            let found = fs::read_dir(self.at(server).join("cluster")).unwrap();
            for file in found.map(|file| file.unwrap().path()) {
                if file.extension().is_some_and(|it| it == "ldif") {
                    all.push_str(&fs::read_to_string(file).unwrap().replace("\n ", ""));
                    all.push('\n');
                }
            }
        }
        all
    }

    /// Waits until all are at one position and say that all is well; members that have to are given the writer's contents.
    pub fn settle(&mut self, within: Duration) {
        let begun = Instant::now();
        self.network.heal();
        for server in 0..SERVERS {
            self.resume(server);
            if self.servers[server].is_none() {
                self.start(server);
            }
        }
        loop {
            let all: Vec<_> = (0..SERVERS).map(|server| self.status(server)).collect();
            if self.are_one(&all) {
                return;
            }
            assert!(
                begun.elapsed() < within,
                "they do not come together:\n{all:#?}\n{}",
                self.logs()
            );
            for (server, status) in all.iter().enumerate() {
                if status.as_ref().is_ok_and(must_rejoin) {
                    // No writer yet: the next round tries again.
                    let _ = self.rejoin(server);
                }
            }
        }
    }

    fn are_one(&self, all: &[Result<Value, String>]) -> bool {
        let Ok(all) = all.iter().cloned().collect::<Result<Vec<_>, _>>() else { return false };
        let count = |role: &str| all.iter().filter(|one| one["role"] == role).count();
        let same = |name: &str| all.iter().all(|one| one[name] == all[0][name]);
        count("writer") == 1
            && count("follower") == SERVERS - 1
            && all.iter().all(|one| one["role"] == "writer" || one["is_connected"] == true)
            && same("epoch")
            && same("position")
            && same("digest")
    }

    /// The ends of all error logs.
    pub fn logs(&self) -> String {
        let mut all = String::new();
        for (server, name) in NAMES.iter().enumerate() {
            let said = self.place.path().join(format!("{name}.err"));
            for file in [self.at(server).join("log/error.log"), said] {
                let log = fs::read_to_string(&file).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let last = &lines[lines.len().saturating_sub(60)..];
                all.push_str(&format!("--- {name}\n{}\n", last.join("\n")));
            }
        }
        all
    }
}

/// Changes a setting of a data folder's.
pub fn set(data: &Path, key: &str, value: &str) {
    let mut set = Command::new(keyway());
    finish(set.args(["config", "set", key, value, "--data"]).arg(data), "").expect(0);
}

/// Whether a member says that only `keyway cluster rejoin` mends it.
pub fn must_rejoin(status: &Value) -> bool {
    let says = |name: &str| status[name].as_str().is_some_and(|it| it.contains("cluster rejoin"));
    status["has_stopped"] == true || says("last_error")
}
