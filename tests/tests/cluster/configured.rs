//! Settings that are one server's, and have to come to the others: where it is reached, and naming contexts.

use crate::site::{Site, cluster, export};
use keyway_tests::cryptod::eventually;
use keyway_tests::{Server, finish, keyway, port};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn set(data: &Path, key: &str, value: &str) {
    crate::three::set(data, key, value);
}

/// Where the members are reached, by a folder's store, in the order of their names.
fn urls(data: &Path) -> Vec<String> {
    let listed = cluster(data, &["members", "--json"]).expect(0).out;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let mut all: Vec<_> = listed["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].as_str().unwrap().to_owned(), it["url"].as_str().unwrap().to_owned()))
        .collect();
    all.sort();
    all.into_iter().map(|(_, url)| url).collect()
}

fn start(data: &Path, address: &str) -> Server {
    let mut up = Command::new(keyway());
    up.args(["up", "--json", "--listen", "off", "--listen-tls", address, "--data"]);
    Server::spawn(up.arg(data))
}

#[test]
fn where_a_member_is_reached_comes_to_the_others() {
    let site = Site::new(5);
    let (a, b, address) = (site.at("a"), site.at("b"), port());
    // It has not said where it will listen.
    site.joined("b", &site.token(&["--name", "zb"])).expect(0);
    let own = format!("ldaps://{address}");
    assert!(!urls(&a).contains(&own), "{:?}", urls(&a));
    // First where the writer is: that is not taken, and said once.
    set(&b, "cluster.url", site.writer.ldaps());
    let follower = start(&b, &address);
    let log = || std::fs::read_to_string(b.join("log/error.log")).unwrap_or_default();
    eventually("it is said", || log().contains("is where"));
    assert!(!urls(&a).contains(&own));
    assert!(follower.stop().success());
    set(&b, "cluster.url", &own);
    let follower = start(&b, &address);
    eventually("the writer knows it", || urls(&a).contains(&own));
    eventually("the follower knows it", || urls(&b).contains(&own));
    assert_eq!(log().matches("is where").count(), 1, "{}", log());
    // The writer, too: it becomes one that is reached at its own.
    cluster(&b, &["promote"]).expect(0);
    let shown = cluster(&b, &["status", "--all", "--json"]);
    assert!(shown.out.contains(&own), "{}", shown.out);
    let other = port();
    assert!(follower.stop().success());
    set(&b, "cluster.url", &format!("ldaps://{other}"));
    let writer = start(&b, &other);
    eventually("it has changed it itself", || urls(&b).contains(&format!("ldaps://{other}")));
    assert!(writer.stop().success());
}

#[test]
fn a_naming_context_that_is_configured_later_comes_by_the_writer() {
    let site = Site::new(5);
    let (a, b) = (site.at("a"), site.at("b"));
    let follower = site.follower("b", &site.token(&["--name", "b"]));
    assert!(follower.stop().success());
    let contexts = "[\"dc=example,dc=com\", \"o=other\"]";
    set(&b, "naming_contexts", contexts);
    // It starts, and waits for the writer.
    let address = port();
    let follower = start(&b, &address);
    set(&a, "naming_contexts", contexts);
    let Site { writer, .. } = &site;
    let base = |server: &Server| {
        let mut search = server.admin_tool("ldapsearch");
        finish(search.args(["-LLL", "-s", "base", "-b", "", "namingContexts"]), "").out
    };
    assert!(!base(writer).contains("o=other"));
    let ldap = writer.ldap().trim_start_matches("ldap://").to_owned();
    let ldaps = writer.ldaps().trim_start_matches("ldaps://").to_owned();
    assert!(site.writer.stop().success());
    let mut up = Command::new(keyway());
    up.args(["up", "--json", "--listen", &ldap, "--listen-tls", &ldaps, "--data"]);
    let writer = Server::spawn(up.arg(&a));
    let ldif = "dn: o=other\nobjectClass: organization\no: other\n";
    eventually("it writes", || finish(&mut writer.admin_tool("ldapadd"), ldif).code == 0);
    let head = |data: &Path| {
        let status = cluster(data, &["status", "--json"]).expect(0).out;
        serde_json::from_str::<Value>(&status).unwrap()["position"].as_u64().unwrap()
    };
    let last = head(&a);
    eventually("the follower has it", || head(&b) == last);
    assert!(follower.stop().success() && writer.stop().success());
    assert!(export(&b).contains("dn: o=other"));
    assert_eq!(export(&a), export(&b));
}
