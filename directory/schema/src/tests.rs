//! Definitions that make a schema, and those that do not.

use super::*;
use keyway_codec::description::{AttributeTypeDescription, ObjectClassDescription};
use keyway_codec::message::ResultCode;
use keyway_codec::standard::{self, SETS};
use keyway_codec::syntax::{MatchingRule, Syntax};

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
    let class = |rest: &str| format!("( 1.2.4 NAME 'kind' {rest} )");
    assert!(refused(&[&plain], &[&class("SUP other")]).contains("other"));
    assert!(refused(&[&plain], &[&class("MUST other")]).contains("other"));
    assert!(refused(&[&plain], &[&class("MUST onne")]).ends_with("did you mean one?"));
    assert!(refused(&[&plain], &[&class(""), &class("")]).contains("twice"));
    let circle = ["( 1.1 NAME 'a' SUP b )", "( 1.2 NAME 'b' SUP a )"];
    assert!(refused(&[], &circle).contains("itself"));
    // A definition may refer to a later one, and an unknown syntax is one of octets.
    let odd = "( 1.2.5 NAME 'odd' SYNTAX 9.9.9 )";
    let schema = Schema::new(&["( 1.1 NAME 'a' SUP one )", odd, &plain], &[]).unwrap();
    assert_eq!(schema.warnings().len(), 1);
    assert_eq!(schema.attribute("odd").unwrap().syntax(), Syntax::OctetString);
    assert_eq!(schema.family(schema.attribute("one").unwrap()).count(), 2);
}

#[test]
fn rules_that_are_not_known_are_taken_for_others() {
    let odd = |rest: &str| {
        let schema = Schema::new(&[&format!("( 1.2.3 NAME 'odd' {rest} )")], &[]).unwrap();
        let attribute = schema.attribute("odd").unwrap();
        let rules = (attribute.equality(), attribute.substrings(), attribute.syntax());
        (rules, schema.warnings().iter().map(ToString::to_string).collect::<String>())
    };
    let (rules, warnings) = odd(&format!("EQUALITY unheardOfMatch SUBSTR otherMatch {STRING}"));
    let (equal, parts) = (MatchingRule::CaseIgnore, MatchingRule::CaseIgnoreSubstrings);
    assert_eq!(rules, (Some(equal), Some(parts), Syntax::DirectoryString));
    assert!(warnings.contains("odd: matching rule unheardOfMatch is not known here"), "{warnings}");
    let (rules, warnings) = odd("EQUALITY integerMatch SYNTAX 9.9.9");
    assert_eq!(rules, (Some(MatchingRule::Integer), None, Syntax::Integer));
    assert!(warnings.contains("syntax 9.9.9 is not known; taken for INTEGER"), "{warnings}");
    let (rules, _) = odd("EQUALITY caseIgnoreOrderingMatch SYNTAX 1.2.840.113556.1.4.907");
    assert_eq!(rules, (Some(MatchingRule::OctetString), None, Syntax::OctetString));
}

/// Published definitions refer to rules and syntaxes that are published.
#[test]
fn what_clients_see_refers_to_nothing_that_is_not_there() {
    for odd in [
        format!("EQUALITY unheardOfMatch ORDERING noOrderingMatch SUBSTR otherMatch {STRING}"),
        "EQUALITY integerMatch SYNTAX 9.9.9".to_owned(),
        "EQUALITY caseIgnoreOrderingMatch SYNTAX 1.2.840.113556.1.4.907".to_owned(),
        "ORDERING unheardOfMatch SYNTAX 1.2.840.113556.1.4.905{64}".to_owned(),
    ] {
        let schema = Schema::new(&[&format!("( 1.2.3 NAME 'odd' {odd} )")], &[]).unwrap();
        let shown = schema.attribute("odd").unwrap().description();
        let syntax = shown.syntax.as_ref().unwrap();
        assert!(Syntax::from_oid(&syntax.oid).is_some(), "{shown}");
        for rule in [&shown.equality, &shown.ordering, &shown.substring].into_iter().flatten() {
            assert!(MatchingRule::from_name(rule).is_some(), "{shown}");
        }
    }
    let text = format!("( 1.2.3 NAME 'even' EQUALITY caseignorematch {STRING} )");
    let schema = Schema::new(&[&text], &[]).unwrap();
    assert_eq!(schema.attribute("even").unwrap().description().to_string(), text);
}

/// Apache's LDAP API refuses a schema with a class that inherits from another one on two ways.
#[test]
fn no_class_inherits_twice_from_another() {
    let (schema, _) = composed(&[]).unwrap();
    for class in schema.classes() {
        let above: Vec<_> =
            class.description().sup.iter().map(|sup| schema.class(sup).unwrap()).collect();
        for (at, one) in above.iter().enumerate() {
            for other in &above[at + 1..] {
                let is_common =
                    |c: &&ObjectClass| one.is_a(c) && other.is_a(c) && c.name() != "top";
                let common = schema.classes().iter().find(is_common);
                assert!(common.is_none(), "{} twice from {common:?}", class.name());
            }
        }
    }
}

fn composed(files: &[(&str, &str)]) -> Result<(Schema, Vec<String>), SchemaError> {
    let file = |(name, text): &(&str, &str)| SourceFile {
        name: (*name).to_owned(),
        bytes: text.as_bytes().into(),
    };
    let sources = Sources { files: files.iter().map(file).collect(), ..Sources::defaults() };
    let composed = Composed::new(&sources, &Changes::default())?;
    Ok((composed.schema()?, composed.warnings))
}

#[test]
fn sets_and_standard_definitions_are_one_schema() {
    let (schema, warnings) = composed(&[]).unwrap();
    assert!(warnings.is_empty() && schema.warnings().is_empty(), "{:?}", schema.warnings());
    let begins = |line: &&str| line.contains(" ( ") && !line.starts_with([' ', '#']);
    let count = |text: &str| text.lines().filter(begins).count();
    let defined: usize = SETS.iter().map(|set| count(set.text)).sum();
    let standard = standard::ATTRIBUTE_TYPES.len() + standard::OBJECT_CLASSES.len();
    // None takes the place of another.
    assert_eq!(schema.attributes().len() + schema.classes().len(), standard + defined);
    for class in [
        "sudoRole",
        "ldapPublicKey",
        "automountMap",
        "krbPrincipalAux",
        "sambaSamAccount",
        "eduPerson",
        "hostObject",
        "authorizedServiceObject",
        "nsRoleDefinition",
        "nsView",
    ] {
        assert!(schema.class(class).is_some(), "{class}");
    }
}

#[test]
fn files_come_before_what_the_program_brings() {
    let own = "attributetype ( 1.9.1 NAME 'shoeSize' SUP name )\n\
        objectclass ( 1.9.2 NAME 'shoeOwner' SUP top AUXILIARY MAY shoeSize )\n";
    let (schema, _) = composed(&[("a", own), ("b", own)]).unwrap();
    assert!(schema.class("shoeowner").is_some(), "what is said twice is said once");
    let other = "attributetype ( 1.9.1 NAME 'shoeSize' SUP name SINGLE-VALUE )";
    let error = composed(&[("a", own), ("b", other)]).err().unwrap().to_string();
    assert!(error.contains("shoeSize (b, line 1): a, line 1 has it in another form"), "{error}");
    // A standard attribute by its OID: parts that are not said stay, names among it.
    let uid = "attributetype ( 0.9.2342.19200300.100.1.1 NAME 'login' \
        SYNTAX 1.3.6.1.4.1.1466.115.121.1.15{256} )";
    let (schema, _) = composed(&[("a", uid)]).unwrap();
    let uid = schema.attribute("login").unwrap();
    assert_eq!((uid, uid.name()), (schema.attribute("uid").unwrap(), "login"));
    assert_eq!(uid.equality(), Some(MatchingRule::CaseIgnore));
    // One of a set by its name, with another OID.
    let autofs = "objectclass ( 1.3.6.1.4.1.2312.4.2.2 NAME 'automountMap' SUP top MUST ou )";
    let (schema, _) = composed(&[("a", autofs)]).unwrap();
    assert_eq!(schema.class("automountMap").unwrap().oid(), "1.3.6.1.4.1.2312.4.2.2");
    assert!(schema.class("1.3.6.1.1.1.2.16").is_none());
    // A definition that the server needs stays as it is.
    let class = "attributetype ( 2.5.4.0 NAME 'objectClass' \
        SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )";
    let (schema, warnings) = composed(&[("a", class)]).unwrap();
    assert_eq!(schema.attribute("objectClass").unwrap().syntax(), Syntax::Oid);
    assert!(warnings[0].contains("objectClass (a, line 1) is left out"), "{warnings:?}");
    // A definition that has one of its names for another thing keeps its other names.
    let history = "attributetype ( 2.16.840.1.113730.3.1.96 NAME ( 'passwordHistory' 'pwdHistory' ) \
        SYNTAX 1.3.6.1.4.1.1466.115.121.1.5 USAGE directoryOperation )\n\
        objectclass ( 1.9.3 NAME 'historian' AUXILIARY MAY passwordHistory )";
    let (schema, _) = composed(&[("a", history)]).unwrap();
    assert_eq!(schema.attribute("pwdHistory").unwrap().oid(), "1.3.6.1.4.1.42.2.27.8.1.20");
    assert_eq!(schema.attribute("passwordHistory").unwrap().name(), "passwordHistory");
    // An error says where the definition stands.
    let error = composed(&[("a", "\nobjectclass ( 1.9 NAME 'b' MUST telephonNumber )")]);
    let error = error.err().unwrap().to_string();
    assert!(error.contains("b (a, line 2)") && error.contains("did you mean telephone"), "{error}");
}

#[test]
fn a_difference_is_what_an_entry_can_contradict() {
    let own = |rest: &str, may: &str| {
        let text = format!(
            "attributetype ( 1.9.1 NAME 'shoeSize' SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 {rest} )\n\
             objectclass ( 1.9.2 NAME 'shoeOwner' SUP top AUXILIARY MAY ( cn {may} ) )\n"
        );
        composed(&[("a", &text)]).unwrap().0
    };
    let old = own("EQUALITY caseIgnoreMatch", "$ shoeSize");
    let with = |size: &str| {
        entry(&[
            ("objectClass", "person"),
            ("objectClass", "shoeOwner"),
            ("cn", "x"),
            ("sn", "x"),
            ("shoeSize", size),
        ])
    };
    let without = entry(&[("objectClass", "person"), ("cn", "x"), ("sn", "x")]);
    let why = |new: &Schema, entry: &EntryAttributes| {
        Difference::new(&old, new).contradiction("cn=x", entry).unwrap_or_default()
    };
    assert!(Difference::new(&old, &own("EQUALITY caseIgnoreMatch", "$ shoeSize $ sn")).is_empty());
    let stricter = own("EQUALITY caseIgnoreMatch SINGLE-VALUE", "$ shoeSize");
    assert!(!Difference::new(&old, &stricter).is_empty());
    assert_eq!(why(&stricter, &with("42")), "");
    let mut two = with("42");
    two[3].1.push(b"43".to_vec());
    assert!(why(&stricter, &two).contains("one value only"));
    let narrower = own("EQUALITY caseIgnoreMatch", "");
    assert!(why(&narrower, &with("42")).contains("allows attribute shoeSize"));
    let exact = own("EQUALITY caseExactMatch", "$ shoeSize");
    assert_eq!(why(&exact, &with("42")), "");
    assert!(why(&exact, &with("XL")).contains("would be equal to others"));
    let (gone, _) = composed(&[]).unwrap();
    assert!(why(&gone, &with("42")).contains("it has attribute shoeSize"));
    assert!(why(&gone, &entry(&[("objectClass", "shoeOwner")])).contains("of object class"));
    for new in [&stricter, &narrower, &exact, &gone] {
        assert_eq!(why(new, &without), "");
    }
    assert!(
        why(&gone, &entry(&[("member", "shoeSize=42,o=x")])).contains("attribute member refers")
    );
    let named = Difference::new(&old, &gone).contradiction("shoeSize=42", &without);
    assert!(named.unwrap().contains("named by it"));
}

#[test]
fn changes_are_kept_as_text() {
    let changes = Changes {
        attribute_types: vec![
            AttributeTypeDescription::parse_stored("( a-oid NAME 'a' SUP name )").unwrap(),
        ],
        object_classes: vec![
            ObjectClassDescription::parse("( 1.2 NAME 'b' DESC 'x\\27y' MAY a )").unwrap(),
        ],
        deleted: vec!["1.3".into()],
    };
    assert_eq!(Changes::from_text(&changes.to_text()), Ok(changes));
    assert!(Changes::from_text("nonsense").is_err());
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
        ("jpegPhoto;binary", Some("jpegPhoto")),
        ("cn;lang-ja;PHONETIC;x-hand", Some("cn;lang-ja;phonetic;x-hand")),
        ("cn;", None),
        ("cn;lang-", None),
        ("cn;lang-toolonglang", None),
        ("cn;other", None),
        ("cn;x-", None),
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

fn entry(lines: &[(&str, &str)]) -> EntryAttributes {
    let mut attributes = EntryAttributes::new();
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
    let check = |lines: &[(&str, &str)]| -> Result<String, Violation> {
        check_entry(&schema, &entry(lines), &[]).map(|class| class.name().to_owned())
    };
    let person = [("objectClass", "person"), ("cn", "x"), ("sn", "x")];
    assert_eq!(check(&person).unwrap(), "person");
    let more = |line| person.iter().copied().chain([line]).collect::<Vec<_>>();
    assert_eq!(check(&more(("objectClass", "inetOrgPerson"))).unwrap(), "inetOrgPerson");
    assert_eq!(
        check(&more(("objectClass", "posixAccount"))).unwrap_err().code,
        ResultCode::ObjectClassViolation
    );
    let group = [("objectClass", "posixGroup"), ("cn", "x"), ("gidNumber", "1")];
    assert_eq!(check(&group).unwrap(), "posixGroup", "as in RFC 2307");
    let both = [("objectClass", "groupOfNames")].into_iter().chain(group).collect::<Vec<_>>();
    assert_eq!(check(&both).unwrap(), "groupOfNames", "as in RFC 2307bis");
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
        let violation = check(&wrong).unwrap_err();
        assert_eq!(violation.code, ResultCode::ObjectClassViolation);
        assert!(violation.why.contains(names), "{violation}");
        let all = violations(&schema, &entry(&wrong));
        assert_eq!(all.first().map(|(_, first)| first), Some(&violation));
    }
    assert_eq!(violations(&schema, &entry(&person)), []);
    let several = [("objectClass", "inetOrgPerson"), ("uidNumber", "1"), ("employeeNumber", "1")];
    let again = [("employeeNumber", "2")];
    let all = violations(&schema, &entry(&[&several[..], &again].concat()));
    let about: Vec<&str> = all.iter().map(|(attribute, _)| attribute.as_str()).collect();
    assert_eq!(about, ["cn", "sn", "uidNumber", "employeeNumber"], "each once, and all");
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
