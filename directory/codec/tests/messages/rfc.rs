//! The examples of RFC 4515 and RFC 2696, and messages as well-known clients send them.

use std::borrow::Cow;

use keyway_codec::controls::{Assertion, PagedResults, ReadRequest, ReadResponse};
use keyway_codec::extended::{CancelRequest, PasswordModifyRequest, PasswordModifyResponse};
use keyway_codec::message::{
    Attribute, Authentication, BindRequest, Deref, ExtendedResponse, LdapResult, ResultCode, Scope,
    SearchRequest, SearchResultEntry,
};
use keyway_codec::{Filter, Message, Op};

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}

fn equality<'a>(attribute: &'a str, value: &'a [u8]) -> Filter<'a> {
    Filter::Equality { attribute: attribute.into(), value: value.into() }
}

#[test]
fn the_examples_of_rfc_4515_section_4() {
    assert_eq!(Filter::parse("(cn=Babs Jensen)"), Ok(equality("cn", b"Babs Jensen")));
    assert_eq!(
        Filter::parse("(!(cn=Tim Howes))"),
        Ok(Filter::Not(Box::new(equality("cn", b"Tim Howes"))))
    );
    assert_eq!(
        Filter::parse("(&(objectClass=Person)(|(sn=Jensen)(cn=Babs J*)))"),
        Ok(Filter::And(vec![
            equality("objectClass", b"Person"),
            Filter::Or(vec![
                equality("sn", b"Jensen"),
                Filter::Substrings {
                    attribute: "cn".into(),
                    initial: Some(Cow::Borrowed(b"Babs J")),
                    any: vec![],
                    last: None,
                },
            ]),
        ]))
    );
    assert_eq!(
        Filter::parse("(o=univ*of*mich*)"),
        Ok(Filter::Substrings {
            attribute: "o".into(),
            initial: Some(Cow::Borrowed(b"univ")),
            any: vec![Cow::Borrowed(b"of"), Cow::Borrowed(b"mich")],
            last: None,
        })
    );
    assert_eq!(Filter::parse("(seeAlso=)"), Ok(equality("seeAlso", b"")));
    assert_eq!(
        Filter::parse(r"(o=Parens R Us \28for all your parenthetical needs\29)"),
        Ok(equality("o", b"Parens R Us (for all your parenthetical needs)"))
    );
    assert_eq!(
        Filter::parse(r"(cn=*\2A*)"),
        Ok(Filter::Substrings {
            attribute: "cn".into(),
            initial: None,
            any: vec![Cow::Borrowed(b"*")],
            last: None,
        })
    );
    assert_eq!(Filter::parse(r"(filename=C:\5cMyFile)"), Ok(equality("filename", br"C:\MyFile")));
    assert_eq!(Filter::parse(r"(bin=\00\00\00\04)"), Ok(equality("bin", &[0, 0, 0, 4])));
    assert_eq!(Filter::parse(r"(sn=Lu\c4\8di\c4\87)"), Ok(equality("sn", "Lučić".as_bytes())));
    assert_eq!(
        Filter::parse(r"(1.3.6.1.4.1.1466.0=\04\02\48\69)"),
        Ok(equality("1.3.6.1.4.1.1466.0", &[4, 2, 0x48, 0x69]))
    );
}

#[test]
fn the_extensible_examples_of_rfc_4515_section_4() {
    let extensible = |attribute, dn_attributes, rule, value: &'static [u8]| {
        Ok(Filter::Extensible {
            rule: Option::map(rule, Cow::<str>::Borrowed),
            attribute: Option::map(attribute, Cow::<str>::Borrowed),
            value: Cow::Borrowed(value),
            dn_attributes,
        })
    };
    let parse = Filter::parse;
    assert_eq!(
        parse("(cn:caseExactMatch:=Fred Flintstone)"),
        extensible(Some("cn"), false, Some("caseExactMatch"), b"Fred Flintstone")
    );
    assert_eq!(parse("(cn:=Betty Rubble)"), extensible(Some("cn"), false, None, b"Betty Rubble"));
    assert_eq!(
        parse("(sn:dn:2.4.6.8.10:=Barney Rubble)"),
        extensible(Some("sn"), true, Some("2.4.6.8.10"), b"Barney Rubble")
    );
    assert_eq!(parse("(o:dn:=Ace Industry)"), extensible(Some("o"), true, None, b"Ace Industry"));
    assert_eq!(parse("(o:dn:dn:=a)"), extensible(Some("o"), true, Some("dn"), b"a"));
    assert_eq!(
        parse("(:1.2.3:=Wilma Flintstone)"),
        extensible(None, false, Some("1.2.3"), b"Wilma Flintstone")
    );
    assert_eq!(
        parse("(:DN:2.4.6.8.10:=Dino)"),
        extensible(None, true, Some("2.4.6.8.10"), b"Dino")
    );
}

#[test]
fn the_absolute_filters_of_rfc_4526() {
    assert_eq!(Filter::parse("(&)"), Ok(Filter::And(vec![])));
    assert_eq!(Filter::parse("(|)"), Ok(Filter::Or(vec![])));
    assert_eq!(Filter::decode(&[0xa0, 0]), Ok(Filter::And(vec![])));
    assert_eq!(Filter::decode(&[0xa1, 0]), Ok(Filter::Or(vec![])));
}

#[test]
fn a_filter_that_is_not_one_says_where() {
    for (text, at) in [
        ("", 0),
        ("cn=a", 0),
        ("(cn=a", 5),
        ("(cn=a))", 6),
        ("(cn)", 3),
        ("(=a)", 1),
        ("(cn>a)", 4),
        ("(cn=a(b)", 5),
        ("(cn=**)", 5),
        ("(cn=a**b)", 6),
        (r"(cn=\4)", 4),
        (r"(cn=\zz)", 4),
        (r"(cn=\", 4),
        ("(cn~=a*)", 6),
        ("(!)", 2),
        ("(!(a=b)(c=d))", 7),
        ("(:=a)", 3),
        ("(:dn:=a)", 6),
        ("(cn:2.4:2.5:=a)", 8),
        ("(cn::=a)", 4),
        ("( cn=a)", 1),
        ("(-a=b)", 1),
        ("(cn=\0)", 4),
    ] {
        assert_eq!(Filter::parse(text).map_err(|error| error.at), Err(at), "{text}");
    }
    let error = Filter::parse("(cn>=a*)").unwrap_err();
    assert_eq!(error.to_string(), r"filter is wrong at byte 6: a '*' in a value is written \2a");
}

#[test]
fn a_filter_in_a_log_line_is_one_line() {
    let filter = equality("cn\n", "a\r\n*é\u{7f}".as_bytes());
    assert_eq!(filter.to_string(), r"(cn\0a=a\0d\0a\2aé\7f)");
    assert_eq!(equality("cn", &[0xff, b'a']).to_string(), r"(cn=\ffa)");
}

#[test]
fn a_bind_as_ldapsearch_sends_it() {
    let bytes = hex(
        "30 2a 02 01 01 60 25 02 01 03 04 1a 636e3d61646d696e2c64633d6578616d706c652c64633d636f6d
        80 04 70617373",
    );
    let bind = BindRequest {
        version: 3,
        name: "cn=admin,dc=example,dc=com",
        authentication: Authentication::Simple(b"pass"),
    };
    let message = Message::new(1, Op::BindRequest(bind));
    assert_eq!(Message::decode(&bytes), Ok(message.clone()));
    let mut encoded = Vec::new();
    message.encode(&mut encoded);
    assert_eq!(encoded, bytes);
}

/// Windows clients write every length in five octets.
#[test]
fn a_search_of_the_root_dse_with_padded_lengths() {
    let bytes = hex("30 84 00000033 02 01 02 63 84 0000002a
        04 00  0a 01 00  0a 01 00  02 01 00  02 01 78  01 01 00
        87 0b 6f626a656374436c617373
        30 84 00000003 04 01 2b");
    // The lengths above are filled in here, so that the text stays readable.
    let mut bytes = bytes;
    let body = u8::try_from(bytes.len()).unwrap() - 6;
    bytes[5] = body;
    bytes[14] = body - 9;
    let search = SearchRequest {
        base: "",
        scope: Scope::Base,
        deref: Deref::Never,
        size_limit: 0,
        time_limit_s: 120,
        types_only: false,
        filter: Filter::Present("objectClass".into()),
        attributes: vec!["+"],
    };
    assert_eq!(Message::decode(&bytes), Ok(Message::new(2, Op::SearchRequest(search))));
}

#[test]
fn a_notice_of_disconnection() {
    let notice = Message::new(
        0,
        Op::ExtendedResponse(ExtendedResponse {
            result: LdapResult::new(ResultCode::ProtocolError, "bye"),
            oid: Some(keyway_codec::extended::NOTICE_OF_DISCONNECTION.into()),
            value: None,
        }),
    );
    let mut bytes = Vec::new();
    notice.encode(&mut bytes);
    let expected = hex("30 27 02 01 00 78 22 0a 01 02 04 00 04 03 627965
        8a 16 312e332e362e312e342e312e313436362e3230303336");
    assert_eq!(bytes, expected);
}

#[test]
fn an_answer_fits_its_request() {
    use keyway_codec::message::tag;
    for (request, response) in [
        (tag::BIND_REQUEST, tag::BIND_RESPONSE),
        (tag::SEARCH_REQUEST, tag::SEARCH_RESULT_DONE),
        (tag::MODIFY_REQUEST, tag::MODIFY_RESPONSE),
        (tag::ADD_REQUEST, tag::ADD_RESPONSE),
        (tag::DELETE_REQUEST, tag::DELETE_RESPONSE),
        (tag::MODIFY_DN_REQUEST, tag::MODIFY_DN_RESPONSE),
        (tag::COMPARE_REQUEST, tag::COMPARE_RESPONSE),
        (tag::EXTENDED_REQUEST, tag::EXTENDED_RESPONSE),
    ] {
        assert_eq!(Op::answer(request, LdapResult::success()).map(|op| op.tag()), Some(response));
    }
    for silent in [tag::UNBIND_REQUEST, tag::ABANDON_REQUEST, tag::BIND_RESPONSE, 0x41] {
        assert_eq!(Op::answer(silent, LdapResult::success()), None);
    }
}

#[test]
fn control_values() {
    let paged = PagedResults { size: 100, cookie: Cow::Borrowed(b"next") };
    let bytes = hex("30 09 02 01 64 04 04 6e657874");
    assert_eq!(PagedResults::decode(&bytes), Ok(paged.clone()));
    assert_eq!(encoded(|out| paged.encode(out)), bytes);
    assert!(PagedResults::decode(&hex("30 06 02 01 ff 04 01 00")).is_err());
    assert!(PagedResults::decode(&hex("30 06 02 01 64 04 01 00 00")).is_err());

    // RFC 4528 § 3: the value is the filter itself.
    let assertion = Assertion(Filter::parse("(cn=a)").unwrap());
    let bytes = hex("a3 07 04 02 636e 04 01 61");
    assert_eq!(Assertion::decode(&bytes), Ok(assertion.clone()));
    assert_eq!(encoded(|out| assertion.encode(out)), bytes);

    let read = ReadRequest(vec!["cn", "*"]);
    let bytes = hex("30 07 04 02 636e 04 01 2a");
    assert_eq!(ReadRequest::decode(&bytes), Ok(read.clone()));
    assert_eq!(encoded(|out| read.encode(out)), bytes);

    let values = vec![Cow::Borrowed(&b"a"[..])];
    let attributes = vec![Attribute { description: "cn".into(), values }];
    let read = ReadResponse(SearchResultEntry { dn: "cn=a".into(), attributes });
    let bytes = hex("64 13 04 04 636e3d61 30 0b 30 09 04 02 636e 31 03 04 01 61");
    assert_eq!(ReadResponse::decode(&bytes), Ok(read.clone()));
    assert_eq!(encoded(|out| read.encode(out)), bytes);
}

#[test]
fn extended_values() {
    let request =
        PasswordModifyRequest { user: Some("cn=a"), old: Some(b"old"), new: Some(b"new") };
    let bytes = hex("30 10 80 04 636e3d61 81 03 6f6c64 82 03 6e6577");
    assert_eq!(PasswordModifyRequest::decode(Some(&bytes)), Ok(request.clone()));
    assert_eq!(encoded(|out| request.encode(out)), bytes);
    let nothing = PasswordModifyRequest::default();
    assert_eq!(PasswordModifyRequest::decode(None), Ok(nothing.clone()));
    assert_eq!(PasswordModifyRequest::decode(Some(&[0x30, 0])), Ok(nothing));
    assert!(PasswordModifyRequest::decode(Some(&[0x80, 0])).is_err());

    let response = PasswordModifyResponse { generated: Some(b"new") };
    let bytes = hex("30 05 80 03 6e6577");
    assert_eq!(PasswordModifyResponse::decode(&bytes), Ok(response.clone()));
    assert_eq!(encoded(|out| response.encode(out)), bytes);

    let cancel = CancelRequest { id: 5 };
    let bytes = hex("30 03 02 01 05");
    assert_eq!(CancelRequest::decode(&bytes), Ok(cancel));
    assert_eq!(encoded(|out| cancel.encode(out)), bytes);
}

#[test]
fn secrets_are_not_shown() {
    let secret = b"hunter2";
    let attribute =
        Attribute { description: "userPassword;x-old".into(), values: vec![secret[..].into()] };
    let sasl = Authentication::Sasl { mechanism: "PLAIN", credentials: Some(secret) };
    let password = PasswordModifyRequest { user: None, old: Some(secret), new: Some(secret) };
    let shown = format!(
        "{attribute:?} {:?} {sasl:?} {password:?} {:?} {:?}",
        Authentication::Simple(secret),
        keyway_codec::message::CompareRequest { dn: "", attribute: "2.5.4.35", value: secret },
        keyway_codec::message::ExtendedRequest { oid: "1.2", value: Some(secret) },
    );
    assert!(!shown.contains("104, 117"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}
