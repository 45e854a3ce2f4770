//! Oversized and malformed messages, and slow readers: the right answer, and the server stays up
//! for other clients.

use keyway_codec::message::{Message, Op, ResultCode};
use keyway_tests::client::Client;
use keyway_tests::{Server, sample};

const NOTICE_OF_DISCONNECTION: &str = "1.3.6.1.4.1.1466.20036";

fn connect(server: &Server) -> Client {
    Client::connect(server.address().parse().unwrap()).unwrap()
}

/// Sends the bytes and returns the code of the Notice of Disconnection that must answer.
fn disconnected(server: &Server, bytes: &[u8]) -> ResultCode {
    let mut client = connect(server);
    client.send_raw(bytes).unwrap();
    let answer = client.read_to_end().unwrap();
    let message = Message::decode(&answer).expect("one message");
    assert_eq!(message.id, 0);
    match message.op {
        Op::ExtendedResponse(response) => {
            assert_eq!(response.oid.as_deref(), Some(NOTICE_OF_DISCONNECTION));
            response.result.code
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_message_ends_the_session_with_a_notice() {
    let (_folder, mut server) = sample(1);
    let cases: &[(&str, &[u8])] = &[
        ("HTTP", b"GET / HTTP/1.1\r\n\r\n"),
        ("indefinite length", &[0x30, 0x80, 0x02, 0x01, 0x01, 0x42, 0x00, 0x00, 0x00]),
        ("an unknown operation", &[0x30, 0x05, 0x02, 0x01, 0x01, 0x7f, 0x00]),
        ("message id 0", &[0x30, 0x05, 0x02, 0x01, 0x00, 0x42, 0x00]),
        ("a negative message id", &[0x30, 0x05, 0x02, 0x01, 0xff, 0x42, 0x00]),
        ("no operation", &[0x30, 0x03, 0x02, 0x01, 0x01]),
        ("four gigabytes", &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0x02, 0x01]),
    ];
    for (what, bytes) in cases {
        assert_eq!(disconnected(&server, bytes), ResultCode::ProtocolError, "{what}");
    }
    assert!(server.is_up());
    let mut client = connect(&server);
    client.bind(server.administrator(), &server.password()).unwrap();
}

#[test]
fn random_bytes_and_half_messages_leave_the_server_up() {
    let (_folder, mut server) = sample(1);
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for round in 0..200usize {
        let mut client = connect(&server);
        let bytes: Vec<u8> = (0..round % 97 + 1)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        // It may have been closed already.
        let _ = client.send_raw(&bytes);
        let _ = client.send_raw(&[0x30, 0x20, 0x02, 0x01]);
    }
    assert!(server.is_up());
    let mut client = connect(&server);
    client.bind(server.administrator(), &server.password()).unwrap();
    assert_eq!(client.search("dc=example,dc=com", "objectClass", "domain").unwrap(), 1);
}

#[test]
fn clients_that_never_read_do_not_stop_the_others() {
    let (_folder, mut server) = sample(300);
    let password = server.password();
    let mut slow_readers = Vec::new();
    for _ in 0..20 {
        let mut client = connect(&server);
        client.bind(server.administrator(), &password).unwrap();
        for _ in 0..100 {
            client.send_search("dc=example,dc=com", "objectClass", "person").unwrap();
        }
        slow_readers.push(client);
    }
    let mut client = connect(&server);
    client.bind(server.administrator(), &password).unwrap();
    for _ in 0..50 {
        assert_eq!(client.search("dc=example,dc=com", "objectClass", "person").unwrap(), 300);
    }
    assert!(server.is_up());
}
