//! Searches that no index helps: who may do them, and what is counted of them.

use super::*;

fn limited(max: u32, free: &[&str]) -> Settings {
    let search_unindexed_free = free.iter().map(|dn| (*dn).to_owned()).collect();
    Settings { search_unindexed_max: max, search_unindexed_free, ..settings() }
}

#[test]
fn a_scope_that_is_too_large_is_searched_with_an_index_only() {
    let fixture = filled_with(&limited(10, &[]));
    let ada = fixture.user("ada");
    let search = |base, scope, filter: &str| {
        let request = SearchRequest { base, scope, ..request(filter) };
        fixture.run(&ada, &request, &RequestControls::default()).map(|found| found.names().len())
    };
    let whole = |filter: &str| search(BASE, Scope::Subtree, filter);
    for (filter, lack) in [
        ("(description=*xyz*)", "attribute description has no index for substring"),
        ("(&(objectClass=*)(description=x))", "attribute description has no index for equality"),
        ("(|(uid=ada)(gidNumber=5)(title=x))", "attribute title has no index for equality"),
        ("(employeeType~=x)", "attribute employeeType has no index for approximate"),
        ("(!(uid=ada))", "no index can help, it says what entries are not"),
        ("(uid=*a*)", "no index can help, no part of it has three letters"),
    ] {
        let refused = whole(filter).unwrap_err();
        assert_eq!(refused.code, ResultCode::AdminLimitExceeded, "{filter}");
        assert!(refused.diagnostic.starts_with(lack), "{filter}: {}", refused.diagnostic);
    }
    // Entries that an index leads to, all entries, and those of a small scope are no matter.
    for (filter, found) in [
        ("(objectClass=*)", 20),
        ("(&)", 20),
        ("(&(uid=ada)(description=x))", 0),
        ("(&(uid=ada)(!(description=x)))", 1),
        ("(unheard-of=x)", 0),
        ("(objectClass=inetOrgPerson)", 14),
    ] {
        assert_eq!(whole(filter).ok(), Some(found), "{filter}");
    }
    assert_eq!(search(GROUPS, Scope::Subtree, "(description=x)").ok(), Some(0));
    assert_eq!(search(BASE, Scope::One, "(!(ou=people))").ok(), Some(1));
    assert_eq!(search(PEOPLE, Scope::Base, "(description=x)").ok(), Some(0));
    // A page is a search.
    let paged = Some(keyway_codec::controls::PagedResults { size: 2, cookie: b"".into() });
    let controls = RequestControls { paged, ..Default::default() };
    let refused = fixture.run(&ada, &request("(description=x)"), &controls).err().unwrap();
    assert_eq!(refused.code, ResultCode::AdminLimitExceeded);
    assert_eq!(fixture.names("(description=x)").len(), 0, "the administrator is free");
}

#[test]
fn some_are_free_of_the_limit() {
    let some = format!("cn=some,{GROUPS}");
    let free = [format!("uid=kurt,{PEOPLE}"), some.clone(), "cn=absent,dc=example,dc=com".into()];
    let free: Vec<&str> = free.iter().map(String::as_str).collect();
    let fixture = filled_with(&limited(10, &free));
    let may = |subject: &Subject| {
        let found = fixture.run(subject, &request("(description=x)"), &RequestControls::default());
        found.is_ok()
    };
    // Ada is in the group, kurt is named himself, margaret neither.
    assert!(may(&fixture.user("ada")) && may(&fixture.user("kurt")));
    assert!(!may(&fixture.user("margaret")) && !may(&Subject::anonymous()));
    let margaret = format!("uid=margaret,{PEOPLE}");
    let nested = format!("cn=nested,{GROUPS}");
    fixture.add(&nested, &[("objectClass", &["groupOfNames"]), ("member", &[&margaret])]);
    fixture.modify(&some, vec![change(ChangeOperation::Add, "member", &[&nested])]).unwrap();
    assert!(may(&fixture.user("margaret")));
    fixture.directory.reconfigure(&limited(21, &[])).unwrap();
    assert!(may(&fixture.user("donald")), "they are not more than so many");
    fixture.directory.reconfigure(&limited(20, &[])).unwrap();
    assert!(!may(&fixture.user("ada")));
    fixture.directory.reconfigure(&limited(0, &[])).unwrap();
    assert!(may(&fixture.user("donald")));
}

#[test]
fn what_is_lacking_is_counted() {
    let fixture = filled();
    let value = |name: &str| keyway_meter::counter(name).value();
    let names = ["searches", "entries"]
        .map(|what| format!("search.unindexed.registeredAddress.substring.{what}"));
    let before = names.clone().map(|name| value(&name));
    for filter in ["(registeredAddress=*abc*)", "(&(registeredAddress=*abcd*)(sn=*))"] {
        let request = SearchRequest { base: PEOPLE, ..request(filter) };
        fixture.search(&request);
    }
    let after = names.map(|name| value(&name));
    // The second is helped by an index: that of sn for presence.
    assert_eq!([after[0] - before[0], after[1] - before[1]], [1, 15]);
}
