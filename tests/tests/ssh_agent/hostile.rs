//! Clients by hand, honest and hostile.

use crate::{Agent, PATIENCE, generate};
use keyway_tests::ALL_CALLERS;
use keyway_tests::cryptod::Cryptod;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

const LIST: &[u8] = b"\0\0\0\x01\x0b";
const FAILURE: &[u8] = b"\0\0\0\x01\x05";

fn start() -> (Cryptod, Agent) {
    let cryptod = Cryptod::start(&[]);
    generate(&cryptod, "ed", &["ed25519"], ALL_CALLERS);
    let agent = Agent::start(&cryptod, &[]);
    (cryptod, agent)
}

/// The next answer, with its length; empty if the agent has closed the connection.
fn answer(stream: &mut UnixStream) -> Vec<u8> {
    let mut length = [0; 4];
    if stream.read_exact(&mut length).is_err() {
        return Vec::new();
    }
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut message).unwrap();
    [&length[..], &message].concat()
}

fn ask(stream: &mut UnixStream, message: &[u8]) -> Vec<u8> {
    // It may have closed the connection already.
    let _ = stream.write_all(message);
    answer(stream)
}

/// Whether it signs a text with this key.
pub fn signs(stream: &mut UnixStream, blob: &[u8]) -> bool {
    let string = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    let request = [&[13][..], &string(blob), &string(b"text"), &[0; 4]].concat();
    let answer = ask(stream, &string(&request));
    assert!(answer == FAILURE || answer[4] == 14, "{answer:?}");
    answer != FAILURE
}

fn lists(stream: &mut UnixStream) {
    let answer = ask(stream, LIST);
    assert_eq!(answer.get(4..9), Some(&b"\x0c\0\0\0\x01"[..]), "{answer:?}");
}

#[test]
fn messages_are_answered_in_order() {
    let (_cryptod, agent) = start();
    let mut client = agent.connect();
    lists(&mut client);
    let query = b"\0\0\0\x0a\x1b\0\0\0\x05query";
    assert_eq!(ask(&mut client, query), b"\0\0\0\x13\x1d\0\0\0\x05query\0\0\0\x05query");
    let bind = b"\0\0\0\x1d\x1b\0\0\0\x18session-bind@openssh.com";
    assert_eq!(ask(&mut client, bind), FAILURE);
    for number in [1, 17, 18, 19, 20, 21, 22, 23, 25, 26, 99, 255] {
        assert_eq!(ask(&mut client, &[0, 0, 0, 1, number]), FAILURE, "{number}");
    }
    // Several that were sent together, and one in pieces.
    client.write_all(&[LIST, query, LIST].concat()).unwrap();
    let kinds: Vec<_> = (0..3).map(|_| answer(&mut client)[4]).collect();
    assert_eq!(kinds, [12, 29, 12]);
    for byte in LIST {
        client.write_all(&[*byte]).unwrap();
    }
    assert_eq!(answer(&mut client)[4], 12);
}

#[test]
fn a_client_that_sends_garbage_loses_its_connection_and_nothing_else() {
    let (_cryptod, agent) = start();
    let mut honest = agent.connect();
    for garbage in [
        &b"\0\0\0\0"[..],                  // no message
        b"\xff\xff\xff\xff",               // one of 4 GiB
        b"\0\x04\0\x01",                   // one byte too long
        b"\0\0\0\x02\x0b\0",               // bytes left over
        b"\0\0\0\x05\x0d\xff\xff\xff\xff", // a string that is longer than its message
        b"\0\0\0\x01\x1b",                 // an extension without a name
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let mut hostile = agent.connect();
        assert_eq!(ask(&mut hostile, garbage), b"", "{garbage:?}");
        lists(&mut honest);
    }
    // The longest message that there may be.
    let mut long = vec![99; 4 + (256 << 10)];
    long[..4].copy_from_slice(b"\0\x04\0\0");
    assert_eq!(ask(&mut honest, &long), FAILURE);
}

/// Connections that say nothing, or half of something, as many as there may be.
#[test]
fn connections_are_bounded() {
    let (_cryptod, agent) = start();
    let mut clients: Vec<_> = (0..256).map(|_| agent.connect()).collect();
    clients.iter_mut().for_each(lists);
    // The one that has been idle for the longest time gives way.
    let mut next = agent.connect();
    next.set_read_timeout(Some(PATIENCE)).unwrap();
    lists(&mut next);
    assert_eq!(ask(&mut clients[0], LIST), b"");
    lists(clients.last_mut().unwrap());
}
