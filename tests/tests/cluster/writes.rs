//! Changes that clients ask a follower for: it answers as the writer does, to the letter.

use crate::clients::{BELOW, POSITION};
use crate::three::{PATIENCE, Three, set};
use crate::wire::{Answer, Wire, control};
use keyway_codec::controls::{
    ASSERTION, Assertion, POST_READ, PRE_READ, ReadRequest, ReadResponse,
};
use keyway_codec::filter::Filter;
use keyway_codec::message::ChangeOperation::{Add, Delete, Replace};
use keyway_codec::message::{Control, Op, ResultCode};
use keyway_tests::cryptod::eventually;
use std::borrow::Cow;
use std::fs;

const PEOPLE: &str = "ou=People,dc=example,dc=com";
const SECRET: &str = "a secret of theirs";

fn group(cn: &str) -> String {
    format!("cn={cn},{BELOW}")
}

fn read(oid: &'static str, attributes: &[&str]) -> Control<'static> {
    let mut value = Vec::new();
    ReadRequest(attributes.to_vec()).encode(&mut value);
    Control { oid, critical: true, value: Some(Cow::Owned(value)) }
}

fn assertion(attribute: &str, value: &str) -> Control<'static> {
    let value = Cow::Borrowed(value.as_bytes());
    let filter = Filter::Equality { attribute: attribute.into(), value };
    let mut octets = Vec::new();
    Assertion(filter).encode(&mut octets);
    Control { oid: ASSERTION, critical: true, value: Some(Cow::Owned(octets)) }
}

/// What an answer says, but for what time and place make different.
fn said(answer: Answer) -> String {
    let controls = answer.controls.iter().map(|(oid, value)| match &**oid {
        PRE_READ | POST_READ => format!("{oid} {:?}", ReadResponse::decode(value).unwrap().0),
        _ => oid.clone(),
    });
    let controls: Vec<String> = controls.collect();
    format!("{:?} {:?} {:?} {controls:?}", answer.code, answer.text, answer.referrals)
}

/// All kinds of changes, good ones and others, of an entry of this name.
fn changes(wire: &mut Wire, cn: &str) -> Vec<String> {
    let (dn, other) = (group(cn), format!("{cn}2"));
    let role: [(&str, &[&str]); 3] =
        [("objectClass", &["organizationalRole"]), ("cn", &[cn]), ("description", &["one"])];
    let mut all = Vec::new();
    let mut told = |answer: Result<Answer, String>| all.push(said(answer.unwrap()));
    let after = [read(POST_READ, &["cn", "description", "creatorsName"])];
    told(wire.add(&dn, &role, &after));
    told(wire.add(&dn, &role, &after));
    told(wire.add(&format!("cn=x,{dn}x"), &role, &[]));
    told(wire.add(&group("bad"), &[("objectClass", &["noSuchClass"])], &[]));
    told(wire.add(&group("bad"), &[("objectClass", &["person"]), ("cn", &["bad"])], &[]));
    told(wire.add("this is no name", &role, &[]));
    let both =
        [read(PRE_READ, &["description"]), read(POST_READ, &["description", "modifiersName"])];
    told(wire.modify(&dn, &[(Replace, "description", &["two"])], &both));
    told(wire.modify(&dn, &[(Add, "description", &["two"])], &both));
    told(wire.modify(&dn, &[(Delete, "l", &[])], &[]));
    told(wire.modify(&dn, &[(Add, "noSuchAttribute", &["x"])], &[]));
    told(wire.modify(&dn, &[(Add, "creatorsName", &["cn=x"])], &[]));
    told(wire.modify(&dn, &[(Replace, "description", &["x"])], &[assertion("description", "one")]));
    told(wire.modify(&dn, &[(Replace, "description", &["3"])], &[assertion("description", "two")]));
    told(wire.modify(&dn, &[(Replace, "description", &["x"])], &[control("1.2.3.4", None)]));
    told(wire.modify(&dn, &[], &[]));
    told(wire.rename(&dn, &format!("cn={other}"), true, &both));
    told(wire.rename(&dn, "cn=x", true, &[]));
    told(wire.rename(&group(&other), "cn=", true, &[]));
    told(wire.rename(&group(&other), "ou=Groups", true, &[]));
    told(wire.delete(BELOW, &[]));
    told(wire.delete(&dn, &[]));
    told(wire.delete(
        &group(&other),
        &[read(PRE_READ, &["cn", "description"]), control(POSITION, None)],
    ));
    told(wire.read(&group(&other), &[], &[]));
    all
}

#[test]
fn a_follower_answers_changes_as_the_writer_does() {
    let three = Three::new();
    let at_writer = changes(&mut three.admin(0), "thing");
    three.wait_for_all();
    assert_eq!(changes(&mut three.admin(1), "thing"), at_writer);
    three.wait_for_all();
    assert_eq!(changes(&mut three.admin(2), "thing"), at_writer);
    // They are what they seem.
    let good = at_writer.iter().filter(|it| it.starts_with("Success")).count();
    assert_eq!(good, 5, "{at_writer:#?}");
}

/// A user who may write what it says, from its address, or over TLS.
fn with_rules(data: &std::path::Path) {
    let file = data.join("keyway.toml");
    let rules = format!(
        "\n[[access]]\ndn = [\"uid=near,{PEOPLE}\"]\nfrom = [\"127.0.0.9\"]\nwhat = \"data\"\nrights = [\"all\"]\n\
         \n[[access]]\ndn = [\"uid=safe,{PEOPLE}\"]\nover = \"tls\"\nwhat = \"data\"\nrights = [\"all\"]\n"
    );
    let text = fs::read_to_string(&file).unwrap() + &rules;
    fs::write(&file, text).unwrap();
}

fn person(wire: &mut Wire, uid: &str) {
    let all: [(&str, &[&str]); 5] = [
        ("objectClass", &["inetOrgPerson"]),
        ("uid", &[uid]),
        ("cn", &[uid]),
        ("sn", &["x"]),
        ("userPassword", &[SECRET]),
    ];
    wire.add(&format!("uid={uid},{PEOPLE}"), &all, &[]).unwrap().ok();
}

#[test]
fn rules_look_at_the_client_not_at_the_member_that_asks_for_it() {
    let three = Three::with(with_rules);
    let mut admin = three.admin(0);
    ["near", "safe", "far"].iter().for_each(|uid| person(&mut admin, uid));
    three.wait_for_all();
    let from = |server, uid: &str, address| {
        let mut wire = Wire::connect_from(address, three.ldap(server), PATIENCE).unwrap();
        wire.bind(&format!("uid={uid},{PEOPLE}"), SECRET).unwrap().ok();
        wire
    };
    let change = [(Replace, "description", &["x"] as &[&str])];
    let it = "ou=Groups,dc=example,dc=com";
    for server in 0..3 {
        from(server, "near", [127, 0, 0, 9]).modify(it, &change, &[]).unwrap().ok();
        let near = from(server, "near", [127, 0, 0, 1]).modify(it, &change, &[]).unwrap();
        let near = said(near.expect(ResultCode::InsufficientAccessRights));
        let safe = from(server, "safe", [127, 0, 0, 1]).modify(it, &change, &[]).unwrap();
        let safe = said(safe.expect(ResultCode::InsufficientAccessRights));
        let nobody =
            Wire::connect(three.ldap(server), PATIENCE).unwrap().modify(it, &change, &[]).unwrap();
        assert_ne!(nobody.code, ResultCode::Success);
        let far = said(from(server, "far", [127, 0, 0, 9]).modify(it, &change, &[]).unwrap());
        assert_eq!((&near, &safe), (&far, &far), "server {server}");
        let mut tls = three.servers[server]
            .as_ref()
            .unwrap()
            .tool("ldapmodify", three.servers[server].as_ref().unwrap().ldaps());
        tls.args(["-D", &format!("uid=safe,{PEOPLE}"), "-w", SECRET]);
        let ldif =
            format!("dn: {it}\nchangetype: modify\nreplace: description\ndescription: tls\n");
        keyway_tests::finish(&mut tls, &ldif).expect(0);
    }
}

/// A client that is bound as an entry which is another one by now, or none, has that one's rights no more.
#[test]
fn a_subject_that_was_renamed_or_deleted_meanwhile() {
    let three = Three::with(with_rules);
    let mut admin = three.admin(0);
    person(&mut admin, "near");
    three.wait_for_all();
    let near = format!("uid=near,{PEOPLE}");
    let change = [(Replace, "description", &["x"] as &[&str])];
    let mut wire = Wire::connect_from([127, 0, 0, 9], three.ldap(1), PATIENCE).unwrap();
    wire.bind(&near, SECRET).unwrap().ok();
    wire.modify(BELOW, &change, &[]).unwrap().ok();
    admin.rename(&near, "uid=nearer", true, &[]).unwrap().ok();
    let refused =
        wire.modify(BELOW, &change, &[]).unwrap().expect(ResultCode::InsufficientAccessRights);
    assert!(refused.text.contains("bind again"), "{refused:?}");
    // Another entry of this name is another user.
    person(&mut admin, "near");
    let refused = wire.modify(BELOW, &change, &[]).unwrap();
    assert_eq!(refused.code, ResultCode::InsufficientAccessRights, "{refused:?}");
    wire.bind(&near, SECRET).unwrap();
    three.wait_for_all();
    wire.bind(&near, SECRET).unwrap().ok();
    wire.modify(BELOW, &change, &[]).unwrap().ok();
    admin.delete(&near, &[]).unwrap().ok();
    let refused = wire.modify(BELOW, &change, &[]).unwrap();
    assert_eq!(refused.code, ResultCode::InsufficientAccessRights, "{refused:?}");
}

#[test]
fn without_forwarding_a_follower_refers_to_the_writer() {
    let three = Three::new();
    three.set(1, "cluster.forward", "false");
    let mut wire = three.admin(1);
    let change = [(Replace, "description", &["x"] as &[&str])];
    eventually("it refers", || {
        wire.modify(BELOW, &change, &[]).unwrap().code == ResultCode::Referral
    });
    let answer = wire.modify(BELOW, &change, &[]).unwrap();
    let status = three.status(0).unwrap();
    let url = status["url"].as_str().unwrap();
    assert!(answer.referrals.iter().any(|it| it.starts_with(url)), "{answer:?} {url}");
    wire.read(BELOW, &[], &[]).unwrap().ok();
    three.set(1, "cluster.forward", "true");
    eventually("it forwards", || {
        wire.modify(BELOW, &change, &[]).unwrap().code == ResultCode::Success
    });
}

/// Passwords are changed at a follower, and wrong ones there count everywhere.
#[test]
fn passwords_are_changed_and_accounts_locked_through_followers() {
    let policy = format!("cn=policy,{BELOW}");
    let three = Three::with(|data| set(data, "password.policy", &policy));
    let mut admin = three.admin(1);
    let all: [(&str, &[&str]); 6] = [
        ("objectClass", &["organizationalRole", "pwdPolicy"]),
        ("cn", &["policy"]),
        ("pwdAttribute", &["userPassword"]),
        ("pwdLockout", &["TRUE"]),
        ("pwdMaxFailure", &["4"]),
        ("pwdAllowUserChange", &["TRUE"]),
    ];
    admin.add(&policy, &all, &[]).unwrap().ok();
    person(&mut admin, "ann");
    let ann = format!("uid=ann,{PEOPLE}");
    let server = three.servers[1].as_ref().unwrap();
    three.wait_for_all();
    let mut passwd = server.tool("ldappasswd", server.ldaps());
    passwd.args(["-D", &ann, "-w", SECRET, "-a", SECRET, "-s", "another one of theirs"]);
    keyway_tests::finish(&mut passwd, "").expect(0);
    three.wait_for_all();
    (0..3).for_each(|at| drop(three.bound(at, &ann, "another one of theirs")));
    // Two here, two there.
    for at in [1, 2, 1, 2] {
        let mut wire = Wire::connect(three.ldap(at), PATIENCE).unwrap();
        wire.bind(&ann, "wrong").unwrap().expect(ResultCode::InvalidCredentials);
    }
    for at in 0..3 {
        // A good password between them would have been one that forgives them.
        let mut admin = three.admin(at);
        eventually("it is locked everywhere", || {
            let read = admin.read(&ann, &["pwdAccountLockedTime"], &[]).unwrap().ok();
            !read.entries[0].values("pwdAccountLockedTime").is_empty()
        });
        // An address from which it came in before is let in still.
        let elsewhere = [127, 0, 0, 20];
        let mut wire = Wire::connect_from(elsewhere, three.ldap(at), PATIENCE).unwrap();
        let refused = wire.bind(&ann, "another one of theirs").unwrap();
        let state = admin.read(&ann, &["+"], &[]).unwrap();
        assert_eq!(refused.code, ResultCode::InvalidCredentials, "server {at}: {state:?}");
    }
    // The administrator unlocks it at a follower.
    admin.modify(&ann, &[(Delete, "pwdAccountLockedTime", &[])], &[]).unwrap().ok();
    for at in 0..3 {
        eventually("it is unlocked everywhere", || {
            let mut wire = Wire::connect(three.ldap(at), PATIENCE).unwrap();
            wire.bind(&ann, "another one of theirs").unwrap().code == ResultCode::Success
        });
    }
}

/// Requests on their way to the writer whose client has gone give their places back.
#[test]
fn clients_that_leave_at_once_keep_none_from_writing() {
    let three = Three::new();
    for _ in 0..80 {
        let wire = Wire::connect(three.ldap(1), PATIENCE).unwrap();
        wire.ask_and_leave(&Op::DeleteRequest(BELOW), 300);
    }
    let mut admin = three.admin(1);
    eventually("changes are taken", || {
        let change = [(Replace, "description", &["well"] as &[&str])];
        admin.modify(BELOW, &change, &[]).unwrap().code == ResultCode::Success
    });
}
