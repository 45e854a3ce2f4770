//! Input that RFC 4511 forbids is refused, with the reason; input that it allows is not.

use keyway_codec::ber::{self, Reader, Writer};
use keyway_codec::extended::PasswordModifyRequest;
use keyway_codec::limits::{
    ATTRIBUTES_MAX, CONTROLS_MAX, FILTER_DEPTH_MAX, FILTER_TERMS_MAX, REFERRALS_MAX, VALUES_MAX,
};
use keyway_codec::message::{Control, LdapResult, SearchResultEntry};
use keyway_codec::{DecodeError, Filter, Message, Op};

const fn malformed<T>(what: &'static str) -> Result<T, DecodeError> {
    Err(DecodeError::Malformed { what })
}

const fn invalid<T>(what: &'static str) -> Result<T, DecodeError> {
    Err(DecodeError::Invalid { what })
}

#[test]
fn framing() {
    assert_eq!(ber::frame(&[], 10), Ok(None));
    assert_eq!(ber::frame(&[0x30], 10), Ok(None));
    assert_eq!(ber::frame(&[0x30, 0x82, 0x01], 10), Ok(None));
    assert_eq!(ber::frame(&[0x30, 0], 10), Ok(Some(2)));
    assert_eq!(ber::frame(&[0x30, 0, 0x30], 10), Ok(Some(2)));
    assert_eq!(ber::frame(&[0x30, 0x09], 10), Err(DecodeError::TooLong { bytes: 11, max: 10 }));
    assert_eq!(
        ber::frame(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], 1 << 20),
        Err(DecodeError::TooLong { bytes: 0xffff_ffff + 6, max: 1 << 20 })
    );
    assert_eq!(ber::frame(&[0x30, 0x80, 0, 0], 10), malformed("indefinite length"));
    assert_eq!(
        ber::frame(&[0x30, 0x85, 0, 0, 0, 0, 1], 10),
        malformed("length of more than four octets")
    );
    assert_eq!(ber::frame(&[0x30, 0xff], 10), malformed("length of more than four octets"));
    // TLS, HTTP and a primitive sequence are no LDAP.
    for first in [0x16, b'G', 0x10, 0x31] {
        let error = DecodeError::UnexpectedTag { expected: 0x30, found: first };
        assert_eq!(ber::frame(&[first], 10), Err(error));
    }
}

#[test]
fn integers() {
    let read = |contents: &[u8]| {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes).octets(ber::INTEGER, contents);
        Reader::new(&bytes).natural(ber::INTEGER)
    };
    assert_eq!(read(&[0x7f, 0xff, 0xff, 0xff]), Ok(0x7fff_ffff));
    assert_eq!(read(&[0, 0, 0, 0, 5]), Ok(5));
    for wrong in [&[0xff][..], &[0x80, 0, 0, 0], &[0, 0x80, 0, 0, 0], &[0x7f, 0, 0, 0, 0, 0, 0, 0]]
    {
        assert_eq!(read(wrong), invalid("integer not from 0 to 2147483647"));
    }
    assert_eq!(read(&[]), malformed("integer without octets"));
    assert_eq!(read(&[0; 9]), invalid("integer of more than eight octets"));
}

#[test]
fn booleans_and_strings() {
    let mut reader = Reader::new(&[1, 1, 0, 1, 1, 1, 1, 1, 0xff, 1, 0]);
    assert_eq!(reader.boolean(ber::BOOLEAN), Ok(false));
    assert_eq!(reader.boolean(ber::BOOLEAN), Ok(true));
    assert_eq!(reader.boolean(ber::BOOLEAN), Ok(true));
    assert_eq!(reader.boolean(ber::BOOLEAN), malformed("boolean not of one octet"));
    let mut bytes = Vec::new();
    Writer::new(&mut bytes).boolean(ber::BOOLEAN, true);
    Writer::new(&mut bytes).boolean(ber::BOOLEAN, false);
    assert_eq!(bytes, [1, 1, 0xff, 1, 1, 0]);
    assert_eq!(
        Reader::new(&[4, 1, 0xff]).string(ber::OCTET_STRING),
        invalid("string is not UTF-8")
    );
    // A constructed OCTET STRING, § 5.1 (2).
    assert_eq!(
        Reader::new(&[0x24, 3, 4, 1, b'a']).string(ber::OCTET_STRING),
        Err(DecodeError::UnexpectedTag { expected: 4, found: 0x24 })
    );
    assert_eq!(Reader::new(&[0x1f, 0x20, 0]).element(), malformed("tag of more than one octet"));
    assert_eq!(Reader::new(&[4, 2, 0]).element(), Err(DecodeError::Truncated));
    assert_eq!(Reader::new(&[]).expect(4), Err(DecodeError::Truncated));
}

#[test]
fn envelopes() {
    let unbind = [0x30, 5, 2, 1, 3, 0x42, 0];
    assert_eq!(Message::decode(&unbind), Ok(Message::new(3, Op::UnbindRequest)));
    assert_eq!(
        Message::decode(&[0x30, 5, 2, 1, 3, 0x42, 0, 0]),
        malformed("octets after the message")
    );
    assert_eq!(Message::decode(&[0x30, 6, 2, 1, 3, 0x42, 1, 0]), malformed("unbind with contents"));
    // Ids are not negative, and none is needed to know which request is malformed but its own.
    assert_eq!(Message::peek_id(&[0x30, 5, 2, 1, 0xff, 0x42, 0]), None);
    assert_eq!(Message::peek_id(&[0x30, 5, 2, 1, 7, 0x63, 0x50]), Some(7));
    assert_eq!(Message::peek_tag(&[0x30, 5, 2, 1, 7, 0x63, 0x50]), Some(0x63));
    for tag in [0x04, 0x43, 0x7f - 1, 0x62] {
        assert_eq!(
            Message::decode(&[0x30, 5, 2, 1, 3, tag, 0]),
            Err(DecodeError::UnknownOperation { tag })
        );
    }
    // A known element in the wrong place is not an extension of what it should be in.
    let wrong = [0x30, 5, 0x42, 0, 2, 1, 3];
    assert_eq!(
        Message::decode(&wrong),
        Err(DecodeError::UnexpectedTag { expected: 2, found: 0x42 })
    );
}

#[test]
fn requests() {
    for (what, body) in [
        ("bind version not from 1 to 127", &[0x60, 7, 2, 1, 0, 4, 0, 0x80, 0][..]),
        ("bind version not from 1 to 127", &[0x60, 8, 2, 2, 0, 128, 4, 0, 0x80, 0]),
        ("unknown authentication choice", &[0x60, 7, 2, 1, 3, 4, 0, 4, 0]),
        ("value of an extended request that is none", &[0x77, 5, 0x80, 1, b'1', 4, 0]),
        ("unknown search scope", &[0x63, 5, 4, 0, 0x0a, 1, 4]),
        ("unknown alias dereferencing", &[0x63, 8, 4, 0, 0x0a, 1, 0, 0x0a, 1, 4]),
        ("unknown modify operation", &[0x66, 9, 4, 0, 0x30, 5, 0x30, 3, 0x0a, 1, 4]),
        ("attribute without values in an add", &[0x68, 10, 4, 0, 0x30, 6, 0x30, 4, 4, 0, 0x31, 0]),
        ("search reference without a URI", &[0x73, 0]),
    ] {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        let mark = writer.begin(ber::SEQUENCE);
        writer.integer(ber::INTEGER, 1);
        writer.raw(body);
        writer.end(mark);
        assert_eq!(Message::decode(&bytes), invalid(what));
    }
}

/// Such a component must not be taken for an unknown one: it could be a critical control.
#[test]
fn components_that_come_twice_or_too_late() {
    let wrong = malformed("component repeated or out of order");
    for body in [
        // Controls twice, controls after an unknown component, criticality after the value.
        &[0x42, 0, 0xa0, 0, 0xa0, 0][..],
        &[0x42, 0, 0xa5, 0, 0xa0, 0],
        &[0x42, 0, 0xa0, 9, 0x30, 7, 4, 0, 4, 0, 1, 1, 0xff],
        // Two passwords, two new superiors, three parts in an assertion, two result values.
        &[0x60, 9, 2, 1, 3, 4, 0, 0x80, 0, 0x80, 0],
        &[0x6c, 11, 4, 0, 4, 0, 1, 1, 0, 0x80, 0, 0x80, 0],
        &[0x6e, 10, 4, 0, 0x30, 6, 4, 0, 4, 0, 4, 0],
        &[0x78, 11, 0x0a, 1, 0, 4, 0, 4, 0, 0x8b, 0, 0x8b, 0],
    ] {
        let mut bytes = vec![0x30, u8::try_from(body.len() + 3).unwrap(), 2, 1, 1];
        bytes.extend_from_slice(body);
        assert_eq!(Message::decode(&bytes).map(drop), wrong, "{body:x?}");
    }
    // The name of the password's user must not get lost.
    let late_user = [0x30, 4, 0x81, 0, 0x80, 0];
    assert_eq!(PasswordModifyRequest::decode(Some(&late_user)).map(drop), wrong);
    let unknown = [0x30, 2, 0x85, 0];
    assert_eq!(
        PasswordModifyRequest::decode(Some(&unknown)).map(drop),
        malformed("component that is neither a user nor a password")
    );
    assert_eq!(Filter::decode(&[0xa3, 6, 4, 0, 4, 0, 4, 0]).map(drop), wrong);
    assert_eq!(Filter::decode(&[0xa9, 6, 0x82, 0, 0x83, 0, 0x81, 0]).map(drop), wrong);
}

#[test]
fn filters() {
    for (what, bytes) in [
        ("unknown filter choice", &[0xaa, 0][..]),
        ("unknown filter choice", &[0x80, 0]),
        ("substring assertion without pieces", &[0xa4, 4, 4, 0, 0x30, 0]),
        ("substring after the final one", &[0xa4, 8, 4, 0, 0x30, 4, 0x82, 0, 0x81, 0]),
        ("substring after the final one", &[0xa4, 8, 4, 0, 0x30, 4, 0x82, 0, 0x82, 0]),
        ("initial substring not the first", &[0xa4, 8, 4, 0, 0x30, 4, 0x81, 0, 0x80, 0]),
        ("initial substring not the first", &[0xa4, 8, 4, 0, 0x30, 4, 0x80, 0, 0x80, 0]),
        ("unknown kind of substring", &[0xa4, 6, 4, 0, 0x30, 2, 0x83, 0]),
        ("extensible match without rule and attribute", &[0xa9, 2, 0x83, 0]),
    ] {
        assert_eq!(Filter::decode(bytes), invalid(what));
    }
    let twice = [0xa2, 4, 0x87, 0, 0x87, 0];
    assert_eq!(Filter::decode(&twice), malformed("more than one filter in a not"));
    assert_eq!(Filter::decode(&[0x87, 0, 0]), malformed("octets after the filter"));
    assert_eq!(Filter::decode(&[0xa2, 0]), Err(DecodeError::Truncated));
}

fn encoded(filter: &Filter<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.encode(&mut bytes);
    bytes
}

fn nested(depth: usize) -> Filter<'static> {
    (1..depth).fold(Filter::Present("cn".into()), |term, level| {
        if level % 2 == 0 { Filter::Not(Box::new(term)) } else { Filter::And(vec![term]) }
    })
}

#[test]
fn filters_beyond_the_limits() {
    let deep = nested(FILTER_DEPTH_MAX);
    assert!(Filter::decode(&encoded(&deep)) == Ok(deep.clone()));
    assert!(Filter::parse(&deep.to_string()) == Ok(deep));
    let deeper = nested(FILTER_DEPTH_MAX + 1);
    let too_deep = Err(DecodeError::TooDeep { max: FILTER_DEPTH_MAX });
    assert_eq!(Filter::decode(&encoded(&deeper)), too_deep);
    assert!(Filter::parse(&deeper.to_string()).is_err());
    // Nor is the stack used up by what is far beyond.
    assert_eq!(Filter::decode(&encoded(&nested(1500))), too_deep);
    assert!(Filter::parse(&"(!".repeat(1_000_000)).is_err());

    // Depth is that of the deepest term, not of all together.
    let item = Filter::Present("cn".into());
    let beside = Filter::And(vec![Filter::Not(Box::new(item)); FILTER_DEPTH_MAX + 1]);
    assert!(Filter::decode(&encoded(&beside)) == Ok(beside.clone()));
    assert!(Filter::parse(&beside.to_string()) == Ok(beside));

    let many = |count| Filter::Or(vec![Filter::Present("cn".into()); count - 1]);
    let wide = many(FILTER_TERMS_MAX);
    // No assert_eq: it would print thousands of terms.
    assert!(Filter::decode(&encoded(&wide)) == Ok(wide.clone()));
    assert!(Filter::parse(&wide.to_string()) == Ok(wide));
    let wider = many(FILTER_TERMS_MAX + 1);
    let too_many = Err(DecodeError::TooMany { what: "filter terms", max: FILTER_TERMS_MAX });
    assert_eq!(Filter::decode(&encoded(&wider)), too_many);
    assert!(Filter::parse(&wider.to_string()).is_err());

    let pieces = |count| Filter::Substrings {
        attribute: "cn".into(),
        initial: Some(b"a"[..].into()),
        any: vec![b"a"[..].into(); count - 2],
        last: Some(b"a"[..].into()),
    };
    let long = pieces(FILTER_TERMS_MAX - 1);
    assert!(Filter::decode(&encoded(&long)) == Ok(long.clone()));
    assert!(Filter::parse(&long.to_string()) == Ok(long));
    let longer = pieces(FILTER_TERMS_MAX);
    assert_eq!(Filter::decode(&encoded(&longer)), too_many);
    assert!(Filter::parse(&longer.to_string()).is_err());
}

fn refused(message: &Message<'_>) -> (&'static str, usize) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    match Message::decode(&bytes) {
        Err(DecodeError::TooMany { what, max }) => (what, max),
        other => panic!("accepted: {}", other.is_ok()),
    }
}

#[test]
fn lists_beyond_the_limits() {
    let control = Control { oid: "1.2.3", critical: false, value: None };
    let mut message = Message::new(1, Op::UnbindRequest);
    message.controls = vec![control; CONTROLS_MAX + 1];
    assert_eq!(refused(&message), ("controls", CONTROLS_MAX));

    let uris = vec!["ldap://a"; REFERRALS_MAX + 1];
    let message = Message::new(1, Op::SearchResultReference(uris));
    assert_eq!(refused(&message), ("references", REFERRALS_MAX));

    let mut result = LdapResult::success();
    result.referrals = vec!["ldap://a".into(); REFERRALS_MAX + 1];
    assert_eq!(refused(&Message::new(1, Op::AddResponse(result))), ("referrals", REFERRALS_MAX));
}

#[test]
fn attributes_beyond_the_limits() {
    use keyway_codec::message::{Attribute, Change, ChangeOperation, ModifyRequest};
    let attribute =
        |values| Attribute { description: "cn".into(), values: vec![b""[..].into(); values] };
    let entry = |attributes| {
        Message::new(1, Op::SearchResultEntry(SearchResultEntry { dn: "".into(), attributes }))
    };
    let change = Change { operation: ChangeOperation::Delete, attribute: attribute(0) };
    let modify =
        Op::ModifyRequest(ModifyRequest { dn: "", changes: vec![change; ATTRIBUTES_MAX + 1] });
    assert_eq!(refused(&Message::new(1, modify)), ("changes", ATTRIBUTES_MAX));
    let message = entry(vec![attribute(0); ATTRIBUTES_MAX + 1]);
    assert_eq!(refused(&message), ("attributes", ATTRIBUTES_MAX));
    // The values are counted over all attributes.
    let message = entry(vec![attribute(VALUES_MAX / 2), attribute(VALUES_MAX / 2 + 1)]);
    assert_eq!(refused(&message), ("values", VALUES_MAX));
}

#[test]
fn every_error_has_a_text_of_its_own() {
    let errors = [
        DecodeError::TooLong { bytes: 2, max: 1 },
        DecodeError::Truncated,
        DecodeError::UnexpectedTag { expected: 4, found: 48 },
        DecodeError::Malformed { what: "x" },
        DecodeError::Invalid { what: "x" },
        DecodeError::TooDeep { max: 1 },
        DecodeError::TooMany { what: "controls", max: 1 },
        DecodeError::UnknownOperation { tag: 0x7e },
    ];
    let texts: std::collections::HashSet<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), errors.len());
}
