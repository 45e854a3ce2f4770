//! Where searches look, and how little of it.

use super::*;
use crate::limits::{COUNT_MAX, STEP_CANDIDATES_MAX};
use crate::plan::{Lack, Source, Use, plan};
use crate::{IndexKind, IndexSetting};
use keyway_schema::Matcher;
use keyway_store::{EntryId, Key};

/// The way to the entries below the sample's top, and how many candidates it has.
fn planned(fixture: &Fixture, filter: &str) -> (Source, usize) {
    let snapshot = &fixture.directory.snapshot();
    let read = fixture.directory.store.read().unwrap();
    let contexts = snapshot.shared.contexts();
    let tops = crate::naming::tops(read.view(), &contexts).unwrap();
    let matcher = Matcher::new(&snapshot.schema, &Filter::parse(filter).unwrap());
    let lists = tops.into_iter().map(Key::subtree).collect();
    let source = plan(snapshot, read.view(), &matcher, lists, COUNT_MAX).unwrap();
    let count = source.candidates(read.view(), EntryId::ROOT).unwrap().count();
    (source, count)
}

#[test]
fn the_most_selective_index_is_taken() {
    let fixture = filled();
    for (filter, candidates) in [
        ("(uid=ada)", 1),
        ("(&(objectClass=person)(uid=ada))", 1),
        ("(&(uid=ada)(objectClass=person))", 1),
        ("(&(description=x)(uid=ada)(!(cn=*)))", 1),
        ("(|(uid=ada)(uid=alan)(cn=few))", 3),
        ("(|(uid=ada)(&(objectClass=person)(uid=alan)))", 2),
        ("(cn=ada*)", 1),
        ("(cn=*dijk*)", 1),
        ("(sn=*ng)", 1),
        ("(uidNumber>=1012)", 2),
        ("(uidNumber<=1000)", 1),
        ("(&(uidNumber>=1003)(sn=knuth))", 1),
        ("(objectClass=groupOfNames)", 3),
        ("(member=uid=kurt,ou=people,dc=example,dc=com)", 1),
        ("(unheard-of=x)", 0),
        ("(&(objectClass=*)(unheard-of=x))", 0),
        ("(|)", 0),
        ("(|(unheard-of=x)(uid=ada))", 1),
        ("(cn:=ada lovelace)", 1),
        ("(cn:caseIgnoreSubstringsMatch:=\\2adijk\\2a)", 1),
    ] {
        let (source, count) = planned(&fixture, filter);
        assert!(!source.is_scope, "{filter}");
        assert_eq!(count, candidates, "{filter}");
    }
}

#[test]
fn what_no_index_helps_with_is_looked_for_everywhere() {
    let fixture = filled();
    for filter in [
        "(&)",
        "(description=x)",
        "(!(uid=ada))",
        "(|(uid=ada)(description=x))",
        "(cn:caseExactMatch:=Ada Lovelace)",
        "(cn:caseExactSubstringsMatch:=\\2adijk\\2a)",
        "(ou:dn:=people)",
        ":caseIgnoreMatch:=x",
        "(cn=*a*)",
        "(entryDN=ou=people,dc=example,dc=com)",
    ] {
        let filter = match filter.starts_with('(') {
            true => filter.to_owned(),
            false => format!("({filter})"),
        };
        let (source, count) = planned(&fixture, &filter);
        assert!(source.is_scope, "{filter}");
        assert_eq!(count, 20, "{filter}");
    }
}

#[test]
fn a_small_scope_is_walked_rather_than_a_long_list() {
    let fixture = filled();
    let snapshot = &fixture.directory.snapshot();
    let read = fixture.directory.store.read().unwrap();
    let contexts = snapshot.shared.contexts();
    let groups = keyway_schema::EntryName::parse(&snapshot.schema, GROUPS).unwrap();
    let crate::naming::Place::Inside { context, below } = crate::naming::place(&contexts, &groups)
    else {
        panic!("the groups are in a context");
    };
    let base = crate::naming::resolve(read.view(), context, &groups, below).unwrap();
    let matcher = Matcher::new(&snapshot.schema, &Filter::parse("(objectClass=top)").unwrap());
    let scope = vec![Key::children(base)];
    let source = plan(snapshot, read.view(), &matcher, scope, COUNT_MAX).unwrap();
    assert!(source.is_scope);
}

/// A directory of 4,000 accounts with two letters each and a number, on whose lists a plan can gain.
fn lettered() -> Fixture {
    let kinds = [IndexKind::Equality, IndexKind::Substring];
    let names = ["description", "l", "uidNumber", "uid", "objectClass"];
    let kinds = |name| match name {
        "uidNumber" | "objectClass" => &kinds[..1],
        _ => &kinds[..],
    };
    let indexes = names.map(|name| IndexSetting::new(name, kinds(name))).to_vec();
    let fixture = empty(&Settings { indexes, ..settings() });
    let mut text = format!("dn: {BASE}\nobjectClass: domain\n\n");
    for number in 0..4_000 {
        text.push_str(&format!(
            "dn: uid=u{number},{BASE}\nobjectClass: account\nobjectClass: extensibleObject\n\
             uidNumber: {number}\ndescription: word{}\nl: place{}\n\n",
            number % 10,
            number % 7,
        ));
    }
    let options = crate::ImportOptions::default();
    fixture.directory.import(&mut text.as_bytes(), &options, &mut |_| {}).unwrap();
    fixture
}

#[test]
fn what_other_lists_leave_out_is_not_looked_at() {
    let fixture = lettered();
    for (filter, candidates) in [
        // 400 of description, 572 of l; 57 or 58 of both.
        ("(&(description=word3)(l=place2))", 57),
        // A range has to be read whole, which is not worth it for 2,000 numbers.
        ("(&(l=place2)(description=word3)(uidNumber>=2000))", 57),
        ("(&(l=place2)(description=word3)(uidNumber>=3700))", 4),
        ("(&(description=*word3*)(l=place2)(objectClass=account))", 57),
        ("(&(uidNumber>=3960)(description=word3))", 4),
        ("(&(description=word3)(!(l=place2)))", 400),
        ("(|(description=word3)(l=place2))", 915),
        ("(&(|(description=word3)(description=word4))(l=place2))", 114),
        ("(&(description=word3)(objectClass=account))", 400),
    ] {
        let (source, count) = planned(&fixture, filter);
        assert!(!source.is_scope, "{filter}");
        assert_eq!(count, candidates, "{filter}");
    }
}

#[test]
fn a_plan_says_what_it_does() {
    let fixture = lettered();
    let explain = |filter: &str| {
        let filter = Filter::parse(filter).unwrap();
        fixture.directory.explain_search(BASE, Scope::Subtree, &filter).unwrap()
    };
    let explained = explain("(&(objectClass=account)(description=word3)(l=place2)(cn=x))");
    assert_eq!((explained.scope, explained.read, explained.walks_scope), (4_001, 57, false));
    let terms = explained.filter.terms.iter();
    let terms: Vec<_> = terms.map(|term| (term.count, term.used, term.lack.clone())).collect();
    let cn = Lack::Index { attribute: "cn".into(), kind: IndexKind::Equality };
    assert_eq!(
        terms,
        [
            (Some(4_000), Use::Tested, None),
            (Some(400), Use::Walked, None),
            (Some(572), Use::Narrows, None),
            (None, Use::Tested, Some(cn.clone())),
        ]
    );
    let explained = explain("(|(description=word3)(cn=x))");
    assert_eq!((explained.read, explained.walks_scope, explained.lack), (4_001, true, Some(cn)));
    let explained = explain("(objectClass=*)");
    assert_eq!((explained.read, explained.lack), (4_001, None));
    for filter in ["(!(uid=u1))", "(uid=*u*)", "(uid:caseExactMatch:=x)", "(entryDN=o=x)"] {
        assert!(matches!(explain(filter).lack, Some(Lack::Cannot(_))), "{filter}");
    }
}

#[test]
fn a_search_goes_on_when_its_index_goes() {
    let mut wanted = settings();
    let fixture = filled_with(&wanted);
    wanted.indexes.retain(|one| one.attribute != "gidNumber");
    let mut search = fixture
        .directory
        .search(
            &fixture.administrator(),
            &request("(gidNumber=100)"),
            &Default::default(),
            ANNOUNCED,
        )
        .unwrap();
    let mut out = Vec::new();
    assert!(matches!(search.step(&fixture.directory, 1, &mut out, 1), Step::More));
    assert_eq!(decode(&out).len(), 1);
    fixture.directory.turn_to(&wanted).unwrap();
    fixture.directory.finish_indexes().unwrap();
    while let Step::More = search.step(&fixture.directory, 1, &mut out, 1) {}
    assert_eq!(decode(&out).len(), 14);
    assert!(planned(&fixture, "(gidNumber=100)").0.is_scope);
}

#[test]
fn a_step_looks_at_a_bounded_number_of_entries() {
    let fixture = empty(&settings());
    let mut text = "dn: dc=example,dc=com\nobjectClass: domain\n\n".to_owned();
    let entries = 2 * STEP_CANDIDATES_MAX + 10;
    for number in 0..entries {
        text.push_str(&format!("dn: uid=u{number},{BASE}\nobjectClass: account\n\n"));
    }
    let options = crate::ImportOptions::default();
    fixture.directory.import(&mut text.as_bytes(), &options, &mut |_| {}).unwrap();
    let request = request("(description=x)");
    let controls = RequestControls::default();
    let mut search =
        fixture.directory.search(&fixture.administrator(), &request, &controls, ANNOUNCED).unwrap();
    let mut steps = 0;
    while let Step::More = search.step(&fixture.directory, 1, &mut Vec::new(), usize::MAX) {
        steps += 1;
    }
    assert_eq!(steps, 2);
    assert_eq!(fixture.directory.check(&mut |_, _| {}).unwrap().entries, entries as u64 + 3);
}
