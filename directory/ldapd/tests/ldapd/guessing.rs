//! Guessing at passwords, and what it costs others.

use crate::client::{Client, bind, extended, sasl};
use crate::directory::{FAST, PASSWORD, SLOW};
use crate::extended::{PASSWORD_MODIFY, password_modify};
use crate::support::{Running, plain, remembering};
use keyway_codec::message::{Op, ResultCode};

/// Where the guesses come from.
const STRANGER: [u8; 4] = [127, 0, 0, 2];
/// Guesses that are made at once.
const AT_ONCE: usize = 40;

/// Makes as many attempts at once, and counts those whose password was looked at.
async fn looked_at(server: &Running, op: fn() -> Op<'static>) -> usize {
    let attempts = (0..AT_ONCE).map(|_| {
        let address = server.address;
        tokio::spawn(
            async move { Client::connect_from(STRANGER, address).await.ask(op()).await.code() },
        )
    });
    let attempts: Vec<_> = attempts.collect();
    let mut looked_at = 0;
    for attempt in attempts {
        match attempt.await.unwrap() {
            ResultCode::InvalidCredentials => looked_at += 1,
            ResultCode::Busy => {}
            other => panic!("{other:?}"),
        }
    }
    looked_at
}

/// 2,000 wrong passwords in 0.7 s, once.
#[tokio::test]
async fn a_stranger_guesses_a_few_times_and_the_owner_does_not_notice() {
    let server = plain().await;
    let mut owner = Client::connect(server.address).await;
    assert_eq!(owner.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    let guesses = looked_at(&server, || bind(FAST, "wrong"));
    let owners = async {
        for _ in 0..200 {
            let mut owner = Client::connect(server.address).await;
            assert_eq!(owner.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
        }
    };
    let (looked_at, ()) = tokio::join!(guesses, owners);
    assert!((5..=12).contains(&looked_at), "{looked_at} of {AT_ONCE} passwords were looked at");
}

#[tokio::test]
async fn plain_is_no_way_around() {
    let server = plain().await;
    let looked_at = looked_at(&server, || sasl("PLAIN", Some("\0u: FaSt\0wrong"))).await;
    assert!((5..=12).contains(&looked_at), "{looked_at} of {AT_ONCE} passwords were looked at");
    // A right password is not looked at, either.
    let mut late = Client::connect_from(STRANGER, server.address).await;
    let id = late.request(sasl("PLAIN", Some("\0fast\0secret"))).await;
    let answer = late.receive().await;
    assert_eq!(answer.id(), id);
    assert!([ResultCode::Success, ResultCode::Busy].contains(&answer.code()));
}

#[tokio::test]
async fn the_old_password_of_a_change_is_no_way_around() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    let change = password_modify(None, Some("wrong"), Some("new"));
    let ops = (0..AT_ONCE).map(|_| extended(PASSWORD_MODIFY, Some(&change))).collect();
    client.request_all(ops).await;
    let mut looked_at = 0;
    for _ in 0..AT_ONCE {
        match client.receive().await.code() {
            ResultCode::InvalidCredentials => looked_at += 1,
            ResultCode::Busy => {}
            other => panic!("{other:?}"),
        }
    }
    // His address has shown the right one, so he waits less.
    assert!((5..=36).contains(&looked_at), "{looked_at} of {AT_ONCE} passwords were looked at");
}

/// The cost of a wrong password does not tell whose name it is: one derivation each, whether or not its
/// owner has logged in from there, or exists.
#[tokio::test]
async fn a_wrong_password_costs_the_same_for_every_name() {
    let (server, _) = remembering().await;
    let mut owner = Client::connect(server.address).await;
    for name in [SLOW, FAST] {
        assert_eq!(owner.ask(bind(name, PASSWORD)).await.code(), ResultCode::Success);
        // The second derivation makes a better value in place of the fast one, after the answer.
        server.gate.arrived().await;
    }
    let absent = "uid=absent,dc=example,dc=com";
    let certified = "cn=Ada,o=Certified";
    for _ in 0..3 {
        for name in [SLOW, FAST, absent, certified] {
            let before = server.gate.derived();
            let mut guesser = Client::connect(server.address).await;
            let code = guesser.ask(bind(name, "wrong")).await.code();
            assert_eq!(code, ResultCode::InvalidCredentials, "{name}");
            assert_eq!(server.gate.derived() - before, 1, "{name}");
        }
    }
}

/// Others guess at his name from his own address, each over a connection of its own, more than are answered.
#[tokio::test]
async fn an_owner_logs_in_beside_guessers_at_the_same_address() {
    let (server, _) = remembering().await;
    let mut owner = Client::connect(server.address).await;
    assert_eq!(owner.ask(bind(SLOW, PASSWORD)).await.code(), ResultCode::Success);
    let guesses = (0..AT_ONCE).map(|_| {
        let address = server.address;
        tokio::spawn(async move {
            loop {
                let mut guesser = Client::connect(address).await;
                guesser.ask(bind(SLOW, "wrong")).await;
            }
        })
    });
    let guesses: Vec<_> = guesses.collect();
    for number in 0..15 {
        let mut owner = Client::connect(server.address).await;
        let code = owner.ask(bind(SLOW, PASSWORD)).await.code();
        assert_eq!(code, ResultCode::Success, "{number} of 15");
    }
    guesses.iter().for_each(tokio::task::JoinHandle::abort);
}
