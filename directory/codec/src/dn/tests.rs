//! The examples of RFC 4514 § 4, what is refused, and that writing and reading are inverse.

use super::{Ava, Dn, Rdn};
use crate::limits::{DN_RDNS_MAX, RDN_AVAS_MAX};
use proptest::prelude::*;

fn ava(attribute: &str, value: impl AsRef<[u8]>) -> Ava {
    Ava { attribute: attribute.into(), value: value.as_ref().to_vec() }
}

fn name(rdns: &[&[Ava]]) -> Dn {
    Dn { rdns: rdns.iter().map(|avas| Rdn { avas: avas.to_vec() }).collect() }
}

fn example_net(first: &[Ava]) -> Dn {
    name(&[first, &[ava("DC", "example")], &[ava("DC", "net")]])
}

#[test]
fn the_examples_of_rfc4514() {
    let examples = [
        ("UID=jsmith,DC=example,DC=net", example_net(&[ava("UID", "jsmith")])),
        (
            "OU=Sales+CN=J.  Smith,DC=example,DC=net",
            example_net(&[ava("OU", "Sales"), ava("CN", "J.  Smith")]),
        ),
        (
            r#"CN=James \"Jim\" Smith\, III,DC=example,DC=net"#,
            example_net(&[ava("CN", "James \"Jim\" Smith, III")]),
        ),
        (r"CN=Before\0dAfter,DC=example,DC=net", example_net(&[ava("CN", "Before\rAfter")])),
        (r"CN=Lu\C4\8Di\C4\87", name(&[&[ava("CN", "Lučić")]])),
        ("1.3.6.1.4.1.1466.0=#04024869", name(&[&[ava("1.3.6.1.4.1.1466.0", "Hi")]])),
    ];
    for (text, expected) in examples {
        let parsed = Dn::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parsed, expected, "{text}");
        assert_eq!(Dn::parse(&parsed.to_string()), Ok(expected), "{text}");
    }
}

#[test]
fn what_clients_write_as_well() {
    let plain = Dn::parse("cn=a b+sn=c,dc=d").unwrap();
    for text in [
        "cn=a b + sn=c , dc=d",
        " cn = a b+sn= c,  dc =d  ",
        "cn=a b+sn=#040163 ,dc=d",
        "cn=a b+sn=c;dc=d",
        "cn=\"a b\"+sn=c ; dc=d",
    ] {
        assert_eq!(Dn::parse(text).as_ref(), Ok(&plain), "{text:?}");
    }
    assert_eq!(Dn::parse(""), Ok(Dn::default()));
    assert_eq!(Dn::parse("  "), Ok(Dn::default()));
    assert_eq!(Dn::parse("cn="), Ok(name(&[&[ava("cn", "")]])));
    assert_eq!(
        Dn::parse("cn=a=b#c,x_y=1").unwrap(),
        name(&[&[ava("cn", "a=b#c")], &[ava("x_y", "1")]])
    );
    let quoted = name(&[&[ava("cn", " a,b\"")], &[ava("o", "")]]);
    assert_eq!(Dn::parse(r#"cn=" a,b\"" ,o="""#), Ok(quoted));
    assert_eq!(Dn::parse(r"cn=\ a\ ").unwrap(), name(&[&[ava("cn", " a ")]]));
    assert_eq!(Dn::parse(r"cn=\20a\20  ").unwrap(), name(&[&[ava("cn", " a ")]]));
    assert_eq!(Dn::parse(r"cn=\#\=\;\<\>").unwrap(), name(&[&[ava("cn", "#=;<>")]]));
}

#[test]
fn values_given_as_ber() {
    let value = |hex: &str| Rdn::parse(&format!("x=#{hex}")).map(|rdn| rdn.avas[0].value.clone());
    assert_eq!(value("0c03c3bc61"), Ok("üa".into()));
    assert_eq!(value("130141"), Ok("A".into()));
    assert_eq!(value("1401fc"), Ok("ü".into()));
    assert_eq!(value("1e0400fc20ac"), Ok("ü€".into()));
    assert_eq!(value("1C040001F600"), Ok("😀".into()));
    assert_eq!(value("02020100"), Ok("256".into()));
    assert_eq!(value("0101ff"), Ok("TRUE".into()));
    for wrong in ["04", "0402", "0402616263", "0c01ff", "1e0100", "1e02d800", "3000", "0100"] {
        assert!(value(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn errors_name_the_place() {
    let wrong = [
        ("cn", 2),
        ("cn=a,", 5),
        (",cn=a", 0),
        ("cn=a,,dc=b", 5),
        ("cn=a+", 5),
        ("=a", 0),
        ("cn=a;", 5),
        ("cn=a;;dc=b", 5),
        ("cn=\"a", 3),
        ("cn=\"a\"b", 6),
        ("cn=a\"", 4),
        ("cn=a<b", 4),
        ("cn=a\\", 4),
        ("cn=a\\z", 4),
        ("cn=a\\4", 4),
        ("cn=#", 4),
        ("cn=#4", 5),
        ("cn=#zz", 4),
        ("cn=#040161x", 10),
        ("1.02=a", 0),
        ("1=a", 0),
        ("1.=a", 0),
        ("-a=b", 0),
        ("cn;lang-de=a", 2),
        ("cn=\0", 3),
        ("ü=a", 0),
    ];
    for (text, at) in wrong {
        let error = Dn::parse(text).expect_err(text);
        assert_eq!(error.at, at, "{text:?}: {error}");
    }
    assert!(Rdn::parse("").is_err());
    assert!(Rdn::parse("cn=a,dc=b").is_err());
}

#[test]
fn limits_hold() {
    let dn = vec!["a=b"; DN_RDNS_MAX].join(",");
    assert!(Dn::parse(&dn).is_ok());
    assert!(Dn::parse(&format!("{dn},a=b")).is_err());
    let rdn = vec!["a=b"; RDN_AVAS_MAX].join("+");
    assert!(Rdn::parse(&rdn).is_ok());
    assert!(Rdn::parse(&format!("{rdn}+a=b")).is_err());
}

#[test]
fn parents() {
    let dn = Dn::parse("a=b,c=d").unwrap();
    assert_eq!(dn.rdn().unwrap().to_string(), "a=b");
    let parent = dn.parent().unwrap();
    assert_eq!(parent.to_string(), "c=d");
    let root = parent.parent().unwrap();
    assert!(root.is_empty());
    assert!(root.parent().is_none() && root.rdn().is_none());
}

#[test]
fn written_as_rfc4514_demands() {
    let written = [
        (&b" a "[..], r"x=\ a\ "),
        (b" ", r"x=\ "),
        (b"#a#", r"x=\#a#"),
        (b"a\nb", r"x=a\0ab"),
        (b"\xff", r"x=\ff"),
        (b"\"+,;<>\\=", r#"x=\"\+\,\;\<\>\\\3D"#),
        (b"=a=", r"x=\3Da\3D"),
        ("ü".as_bytes(), "x=ü"),
        ("\u{85}".as_bytes(), r"x=\c2\85"),
    ];
    for (value, text) in written {
        assert_eq!(ava("x", value).to_string(), text);
    }
}

fn any_ava() -> impl Strategy<Value = Ava> {
    let attribute = prop_oneof!["[a-zA-Z][a-zA-Z0-9_-]{0,6}", "[0-2](\\.(0|[1-9][0-9]{0,3})){1,4}"];
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..12),
        "[ #,+\"\\\\<>;=a\u{0}\u{7f}ü😀]{0,8}".prop_map(String::into_bytes),
    ];
    (attribute, value).prop_map(|(attribute, value)| Ava { attribute, value })
}

fn any_dn() -> impl Strategy<Value = Dn> {
    let rdn = prop::collection::vec(any_ava(), 1..4).prop_map(|avas| Rdn { avas });
    prop::collection::vec(rdn, 0..5).prop_map(|rdns| Dn { rdns })
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(dn in any_dn()) {
        let text = dn.to_string();
        prop_assert!(!text.contains(char::is_control));
        prop_assert_eq!(Dn::parse(&text), Ok(dn));
    }

    #[test]
    fn any_text_is_read_or_refused_within(text in "[a-c1.=,+# \\\\\"<;4ü]{0,24}") {
        match Dn::parse(&text) {
            Ok(dn) => prop_assert_eq!(Dn::parse(&dn.to_string()), Ok(dn)),
            Err(error) => prop_assert!(error.at <= text.len()),
        }
    }
}
