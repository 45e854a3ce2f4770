//! Entries that stand for others: aliases, and referral objects.

use super::*;

fn alias(fixture: &Fixture, name: &str, target: &str) {
    let classes = ["alias", "extensibleObject"];
    fixture.add(
        &format!("cn={name},{BASE}"),
        &[("objectClass", &classes), ("aliasedObjectName", &[target])],
    );
}

/// The names that a search finds, by how it treats aliases.
fn names(fixture: &Fixture, base: &str, scope: Scope, deref: Deref) -> Vec<String> {
    let found = fixture.search(&SearchRequest { base, scope, deref, ..request("(uid=*a*)") });
    assert_eq!(found.code(), ResultCode::Success);
    found.names()
}

#[test]
fn a_base_behind_aliases_is_found() {
    let fixture = filled();
    let user = fixture.user("ada");
    alias(&fixture, "staff", PEOPLE);
    alias(&fixture, "again", &format!("cn=STAFF,{BASE}"));
    alias(&fixture, "nowhere", "cn=x,dc=example,dc=com");
    alias(&fixture, "outside", "cn=x,o=elsewhere");
    alias(&fixture, "admin", crate::ADMINISTRATOR_DN);
    alias(&fixture, "me", &format!("cn=me,{BASE}"));
    alias(&fixture, "deep", &format!("cn=x,cn=deep,{BASE}"));
    let read = |base: &str, deref| {
        let request =
            SearchRequest { base, scope: Scope::Base, deref, ..request("(objectClass=*)") };
        fixture.run(&user, &request, &RequestControls::default())
    };
    let ada = format!("uid=ada,cn=again,{BASE}");
    for deref in [Deref::FindingBase, Deref::Always] {
        let found = read(&ada, deref).unwrap();
        assert_eq!(found.entries[0].0, format!("uid=ada,{PEOPLE}"));
        assert_eq!(read(&format!("cn=staff,{BASE}"), deref).unwrap().names(), ["people"]);
        use ResultCode::*;
        for (name, code) in [
            ("nowhere", AliasProblem),
            ("outside", AliasProblem),
            ("admin", AliasProblem),
            ("me", AliasDereferencingProblem),
            ("x,cn=staff", AliasProblem),
            ("deep", AliasDereferencingProblem),
        ] {
            let failure = read(&format!("cn={name},{BASE}"), deref).unwrap_err();
            assert_eq!(failure.code, code, "{name}: {failure}");
        }
        assert_eq!(read(&format!("cn=x,{PEOPLE}"), deref).unwrap_err().code, NoSuchObject);
    }
    for deref in [Deref::Never, Deref::InSearching] {
        assert_eq!(read(&ada, deref).unwrap_err().code, ResultCode::NoSuchObject);
        assert_eq!(read(&format!("cn=staff,{BASE}"), deref).unwrap().names(), ["staff"]);
    }
}

#[test]
fn a_scope_goes_on_behind_aliases() {
    let fixture = filled();
    // Two ways in, in a circle, to one set of entries.
    let unit = format!("ou=unit,{BASE}");
    fixture.add(&unit, &[("objectClass", &["organizationalUnit"])]);
    for (rdn, target) in [("cn=p", PEOPLE), ("cn=self", &unit), ("cn=dead", "cn=x,o=y")] {
        let attributes: [(&str, &[&str]); 2] =
            [("objectClass", &["alias", "extensibleObject"]), ("aliasedObjectName", &[target])];
        fixture.add(&format!("{rdn},{unit}"), &attributes);
    }
    fixture.add(
        &format!("cn=back,{PEOPLE}"),
        &[("objectClass", &["alias", "extensibleObject"]), ("aliasedObjectName", &[&unit])],
    );
    let all = names(&fixture, PEOPLE, Scope::Subtree, Deref::Never);
    assert_eq!(all.len(), 10, "{all:?}");
    for deref in [Deref::InSearching, Deref::Always] {
        assert_eq!(names(&fixture, &unit, Scope::Subtree, deref), all);
        assert_eq!(names(&fixture, &unit, Scope::Subordinate, deref), all);
        assert_eq!(names(&fixture, BASE, Scope::Subtree, deref), all, "each once");
        assert_eq!(names(&fixture, "", Scope::Subtree, deref), all);
    }
    for deref in [Deref::Never, Deref::FindingBase] {
        assert_eq!(names(&fixture, &unit, Scope::Subtree, deref), Vec::<String>::new());
    }
    // One level: what an alias stands for, and not what is below it.
    let level = |deref| {
        let request =
            SearchRequest { base: &unit, scope: Scope::One, deref, ..request("(objectClass=*)") };
        fixture.search(&request).names()
    };
    assert_eq!(level(Deref::InSearching), ["people", "unit"]);
    assert_eq!(level(Deref::Never), ["dead", "p", "self"]);
    // Where they are not followed they are entries like others.
    let aliases =
        |deref| fixture.search(&SearchRequest { deref, ..request("(objectClass=alias)") });
    assert_eq!(aliases(Deref::FindingBase).names(), ["back", "dead", "p", "self"]);
    assert!(aliases(Deref::InSearching).names().is_empty());
}

fn refer(fixture: &Fixture, dn: &str, urls: &[&str]) {
    let classes: &[&str] = &["referral", "extensibleObject"];
    fixture.add(dn, &[("objectClass", classes), ("ref", urls)]);
}

#[test]
fn referral_objects_lead_elsewhere() {
    let fixture = filled();
    let remote = format!("ou=remote,{BASE}");
    let urls = ["ldap://one/ou=r,dc=one??sub?(x=y) the first", "ldap://two"];
    refer(&fixture, &remote, &urls);
    let controls = RequestControls::default();
    let read = |base: &str, controls: &RequestControls<'_>| {
        let request = SearchRequest { base, scope: Scope::Base, ..request("(objectClass=*)") };
        fixture.run(&fixture.user("ada"), &request, controls)
    };
    let failure = read(&remote, &controls).unwrap_err();
    assert_eq!(failure.code, ResultCode::Referral);
    let here = "ldap://two/ou=remote,dc=example,dc=com??base";
    assert_eq!(failure.referrals, ["ldap://one/ou=r,dc=one??base", here]);
    let below = format!("cn=a b,{remote}");
    let failure = read(&below, &controls).unwrap_err();
    assert_eq!(failure.referrals[0], "ldap://one/cn=a%20b,ou=r,dc=one??base");
    // Whatever would change it, or something below it.
    let expected = vec!["ldap://one/ou=r,dc=one".to_owned(), here.replace("??base", "")];
    let title = change(ChangeOperation::Replace, "description", &["x"]);
    for refused in [
        fixture.modify(&remote, vec![title]),
        fixture.delete(&remote),
        fixture.rename(&remote, "ou=other", true, None),
    ] {
        assert_eq!(refused.unwrap_err().referrals, expected);
    }
    for refused in [
        fixture.try_add(&below, &[("objectClass", &["device"])]),
        fixture.rename(&format!("uid=ada,{PEOPLE}"), "uid=ada", true, Some(&remote)),
    ] {
        assert_eq!(refused.unwrap_err().code, ResultCode::Referral);
    }
    // Who manages them sees entries.
    let manage = RequestControls { manage_dsa_it: true, ..RequestControls::default() };
    assert_eq!(read(&remote, &manage).unwrap().names(), ["remote"]);
    assert_eq!(read(&below, &manage).unwrap_err().code, ResultCode::NoSuchObject);
    let new = change(ChangeOperation::Replace, "ref", &["ldap://three/dc=c"]);
    fixture.modify_as(&fixture.administrator(), &remote, vec![new], &manage).unwrap();
    assert_eq!(read(&remote, &controls).unwrap_err().referrals, ["ldap://three/dc=c??base"]);
}

#[test]
fn searches_continue_elsewhere() {
    let fixture = filled();
    for (number, above) in [(1, BASE), (2, PEOPLE), (3, GROUPS)] {
        let (dn, url) = (format!("ou=r{number},{above}"), format!("ldap://h{number}/dc=r"));
        refer(&fixture, &dn, &[&url]);
    }
    let search = |base: &str, scope, controls: &RequestControls<'_>| {
        let request = SearchRequest { base, scope, ..request("(uid=ada)") };
        fixture.run(&fixture.administrator(), &request, controls).unwrap()
    };
    let none = RequestControls::default();
    let found = search(BASE, Scope::Subtree, &none);
    assert_eq!((found.code(), found.names()), (ResultCode::Success, vec!["ada".to_owned()]));
    assert_eq!(found.references, [1, 2, 3].map(|n| format!("ldap://h{n}/dc=r??sub")));
    assert_eq!(search("", Scope::Subtree, &none).references.len(), 3);
    assert_eq!(search(PEOPLE, Scope::Subordinate, &none).references, ["ldap://h2/dc=r??sub"]);
    assert_eq!(search(BASE, Scope::One, &none).references, ["ldap://h1/dc=r??base"]);
    assert!(search(BASE, Scope::Base, &none).references.is_empty());
    let manage = RequestControls { manage_dsa_it: true, ..RequestControls::default() };
    assert!(search(BASE, Scope::Subtree, &manage).references.is_empty());
    // Those that match are references and no entries.
    let all = |controls| {
        let request = SearchRequest { base: PEOPLE, ..request("(ou=*)") };
        fixture.run(&fixture.administrator(), &request, controls).unwrap().names()
    };
    assert_eq!(all(&none), ["people"]);
    assert_eq!(all(&manage), ["people", "r2"]);
    // When they are gone, nothing is left of them.
    for (number, above) in [(1, BASE), (2, PEOPLE), (3, GROUPS)] {
        let dn = format!("ou=r{number},{above}");
        let administrator = fixture.administrator();
        block_on(fixture.directory.delete(&administrator, &dn, &manage)).unwrap();
    }
    assert!(search(BASE, Scope::Subtree, &none).references.is_empty());
}
