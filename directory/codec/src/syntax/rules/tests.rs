//! Each rule's examples, and that the order of normal forms is the order of values.

use std::collections::BTreeSet;

use super::{MatchingRule, RuleKind};
use crate::syntax::{Descriptors, Part};
use proptest::prelude::*;

/// A schema of a few attributes.
struct Few;

impl Descriptors for Few {
    fn attribute(&self, name: &str) -> Option<(&str, MatchingRule)> {
        Some(match name.to_ascii_lowercase().as_str() {
            "cn" | "commonname" | "2.5.4.3" => ("cn", MatchingRule::CaseIgnore),
            "dc" | "0.9.2342.19200300.100.1.25" => ("dc", MatchingRule::CaseIgnoreIa5),
            "uidnumber" => ("uidNumber", MatchingRule::Integer),
            "member" => ("member", MatchingRule::DistinguishedName),
            "uniquemember" => ("uniqueMember", MatchingRule::UniqueMember),
            _ => return None,
        })
    }

    fn oid(&self, name: &str) -> Option<&str> {
        name.eq_ignore_ascii_case("cn").then_some("2.5.4.3")
    }
}

fn normal(rule: MatchingRule, value: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    rule.normalize(value.as_ref(), &Few)
}

/// All match each other.
fn all_equal(rule: MatchingRule, values: &[&str]) {
    let first = normal(rule, values[0]);
    assert!(first.is_some(), "{}", values[0]);
    for value in values {
        assert_eq!(normal(rule, value), first, "{value}");
    }
}

/// None matches another.
fn unlike(rule: MatchingRule, values: &[&str]) {
    let normal: BTreeSet<_> =
        values.iter().map(|value| normal(rule, value).expect(value)).collect();
    assert_eq!(normal.len(), values.len(), "{values:?}");
}

fn undefined(rule: MatchingRule, values: &[&str]) {
    for value in values {
        assert_eq!(normal(rule, value), None, "{value:?}");
    }
}

#[test]
fn names_and_oids() {
    let mut seen = BTreeSet::new();
    for rule in MatchingRule::ALL {
        assert!(seen.insert(rule.name()) && seen.insert(rule.oid()), "{rule:?} is there twice");
        assert_eq!(MatchingRule::from_name(&rule.name().to_uppercase()), Some(*rule));
        assert_eq!(MatchingRule::from_oid(rule.oid()), Some(*rule));
        let ending = match rule.kind() {
            RuleKind::Equality => "Match",
            RuleKind::Ordering => "OrderingMatch",
            RuleKind::Substrings => "SubstringsMatch",
            RuleKind::Words | RuleKind::Bits | RuleKind::Chain => "Match",
        };
        assert!(rule.name().ends_with(ending), "{}", rule.name());
    }
    assert_eq!(MatchingRule::from_name("noMatch"), None);
    assert_eq!(MatchingRule::from_oid("2.5.13.99"), None);
    assert!(MatchingRule::CaseIgnore.has_form_of(MatchingRule::CaseIgnoreSubstrings));
    assert!(!MatchingRule::CaseIgnore.has_form_of(MatchingRule::CaseExact));
    assert_eq!(
        MatchingRule::CaseIgnore.description(),
        "( 2.5.13.2 NAME 'caseIgnoreMatch' SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )"
    );
}

#[test]
fn words() {
    let normal = |value: &'static str| normal(MatchingRule::Keyword, value).expect(value);
    let held = normal("Ada, Countess of LOVELACE (1815\u{2013}1852)");
    let has = |words: &'static str| {
        let wanted = normal(words);
        held.windows(wanted.len()).any(|window| window == wanted)
    };
    assert!(has("ada") && has("lovelace") && has("1815") && has("Countess of"));
    assert!(!has("count") && !has("love") && !has("of countess"));
    all_equal(MatchingRule::Word, &["a-b", " A b!"]);
    undefined(MatchingRule::Word, &["\u{e000}"]);
    all_equal(MatchingRule::DirectoryStringFirstComponent, &["( Ada x )", "(ada)", "ADA"]);
}

#[test]
fn strings() {
    all_equal(MatchingRule::CaseIgnore, &["Straße  1", " STRASSE 1 "]);
    unlike(MatchingRule::CaseIgnore, &["a b", "ab", ""]);
    unlike(MatchingRule::CaseExact, &["a", "A"]);
    all_equal(MatchingRule::CaseIgnoreIa5, &["a  B", " A b"]);
    undefined(MatchingRule::CaseIgnoreIa5, &["ü"]);
    undefined(MatchingRule::CaseExactIa5Substrings, &["ü"]);
    all_equal(MatchingRule::NumericString, &["12 3", " 123 "]);
    undefined(MatchingRule::NumericString, &["1a", "１"]);
    all_equal(
        MatchingRule::TelephoneNumber,
        &["+1 512-315 0280", "+15123150280", "+1 512 315-0280"],
    );
    all_equal(MatchingRule::Boolean, &["TRUE", "true"]);
    undefined(MatchingRule::Boolean, &["", "yes", "TRUE "]);
    unlike(MatchingRule::OctetString, &["a", "A", " a", ""]);
    all_equal(MatchingRule::BitString, &["'0101'B"]);
    unlike(MatchingRule::BitString, &["'0101'B", "'01010'B", "''B"]);
    undefined(MatchingRule::BitString, &["0101", "'012'B", "'01'b", "'"]);
    all_equal(
        MatchingRule::Uuid,
        &["597ae2f6-16a6-1027-98f4-d28b5365dc14", "597AE2F6-16A6-1027-98F4-D28B5365DC14"],
    );
    undefined(
        MatchingRule::Uuid,
        &[
            "",
            "597ae2f616a6102798f4d28b5365dc14",
            "597ae2f6-16a6-1027-98f4-d28b5365dc145",
            "597ae2f6-16a6-1027-98f4-d28b5365dc1g",
        ],
    );
}

#[test]
fn lists() {
    let rule = MatchingRule::CaseIgnoreList;
    all_equal(
        rule,
        &["1234 Main St.$Anytown, CA 12345$USA", "1234  main st. $ ANYTOWN, ca 12345$usa"],
    );
    all_equal(
        rule,
        &["\\241,000,000 Sweepstakes$PO Box 1000000", "\\241,000,000 sweepstakes$po box 1000000"],
    );
    unlike(rule, &["a$b", "a\\24b", "ab", "a\\5Cb"]);
    undefined(rule, &["a\\25", "a\\"]);
    let value = normal(rule, "Main St.$Any Town").unwrap();
    let found = |piece: &str, part| {
        let piece =
            MatchingRule::CaseIgnoreListSubstrings.normalize_substring(piece.as_bytes(), part);
        let piece = piece.unwrap();
        value.windows(piece.len()).any(|window| window == piece)
    };
    assert!(
        found("any t", Part::Any) && found("main", Part::Initial) && found("town", Part::Final)
    );
    assert!(!found("st. any", Part::Any));
}

#[test]
fn names() {
    let rule = MatchingRule::DistinguishedName;
    all_equal(
        rule,
        &[
            "cn=A b+uidNumber=7,dc=Example",
            "UIDNUMBER=7 + 2.5.4.3=a  B , DC=example",
            "commonName=#0c0361 2042+uidNumber=7,dc=example".replace(' ', "").as_str(),
        ],
    );
    unlike(rule, &["", "cn=a", "dc=a", "cn=a,dc=b", "cn=a+dc=b", "dc=b,cn=a", r"cn=a\,dc=b"]);
    all_equal(rule, &["cn=a+cn=A", "cn=a"]);
    undefined(rule, &["x=a", "cn", "cn=\u{fffd}", "uidNumber=x", "dc=ü"]);
    assert_eq!(normal(rule, b"cn=\xff"), None);
    all_equal(rule, &[r"member=cn\=A\,dc\=b", r"member=CN\=a\, dc\=B"]);
    unlike(MatchingRule::UniqueMember, &["cn=a", "cn=a#'0'B", "cn=a#'00'B", "cn=a#0"]);
    all_equal(MatchingRule::UniqueMember, &["cn=A#'01'B", "cn=a#'01'B"]);
    all_equal(rule, &[r"uniqueMember=cn\=A#'1'B", r"uniqueMember=CN\=a#'1'B"]);
}

/// Every name can be a value in a name; a name a megabyte deep must not overrun the stack.
#[test]
fn names_in_names_end() {
    let nested = |depth: usize| format!("{}cn=a", "member=".repeat(depth));
    assert!(normal(MatchingRule::DistinguishedName, nested(3)).is_some());
    for depth in [6, 200_000] {
        assert_eq!(normal(MatchingRule::DistinguishedName, nested(depth)), None);
        assert_eq!(normal(MatchingRule::UniqueMember, nested(depth)), None);
    }
}

#[test]
fn identifiers() {
    all_equal(MatchingRule::ObjectIdentifier, &["2.5.4.3", "cn", "CN"]);
    undefined(MatchingRule::ObjectIdentifier, &["", "sn", "2.5.4.03", "2"]);
    all_equal(
        MatchingRule::ObjectIdentifierFirstComponent,
        &["cn", "2.5.4.3", "( 2.5.4.3 NAME 'cn' SUP name )", "(2.5.4.3)"],
    );
    undefined(MatchingRule::ObjectIdentifierFirstComponent, &["(", "()", "( )", "( x )"]);
    all_equal(MatchingRule::IntegerFirstComponent, &["2", "( 2 FORM 2.5.15.3 )"]);
}

#[test]
fn no_substrings_of_what_has_none() {
    assert_eq!(MatchingRule::Integer.normalize_substring(b"1", Part::Any), None);
    assert_eq!(MatchingRule::DistinguishedName.normalize_substring(b"cn=", Part::Initial), None);
    let octets = MatchingRule::OctetStringSubstrings.normalize_substring(b" A", Part::Any);
    assert_eq!(octets.as_deref(), Some(&b" A"[..]));
    let digits = MatchingRule::NumericStringSubstrings.normalize_substring(b"1 2", Part::Any);
    assert_eq!(digits.as_deref(), Some(&b"12"[..]));
    let number = MatchingRule::TelephoneNumberSubstrings.normalize_substring(b"1-2", Part::Any);
    assert_eq!(number.as_deref(), Some(&b"12"[..]));
}

#[test]
fn integers_that_are_none() {
    undefined(
        MatchingRule::Integer,
        &["", "-", "-0", "00", "01", "+1", "1 ", "0x1", "1.0", "--1", "1-"],
    );
}

/// A number as text, of any length, and in a form that Rust can compare.
fn any_integer() -> impl Strategy<Value = (String, (i64, Vec<u8>))> {
    let digits = prop_oneof!["[1-9][0-9]{0,3}", "[1-9][0-9]{0,25}", "[1-9][0-9]{100,300}", "0"];
    (any::<bool>(), digits).prop_map(|(negative, digits)| {
        let negative = negative && digits != "0";
        let sign = if negative { -1 } else { 1 };
        let nines = |digit: u8| if negative { b'9' - digit } else { digit };
        let key = (sign * digits.len() as i64, digits.bytes().map(nines).collect());
        (format!("{}{digits}", if negative { "-" } else { "" }), key)
    })
}

proptest! {
    #[test]
    fn integers_are_ordered(a in any_integer(), b in any_integer()) {
        let forms = (normal(MatchingRule::Integer, &a.0), normal(MatchingRule::IntegerOrdering, &b.0));
        prop_assert!(forms.0.is_some() && forms.1.is_some());
        prop_assert_eq!(forms.0.cmp(&forms.1), a.1.cmp(&b.1));
    }

    #[test]
    fn small_integers_are_ordered(a in -2000i64..2000, b in -2000i64..2000) {
        let form = |value: i64| normal(MatchingRule::Integer, value.to_string());
        prop_assert_eq!(form(a).cmp(&form(b)), a.cmp(&b));
    }

    /// Code point order of what is already prepared.
    #[test]
    fn strings_are_ordered(a in "[ab一😀é]{1,4}", b in "[ab一😀é]{1,4}") {
        let form = |value: &str| normal(MatchingRule::CaseExactOrdering, value);
        prop_assert_eq!(form(&a).cmp(&form(&b)), format!("{a} ").cmp(&format!("{b} ")));
    }

    #[test]
    fn uuids_are_ordered(a in any::<u128>(), b in any::<u128>()) {
        let form = |value: u128| {
            let hex = format!("{value:032x}");
            let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
            normal(MatchingRule::UuidOrdering, parts.join("-")).unwrap()
        };
        prop_assert_eq!(form(a).cmp(&form(b)), a.cmp(&b));
    }

    #[test]
    fn no_value_is_too_much(value in prop::collection::vec(any::<u8>(), 0..40), text in "[('0-9a-f=,#$B)\\\\ -]{0,20}") {
        for rule in MatchingRule::ALL {
            for value in [&value[..], text.as_bytes()] {
                let _ = rule.normalize(value, &Few);
                for part in [Part::Whole, Part::Initial, Part::Any, Part::Final] {
                    let _ = rule.normalize_substring(value, part);
                }
                let _ = rule.syntax().validate(value);
            }
        }
    }
}
