//! A follower that was away while etcd has lost the changes that it lacks.

use crate::site::{Site, add, add_in_time, until};
use keyway_tests::{etcd, finish, keyway};
use serde_json::json;
use std::process::Command;

#[test]
fn a_follower_that_etcd_has_no_changes_for_says_so_and_rejoins() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(3, 1, 4);
    let before = site.settle();
    let writer = site.writer();
    let away = (writer + 1) % 3;
    site.kill(away);
    (0..5).for_each(|n| add_in_time(&format!("missed{n}"), || site.client(writer)));
    let trimmed = json!({
        "key": site.key("feed/"),
        "range_end": site.key(&format!("feed/{:016x}", before + 4)),
    });
    let trimmed = site.etcd.call("/v3/kv/deleterange", &trimmed);
    let revision = json!({ "revision": trimmed["header"]["revision"] });
    site.etcd.call("/v3/kv/compaction", &revision);
    site.places[away].start(&[]);
    let said = until("its status says so", || {
        let trouble = site.places[away].trouble();
        trouble.contains("keyway cluster rejoin").then_some(trouble)
    });
    assert!(said.contains(&format!("before position {}", before + 4)), "{said}");
    // Reads of what it has go on, and its clients' own changes are made and seen.
    assert_eq!(site.client(away).read("dc=example,dc=com").unwrap(), 1);
    let mut client = site.client(away);
    add(&mut client, "own").unwrap();
    assert_eq!(client.search("dc=example,dc=com", "uid", "own").unwrap(), 1);
    let mut log = Command::new(keyway());
    log.args(["log", "--of", "error", "--data"]).arg(&site.places[away].folder);
    let log = finish(&mut log, "").out;
    assert_eq!(log.matches("keyway cluster rejoin").count(), 1, "{log}");
    assert!(site.places[away].server.take().unwrap().stop().success());
    site.places[away].cluster(&["rejoin"]).expect(0);
    site.places[away].start(&[]);
    site.settle();
    until("all is well", || site.places[away].trouble().is_empty().then_some(()));
    assert!(site.end().contains("uid=missed4,"));
}
