//! Writers that are replaced, copied, restored or silent, and members that lack what is not kept any more.

use crate::clients::BELOW;
use crate::relay::Way;
use crate::site::cluster;
use crate::three::{SERVERS, Three, must_rejoin};
use keyway_codec::message::ChangeOperation::Replace;
use keyway_codec::message::ResultCode;
use keyway_tests::cryptod::eventually;
use keyway_tests::{Server, finish, keyway, secret};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SETTLED_WITHIN: Duration = Duration::from_secs(120);
const CHANGE: &[(keyway_codec::message::ChangeOperation, &str, &[&str])] =
    &[(Replace, "description", &["x"])];

fn last_error(three: &Three, server: usize) -> String {
    let status = three.status(server).unwrap();
    status["last_error"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_writer_that_was_replaced_while_it_lives_follows() {
    let mut three = Three::new();
    let (mut old, mut new) = (three.admin(0), three.admin(1));
    old.modify(BELOW, CHANGE, &[]).unwrap().ok();
    assert_eq!(three.asked(1, "promote").unwrap()["epoch"], 2);
    new.modify(BELOW, CHANGE, &[]).unwrap().ok();
    let follows = |three: &Three| {
        let status = three.status(0).unwrap();
        status["role"] == "follower" && status["is_connected"] == true && status["epoch"] == 2
    };
    eventually("it follows", || follows(&three));
    eventually("it takes changes for the new one", || {
        old.modify(BELOW, CHANGE, &[]).unwrap().code == ResultCode::Success
    });
    // One that was not there to hear of it does so as well.
    three.wait_for_all();
    three.kill(1);
    three.asked(2, "promote").unwrap();
    three.start(1);
    eventually("the second one follows the third", || {
        let status = three.status(1).unwrap();
        status["role"] == "follower" && status["is_connected"] == true && status["epoch"] == 3
    });
    assert_eq!(three.own_changes(), "");
    three.wait_for_all();
}

#[test]
fn a_writer_that_was_replaced_and_has_changes_of_its_own_refuses_others() {
    let mut three = Three::new();
    let (mut old, mut new) = (three.admin(0), three.admin(1));
    three.wait_for_all();
    three.network.set(0, 1, Way::Cut);
    three.network.set(0, 2, Way::Cut);
    let own = "only at the old one";
    old.modify(BELOW, &[(Replace, "description", &[own])], &[]).unwrap().ok();
    assert_eq!(three.asked(1, "promote").unwrap()["epoch"], 2);
    new.modify(BELOW, CHANGE, &[]).unwrap().ok();
    three.network.heal();
    let mut refused = None;
    eventually("it refuses", || {
        refused = Some(old.modify(BELOW, CHANGE, &[]).unwrap());
        refused.as_ref().is_some_and(|it| it.code != ResultCode::Success)
    });
    let refused = refused.unwrap();
    assert!(
        [ResultCode::UnwillingToPerform, ResultCode::Unavailable].contains(&refused.code),
        "{refused:?}"
    );
    eventually("it cannot follow", || three.status(0).unwrap()["has_stopped"] == true);
    eventually("it says what to do", || {
        let text = old.modify(BELOW, CHANGE, &[]).unwrap().text;
        text.contains("keyway cluster rejoin") && text.contains("ldaps://")
    });
    assert_eq!(three.status(0).unwrap()["role"], "fenced");
    // It serves what it has, and so it does after a start.
    old.read(BELOW, &[], &[]).unwrap().ok();
    three.kill(0);
    three.start(0);
    let mut old = three.admin(0);
    eventually("it is fenced still", || {
        old.modify(BELOW, CHANGE, &[]).unwrap().text.contains("keyway cluster rejoin")
    });
    three.settle(SETTLED_WITHIN);
    assert_eq!(three.status(1).unwrap()["role"], "writer");
    assert!(three.own_changes().contains(own), "{}", three.own_changes());
}

#[test]
fn reads_go_on_while_the_writer_is_silent() {
    let mut three = Three::new();
    let (mut one, mut other) = (three.admin(1), three.admin(2));
    three.wait_for_all();
    three.pause(0);
    let refused = one.modify(BELOW, CHANGE, &[]).unwrap().expect(ResultCode::Unavailable);
    assert!(refused.text.contains("the server that writes"), "{refused:?}");
    for wire in [&mut one, &mut other] {
        wire.read(BELOW, &[], &[]).unwrap().ok();
        wire.read("cn=monitor", &[], &[]).unwrap().ok();
    }
    eventually("the follower tells of it", || {
        let status = three.status(2).unwrap();
        status["is_connected"] == false && status["last_error"].is_string()
    });
    let mut health = Command::new(keyway());
    health.args(["health", "--ready", "--max-lag", "1s", "--data"]).arg(three.at(2));
    eventually("it is not ready", || finish(&mut health, "").code != 0);
    three.asked(2, "promote").unwrap();
    eventually("the other one follows", || {
        one.modify(BELOW, CHANGE, &[]).is_ok_and(|it| it.code == ResultCode::Success)
    });
    three.settle(SETTLED_WITHIN);
    assert_eq!(three.status(2).unwrap()["role"], "writer");
}

fn backup(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(keyway());
    command.args(words).arg(folder.join("repository"));
    command.arg("--key-file").arg(folder.join("backup.key"));
    command
}

/// A store that was restored is another history: those that followed the old one do not follow it.
#[test]
fn a_writer_that_was_restored_is_refused_by_its_followers() {
    let mut three = Three::new();
    let place = tempfile::tempdir().unwrap();
    let mut create = backup(place.path(), &["backup", "create"]);
    finish(create.args(["--with", "keys,config", "--data"]).arg(three.at(0)), "").expect(0);
    three.admin(0).modify(BELOW, CHANGE, &[]).unwrap().ok();
    three.wait_for_all();
    let before = three.status(1).unwrap()["position"].clone();
    three.kill(0);
    let restored = place.path().join("restored");
    finish(backup(place.path(), &["restore"]).arg("--to").arg(&restored), "").expect(0);
    // The folder's place in the cluster is not in a backup.
    fs::rename(three.at(0).join("store"), place.path().join("old store")).unwrap();
    fs::rename(restored.join("store"), three.at(0).join("store")).unwrap();
    fs::copy(restored.join("version"), three.at(0).join("version")).unwrap();
    three.start(0);
    for follower in 1..SERVERS {
        eventually("it is refused", || {
            last_error(&three, follower).contains("keyway cluster rejoin")
        });
        assert_eq!(three.status(follower).unwrap()["position"], before);
        three.admin(follower).read(BELOW, &[], &[]).unwrap().ok();
    }
    // One of those that live is made the writer, and the restored one begins anew with its contents.
    three.asked(1, "promote").unwrap();
    three.settle(SETTLED_WITHIN);
    assert_eq!(three.status(1).unwrap()["role"], "writer");
}

/// Copies a folder as cp -a does.
fn copy(from: &Path, to: &Path) {
    finish(Command::new("cp").arg("-a").arg(from).arg(to), "").expect(0);
}

#[test]
fn a_copy_of_the_writers_folder_does_not_write_beside_it() {
    let three = Three::new();
    three.admin(0).modify(BELOW, CHANGE, &[]).unwrap().ok();
    three.wait_for_all();
    let twin = three.at(0).with_file_name("twin");
    copy(&three.at(0), &twin);
    let server = Server::start(&twin, &[]);
    let mut wire = crate::wire::Wire::connect(server.address(), Duration::from_secs(60)).unwrap();
    wire.bind("cn=admin,cn=keyway", &three.password()).unwrap().ok();
    // It writes nothing before it has asked the others, and then neither.
    for _ in 0..3 {
        let refused = wire.modify(BELOW, CHANGE, &[]).unwrap();
        assert_ne!(refused.code, ResultCode::Success, "{refused:?}");
    }
    eventually("it says so", || {
        let status = cluster(&twin, &["status", "--json"]);
        status.code == 0 && status.out.contains("\"fenced\"")
    });
    let refused = wire.modify(BELOW, CHANGE, &[]).unwrap();
    assert_ne!(refused.code, ResultCode::Success, "{refused:?}");
    three.admin(0).modify(BELOW, CHANGE, &[]).unwrap().ok();
    three.wait_for_all();
}

/// Of a follower's folder and its copy, one follows: the one that was first, until it is gone.
#[test]
fn a_copy_of_a_followers_folder_follows_when_the_first_one_is_gone() {
    let mut three = Three::new();
    three.wait_for_all();
    let twin = three.at(2).with_file_name("twin");
    copy(&three.at(2), &twin);
    let _server = Server::start(&twin, &[]);
    let status = || {
        let said = cluster(&twin, &["status", "--json"]).expect(0).out;
        serde_json::from_str::<serde_json::Value>(&said).unwrap()
    };
    let line = "another process with this member's identifier is running";
    eventually("it says so", || {
        status()["last_error"].as_str().is_some_and(|it| it.contains(line))
    });
    assert_eq!(status()["is_connected"], false);
    three.admin(0).modify(BELOW, CHANGE, &[]).unwrap().ok();
    three.wait_for_all();
    let last = three.status(2).unwrap()["position"].clone();
    assert_ne!(status()["position"], last);
    let log = fs::read_to_string(twin.join("log/error.log")).unwrap();
    assert_eq!(log.matches(line).count(), 1, "{log}");
    three.kill(2);
    eventually("it follows", || status()["is_connected"] == true && status()["position"] == last);
}

/// A follower that was away for so long that the rows it lacks are gone says so in one line, and begins anew.
#[test]
fn a_follower_that_lacks_rows_which_are_gone_says_so() {
    let mut three = Three::with(|data| {
        for (key, value) in [("feed.bytes_max", "4096"), ("cluster.member_age_max_s", "1")] {
            crate::three::set(data, key, value);
        }
    });
    let last = three.status(2).unwrap()["position"].as_u64().unwrap();
    three.stop(2);
    let mut wire = three.admin(0);
    let value = "x".repeat(900);
    let next = (last + 1).to_string();
    eventually("rows are removed", || {
        wire.modify(BELOW, &[(Replace, "description", &[&value])], &[]).unwrap().ok();
        let mut changes = Command::new(keyway());
        changes.args(["directory", "changes", "--from", &next, "--to", &next, "--data"]);
        let told = finish(changes.arg(three.at(0)), "");
        told.err.contains("does not have position")
    });
    three.start(2);
    eventually("it says so", || last_error(&three, 2).contains("keyway cluster rejoin"));
    let status = three.status(2).unwrap();
    assert!(must_rejoin(&status), "{status}");
    // The writer lives and has what this one lacks: it is not made the writer by mistake.
    let refused = three.asked(2, "promote").unwrap_err();
    assert!(refused.contains("is at position") && refused.contains("--force"), "{refused}");
    assert_eq!(three.status(0).unwrap()["role"], "writer");
    let log = fs::read_to_string(three.at(2).join("log/error.log")).unwrap();
    let told: Vec<&str> =
        log.lines().filter(|line| line.contains("keyway cluster rejoin")).collect();
    assert_eq!(told.len(), 1, "{log}");
    three.settle(SETTLED_WITHIN);
}

/// Entries that are imported beside the servers go into the feed, or followers say that they lack them.
#[test]
fn an_import_at_the_writer_comes_to_its_followers() {
    let mut three = Three::new();
    three.stop(0);
    let file = three.at(0).with_file_name("more.ldif");
    let mut ldif = String::new();
    for number in 0..500 {
        let cn = format!("imported-{number}");
        ldif.push_str(&format!(
            "dn: cn={cn},{BELOW}\nobjectClass: organizationalRole\ncn: {cn}\n\n"
        ));
    }
    secret(&file, &ldif);
    let mut import = Command::new(keyway());
    finish(import.args(["directory", "import", "--data"]).arg(three.at(0)).arg(&file), "")
        .expect(0);
    three.start(0);
    three.settle(SETTLED_WITHIN);
    for server in 0..SERVERS {
        three.admin(server).read(&format!("cn=imported-499,{BELOW}"), &[], &[]).unwrap().ok();
    }
}

#[test]
fn a_follower_that_is_started_again_goes_on() {
    let mut three = Three::new();
    for round in 0..3 {
        match round {
            0 => three.stop(1),
            _ => three.kill(1),
        }
        three.admin(2).modify(BELOW, CHANGE, &[]).unwrap().ok();
        three.start(1);
        three.wait_for_all();
    }
}
