//! The tree `cn=changelog`, from outside.

use super::*;
use crate::access::{Attributes, Rights, Rule, What, Who};
use crate::{FeedRetention, Settings};
use keyway_codec::controls::PagedResults;
use keyway_store::{Options, Store};

const TOP: &str = "cn=changelog";

fn one_level(filter: &str) -> SearchRequest<'_> {
    SearchRequest { base: TOP, scope: Scope::One, attributes: vec![], ..request(filter) }
}

fn value<'a>((_, attributes): &'a (String, Texts), name: &str) -> Option<&'a str> {
    let (_, values) = attributes.iter().find(|(found, _)| found == name)?;
    values.first().map(String::as_str)
}

/// The number of the last change.
fn last(fixture: &Fixture) -> u64 {
    let dse = fixture.read("", &["lastChangeNumber"]);
    dse.values("lastChangeNumber")[0].parse().unwrap()
}

fn behind(fixture: &Fixture, number: u64) -> Found {
    fixture.search(&one_level(&format!("(changeNumber>={})", number + 1)))
}

#[test]
fn a_client_polls_what_was_changed() {
    let fixture = filled();
    let from = last(&fixture);
    assert!(behind(&fixture, from).entries.is_empty());
    let ann = format!("uid=ann,{PEOPLE}");
    let classes: (&str, &[&str]) = ("objectClass", &["inetOrgPerson"]);
    let values: [(&str, &[&str]); 4] = [
        classes,
        ("cn", &["Ann"]),
        ("sn", &["A"]),
        ("userPassword", &["{SSHA}c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"]),
    ];
    fixture.add(&ann, &values);
    let mail = vec![
        change(ChangeOperation::Add, "mail", &["ann@example.com"]),
        change(
            ChangeOperation::Replace,
            "userPassword",
            &["{SSHA}b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVy"],
        ),
    ];
    fixture.modify(&ann, mail).unwrap();
    fixture.rename(&ann, "uid=anna", true, Some(GROUPS)).unwrap();
    fixture.delete(&format!("uid=anna,{GROUPS}")).unwrap();
    let found = behind(&fixture, from);
    let shown: Vec<_> = found.entries.iter().map(|one| value(one, "changeType").unwrap()).collect();
    assert_eq!(shown, ["add", "modify", "modrdn", "delete"]);
    let [added, modified, moved, deleted] = found.entries.as_slice() else { panic!() };
    assert_eq!(added.0, format!("changeNumber={},{TOP}", from + 1));
    assert_eq!(value(added, "targetDN"), Some(ann.as_str()));
    assert_eq!(value(added, "changeTime"), Some("20231114221320Z"));
    let uuid = value(added, "targetEntryUUID").unwrap();
    assert!(found.entries.iter().all(|one| value(one, "targetEntryUUID") == Some(uuid)));
    let lines = value(added, "changes").unwrap();
    assert!(lines.starts_with("objectClass: inetOrgPerson\n") && lines.ends_with('\n'), "{lines}");
    assert!(lines.contains(&format!("entryUUID: {uuid}\n")) && !lines.contains("\n\n"), "{lines}");
    let lines = value(modified, "changes").unwrap();
    assert!(lines.contains("add: mail\nmail: ann@example.com\n-\n"), "{lines}");
    assert!(!format!("{found:?}").contains("SSHA"), "{found:?}");
    assert_eq!(value(moved, "newRDN"), Some("uid=anna"));
    assert_eq!(value(moved, "deleteOldRDN"), Some("TRUE"));
    assert_eq!(value(moved, "newSuperior"), Some(GROUPS));
    assert_eq!((value(deleted, "changes"), value(deleted, "newRDN")), (None, None));
    assert_eq!(value(deleted, "targetDN"), Some(format!("uid=anna,{GROUPS}").as_str()));
    // A move and the new name that comes with it are two numbers.
    assert_eq!(last(&fixture), from + 5);
}

#[test]
fn numbers_are_found_without_a_look_at_the_others() {
    let fixture = filled();
    let ada = format!("uid=ada,{PEOPLE}");
    let from = last(&fixture);
    for n in 0..300 {
        let text = format!("{n}");
        fixture
            .modify(&ada, vec![change(ChangeOperation::Replace, "description", &[&text])])
            .unwrap();
    }
    let looks = |request: &SearchRequest<'_>| {
        let (subject, controls) = (fixture.administrator(), RequestControls::default());
        let mut search = fixture.directory.search(&subject, request, &controls, ANNOUNCED).unwrap();
        let mut out = Vec::new();
        while matches!(search.step(&fixture.directory, 7, &mut out, 500), Step::More) {}
        (search.progress().candidates, search.progress().returned)
    };
    let within = |filter: &str| looks(&one_level(filter));
    let (low, high) = (from + 200, from + 204);
    assert_eq!(within(&format!("(changeNumber>={})", from + 298)), (3, 3));
    assert_eq!(within(&format!("(&(changeNumber>={low})(changeNumber<={high}))")), (5, 5));
    assert_eq!(within(&format!("(changeNumber={low})")), (1, 1));
    assert_eq!(within(&format!("(changeNumber>={})", from + 301)), (0, 0));
    let (looked, found) = within("(targetDN=uid=alan,*)");
    assert!(looked > 300 && found == 0, "{looked} {found}");
    let few = SearchRequest { size_limit: 4, ..one_level("(objectClass=*)") };
    assert_eq!(looks(&few), (5, 4));
    let name = format!("changeNumber={low},{TOP}");
    assert_eq!(
        looks(&SearchRequest { base: &name, scope: Scope::Base, ..one_level("(cn=*)") }),
        (1, 0)
    );
    assert_eq!(fixture.read(&name, &["changeNumber"]).values("changeNumber"), [low.to_string()]);
    // In pages, each of which goes on where the one before ended.
    let (mut cookie, mut numbers) = (Vec::new(), Vec::new());
    loop {
        let paged = Some(PagedResults { size: 7, cookie: cookie.clone().into() });
        let controls = RequestControls { paged, ..RequestControls::default() };
        let filter = format!("(&(changeNumber>={})(changeType=modify))", from + 250);
        let request = SearchRequest { scope: Scope::Subtree, ..one_level(&filter) };
        let found = fixture.run(&fixture.administrator(), &request, &controls).unwrap();
        numbers
            .extend(found.entries.iter().map(|one| value(one, "changeNumber").unwrap().to_owned()));
        cookie = PagedResults::decode(&found.controls[0].value).unwrap().cookie.into_owned();
        if cookie.is_empty() {
            break;
        }
    }
    let wanted: Vec<String> = (from + 250..=from + 300).map(|number| number.to_string()).collect();
    assert_eq!(numbers, wanted);
}

#[test]
fn the_tree_is_one() {
    let fixture = filled();
    let found = |base: &str, scope| {
        fixture.search(&SearchRequest { base, scope, ..one_level("(objectClass=*)") }).entries.len()
    };
    let all = found(TOP, Scope::One);
    assert!(all >= 20);
    assert_eq!((found(TOP, Scope::Base), found(TOP, Scope::Subtree)), (1, all + 1));
    assert_eq!(found(TOP, Scope::Subordinate), all);
    let name = format!("CHANGENUMBER={},CN=changelog", last(&fixture));
    assert_eq!((found(&name, Scope::Subtree), found(&name, Scope::One)), (1, 0));
    let code_of = |base: &str| {
        let request = SearchRequest { base, scope: Scope::Base, ..one_level("(objectClass=*)") };
        let found = fixture.run(&fixture.administrator(), &request, &RequestControls::default());
        let failure = found.map(drop).unwrap_err();
        (failure.code, failure.matched_dn)
    };
    for missing in ["changeNumber=0", "changeNumber=999999", "cn=x"] {
        let (found, matched) = code_of(&format!("{missing},{TOP}"));
        assert_eq!((found, &*matched), (ResultCode::NoSuchObject, TOP), "{missing}");
    }
    let (found, matched) = code_of(&format!("cn=x,{name}"));
    let above = format!("changeNumber={},{TOP}", last(&fixture));
    assert_eq!((found, &*matched), (ResultCode::NoSuchObject, &*above));
    let change = vec![change(ChangeOperation::Replace, "changes", &["x"])];
    assert_eq!(code(fixture.modify(&name, change)), ResultCode::UnwillingToPerform);
    assert_eq!(code(fixture.delete(&name)), ResultCode::UnwillingToPerform);
}

#[test]
fn only_those_see_it_who_may() {
    let look = Rights::READ | Rights::SEARCH;
    let mut rules = Rule::defaults();
    let fixture = filled_with(&Settings { rules: rules.clone(), ..settings() });
    let ada = fixture.user("ada");
    let refused = fixture.run(&ada, &one_level("(objectClass=*)"), &RequestControls::default());
    assert_eq!(code(refused), ResultCode::InsufficientAccessRights);
    let announced = |fixture: &Fixture, subject: &Subject| {
        fixture.read_as(subject, "", &["*", "+"]).values("changeLog").len()
    };
    assert_eq!(announced(&fixture, &fixture.administrator()), 1);
    assert_eq!((announced(&fixture, &ada), announced(&fixture, &Subject::anonymous())), (0, 0));
    // Another one may, and a scan of too much is refused to him.
    let mut rule =
        Rule::new(Who::Users, What::from_name("changelog").unwrap(), Attributes::All, look);
    rule.needs.dns = vec![format!("uid=ada,{PEOPLE}")];
    rules.push(rule);
    let limited = Settings { rules, search_unindexed_max: 5, ..settings() };
    fixture.directory.reconfigure(&limited).unwrap();
    let run = |filter: &str| {
        fixture.run(&fixture.user("ada"), &one_level(filter), &RequestControls::default()).unwrap()
    };
    assert_eq!(run("(changeNumber>=1)").code(), ResultCode::Success);
    assert_eq!(run("(targetDN=dc=nothing)").code(), ResultCode::AdminLimitExceeded);
    assert_eq!(announced(&fixture, &fixture.user("ada")), 1);
    assert_eq!(announced(&fixture, &fixture.user("alan")), 0);
}

#[test]
fn changes_that_are_not_kept_are_gone() {
    let fixture = filled();
    let name = behind(&fixture, 0).entries[0].0.clone();
    assert_eq!(fixture.read(&name, &["changeNumber"]).entries.len(), 1);
    let before = last(&fixture);
    let feed = FeedRetention { keep: Duration::from_secs(9), bytes_max: 1 };
    fixture.directory.reconfigure(&Settings { feed, ..settings() }).unwrap();
    while fixture.directory.trim_feed().unwrap() {}
    let numbers = |name: &'static str| fixture.read("", &[name]).values(name);
    let [first] = &*numbers("firstChangeNumber") else { panic!() };
    assert!(first.parse::<u64>().unwrap() > before, "{first}");
    let request = SearchRequest { base: &name, scope: Scope::Base, ..one_level("(objectClass=*)") };
    let gone = fixture.run(&fixture.administrator(), &request, &RequestControls::default());
    assert_eq!(code(gone), ResultCode::NoSuchObject);
    assert!(behind(&fixture, 0).entries.is_empty());
}

#[test]
fn without_a_feed_there_is_no_changelog() {
    let folder = TempDir::new().unwrap();
    let options =
        Options { map_bytes_max: 64 << 20, sync: false, feed: false, ..Options::default() };
    let store = Store::open(folder.path(), options).unwrap();
    let directory = Directory::open(store, &settings(), engine()).unwrap();
    directory.bootstrap_administrator(b"{SSHA}none".to_vec()).unwrap();
    let fixture = Fixture { directory, folder };
    assert!(fixture.read("", &["*", "+"]).values("changeLog").is_empty());
    let found = fixture.run(
        &fixture.administrator(),
        &one_level("(objectClass=*)"),
        &RequestControls::default(),
    );
    assert_eq!(code(found), ResultCode::NoSuchObject);
}
