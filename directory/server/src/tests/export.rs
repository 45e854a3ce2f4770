//! Export: what is written, and that it can be read back to the same.

use super::*;
use crate::{ImportOptions, Verdict};
use std::io::{ErrorKind, Read};

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

/// Reads all of it, as an import does, in pieces of this size.
fn verified(
    fixture: &Fixture,
    text: &[u8],
    piece_bytes: usize,
) -> (Result<Vec<u8>, String>, Verdict) {
    struct Pieces<'t>(&'t [u8], usize);
    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let length = out.len().min(self.1);
            self.0.read(&mut out[..length])
        }
    }
    let mut input = fixture.directory.verifying(Pieces(text, piece_bytes), true);
    let mut read = Vec::new();
    let result = input.read_to_end(&mut read).map_err(|why| {
        assert_eq!(why.kind(), ErrorKind::InvalidData);
        why.to_string()
    });
    let verdict = input.verdict();
    // One that is not strict says the same, and hands out all there is.
    let mut lenient = fixture.directory.verifying(text, false);
    let mut all = Vec::new();
    lenient.read_to_end(&mut all).unwrap();
    assert_eq!((all.as_slice(), lenient.verdict()), (text, verdict.clone()));
    (result.map(|_| read), verdict)
}

/// Every way to lose or change a part of an export, at every place, is noticed.
#[test]
fn an_export_that_was_cut_off_or_changed_is_noticed() {
    let fixture = filled();
    let whole = exported(&fixture, Some(GROUPS));
    for piece_bytes in [1, 7, 64, 100_000] {
        let (read, verdict) = verified(&fixture, whole.as_bytes(), piece_bytes);
        assert_eq!((read.unwrap(), verdict), (whole.clone().into_bytes(), Verdict::Whole(4)));
    }
    let damaged = |text: &[u8], what: &dyn std::fmt::Display| {
        let (read, verdict) = verified(&fixture, text, 1_000);
        assert!(read.is_err() && matches!(verdict, Verdict::Damaged(_)), "{what}: {verdict:?}");
    };
    let (bytes, head) = (whole.as_bytes(), "# keyway: export 1".len());
    // Without its last line break it is as it was. With less than its head it is nothing at all, and an
    // import says that there is no record in it.
    for cut in head..bytes.len() - 1 {
        damaged(&bytes[..cut], &format_args!("cut at {cut}"));
    }
    for cut in 0..head {
        let (read, verdict) = verified(&fixture, &bytes[..cut], 1_000);
        assert!(verdict == Verdict::Unframed || read.is_err(), "{cut}: {verdict:?}");
        assert!(!whole[..cut].contains("dn:"));
    }
    for at in 0..bytes.len() - 1 {
        for flip in [0x01, 0x20, 0x80] {
            let mut text = bytes.to_vec();
            text[at] ^= flip;
            damaged(&text, &format_args!("{flip:x} at {at}"));
        }
        let mut text = bytes.to_vec();
        text.remove(at);
        damaged(&text, &format_args!("without {at}"));
    }
    let records: Vec<&str> = whole.split_inclusive("\n\n").collect();
    for at in 0..records.len() {
        let mut less = records.clone();
        less.remove(at);
        if at > 0 {
            damaged(less.concat().as_bytes(), &format_args!("without record {at}"));
        }
        let mut more = records.clone();
        more.insert(at, records[1]);
        damaged(more.concat().as_bytes(), &format_args!("record 1 again at {at}"));
        let mut turned = records.clone();
        turned.swap(at, (at + 1) % records.len());
        damaged(turned.concat().as_bytes(), &format_args!("{at} and the next turned"));
    }
    damaged(format!("{whole}\ndn: o=more\no: more\n").as_bytes(), &"more behind it");
    damaged(whole.replace('\n', "\r\n").as_bytes(), &"other line breaks");
}

#[test]
fn exports_can_follow_each_other_and_other_ldif_has_no_frame() {
    let fixture = filled();
    let both = [exported(&fixture, Some(PEOPLE)), exported(&fixture, Some(GROUPS))].concat();
    let (read, verdict) = verified(&fixture, both.as_bytes(), 100);
    assert_eq!((read.unwrap().len(), verdict), (both.len(), Verdict::Whole(19)));
    let second = both.rfind("# keyway: export").unwrap();
    for cut in second..both.len() - 1 {
        let (read, verdict) = verified(&fixture, &both.as_bytes()[..cut], 1_000);
        assert!(read.is_err() || (cut == second && verdict == Verdict::Whole(15)), "{cut}");
    }
    for other in
        ["", "version: 1\n\ndn: o=x\no: x\n", "# a comment\n# keyway: export 1\ndn: o=x\no: x\n"]
    {
        assert_eq!(verified(&fixture, other.as_bytes(), 3).1, Verdict::Unframed, "{other}");
    }
    let later = "# keyway: export 2\n";
    let (read, _) = verified(&fixture, later.as_bytes(), 3);
    assert!(read.unwrap_err().contains("export of form \"2\""));
    let end = "dn: o=x\no: x\n\n# keyway: end, entries 1, sha-256 00\n";
    assert!(verified(&fixture, end.as_bytes(), 3).0.unwrap_err().contains("its head is missing"));
}

/// Definitions go with the entries, and others of the folder that they come to stay.
#[test]
fn definitions_come_with_an_export() {
    let defined = "objectClasses: ( 1.3.6.1.4.1.99999.2 NAME 'shoeOwner' AUXILIARY MAY shoeSize )\n\
        attributeTypes: ( 1.3.6.1.4.1.99999.1 NAME 'shoeSize' \
        SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )\n";
    let fixture = filled();
    assert_eq!(fixture.directory.take_definitions("").unwrap().added, [""; 0]);
    let taken = fixture.directory.take_definitions(defined).unwrap();
    assert_eq!((taken.added.len(), taken.left.len()), (2, 0));
    assert_eq!(fixture.directory.take_definitions(defined).unwrap(), Default::default());
    fixture.add(
        &format!("uid=zoe,{PEOPLE}"),
        &[("objectClass", &["account", "shoeOwner"]), ("uid", &["zoe"]), ("shoeSize", &["42"])],
    );
    let first = exported(&fixture, None);
    assert_eq!(first.lines().filter(|line| line.contains("NAME 'shoe")).count(), 2, "{first}");
    let into = |other: &Fixture| {
        let mut input = other.directory.verifying(first.as_bytes(), true);
        let definitions = input.definitions().unwrap().to_owned();
        let taken = other.directory.take_definitions(&definitions).unwrap();
        let import = other.directory.import(&mut input, &ImportOptions::default(), &mut |_| {});
        assert_eq!(input.verdict(), Verdict::Whole(21));
        (taken, import)
    };
    let other = empty(&settings());
    let (taken, import) = into(&other);
    assert_eq!((taken.added.len(), import.unwrap().records), (2, 21));
    assert_eq!(exported(&other, None), first);
    // A folder's own definition stays, and says so.
    let other = empty(&settings());
    let own = defined.replace("1.27", "1.15");
    other.directory.take_definitions(&own).unwrap();
    let (taken, import) = into(&other);
    assert_eq!(taken.left, ["shoeSize (a change over LDAP has it otherwise)"]);
    assert_eq!(import.unwrap().records, 21);
    let wrong = fixture.directory.take_definitions("attributeTypes: ( 1.2\n").unwrap_err();
    assert_eq!(wrong.code, ResultCode::InvalidAttributeSyntax);
}
