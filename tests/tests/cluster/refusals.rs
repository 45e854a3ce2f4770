//! Joins that are refused, and peers that are no members.

use crate::site::{Site, cluster, export};
use keyway_tests::cryptod::eventually;
use keyway_tests::{Server, available, finish, keyway};
use std::fs;
use std::process::Command;

#[test]
fn tokens_that_ended_or_are_of_another_server_are_refused() {
    let site = Site::new(5);
    let token = site.token(&[]);
    let tokens = site.at("a").join("cluster/tokens");
    let file = fs::read_dir(&tokens).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read_to_string(&file).unwrap();
    let mut ended: serde_json::Value = serde_json::from_str(&kept).unwrap();
    ended["ends"] = 1_000_000_000.into();
    fs::write(&file, ended.to_string()).unwrap();
    let refused = site.joined("b", &token).expect(1);
    assert!(refused.err.contains("keyway cluster token"), "{}", refused.err);
    fs::write(&file, &kept).unwrap();
    // The server there has another authority: nothing is sent to it.
    let other = Site::new(0);
    other.token(&[]);
    let mut join = site.join("b", &token, other.writer.ldaps());
    let refused = finish(&mut join, "").expect(1);
    assert!(refused.err.contains("is no server of this cluster"), "{}", refused.err);
    assert!(!site.at("b").join("version").exists() && !site.at("b").join("store").exists());
    // The token that was tried in vain is good still.
    site.joined("b", &token).expect(0);
    assert_eq!(fs::read_dir(&tokens).unwrap().count(), 0);
}

#[test]
fn servers_that_cannot_be_followed_are_told_apart() {
    let site = Site::new(0);
    let at = |url: &str| finish(&mut site.join("b", &token_of_none(), url), "").expect(1).err;
    let free = keyway_tests::port();
    assert!(
        at(&format!("ldaps://{free}")).contains("cannot reach"),
        "{}",
        at(&format!("ldaps://{free}"))
    );
    // No token was made there yet.
    let told = at(site.writer.ldaps());
    assert!(told.contains("make a token there first"), "{told}");
    let told = at(&site.writer.ldap().replace("ldap://", "ldaps://"));
    assert!(told.contains("does not speak TLS") && told.contains("LDAPS"), "{told}");
    let wrong = site.joined("b", "AAAA").expect(2);
    assert!(wrong.err.contains("it is a token of version 0"), "{}", wrong.err);
}

/// A token of a server that is not here.
fn token_of_none() -> String {
    use base64::Engine;
    let mut octets = [7; 57];
    octets[0] = 1;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(octets)
}

#[test]
fn folders_with_something_in_them_are_left_alone() {
    let site = Site::new(5);
    let token = site.token(&[]);
    let other = site.at("other");
    assert!(Server::start(&other, &["--sample", "3"]).stop().success());
    let before = export(&other);
    let refused = site.joined("other", &token).expect(1);
    assert!(refused.err.contains("no member of a cluster"), "{}", refused.err);
    assert_eq!(export(&other), before);
    let full = site.at("full");
    fs::create_dir(&full).unwrap();
    finish(Command::new("chmod").arg("700").arg(&full), "").expect(0);
    fs::write(full.join("letter"), "text").unwrap();
    let refused = site.joined("full", &token).expect(1);
    assert!(refused.err.contains("something else than Keyway's data"), "{}", refused.err);
    assert_eq!(fs::read_dir(&full).unwrap().count(), 1);
    // None of these was a join.
    site.joined("b", &token).expect(0);
}

/// A client's certificate is of the authority, too, and proves nothing here.
#[test]
fn a_clients_certificate_is_none_of_a_member() {
    if !available(&["openssl"]) {
        return;
    }
    let site = Site::new(0);
    site.token(&[]);
    let out = site.at("client");
    let mut issue = Command::new(keyway());
    issue.args(["admin", "certificate", "cn=keyway-cluster:0000000000000001", "--out"]).arg(&out);
    finish(issue.arg("--data").arg(site.at("a")), "").expect(0);
    let a = site.at("a");
    let shake = |certificate: &str, key: &str, alpn: bool| {
        let mut openssl = Command::new("openssl");
        openssl.args(["s_client", "-connect", site.writer.tls_address(), "-cert", certificate]);
        openssl.args(["-key", key, "-ign_eof", "-CAfile"]).arg(a.join("ca.pem"));
        if alpn {
            openssl.args(["-alpn", "keyway-cluster/1"]);
        }
        // A frame of no kind: a member's connection is closed for it, without an alert.
        let said = finish(&mut openssl, "\0\0\0\x01\x63");
        format!("{}{}", said.out, said.err)
    };
    let member =
        ["member.pem", "member.key"].map(|name| a.join("cluster").join(name).display().to_string());
    let client = ["pem", "key"].map(|end| format!("{}.{end}", out.display()));
    let said = shake(&client[0], &client[1], true);
    assert!(said.contains("alert"), "{said}");
    let said = shake(&member[0], &member[1], true);
    assert!(said.contains("ALPN protocol: keyway-cluster/1") && !said.contains("alert"), "{said}");
}

#[test]
fn who_follows_makes_no_tokens_and_who_is_alone_has_no_members() {
    let site = Site::new(5);
    let alone = cluster(&site.at("a"), &["members"]).expect(1);
    assert!(alone.err.contains("in no cluster yet"), "{}", alone.err);
    let follower = site.follower("b", &site.token(&[]));
    let refused = cluster(&site.at("b"), &["token"]).expect(1);
    assert!(refused.err.contains("tokens are made at the writer"), "{}", refused.err);
    assert!(refused.err.contains(site.writer.ldaps()), "{}", refused.err);
    let refused = cluster(&site.at("a"), &["promote"]).expect(1);
    assert!(refused.err.contains("is the writer already"), "{}", refused.err);
    assert!(follower.stop().success());
    let told = cluster(&site.at("b"), &["status"]).expect(1);
    assert!(told.err.contains("no server runs"), "{}", told.err);
}

#[test]
fn a_member_that_was_removed_is_let_in_no_more() {
    let site = Site::new(5);
    let follower = site.follower("b", &site.token(&["--name", "b"]));
    let members = site.members();
    let refused = cluster(&site.at("a"), &["remove", &members[0]]).expect(1);
    assert!(refused.err.contains("promote another one first"), "{}", refused.err);
    let refused = cluster(&site.at("b"), &["remove", "b"]).expect(1);
    assert!(refused.err.contains("does not write"), "{}", refused.err);
    let refused = cluster(&site.at("a"), &["remove", "c"]).expect(1);
    assert!(refused.err.contains("no member c"), "{}", refused.err);
    cluster(&site.at("a"), &["remove", "b"]).expect(0);
    assert_eq!(site.members(), members[..1]);
    eventually("it is put out while it runs", || {
        let status = cluster(&site.at("b"), &["status"]).out;
        status.contains("not connected") && status.contains("the cluster has no such member")
    });
    assert!(follower.stop().success());
    let url = site.writer.ldaps();
    let refused = cluster(&site.at("b"), &["rejoin", "--from", url]).expect(1);
    assert!(refused.err.contains("the cluster has no such member"), "{}", refused.err);
    // One that was away when it was removed hears of it when it asks.
    let follower = site.follower("d", &site.token(&["--name", "d"]));
    assert!(follower.stop().success());
    cluster(&site.at("a"), &["remove", "d"]).expect(0);
    let follower = Server::start(&site.at("d"), &[]);
    eventually("it has asked", || {
        cluster(&site.at("d"), &["status"]).out.contains("the cluster has no such member")
    });
    for words in [&["promote"][..], &["promote", "--force"]] {
        let refused = cluster(&site.at("d"), words).expect(1);
        assert!(refused.err.contains("no member of its cluster any more"), "{}", refused.err);
    }
    assert!(follower.stop().success());
    let refused = site.joined("d", &site.token(&[])).expect(1);
    assert!(refused.err.contains("nothing was done"), "{}", refused.err);
    // Its name is free again.
    site.joined("c", &site.token(&["--name", "b"])).expect(0);
}
