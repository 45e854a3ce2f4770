//! Definitions that make a schema, and those that do not.

use super::*;
use crate::failure::Failure;
use keyway_codec::message::ResultCode;

const STRING: &str = "SYNTAX 1.3.6.1.4.1.1466.115.121.1.15";

#[test]
fn the_standard_schema_is_one() {
    let schema = Schema::standard().unwrap();
    let cn = schema.attribute("COMMONNAME").unwrap();
    assert_eq!((cn.name(), cn.oid()), ("cn", "2.5.4.3"));
    assert_eq!(schema.attribute("2.5.4.3"), Some(cn));
    assert_eq!(cn.equality(), Some(MatchingRule::CaseIgnore), "inherited from name");
    assert_eq!(cn.substrings(), Some(MatchingRule::CaseIgnoreSubstrings));
    let name = schema.attribute("name").unwrap();
    assert!(schema.family(name).any(|one| one == cn) && schema.family(name).count() > 8);
    assert_eq!(schema.family(cn).count(), 1);
    assert!(schema.attribute("entryUUID").unwrap().is_operational());
    assert!(schema.attribute("entryUUID").unwrap().is_read_only());
    assert!(schema.attribute("uidNumber").unwrap().is_single_value());
    let person = schema.class("inetOrgPerson").unwrap();
    assert!(person.is_a(schema.class("top").unwrap()));
    assert!(!person.is_a(schema.class("device").unwrap()));
    assert_eq!(schema.class("2.16.840.1.113730.3.2.2").unwrap().name(), "inetOrgPerson");
    assert!(schema.attribute("").is_none() && schema.attribute(&"x".repeat(1_000)).is_none());
}

#[test]
fn what_the_server_needs_is_in_the_standard_schema() {
    let schema = Schema::standard().unwrap();
    for name in [
        "objectClass",
        "userPassword",
        "entryUUID",
        "creatorsName",
        "createTimestamp",
        "modifiersName",
        "modifyTimestamp",
        "structuralObjectClass",
        "entryDN",
        "hasSubordinates",
        "numSubordinates",
        "subschemaSubentry",
        "namingContexts",
        "supportedControl",
        "supportedExtension",
        "supportedFeatures",
        "supportedLDAPVersion",
        "supportedSASLMechanisms",
        "vendorName",
        "vendorVersion",
        "attributeTypes",
        "objectClasses",
        "matchingRules",
        "ldapSyntaxes",
    ] {
        assert_eq!(schema.attribute(name).map(AttributeType::name), Some(name));
    }
    for setting in crate::IndexSetting::defaults() {
        let attribute = schema.attribute(&setting.attribute);
        assert_eq!(attribute.map(AttributeType::name), Some(setting.attribute.as_str()));
    }
}

#[test]
fn definitions_that_make_no_schema() {
    let attribute = |rest: &str| format!("( 1.2.3 NAME 'one' {rest} )");
    let plain = attribute(STRING);
    let refused = |attributes: &[&str], classes: &[&str]| {
        let error = Schema::new(attributes, classes).err().unwrap();
        assert!(!error.to_string().is_empty());
        error.why
    };
    assert!(refused(&["( nonsense"], &[]).contains("byte"));
    assert!(refused(&[&plain, &plain], &[]).contains("twice"));
    assert!(refused(&[&attribute("SUP other")], &[]).contains("other"));
    assert!(refused(&[&attribute("SUP one")], &[]).contains("itself"));
    let circle = ["( 1.1 NAME 'a' SUP b )", "( 1.2 NAME 'b' SUP a )"];
    assert!(refused(&circle, &[]).contains("itself"));
    let unknown_rule = attribute(&format!("EQUALITY unheardOfMatch {STRING}"));
    assert!(refused(&[&unknown_rule], &[]).contains("unheardOfMatch"));
    let class = |rest: &str| format!("( 1.2.4 NAME 'kind' {rest} )");
    assert!(refused(&[&plain], &[&class("SUP other")]).contains("other"));
    assert!(refused(&[&plain], &[&class("MUST other")]).contains("other"));
    assert!(refused(&[&plain], &[&class(""), &class("")]).contains("twice"));
    let circle = ["( 1.1 NAME 'a' SUP b )", "( 1.2 NAME 'b' SUP a )"];
    assert!(refused(&[], &circle).contains("itself"));
    // What is referred to may come later, and a syntax nobody knows is one of octets.
    let odd = "( 1.2.5 NAME 'odd' SYNTAX 9.9.9 )";
    let schema = Schema::new(&["( 1.1 NAME 'a' SUP one )", odd, &plain], &[]).unwrap();
    assert_eq!(schema.attribute("odd").unwrap().syntax(), Syntax::OctetString);
    assert_eq!(schema.family(schema.attribute("one").unwrap()).count(), 2);
}

#[test]
fn descriptions_have_one_spelling() {
    let schema = Schema::standard().unwrap();
    let canonical = |text: &str| schema.describe(text).map(|one| one.canonical().into_owned());
    for (given, expected) in [
        ("CN", Some("cn")),
        ("2.5.4.3", Some("cn")),
        ("commonName;LANG-de-AT;lang-EN;lang-en", Some("cn;lang-de-at;lang-en")),
        // One set of values with the option and without (RFC 4522 § 3), and only where it belongs.
        ("userCertificate;Binary", Some("userCertificate;binary")),
        ("2.5.4.36", Some("userCertificate;binary")),
        ("userPKCS12", Some("userPKCS12;binary")),
        ("cn;binary", None),
        ("jpegPhoto;binary", None),
        ("cn;", None),
        ("cn;lang-", None),
        ("cn;lang-toolonglang", None),
        ("cn;x-other", None),
        ("unheard-of", None),
        ("", None),
        (";binary", None),
    ] {
        assert_eq!(canonical(given).as_deref(), expected, "{given}");
    }
    assert_eq!(base("cn;lang-de;lang-en"), "cn");
    assert!(has_options("cn;lang-de;lang-en", &["lang-en".into()]));
    assert!(!has_options("cn;lang-de", &["lang-en".into()]));
}

fn entry(lines: &[(&str, &str)]) -> Attributes {
    let mut attributes = Attributes::new();
    for (name, value) in lines {
        match attributes.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.push(value.as_bytes().to_vec()),
            None => attributes.push(((*name).into(), vec![value.as_bytes().to_vec()])),
        }
    }
    attributes
}

#[test]
fn entries_are_held_against_their_classes() {
    let schema = Schema::standard().unwrap();
    let check = |lines: &[(&str, &str)]| -> Result<String, Failure> {
        check_entry(&schema, &entry(lines)).map(|class| class.name().to_owned())
    };
    let person = [("objectClass", "person"), ("cn", "x"), ("sn", "x")];
    assert_eq!(check(&person).unwrap(), "person");
    let more = |line| person.iter().copied().chain([line]).collect::<Vec<_>>();
    assert_eq!(check(&more(("objectClass", "inetOrgPerson"))).unwrap(), "inetOrgPerson");
    assert_eq!(
        check(&more(("objectClass", "posixAccount"))).unwrap_err().code,
        ResultCode::ObjectClassViolation
    );
    let extensible = [("objectClass", "extensibleObject"), ("dc", "x")];
    let all: Vec<_> = person.iter().chain(&extensible).copied().collect();
    assert_eq!(check(&all).unwrap(), "person");
    // A language tag's attribute is the attribute.
    assert!(check(&[("objectClass", "person"), ("cn;lang-de", "x"), ("sn", "x")]).is_ok());
    for (wrong, names) in [
        (vec![("cn", "x")], "no object class"),
        (vec![("objectClass", "top")], "structural"),
        (more(("objectClass", "device")), "device"),
        (more(("objectClass", "unheardOf")), "unheardOf"),
        (more(("mail", "x")), "mail"),
        (vec![("objectClass", "person"), ("cn", "x")], "sn"),
    ] {
        let failure = check(&wrong).unwrap_err();
        assert_eq!(failure.code, ResultCode::ObjectClassViolation);
        assert!(failure.diagnostic.contains(names), "{failure}");
    }
    assert_eq!(
        check(&more(("unheard-of", "x"))).unwrap_err().code,
        ResultCode::UndefinedAttributeType
    );
}

#[test]
fn superclasses_are_filled_in_once() {
    let schema = Schema::standard().unwrap();
    let complete = |classes: &[&str]| {
        let mut attributes =
            entry(&classes.iter().map(|class| ("objectClass", *class)).collect::<Vec<_>>());
        complete_classes(&schema, &mut attributes).unwrap();
        let values = attributes.remove(0).1;
        values.into_iter().map(|value| String::from_utf8(value).unwrap()).collect::<Vec<_>>()
    };
    let all = ["inetOrgPerson", "organizationalPerson", "person", "top"];
    assert_eq!(complete(&["inetOrgPerson"]), all);
    assert_eq!(complete(&all), all);
    assert_eq!(complete(&["PERSON", "2.5.6.0"]), ["PERSON", "2.5.6.0"]);
    assert_eq!(complete(&["top", "person", "inetOrgPerson"]).len(), 4);
}
