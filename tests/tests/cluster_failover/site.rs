//! Three servers and their etcd, as an administrator sets them up, and what is done to them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyway_tests::client::Client;
use keyway_tests::etcd::Etcd;
use keyway_tests::{Finished, Server, finish, keyway, port, secret};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const PEOPLE: &str = "ou=People,dc=example,dc=com";
pub const NAMES: [&str; 3] = ["a", "b", "c"];
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Longer than any server holds an answer back.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Waits until something is there.
#[track_caller]
pub fn until<R>(what: &str, mut found: impl FnMut() -> Option<R>) -> R {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        sleep(LOOK_AGAIN);
    }
}

/// A server's place: it stays when the server is gone.
pub struct Place {
    pub folder: PathBuf,
    /// Host and port for clients, without and with TLS.
    pub addresses: [String; 2],
    pub server: Option<Server>,
}

impl Place {
    pub fn new(root: &Path, name: &str, etcd: &str) -> Place {
        let (folder, addresses) = (root.join(name), [port(), port()]);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let text = format!("[cluster]\n{etcd}url = \"ldaps://{}\"\n", addresses[1]);
        secret(&folder.join("keyway.toml"), &text);
        Place { folder, addresses, server: None }
    }

    pub fn start(&mut self, more: &[&str]) {
        let [ldap, ldaps] = &self.addresses;
        let mut up = Command::new(keyway());
        up.args(["up", "--json", "--listen", ldap, "--listen-tls", ldaps, "--data"]);
        let server = Server::spawn(up.arg(&self.folder).args(more));
        assert!(server.ready["ldap"].is_string(), "{}", server.ready);
        self.server = Some(server);
    }

    /// Stops it if it runs, and puts other text into its settings in the place of some.
    pub fn set(&mut self, old: &str, new: &str) {
        if let Some(server) = self.server.take() {
            assert!(server.stop().success());
        }
        let file = self.folder.join("keyway.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(old), "{text}");
        secret(&file, &text.replace(old, new));
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    pub fn cluster(&self, words: &[&str]) -> Finished {
        let mut command = Command::new(keyway());
        finish(command.arg("cluster").args(words).arg("--data").arg(&self.folder), "")
    }

    /// How the server says it is, if it does.
    pub fn status(&self) -> Option<Value> {
        self.server.as_ref()?;
        serde_json::from_str(&self.cluster(&["status", "--json"]).out).ok()
    }

    /// What it says is wrong.
    pub fn trouble(&self) -> String {
        let status = self.status().unwrap_or_default();
        status["last_error"].as_str().unwrap_or_default().to_owned()
    }

    pub fn export(&self) -> String {
        let mut export = Command::new(keyway());
        export.args(["directory", "export", "--data"]).arg(&self.folder);
        finish(&mut export, "").expect(0).out
    }

    pub fn signal(&self, signal: Signal) {
        for id in self.server().server_pids() {
            kill_process(Pid::from_raw(id as i32).unwrap(), signal).unwrap();
        }
    }
}

/// The servers, and their etcd.
pub struct Site {
    pub places: Vec<Place>,
    pub etcd: Etcd,
    password: String,
    _root: TempDir,
}

impl Site {
    /// Starts so many servers with a lease of so many seconds; 0: the default.
    pub fn new(servers: usize, members_of_etcd: usize, lease_s: u64) -> Site {
        let etcd = Etcd::start(members_of_etcd);
        let urls: Vec<_> = etcd.addresses().iter().map(|at| format!("\"http://{at}\"")).collect();
        let lease = if lease_s > 0 { format!("lease_s = {lease_s}\n") } else { String::new() };
        Site::with(servers, etcd, &format!("etcd = [{}]\n{lease}", urls.join(", ")))
    }

    pub fn with(servers: usize, etcd: Etcd, settings: &str) -> Site {
        let root = tempfile::tempdir().unwrap();
        let names = &NAMES[..servers];
        let places = names.iter().map(|name| Place::new(root.path(), name, settings)).collect();
        let mut site = Site { places, etcd, password: String::new(), _root: root };
        site.places[0].start(&["--sample", "20"]);
        site.password = site.places[0].server().password();
        for (number, name) in names.iter().enumerate().skip(1) {
            // The first is alone until it has made a token.
            let writer = if number > 1 { site.writer() } else { 0 };
            let token = site.places[writer].cluster(&["token", "--valid", "10m"]).expect(0).out;
            let url = format!("ldaps://{}", site.places[writer].addresses[1]);
            let join = ["--follow", &url, "--join", token.trim_end()];
            site.places[number].start(&[&join[..], &["--member-name", name]].concat());
        }
        site
    }

    /// A connection of the administrator.
    pub fn client(&self, place: usize) -> Client {
        connect(&self.places[place].addresses[0], &self.password, SILENCE_MAX).unwrap()
    }

    /// The name in etcd of a key of this cluster, in base64 as etcd's JSON has it.
    pub fn key(&self, name: &str) -> String {
        let members = self.places[0].cluster(&["members", "--json"]).expect(0).out;
        let members: Value = serde_json::from_str(&members).unwrap();
        let cluster = members["cluster"].as_str().unwrap();
        STANDARD.encode(format!("/keyway/{cluster}/{name}"))
    }

    pub fn password(&self) -> &str {
        &self.password
    }

    /// kill -9, of a server with all that it has started.
    pub fn kill(&mut self, place: usize) {
        self.places[place].server.take().expect("it runs").kill();
    }

    /// The server that writes, as it says itself.
    pub fn writer(&self) -> usize {
        until("a writer", || self.find_writer())
    }

    fn find_writer(&self) -> Option<usize> {
        let all: Vec<_> = self.places.iter().map(Place::status).collect();
        let highest = all.iter().flatten().filter_map(|it| it["epoch"].as_u64()).max()?;
        let writes = |it: &Option<Value>| {
            let it = it.as_ref().filter(|it| it["role"] == "writer" && it["epoch"] == highest);
            it.is_some_and(|it| it["last_error"].is_null())
        };
        all.iter().position(writes)
    }

    /// Waits until something is there. Where it takes long, what all servers say of themselves is written out.
    #[track_caller]
    pub fn until<R>(&self, what: &str, mut found: impl FnMut() -> Option<R>) -> R {
        let (begun, mut is_said) = (Instant::now(), false);
        until(what, || {
            if begun.elapsed() > PATIENCE / 2 && !is_said {
                is_said = true;
                let all: Vec<_> = self.places.iter().map(Place::status).collect();
                eprintln!("{all:#?}");
            }
            found()
        })
    }

    /// Waits until all servers that run stand at one position, with one digest of the last row and one of their entries.
    pub fn settle(&self) -> u64 {
        self.until("all servers at one position", || {
            let running = self.places.iter().filter(|place| place.server.is_some());
            let all: Option<Vec<_>> = running.map(Place::status).collect();
            let all = all?;
            let first = all.first()?;
            let same = |it: &Value| {
                let points = ["position", "digest", "epoch", "writer", "contents"];
                points.iter().all(|name| it[name] == first[name])
            };
            all.iter().all(same).then(|| first["position"].as_u64())?
        })
    }

    /// Stops all servers and compares what they have, which is returned.
    pub fn end(mut self) -> String {
        self.settle();
        for place in &mut self.places {
            if let Some(server) = place.server.take() {
                assert!(server.stop().success());
            }
        }
        let all: Vec<_> = self.places.iter().map(Place::export).collect();
        all.iter().zip(NAMES).for_each(|(it, name)| assert!(*it == all[0], "{name} has others"));
        all[0].clone()
    }
}

pub fn connect(address: &str, password: &str, silence: Duration) -> Result<Client, String> {
    let address: SocketAddr = address.parse().unwrap();
    let mut client = Client::connect(address)?;
    client.give_up_after(silence)?;
    client.bind("cn=admin,cn=keyway", password)?;
    Ok(client)
}

pub fn add(client: &mut Client, uid: &str) -> Result<(), String> {
    let attributes: [(&str, &[&str]); 4] = [
        ("objectClass", &["inetOrgPerson"]),
        ("uid", &[uid]),
        ("cn", &["Some One"]),
        ("sn", &["One"]),
    ];
    client.add(&dn(uid), &attributes)
}

pub fn dn(uid: &str) -> String {
    format!("uid={uid},{PEOPLE}")
}

/// Adds one entry, for as long as there is no writer: on a slow disk etcd may be late, and the lease ends.
pub fn add_in_time(uid: &str, mut client: impl FnMut() -> Client) {
    let mut is_tried = false;
    until("an entry is added", || {
        let added = add(&mut client(), uid);
        // One that was unavailable may be done.
        let is_done = is_tried && added.as_ref().is_err_and(|why| why.contains("AlreadyExists"));
        is_tried = true;
        match added {
            Err(why) if !is_done && !why.contains("unavailable") => panic!("{uid}: {why}"),
            added => (is_done || added.is_ok()).then_some(()),
        }
    });
}

/// Adds entries with such names, until one is taken.
pub fn add_until_taken(what: &str, uid: &str, mut client: impl FnMut() -> Option<Client>) {
    let mut number = 0;
    until(what, || {
        number += 1;
        add(&mut client()?, &format!("{uid}-{number}")).ok()
    });
}
