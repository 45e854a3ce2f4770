//! A member that begins anew.

use crate::site::{Site, check, cluster, export, store_of};
use keyway_tests::{Server, finish, keyway};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const MORE: &str =
    "dn: cn=new,ou=Groups,dc=example,dc=com\nobjectClass: organizationalRole\ncn: new\n";

#[test]
fn a_member_takes_the_writers_store_anew_and_keeps_the_old_one() {
    let site = Site::new(30);
    let (a, b) = (site.at("a"), site.at("b"));
    let follower = site.follower("b", &site.token(&[]));
    let refused = cluster(&b, &["rejoin"]).expect(1);
    assert!(refused.err.contains("in use"), "{}", refused.err);
    assert!(follower.stop().success());
    let (url, address) = (site.writer.ldaps().to_owned(), site.writer.tls_address().to_owned());
    assert!(site.writer.stop().success());
    let old = export(&b);
    let file = a.with_file_name("more.ldif");
    fs::write(&file, MORE).unwrap();
    let mut import = Command::new(keyway());
    finish(import.args(["directory", "import", "--data"]).arg(&a).arg(&file), "").expect(0);
    let mut up = Command::new(keyway());
    up.args(["up", "--json", "--listen", "off", "--listen-tls", &address, "--data"]).arg(&a);
    let writer = Server::spawn(&mut up);
    let done = cluster(&b, &["rejoin", "--json"]).expect(0).out;
    let done: Value = serde_json::from_str(&done).unwrap();
    assert_eq!(done["from"], url);
    let kept = Path::new(done["kept"].as_str().unwrap());
    assert!(kept.join("data.mdb").exists() && kept.starts_with(&b));
    assert!(Server::start(&b, &[]).stop().success());
    assert!(writer.stop().success());
    assert!(export(&b) == export(&a) && export(&b) != old);
    assert_eq!(store_of(&a), store_of(&b));
    check(&b);
    // Without a writer nothing is changed.
    let refused = cluster(&b, &["rejoin"]).expect(1);
    assert!(refused.err.contains("no writer is found"), "{}", refused.err);
    assert_eq!(export(&a), export(&b));
}
