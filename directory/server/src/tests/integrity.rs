//! References that follow, values that are unique, numbers that are given out.

use super::*;
use crate::access::{Attributes, Place, Rights, Rule, What, Who};
use crate::{Allocate, IntegritySetting, Unique};

fn dn(uid: &str) -> String {
    format!("uid={uid},{PEOPLE}")
}

fn integrity(change: impl FnOnce(&mut IntegritySetting)) -> Fixture {
    let mut integrity = IntegritySetting::default();
    change(&mut integrity);
    filled_with(&Settings { integrity, ..settings() })
}

fn set(fixture: &Fixture, dn: &str, name: &str, values: &[&str]) {
    fixture.modify(dn, vec![change(ChangeOperation::Replace, name, values)]).unwrap();
}

fn values(fixture: &Fixture, dn: &str, name: &'static str) -> Vec<String> {
    fixture.read(dn, &[name]).values(name)
}

#[test]
fn what_names_a_deleted_entry_loses_it() {
    let fixture = filled();
    let (few, some) = (format!("cn=few,{GROUPS}"), format!("cn=some,{GROUPS}"));
    // Spelled otherwise, and named by itself.
    set(&fixture, &dn("kurt"), "manager", &["UID=Ada, OU=People,dc=example,dc=com", &dn("alan")]);
    set(&fixture, &dn("ada"), "seeAlso", &[&dn("ada"), &dn("alan")]);
    set(&fixture, &dn("alan"), "secretary", &[&dn("ada")]);
    fixture.delete(&dn("ada")).unwrap();
    assert_eq!(values(&fixture, &dn("kurt"), "manager"), [dn("alan")]);
    assert_eq!(values(&fixture, &dn("alan"), "secretary"), [""; 0]);
    assert_eq!(values(&fixture, &some, "member").len(), 4);
    assert_eq!(values(&fixture, &few, "member"), [""; 0], "a group may be empty");
    assert_eq!(fixture.names(&format!("(member={})", dn("ada"))).len(), 0);
    assert_eq!(fixture.names(&format!("(manager={})", dn("ada"))).len(), 0);
    assert_eq!(fixture.names(&format!("(manager={})", dn("alan"))), ["kurt"]);
}

#[test]
fn what_names_a_renamed_entry_names_it_anew() {
    let fixture = filled();
    set(&fixture, &dn("kurt"), "manager", &[&dn("ada").to_uppercase()]);
    set(&fixture, &dn("ada"), "seeAlso", &[&dn("ada")]);
    fixture.rename(&dn("ada"), "uid=Augusta", true, None).unwrap();
    let new = format!("uid=Augusta,{PEOPLE}");
    assert_eq!(values(&fixture, &dn("kurt"), "manager"), [new.as_str()]);
    assert_eq!(values(&fixture, &new, "seeAlso"), [new.as_str()]);
    assert_eq!(values(&fixture, &format!("cn=few,{GROUPS}"), "member"), [new.as_str()]);
    assert_eq!(fixture.names(&format!("(memberOf=cn=few,{GROUPS})")), ["Augusta"]);

    // With the subtree above it; a name that is there already is not there twice.
    let moved = "uid=Augusta,ou=Folk,dc=example,dc=com";
    fixture.modify(&dn("kurt"), vec![change(ChangeOperation::Add, "manager", &[moved])]).unwrap();
    fixture.rename(PEOPLE, "ou=Folk", true, None).unwrap();
    let kurt = "uid=kurt,ou=Folk,dc=example,dc=com";
    assert_eq!(values(&fixture, kurt, "manager"), [moved]);
    let members = values(&fixture, &format!("cn=all,{GROUPS}"), "member");
    assert_eq!(members.len(), 14);
    assert!(members.iter().all(|member| member.ends_with(",ou=Folk,dc=example,dc=com")));
    assert_eq!(fixture.names(&format!("(memberOf=cn=all,{GROUPS})")).len(), 14);
    assert_eq!(fixture.names(&format!("(member={})", dn("kurt"))).len(), 0);
}

/// The value that names the entry names its new name already, as far as the rules for names go.
#[test]
fn a_name_that_is_only_spelled_anew_keeps_its_references() {
    let fixture = filled();
    let members = |cn: &str| values(&fixture, &format!("cn={cn},{GROUPS}"), "member");
    fixture.rename(&dn("ada"), "uid=ADA", true, None).unwrap();
    assert_eq!(members("few"), [dn("ADA")]);
    assert_eq!(members("all").len(), 14);
    // All below it is spelled anew with it.
    fixture.rename(PEOPLE, "ou=People", true, None).unwrap();
    assert_eq!(members("few"), ["uid=ADA,ou=People,dc=example,dc=com"]);
    assert!(members("all").iter().all(|member| member.contains(",ou=People,")));
    assert_eq!(members("all").len(), 14);
    // In a group whose members are kept one by one as well.
    let many: Vec<String> = (0..600).map(|n| format!("cn=m{n},dc=example,dc=com")).collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    let alan = "uid=alan,ou=People,dc=example,dc=com";
    many.push(alan);
    let large = format!("cn=large,{GROUPS}");
    fixture.add(&large, &[("objectClass", &["groupOfNames"]), ("member", &many)]);
    fixture.rename(alan, "uid=Alan", true, None).unwrap();
    let found = values(&fixture, &large, "member");
    assert_eq!(found.len(), 601);
    assert!(found.contains(&"uid=Alan,ou=People,dc=example,dc=com".to_owned()));
}

#[test]
fn attributes_that_are_not_listed_stay_as_they_are() {
    let fixture = integrity(|setting| setting.references = vec!["manager".into()]);
    set(&fixture, &dn("kurt"), "manager", &[&dn("ada")]);
    fixture.delete(&dn("ada")).unwrap();
    assert_eq!(values(&fixture, &dn("kurt"), "manager"), [""; 0]);
    assert_eq!(values(&fixture, &format!("cn=few,{GROUPS}"), "member"), [dn("ada")]);
}

#[test]
fn a_change_that_fails_leaves_references_alone() {
    let fixture = filled();
    assert_eq!(code(fixture.delete(PEOPLE)), ResultCode::NotAllowedOnNonLeaf);
    let there = fixture.rename(&dn("ada"), "uid=alan", true, None);
    assert_eq!(code(there), ResultCode::EntryAlreadyExists);
    assert_eq!(values(&fixture, &format!("cn=few,{GROUPS}"), "member"), [dn("ada")]);
}

fn person<'a>(cn: &'a [&'a str], mail: &'a [&'a str]) -> [(&'a str, &'a [&'a str]); 4] {
    [("objectClass", &["inetOrgPerson"]), ("cn", cn), ("sn", &["x"]), ("mail", mail)]
}

#[test]
fn a_unique_value_is_taken_once() {
    let fixture = integrity(|setting| {
        setting.unique = vec![Unique {
            attributes: vec!["mail".into()],
            below: Some(PEOPLE.to_uppercase()),
            filter: None,
        }];
    });
    let violation = ResultCode::ConstraintViolation;
    let refused = fixture.try_add(&dn("eve"), &person(&["Eve"], &["ADA@example.com"])).unwrap_err();
    assert_eq!(refused.code, violation);
    assert!(refused.diagnostic.contains("mail") && refused.diagnostic.contains("uid=ada"));
    // The rule does not hold elsewhere.
    let elsewhere = format!("cn=eve,{GROUPS}");
    fixture.add(&elsewhere, &person(&["Eve"], &["ada@example.com"]));
    let change_mail = |uid: &str, mail: &str| {
        code(fixture.modify(&dn(uid), vec![change(ChangeOperation::Replace, "mail", &[mail])]))
    };
    assert_eq!(change_mail("alan", "ada@EXAMPLE.com"), violation);
    assert_eq!(change_mail("ada", "Ada@example.com"), ResultCode::Success, "his own");
    assert_eq!(change_mail("alan", "new@example.com"), ResultCode::Success);
    // To move it there is to have it there.
    let moved = fixture.rename(&elsewhere, "cn=eve", false, Some(PEOPLE));
    assert_eq!(code(moved), violation);
    // A user who may not read the other entry is not told which one it is.
    let data = What::Only(Place::Data);
    let mut blind = Rule::new(Who::Users, data, Attributes::All, Rights::ALL);
    blind.target.filter = Some("(!(uid=ada))".into());
    let integrity = IntegritySetting {
        unique: vec![Unique { attributes: vec!["mail".into()], below: None, filter: None }],
        ..IntegritySetting::default()
    };
    let fixture = filled_with(&Settings { rules: vec![blind], integrity, ..settings() });
    let (user, controls) = (fixture.user("alan"), RequestControls::default());
    let change = |mail| vec![change(ChangeOperation::Replace, "mail", &[mail])];
    let refused = |mail| {
        let change = change(mail);
        fixture.modify_as(&user, &dn("alan"), change, &controls).unwrap_err().diagnostic
    };
    assert!(refused("kurt@example.com").contains("uid=kurt"));
    assert!(refused("ada@example.com").contains("another entry"));
}

#[test]
fn of_two_adds_at_once_one_gets_the_value() {
    let fixture = integrity(|setting| {
        setting.unique =
            vec![Unique { attributes: vec!["mail".into()], below: None, filter: None }];
    });
    let (administrator, controls) = (fixture.administrator(), RequestControls::default());
    let add = |uid: &str| {
        let attributes = person(&["x"], &["one@example.com"]);
        let attributes = attributes.iter().map(|(name, values)| attribute(name, values)).collect();
        let dn = dn(uid);
        let request = AddRequest { dn: &dn, attributes };
        fixture.directory.add(&administrator, &request, &controls)
    };
    let all: Vec<_> = (0..8).map(|number| add(&format!("new{number}"))).collect();
    let done = all.into_iter().map(|one| code(block_on(one)));
    let done = done.filter(|code| *code == ResultCode::Success).count();
    assert_eq!(done, 1);
    assert_eq!(fixture.names("(mail=one@example.com)").len(), 1);
}

fn numbered() -> Fixture {
    integrity(|setting| {
        setting.allocate = vec![Allocate {
            attribute: "uidNumber".into(),
            class: "posixAccount".into(),
            from: 1_012,
            to: 1_017,
            magic: Some("-1".into()),
        }];
    })
}

#[test]
fn numbers_are_given_out_once() {
    let fixture = numbered();
    let account = |uid: &str, number: &[&str]| {
        let mut attributes: Vec<(&str, &[&str])> = vec![
            ("objectClass", &["account", "posixAccount"]),
            ("cn", &["x"]),
            ("gidNumber", &["100"]),
            ("homeDirectory", &["/"]),
        ];
        if !number.is_empty() {
            attributes.push(("uidNumber", number));
        }
        code(fixture.try_add(&dn(uid), &attributes))
    };
    let number = |uid: &str| values(&fixture, &dn(uid), "uidNumber");
    // 1012 and 1013 are others' already.
    assert_eq!(account("a", &[]), ResultCode::Success);
    assert_eq!(number("a"), ["1014"]);
    assert_eq!(account("b", &["-1"]), ResultCode::Success);
    assert_eq!(number("b"), ["1015"]);
    assert_eq!(account("c", &["77"]), ResultCode::Success);
    assert_eq!(number("c"), ["77"]);
    assert_eq!(fixture.names("(uidNumber=1014)"), ["a"]);
    assert_eq!(fixture.names("(uidNumber=0)").len(), 0);
    // The number of a user who is gone is not given again.
    fixture.delete(&dn("b")).unwrap();
    fixture.add(&dn("d"), &person(&["x"], &["d@example.com"]));
    let becomes = vec![
        change(ChangeOperation::Add, "objectClass", &["posixAccount"]),
        change(ChangeOperation::Add, "gidNumber", &["100"]),
        change(ChangeOperation::Add, "homeDirectory", &["/"]),
    ];
    fixture.modify(&dn("d"), becomes).unwrap();
    assert_eq!(number("d"), ["1016"]);
    assert_eq!(fixture.names("(uidNumber=1016)"), ["d"]);
    assert_eq!(account("e", &[]), ResultCode::Success);
    assert_eq!(account("f", &[]), ResultCode::AdminLimitExceeded);
    assert_eq!(account("f", &["5000"]), ResultCode::Success);
}

#[test]
fn only_entries_that_match_must_be_unique() {
    let fixture = integrity(|setting| {
        let filter = Some("(businessCategory=staff)".into());
        setting.unique = vec![Unique { attributes: vec!["mail".into()], below: None, filter }];
    });
    let violation = ResultCode::ConstraintViolation;
    let staff = |mail: &'static str| {
        let person = person(&["Eve"], &[]);
        let mut person = person.to_vec();
        person.retain(|(name, _)| *name != "mail");
        person.push(("businessCategory", &["staff"]));
        (person, mail)
    };
    let add = |uid: &str, mail: &'static str| {
        let (mut attributes, mail) = staff(mail);
        let mails = [mail];
        attributes.push(("mail", &mails));
        code(fixture.try_add(&dn(uid), &attributes))
    };
    // A person who is no staff does not count, on either side.
    assert_eq!(add("eve", "ada@example.com"), ResultCode::Success);
    fixture.add(&dn("guest"), &person(&["Guest"], &["ADA@example.com"]));
    assert_eq!(add("bob", "ADA@example.com"), violation);
    assert_eq!(add("bob", "bob@example.com"), ResultCode::Success);
    let become_staff = |uid: &str| {
        let change = change(ChangeOperation::Replace, "businessCategory", &["Staff"]);
        code(fixture.modify(&dn(uid), vec![change]))
    };
    // To match is to have the values there, also those that have not changed.
    assert_eq!(become_staff("guest"), violation);
    set(&fixture, &dn("guest"), "mail", &["guest@example.com"]);
    assert_eq!(become_staff("guest"), ResultCode::Success);
    set(&fixture, &dn("eve"), "businessCategory", &["left"]);
    assert_eq!(add("eva", "ada@example.com"), ResultCode::Success);
}
