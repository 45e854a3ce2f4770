//! Entries that a subject may not know of: each answer on one is that on a name which no entry has.

use super::*;
use crate::access::{Attributes, Below, Place, Rights, Rule, Target, What, Who};
use keyway_codec::message::CompareRequest;

const DEREFS: [Deref; 4] = [Deref::Never, Deref::InSearching, Deref::FindingBase, Deref::Always];

const SCOPES: [Scope; 4] = [Scope::Base, Scope::One, Scope::Subtree, Scope::Subordinate];

/// Code, matched DN and text.
type Answer = (ResultCode, String, String);

fn of(failure: Failure) -> Answer {
    (failure.code, failure.matched_dn, failure.diagnostic)
}

fn rule(rights: Rights, target: Target) -> Rule {
    let data = What::Only(Place::Data);
    Rule { target, ..Rule::new(Who::Users, data, Attributes::All, rights) }
}

/// Users may do everything to entries that match the filter, and nothing else but see the top.
fn with_entries_of(filter: &str, settings: Settings) -> Fixture {
    let look = Rights::READ | Rights::SEARCH;
    let all = look | Rights::COMPARE | Rights::WRITE | Rights::RESET;
    let all = all | Rights::DELETE | Rights::RENAME | Rights::ADD;
    let those = Target { filter: Some(filter.into()), ..Target::default() };
    let top = Some(Below { dn: BASE.into(), scope: Scope::Base });
    let top = Target { below: top, ..Target::default() };
    filled_with(&Settings { rules: vec![rule(all, those), rule(look, top)], ..settings })
}

fn dn(uid: &str) -> String {
    format!("uid={uid},{PEOPLE}")
}

fn refer(fixture: &Fixture, dn: &str) {
    let attributes: [(&str, &[&str]); 2] =
        [("objectClass", &["referral", "extensibleObject"]), ("ref", &["ldap://secret/dc=r"])];
    fixture.add(dn, &attributes);
}

fn alias(fixture: &Fixture, dn: &str, target: &str, description: &str) {
    let classes = ["alias", "extensibleObject"];
    fixture.add(
        dn,
        &[
            ("objectClass", &classes),
            ("aliasedObjectName", &[target]),
            ("description", &[description]),
        ],
    );
}

/// The answer to a search that finds nothing.
fn searched(
    fixture: &Fixture,
    request: &SearchRequest<'_>,
    controls: &RequestControls<'_>,
) -> Answer {
    match fixture.run(&fixture.user("ada"), request, controls) {
        Ok(found) => {
            assert_eq!((found.names(), &found.references), (vec![], &vec![]), "{request:?}");
            let LdapResult { code, matched_dn, diagnostic, .. } = found.result.unwrap();
            (code, matched_dn.into_owned(), diagnostic.into_owned())
        }
        Err(failure) => {
            assert_eq!(failure.referrals, [""; 0]);
            of(failure)
        }
    }
}

/// The answers to all operations on an entry of this name.
fn told(fixture: &Fixture, dn: &str) -> Vec<Answer> {
    let (ada, own) = (fixture.user("ada"), self::dn("ada"));
    let (directory, controls) = (&fixture.directory, RequestControls::default());
    let assertion = |filter| Some(Filter::parse(filter).unwrap());
    let asserting = ["(cn=x)", "(objectClass=*)"].map(|filter| RequestControls {
        assertion: assertion(filter),
        ..RequestControls::default()
    });
    let mut told = Vec::new();
    for (scope, deref) in SCOPES.into_iter().flat_map(|one| DEREFS.map(|deref| (one, deref))) {
        let request = |filter| SearchRequest { base: dn, scope, deref, ..request(filter) };
        for filter in ["(cn=*)", "(description=*without an index*)", "(uid=ada)"] {
            told.push(searched(fixture, &request(filter), &controls));
        }
        for asserting in &asserting {
            told.push(searched(fixture, &request("(cn=*)"), asserting));
        }
    }
    let rename = |dn, new_rdn, new_superior, controls: &RequestControls<'_>| {
        let request = ModifyDnRequest { dn, new_rdn, delete_old_rdn: false, new_superior };
        of(block_on(directory.modify_dn(&ada, &request, controls)).unwrap_err())
    };
    let replace = |name, value| change(ChangeOperation::Replace, name, &[value]);
    let person: [(&str, &[&str]); 2] = [("objectClass", &["person"]), ("sn", &["x"])];
    let below = format!("cn=x,{dn}");
    let [failing, holding] = &asserting;
    for controls in [&controls, failing, holding] {
        for edit in [
            replace("description", "y"),
            replace("userPassword", "a good one"),
            replace("userPassword", "x"),
        ] {
            told.push(of(fixture.modify_as(&ada, dn, vec![edit], controls).unwrap_err()));
        }
        for attribute in ["cn", "nosuchattr", "cn;lang-de", "jpegPhoto", "uidNumber"] {
            let compare = CompareRequest { dn, attribute, value: b"x" };
            told.push(of(directory.compare(&ada, &compare, controls, ANNOUNCED).unwrap_err()));
        }
        told.push(of(block_on(directory.delete(&ada, dn, controls)).unwrap_err()));
        told.push(rename(dn, "cn=x", None, controls));
        told.push(of(fixture.add_as(&ada, &below, &person, controls).unwrap_err()));
    }
    told.push(rename(&own, "uid=ada", Some(dn), &controls));
    told.push(rename(&own, "uid=ada", Some(dn), holding));
    told.push(of(directory.may_set_password(&ada, dn).unwrap_err()));
    told
}

#[test]
fn an_entry_that_a_subject_may_do_nothing_to_is_not_there() {
    let fixture = with_entries_of("(uid=ada)", settings());
    let (ada, controls) = (fixture.user("ada"), RequestControls::default());
    let described = vec![change(ChangeOperation::Replace, "description", &["x"])];
    fixture.modify_as(&ada, &dn("ada"), described, &controls).unwrap();
    let missing = told(&fixture, &dn("none"));
    for (at, (code, matched, _)) in missing.iter().enumerate() {
        assert_eq!((*code, &**matched), (ResultCode::NoSuchObject, BASE), "answer {at}");
    }
    // Entries that stand for others, and those above a referral object, are no exceptions.
    let [referral, unit] = ["remote", "unit"].map(|ou| format!("ou={ou},{PEOPLE}"));
    refer(&fixture, &referral);
    fixture.add(&unit, &[("objectClass", &["organizationalUnit"])]);
    refer(&fixture, &format!("ou=remote,{unit}"));
    let [to_own, looped] = ["own", "loop"].map(|cn| format!("cn={cn},{PEOPLE}"));
    alias(&fixture, &to_own, &dn("ada"), "hidden");
    alias(&fixture, &looped, &looped, "hidden");
    let few = format!("cn=few,{GROUPS}");
    for there in [dn("kurt"), few, referral, unit, to_own, looped] {
        let below = format!("cn=q,{there}");
        for name in [there, below] {
            for (at, (told, missing)) in told(&fixture, &name).iter().zip(&missing).enumerate() {
                assert_eq!(told, missing, "answer {at} of {name}");
            }
        }
    }
    // Below an entry that is not to be known of, another one is found as ever.
    for base in [BASE, PEOPLE] {
        let request = SearchRequest { base, ..request("(uid=ada)") };
        assert_eq!(fixture.run(&ada, &request, &controls).unwrap().names(), ["ada"]);
    }
}

#[test]
fn an_alias_of_an_entry_that_a_subject_may_not_know_of_is_one_of_nothing() {
    let fixture = with_entries_of("(|(uid=ada)(description=visible))", settings());
    let [referral, hidden] = ["ou=remote", "cn=hidden"].map(|rdn| format!("{rdn},{PEOPLE}"));
    refer(&fixture, &referral);
    alias(&fixture, &hidden, &dn("ada"), "hidden");
    alias(&fixture, &format!("cn=one,{PEOPLE}"), &format!("cn=other,{PEOPLE}"), "hidden");
    alias(&fixture, &format!("cn=other,{PEOPLE}"), &format!("cn=one,{PEOPLE}"), "hidden");
    let unit = format!("ou=unit,{BASE}");
    let classes: [(&str, &[&str]); 2] =
        [("objectClass", &["organizationalUnit"]), ("description", &["visible"])];
    fixture.add(&unit, &classes);
    let name = format!("cn=name,{unit}");
    let answers = |target: &str| -> Vec<Answer> {
        alias(&fixture, &name, target, "visible");
        let mut answers = Vec::new();
        for (base, deref) in
            [name.clone(), format!("cn=q,{name}"), unit.clone()].iter().flat_map(|base| {
                [Deref::InSearching, Deref::FindingBase, Deref::Always].map(|it| (base, it))
            })
        {
            for scope in SCOPES {
                let filter = "(!(|(objectClass=alias)(ou=unit)))";
                let request = SearchRequest { base, scope, deref, ..request(filter) };
                answers.push(searched(&fixture, &request, &RequestControls::default()));
            }
        }
        fixture.delete(&name).unwrap();
        answers
    };
    let missing = answers(&dn("none"));
    assert!(missing.iter().any(|(code, ..)| *code == ResultCode::AliasProblem));
    for target in [
        dn("kurt"),
        PEOPLE.to_owned(),
        referral.clone(),
        format!("cn=q,{referral}"),
        hidden.clone(),
        format!("cn=q,{hidden}"),
        format!("cn=one,{PEOPLE}"),
        format!("ou=unheard of,{BASE}"),
    ] {
        assert_eq!(answers(&target), missing, "{target}");
    }
    // One of an entry that is to be known of leads there, also where that is below a hidden one.
    alias(&fixture, &name, &dn("ada"), "visible");
    for deref in [Deref::FindingBase, Deref::Always] {
        let request = SearchRequest { base: &name, deref, ..request("(uid=ada)") };
        let found = fixture.run(&fixture.user("ada"), &request, &RequestControls::default());
        assert_eq!(found.unwrap().names(), ["ada"]);
    }
    // A hidden alias is not followed in searching either.
    fixture.delete(&name).unwrap();
    alias(&fixture, &name, &dn("ada"), "hidden");
    for (base, found) in [(&*unit, vec![]), (BASE, vec!["ada"])] {
        let request = SearchRequest { base, deref: Deref::Always, ..request("(uid=ada)") };
        let ada = fixture.user("ada");
        assert_eq!(
            fixture.run(&ada, &request, &RequestControls::default()).unwrap().names(),
            found
        );
    }
}

#[test]
fn a_limit_that_is_met_below_a_hidden_base_does_not_tell_of_it() {
    let clock = Clock { monotonic: a_second_a_look, ..settings().clock };
    let fixture = with_entries_of("(uid=ada)", Settings { clock, ..settings() });
    let limited = |base: &str| {
        let request = SearchRequest { base, time_limit_s: 1, ..request("(cn=*)") };
        searched(&fixture, &request, &RequestControls::default())
    };
    assert_eq!(limited(BASE).0, ResultCode::TimeLimitExceeded);
    assert_eq!(limited(PEOPLE), limited(&dn("none")));
}

/// A referral object that a subject may do something to leads elsewhere, whatever that is.
#[test]
fn a_referral_object_that_is_to_be_known_of_leads_elsewhere() {
    let fixture = with_entries_of("(objectClass=referral)", settings());
    let referral = format!("ou=remote,{PEOPLE}");
    refer(&fixture, &referral);
    for base in [referral.clone(), format!("cn=q,{referral}")] {
        let request = SearchRequest { base: &base, ..request("(cn=*)") };
        let ada = fixture.user("ada");
        let failure = fixture.run(&ada, &request, &RequestControls::default()).unwrap_err();
        assert_eq!(failure.code, ResultCode::Referral);
    }
    // Below a base that the subject may not know of, its continuation is an answer as well.
    let request = SearchRequest { base: PEOPLE, ..request("(cn=*)") };
    let found = fixture.run(&fixture.user("ada"), &request, &RequestControls::default()).unwrap();
    assert_eq!((found.code(), found.references.len()), (ResultCode::Success, 1));
}
