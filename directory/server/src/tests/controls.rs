//! Paged results, assertion, pre- and post-read.

use super::*;
use ResultCode::*;
use keyway_codec::controls::{PAGED_RESULTS, POST_READ, PRE_READ, PagedResults, ReadResponse};
use keyway_codec::message::CompareRequest;

/// A page, and the cookie of the next one.
fn page(
    fixture: &Fixture,
    subject: &Subject,
    request: &SearchRequest<'_>,
    size: u32,
    cookie: &[u8],
) -> Result<(Found, Vec<u8>), Failure> {
    let paged = Some(PagedResults { size, cookie: cookie.into() });
    let controls = RequestControls { paged, ..RequestControls::default() };
    let found = fixture.run(subject, request, &controls)?;
    let [control] = found.controls.as_slice() else { panic!("one control: {found:?}") };
    assert_eq!(control.oid, PAGED_RESULTS);
    let cookie = PagedResults::decode(&control.value).unwrap().cookie.into_owned();
    Ok((found, cookie))
}

#[test]
fn pages_make_up_the_whole() {
    let fixture = filled();
    let administrator = fixture.administrator();
    for filter in ["(objectClass=person)", "(cn=*a*)", "(|(uid=ada)(uid=ivan)(cn=few))", "(&)"] {
        let request = request(filter);
        let all = fixture.names(filter);
        for size in [1, 2, 3, 7, 13, 14, 15, 100] {
            let (mut names, mut cookie, mut pages) = (Vec::new(), Vec::new(), 0);
            loop {
                let (found, next) =
                    page(&fixture, &administrator, &request, size, &cookie).unwrap();
                assert_eq!(found.code(), Success);
                names.extend(found.names());
                pages += 1;
                if next.is_empty() {
                    break;
                }
                assert_eq!(found.entries.len(), size as usize, "only the last page is short");
                cookie = next;
            }
            names.sort();
            assert_eq!(names, all, "{filter} {size}");
            assert_eq!(pages, all.len().div_ceil(size as usize), "no page is empty");
        }
    }
}

#[test]
fn a_cookie_serves_one_query_of_one_subject() {
    let fixture = filled();
    let administrator = &fixture.administrator();
    let people = request("(objectClass=person)");
    let (_, cookie) = page(&fixture, administrator, &people, 3, b"").unwrap();
    let refused = |subject: &Subject, request: &SearchRequest<'_>, cookie: &[u8]| {
        code(page(&fixture, subject, request, 3, cookie))
    };
    assert_eq!(refused(administrator, &people, &cookie), Success);
    assert_eq!(refused(&fixture.user("ada"), &people, &cookie), UnwillingToPerform);
    let others = [
        request("(objectClass=*)"),
        SearchRequest { base: PEOPLE, ..people.clone() },
        SearchRequest { scope: Scope::One, ..people.clone() },
        SearchRequest { attributes: vec!["*"], ..people.clone() },
    ];
    for other in others {
        assert_eq!(refused(administrator, &other, &cookie), UnwillingToPerform, "{other:?}");
    }
    for at in 0..cookie.len() {
        let mut forged = cookie.clone();
        forged[at] ^= 1;
        assert_eq!(refused(administrator, &people, &forged), UnwillingToPerform, "byte {at}");
    }
    assert_eq!(refused(administrator, &people, &cookie[1..]), UnwillingToPerform);
    assert_eq!(refused(administrator, &people, b"x"), UnwillingToPerform);
    let other = filled();
    let (_, foreign) = page(&other, &other.administrator(), &people, 3, b"").unwrap();
    assert_eq!(refused(administrator, &people, &foreign), UnwillingToPerform);
}

#[test]
fn giving_up_and_limits() {
    let fixture = filled();
    let administrator = fixture.administrator();
    let people = request("(objectClass=person)");
    let (_, cookie) = page(&fixture, &administrator, &people, 3, b"").unwrap();
    let (found, next) = page(&fixture, &administrator, &people, 0, &cookie).unwrap();
    assert_eq!((found.entries.len(), found.code(), next.len()), (0, Success, 0));
    let limited = SearchRequest { size_limit: 5, ..people };
    let (found, cookie) = page(&fixture, &administrator, &limited, 3, b"").unwrap();
    assert_eq!((found.entries.len(), found.code()), (3, Success));
    let (found, next) = page(&fixture, &administrator, &limited, 3, &cookie).unwrap();
    assert_eq!((found.entries.len(), found.code()), (2, SizeLimitExceeded));
    assert!(next.is_empty());
}

#[test]
fn an_assertion_must_be_true() {
    let fixture = filled();
    let dn = &format!("uid=ada,{PEOPLE}");
    let administrator = fixture.administrator();
    let controls = |filter: &'static str| RequestControls {
        assertion: Some(Filter::parse(filter).unwrap()),
        ..RequestControls::default()
    };
    for (filter, expected) in [
        ("(sn=lovelace)", Success),
        ("(sn=turing)", AssertionFailed),
        ("(unheard-of=x)", AssertionFailed),
    ] {
        let controls = controls(filter);
        let replace = vec![change(ChangeOperation::Replace, "title", &["Countess"])];
        assert_eq!(code(fixture.modify_as(&administrator, dn, replace, &controls)), expected);
        let compare = CompareRequest { dn, attribute: "uid", value: b"ada" };
        assert_eq!(
            code(fixture.directory.compare(&administrator, &compare, &controls, ANNOUNCED)),
            expected
        );
        let search = SearchRequest { base: dn, ..request("(objectClass=*)") };
        assert_eq!(code(fixture.run(&administrator, &search, &controls)), expected);
        let same =
            ModifyDnRequest { dn, new_rdn: "uid=ada", delete_old_rdn: true, new_superior: None };
        let renamed = fixture.directory.modify_dn(&administrator, &same, &controls);
        assert_eq!(code(block_on(renamed)), expected);
        let new = format!("uid=new-{expected:?},{PEOPLE}");
        let person: [(&str, &[&str]); 3] =
            [("objectClass", &["inetOrgPerson"]), ("cn", &["x"]), ("sn", &["Lovelace"])];
        assert_eq!(code(fixture.add_as(&administrator, &new, &person, &controls)), expected);
    }
    let delete =
        |filter| code(block_on(fixture.directory.delete(&administrator, dn, &controls(filter))));
    assert_eq!(delete("(sn=turing)"), AssertionFailed);
    assert_eq!(delete("(sn=lovelace)"), Success);
}

#[test]
fn entries_are_read_before_and_after() {
    let fixture = filled();
    let dn = &format!("uid=ada,{PEOPLE}");
    let administrator = fixture.administrator();
    let both = RequestControls {
        pre_read: Some(vec!["sn", "title"]),
        post_read: Some(vec!["sn", "title", "entryDN"]),
        ..RequestControls::default()
    };
    let read = |done: &WriteDone, oid: &str| {
        let control = done.response_controls.iter().find(|control| control.oid == oid)?;
        let response = ReadResponse::decode(&control.value).unwrap();
        Some((response.0.dn.to_string(), texts(&response.0.attributes)))
    };
    let pair = |name: &str, value: &str| (name.to_owned(), vec![value.to_owned()]);
    let sn = pair("sn", "Lovelace");

    let replace = vec![change(ChangeOperation::Replace, "title", &["Countess"])];
    let done = fixture.modify_as(&administrator, dn, replace, &both).unwrap();
    assert_eq!(read(&done, PRE_READ), Some((dn.clone(), vec![sn.clone()])));
    let (title, own) = (pair("title", "Countess"), pair("entryDN", dn));
    let after = Some((dn.clone(), vec![sn.clone(), title.clone(), own]));
    assert_eq!(read(&done, POST_READ), after);

    let request =
        ModifyDnRequest { dn, new_rdn: "uid=al", delete_old_rdn: true, new_superior: Some(GROUPS) };
    let done = block_on(fixture.directory.modify_dn(&administrator, &request, &both)).unwrap();
    assert_eq!(read(&done, PRE_READ).unwrap().0, *dn);
    let moved = format!("uid=al,{GROUPS}");
    let (found, attributes) = read(&done, POST_READ).unwrap();
    assert_eq!(found, moved);
    assert!(attributes.contains(&pair("entryDN", &moved)));

    let pre = RequestControls { pre_read: Some(vec![]), ..RequestControls::default() };
    let done = block_on(fixture.directory.delete(&administrator, &moved, &pre)).unwrap();
    let (_, attributes) = read(&done, PRE_READ).unwrap();
    assert!(attributes.contains(&title) && attributes.contains(&pair("uid", "al")));

    let post = RequestControls { post_read: Some(vec!["entryUUID"]), ..RequestControls::default() };
    let unit: [(&str, &[&str]); 1] = [("objectClass", &["organizationalUnit"])];
    let done = fixture.add_as(&administrator, "ou=new,dc=example,dc=com", &unit, &post).unwrap();
    assert_eq!(read(&done, POST_READ).unwrap().1[0].0, "entryUUID");
}

#[test]
fn a_read_entry_shows_only_what_the_subject_may_read() {
    let fixture = filled();
    let user = fixture.user("ada");
    let controls = RequestControls { post_read: Some(vec!["*"]), ..RequestControls::default() };
    let replace = vec![change(ChangeOperation::Replace, "userPassword", &["another"])];
    let dn = format!("uid=ada,{PEOPLE}");
    let done = fixture.modify_as(&user, &dn, replace, &controls).unwrap();
    let response = ReadResponse::decode(&done.response_controls[0].value).unwrap();
    let names: Vec<_> = texts(&response.0.attributes).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"sn".to_owned()) && !names.contains(&"userPassword".to_owned()));
}
