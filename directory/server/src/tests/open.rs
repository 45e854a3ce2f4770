//! Opening, naming contexts, the administrator, indexes that change.

use super::*;
use crate::IndexKind::*;
use crate::IndexSetting;
use crate::access::{Attributes, Rights, Rule, What, Who};

/// Closes a directory and opens its store again with these settings.
fn again(fixture: Fixture, settings: &Settings) -> Fixture {
    let Fixture { directory, folder } = fixture;
    directory.close().unwrap();
    let directory = Directory::open(store(&folder), settings, engine()).unwrap();
    Fixture { directory, folder }
}

#[test]
fn everything_is_there_again() {
    let fixture = again(filled(), &settings());
    assert_eq!(fixture.directory.naming_contexts(), [BASE]);
    assert_eq!(fixture.names("(objectClass=*)").len(), 20);
    assert_eq!(fixture.directory.entry_count().unwrap(), 20);
    assert!(fixture.directory.has_administrator().unwrap());
    assert!(fixture.administrator().is_administrator());
    assert!(!fixture.user("ada").is_administrator());
}

#[test]
fn naming_contexts_do_not_overlap() {
    let fixture = filled();
    for dn in [BASE, "DC=Example, dc=COM", PEOPLE, "dc=com", "cn=keyway", "cn=x,cn=keyway"] {
        let result = fixture.directory.add_naming_context(dn);
        assert_eq!(code(result), ResultCode::EntryAlreadyExists, "{dn}");
    }
    let refused = |dn| code(fixture.directory.add_naming_context(dn));
    assert_eq!(refused(""), ResultCode::UnwillingToPerform);
    assert_eq!(refused("unheard-of=x"), ResultCode::UnwillingToPerform);
    assert_eq!(refused("no name"), ResultCode::InvalidDnSyntax);
    fixture.directory.add_naming_context("o=Other").unwrap();
    fixture.add("o=other", &[("objectClass", &["organization"])]);
    assert_eq!(fixture.read("O=OTHER", &["*"]).values("o"), ["other"]);
}

#[test]
fn the_administrator_gets_a_new_password_and_stays_one_entry() {
    let fixture = filled();
    fixture.directory.bootstrap_administrator(b"{SSHA}other".to_vec()).unwrap();
    let credentials = fixture.directory.credentials(crate::ADMINISTRATOR_DN).unwrap().unwrap();
    assert_eq!(credentials.passwords, [b"{SSHA}other".to_vec()]);
    let request = SearchRequest { base: "cn=keyway", ..request("(objectClass=*)") };
    assert_eq!(fixture.search(&request).names(), ["admin", "keyway"]);
}

#[test]
fn credentials_of_an_absent_user() {
    let fixture = filled();
    for dn in ["uid=absent,dc=example,dc=com", "dc=elsewhere", "", "cn=schema"] {
        assert!(fixture.directory.credentials(dn).unwrap().is_none(), "{dn}");
    }
    assert_eq!(code(fixture.directory.credentials("uid")), ResultCode::InvalidDnSyntax);
}

#[test]
fn a_uid_names_one_entry() {
    let fixture = filled();
    let dn = fixture.directory.dn_of_uid("ADA").unwrap();
    assert_eq!(dn.as_deref(), Some("uid=ada,ou=people,dc=example,dc=com"));
    assert_eq!(fixture.directory.dn_of_uid("absent").unwrap(), None);
    let twin = [("objectClass", &["account"][..])];
    fixture.add("uid=ada,ou=groups,dc=example,dc=com", &twin);
    assert_eq!(fixture.directory.dn_of_uid("ada").unwrap(), None);
}

#[test]
fn changed_index_settings_change_the_keys() {
    let index = IndexSetting::new;
    let questions = [
        "(cn=ada lovelace)",
        "(sn=*)",
        "(mail=*ad*)",
        "(uidNumber>=1010)",
        "(sn=t*)",
        "(cn~=kurd goedel)",
    ];
    let fixture = filled();
    let expected: Vec<_> = questions.iter().map(|one| fixture.names(one)).collect();
    let tables = [
        vec![],
        vec![index("sn", &[Equality, Presence]), index("uidNumber", &[Ordering])],
        vec![
            index("SN", &[Substring, Approximate]),
            index("name", &[Equality, Presence, Substring, Approximate]),
        ],
        IndexSetting::defaults(),
    ];
    let mut fixture = fixture;
    for indexes in tables {
        fixture = again(fixture, &Settings { indexes, ..settings() });
        let found: Vec<_> = questions.iter().map(|one| fixture.names(one)).collect();
        assert_eq!(found, expected);
        fixture.directory.check(&mut |_, _| {}).unwrap();
    }
}

#[test]
fn settings_that_name_the_unknown_are_refused() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    let open = |settings: &Settings| Directory::open(store.clone(), settings, engine());
    let mut wrong = IndexSetting::defaults();
    wrong.push(IndexSetting { attribute: "unheard-of".into(), ..wrong[0].clone() });
    let error = open(&Settings { indexes: wrong, ..settings() }).err().unwrap();
    assert!(error.to_string().contains("unheard-of"), "{error}");
    let photo = IndexSetting::new("jpegPhoto", &[Equality]);
    let error = open(&Settings { indexes: vec![photo], ..settings() }).err().unwrap();
    assert!(error.to_string().contains("jpegPhoto"), "{error}");
    let secret = Attributes::Only(vec!["secret".into()]);
    let rule = Rule::new(Who::Users, What::Everything, secret, Rights::READ);
    let error = open(&Settings { rules: vec![rule], ..settings() }).err().unwrap();
    assert!(error.to_string().contains("secret"), "{error}");
}
