//! Bytes that are not what they should be (RFC 4511 § 4.1.1).

use crate::client::{Client, bind, compare, search, who_am_i};
use crate::directory::{BASE, FAST, PASSWORD};
use crate::support::{plain, start};
use keyway_codec::ber::{self, Writer};
use keyway_codec::filter::Filter;
use keyway_codec::message::{LdapResult, Message, Op, ResultCode, Scope, tag};
use keyway_ldapd::{ConnectionSettings, Limits, Mode};
use std::time::Duration;

fn encoded(id: u32, op: Op<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Message::new(id, op).encode(&mut bytes);
    bytes
}

#[tokio::test]
async fn what_is_no_request_ends_the_session_with_a_notice() {
    let server = plain().await;
    let cases: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        // A TLS handshake where none belongs.
        vec![0x16, 0x03, 0x01, 0x00, 0xa5],
        // An indefinite length.
        vec![0x30, 0x80, 0x02, 0x01, 0x01, 0x42, 0x00, 0x00, 0x00],
        // An unknown operation.
        vec![0x30, 0x05, 0x02, 0x01, 0x01, 0x5f, 0x00],
        vec![0x30, 0x05, 0x02, 0x01, 0x01, 0x7e, 0x00],
        // No operation; no message id; an id beyond maxInt.
        vec![0x30, 0x03, 0x02, 0x01, 0x01],
        vec![0x30, 0x02, 0x42, 0x00],
        vec![0x30, 0x09, 0x02, 0x05, 0x01, 0x00, 0x00, 0x00, 0x00, 0x42, 0x00],
        // An element that is longer than the message.
        vec![0x30, 0x07, 0x02, 0x01, 0x01, 0x4a, 0x20, 0x61, 0x62],
        // Message id 0, and a response.
        encoded(0, who_am_i()),
        encoded(1, Op::CompareResponse(LdapResult::success())),
    ];
    for bytes in cases {
        let mut client = Client::connect(server.address).await;
        client.send(&bytes).await;
        client.expect_disconnection(ResultCode::ProtocolError).await;
    }
    // The server is none the worse for it.
    assert_eq!(
        Client::connect(server.address).await.ask(who_am_i()).await.code(),
        ResultCode::Success
    );
}

#[tokio::test]
async fn answers_to_earlier_requests_go_out_before_the_notice() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    let mut bytes = encoded(7, who_am_i());
    bytes.extend_from_slice(b"garbage");
    bytes.extend(encoded(8, who_am_i()));
    client.send(&bytes).await;
    assert_eq!(client.receive().await.id(), 7);
    client.expect_disconnection(ResultCode::ProtocolError).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_by_its_header() {
    let limits = Limits {
        message_bytes_max: 100_000,
        message_bytes_before_bind_max: 1_000,
        ..Limits::default()
    };
    let server =
        start(Mode::Plain, ConnectionSettings { limits, ..ConnectionSettings::default() }).await;
    let value = "x".repeat(2_000);
    let long = || compare(BASE, "dc", &value);

    let mut client = Client::connect(server.address).await;
    // Most clients show what an answer says.
    assert_eq!(client.ask(long()).await.code(), ResultCode::AdminLimitExceeded);
    client.expect_disconnection(ResultCode::ProtocolError).await;

    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    assert_eq!(client.ask(long()).await.code(), ResultCode::CompareFalse);
    client.send(&[0x30, 0x83, 0x02, 0x00, 0x00]).await;
    client.expect_disconnection(ResultCode::ProtocolError).await;
}

#[tokio::test]
async fn a_peer_that_sends_on_and_on_still_hears_why_it_is_cut_off() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    client.send(&[0x30, 0x84, 0x7f, 0xff, 0xff, 0xff]).await;
    client.try_send(&vec![0; 300_000]).await;
    client.expect_disconnection(ResultCode::ProtocolError).await;
}

#[tokio::test]
async fn a_filter_over_the_limits_is_answered_and_the_session_goes_on() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    let mut filter = Filter::Present("cn".into());
    for _ in 0..100 {
        filter = Filter::Not(Box::new(filter));
    }
    let Op::SearchRequest(mut request) = search(BASE, Scope::Base) else { unreachable!() };
    request.filter = filter;
    let answer = client.ask(Op::SearchRequest(request)).await;
    assert_eq!(answer.code(), ResultCode::AdminLimitExceeded);
    assert_eq!(client.ask(who_am_i()).await.code(), ResultCode::Success);
}

/// A message of this id around an operation that no encoder would write.
fn around(id: i64, operation: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let message = writer.begin(ber::SEQUENCE);
    writer.integer(ber::INTEGER, id);
    writer.raw(operation);
    writer.end(message);
    bytes
}

/// A search with these numbers and the BER of a filter.
fn search_of([scope, deref, size, time]: [i64; 4], filter: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let request = writer.begin(tag::SEARCH_REQUEST);
    writer.string(ber::OCTET_STRING, BASE);
    writer.integer(ber::ENUMERATED, scope);
    writer.integer(ber::ENUMERATED, deref);
    writer.integer(ber::INTEGER, size);
    writer.integer(ber::INTEGER, time);
    writer.boolean(ber::BOOLEAN, false);
    writer.raw(filter);
    writer.octets(ber::SEQUENCE, &[]);
    writer.end(request);
    bytes
}

/// RFC 4511 § 4.1.1: where message id and operation are known and all lengths are right, there is
/// an answer by that id, whatever the values are.
#[tokio::test]
async fn values_that_are_none_are_answered_and_the_session_goes_on() {
    use ResultCode::*;
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    let present: &[u8] = &[0x87, 2, b'c', b'n'];
    let cases: Vec<(&str, Vec<u8>, u8, ResultCode)> = [
        ("scope", search_of([9, 0, 0, 0], present)),
        ("negative scope", search_of([-1, 0, 0, 0], present)),
        ("deref", search_of([0, 4, 0, 0], present)),
        ("size limit", search_of([0, 0, -1, 0], present)),
        ("size limit over maxInt", search_of([0, 0, 1 << 31, 0], present)),
        ("time limit", search_of([0, 0, 0, -5], present)),
        ("filter choice", search_of([0, 0, 0, 0], &[0xaa, 0])),
        ("filter choice in a not in an and", search_of([0; 4], &[0xa0, 4, 0xa2, 2, 0x8f, 0])),
        ("filter that is a string", search_of([0, 0, 0, 0], &[0x04, 2, b'c', b'n'])),
        ("no pieces", search_of([0, 0, 0, 0], &[0xa4, 6, 4, 2, b'c', b'n', 0x30, 0])),
        ("piece", search_of([0, 0, 0, 0], &[0xa4, 8, 4, 2, b'c', b'n', 0x30, 2, 0x83, 0])),
        ("neither rule nor type", search_of([0, 0, 0, 0], &[0xa9, 2, 0x83, 0])),
        ("type that is no text", search_of([0, 0, 0, 0], &[0x87, 1, 0xff])),
    ]
    .map(|(what, bytes)| (what, bytes, tag::SEARCH_RESULT_DONE, ProtocolError))
    .into_iter()
    .chain([
        (
            "modify operation",
            vec![0x66, 0x0d, 4, 0, 0x30, 9, 0x30, 7, 0x0a, 1, 4, 0x30, 2, 4, 0],
            tag::MODIFY_RESPONSE,
            ProtocolError,
        ),
        (
            "add without values",
            vec![0x68, 10, 4, 0, 0x30, 6, 0x30, 4, 4, 0, 0x31, 0],
            tag::ADD_RESPONSE,
            ProtocolError,
        ),
        ("DN that is no text", vec![0x4a, 1, 0xff], tag::DELETE_RESPONSE, ProtocolError),
        (
            "bind version 0",
            vec![0x60, 7, 2, 1, 0, 4, 0, 0x80, 0],
            tag::BIND_RESPONSE,
            ProtocolError,
        ),
        (
            "bind version 4",
            vec![0x60, 7, 2, 1, 4, 4, 0, 0x80, 0],
            tag::BIND_RESPONSE,
            ProtocolError,
        ),
        (
            "bind version 300",
            vec![0x60, 8, 2, 2, 1, 0x2c, 4, 0, 0x80, 0],
            tag::BIND_RESPONSE,
            ProtocolError,
        ),
        (
            "authentication choice",
            vec![0x60, 7, 2, 1, 3, 4, 0, 0x85, 0],
            tag::BIND_RESPONSE,
            AuthMethodNotSupported,
        ),
        (
            "authentication by a string",
            vec![0x60, 7, 2, 1, 3, 4, 0, 4, 0],
            tag::BIND_RESPONSE,
            ProtocolError,
        ),
        (
            "control that is no text",
            vec![0x4a, 0, 0xa0, 5, 0x30, 3, 4, 1, 0xff],
            tag::DELETE_RESPONSE,
            ProtocolError,
        ),
    ])
    .collect();
    for (id, (what, operation, response, code)) in (100..).zip(cases) {
        client.send(&around(id, &operation)).await;
        let answer = client.receive().await;
        let got = (i64::from(answer.id()), answer.message().op.tag(), answer.code());
        assert_eq!(got, (id, response, code), "{what}");
    }
    // An abandon has no answer, not even when nothing can be under way by that id.
    client.send(&around(200, &[0x50, 1, 0xff])).await;
    assert_eq!(client.ask(who_am_i()).await.code(), Success);
}

#[tokio::test]
async fn a_bind_that_is_none_leaves_no_identity() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    let critical = [0x60, 7, 2, 1, 3, 4, 0, 0x80, 0, 0xa0, 12, 0x30, 10, 4, 5]
        .into_iter()
        .chain(*b"1.2.3")
        .chain([1, 1, 0xff])
        .collect();
    for bad in [vec![0x60, 7, 2, 1, 0, 4, 0, 0x80, 0], critical] {
        assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
        assert_ne!(client.ask(who_am_i()).await.value(), Some(Vec::new()));
        client.send(&around(100, &bad)).await;
        assert_ne!(client.receive().await.code(), ResultCode::Success);
        assert_eq!(client.ask(who_am_i()).await.value(), Some(Vec::new()));
    }
}

#[tokio::test]
async fn lengths_that_lie_end_the_session_with_a_notice() {
    let server = plain().await;
    let lies: [&[u8]; 4] = [
        // A base longer than its search, a filter longer than its search, a scope of no octets, a
        // control longer than the controls.
        &[0x63, 2, 4, 9],
        &[0x63, 18, 4, 0, 10, 1, 0, 10, 1, 0, 2, 1, 0, 2, 1, 0, 1, 1, 0, 0xa0],
        &[0x63, 4, 4, 0, 10, 0],
        &[0x4a, 0, 0xa0, 2, 0x30, 9],
    ];
    for operation in lies {
        let mut client = Client::connect(server.address).await;
        client.send(&around(1, operation)).await;
        client.expect_disconnection(ResultCode::ProtocolError).await;
    }
}

#[tokio::test]
async fn requests_may_come_in_any_pieces() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    let mut bytes = encoded(1, who_am_i());
    bytes.extend(encoded(2, compare(BASE, "dc", "example")));
    bytes.extend(encoded(3, who_am_i()));
    for piece in bytes.chunks(1) {
        client.send(piece).await;
        tokio::task::yield_now().await;
    }
    for id in 1..=3 {
        assert_eq!(client.receive().await.id(), id);
    }
}

#[tokio::test]
async fn what_was_asked_before_the_peer_stopped_sending_is_answered() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    client.request_all(vec![who_am_i(), who_am_i()]).await;
    client.finish_sending().await;
    assert_eq!(client.receive().await.id(), 1);
    assert_eq!(client.receive().await.id(), 2);
    assert!(client.receive_or_end().await.is_none());
}

#[tokio::test]
async fn an_unbind_ends_it_without_a_word() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(who_am_i()).await.code(), ResultCode::Success);
    client.request(Op::UnbindRequest).await;
    assert!(client.receive_or_end().await.is_none());
}

#[tokio::test]
async fn the_idle_are_told_to_go() {
    let limits = Limits { idle_before_bind_max: Duration::from_millis(20), ..Limits::default() };
    let server =
        start(Mode::Plain, ConnectionSettings { limits, ..ConnectionSettings::default() }).await;
    let mut client = Client::connect(server.address).await;
    client.expect_disconnection(ResultCode::Unavailable).await;
}
