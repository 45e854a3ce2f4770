//! OpenSSH's own programs as clients.

use crate::hostile::signs;
use crate::{Agent, KINDS, generate, key};
use keyway_tests::cryptod::{Cryptod, as_user};
use keyway_tests::{ALL_CALLERS, UNPRIVILEGED, available, finish, keyway};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const NEEDS: &[&str] = &["ssh-add", "ssh-keygen"];

#[test]
fn keys_of_every_kind_sign() {
    if !available(NEEDS) {
        return;
    }
    let cryptod = Cryptod::start(&[]);
    KINDS
        .iter()
        .for_each(|(name, algorithms, _)| generate(&cryptod, name, algorithms, ALL_CALLERS));
    generate(&cryptod, "vault", &["aes-256-gcm"], ALL_CALLERS);
    generate(&cryptod, "pss", &["rsa-pss-sha-256"], ALL_CALLERS);
    generate(&cryptod, "other", &["ed25519"], "user:4294967294");
    let agent = Agent::start(&cryptod, &[]);
    let listed = agent.run("ssh-add", &["-l"], "").expect(0).out;
    let listed: Vec<_> = listed.lines().map(|line| line.rsplit_once(' ').unwrap()).collect();
    assert_eq!(listed.len(), KINDS.len(), "{listed:?}");
    for ((line, kind), (name, _, expected)) in listed.iter().zip(KINDS) {
        assert!(line.ends_with(&format!(" {name}")) && *kind == expected, "{line}{kind}");
    }
    let place = cryptod.folder().path();
    for (name, ..) in KINDS {
        let public = agent.public(name);
        if name != "rsa" {
            // For RSA the one of OpenSSH 9.2 asks for SHA-1.
            agent.run("ssh-add", &["-T", public.to_str().unwrap()], "").expect(0);
        }
        let signature = place.join(format!("{name}.sig"));
        fs::write(&signature, agent.sign(name).expect(0).out).unwrap();
        let line = fs::read_to_string(&public).unwrap();
        fs::write(place.join("allowed"), format!("me {line}")).unwrap();
        let verify = ["-Y", "verify", "-f", "allowed", "-I", "me", "-n", "file", "-s"];
        let mut command = Command::new("ssh-keygen");
        command.args(verify).arg(signature).current_dir(place);
        assert!(finish(&mut command, "text").expect(0).out.starts_with("Good \"file\" signature"));
    }
    assert_eq!(agent.process.stop().code(), Some(0));
}

/// An agent without keys of its own: what would change them is refused.
#[test]
fn keys_are_not_added_removed_or_locked() {
    if !available(NEEDS) {
        return;
    }
    let cryptod = Cryptod::start(&[]);
    generate(&cryptod, "ed", &["ed25519"], ALL_CALLERS);
    let agent = Agent::start(&cryptod, &[]);
    let own = cryptod.folder().path().join("own");
    let make = ["-q", "-t", "ed25519", "-N", "", "-f", own.to_str().unwrap()];
    agent.run("ssh-keygen", &make, "").expect(0);
    let refused = agent.run("ssh-add", &[own.to_str().unwrap()], "").expect(1);
    assert!(refused.err.contains("agent refused operation"), "{}", refused.err);
    let public = agent.public("ed");
    agent.run("ssh-add", &["-d", public.to_str().unwrap()], "").expect(1);
    agent.run("ssh-add", &["-D"], "").expect(1);
    agent.run("ssh-add", &["-l"], "").expect(0);
}

/// A command has the agent as long as it runs; the agent takes only the keys that are named.
#[test]
fn a_command_has_an_agent_of_its_own() {
    if !available(NEEDS) {
        return;
    }
    let cryptod = Cryptod::start(&[]);
    let place = cryptod.folder().path();
    for name in ["one", "two", "three"] {
        generate(&cryptod, name, &["ed25519"], ALL_CALLERS);
    }
    let agent = |arguments: &[&str]| {
        let mut command = Command::new(keyway());
        command.arg("ssh-agent").arg("--cryptod").arg(cryptod.socket()).args(arguments);
        // Not for other users' eyes: it is where agents of commands are.
        fs::set_permissions(place, Permissions::from_mode(0o700)).unwrap();
        finish(command.env("XDG_RUNTIME_DIR", place), "")
    };
    let script =
        "echo $SSH_AUTH_SOCK; stat -c %a $SSH_AUTH_SOCK ${SSH_AUTH_SOCK%/*}; ssh-add -l; exit 7";
    let ran = agent(&["--key", "one", "--key", "three", "--", "sh", "-c", script]).expect(7).out;
    let lines: Vec<_> = ran.lines().collect();
    assert!(lines[0].starts_with(place.to_str().unwrap()), "{ran}");
    assert_eq!(lines[1..3], ["600", "700"]);
    assert!(
        lines[3].contains(" one ") && lines[4].contains(" three ") && lines.len() == 5,
        "{ran}"
    );
    let folder = std::path::Path::new(lines[0]).parent().unwrap();
    assert!(!folder.exists(), "{ran}");
    let unknown = agent(&["--key", "four", "--", "true"]).expect(1).err;
    assert!(unknown.contains("has no key four that this user"), "{unknown}");
    let missing = agent(&["--", "/no/such/program"]).expect(1).err;
    assert!(missing.contains("cannot start /no/such/program"), "{missing}");
    assert_eq!(agent(&["--", "sh", "-c", "kill -TERM $$"]).code, 128 + 15);
    agent(&["--json", "--", "true"]).expect(2);
    // Neither of them left anything.
    let left = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("keyway-ssh");
    assert_eq!(fs::read_dir(place).unwrap().flatten().filter(left).count(), 0);
}

/// It has the rights of its caller: a user's keys are those that the user was granted, and change with the grants.
#[test]
fn an_agent_has_the_rights_of_its_user() {
    if !available(NEEDS) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root becomes other users");
        return;
    }
    let cryptod = Cryptod::for_every_user(&[]);
    let their = format!("user:{UNPRIVILEGED}");
    generate(&cryptod, "roots", &["ed25519"], "user:0");
    generate(&cryptod, "theirs", &["ed25519"], &their);
    let place = cryptod.folder().path();
    std::os::unix::fs::chown(place, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    let agent = as_user(UNPRIVILEGED, || Agent::start(&cryptod, &[]));
    // Root may connect, and gets the user's keys.
    let list = || agent.run("ssh-add", &["-l"], "");
    let listed = list().expect(0).out;
    assert!(listed.contains(" theirs ") && !listed.contains("roots"), "{listed}");
    agent.sign("theirs").expect(0);
    // Other users may not, even where the folder and the file would let them.
    fs::set_permissions(&agent.socket, Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(place, Permissions::from_mode(0o755)).unwrap();
    let stranger = as_user(UNPRIVILEGED - 1, || agent.run("ssh-add", &["-l"], ""));
    assert!(stranger.code != 0 && stranger.out.is_empty(), "{}", stranger.out);
    as_user(UNPRIVILEGED, || list().expect(0));
    // A new version is another key: no other signs in the place of the one that was asked for.
    let (old, mut client) = (agent.blob("theirs"), agent.connect());
    assert!(signs(&mut client, &old));
    key(&cryptod, &["rotate", "theirs"]).expect(0);
    assert!(!signs(&mut client, &old));
    let new = agent.blob("theirs");
    assert!(signs(&mut client, &new) && old != new);
    key(&cryptod, &["forbid", "theirs", "--for", &their]).expect(0);
    assert!(!signs(&mut client, &new));
    assert_eq!(list().expect(1).out, "The agent has no identities.\n");
}
