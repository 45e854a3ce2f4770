//! Rules with conditions.

use super::*;
use crate::access::{
    Attributes, Below, Network, Origin, Over, Place, Question, Rights, Rule, Strength, Target,
    What, Who, difference,
};
use std::net::IpAddr;

fn dn(uid: &str) -> String {
    format!("uid={uid},{PEOPLE}")
}

fn group(cn: &str) -> String {
    format!("cn={cn},{GROUPS}")
}

fn rule(rights: Rights) -> Rule {
    Rule::new(Who::Users, What::Only(Place::Data), Attributes::All, rights)
}

fn with(rules: &[Rule]) -> Fixture {
    filled_with(&Settings { rules: rules.to_vec(), ..settings() })
}

fn look() -> Rights {
    Rights::READ | Rights::SEARCH
}

fn sees(fixture: &Fixture, subject: &Subject) -> Vec<String> {
    let controls = RequestControls::default();
    match fixture.run(subject, &request("(|(uid=ada)(uid=alan)(uid=kurt)(cn=few))"), &controls) {
        Ok(found) => found.names(),
        Err(failure) => {
            let nothing = [ResultCode::InsufficientAccessRights, ResultCode::NoSuchObject];
            assert!(nothing.contains(&failure.code), "{failure}");
            Vec::new()
        }
    }
}

fn from(subject: Subject, address: &str, strength: Strength) -> Subject {
    let address: Option<IpAddr> = Some(address.parse().unwrap());
    subject.over(Over { address, strength })
}

#[test]
fn a_group_of_the_subject_is_looked_up_again_when_it_changes() {
    let mut by_group = rule(look());
    by_group.needs.groups = vec![group("outer")];
    let fixture = with(&[by_group]);
    fixture
        .add(&group("outer"), &[("objectClass", &["groupOfNames"]), ("member", &[&group("few")])]);
    let (ada, kurt) = (fixture.user("ada"), fixture.user("kurt"));
    assert_eq!(sees(&fixture, &ada), ["ada", "alan", "few", "kurt"]);
    assert_eq!(sees(&fixture, &kurt), [""; 0]);
    let member = |operation, uid: &str| {
        let change = change(operation, "member", &[]);
        let mut change = change;
        let dn = dn(uid);
        change.attribute = attribute("member", &[&dn]);
        fixture.modify(&group("few"), vec![change]).unwrap();
    };
    member(ChangeOperation::Add, "kurt");
    assert_eq!(sees(&fixture, &kurt).len(), 4);
    member(ChangeOperation::Delete, "ada");
    assert_eq!(sees(&fixture, &ada), [""; 0]);
    // His rights do not outlive the group's name either.
    fixture.rename(&group("outer"), "cn=other", true, None).unwrap();
    assert_eq!(sees(&fixture, &kurt), [""; 0]);
}

#[test]
fn dn_address_and_strength_must_all_be_right() {
    let mut narrow = rule(look());
    narrow.needs.dns = vec![dn("ada").to_uppercase(), dn("alan")];
    narrow.needs.from = vec![Network::parse("192.0.2.0/24").unwrap()];
    narrow.needs.strength = Strength::Tls;
    let fixture = with(&[narrow]);
    let ada = || fixture.user("ada");
    assert_eq!(sees(&fixture, &from(ada(), "192.0.2.1", Strength::Tls)).len(), 4);
    assert_eq!(sees(&fixture, &from(ada(), "::ffff:192.0.2.1", Strength::Certificate)).len(), 4);
    assert_eq!(sees(&fixture, &from(ada(), "192.0.3.1", Strength::Tls)).len(), 0);
    assert_eq!(sees(&fixture, &from(ada(), "192.0.2.1", Strength::Private)).len(), 0);
    assert_eq!(sees(&fixture, &from(fixture.user("kurt"), "192.0.2.1", Strength::Tls)).len(), 0);
    assert_eq!(sees(&fixture, &ada()).len(), 0);
}

#[test]
fn an_entry_can_name_who_may() {
    let mut managed = rule(look());
    managed.needs.relations = vec!["manager".into()];
    let mut members = rule(look());
    members.needs.relations = vec!["member".into()];
    let fixture = with(&[managed, members]);
    let boss =
        change(ChangeOperation::Replace, "manager", &["UID=Ada, ou=people,dc=example,dc=com"]);
    fixture.modify(&dn("kurt"), vec![boss]).unwrap();
    assert_eq!(sees(&fixture, &fixture.user("ada")), ["few", "kurt"]);
    assert_eq!(sees(&fixture, &fixture.user("alan")), [""; 0]);
}

#[test]
fn targets_are_parts_of_the_tree_filters_and_exceptions() {
    let below = |dn: &str, scope| Some(Below { dn: dn.into(), scope });
    let mut people = rule(look());
    people.target = Target { below: below(PEOPLE, Scope::Subordinate), ..Target::default() };
    let fixture = with(&[people.clone()]);
    let user = fixture.user("kurt");
    assert_eq!(sees(&fixture, &user), ["ada", "alan", "kurt"]);
    people.target.filter = Some("(|(uid=ada)(uid=kurt))".into());
    let fixture = with(&[people.clone()]);
    assert_eq!(sees(&fixture, &fixture.user("kurt")), ["ada", "kurt"]);
    people.target.except_members_of = vec![group("few")];
    let fixture = with(&[people.clone()]);
    assert_eq!(sees(&fixture, &fixture.user("kurt")), ["kurt"]);
    // Where a group is not there it may have been renamed: nothing is granted.
    people.target.except_members_of.push(group("none"));
    let fixture = with(&[people.clone()]);
    assert_eq!(sees(&fixture, &fixture.user("kurt")), [""; 0]);
    for (scope, expected) in [
        (Scope::Base, vec![]),
        (Scope::One, vec![]),
        (Scope::Subtree, vec!["ada", "alan", "few", "kurt"]),
    ] {
        let mut rule = rule(look());
        rule.target.below = below(BASE, scope);
        let fixture = with(&[rule]);
        assert_eq!(sees(&fixture, &fixture.user("kurt")), expected, "{scope:?}");
    }
}

#[test]
fn a_reset_is_a_new_password_and_nothing_else() {
    let mut help = rule(Rights::RESET);
    help.needs.groups = vec![group("few")];
    help.target.except_members_of = vec![group("some")];
    let fixture = with(&[help, rule(look())]);
    let (ada, controls) = (fixture.user("ada"), RequestControls::default());
    let try_to = |operation, dn: &str, name: &str, values: &[&str]| {
        code(fixture.modify_as(&ada, dn, vec![change(operation, name, values)], &controls))
    };
    let denied = ResultCode::InsufficientAccessRights;
    let replace = ChangeOperation::Replace;
    assert_eq!(try_to(replace, &dn("kurt"), "userPassword", &["new"]), ResultCode::Success);
    assert_eq!(try_to(ChangeOperation::Add, &dn("kurt"), "userPassword", &["two"]), denied);
    assert_eq!(try_to(ChangeOperation::Delete, &dn("kurt"), "userPassword", &[]), denied);
    assert_eq!(try_to(replace, &dn("kurt"), "description", &["x"]), denied);
    assert_eq!(try_to(replace, &dn("alan"), "userPassword", &["new"]), denied);
    assert_eq!(code(fixture.directory.may_set_password(&ada, &dn("kurt"))), ResultCode::Success);
    assert_eq!(code(fixture.directory.may_set_password(&ada, &dn("alan"))), denied);
    let alan = fixture.user("alan");
    assert_eq!(code(fixture.directory.may_set_password(&alan, &dn("kurt"))), denied);
}

#[test]
fn adding_deleting_and_renaming_are_three_rights() {
    for (right, may) in [(Rights::ADD, 0), (Rights::DELETE, 1), (Rights::RENAME, 2)] {
        let mut one = rule(right);
        one.target.below = Some(Below { dn: PEOPLE.into(), scope: Scope::Subtree });
        let fixture = with(&[one]);
        let (user, controls) = (fixture.user("kurt"), RequestControls::default());
        let device: [(&str, &[&str]); 1] = [("objectClass", &["device"])];
        let rename = ModifyDnRequest {
            dn: &dn("alan"),
            new_rdn: "uid=other",
            delete_old_rdn: true,
            new_superior: None,
        };
        let directory = &fixture.directory;
        let done = [
            code(fixture.add_as(&user, &format!("cn=x,{PEOPLE}"), &device, &controls)),
            code(block_on(directory.delete(&user, &dn("ada"), &controls))),
            code(block_on(directory.modify_dn(&user, &rename, &controls))),
        ];
        for (at, code) in done.iter().enumerate() {
            assert_eq!(*code == ResultCode::Success, at == may, "{right}: {done:?}");
        }
        let elsewhere = fixture.add_as(&user, &format!("cn=x,{GROUPS}"), &device, &controls);
        let nothing_there = match right {
            // Refused before anything is looked up.
            Rights::DELETE | Rights::RENAME => ResultCode::InsufficientAccessRights,
            _ => ResultCode::NoSuchObject,
        };
        assert_eq!(code(elsewhere), nothing_there);
        // To move takes the right to add where it goes.
        let dn = dn("barbara");
        let away = ModifyDnRequest {
            dn: &dn,
            new_rdn: "uid=barbara",
            delete_old_rdn: false,
            new_superior: Some(GROUPS),
        };
        let moved = block_on(directory.modify_dn(&user, &away, &controls));
        let nothing_there = match right {
            Rights::RENAME => ResultCode::NoSuchObject,
            _ => ResultCode::InsufficientAccessRights,
        };
        assert_eq!(code(moved), nothing_there);
    }
}

/// A name has values of attributes: to rename is no way to write those that it was not made of.
#[test]
fn a_rename_writes_no_other_attributes() {
    let mut one = rule(Rights::RENAME);
    one.target.below = Some(Below { dn: PEOPLE.into(), scope: Scope::Subtree });
    let mut title = rule(Rights::WRITE);
    title.attributes = Attributes::Only(vec!["title".to_owned()]);
    for (rules, may) in [(vec![one.clone()], false), (vec![one, title], true)] {
        let fixture = with(&rules);
        let (user, controls) = (fixture.user("kurt"), RequestControls::default());
        let rename = |dn: &str, new_rdn: &str, delete_old_rdn| {
            let request = ModifyDnRequest { dn, new_rdn, delete_old_rdn, new_superior: None };
            code(block_on(fixture.directory.modify_dn(&user, &request, &controls)))
        };
        let denied = ResultCode::InsufficientAccessRights;
        let (alan, titled) = (dn("alan"), format!("uid=alan+title=king,{PEOPLE}"));
        assert_eq!(rename(&alan, "uid=alan+description=x", false), denied);
        assert_eq!(rename(&alan, "uid=alan+userPassword=x", false), ResultCode::NamingViolation);
        assert_eq!(rename(&alan, "sn=other", true), denied);
        let expected = if may { ResultCode::Success } else { denied };
        assert_eq!(rename(&alan, "uid=alan+title=king", false), expected);
        if may {
            assert_eq!(rename(&titled, "uid=alan", true), ResultCode::Success);
        }
        assert_eq!(rename(&alan, "uid=alan2", true), ResultCode::Success);
    }
}

#[test]
fn rules_that_make_no_sense_are_refused_with_their_line() {
    let fixture = filled();
    let refused = |change: fn(&mut Rule)| {
        let mut wrong = rule(look());
        wrong.origin = Origin::Line(7);
        change(&mut wrong);
        let settings = Settings { rules: vec![wrong], ..settings() };
        let why = fixture.directory.reconfigure(&settings).unwrap_err().to_string();
        assert!(why.contains("line 7"), "{why}");
        why
    };
    assert!(refused(|rule| rule.needs.groups = vec!["shoe=1".into()]).contains("shoe"));
    assert!(refused(|rule| rule.needs.relations = vec!["cn".into()]).contains("cn are no DNs"));
    assert!(refused(|rule| rule.target.filter = Some("(shoe=1)".into())).contains("(shoe=1)"));
    assert!(refused(|rule| rule.target.filter = Some("(".into())).contains("filter"));
    assert!(refused(|rule| rule.needs.dns = vec![String::new()]).contains("empty"));
}

#[test]
fn an_explanation_names_the_rule_and_what_is_missing() {
    let mut help = rule(Rights::RESET);
    help.origin = Origin::Line(3);
    help.needs.groups = vec![group("few")];
    help.target.except_members_of = vec![group("some")];
    let fixture = with(&[help, rule(look())]);
    let directory = &fixture.directory;
    let (kurt, alan) = (dn("kurt"), dn("alan"));
    let ask = |dn, right, attribute| Question { dn, right, attribute };
    let explain = |who: &str, question: &Question<'_>| {
        let found = directory.explain(&fixture.user(who), question).unwrap();
        found.into_iter().map(|one| (one.grants(), one.why_not)).collect::<Vec<_>>()
    };
    let reset = ask(&kurt, Rights::RESET, None);
    let [(true, _), (false, other), (false, _)] = &explain("ada", &reset)[..] else { panic!() };
    assert_eq!(other[..], ["it does not grant reset"]);
    let [(false, group), ..] = &explain("kurt", &reset)[..] else { panic!() };
    assert!(matches!(&group[..], [one] if one.contains("not in group cn=few")), "{group:?}");
    let [(false, except), ..] = &explain("ada", &ask(&alan, Rights::RESET, None))[..] else {
        panic!()
    };
    assert!(matches!(&except[..], [one] if one.contains("leaves out")), "{except:?}");
    let unknown = ask(&alan, Rights::READ, Some("shoe"));
    let failed = directory.explain(&fixture.user("ada"), &unknown);
    assert_eq!(code(failed), ResultCode::UndefinedAttributeType);

    let question = ask(&alan, Rights::RESET, None);
    let lines = |anywhere| {
        let found = directory.who_can(&question, anywhere).unwrap();
        found.into_iter().map(|one| one.rule.origin).collect::<Vec<_>>()
    };
    assert_eq!(lines(true), [Origin::Line(3), Origin::BuiltIn]);
    assert_eq!(lines(false), [Origin::BuiltIn], "alan is left out");
}

#[test]
fn a_difference_is_what_no_other_rule_covers() {
    let fixture = empty(&settings());
    let snapshot = fixture.directory.snapshot();
    let schema = &snapshot.schema;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let everything = rule(look());
    let mut some = rule(look() | Rights::WRITE);
    some.attributes = Attributes::Only(names(&["cn", "mail"]));
    some.needs.groups = vec![group("few")];
    let left = |new: &[&Rule], old: &[&Rule]| {
        let own = |rules: &[&Rule]| rules.iter().map(|rule| (*rule).clone()).collect::<Vec<_>>();
        let grants = difference(&own(new), &own(old), schema);
        grants.into_iter().flat_map(|grant| grant.left).collect::<Vec<_>>()
    };
    assert_eq!(left(&[&everything], &[&everything]), []);
    let written = (Rights::WRITE, Attributes::Only(names(&["cn", "mail"])));
    assert_eq!(left(&[&some], &[&everything]), [written]);
    let mut all_but = everything.clone();
    all_but.attributes = Attributes::Except(names(&["mail"]));
    let mail = (look(), Attributes::Only(names(&["mail"])));
    assert_eq!(left(&[&everything], &[&all_but]), [mail]);
    assert_eq!(left(&[&all_but], &[&everything]), []);
    let mut below = everything.clone();
    below.target.below = Some(Below { dn: PEOPLE.into(), scope: Scope::Subtree });
    let mut deeper = everything.clone();
    deeper.target.below = Some(Below { dn: dn("ada").to_uppercase(), scope: Scope::Base });
    assert_eq!(left(&[&deeper], &[&below]), []);
    assert_eq!(left(&[&below], &[&deeper]), [(look(), Attributes::All)]);
    let mut for_everyone = everything.clone();
    for_everyone.who = Who::Everyone;
    assert_eq!(left(&[&everything], &[&for_everyone]), []);
    assert_eq!(left(&[&for_everyone], &[&everything]).len(), 1);
    let mut excepting = everything.clone();
    excepting.target.except_members_of = vec![group("few")];
    assert_eq!(left(&[&excepting], &[&everything]), []);
    assert_eq!(left(&[&everything], &[&excepting]).len(), 1);
}

#[test]
fn a_subject_by_subtree_and_its_own_membership() {
    let mut read = rule(look());
    read.needs.subtrees = vec![PEOPLE.to_uppercase()];
    let mut join = rule(Rights::SELF_WRITE);
    join.attributes = Attributes::Only(vec!["member".into()]);
    join.needs.subtrees = vec![PEOPLE.into()];
    let fixture = with(&[read, join]);
    let elsewhere = group("service");
    fixture.add(&elsewhere, &[("objectClass", &["person"]), ("sn", &["x"])]);
    let service = fixture.subject(&elsewhere);
    assert_eq!(sees(&fixture, &fixture.user("kurt")).len(), 4);
    assert_eq!(sees(&fixture, &service), [""; 0]);
    let edit = |who: &Subject, changes: &[(ChangeOperation, &[&str])]| {
        let values = |dns: &[&str]| -> Vec<String> { dns.iter().map(|uid| dn(uid)).collect() };
        let changes: Vec<(ChangeOperation, Vec<String>)> =
            changes.iter().map(|(operation, uids)| (*operation, values(uids))).collect();
        let changes = changes.iter().map(|(operation, dns)| {
            let dns: Vec<&str> = dns.iter().map(String::as_str).collect();
            Change { operation: *operation, attribute: attribute("member", &dns) }
        });
        let changes = changes.collect();
        code(fixture.modify_as(who, &group("few"), changes, &RequestControls::default()))
    };
    use ChangeOperation::{Add, Delete, Replace};
    let kurt = fixture.user("kurt");
    let denied = ResultCode::InsufficientAccessRights;
    assert_eq!(edit(&kurt, &[(Add, &["kurt"])]), ResultCode::Success);
    assert_eq!(edit(&kurt, &[(Add, &["alan"])]), denied);
    assert_eq!(edit(&kurt, &[(Delete, &["ada"])]), denied);
    assert_eq!(edit(&kurt, &[(Delete, &["kurt", "ada"])]), denied);
    assert_eq!(edit(&kurt, &[(Delete, &["kurt"]), (Delete, &["ada"])]), denied);
    assert_eq!(edit(&kurt, &[(Delete, &[])]), denied, "that is all of them");
    assert_eq!(edit(&kurt, &[(Replace, &["kurt"])]), denied);
    assert_eq!(edit(&service, &[(Add, &["kurt"])]), denied);
    assert_eq!(edit(&kurt, &[(Delete, &["kurt"])]), ResultCode::Success);
}
