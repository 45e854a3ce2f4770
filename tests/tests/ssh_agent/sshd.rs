//! A login: its client has the agent for the user's key, its server for the host's.

use crate::{Agent, generate};
use keyway_tests::cryptod::{Cryptod, eventually};
use keyway_tests::{ALL_CALLERS, Finished, available, finish, port};
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SSHD: &str = "/usr/sbin/sshd";
/// sshd wants this folder, and makes it nowhere.
const SEPARATION: &str = "/run/sshd";

/// An sshd on loopback. Killed when it is dropped.
struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Sshd {
    /// Starts one whose host key is in the agent, and that lets in who has the user's key.
    fn start(agent: &Agent, address: &str, host: &Path, user: &Path) -> Sshd {
        let place = agent.socket.parent().unwrap();
        let configuration = format!(
            "ListenAddress {address}\nHostKey {}\nHostKeyAgent {}\nAuthorizedKeysFile {}\n\
             PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n",
            host.display(),
            agent.socket.display(),
            user.display(),
        );
        let file = place.join("sshd_config");
        fs::write(&file, configuration).unwrap();
        let log = fs::File::create(place.join("sshd.log")).unwrap();
        let mut command = Command::new(SSHD);
        command.args(["-D", "-e", "-f"]).arg(file).stdin(Stdio::null()).stdout(Stdio::null());
        let sshd = Sshd(command.stderr(log).spawn().unwrap());
        eventually("sshd listens", || TcpStream::connect(address).is_ok());
        sshd
    }
}

fn login(agent: &Agent, address: &str, user: &Path, known: &Path) -> Finished {
    let (host, port) = address.split_once(':').unwrap();
    let mut command = agent.command("ssh");
    command.args(["-F", "/dev/null", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"]);
    command.args(["-o", "StrictHostKeyChecking=yes", "-o"]);
    command.arg(format!("UserKnownHostsFile={}", known.display()));
    command.args(["-i", user.to_str().unwrap(), "-p", port, host, "echo", "logged", "in"]);
    finish(&mut command, "")
}

#[test]
fn a_login_uses_the_agent_on_both_sides() {
    if !available(&["ssh", "ssh-add", SSHD]) {
        return;
    }
    // sshd of a user who is not root has no folder to keep its unprivileged half in.
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root starts sshd");
        return;
    }
    fs::create_dir_all(SEPARATION).unwrap();
    let cryptod = Cryptod::start(&[]);
    let rsa = &["rsa-pkcs1-sha-256", "rsa-pkcs1-sha-512"];
    for (name, algorithms) in [
        ("user-ed", &["ed25519"][..]),
        ("user-p384", &["ecdsa-p384-sha-384"]),
        ("user-rsa", rsa),
        ("host-ed", &["ed25519"]),
        ("host-p256", &["ecdsa-p256-sha-256"]),
        ("host-rsa", rsa),
        ("stranger", &["ed25519"]),
    ] {
        generate(&cryptod, name, algorithms, ALL_CALLERS);
    }
    let agent = Agent::start(&cryptod, &[]);
    let known = agent.socket.with_file_name("known_hosts");
    for kind in ["ed", "rsa", "p"] {
        let name = |of: &str, ecdsa: &str| match kind {
            "p" => format!("{of}-{ecdsa}"),
            _ => format!("{of}-{kind}"),
        };
        let (user, host) =
            (agent.public(&name("user", "p384")), agent.public(&name("host", "p256")));
        let address = port();
        let sshd = Sshd::start(&agent, &address, &host, &user);
        let (ip, number) = address.split_once(':').unwrap();
        let line = fs::read_to_string(&host).unwrap();
        fs::write(&known, format!("[{ip}]:{number} {line}")).unwrap();
        let done = login(&agent, &address, &user, &known);
        let log = || fs::read_to_string(agent.socket.with_file_name("sshd.log")).unwrap();
        assert_eq!((done.code, done.out.as_str()), (0, "logged in\n"), "{}{}", done.err, log());
        // A key that the agent has and the server does not know.
        let stranger = login(&agent, &address, &agent.public("stranger"), &known).expect(255).err;
        assert!(stranger.contains("Permission denied"), "{stranger}");
        drop(sshd);
    }
}
