//! Starts and ends: of the agent, and of the cryptod that it is a client of.

use crate::hostile::signs;
use crate::{Agent, generate};
use keyway_tests::cryptod::{Cryptod, eventually};
use keyway_tests::{ALL_CALLERS, available, finish, keyway};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Without cryptod signatures fail at once, and with the next one they work again.
#[test]
fn an_agent_outlives_its_cryptod() {
    if !available(&["ssh-add", "ssh-keygen"]) {
        return;
    }
    let mut cryptod = Cryptod::start(&[]);
    generate(&cryptod, "ed", &["ed25519"], ALL_CALLERS);
    let agent = Agent::start(&cryptod, &[]);
    let blob = agent.blob("ed");
    let mut client = agent.connect();
    let mut signs = || signs(&mut client, &blob);
    assert!(signs());
    let folder = cryptod.folder().clone();
    for is_killed in [true, false] {
        match is_killed {
            true => cryptod.signal(Signal::KILL),
            false => assert!(cryptod.stop().success()),
        }
        eventually("the agent refuses", || !signs());
        assert!(!signs());
        let listed = agent.run("ssh-add", &["-l"], "").expect(1).err;
        assert!(listed.contains("agent refused operation"), "{listed}");
        cryptod = Cryptod::start_on(&folder, &[]);
        // The first request already.
        assert!(signs());
        agent.sign("ed").expect(0);
    }
    // One takes over from another: no request is refused.
    let next = Cryptod::start_on(&folder, &["--take-over"]);
    assert!(signs());
    agent.sign("ed").expect(0);
    assert!(next.stop().success());
}

#[test]
fn a_dead_socket_gives_way_and_a_live_one_does_not() {
    let cryptod = Cryptod::start(&[]);
    let mut first = Agent::start(&cryptod, &[]);
    let mut command = Command::new(keyway());
    command.args(["ssh-agent", "--socket"]).arg(&first.socket);
    command.arg("--cryptod").arg(cryptod.socket());
    let refused = finish(&mut command, "").expect(1).err;
    assert!(refused.contains("another agent listens there"), "{refused}");
    first.process.kill();
    assert!(first.socket.exists());
    let second = Agent::start(&cryptod, &[]);
    let socket = second.socket.clone();
    assert_eq!(second.process.stop().code(), Some(0));
    assert!(!socket.exists());
    // It prints a line for a shell.
    let out = fs::File::create(cryptod.folder().path().join("out")).unwrap();
    let mut command = Command::new(keyway());
    command.args(["ssh-agent", "--socket"]).arg(&socket).arg("--cryptod").arg(cryptod.socket());
    let mut third = command.stdout(out).spawn().unwrap();
    let said = || fs::read_to_string(cryptod.folder().path().join("out")).unwrap();
    eventually("it says where it listens", || said().ends_with('\n'));
    assert_eq!(said(), format!("SSH_AUTH_SOCK={}; export SSH_AUTH_SOCK;\n", socket.display()));
    let pid = rustix::process::Pid::from_child(&third);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    assert_eq!(third.wait().unwrap().code(), Some(0));
    assert!(!socket.exists());
}

/// SIGTERM is the command's, whose end ends the agent.
#[test]
fn a_command_is_asked_to_end() {
    let cryptod = Cryptod::start(&[]);
    let place = cryptod.folder().path();
    let mut command = Command::new(keyway());
    command.args(["ssh-agent", "--cryptod"]).arg(cryptod.socket()).args(["--", "sh", "-c"]);
    command.arg("trap 'exit 3' TERM; echo > ready; while :; do sleep 0.05; done");
    let mut agent = command.current_dir(place).spawn().unwrap();
    eventually("the command runs", || place.join("ready").exists());
    let pid = rustix::process::Pid::from_child(&agent);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    assert!(agent.try_wait().unwrap().is_none());
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(agent.wait().unwrap().code(), Some(3));
}

/// Each signature is asked for by the program that the user has named, and a refusal says why.
#[test]
fn a_signature_is_confirmed() {
    if !available(&["ssh-add", "ssh-keygen"]) {
        return;
    }
    let cryptod = Cryptod::start(&[]);
    generate(&cryptod, "one", &["ed25519"], ALL_CALLERS);
    let place = cryptod.folder().path();
    let (asks, answer) = (place.join("asks"), place.join("answer"));
    let script = "#!/bin/sh\necho \"$SSH_ASKPASS_PROMPT: $1\" >> questions\nexec ./answer\n";
    for (file, text) in [(&asks, script), (&answer, "#!/bin/sh\nexit 1\n")] {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, Permissions::from_mode(0o700)).unwrap();
    }
    let agent = |program: &Path, script: &str| {
        let mut command = Command::new(keyway());
        command.args(["ssh-agent", "--confirm", "--cryptod"]).arg(cryptod.socket());
        command.args(["--", "sh", "-c", script]).env("SSH_ASKPASS", program);
        finish(command.current_dir(place), "")
    };
    let sign = "ssh-add -L > one.pub; ssh-keygen -Y sign -n file -f one.pub < one.pub";
    let refused = agent(&asks, sign);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("no signature with one: it was not confirmed"), "{}", refused.err);
    fs::write(&answer, "#!/bin/sh\nexit 0\n").unwrap();
    agent(&asks, sign).expect(0);
    // It was asked for a line.
    fs::write(&answer, "#!/bin/sh\necho no\n").unwrap();
    assert_ne!(agent(&asks, sign).code, 0);
    let questions = fs::read_to_string(place.join("questions")).unwrap();
    assert_eq!(questions, "confirm: Allow use of the key one?\n".repeat(3));
    let none = agent(Path::new("/no/such/program"), "true").expect(1).err;
    assert!(none.contains("/no/such/program is none"), "{none}");
}

#[test]
fn an_agent_has_a_lifetime() {
    if !available(&["ssh-add", "ssh-keygen"]) {
        return;
    }
    let cryptod = Cryptod::start(&[]);
    generate(&cryptod, "one", &["ed25519"], ALL_CALLERS);
    let mut agent = Agent::start(&cryptod, &["--lifetime", "1ms"]);
    eventually("the agent ends", || !agent.process.is_up());
    assert!(!agent.socket.exists());
    let agent = Agent::start(&cryptod, &["--lifetime", "1h"]);
    agent.public("one");
    let mut command = Command::new(keyway());
    command.args(["ssh-agent", "--lifetime", "1ms", "--cryptod"]).arg(cryptod.socket());
    let listed = finish(command.args(["--", "ssh-add", "-l"]), "");
    assert_eq!((listed.code, &*listed.out), (1, "The agent has no identities.\n"));
}
