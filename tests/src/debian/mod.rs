//! A machine of its own for other people's programs: this Debian with more packages, whose users, PAM and name service are
//! seen by no other process (`machine.sh`). Its network is this one's.

mod maven;
pub mod sssd;

use crate::{Finished, finish, nightly};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The name by which the machine knows loopback and that a server's certificate has to be for, and another such name.
pub const HOST: &str = "ldap.example.com";
/// A name of loopback that no certificate is for.
pub const OTHER_HOST: &str = "other.example.com";
/// Users, groups, rules and policies for a server.
pub const TREE: &str = include_str!("tree.ldif");
/// The suffix of those.
pub const BASE: &str = "dc=example,dc=com";
/// The password of all users there.
pub const SECRET: &str = "correct horse";
/// Where the machine has the certificate of a server's authority.
pub const CA: &str = "/etc/ssl/certs/keyway.pem";

const GUIDE: &str = include_str!("../../../docs/guide/clients.md");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/debian/machine.sh");
/// What was fetched and installed for machines, and stays for the next run.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/packages");
/// Debian's packages of what is tested, and of what tests it. `passwd` of sssd asks for passwords by `pam_pwquality`, which
/// needs a dictionary.
const PACKAGES: &str = "sssd-ldap sssd-tools libsss-sudo sudo nslcd libnss-ldapd libpam-ldapd pamtester \
     cracklib-runtime openssh-server openssh-client apache2 curl postfix postfix-ldap postgresql \
     default-jdk-headless maven ldap-utils ldapvi \
     shelldap libio-socket-ssl-perl openssl";

/// The machine. All that runs there ends with it.
pub struct Machine {
    folder: TempDir,
    /// Has its namespaces, and ends with this process.
    child: Child,
}

impl Machine {
    /// None where it cannot be, which is said, and in what is not a nightly test.
    ///
    /// # Panics
    /// If it cannot be in CI, where nothing may be skipped.
    #[must_use]
    pub fn new() -> Option<Machine> {
        if !nightly() {
            return None;
        }
        match layers() {
            Ok(layers) => Some(Machine::on(layers)),
            Err(why) => {
                skipped(why);
                None
            }
        }
    }

    fn on(layers: &Path) -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
        command.args(["sh", SCRIPT, "run"]).arg(layers).arg(folder.path().join("changes"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process in namespaces");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("it writes");
        assert_eq!(line, "ready\n");
        Machine { folder, child }
    }

    /// A folder of this machine's for its files, which ends with it. What it keeps to itself is in `changes`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A program on the machine.
    #[must_use]
    pub fn inside(&self, program: &str) -> Command {
        let namespaces = format!("/proc/{}/ns", self.child.id());
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount={namespaces}/mnt"));
        command.arg(format!("--pid={namespaces}/pid_for_children"));
        command.args(["--", program]).env("LC_ALL", "C.UTF-8");
        command
    }

    /// The result of a script in a shell on the machine, within a minute.
    #[must_use]
    pub fn sh(&self, script: &str, input: &str) -> Finished {
        finish(self.inside("timeout").args(["60", "sh", "-c", script]), input)
    }

    /// The output of a script.
    ///
    /// # Panics
    /// If it fails.
    #[track_caller]
    pub fn out(&self, script: &str) -> String {
        self.sh(script, "").expect(0).out
    }

    /// Waits until it succeeds: programs that remember for a while have no event to wait for.
    ///
    /// # Panics
    /// If it does not within a minute.
    #[track_caller]
    pub fn until(&self, script: &str) {
        self.sh(&format!("until {script}; do sleep 0.1; done"), "").expect(0);
    }

    /// Starts what runs until the machine ends. Its output is in `log`.
    ///
    /// # Panics
    /// If there is no shell.
    #[track_caller]
    pub fn daemon(&self, command: &str) {
        let log = self.log();
        let script = format!("setsid {command} </dev/null >>{} 2>&1 &", log.display());
        self.sh(&script, "").expect(0);
    }

    /// Where the outputs of daemons are.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder().join("log")
    }

    /// A file of the machine.
    ///
    /// # Panics
    /// If it cannot be written.
    #[track_caller]
    pub fn write(&self, path: &str, text: &str) {
        self.sh(&format!("mkdir -p $(dirname {path}) && cat >{path}"), text).expect(0);
    }

    /// The machine's programs believe the authority whose certificate is in this file, and no other.
    ///
    /// # Panics
    /// If there is no such file.
    #[track_caller]
    pub fn trust(&self, certificate: &Path) {
        self.write(CA, &fs::read_to_string(certificate).expect("a certificate"));
    }

    /// The machine believes another authority from now on.
    ///
    /// # Panics
    /// If OpenSSL makes none.
    pub fn distrust(&self) {
        let new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
                   -subj /CN=Other -keyout /dev/null -out";
        self.sh(&format!("{new} {CA}"), "").expect(0);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(40).collect();
            lines.iter().rev().for_each(|line| eprintln!("its log: {line}"));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where something is not to be had: says so.
///
/// # Panics
/// In CI, where nothing may be skipped.
pub fn skipped(why: &str) {
    assert!(!crate::ci(), "nothing may be skipped in CI: {why}");
    eprintln!("skipped: {why}");
}

/// The text that the guide has under this comment, with the addresses (host and port) of a server without and with TLS.
///
/// # Panics
/// If the guide has none.
#[must_use]
pub fn configuration(name: &str, ldap: &str, ldaps: &str) -> String {
    let (port, tls_port) = (port_of(ldap), port_of(ldaps));
    guide(name)
        .replace("ldap://ldap.example.com", &format!("ldap://{HOST}:{port}"))
        .replace("ldaps://ldap.example.com", &format!("ldaps://{HOST}:{tls_port}"))
        .replace("ldapserver=ldap.example.com", &format!("ldapserver={HOST} ldapport={port}"))
}

/// The port of an address.
#[must_use]
pub fn port_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(_, port)| port)
}

/// The indented lines of the guide below the comment `# name`.
fn guide(name: &str) -> String {
    let begin = format!("# {name}");
    let mut lines = GUIDE.lines().skip_while(|line| line.trim() != begin);
    let first = lines.next().unwrap_or_else(|| panic!("the guide has nothing for {name}"));
    let indent = first.strip_suffix(&begin).unwrap_or_default();
    let block =
        lines.map_while(|line| if line.is_empty() { Some("") } else { line.strip_prefix(indent) });
    let block: Vec<_> = block.take_while(|line| !line.starts_with("# ")).collect();
    format!("{}\n", block.join("\n").trim_end())
}

/// Layers with the packages, which are installed once.
fn layers() -> &'static Result<PathBuf, String> {
    static LAYERS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    LAYERS.get_or_init(|| {
        let layers = Path::new(KEPT).join("machine");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", SCRIPT, "install"]).arg(&layers);
        let done = finish(command.args(PACKAGES.split_whitespace()), "");
        let last = done.err.lines().last().unwrap_or_default();
        let why = format!("no machine for other people's programs (root on Debian): {last}");
        if done.code == 0 { Ok(layers) } else { Err(why) }
    })
}
