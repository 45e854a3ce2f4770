//! A member that begins anew.

use crate::clients::BELOW;
use crate::site::{Site, check, cluster, export, store_of};
use crate::three::PATIENCE;
use crate::wire::Wire;
use keyway_codec::message::ChangeOperation::Add;
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

/// Changes that have no change record are comments beside those that have one, and both are counted.
#[test]
fn changes_of_schema_and_members_that_only_an_old_writer_had_are_said() {
    let site = Site::new(5);
    let (a, b) = (site.at("a"), site.at("b"));
    site.joined("c", &site.token(&["--name", "c"])).expect(0);
    assert!(site.follower("b", &site.token(&["--name", "b"])).stop().success());
    // The writer is alone from now on.
    cluster(&a, &["remove", "c"]).expect(0);
    let mut wire = Wire::connect(site.writer.address(), PATIENCE).unwrap();
    wire.bind(site.writer.administrator(), &site.writer.password()).unwrap().ok();
    let attribute = "( 1.3.6.1.4.1.99999.1 NAME 'shoeSize' SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )";
    wire.modify("cn=schema", &[(Add, "attributeTypes", &[attribute])], &[]).unwrap().ok();
    let entry: [(&str, &[&str]); 2] = [("objectClass", &["organizationalRole"]), ("cn", &["own"])];
    wire.add(&format!("cn=own,{BELOW}"), &entry, &[]).unwrap().ok();
    assert!(site.writer.stop().success());
    let new = Server::start(&b, &[]);
    cluster(&b, &["promote"]).expect(0);
    let said = cluster(&a, &["rejoin", "--from", new.ldaps()]).expect(0).err;
    assert!(said.contains("1 changes of entries that only this server had are in "), "{said}");
    assert!(said.contains("as comments 2 changes of the schema or of the cluster"), "{said}");
    let path = said.split_whitespace().find(|word| word.ends_with(".ldif")).unwrap();
    assert!(Path::new(path).starts_with(a.join("cluster")), "{said}");
    let ldif = fs::read_to_string(path).unwrap();
    for row in ["# schema: row schema", "# row: row cluster"] {
        assert!(ldif.lines().any(|line| line.starts_with(row)), "{row}: {ldif}");
    }
    let records = ldif.lines().filter(|line| line.starts_with("dn:")).collect::<Vec<_>>();
    assert_eq!(records, [format!("dn: cn=own,{BELOW}")], "{ldif}");
}
