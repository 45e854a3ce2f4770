//! `keyway ssh-agent`, with OpenSSH's programs and with clients by hand.

mod hostile;
mod lifetime;
mod openssh;
mod sshd;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_tests::cryptod::Cryptod;
use keyway_tests::{Finished, Server, finish, keyway};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The algorithms of a key, and of which type `ssh-keygen` says that it is.
const KINDS: [(&str, &[&str], &str); 4] = [
    ("ed", &["ed25519"], "(ED25519)"),
    ("p256", &["ecdsa-p256-sha-256"], "(ECDSA)"),
    ("p384", &["ecdsa-p384-sha-384"], "(ECDSA)"),
    ("rsa", &["rsa-pkcs1-sha-256", "rsa-pkcs1-sha-512"], "(RSA)"),
];

/// How long anything may take that takes some milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn key(cryptod: &Cryptod, arguments: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    finish(command.arg("key").args(arguments).arg("--socket").arg(cryptod.socket()), "")
}

fn generate(cryptod: &Cryptod, name: &str, algorithms: &[&str], who: &str) {
    let mut arguments = vec!["generate", name, "--for", who];
    arguments.extend(algorithms.iter().flat_map(|algorithm| ["--algorithm", *algorithm]));
    key(cryptod, &arguments).expect(0);
}

/// An agent with the keys of a cryptod. Killed when it is dropped.
struct Agent {
    process: Server,
    socket: PathBuf,
}

impl Agent {
    fn start(cryptod: &Cryptod, arguments: &[&str]) -> Agent {
        let socket = cryptod.folder().path().join("agent.sock");
        let mut command = Command::new(keyway());
        command.args(["ssh-agent", "--json", "--socket"]).arg(&socket);
        let process = Server::spawn(command.arg("--cryptod").arg(cryptod.socket()).args(arguments));
        assert_eq!(process.text("event"), "ready");
        assert_eq!(Path::new(process.text("socket")), socket);
        Agent { process, socket }
    }

    /// A program that has it for its agent.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SSH_AUTH_SOCK", &self.socket);
        command
    }

    fn run(&self, program: &str, arguments: &[&str], input: &str) -> Finished {
        finish(self.command(program).args(arguments), input)
    }

    /// A file with the public key that the agent lists with this name.
    fn public(&self, name: &str) -> PathBuf {
        let listed = self.run("ssh-add", &["-L"], "").expect(0).out;
        let its = |line: &&str| line.split(' ').nth(2) == Some(name);
        let line = listed.lines().find(its).unwrap_or_else(|| panic!("no {name} in {listed}"));
        let file = self.socket.with_file_name(format!("{name}.pub"));
        std::fs::write(&file, format!("{line}\n")).unwrap();
        file
    }

    /// The public key that the agent lists with this name, as SSH writes it.
    fn blob(&self, name: &str) -> Vec<u8> {
        let line = std::fs::read_to_string(self.public(name)).unwrap();
        BASE64_STANDARD.decode(line.split(' ').nth(1).unwrap()).unwrap()
    }

    /// Signs a text with that key, as `ssh-keygen` does.
    fn sign(&self, name: &str) -> Finished {
        let file = self.public_or_known(name);
        self.run("ssh-keygen", &["-Y", "sign", "-n", "file", "-f", file.to_str().unwrap()], "text")
    }

    fn public_or_known(&self, name: &str) -> PathBuf {
        let file = self.socket.with_file_name(format!("{name}.pub"));
        if file.exists() { file } else { self.public(name) }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}
