//! Groups: who is in which, seen from both sides.

use super::*;
use crate::{IntegritySetting, MemberOf};

fn group(fixture: &Fixture, cn: &str, members: &[&str]) {
    let attributes: [(&str, &[&str]); 2] =
        [("objectClass", &["groupOfNames"]), ("member", members)];
    fixture.add(&format!("cn={cn},{GROUPS}"), &attributes);
}

fn dn(uid: &str) -> String {
    format!("uid={uid},{PEOPLE}")
}

fn groups_of(fixture: &Fixture, uid: &str) -> Vec<String> {
    let mut values = fixture.read(&dn(uid), &["memberOf"]).values("memberOf");
    values.sort();
    let name = |dn: &String| dn.split([',', '=']).nth(1).unwrap_or_default().to_owned();
    values.iter().map(name).collect()
}

fn in_group(fixture: &Fixture, cn: &str) -> Vec<String> {
    fixture.names(&format!("(memberOf=cn={cn},{GROUPS})"))
}

fn with(member_of: MemberOf) -> Fixture {
    let integrity = IntegritySetting { member_of, ..IntegritySetting::default() };
    filled_with(&Settings { integrity, ..settings() })
}

#[test]
fn an_entry_shows_its_groups_when_asked() {
    let fixture = filled();
    assert_eq!(groups_of(&fixture, "ada"), ["all", "few", "some"]);
    assert_eq!(groups_of(&fixture, "margaret"), ["all"]);
    // It is operational: `+` has it, `*` has not.
    assert!(fixture.read(&dn("ada"), &["+"]).descriptions().contains(&"memberOf".to_owned()));
    assert!(!fixture.read(&dn("ada"), &["*"]).descriptions().contains(&"memberOf".to_owned()));
    assert_eq!(fixture.read(BASE, &["memberOf"]).descriptions(), [""; 0]);
    let set = fixture.modify(&dn("ada"), vec![change(ChangeOperation::Add, "memberOf", &[BASE])]);
    assert_eq!(code(set), ResultCode::ConstraintViolation);
}

#[test]
fn a_filter_finds_the_members_of_a_group() {
    let fixture = filled();
    assert_eq!(in_group(&fixture, "some"), ["ada", "alan", "barbara", "claude", "donald"]);
    // However it is spelled.
    assert_eq!(fixture.names(&format!("(memberOf=CN=Few, {})", GROUPS.to_uppercase())), ["ada"]);
    assert_eq!(in_group(&fixture, "none").len(), 0);
    assert_eq!(fixture.names("(memberOf=no dn)").len(), 0);
    assert_eq!(fixture.names("(memberOf=*)").len(), 14);
    let both = format!("(&(memberOf=cn=some,{GROUPS})(!(memberOf=cn=few,{GROUPS})))");
    assert_eq!(fixture.names(&both), ["alan", "barbara", "claude", "donald"]);
    let either = format!("(|(memberOf=cn=few,{GROUPS})(uid=kurt))");
    assert_eq!(fixture.names(&either), ["ada", "kurt"]);
}

#[test]
fn a_change_of_the_group_is_seen_at_once() {
    let fixture = filled();
    let few = format!("cn=few,{GROUPS}");
    let member = |operation, uid: &str| {
        let member = dn(uid);
        fixture.modify(&few, vec![change(operation, "member", &[&member])]).unwrap();
    };
    member(ChangeOperation::Add, "kurt");
    assert_eq!(in_group(&fixture, "few"), ["ada", "kurt"]);
    assert_eq!(groups_of(&fixture, "kurt"), ["all", "few"]);
    member(ChangeOperation::Delete, "ada");
    assert_eq!(in_group(&fixture, "few"), ["kurt"]);
    assert_eq!(groups_of(&fixture, "ada"), ["all", "some"]);
    fixture.delete(&few).unwrap();
    assert_eq!(groups_of(&fixture, "kurt"), ["all"]);
}

#[test]
fn groups_in_groups_count_and_circles_end() {
    let fixture = filled();
    let name = |cn: &str| format!("cn={cn},{GROUPS}");
    group(&fixture, "outer", &[&name("inner"), &dn("kurt")]);
    group(&fixture, "inner", &[&name("few"), &name("outer")]);
    assert_eq!(groups_of(&fixture, "ada"), ["all", "few", "inner", "outer", "some"]);
    assert_eq!(in_group(&fixture, "outer"), ["ada", "few", "inner", "kurt", "outer"]);
    assert_eq!(in_group(&fixture, "inner"), in_group(&fixture, "outer"));

    let direct = with(MemberOf::Direct);
    group(&direct, "outer", &[&name("few"), &dn("kurt")]);
    assert_eq!(groups_of(&direct, "ada"), ["all", "few", "some"]);
    assert_eq!(in_group(&direct, "outer"), ["few", "kurt"]);

    let off = with(MemberOf::Off);
    assert_eq!(groups_of(&off, "ada"), [""; 0]);
    assert_eq!(in_group(&off, "all").len(), 0);
    assert_eq!(off.names("(memberOf=*)").len(), 0);
}

#[test]
fn unique_members_and_member_uids_are_members() {
    let fixture = filled();
    let (ada, alan) = (dn("ada"), dn("alan"));
    fixture.add(
        &format!("cn=unique,{GROUPS}"),
        &[("objectClass", &["groupOfUniqueNames"]), ("uniqueMember", &[&ada, &alan])],
    );
    fixture.add(
        &format!("cn=posix,{GROUPS}"),
        &[("objectClass", &["posixGroup"]), ("gidNumber", &["7"]), ("memberUid", &["ada", "kurt"])],
    );
    assert_eq!(groups_of(&fixture, "ada"), ["all", "few", "posix", "some", "unique"]);
    assert_eq!(groups_of(&fixture, "kurt"), ["all", "posix"]);
    assert_eq!(in_group(&fixture, "unique"), ["ada", "alan"]);
    assert_eq!(in_group(&fixture, "posix"), ["ada", "kurt"]);
}

#[test]
fn what_an_import_says_of_groups_is_compared_with_them() {
    let fixture = empty(&settings());
    let ldif = "\
dn: dc=x
objectClass: domain
dc: x

dn: cn=ada,dc=x
objectClass: person
cn: ada
sn: ada
memberOf: cn=G,dc=x
memberOf: cn=gone,dc=x
memberOf: cn=h,dc=x

dn: cn=g,dc=x
objectClass: groupOfNames
cn: g
member: cn=Ada, dc=x

dn: cn=h,dc=x
objectClass: groupOfNames
cn: h
";
    let options = crate::ImportOptions::default();
    let report = fixture.directory.import(&mut ldif.as_bytes(), &options, &mut |_| {}).unwrap();
    assert_eq!((report.records, report.notes.0.len()), (4, 0));
    let said = report.member_of;
    assert_eq!((said.agreeing, said.disagreeing, said.unchecked), (1, 2, 0));
    let groups: Vec<&str> = said.first.iter().map(|one| one.group.as_str()).collect();
    assert_eq!(groups, ["cn=gone,dc=x", "cn=h,dc=x"]);
    let found = fixture.read("cn=ada,dc=x", &["memberOf"]);
    assert_eq!(found.values("memberOf"), ["cn=g,dc=x"]);
}
