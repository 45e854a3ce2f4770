//! The control that relaxes rules (draft-zeilenga-ldap-relax): an entry comes back as it was.

use super::*;
use keyway_schema::operational::{
    CREATE_TIMESTAMP, CREATORS_NAME, ENTRY_UUID, MODIFIERS_NAME, MODIFY_TIMESTAMP,
};

const UUID: &str = "01234567-89ab-4def-8123-456789abcdef";
const HASHED: &str = "{SSHA}c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";

fn relaxed() -> RequestControls<'static> {
    RequestControls { relax: true, ..RequestControls::default() }
}

fn replace<'a>(name: &'a str, values: &[&'a str]) -> Change<'a> {
    change(ChangeOperation::Replace, name, values)
}

const AS_IT_WAS: [(&str, &[&str]); 11] = [
    ("objectClass", &["inetOrgPerson"]),
    ("cn", &["Zoe"]),
    ("sn", &["Z"]),
    ("userPassword", &[HASHED, "{FOO}of another server"]),
    (ENTRY_UUID, &[UUID]),
    (CREATORS_NAME, &["cn=another"]),
    (CREATE_TIMESTAMP, &["20010203040506Z"]),
    (MODIFIERS_NAME, &["cn=one more"]),
    (MODIFY_TIMESTAMP, &["20020203040506Z"]),
    ("pwdChangedTime", &["20030203040506Z"]),
    ("pwdFailureTime", &["20040203040506.000001Z"]),
];

#[test]
fn an_entry_comes_back_as_it_was() {
    let fixture = filled();
    let zoe = format!("uid=zoe,{PEOPLE}");
    let admin = fixture.administrator();
    let user = fixture.user("ada");
    for (subject, controls, wanted) in [
        (&admin, RequestControls::default(), ResultCode::ConstraintViolation),
        (&user, relaxed(), ResultCode::InsufficientAccessRights),
        (&Subject::anonymous(), relaxed(), ResultCode::InsufficientAccessRights),
    ] {
        let added = fixture.add_as(subject, &zoe, &AS_IT_WAS, &controls);
        assert_eq!(code(added), wanted);
    }
    fixture.add_as(&admin, &zoe, &AS_IT_WAS, &relaxed()).unwrap();
    let found = fixture.read(&zoe, &["*", "+"]);
    for (name, values) in AS_IT_WAS.iter().skip(1) {
        assert_eq!(found.values(name), *values, "{name}");
    }
    assert_eq!(found.values("structuralObjectClass"), ["inetOrgPerson"]);
    // It is found by what it came back with.
    assert_eq!(fixture.names(&format!("(entryUUID={UUID})")), ["zoe"]);
    // Without the control all is as ever.
    let mail = vec![change(ChangeOperation::Add, "mail", &["zoe@example.com"])];
    fixture.modify(&zoe, mail).unwrap();
    assert_eq!(fixture.read(&zoe, &["+"]).values(MODIFIERS_NAME), [crate::ADMINISTRATOR_DN]);
}

#[test]
fn two_entries_have_no_common_uuid() {
    let with_index = filled();
    let mut without = settings();
    without.indexes.retain(|one| one.attribute != ENTRY_UUID);
    for fixture in [with_index, filled_with(&without)] {
        let admin = fixture.administrator();
        let [uuid] = &*fixture.read(&format!("uid=ada,{PEOPLE}"), &[ENTRY_UUID]).values(ENTRY_UUID)
        else {
            panic!()
        };
        for taken in [uuid.clone(), uuid.to_uppercase()] {
            let dn = format!("ou=x,{PEOPLE}");
            let values: [(&str, &[&str]); 2] =
                [("objectClass", &["organizationalUnit"]), (ENTRY_UUID, &[&taken])];
            let refused = fixture.add_as(&admin, &dn, &values, &relaxed()).unwrap_err();
            assert_eq!(refused.code, ResultCode::ConstraintViolation);
            assert!(refused.diagnostic.contains("uid=ada"), "{}", refused.diagnostic);
        }
        // Free again, it is taken.
        fixture.delete(&format!("uid=ada,{PEOPLE}")).unwrap();
        let values: [(&str, &[&str]); 2] =
            [("objectClass", &["organizationalUnit"]), (ENTRY_UUID, &[uuid])];
        fixture.add_as(&admin, &format!("ou=x,{PEOPLE}"), &values, &relaxed()).unwrap();
    }
}

#[test]
fn attributes_of_the_server_are_changed_back() {
    let fixture = filled();
    let ada = format!("uid=ada,{PEOPLE}");
    let modify = |subject: &Subject, changes, controls| {
        code(fixture.modify_as(subject, &ada, changes, controls))
    };
    let (admin, relaxed) = (fixture.administrator(), &relaxed());
    let changes = || {
        vec![
            replace("userPassword", &["{FOO}as it was"]),
            replace("pwdChangedTime", &["20030203040506Z"]),
            replace("pwdHistory", &[]),
            replace(CREATORS_NAME, &["cn=another"]),
            replace(MODIFY_TIMESTAMP, &["20020203040506Z"]),
        ]
    };
    let denied = ResultCode::InsufficientAccessRights;
    assert_eq!(modify(&fixture.user("ada"), changes(), relaxed), denied);
    let none = RequestControls::default();
    assert_eq!(modify(&admin, changes(), &none), ResultCode::ConstraintViolation);
    assert_eq!(modify(&admin, changes(), relaxed), ResultCode::Success);
    let found = fixture.read(&ada, &["*", "+"]);
    for (name, value) in [
        ("userPassword", "{FOO}as it was"),
        ("pwdChangedTime", "20030203040506Z"),
        (CREATORS_NAME, "cn=another"),
        (MODIFY_TIMESTAMP, "20020203040506Z"),
        (MODIFIERS_NAME, crate::ADMINISTRATOR_DN),
    ] {
        assert_eq!(found.values(name), [value], "{name}");
    }
    assert_eq!(fixture.names("(modifyTimestamp<=20020203040506Z)"), ["ada"]);
    for fixed in ["entryDN", "memberOf", "structuralObjectClass", ENTRY_UUID] {
        let change = vec![replace(fixed, &["x"])];
        assert_eq!(modify(&admin, change, relaxed), ResultCode::ConstraintViolation, "{fixed}");
    }
    let added = fixture.add_as(
        &admin,
        &format!("ou=x,{PEOPLE}"),
        &[("objectClass", &["organizationalUnit"]), ("numSubordinates", &["3"])],
        relaxed,
    );
    assert_eq!(code(added), ResultCode::ConstraintViolation);
    let bad = vec![replace(MODIFY_TIMESTAMP, &["yesterday"])];
    assert_eq!(modify(&admin, bad, relaxed), ResultCode::InvalidAttributeSyntax);
}
