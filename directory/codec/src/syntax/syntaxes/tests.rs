//! For each syntax what is of it, the RFC's examples first, and what is not.

use std::collections::BTreeSet;

use super::Syntax;
use crate::syntax::{Part, substring_assertion};

fn check(syntax: Syntax, valid: &[&str], invalid: &[&str]) {
    for value in valid {
        assert_eq!(syntax.validate(value.as_bytes()), Ok(()), "{syntax:?}: {value:?}");
    }
    for value in invalid {
        assert!(syntax.validate(value.as_bytes()).is_err(), "{syntax:?}: {value:?}");
    }
}

#[test]
fn oids() {
    let oids: BTreeSet<_> = Syntax::ALL.iter().map(|syntax| syntax.oid()).collect();
    assert_eq!(oids.len(), Syntax::ALL.len());
    for syntax in Syntax::ALL {
        assert_eq!(Syntax::from_oid(syntax.oid()), Some(*syntax));
        check(Syntax::LdapSyntaxDescription, &[&syntax.description()], &[]);
    }
    assert_eq!(Syntax::from_oid("1.3.6.1.4.1.1466.115.121.1.999"), None);
    assert_eq!(Syntax::Dn.description(), "( 1.3.6.1.4.1.1466.115.121.1.12 DESC 'DN' )");
}

#[test]
fn strings() {
    check(
        Syntax::DirectoryString,
        &["This is a value of Directory String containing #!%#@.", "ü"],
        &[""],
    );
    assert!(Syntax::DirectoryString.validate(b"\xff").is_err());
    check(Syntax::PrintableString, &["This is a PrintableString."], &["", "a@b", "ü", "a*"]);
    check(Syntax::Ia5String, &["", "a@b", "\u{0}"], &["ü"]);
    check(Syntax::CountryString, &["US", "AU"], &["", "U", "USA", "ü"]);
    check(Syntax::NumericString, &["15 079 672 281", " "], &["", "1a"]);
    check(
        Syntax::TelephoneNumber,
        &["+1 512 315 0280", "+1-512-315-0280", "+61 3 9896 7830", "ask (Jo)"],
        &["", "ask Jürgen", "*100#", "0123_45", "12\n34"],
    );
    check(Syntax::OctetString, &["", "\u{0}"], &[]);
    check(Syntax::Jpeg, &[""], &[]);
}

#[test]
fn numbers_and_times() {
    check(
        Syntax::Integer,
        &["1321", "0", "-1", "123456789012345678901234567890"],
        &["", "01", "-0", "+1", "1.0"],
    );
    check(Syntax::Boolean, &["TRUE", "FALSE"], &["", "yes"]);
    check(Syntax::BitString, &["'0101111101'B", "''B"], &["0101", "'2'B"]);
    check(Syntax::GeneralizedTime, &["199412161032Z", "199412160532-0500"], &["", "199402311032Z"]);
    check(Syntax::UtcTime, &["9412161032Z"], &["199412161032Z"]);
    check(Syntax::Uuid, &["597ae2f6-16a6-1027-98f4-d28b5365dc14"], &["", "597ae2f6"]);
}

#[test]
fn names() {
    let valid = [
        "UID=jsmith,DC=example,DC=net",
        "OU=Sales+CN=J. Smith,DC=example,DC=net",
        r"CN=John Smith\, III,DC=example,DC=net",
        r"CN=Before\0dAfter,DC=example,DC=net",
        "1.3.6.1.4.1.1466.0=#04024869,DC=example,DC=com",
        r"CN=Lu\C4\8Di\C4\87",
        "",
    ];
    check(Syntax::Dn, &valid, &["a", "a=b,", "=b", "ü=b"]);
    assert!(Syntax::Dn.validate(b"a=\xff").is_err());
    let with_uid = "1.3.6.1.4.1.1466.0=#04024869,O=Test,C=GB#'0101'B";
    check(Syntax::NameAndOptionalUid, &[with_uid, "cn=a#'0'", "cn=a"], &["a", "a#'0'B"]);
    check(Syntax::Oid, &["1.2.3.4", "cn", "x-y_z"], &["", "1", "1.02", "ü", "-a", "1.2."]);
}

#[test]
fn composed() {
    check(
        Syntax::PostalAddress,
        &[
            "1234 Main St.$Anytown, CA 12345$USA",
            "\\241,000,000 Sweepstakes$PO Box 1000000$Anytown$USA",
        ],
        &["", "a\\b"],
    );
    check(
        Syntax::FacsimileTelephoneNumber,
        &["+61 3 9896 7801", "+81 3 347 7418$fineResolution"],
        &["", "1$", "1$fast", "ü$fineResolution", "*1"],
    );
    check(Syntax::TelexNumber, &["12345$023$ABCDE"], &["12345", "1$2$3$4", "1$$3"]);
    check(Syntax::TeletexTerminalIdentifier, &["id", "id$page:1$misc:"], &["", "id$x:1", "id$pag"]);
    check(Syntax::DeliveryMethod, &["telephone $ videotex", "any"], &["", "any $", "phone"]);
    check(Syntax::OtherMailbox, &["MCIMail$x@y", "a$"], &["", "a", "$x", "a$ü"]);
    check(
        Syntax::EnhancedGuide,
        &[
            "person#(sn$EQ)#oneLevel",
            "person#(sn$APPROX)#wholeSubtree",
            "organizationalUnit#(ou$SUBSTR)#oneLevel",
            "person # !sn$EQ|(cn$GE&?true) # baseobject",
        ],
        &[
            "",
            "person#sn$EQ",
            "person#sn#oneLevel",
            "person#(sn$EQ#oneLevel",
            "person#sn$EQ#all",
            "#sn$EQ#oneLevel",
        ],
    );
    check(
        Syntax::Guide,
        &["person#sn$EQ", "sn$EQ", "?false"],
        &["", "sn", "1#sn$EQ", "person#)sn$EQ("],
    );
    check(
        Syntax::NisNetgroupTriple,
        &["(host,user,domain)", "(,,)", "(-,-,-)"],
        &["", "host,user,domain", "(a,b)", "(a,b,c,d)"],
    );
    check(
        Syntax::SubtreeSpecification,
        &["{}", "{ }", r#"{ base "ou=people", minimum 1, specificationFilter item:person }"#],
        &["", "{", "}", "base \"ou=people\"", "{}."],
    );
    check(Syntax::BootParameter, &["root=server:/path"], &["", "root", "root:a=b", "=a:b"]);
    assert_eq!(Syntax::Certificate.validate(&[0x30, 0x01, 0x00]), Ok(()));
    assert!(Syntax::Certificate.validate(&[0x30, 0x02, 0x00]).is_err());
    assert!(Syntax::Certificate.validate(&[0x30, 0x00, 0x00]).is_err());
}

#[test]
fn descriptions() {
    check(
        Syntax::AttributeTypeDescription,
        &["( 2.5.4.3 NAME 'cn' SUP name )"],
        &["", "( 2.5.4.3 )"],
    );
    check(
        Syntax::ObjectClassDescription,
        &["( 2.5.6.2 NAME 'country' SUP top STRUCTURAL MUST c MAY ( searchGuide $ description ) )"],
        &["", "( cn )"],
    );
    check(
        Syntax::DitContentRuleDescription,
        &["( 2.5.6.4 DESC 'content rule for organization' NOT ( x121Address $ telexNumber ) )"],
        &["", "(", "( 1.2", "( 1.2 ) )", "( ( ) )", "( 1.2 'x )"],
    );
    check(
        Syntax::DitStructureRuleDescription,
        &["( 2 DESC 'organization structure rule' FORM 2.5.15.3 )"],
        &["2"],
    );
    check(
        Syntax::NameFormDescription,
        &["( 2.5.15.3 NAME 'orgNameForm' OC organization MUST o )"],
        &["x"],
    );
    check(
        Syntax::MatchingRuleUseDescription,
        &["( 2.5.13.16 APPLIES ( givenName $ surname ) )"],
        &["x"],
    );
}

#[test]
fn assertions_of_substrings() {
    let pieces = |text: &str| substring_assertion(text.as_bytes());
    let piece = |part, text: &str| (part, text.as_bytes().to_vec());
    assert_eq!(pieces("*"), Some(vec![]));
    assert_eq!(pieces("a*"), Some(vec![piece(Part::Initial, "a")]));
    assert_eq!(
        pieces(r"a*\2A*\5cb"),
        Some(vec![piece(Part::Initial, "a"), piece(Part::Any, "*"), piece(Part::Final, "\\b")])
    );
    for wrong in ["", "a", "a**b", "**", r"*\2b", r"*\", r"*\2"] {
        assert_eq!(pieces(wrong), None, "{wrong}");
    }
    check(Syntax::SubstringAssertion, &["*", "a*b"], &["a"]);
}
