//! An etcd of one member or more on loopback, with its data in a folder of its own: its members killed, paused and
//! started again.

use crate::cryptod::eventually;
use crate::port;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const MODULE: &str = include_str!("../etcd/go.mod");

/// Its program: what `KEYWAY_ETCD` names, else that which `cargo xtask test` has built.
///
/// # Panics
/// If the module names no version.
pub fn program() -> PathBuf {
    std::env::var_os("KEYWAY_ETCD").map_or_else(built, PathBuf::from)
}

fn built() -> PathBuf {
    let required =
        MODULE.lines().find_map(|line| line.strip_prefix("require go.etcd.io/etcd/server/v3 v"));
    let version = required.expect("the module names its version");
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools");
    Path::new(tools).join(format!("etcd-{version}/etcd"))
}

/// Whether there is one to start; says why not.
///
/// # Panics
/// In CI, where nothing may be skipped, if there is none.
pub fn available() -> bool {
    crate::available(&[&program().to_string_lossy()])
}

/// Certificates for TLS: files in PEM.
pub struct Certificates<'a> {
    /// The authority of clients and members.
    pub authority: &'a Path,
    /// The member's own, for a client's and a server's part.
    pub certificate: &'a Path,
    /// Its key.
    pub key: &'a Path,
}

struct Member {
    name: String,
    client: String,
    command: Vec<String>,
    child: Option<Child>,
}

/// A running etcd, killed when it is dropped.
pub struct Etcd {
    folder: TempDir,
    members: Vec<Member>,
}

impl Etcd {
    /// Starts so many members, and waits until they have a leader.
    ///
    /// # Panics
    /// If they do not start.
    pub fn start(count: usize) -> Etcd {
        Etcd::with(count, &[])
    }

    /// As [`Etcd::start`], with more flags.
    ///
    /// # Panics
    /// If they do not start.
    pub fn with(count: usize, flags: &[&str]) -> Etcd {
        let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let etcd = Etcd::spawn(count, "http", &flags);
        (0..count).for_each(|member| etcd.wait(member));
        etcd
    }

    /// Starts one that wants certificates of its clients. It may not listen yet.
    ///
    /// # Panics
    /// If it does not start.
    pub fn with_tls(files: &Certificates<'_>) -> Etcd {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let more = [
            "--client-cert-auth".into(),
            format!("--trusted-ca-file={}", text(files.authority)),
            format!("--cert-file={}", text(files.certificate)),
            format!("--key-file={}", text(files.key)),
        ];
        Etcd::spawn(1, "https", &more)
    }

    fn spawn(count: usize, scheme: &str, more: &[String]) -> Etcd {
        let folder = tempfile::tempdir().expect("a folder");
        let addresses: Vec<_> = (0..count).map(|_| [port(), port()]).collect();
        let named = addresses.iter().zip(0..).map(|([_, peer], i)| format!("m{i}=http://{peer}"));
        let all = named.collect::<Vec<_>>().join(",");
        let member = |([client, peer], number): (&[String; 2], usize)| {
            let name = format!("m{number}");
            let data = folder.path().join(&name).to_string_lossy().into_owned();
            let mut command: Vec<String> = [
                format!("--name={name}"),
                format!("--data-dir={data}"),
                format!("--listen-client-urls={scheme}://{client}"),
                format!("--advertise-client-urls={scheme}://{client}"),
                format!("--listen-peer-urls=http://{peer}"),
                format!("--initial-advertise-peer-urls=http://{peer}"),
                format!("--initial-cluster={all}"),
                "--initial-cluster-state=new".into(),
                "--log-level=warn".into(),
            ]
            .into();
            command.extend_from_slice(more);
            Member { name, client: client.clone(), command, child: None }
        };
        let members = addresses.iter().zip(0..).map(member).collect();
        let mut etcd = Etcd { folder, members };
        (0..count).for_each(|member| etcd.begin(member));
        etcd
    }

    /// The addresses for clients, without a scheme.
    pub fn addresses(&self) -> Vec<String> {
        self.members.iter().map(|member| member.client.clone()).collect()
    }

    /// The folder with the data of a member.
    pub fn data(&self, member: usize) -> PathBuf {
        self.folder.path().join(&self.members[member].name)
    }

    /// Starts a member that was killed, and does not wait for it.
    ///
    /// # Panics
    /// If it does not start.
    pub fn begin(&mut self, member: usize) {
        let log = self.folder.path().join(format!("{}.log", self.members[member].name));
        let log = File::options().create(true).append(true).open(log).expect("a log");
        let member = &mut self.members[member];
        let mut command = Command::new(program());
        command.args(&member.command).stdin(Stdio::null()).stdout(Stdio::null());
        member.child = Some(command.stderr(log).spawn().expect("etcd starts"));
    }

    /// Waits until a member has a leader.
    ///
    /// # Panics
    /// If it does not have one before long.
    pub fn wait(&self, member: usize) {
        let address = &self.members[member].client;
        eventually("etcd has a leader", || {
            let health = ask(address, "GET /health", "");
            health.is_some_and(|health| health["health"] == "true")
        });
    }

    /// The member that leads.
    ///
    /// # Panics
    /// If none does before long.
    pub fn leader(&self) -> usize {
        let mut leader = None;
        eventually("etcd has a leader", || {
            leader = self.members.iter().position(|member| {
                let status = ask(&member.client, "POST /v3/maintenance/status", "{}");
                status.is_some_and(|it| {
                    it["leader"] != "0" && it["leader"] == it["header"]["member_id"]
                })
            });
            leader.is_some()
        });
        leader.expect("one")
    }

    /// The answer of the first member to a question in JSON.
    ///
    /// # Panics
    /// If there is none soon.
    pub fn call(&self, path: &str, question: &Value) -> Value {
        let address = &self.members[0].client;
        let answer = ask(address, &format!("POST {path}"), &question.to_string());
        answer.expect("an answer")
    }

    /// kill -9.
    ///
    /// # Panics
    /// If it is not running.
    pub fn kill(&mut self, member: usize) {
        let mut child = self.members[member].child.take().expect("it is running");
        child.kill().expect("a signal");
        child.wait().expect("its end");
    }

    /// Stops a member where it is, or lets it go on.
    ///
    /// # Panics
    /// If it is not running.
    pub fn pause(&self, member: usize, is_paused: bool) {
        let child = self.members[member].child.as_ref().expect("it is running");
        let pid = Pid::from_raw(child.id() as i32).expect("a pid");
        kill_process(pid, if is_paused { Signal::STOP } else { Signal::CONT }).expect("a signal");
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for child in self.members.iter_mut().filter_map(|member| member.child.as_mut()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The JSON that a member answers to a request, if it does so soon.
fn ask(address: &str, request: &str, body: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let length = body.len();
    let head = format!("{request} HTTP/1.0\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.take(1 << 20).read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}
