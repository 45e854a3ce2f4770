//! Who may do what.

use super::*;
use crate::RequestOrigin;
use crate::access::{Attributes, Place, Rights, Rule, What, Who};
use crate::credentials::Credentials;
use keyway_codec::message::CompareRequest;
use zeroize::Zeroizing;

const HASHED: &str = "{SSHA}AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

#[test]
fn an_anonymous_user_reads_the_root_dse_and_the_schema_and_no_more() {
    let fixture = filled();
    let anonymous = &Subject::anonymous();
    let controls = &RequestControls::default();
    assert_eq!(fixture.read_as(anonymous, "", &["*"]).entries.len(), 1);
    assert_eq!(fixture.read_as(anonymous, "cn=schema", &["cn"]).values("cn"), ["schema"]);
    let denied = ResultCode::InsufficientAccessRights;
    for base in [BASE, "uid=absent,dc=example,dc=com", "dc=elsewhere", "cn=admin,cn=keyway"] {
        let request = SearchRequest { base, ..request("(objectClass=*)") };
        assert_eq!(code(fixture.run(anonymous, &request, controls)), denied, "{base}");
        let compare = CompareRequest { dn: base, attribute: "cn", value: b"x" };
        assert_eq!(
            code(fixture.directory.compare(anonymous, &compare, controls, ANNOUNCED)),
            denied
        );
        let delete = fixture.directory.delete(anonymous, base, controls);
        assert_eq!(code(block_on(delete)), denied, "{base}");
        let replace = vec![change(ChangeOperation::Replace, "description", &["x"])];
        assert_eq!(code(fixture.modify_as(anonymous, base, replace, controls)), denied);
        let entry: [(&str, &[&str]); 1] = [("objectClass", &["device"])];
        assert_eq!(code(fixture.add_as(anonymous, base, &entry, controls)), denied);
        let rename = ModifyDnRequest {
            dn: base,
            new_rdn: "cn=x",
            delete_old_rdn: false,
            new_superior: None,
        };
        assert_eq!(
            code(block_on(fixture.directory.modify_dn(anonymous, &rename, controls))),
            denied
        );
    }
    let everything = SearchRequest { base: "", ..request("(objectClass=*)") };
    assert_eq!(code(fixture.run(anonymous, &everything, controls)), denied);
}

/// A connection outlives the name of its entry, and the entry itself.
#[test]
fn a_client_is_called_as_its_entry_is_and_without_one_is_anonymous() {
    let fixture = filled();
    let (user, controls) = (fixture.user("ada"), RequestControls::default());
    let see = || code(fixture.run(&user, &request("(uid=*)"), &controls));
    assert_eq!(see(), ResultCode::Success);
    fixture.rename(&format!("uid=ada,{PEOPLE}"), "uid=lovelace", true, None).unwrap();
    let lovelace = format!("uid=lovelace,{PEOPLE}");
    let own = vec![replace("userPassword", &["secret"])];
    fixture.modify_as(&user, &lovelace, own, &controls).unwrap();
    let found = fixture.read(&lovelace, &["modifiersName"]);
    assert_eq!(found.values("modifiersName"), [lovelace.as_str()]);
    assert_eq!(user.name().as_deref(), Some(lovelace.as_str()));
    fixture.delete(&lovelace).unwrap();
    assert_eq!(see(), ResultCode::InsufficientAccessRights);
}

#[test]
fn a_user_reads_all_but_passwords_and_writes_only_his_own() {
    let fixture = filled();
    let (ada, alan) = (&format!("uid=ada,{PEOPLE}"), &format!("uid=alan,{PEOPLE}"));
    for dn in [ada, alan] {
        fixture.modify(dn, vec![replace("userPassword", &["secret"])]).unwrap();
    }
    let user = fixture.user("ada");
    let controls = RequestControls::default();
    let found = fixture.read_as(&user, alan, &["*", "+"]);
    assert_eq!(found.values("sn"), ["Turing"]);
    assert_eq!(found.values("userPassword"), [""; 0]);
    assert_eq!(fixture.read_as(&user, ada, &["userPassword"]).descriptions(), [""; 0]);
    assert_eq!(fixture.read(ada, &["userPassword"]).values("userPassword").len(), 1);

    let names = |filter: &str| {
        let found = fixture.run(&user, &request(filter), &controls).unwrap();
        found.names()
    };
    assert_eq!(names("(userPassword=*)"), [""; 0]);
    assert_eq!(names("(!(userPassword=*))"), [""; 0]);
    assert_eq!(names("(|(userPassword=*)(uid=ada))"), ["ada"]);

    let denied = ResultCode::InsufficientAccessRights;
    let compare = |attribute| CompareRequest { dn: alan, attribute, value: b"secret" };
    let compared =
        |attribute| fixture.directory.compare(&user, &compare(attribute), &controls, ANNOUNCED);
    assert_eq!(code(compared("userPassword")), denied);
    assert!(!compared("sn").unwrap());

    let modify = |dn: &str, name: &str| {
        code(fixture.modify_as(&user, dn, vec![replace(name, &["new"])], &controls))
    };
    assert_eq!(modify(ada, "userPassword"), ResultCode::Success);
    assert_eq!(modify(alan, "userPassword"), denied);
    assert_eq!(modify(ada, "description"), denied);
    assert_eq!(code(block_on(fixture.directory.delete(&user, ada, &controls))), denied);
    let below: [(&str, &[&str]); 1] = [("objectClass", &["device"])];
    let inside = fixture.add_as(&user, &format!("cn=x,{ada}"), &below, &controls);
    assert_eq!(code(inside), denied);

    assert_eq!(code(fixture.directory.may_set_password(&user, ada)), ResultCode::Success);
    assert_eq!(code(fixture.directory.may_set_password(&user, alan)), denied);
    // For it that is no entry.
    let to_anonymous = fixture.directory.may_set_password(&Subject::anonymous(), ada);
    assert_eq!(code(to_anonymous), ResultCode::NoSuchObject);
    assert_eq!(code(fixture.directory.may_set_password(&user, "cn=schema")), denied);
    let set = fixture.directory.set_password(
        &user,
        (alan, HASHED.into(), false),
        RequestOrigin::HERE,
        None,
    );
    assert_eq!(code(block_on(set)), denied);
}

fn replace<'a>(name: &'a str, values: &[&'a str]) -> Change<'a> {
    change(ChangeOperation::Replace, name, values)
}

#[test]
fn a_user_does_not_see_the_servers_own_entries() {
    let fixture = filled();
    let user = fixture.user("ada");
    let controls = RequestControls::default();
    let own = SearchRequest { base: "cn=keyway", ..request("(objectClass=*)") };
    let denied = ResultCode::InsufficientAccessRights;
    assert_eq!(code(fixture.run(&user, &own, &controls)), denied);
    let everything = SearchRequest { base: "", ..request("(objectClass=*)") };
    assert_eq!(fixture.run(&user, &everything, &controls).unwrap().entries.len(), 20);
    assert_eq!(fixture.search(&own).entries.len(), 2);
}

#[test]
fn passwords_are_hashed_before_they_are_stored() {
    let fixture = filled();
    let dn = &format!("uid=ada,{PEOPLE}");
    fixture.modify(dn, vec![change(ChangeOperation::Add, "userPassword", &["a", "b"])]).unwrap();
    let stored = fixture.read(dn, &["userPassword"]).values("userPassword");
    assert_eq!(stored.len(), 2);
    assert!(stored.iter().all(|value| value.starts_with("{ARGON2}")), "{stored:?}");
    let hashed = HASHED;
    fixture.modify(dn, vec![replace("userPassword", &[hashed])]).unwrap();
    assert_eq!(fixture.read(dn, &["userPassword"]).values("userPassword"), [hashed]);
    let unknown = fixture.modify(dn, vec![replace("userPassword", &["{UNHEARD}x"])]);
    assert_eq!(code(unknown), ResultCode::ConstraintViolation);
    let credentials = fixture.directory.credentials(dn).unwrap().unwrap();
    assert_eq!(credentials.passwords, [hashed.as_bytes()]);
    assert_eq!(credentials.dn, *dn);
    let long = "x".repeat(keyway_password::limits::PASSWORD_BYTES_MAX + 1);
    let result = fixture.modify(dn, vec![replace("userPassword", &[&long])]);
    assert_eq!(code(result), ResultCode::ConstraintViolation);
}

#[test]
fn only_the_administrator_stores_what_is_hashed_already() {
    let fixture = filled();
    let ada = &format!("uid=ada,{PEOPLE}");
    let (user, controls) = (fixture.user("ada"), RequestControls::default());
    fixture.modify(ada, vec![replace("userPassword", &[HASHED])]).unwrap();
    for operation in [ChangeOperation::Replace, ChangeOperation::Add] {
        for name in ["userPassword", "userPassword;lang-en", "2.5.4.35"] {
            let change = vec![change(operation, name, &[HASHED])];
            let refused = fixture.modify_as(&user, ada, change, &controls).unwrap_err();
            assert_eq!(refused.code, ResultCode::ConstraintViolation, "{name}");
            assert!(refused.diagnostic.contains("hashed already"), "{refused}");
        }
    }
    // He may say which one is to go.
    let change = vec![change(ChangeOperation::Delete, "userPassword", &[HASHED])];
    fixture.modify_as(&user, ada, change, &controls).unwrap();
    fixture.modify_as(&user, ada, vec![replace("userPassword", &["new"])], &controls).unwrap();

    // Nor may those who add entries, unless it is the administrator.
    let data = What::Only(Place::Data);
    let rules = vec![Rule::new(Who::Users, data, Attributes::All, Rights::ALL)];
    let fixture = filled_with(&Settings { rules, ..settings() });
    let user = fixture.user("ada");
    let device: [(&str, &[&str]); 4] =
        [("objectClass", &["person"]), ("cn", &["x"]), ("sn", &["x"]), ("userPassword", &[HASHED])];
    let dn = format!("cn=x,{PEOPLE}");
    let refused = fixture.add_as(&user, &dn, &device, &controls);
    assert_eq!(code(refused), ResultCode::ConstraintViolation);
    fixture.try_add(&dn, &device).unwrap();
}

#[test]
fn a_right_password_is_stored_again_unless_it_was_changed_meanwhile() {
    let fixture = filled();
    let dn = &format!("uid=ada,{PEOPLE}");
    fixture.modify(dn, vec![replace("userPassword", &[HASHED, "other"])]).unwrap();
    let before = fixture.read(dn, &["*", "+"]);
    let found = || fixture.directory.credentials(dn).unwrap().unwrap();
    let upgrade = |found: &Credentials, outdated| {
        let password = Zeroizing::new(b"secret".to_vec());
        fixture.directory.upgrade_password(found, outdated, password)
    };
    let first = upgrade(&found(), 0).expect("there is room");
    assert!(upgrade(&found(), 0).is_none(), "one at a time");
    block_on(first);
    let after = fixture.read(dn, &["*", "+"]);
    let [new, other] = &after.values("userPassword")[..] else { panic!("{after:?}") };
    assert!(new.starts_with("{ARGON2}"), "{new}");
    assert_eq!(*other, before.values("userPassword")[1]);
    for name in ["modifyTimestamp", "modifiersName", "entryUUID", "cn"] {
        assert_eq!(after.values(name), before.values(name), "{name}");
    }

    let stale = found();
    let late = upgrade(&stale, 0).expect("there is room again");
    fixture.modify(dn, vec![replace("userPassword", &["changed"])]).unwrap();
    let changed = fixture.read(dn, &["userPassword"]).values("userPassword");
    block_on(late);
    assert_eq!(fixture.read(dn, &["userPassword"]).values("userPassword"), changed);
    drop(upgrade(&stale, 0).expect("there is room again"));
    let gone = upgrade(&stale, 0).expect("a dropped one leaves its room");
    fixture.delete(dn).unwrap();
    block_on(gone);

    let off = filled_with(&Settings { password_upgrade: false, ..settings() });
    off.modify(dn, vec![replace("userPassword", &[HASHED])]).unwrap();
    let found = off.directory.credentials(dn).unwrap().unwrap();
    assert!(off.directory.upgrade_password(&found, 0, Zeroizing::default()).is_none());
}

#[test]
fn other_tables_do_what_they_say() {
    let rule =
        |who, attributes, rights| Rule::new(who, What::Only(Place::Data), attributes, rights);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let look = Rights::READ | Rights::SEARCH;
    let rules = vec![
        rule(Who::Users, Attributes::Only(names(&["uid"])), look),
        rule(Who::Owner, Attributes::All, look),
        rule(Who::Owner, Attributes::Except(names(&["name"])), Rights::WRITE),
    ];
    let fixture = filled_with(&Settings { rules, ..settings() });
    let (ada, alan) = (&format!("uid=ada,{PEOPLE}"), &format!("uid=alan,{PEOPLE}"));
    let user = fixture.user("ada");
    let controls = RequestControls::default();
    assert_eq!(fixture.read_as(&user, ada, &["*"]).entries.len(), 1);
    assert!(fixture.read_as(&user, ada, &["*"]).descriptions().len() > 5);
    let find = |filter: &str| fixture.run(&user, &request(filter), &controls).unwrap();
    // The filter of `read_as` asks for objectClass, which a user may search in the user's own entry only.
    assert_eq!(fixture.read_as(&user, alan, &["*"]).entries.len(), 0);
    assert_eq!(find("(uid=alan)").names(), ["alan"]);
    assert_eq!(find("(cn=*)").names(), ["ada"]);
    let changed = |dn: &str, name: &str| {
        code(fixture.modify_as(&user, dn, vec![replace(name, &["x"])], &controls))
    };
    assert_eq!(changed(ada, "description"), ResultCode::Success);
    assert_eq!(changed(ada, "sn"), ResultCode::InsufficientAccessRights);
    assert_eq!(changed(alan, "description"), ResultCode::InsufficientAccessRights);
    // The administrator is in no rule, and may all the same.
    assert_eq!(fixture.names("(cn=ada*)"), ["ada"]);
}

#[test]
fn rights_have_names() {
    assert_eq!(Rights::from_name("read"), Some(Rights::READ));
    assert_eq!(Rights::from_name("all"), Some(Rights::ALL));
    assert_eq!(Rights::from_name("own"), None);
    assert_eq!((Rights::READ | Rights::WRITE).to_string(), "read, write");
    assert_eq!(Rights::NONE.to_string(), "");
    assert_eq!(Who::from_name("self"), Some(Who::Owner));
    assert_eq!(What::from_name("schema"), Some(What::Only(Place::Subschema)));
}
