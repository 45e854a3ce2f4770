//! Export: what is written, and that it can be read back to the same.

use super::*;
use crate::ImportOptions;

pub fn exported(fixture: &Fixture, base: Option<&str>) -> String {
    let mut out = Vec::new();
    let mut told = 0;
    let count = fixture.directory.export(base, &mut out, &mut |entries| told = entries).unwrap();
    assert_eq!(count, told);
    String::from_utf8(out).unwrap()
}

fn dns(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("dn: ")).collect()
}

#[test]
fn parents_come_before_children() {
    let fixture = filled();
    // An entry that is older than the one above it.
    fixture.rename(GROUPS, "ou=groups", true, Some(&format!("uid=margaret,{PEOPLE}"))).unwrap();
    let text = exported(&fixture, None);
    let dns = dns(&text);
    assert_eq!(dns.len(), 20);
    for (position, dn) in dns.iter().enumerate() {
        let (_, parent) = dn.split_once(',').unwrap();
        assert!(*dn == BASE || dns[..position].contains(&parent), "{dn}");
    }
    assert!(!text.contains("keyway\n\n"));
}

#[test]
fn a_part_or_the_servers_own_entries() {
    let fixture = filled();
    assert_eq!(dns(&exported(&fixture, Some(PEOPLE))).len(), 15);
    let own = exported(&fixture, Some("cn=keyway"));
    assert_eq!(dns(&own), ["cn=keyway", "cn=admin,cn=keyway"]);
    let refused = |base| fixture.directory.export(Some(base), &mut Vec::new(), &mut |_| {});
    assert!(refused("ou=nowhere,dc=example,dc=com").is_err());
    assert!(refused("dc=elsewhere").is_err());
}

#[test]
fn an_import_of_an_export_exports_the_same() {
    let fixture = filled();
    let dn = &format!("uid=ada,{PEOPLE}");
    let description = ["", " blanks ", ": colon", "\u{e9}", "two\nlines"];
    let changes = vec![
        change(ChangeOperation::Add, "description", &description),
        change(ChangeOperation::Add, "cn;lang-de", &["Ada"]),
        change(
            ChangeOperation::Add,
            "userPassword",
            &["secret", "{SSHA}AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],
        ),
    ];
    // An empty value is none of a Directory String.
    let refused = fixture.modify(dn, changes.clone());
    assert_eq!(code(refused), ResultCode::InvalidAttributeSyntax);
    let mut changes = changes;
    changes[0].attribute.values.remove(0);
    fixture.modify(dn, changes).unwrap();
    fixture.rename(GROUPS, "ou=teams+l=here", false, Some(PEOPLE)).unwrap();
    fixture.directory.add_naming_context("o=other").unwrap();
    fixture.add("o=other", &[("objectClass", &["organization"])]);
    fixture.add("ou=x\\, y,o=other", &[("objectClass", &["organizationalUnit"])]);

    let first = exported(&fixture, None);
    let other = empty(&settings());
    let report = other
        .directory
        .import(&mut first.as_bytes(), &ImportOptions::default(), &mut |_| {})
        .unwrap();
    assert_eq!((report.records, report.errors), (22, 0));
    let second = exported(&other, None);
    assert_eq!(first, second);
    assert_eq!(other.directory.naming_contexts(), [BASE, "o=other"]);
    for filter in ["(cn=ada lovelace)", "(description=*two*)", "(cn=*amp*)", "(objectClass=*)"] {
        assert_eq!(fixture.names(filter), other.names(filter), "{filter}");
    }
}
