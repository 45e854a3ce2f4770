//! Many requests at once, peers that do not read, and the end.

use crate::client::{Client, bind, compare, extended, search, who_am_i};
use crate::directory::{BASE, BIG_ENTRIES, FAST, PASSWORD, SLOW};
use crate::extended::PASSWORD_MODIFY;
use crate::support::{Running, plain, start, start_gated};
use keyway_codec::message::{
    Attribute, Change, ChangeOperation, ModifyRequest, Op, ResultCode, Scope, tag,
};
use keyway_ldapd::{ConnectionSettings, Limits, Mode};
use std::future::ready;
use std::sync::Arc;

async fn bound(server: &Running) -> Client {
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    client
}

fn everything() -> Op<'static> {
    search(BASE, Scope::Subtree)
}

#[tokio::test]
async fn answers_overtake_slow_ones() {
    let server = start_gated(Mode::Plain, ConnectionSettings::default(), false).await;
    let mut client = bound(&server).await;
    let slow = extended(PASSWORD_MODIFY, None);
    let first = client.request_all(vec![slow, who_am_i(), compare(BASE, "dc", "example")]).await;
    assert_eq!(client.receive().await.id(), first + 1);
    assert_eq!(client.receive().await.id(), first + 2);
    server.gate.open();
    assert_eq!(client.receive().await.id(), first);
}

#[tokio::test]
async fn a_bind_waits_for_what_came_before_and_all_else_waits_for_it() {
    let server = start_gated(Mode::Plain, ConnectionSettings::default(), false).await;
    let mut client = bound(&server).await;
    let slow = extended(PASSWORD_MODIFY, None);
    let ops = vec![slow, bind(SLOW, PASSWORD), who_am_i(), who_am_i()];
    let first = client.request_all(ops).await;
    server.gate.arrived().await;
    server.gate.open();
    for id in first..first + 2 {
        let answer = client.receive().await;
        assert_eq!((answer.id(), answer.code()), (id, ResultCode::Success));
    }
    for id in first + 2..first + 4 {
        let answer = client.receive().await;
        assert_eq!(answer.id(), id);
        assert_eq!(answer.value().unwrap(), format!("dn:{SLOW}").into_bytes());
    }
}

#[tokio::test]
async fn a_message_id_cannot_be_used_twice_at_once() {
    let server = start_gated(Mode::Plain, ConnectionSettings::default(), false).await;
    let mut client = bound(&server).await;
    let id = client.request(extended(PASSWORD_MODIFY, None)).await;
    server.gate.arrived().await;
    let mut bytes = Vec::new();
    keyway_codec::Message::new(id, compare(BASE, "dc", "example")).encode(&mut bytes);
    client.send(&bytes).await;
    let answer = client.receive().await;
    assert_eq!(answer.message().op.tag(), tag::COMPARE_RESPONSE);
    assert_eq!(answer.code(), ResultCode::ProtocolError);
    server.gate.open();
    assert_eq!(client.receive().await.message().op.tag(), tag::EXTENDED_RESPONSE);
}

#[tokio::test]
async fn an_abandoned_request_is_not_answered() {
    let server = start_gated(Mode::Plain, ConnectionSettings::default(), false).await;
    let mut client = bound(&server).await;
    let change = || extended(PASSWORD_MODIFY, None);
    let slow = client.request(change()).await;
    server.gate.arrived().await;
    client.request(Op::AbandonRequest(slow)).await;
    assert_eq!(client.ask(who_am_i()).await.code(), ResultCode::Success);
    // A second one, which the one slow thread finishes after the first.
    let next = client.request(change()).await;
    server.gate.open();
    assert_eq!(client.receive().await.id(), next);
    let last = client.request(who_am_i()).await;
    assert_eq!(client.receive().await.id(), last);
}

/// The id is free again (RFC 4511 § 4.1.1.1), and the answer is that of its second user.
#[tokio::test]
async fn the_message_id_of_an_abandoned_request_can_be_used_again() {
    let server = start_gated(Mode::Plain, ConnectionSettings::default(), false).await;
    let mut client = bound(&server).await;
    let id = client.request(extended(PASSWORD_MODIFY, None)).await;
    server.gate.arrived().await;
    client.request(Op::AbandonRequest(id)).await;
    assert_eq!(client.ask(who_am_i()).await.code(), ResultCode::Success);
    // The one slow thread hashes this password after the first.
    let change = Change {
        operation: ChangeOperation::Replace,
        attribute: Attribute {
            description: "userPassword".into(),
            values: vec![PASSWORD.as_bytes().into()],
        },
    };
    let mut bytes = Vec::new();
    let modify = Op::ModifyRequest(ModifyRequest { dn: FAST, changes: vec![change] });
    keyway_codec::Message::new(id, modify).encode(&mut bytes);
    client.send(&bytes).await;
    server.gate.open();
    let answer = client.receive().await;
    assert_eq!((answer.id(), answer.message().op.tag()), (id, tag::MODIFY_RESPONSE));
}

#[tokio::test]
async fn a_bind_cannot_be_abandoned() {
    let server = start_gated(Mode::Plain, ConnectionSettings::default(), false).await;
    let mut client = Client::connect(server.address).await;
    let slow = client.request(bind(SLOW, PASSWORD)).await;
    server.gate.arrived().await;
    client.request(Op::AbandonRequest(slow)).await;
    server.gate.open();
    assert_eq!(client.receive().await.code(), ResultCode::Success);
}

/// Enough searches that their answers cannot all be on their way.
const FLOOD: usize = 30;

#[tokio::test]
async fn searches_take_turns_and_all_their_answers_arrive() {
    let server = plain().await;
    let mut client = bound(&server).await;
    let first = client.request_all((0..FLOOD).map(|_| everything()).collect()).await;
    let mut entries = vec![0; FLOOD];
    let mut done = 0;
    while done < FLOOD {
        let answer = client.receive().await;
        let index = (answer.id() - first) as usize;
        if answer.is_entry() {
            entries[index] += 1;
        } else {
            assert_eq!(answer.code(), ResultCode::Success);
            assert!(entries[index] >= BIG_ENTRIES);
            done += 1;
        }
    }
    assert!(entries.iter().all(|count| *count == entries[0]));
}

/// A peer that has asked for far more than it reads.
async fn slow_reader(server: &Running) -> Client {
    let mut client = Client::connect_with_small_buffer(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    client.request_all((0..FLOOD).map(|_| everything()).collect()).await;
    client
}

#[tokio::test]
async fn peers_that_do_not_read_stop_no_other_peer() {
    let server = plain().await;
    let mut slow_readers = Vec::new();
    for _ in 0..8 {
        slow_readers.push(slow_reader(&server).await);
    }
    let mut client = Client::connect(server.address).await;
    for _ in 0..20 {
        assert_eq!(client.ask(bind(SLOW, PASSWORD)).await.code(), ResultCode::Success);
        let id = client.request(search(BASE, Scope::Base)).await;
        assert!(client.receive().await.is_entry());
        assert_eq!(client.receive().await.id(), id);
    }
    // And when they read again, they get the rest.
    for client in &mut slow_readers {
        let mut done = 0;
        while done < FLOOD {
            done += usize::from(!client.receive().await.is_entry());
        }
    }
}

/// An answer at once is no search that waits for its turn: a client that asked for millions of them and read none
/// made the server hold gigabytes, once.
#[tokio::test]
async fn refusals_that_are_not_read_are_not_held_without_end() {
    let limits = Limits { unread_answer_bytes_max: 4 << 10, ..Limits::default() };
    let server =
        start(Mode::Plain, ConnectionSettings { limits, ..ConnectionSettings::default() }).await;
    let nowhere = format!("cn={},dc=nowhere", "x".repeat(1_000));
    // Ids of one length, and more bytes than the sockets hold.
    let ids = 1_000..31_000;
    let mut bytes = Vec::new();
    for id in ids.clone() {
        keyway_codec::Message::new(id, search(&nowhere, Scope::Base)).encode(&mut bytes);
    }
    let each = bytes.len() / ids.len();
    let mut client = Client::connect_with_small_buffer(server.address).await;
    let sent = client.send_while_there_is_room(&bytes).await;
    assert!(sent < bytes.len(), "all of {sent} bytes were taken");
    for id in ids.take(sent / each) {
        let answer = client.receive().await;
        assert_eq!((answer.id(), answer.is_entry()), (id, false));
    }
}

#[tokio::test]
async fn abandon_and_unbind_reach_searches_whose_answers_are_not_read() {
    let server = plain().await;
    let mut client = slow_reader(&server).await;
    let first = 2;
    let abandons = (first..first + FLOOD as u32).map(Op::AbandonRequest);
    client.request_all(abandons.collect()).await;
    let id = client.request(who_am_i()).await;
    let mut entries = 0;
    loop {
        let answer = client.receive().await;
        if answer.id() == id {
            break;
        }
        entries += usize::from(answer.is_entry());
    }
    // The entries of the abandoned searches did not all come.
    assert!(entries < FLOOD * BIG_ENTRIES, "{entries}");

    let mut client = slow_reader(&server).await;
    client.request(Op::UnbindRequest).await;
    while client.receive_or_end().await.is_some() {}
}

#[tokio::test]
async fn a_cancelled_search_says_so() {
    let server = plain().await;
    let mut client = slow_reader(&server).await;
    let target = 1 + FLOOD as u32;
    let mut value = Vec::new();
    keyway_codec::extended::CancelRequest { id: target }.encode(&mut value);
    let id = client.request(extended("1.3.6.1.1.8", Some(&value))).await;
    let mut canceled = false;
    loop {
        let answer = client.receive().await;
        if answer.is_entry() {
            continue;
        }
        if answer.id() == id {
            break;
        }
        canceled |= answer.id() == target && answer.code() == ResultCode::Canceled;
    }
    assert!(canceled);
}

#[tokio::test]
async fn requests_beyond_the_limit_in_flight_wait_and_are_answered() {
    let limits = Limits { requests_in_flight_max: 2, ..Limits::default() };
    let settings = ConnectionSettings { limits, ..ConnectionSettings::default() };
    let server = start(Mode::Plain, settings).await;
    let mut client = bound(&server).await;
    client.request_all((0..10).map(|_| everything()).collect()).await;
    let last = client.request(who_am_i()).await;
    let mut done = 0;
    while done < 11 {
        done += usize::from(!client.receive().await.is_entry());
    }
    assert!(last > 10);
}

#[tokio::test]
async fn long_requests_wait_for_each_other() {
    let limits = Limits { message_bytes_max: 1_500, ..Limits::default() };
    let settings = ConnectionSettings { limits, ..ConnectionSettings::default() };
    let server = start_gated(Mode::Plain, settings, false).await;
    let mut client = bound(&server).await;
    let password = "x".repeat(900);
    let change = || {
        let values = vec![password.as_bytes().into()];
        let attribute = Attribute { description: "userPassword".into(), values };
        let change = Change { operation: ChangeOperation::Replace, attribute };
        Op::ModifyRequest(ModifyRequest { dn: FAST, changes: vec![change] })
    };
    let first = client.request_all(vec![change(), change(), who_am_i()]).await;
    server.gate.arrived().await;
    server.gate.open();
    // Had the second been taken, the third would have overtaken them both.
    let answer = client.receive().await;
    assert_eq!((answer.id(), answer.code()), (first, ResultCode::Success));
    assert_eq!(client.receive().await.id(), first + 2);
    assert_eq!(client.receive().await.id(), first + 1);
}

#[tokio::test]
async fn a_shutdown_answers_what_it_accepted_and_says_goodbye() {
    let server = start_gated(Mode::Plain, ConnectionSettings::default(), false).await;
    let mut idle = bound(&server).await;
    let mut new = Client::connect(server.address).await;
    assert_eq!(new.ask(who_am_i()).await.code(), ResultCode::Success);
    let mut client = bound(&server).await;
    let change = client.request_all(vec![extended(PASSWORD_MODIFY, None), who_am_i()]).await;
    // The request that came behind it is answered, so it has been taken.
    assert_eq!(client.receive().await.id(), change + 1);
    let shutdown = tokio::spawn(server.server.shutdown(ready(())));
    idle.expect_disconnection(ResultCode::Unavailable).await;
    // One that has just come may have come for a login.
    assert_eq!(new.ask(who_am_i()).await.code(), ResultCode::Success);
    assert_eq!(new.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    assert_eq!(new.ask(compare(BASE, "dc", "example")).await.code(), ResultCode::CompareTrue);
    new.expect_disconnection(ResultCode::Unavailable).await;
    server.gate.open();
    let answer = client.receive().await;
    assert_eq!((answer.id(), answer.code()), (change, ResultCode::Success));
    client.expect_disconnection(ResultCode::Unavailable).await;
    shutdown.await.unwrap();
}

/// The head of an add request of so many bytes, and a part of what follows.
fn part_of_a_request(bytes: u32, sent: usize) -> Vec<u8> {
    let mut head = vec![0x30, 0x84];
    head.extend(bytes.to_be_bytes());
    head.extend([0x02, 0x01, 0x07, 0x68, 0x84]);
    head.extend((bytes - 9).to_be_bytes());
    head.resize(sent, b'x');
    head
}

/// 60 users made the server hold 500 MB, once.
#[tokio::test]
async fn all_unfinished_requests_together_are_bounded_and_small_ones_go_on() {
    let limits =
        Limits { message_bytes_max: 512 << 10, unfinished_bytes_max: 1 << 20, ..Limits::default() };
    let server =
        start(Mode::Plain, ConnectionSettings { limits, ..ConnectionSettings::default() }).await;
    let request = Arc::new(part_of_a_request(400 << 10, 300 << 10));
    let (sender, mut refused) = tokio::sync::mpsc::unbounded_channel();
    let mut holding = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (mut client, request, sender) = (bound(&server).await, request.clone(), sender.clone());
        holding.spawn(async move {
            client.try_send(&request).await;
            client.expect_disconnection(ResultCode::Busy).await;
            sender.send(()).unwrap();
        });
    }
    // There is room for two of the six.
    for _ in 0..4 {
        refused.recv().await.unwrap();
    }
    // Who has not bound finds less, and what is small finds room.
    let mut stranger = Client::connect(server.address).await;
    stranger.try_send(&part_of_a_request(60 << 10, 5 << 10)).await;
    stranger.expect_disconnection(ResultCode::Busy).await;
    let mut client = bound(&server).await;
    assert_eq!(client.ask(compare(BASE, "dc", "example")).await.code(), ResultCode::CompareTrue);
    // Memory that is given up is free for others, soon.
    holding.shutdown().await;
    for _ in 0..10_000 {
        let mut client = bound(&server).await;
        client.try_send(&part_of_a_request(400 << 10, 6 + (400 << 10))).await;
        match client.receive().await.code() {
            ResultCode::Busy => {}
            // It was taken, and is no add request.
            code => return assert_eq!(code, ResultCode::ProtocolError),
        }
    }
    panic!("what was given up is not free");
}
