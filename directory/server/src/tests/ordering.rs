//! Values that are greater or less, with an index and without: byte order of keys is the rule's order.

use super::*;
use crate::IndexKind::{Equality, Ordering, Presence};
use crate::IndexSetting;
use keyway_schema::{SourceFile, Sources};
use proptest::prelude::*;

/// An attribute whose ordering rule does not see values as its equality rule does.
const SCHEMA: &str = "attributetype ( 1.3.6.1.4.1.99999.7 NAME 'exactName' \
    EQUALITY caseExactMatch ORDERING caseIgnoreOrderingMatch \
    SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )\n";

/// A point in time: minutes since 2026 began, hundredths of a second; and how it is written.
#[derive(Clone, Copy, Debug)]
struct Time {
    minutes: i64,
    hundredths: u32,
    /// Minutes east of Greenwich.
    zone: i64,
    /// Zeros behind the fraction.
    zeros: usize,
}

impl Time {
    fn instant(self) -> (i64, u32) {
        (self.minutes, self.hundredths)
    }

    fn text(self) -> String {
        let local = self.minutes + self.zone;
        let (day, minute) = (local.div_euclid(1440), local.rem_euclid(1440));
        let (month, day) = if day < 0 { ("202512", 32 + day) } else { ("202601", 1 + day) };
        let second = self.hundredths / 100;
        let fraction = match (self.hundredths % 100, self.zeros) {
            (0, 0) => String::new(),
            (part, zeros) => {
                format!("{}{part:02}{}", if zeros % 2 == 0 { '.' } else { ',' }, "0".repeat(zeros))
            }
        };
        let zone = match self.zone {
            0 => "Z".to_owned(),
            zone => {
                let sign = if zone < 0 { '-' } else { '+' };
                format!("{sign}{:02}{:02}", zone.abs() / 60, zone.abs() % 60)
            }
        };
        format!("{month}{day:02}{:02}{:02}{second:02}{fraction}{zone}", minute / 60, minute % 60)
    }
}

fn time() -> impl Strategy<Value = Time> {
    let zone = prop::sample::select(&[0, 0, 60, -300, 330, 840, -720][..]);
    let hundredths = prop::sample::select(&[0, 1, 50, 99, 100, 3_000, 3_050, 5_999][..]);
    (0..2_900_i64, hundredths, zone, 0..3_usize)
        .prop_map(|(minutes, hundredths, zone, zeros)| Time { minutes, hundredths, zone, zeros })
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-3..12_i64, any::<i64>(), Just(0), Just(i64::MIN), Just(99), Just(100)]
}

/// An entry: when it was made, a number, a name.
type Row = (Time, i64, &'static str);

fn row() -> impl Strategy<Value = Row> {
    let name = prop::sample::select(&["a", "B", "b", "Zoe", "zoe ", "ärger", "z  z"][..]);
    (time(), number(), name)
}

fn with_schema(indexes: Vec<IndexSetting>, schema: &str) -> Settings {
    let file = SourceFile { name: "own.schema".into(), bytes: schema.as_bytes().into() };
    let schema = Sources { files: vec![file], ..Sources::defaults() };
    Settings { indexes, schema, ..settings() }
}

fn directory(indexes: Vec<IndexSetting>, rows: &[Row]) -> Fixture {
    let fixture = empty(&with_schema(indexes, SCHEMA));
    let mut text = format!("dn: {BASE}\nobjectClass: domain\ndc: example\n\n");
    for (at, (time, number, name)) in rows.iter().enumerate() {
        text.push_str(&format!(
            "dn: uid=e{at},{BASE}\nobjectClass: account\nobjectClass: extensibleObject\nuid: e{at}\n\
             createTimestamp: {}\nuidNumber: {number}\nexactName:: {}\n\n",
            time.text(),
            base64(name),
        ));
    }
    let options = crate::ImportOptions::default();
    fixture.directory.import(&mut text.as_bytes(), &options, &mut |_| {}).unwrap();
    fixture
}

/// A value with blanks at its ends, in LDIF.
fn base64(text: &str) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits = three
            .iter()
            .enumerate()
            .fold(0, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let sign = SIGNS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at > three.len() { '=' } else { char::from(sign) });
        }
    }
    out
}

fn expected(rows: &[Row], holds: impl Fn(&Row) -> bool) -> Vec<String> {
    let holding = rows.iter().enumerate().filter(|(_, row)| holds(row));
    let mut names: Vec<String> = holding.map(|(at, _)| format!("e{at}")).collect();
    names.sort();
    names
}

/// How a name is ordered: without case, blanks at its ends, and with one blank for many.
fn folded(name: &str) -> String {
    name.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 200, ..Default::default() })]

    #[test]
    fn ranges_are_what_comparisons_say(
        rows in prop::collection::vec(row(), 0..14),
        asked in prop::collection::vec(row(), 8),
    ) {
        let index = |name: &str, kind| IndexSetting::new(name, &[kind]);
        let tables = [
            vec![],
            vec![index("createTimestamp", Equality), index("uidNumber", Equality),
                IndexSetting::new("exactName", &[Equality, Ordering])],
            vec![index("createTimestamp", Ordering), index("uidNumber", Ordering),
                index("exactName", Ordering)],
            vec![index("exactName", Presence)],
        ];
        for (table, indexes) in tables.into_iter().enumerate() {
            let fixture = directory(indexes, &rows);
            for (time, number, name) in &asked {
                let questions = [
                    (format!("(createTimestamp>={})", time.text()),
                        expected(&rows, |row| row.0.instant() >= time.instant())),
                    (format!("(createTimestamp<={})", time.text()),
                        expected(&rows, |row| row.0.instant() <= time.instant())),
                    (format!("(createTimestamp={})", time.text()),
                        expected(&rows, |row| row.0.instant() == time.instant())),
                    (format!("(uidNumber>={number})"), expected(&rows, |row| row.1 >= *number)),
                    (format!("(uidNumber<={number})"), expected(&rows, |row| row.1 <= *number)),
                    (format!("(exactName>={name})"),
                        expected(&rows, |row| folded(row.2) >= folded(name))),
                    (format!("(exactName<={name})"),
                        expected(&rows, |row| folded(row.2) <= folded(name))),
                ];
                for (filter, expected) in questions {
                    let ours = format!("(&{filter}(uid=*))");
                    prop_assert_eq!(fixture.names(&ours), expected, "{} in table {}", filter, table);
                }
            }
            fixture.directory.check(&mut |_, _| {}).unwrap();
        }
    }
}

#[test]
fn times_of_any_zone_and_fraction_are_instants() {
    let indexed = vec![IndexSetting::new("modifyTimestamp", &[Ordering])];
    for indexes in [Vec::new(), indexed] {
        // Everything is changed at 2023-11-14 22:13:20.
        let fixture = filled_with(&Settings { indexes, ..settings() });
        for (filter, found) in [
            ("(modifyTimestamp>=20231114221320Z)", 20),
            ("(modifyTimestamp>=20231114221320.000Z)", 20),
            ("(modifyTimestamp>=20231114221320.001Z)", 0),
            ("(modifyTimestamp<=20231114221319.999Z)", 0),
            ("(modifyTimestamp>=20231115001320+0200)", 20),
            ("(modifyTimestamp<=202311141713,34-0500)", 20),
            ("(modifyTimestamp<=202311141713,33-0500)", 0),
            ("(modifyTimestamp>=2023111422.25Z)", 0),
            ("(modifyTimestamp>=2023111422Z)", 20),
            ("(modifyTimestamp>=tomorrow)", 0),
        ] {
            assert_eq!(fixture.names(filter).len(), found, "{filter}");
        }
    }
}

#[test]
fn another_order_makes_its_index_anew() {
    let time = Time { minutes: 0, hundredths: 0, zone: 0, zeros: 0 };
    let rows = ["a", "B", "c", "D"].map(|name| (time, 0, name));
    let indexes = vec![IndexSetting::new("exactName", &[Equality, Ordering])];
    let fixture = directory(indexes.clone(), &rows);
    assert_eq!(fixture.names("(exactName>=b)"), ["e1", "e2", "e3"]);
    // Capital letters come first, and the index for equality has that order already.
    let exact = SCHEMA.replace("caseIgnoreOrderingMatch", "caseExactOrderingMatch");
    fixture.directory.turn_to(&with_schema(indexes.clone(), &exact)).unwrap();
    let check = || {
        assert_eq!(fixture.names("(exactName>=b)"), ["e2"]);
        fixture.directory.check(&mut |_, _| {}).unwrap();
    };
    check();
    fixture.directory.finish_indexes().unwrap();
    check();
    let kinds: Vec<_> = fixture.directory.index_reports().unwrap();
    let own = kinds.iter().filter(|one| one.attribute == "exactName");
    assert_eq!(own.map(|one| one.kind).collect::<Vec<_>>(), [Equality]);
    // And back, over LDAP.
    let old = "( 1.3.6.1.4.1.99999.7 NAME 'exactName' EQUALITY caseExactMatch \
        ORDERING caseIgnoreOrderingMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )";
    let changes = vec![
        change(ChangeOperation::Delete, "attributeTypes", &["1.3.6.1.4.1.99999.7"]),
        change(ChangeOperation::Add, "attributeTypes", &[old]),
    ];
    fixture.modify("cn=schema", changes).unwrap();
    assert_eq!(fixture.names("(exactName>=b)"), ["e1", "e2", "e3"]);
    fixture.directory.check(&mut |_, _| {}).unwrap();
    fixture.directory.finish_indexes().unwrap();
    assert_eq!(fixture.names("(exactName>=b)"), ["e1", "e2", "e3"]);
    fixture.directory.check(&mut |_, _| {}).unwrap();
}
