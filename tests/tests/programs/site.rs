//! Where a test takes place: a server with users and groups, and a machine of its own for the
//! programs.

use keyway_tests::{Finished, Server, finish, nightly};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

pub const BASE: &str = "dc=example,dc=com";
/// The password of all users in `tree.ldif`.
pub const SECRET: &str = "correct horse";
/// The name that the server's certificate is for, and one that it is not for.
pub const HOST: &str = "ldap.example.com";
pub const OTHER_HOST: &str = "other.example.com";
/// Where the machine has the certificate of the server's authority.
pub const CA: &str = "/etc/ssl/certs/keyway.pem";

const TREE: &str = include_str!("tree.ldif");
const GUIDE: &str = include_str!("../../../docs/guide/clients.md");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/machine.sh");
const SETTINGS: &str = "\
[password]
memory_kib = 64
policy = \"cn=default,ou=Policies,dc=example,dc=com\"

[log]
access = \"everything\"
";
/// Debian's packages of what is tested, and of what tests it. `passwd` of sssd asks for passwords by `pam_pwquality`, which
/// needs a dictionary.
const PACKAGES: &str = "sssd-ldap libsss-sudo sudo nslcd libnss-ldapd libpam-ldapd pamtester cracklib-runtime \
     openssh-server openssh-client apache2 curl postfix postfix-ldap postgresql \
     default-jdk-headless maven ldap-utils ldapvi \
     shelldap libio-socket-ssl-perl openssl";

pub struct Site {
    folder: TempDir,
    server: Option<Server>,
    /// Has the machine's namespaces. All that runs there ends with it, and it with this process.
    machine: Child,
}

impl Site {
    /// None where it cannot be, which is said, and in what is not a nightly test.
    pub fn new() -> Option<Site> {
        if !nightly() {
            return None;
        }
        match layers() {
            Ok(layers) => Some(Site::on(layers)),
            Err(why) => {
                skipped(why);
                None
            }
        }
    }

    fn on(layers: &Path) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let (data, tree) = (folder.path().join("data"), folder.path().join("tree.ldif"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("keyway.toml"), SETTINGS).unwrap();
        fs::write(&tree, TREE).unwrap();
        let server = Server::start(&data, &["--name", HOST, "--import", tree.to_str().unwrap()]);
        let machine = machine(layers, &folder.path().join("changes"));
        let site = Site { folder, server: Some(server), machine };
        let authority = fs::read_to_string(site.server().text("ca_certificate")).unwrap();
        site.write(CA, &authority);
        site
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    /// Stops the server and starts it again where it was.
    pub fn restart(&mut self) {
        let server = self.server.take().expect("it runs");
        let (ldap, ldaps) = (server.address().to_owned(), server.tls_address().to_owned());
        assert!(server.stop().success());
        let mut command = Command::new(keyway_tests::keyway());
        command.args(["up", "--json", "--listen", &ldap, "--listen-tls", &ldaps, "--data"]);
        self.server = Some(Server::spawn(command.arg(self.folder.path().join("data"))));
    }

    pub fn port(&self) -> &str {
        self.server().address().rsplit_once(':').unwrap().1
    }

    pub fn tls_port(&self) -> &str {
        self.server().tls_address().rsplit_once(':').unwrap().1
    }

    /// The text that the guide has under this comment, with the server's ports.
    pub fn configuration(&self, name: &str) -> String {
        let (port, tls_port) = (self.port(), self.tls_port());
        guide(name)
            .replace("ldap://ldap.example.com", &format!("ldap://{HOST}:{port}"))
            .replace("ldaps://ldap.example.com", &format!("ldaps://{HOST}:{tls_port}"))
            .replace("ldapserver=ldap.example.com", &format!("ldapserver={HOST} ldapport={port}"))
    }

    /// A program on the machine.
    pub fn inside(&self, program: &str) -> Command {
        let namespaces = format!("/proc/{}/ns", self.machine.id());
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount={namespaces}/mnt"));
        command.arg(format!("--pid={namespaces}/pid_for_children"));
        command.args(["--", program]).env("LC_ALL", "C.UTF-8");
        command
    }

    /// The result of a script in a shell on the machine, within a minute.
    pub fn sh(&self, script: &str, input: &str) -> Finished {
        finish(self.inside("timeout").args(["60", "sh", "-c", script]), input)
    }

    /// The output of a script.
    #[track_caller]
    pub fn out(&self, script: &str) -> String {
        self.sh(script, "").expect(0).out
    }

    /// Waits until it succeeds: programs that remember for a while have no event to wait for.
    #[track_caller]
    pub fn until(&self, script: &str) {
        self.sh(&format!("until {script}; do sleep 0.1; done"), "").expect(0);
    }

    /// Starts what runs until the machine ends. Its output is in `log`.
    #[track_caller]
    pub fn daemon(&self, command: &str) {
        let log = self.log();
        let script = format!("setsid {command} </dev/null >>{} 2>&1 &", log.display());
        self.sh(&script, "").expect(0);
    }

    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// A file of the machine.
    #[track_caller]
    pub fn write(&self, path: &str, text: &str) {
        self.sh(&format!("mkdir -p $(dirname {path}) && cat >{path}"), text).expect(0);
    }

    /// The machine believes another authority from now on.
    pub fn distrust(&self) {
        let new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
                   -subj /CN=Other -keyout /dev/null -out";
        self.sh(&format!("{new} {CA}"), "").expect(0);
    }

    /// Changes entries as the administrator.
    #[track_caller]
    pub fn modify(&self, ldif: &str) {
        finish(&mut self.server().admin_tool("ldapmodify"), ldif).expect(0);
    }

    /// Lines of the access log with all of these words.
    pub fn logged(&self, words: &[&str]) -> usize {
        let log = self.folder.path().join("data/log/access.log");
        let log = fs::read_to_string(log).unwrap();
        log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(40).collect();
            lines.iter().rev().for_each(|line| eprintln!("its log: {line}"));
        }
        let _ = self.machine.kill();
        let _ = self.machine.wait();
    }
}

/// Where something is not to be had: says so, or fails where nothing may be skipped.
pub fn skipped(why: &str) {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!ci, "nothing may be skipped in CI: {why}");
    eprintln!("skipped: {why}");
}

/// A port of loopback that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The indented lines of the guide below the comment `# name`.
fn guide(name: &str) -> String {
    let begin = format!("# {name}");
    let mut lines = GUIDE.lines().skip_while(|line| line.trim() != begin);
    let first = lines.next().unwrap_or_else(|| panic!("the guide has nothing for {name}"));
    let indent = &first[..first.len() - begin.len()];
    let block =
        lines.map_while(|line| if line.is_empty() { Some("") } else { line.strip_prefix(indent) });
    let block: Vec<_> = block.take_while(|line| !line.starts_with("# ")).collect();
    format!("{}\n", block.join("\n").trim_end())
}

/// Layers with the packages, which are installed once.
fn layers() -> &'static Result<PathBuf, String> {
    static LAYERS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    LAYERS.get_or_init(|| {
        let layers = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machine");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", SCRIPT, "install"]).arg(&layers);
        let done = finish(command.args(PACKAGES.split_whitespace()), "");
        let last = done.err.lines().last().unwrap_or_default();
        let why = format!("no machine for other people's programs (root on Debian): {last}");
        if done.code == 0 { Ok(layers) } else { Err(why) }
    })
}

fn machine(layers: &Path, changes: &Path) -> Child {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
    command.args(["sh", SCRIPT, "run"]).arg(layers).arg(changes);
    let mut machine = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(machine.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    machine
}
