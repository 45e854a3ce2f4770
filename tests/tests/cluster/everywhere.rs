//! What is changed at one server is in force at all: schema, naming contexts, rules in entries, large groups; and what
//! clients read of their own.

use crate::clients::{BELOW, POSITION};
use crate::relay::Way;
use crate::three::{PATIENCE, SERVERS, Three};
use crate::wire::{Wire, control};
use keyway_codec::message::ChangeOperation::{Add, Delete, Replace};
use keyway_codec::message::ResultCode;
use keyway_tests::cryptod::eventually;
use std::time::Duration;

const PEOPLE: &str = "ou=People,dc=example,dc=com";
const SECRET: &str = "a secret of theirs";
/// Members of a group that is one large attribute, and how many of them one request has.
const MEMBERS: usize = 6000;
const PIECE: usize = 1500;

#[test]
fn schema_naming_contexts_and_rules_in_entries_are_one_for_all() {
    let three = Three::new();
    let mut wire = three.admin(1);
    let attribute = "( 1.3.6.1.4.1.99999.1 NAME 'shoeSize' SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )";
    let class = "( 1.3.6.1.4.1.99999.2 NAME 'shoeOwner' SUP top AUXILIARY MAY shoeSize )";
    let changes =
        [(Add, "attributeTypes", &[attribute] as &[&str]), (Add, "objectClasses", &[class])];
    wire.modify("cn=schema", &changes, &[]).unwrap().ok();
    let shoes: [(&str, &[&str]); 3] = [
        ("objectClass", &["organizationalRole", "shoeOwner"]),
        ("cn", &["shoes"]),
        ("shoeSize", &["42"]),
    ];
    wire.add(&format!("cn=shoes,{BELOW}"), &shoes, &[]).unwrap().ok();
    let other: [(&str, &[&str]); 2] = [("objectClass", &["domain"]), ("dc", &["other"])];
    let other = wire.add("dc=other", &other, &[]).unwrap();
    // A user that nothing but a rule in an entry lets write.
    let ann = format!("uid=ann,{PEOPLE}");
    let person: [(&str, &[&str]); 5] = [
        ("objectClass", &["inetOrgPerson"]),
        ("uid", &["ann"]),
        ("cn", &["ann"]),
        ("sn", &["x"]),
        ("userPassword", &[SECRET]),
    ];
    wire.add(&ann, &person, &[]).unwrap().ok();
    let rule = format!("dn = [\"{ann}\"], what = \"data\", rights = [\"all\"]");
    wire.modify(BELOW, &[(Add, "keywayAccessRule", &[&rule])], &[]).unwrap().ok();
    three.wait_for_all();
    for server in 0..SERVERS {
        let mut admin = three.admin(server);
        let schema = admin.read("cn=schema", &["attributeTypes"], &[]).unwrap().ok();
        assert!(
            schema.entries[0].values("attributeTypes").iter().any(|it| it.contains("'shoeSize'")),
            "{server}"
        );
        let shoes = admin.read(&format!("cn=shoes,{BELOW}"), &["shoeSize"], &[]).unwrap().ok();
        assert_eq!(shoes.entries[0].values("shoeSize"), ["42"]);
        let found = admin.read("dc=other", &[], &[]).unwrap();
        assert_eq!(
            found.code == ResultCode::Success,
            other.code == ResultCode::Success,
            "{other:?} {found:?}"
        );
        let change = [(Replace, "description", &["by a rule"] as &[&str])];
        three.bound(server, &ann, SECRET).modify(BELOW, &change, &[]).unwrap().ok();
        let refused = three.bound(server, &ann, SECRET).modify(PEOPLE, &change, &[]).unwrap();
        refused.expect(ResultCode::InsufficientAccessRights);
    }
}

#[test]
fn a_large_group_grows_and_shrinks_everywhere() {
    let three = Three::new();
    let mut wire = three.admin(2);
    let group = format!("cn=large,{BELOW}");
    let member = |number: usize| format!("uid=member-{number:06},{PEOPLE}");
    let first = member(0);
    let all: [(&str, &[&str]); 3] =
        [("objectClass", &["groupOfNames"]), ("cn", &["large"]), ("member", &[&first])];
    wire.add(&group, &all, &[]).unwrap().ok();
    let members: Vec<String> = (1..MEMBERS).map(member).collect();
    let change = |wire: &mut Wire, operation, piece: &[String]| {
        let values: Vec<&str> = piece.iter().map(String::as_str).collect();
        wire.modify(&group, &[(operation, "member", &values)], &[]).unwrap().ok();
    };
    members.chunks(PIECE).for_each(|piece| change(&mut wire, Add, piece));
    let count = |server: usize| {
        let read = three.admin(server).read(&group, &["member"], &[]).unwrap().ok();
        read.entries[0].values("member").len()
    };
    // The connection that wrote sees it at once, others when it has come.
    let read = wire.read(&group, &["member"], &[]).unwrap().ok();
    assert_eq!(read.entries[0].values("member").len(), MEMBERS);
    three.wait_for_all();
    (0..SERVERS).for_each(|server| assert_eq!(count(server), MEMBERS));
    members.chunks(PIECE).take(3).for_each(|piece| change(&mut wire, Delete, piece));
    three.wait_for_all();
    (0..SERVERS).for_each(|server| assert_eq!(count(server), MEMBERS - 3 * PIECE));
}

#[test]
fn a_position_that_a_client_names_is_waited_for() {
    let three = Three::new();
    let (mut writer, mut reader) = (three.admin(0), three.admin(1));
    three.network.set(0, 1, Way::Slow(Duration::from_millis(100)));
    for number in 0..10 {
        let value = format!("value {number}");
        let change = [(Replace, "description", &[&value as &str] as &[&str])];
        let written = writer.modify(BELOW, &change, &[control(POSITION, None)]).unwrap().ok();
        let position = written.control(POSITION).unwrap();
        let read = reader.read(BELOW, &["description"], &[control(POSITION, Some(&position))]);
        assert_eq!(read.unwrap().ok().entries[0].values("description"), [value]);
    }
    three.network.heal();
    // One that is not there yet is not answered from an older state.
    for server in 0..SERVERS {
        let named = control(POSITION, Some("1000000"));
        let read = three.admin(server).read(BELOW, &[], &[named]).unwrap().expect(ResultCode::Busy);
        assert!(read.text.contains("position"), "{read:?}");
    }
}

#[test]
fn connections_of_an_address_see_what_one_of_them_has_written() {
    let three = Three::new();
    three.set(1, "cluster.own_writes", "address");
    let (mut one, mut other) = (three.admin(1), three.admin(1));
    three.network.set(0, 1, Way::Slow(Duration::from_millis(20)));
    for number in 0..20 {
        let value = format!("value {number}");
        one.modify(BELOW, &[(Replace, "description", &[&value])], &[]).unwrap().ok();
        let read = other.read(BELOW, &["description"], &[]).unwrap().ok();
        assert_eq!(read.entries[0].values("description"), [value]);
        let mut third = Wire::connect(three.ldap(1), PATIENCE).unwrap();
        third.bind("cn=admin,cn=keyway", &three.password()).unwrap().ok();
        let compared = third.read(BELOW, &["description"], &[]).unwrap().ok();
        assert_eq!(compared.entries, read.entries);
    }
}

/// A follower that cannot come to what its client has written asks the writer; without it, it answers nothing older.
#[test]
fn a_read_of_ones_own_that_cannot_be_answered_is_refused() {
    let three = Three::new();
    let mut wire = three.admin(1);
    wire.modify(BELOW, &[(Replace, "description", &["one"])], &[]).unwrap().ok();
    three.wait_for_all();
    let written = three.admin(0).modify(
        BELOW,
        &[(Replace, "description", &["two"])],
        &[control(POSITION, None)],
    );
    let written = written.unwrap().ok().control(POSITION).unwrap();
    three.wait_for_all();
    let position: u64 = written.split(' ').next().unwrap().parse().unwrap();
    three.network.set(0, 1, Way::Cut);
    let later = control(POSITION, Some(&(position + 1).to_string()));
    let refused = wire.read(BELOW, &[], &[later]).unwrap();
    assert!([ResultCode::Busy, ResultCode::Unavailable].contains(&refused.code), "{refused:?}");
    wire.read(BELOW, &[], &[]).unwrap().ok();
    let refused = wire.modify(BELOW, &[(Replace, "description", &["3"])], &[]).unwrap();
    assert_eq!(refused.code, ResultCode::Unavailable, "{refused:?}");
    three.network.heal();
    eventually("changes are taken again", || {
        wire.modify(BELOW, &[(Replace, "description", &["3"])], &[]).unwrap().code
            == ResultCode::Success
    });
}
