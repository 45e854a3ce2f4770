//! LDAP messages, and the values of the controls and extended operations in them.

use keyway_codec::controls::{Assertion, PagedResults, ReadRequest, ReadResponse};
use keyway_codec::extended::{CancelRequest, PasswordModifyRequest, PasswordModifyResponse};
use keyway_codec::message::{EntryWriter, SearchResultEntry};
use keyway_codec::password_policy::{AccountUsability, PasswordPolicyResponse};
use keyway_codec::{Message, Op, ber};

/// Reads the bytes as one message.
pub fn message(data: &[u8]) {
    framed(data);
    let Ok(message) = Message::decode(data) else { return };
    assert_eq!(Message::peek_id(data), Some(message.id));
    assert_eq!(Message::peek_tag(data), Some(message.op.tag()));

    let written = encoded(&message);
    assert!(written.len() <= data.len(), "the shortest form is longer than another");
    assert_eq!(Message::decode(&written).as_ref(), Ok(&message));

    for control in &message.controls {
        control.value.iter().for_each(|bytes| value(bytes));
    }
    match &message.op {
        Op::SearchResultEntry(entry) => streamed(&message, entry, &written),
        Op::ExtendedRequest(request) => request.value.iter().for_each(|bytes| value(bytes)),
        Op::ExtendedResponse(response) => response.value.iter().for_each(|bytes| value(bytes)),
        _ => {}
    }
}

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

/// A message that arrives in two parts has the same frame as one that arrives at once.
fn framed(data: &[u8]) {
    const MAX: usize = 1 << 16;
    let Ok(Some(length)) = ber::frame(data, MAX) else { return };
    assert!((2..=data.len().min(MAX)).contains(&length));
    assert_eq!(ber::frame(&data[..length], MAX), Ok(Some(length)));
    assert_eq!(ber::frame(&data[..length - 1], MAX), Ok(None));
}

fn streamed(message: &Message<'_>, entry: &SearchResultEntry<'_>, written: &[u8]) {
    let mut bytes = Vec::new();
    let mut writer = EntryWriter::begin(&mut bytes, message.id, &entry.dn);
    for attribute in &entry.attributes {
        writer.attribute(&attribute.description);
        attribute.values.iter().for_each(|value| writer.value(value));
    }
    writer.finish(&message.controls);
    assert_eq!(bytes, written);
}

/// Reads the bytes as each kind of value and writes it again.
fn value(data: &[u8]) {
    let mut bytes = Vec::new();
    if let Ok(value) = PagedResults::decode(data) {
        value.encode(&mut bytes);
        assert_eq!(PagedResults::decode(&bytes), Ok(value));
    }
    bytes.clear();
    if let Ok(value) = Assertion::decode(data) {
        value.encode(&mut bytes);
        assert_eq!(Assertion::decode(&bytes), Ok(value));
    }
    bytes.clear();
    if let Ok(value) = ReadRequest::decode(data) {
        value.encode(&mut bytes);
        assert_eq!(ReadRequest::decode(&bytes), Ok(value));
    }
    bytes.clear();
    if let Ok(value) = ReadResponse::decode(data) {
        value.encode(&mut bytes);
        assert_eq!(ReadResponse::decode(&bytes), Ok(value));
    }
    bytes.clear();
    if let Ok(value) = PasswordPolicyResponse::decode(data) {
        value.encode(&mut bytes);
        assert_eq!(PasswordPolicyResponse::decode(&bytes), Ok(value));
    }
    bytes.clear();
    if let Ok(value) = AccountUsability::decode(data) {
        value.encode(&mut bytes);
        assert_eq!(AccountUsability::decode(&bytes), Ok(value));
    }
    bytes.clear();
    if let Ok(value) = PasswordModifyRequest::decode(Some(data)) {
        value.encode(&mut bytes);
        assert_eq!(PasswordModifyRequest::decode(Some(&bytes)), Ok(value));
    }
    bytes.clear();
    if let Ok(value) = PasswordModifyResponse::decode(data) {
        value.encode(&mut bytes);
        assert_eq!(PasswordModifyResponse::decode(&bytes), Ok(value));
    }
    bytes.clear();
    if let Ok(value) = CancelRequest::decode(data) {
        value.encode(&mut bytes);
        assert_eq!(CancelRequest::decode(&bytes), Ok(value));
    }
}
