//! Who writes, and which members hear of it: promotions among members that are behind, ahead, out of reach, or have stopped.

use crate::clients::BELOW;
use crate::relay::Way;
use crate::site::cluster;
use crate::three::{SERVERS, Three, must_rejoin};
use crate::wire::Wire;
use keyway_codec::message::ChangeOperation::Replace;
use keyway_codec::message::ResultCode;
use keyway_tests::cryptod::eventually;
use keyway_tests::{finish, keyway};
use rustix::process::Signal;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const SETTLED_WITHIN: Duration = Duration::from_secs(120);
const PATIENCE: Duration = Duration::from_secs(60);

fn describe(wire: &mut Wire, value: &str) -> ResultCode {
    wire.modify(BELOW, &[(Replace, "description", &[value])], &[]).unwrap().code
}

fn position(three: &Three, server: usize) -> u64 {
    three.status(server).unwrap()["position"].as_u64().unwrap()
}

/// A cluster whose second member lacks a change that the two others have, with that change's value.
fn one_is_behind() -> (Three, &'static str) {
    let (three, value) = (Three::new(), "what one lacks");
    three.wait_for_all();
    three.network.set(0, 1, Way::Cut);
    assert_eq!(describe(&mut three.admin(0), value), ResultCode::Success);
    eventually("the other one has it", || position(&three, 2) == position(&three, 0));
    assert!(position(&three, 1) < position(&three, 0));
    (three, value)
}

/// The same, where that member has been made the writer, and reaches the others.
fn one_that_is_behind_writes() -> (Three, &'static str) {
    let (three, value) = one_is_behind();
    let refused = three.asked(1, "promote").unwrap_err();
    assert!(refused.contains("c is at position") && refused.contains("--force"), "{refused}");
    assert_eq!(three.status(1).unwrap()["role"], "follower");
    assert_eq!(three.status(0).unwrap()["role"], "writer");
    let promoted = cluster(&three.at(1), &["promote", "--force"]).expect(0);
    assert!(promoted.out.contains("(epoch 2)"), "{}", promoted.out);
    three.network.heal();
    eventually("the other one stops", || must_rejoin(&three.status(2).unwrap()));
    (three, value)
}

#[test]
fn an_old_writer_hears_of_a_new_one_that_none_reaches() {
    let three = Three::new();
    three.wait_for_all();
    let mut old = three.admin(0);
    three.network.hide(1);
    three.network.set(0, 1, Way::Cut);
    three.network.set(1, 2, Way::Cut);
    assert_eq!(three.asked(1, "promote").unwrap()["epoch"], 2);
    // No member could be told yet: two write, and `status --all` says so.
    assert_eq!(describe(&mut old, "x"), ResultCode::Success);
    let told = cluster(&three.at(1), &["status", "--all"]).expect(1);
    assert!(told.err.contains("more than one member writes"), "{}", told.err);
    assert_eq!(told.out.matches("  writer, epoch").count(), 2, "{}", told.out);
    three.network.heal();
    // It cannot reach the new one, and so does not know whether it can follow.
    eventually("it refuses changes", || {
        let refused = old.modify(BELOW, &[(Replace, "description", &["y"])], &[]).unwrap();
        refused.code == ResultCode::Unavailable && refused.text.contains("was replaced")
    });
    let told = cluster(&three.at(1), &["status", "--all"]).expect(0);
    assert_eq!(told.out.matches("  writer, epoch").count(), 1, "{}", told.out);
    assert!(!told.err.contains("more than one"), "{}", told.err);
}

/// The two writers never reach each other; the third member reaches both.
#[test]
fn an_old_writer_hears_of_a_new_one_from_a_follower() {
    let three = Three::new();
    three.wait_for_all();
    let mut old = three.admin(0);
    three.network.set(0, 1, Way::Cut);
    assert_eq!(three.asked(1, "promote").unwrap()["epoch"], 2);
    eventually("it refuses changes", || describe(&mut old, "x") != ResultCode::Success);
    eventually("the follower follows the new one", || {
        let status = three.status(2).unwrap();
        status["epoch"] == 2 && status["is_connected"] == true
    });
    assert_eq!(describe(&mut three.admin(2), "y"), ResultCode::Success);
}

#[test]
fn a_promotion_waits_for_what_a_living_member_has() {
    let (three, value) = one_is_behind();
    let last = position(&three, 0);
    let mut promote = Command::new(keyway());
    promote.args(["cluster", "promote", "--data"]).arg(three.at(1)).stdout(Stdio::null());
    let mut promote = promote.spawn().unwrap();
    three.network.heal();
    assert!(promote.wait().unwrap().success());
    assert!(position(&three, 1) > last);
    let read = three.admin(1).read(BELOW, &["description"], &[]).unwrap().ok();
    assert_eq!(read.entries[0].values("description"), [value]);
}

#[test]
fn members_that_are_ahead_of_a_new_writer_stop_with_one_line() {
    let (mut three, value) = one_that_is_behind_writes();
    let status = three.status(2).unwrap();
    let why = status["last_error"].as_str().unwrap();
    assert!(why.contains("following has stopped") && why.contains("keyway cluster rejoin"));
    assert_eq!((&status["role"], &status["is_connected"]), (&"follower".into(), &false.into()));
    let mut health = Command::new(keyway());
    let health = finish(health.args(["health", "--ready", "--data"]).arg(three.at(2)), "");
    assert!(health.expect(1).out.contains("keyway cluster rejoin"));
    // It sends changes to the new writer, and says no more of it meanwhile.
    let mut wire = three.admin(2);
    eventually("changes are taken", || describe(&mut wire, "after") == ResultCode::Success);
    let log = fs::read_to_string(three.at(2).join("log/error.log")).unwrap();
    assert_eq!(log.matches("keyway cluster rejoin").count(), 1, "{log}");
    assert_eq!(three.status(2).unwrap()["last_error"], why);
    three.settle(SETTLED_WITHIN);
    assert!(three.own_changes().contains(value), "{}", three.own_changes());
}

/// A person decides for those that have the change: the old writer is promoted once more. A follower that has stopped goes
/// on with it, with the store that it has.
#[test]
fn a_follower_that_has_stopped_follows_a_newer_reign() {
    let (three, value) = one_that_is_behind_writes();
    eventually("the old writer is fenced", || three.status(0).unwrap()["role"] == "fenced");
    cluster(&three.at(0), &["promote", "--force"]).expect(0);
    eventually("it follows again", || {
        let status = three.status(2).unwrap();
        status["is_connected"] == true && status["epoch"] == 3 && !must_rejoin(&status)
    });
    assert_eq!(describe(&mut three.admin(0), "after"), ResultCode::Success);
    eventually("it has all", || position(&three, 2) == position(&three, 0));
    let folder = fs::read_dir(three.at(2)).unwrap().map(|it| it.unwrap().file_name());
    let kept = folder.filter(|name| name.to_string_lossy().contains("before-rejoin")).count();
    assert_eq!((kept, three.own_changes().contains(value)), (0, false));
    eventually("the second one is fenced", || three.status(1).unwrap()["role"] == "fenced");
}

/// Adds entries until one is refused or not answered. Returns the names of those that the server said were added.
fn add_all(mut wire: Wire, name: &str, added: &AtomicUsize) -> Vec<String> {
    let mut all = Vec::new();
    for number in 0.. {
        let dn = format!("cn={name}{number},{BELOW}");
        let role: [(&str, &[&str]); 1] = [("objectClass", &["organizationalRole"])];
        match wire.add(&dn, &role, &[]) {
            Ok(answer) if answer.code == ResultCode::Success => all.push(dn),
            _ => break,
        }
        added.fetch_add(1, Ordering::Relaxed);
    }
    all
}

#[test]
fn a_writer_that_is_stopped_takes_no_acknowledged_change_with_it() {
    let mut three = Three::new();
    three.wait_for_all();
    let added = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let all = std::thread::scope(|scope| {
        let added = &added;
        let clients = [0, 1].map(|server| {
            let wire = three.admin(server);
            scope.spawn(move || add_all(wire, &format!("of{server}-"), &added[server]))
        });
        eventually("both add entries", || {
            added.iter().all(|added| added.load(Ordering::Relaxed) > 20)
        });
        three.servers[0].as_ref().unwrap().signal(Signal::TERM);
        // The promotion waits for its end.
        three.asked(1, "promote").unwrap();
        clients.map(|client| client.join().unwrap()).concat()
    });
    has_all(&three, &[1, 2], &all);
    eventually("it has ended", || !three.servers[0].as_mut().unwrap().is_up());
    three.start(0);
    three.wait_for_all();
}

/// Clients of all servers add entries, and promotions are made meanwhile. Returns what was said to be added.
fn added_beside(three: &Three, promotions: impl FnOnce()) -> Vec<String> {
    let added: [AtomicUsize; SERVERS] = Default::default();
    let goes_on = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..SERVERS)
            .map(|server| {
                let wire = three.admin(server);
                let (added, goes_on) = (&added[server], &goes_on);
                scope.spawn(move || {
                    let mut wire = wire;
                    let mut all = Vec::new();
                    for number in 0.. {
                        let name = format!("of{server}-{number}");
                        let dn = format!("cn={name},{BELOW}");
                        let role: [(&str, &[&str]); 1] = [("objectClass", &["organizationalRole"])];
                        let answer = wire.add(&dn, &role, &[]).unwrap();
                        if answer.code == ResultCode::Success {
                            all.push(dn);
                            added.fetch_add(1, Ordering::Relaxed);
                        }
                        if !goes_on.load(Ordering::Relaxed) {
                            return all;
                        }
                    }
                    all
                })
            })
            .collect();
        eventually("all add entries", || {
            added.iter().all(|added| added.load(Ordering::Relaxed) > 20)
        });
        promotions();
        goes_on.store(false, Ordering::Relaxed);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

fn has_all(three: &Three, servers: &[usize], all: &[String]) {
    for server in servers {
        let mut wire = three.admin(*server);
        for dn in all {
            eventually(&format!("{dn} is there"), || {
                wire.read(dn, &["cn"], &[]).is_ok_and(|found| found.code == ResultCode::Success)
            });
        }
    }
}

#[test]
fn a_promotion_beside_a_writer_that_lives_loses_no_change() {
    let three = Three::new();
    three.wait_for_all();
    let all = added_beside(&three, || {
        three.asked(1, "promote").unwrap();
    });
    has_all(&three, &[1, 2], &all);
    three.wait_for_all();
    let status = three.status(0).unwrap();
    assert_eq!((&status["role"], &status["epoch"]), (&"follower".into(), &2.into()));
}

#[test]
fn of_two_that_are_promoted_at_one_moment_one_writes_and_the_other_follows() {
    let mut three = Three::new();
    three.wait_for_all();
    let mut said = Vec::new();
    let all = added_beside(&three, || {
        std::thread::scope(|scope| {
            let both = [1, 2].map(|server| {
                let three = &three;
                scope.spawn(move || three.asked(server, "promote"))
            });
            said.extend(both.map(|one| one.join().unwrap()));
        });
    });
    // One may have begun when the other one has ended.
    let epochs: Vec<u64> = said.iter().flatten().map(|it| it["epoch"].as_u64().unwrap()).collect();
    let last = epochs.iter().max().unwrap();
    assert!(epochs.len() == 1 || epochs[0] != epochs[1], "{said:?}");
    let writer =
        1 + said.iter().position(|it| it.as_ref().is_ok_and(|it| it["epoch"] == *last)).unwrap();
    for why in said.iter().filter_map(|said| said.as_ref().err()) {
        assert!(why.contains("promoted"), "{why}");
    }
    eventually("it writes, and the other one follows or was replaced", || {
        let all = [writer, 3 - writer].map(|server| three.status(server).unwrap());
        all[0]["role"] == "writer"
            && (all[1]["role"] == "follower" && all[1]["is_connected"] == true || epochs.len() > 1)
    });
    if epochs.len() == 1 {
        has_all(&three, &[1, 2], &all);
        three.wait_for_all();
    }
    three.settle(SETTLED_WITHIN);
    has_all(&three, &[0], &all);
}

#[test]
fn a_writer_that_stood_still_beyond_a_promotion_acknowledges_nothing() {
    let mut three = Three::new();
    three.wait_for_all();
    let wires: Vec<Wire> = (0..8).map(|_| three.admin(0)).collect();
    three.pause(0);
    std::thread::scope(|scope| {
        let asked: Vec<_> = wires
            .into_iter()
            .enumerate()
            .map(|(client, mut wire)| {
                scope.spawn(move || {
                    (0..50)
                        .map_while(|number| {
                            let dn = format!("cn=late{client}-{number},{BELOW}");
                            let role: [(&str, &[&str]); 1] =
                                [("objectClass", &["organizationalRole"])];
                            wire.add(&dn, &role, &[]).ok()
                        })
                        .filter(|answer| answer.code == ResultCode::Success)
                        .count()
                })
            })
            .collect();
        three.asked(1, "promote").unwrap();
        three.resume(0);
        let acknowledged: usize = asked.into_iter().map(|one| one.join().unwrap()).sum();
        assert_eq!(acknowledged, 0);
    });
    eventually("it follows, or cannot", || {
        let status = three.status(0).unwrap();
        status["role"] == "follower" || status["role"] == "fenced" && must_rejoin(&status)
    });
}

/// It goes on when the others have said that no other one writes.
#[test]
fn a_writer_that_stood_still_goes_on() {
    let mut three = Three::new();
    three.wait_for_all();
    let mut wire = three.admin(0);
    three.pause(0);
    eventually("the followers notice", || three.status(1).unwrap()["is_connected"] == false);
    three.resume(0);
    assert_eq!(describe(&mut wire, "x"), ResultCode::Success);
    assert_eq!(three.status(0).unwrap()["role"], "writer");
}

#[test]
fn a_server_that_is_promoted_twice_at_one_moment_begins_one_epoch() {
    let three = Three::new();
    three.wait_for_all();
    let mut said = Vec::new();
    let all = added_beside(&three, || {
        std::thread::scope(|scope| {
            let both = [(); 2].map(|()| scope.spawn(|| three.asked(1, "promote")));
            said.extend(both.map(|one| one.join().unwrap()));
        });
    });
    assert_eq!(said.iter().filter(|it| it.is_ok()).count(), 1, "{said:?}");
    let why = said.iter().find_map(|it| it.as_ref().err()).unwrap();
    assert!(why.contains("is being promoted") || why.contains("is the writer already"), "{why}");
    three.wait_for_all();
    has_all(&three, &[0, 1, 2], &all);
    assert_eq!(three.status(0).unwrap()["epoch"], 2);
}

/// Clients that wait for it are let in when it has asked the others.
#[test]
fn a_replaced_writer_that_starts_acknowledges_nothing_before_it_follows() {
    let mut three = Three::new();
    three.wait_for_all();
    three.stop(0);
    three.asked(1, "promote").unwrap();
    let (address, password) = (three.ldap(0).to_owned(), three.password());
    let all: Vec<String> = std::thread::scope(|scope| {
        let clients = [0, 1, 2, 3].map(|client| {
            let (address, password) = (&address, &password);
            scope.spawn(move || {
                // From an address of its own: it would connect to itself else, by and by.
                let connect = || Wire::connect_from([127, 0, 0, 9], address, PATIENCE).ok();
                let mut wire = std::iter::repeat_with(connect).flatten().next()?;
                wire.bind("cn=admin,cn=keyway", password).ok()?;
                let dn = format!("cn=early{client},{BELOW}");
                let role: [(&str, &[&str]); 1] = [("objectClass", &["organizationalRole"])];
                let answer = wire.add(&dn, &role, &[]).ok()?;
                (answer.code == ResultCode::Success).then_some(dn)
            })
        });
        three.start(0);
        clients.into_iter().filter_map(|client| client.join().unwrap()).collect()
    });
    three.wait_for_all();
    has_all(&three, &[0, 1, 2], &all);
}
