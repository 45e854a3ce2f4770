//! Members that are not current do not look so.

use crate::clients::BELOW;
use crate::relay::Way;
use crate::site::cluster;
use crate::three::Three;
use keyway_codec::message::ChangeOperation::Replace;
use keyway_codec::message::ResultCode;
use keyway_tests::cryptod::eventually;
use keyway_tests::{Finished, finish, keyway};
use std::process::Command;

/// The line of a member's own status.
fn line(three: &Three, server: usize) -> String {
    cluster(&three.at(server), &["status"]).expect(0).out
}

fn ready(three: &Three, server: usize, more: &[&str]) -> Finished {
    let mut health = Command::new(keyway());
    health.args(["health", "--ready"]).args(more).arg("--data").arg(three.at(server));
    finish(&mut health, "")
}

#[test]
fn a_member_that_is_cut_off_does_not_look_current() {
    let mut three = Three::new();
    three.wait_for_all();
    three.network.set(0, 2, Way::Cut);
    let status = || three.status(2).unwrap();
    eventually("its silence counts", || status()["lag_seconds"].as_f64() > Some(0.1));
    assert_eq!(status()["is_connected"], false);
    assert!(status()["last_error"].is_string(), "{}", status());
    let shown = line(&three, 2);
    assert!(shown.contains(", not connected to a writer") && !shown.contains(" 0.0 s behind"));
    assert!(shown.contains("last error: "), "{shown}");
    let told = ready(&three, 2, &["--max-lag", "1h"]).expect(1);
    assert!(told.out.contains("connected to no writer"), "{}", told.out);
    // After a start it has heard of no writer: it does not know how far it is behind.
    three.stop(2);
    three.start(2);
    let status = three.status(2).unwrap();
    assert_eq!((&status["lag_seconds"], &status["is_connected"]), (&().into(), &false.into()));
    let shown = line(&three, 2);
    assert!(shown.contains(", not connected to a writer") && !shown.contains("behind"), "{shown}");
}

#[test]
fn a_member_that_is_fenced_does_not_look_current() {
    let three = Three::new();
    three.wait_for_all();
    three.network.set(0, 1, Way::Cut);
    three.network.set(0, 2, Way::Cut);
    let mut old = three.admin(0);
    let change = [(Replace, "description", &["x"] as &[&str])];
    old.modify(BELOW, &change, &[]).unwrap().ok();
    three.asked(1, "promote").unwrap();
    three.network.heal();
    eventually("it refuses changes", || {
        old.modify(BELOW, &change, &[]).unwrap().code != ResultCode::Success
    });
    eventually("it cannot follow", || three.status(0).unwrap()["has_stopped"] == true);
    let status = three.status(0).unwrap();
    assert_eq!((&status["role"], &status["epoch"]), (&"fenced".into(), &1.into()));
    assert_eq!((&status["lag_seconds"], &status["is_connected"]), (&().into(), &false.into()));
    assert_eq!(status["heard"]["epoch"], 2);
    let shown = line(&three, 0);
    assert!(shown.contains("  fenced, epoch 1") && !shown.contains("behind"), "{shown}");
    let told = ready(&three, 0, &[]).expect(1);
    assert!(told.out.contains("keyway cluster rejoin"), "{}", told.out);
}
