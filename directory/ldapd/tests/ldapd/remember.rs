//! Binds that repeat a right password.

use crate::client::{Client, bind, extended};
use crate::directory::{PASSWORD, SLOW};
use crate::extended::{PASSWORD_MODIFY, password_modify};
use crate::support::{REMEMBERED, Running, remembering};
use keyway_codec::message::ResultCode::{self, Busy, InvalidCredentials, Success};
use std::sync::atomic::Ordering;

/// The address of a client that has not shown a password.
const STRANGER: [u8; 4] = [127, 0, 0, 2];

/// The code of a bind on a connection of its own.
async fn bind_as(server: &Running, password: &str) -> ResultCode {
    Client::connect(server.address).await.ask(bind(SLOW, password)).await.code()
}

async fn bind_from_afar(server: &Running, password: &str) -> ResultCode {
    Client::connect_from(STRANGER, server.address).await.ask(bind(SLOW, password)).await.code()
}

#[tokio::test]
async fn the_same_right_password_is_derived_once_and_each_wrong_one_every_time() {
    let (server, _) = remembering().await;
    assert_eq!(bind_as(&server, PASSWORD).await, Success);
    assert_eq!(server.gate.derived(), 1);
    let mut client = Client::connect(server.address).await;
    for _ in 0..20 {
        assert_eq!(bind_as(&server, PASSWORD).await, Success);
        assert_eq!(client.ask(bind(SLOW, PASSWORD)).await.code(), Success);
    }
    assert_eq!(server.gate.derived(), 1);
    for number in 1..=4 {
        assert_eq!(bind_as(&server, "wrong").await, InvalidCredentials);
        assert_eq!(server.gate.derived(), 1 + number);
        assert_eq!(bind_as(&server, PASSWORD).await, Success);
    }
    assert_eq!(server.gate.derived(), 5);
}

/// All threads are busy with what others ask for.
#[tokio::test]
async fn an_owner_waits_for_no_other_and_a_stranger_waits_for_its_turn() {
    let (server, _) = remembering().await;
    assert_eq!(bind_as(&server, PASSWORD).await, Success);
    // With no thread taken, a right password from elsewhere is not derived either.
    server.gate.close();
    assert_eq!(bind_from_afar(&server, PASSWORD).await, Success);
    assert_eq!(server.gate.derived(), 1);
    server.gate.arrived().await;
    let mut guesser = Client::connect_from([127, 0, 0, 3], server.address).await;
    guesser.request(bind(SLOW, "wrong")).await;
    server.gate.arrived().await;
    let mut stranger = Client::connect_from([127, 0, 0, 4], server.address).await;
    let waiting = stranger.request(bind(SLOW, PASSWORD)).await;
    assert_eq!(bind_as(&server, PASSWORD).await, Success);
    assert_eq!(bind_from_afar(&server, PASSWORD).await, Success);
    server.gate.open();
    assert_eq!(guesser.receive().await.code(), InvalidCredentials);
    let answer = stranger.receive().await;
    assert_eq!((answer.id(), answer.code()), (waiting, Success));
    assert_eq!(server.gate.derived(), 2);
}

#[tokio::test]
async fn a_password_that_was_changed_is_wrong_at_once() {
    let (server, _) = remembering().await;
    let mut client = Client::connect(server.address).await;
    for _ in 0..2 {
        assert_eq!(client.ask(bind(SLOW, PASSWORD)).await.code(), Success);
    }
    let change = password_modify(None, Some(PASSWORD), Some("another"));
    assert_eq!(client.ask(extended(PASSWORD_MODIFY, Some(&change))).await.code(), Success);
    // The old one was remembered; the new one was made.
    assert_eq!(server.gate.derived(), 2);
    assert_eq!(bind_as(&server, PASSWORD).await, InvalidCredentials);
    assert_eq!(server.gate.derived(), 3);
    for _ in 0..3 {
        assert_eq!(bind_as(&server, "another").await, Success);
        assert_eq!(server.gate.derived(), 4);
    }
    assert_eq!(bind_as(&server, PASSWORD).await, InvalidCredentials);
}

#[tokio::test]
async fn a_password_is_known_for_a_while() {
    let (server, now_s) = remembering().await;
    for derived in 1..=3 {
        assert_eq!(bind_as(&server, PASSWORD).await, Success);
        assert_eq!(server.gate.derived(), derived);
        now_s.fetch_add(REMEMBERED.as_secs() - 1, Ordering::Relaxed);
        // To be asked for makes it no younger.
        assert_eq!(bind_as(&server, PASSWORD).await, Success);
        assert_eq!(server.gate.derived(), derived);
        now_s.fetch_add(1, Ordering::Relaxed);
    }
}

/// A remembered password is no way to guess without the brake, nor faster than at others.
#[tokio::test]
async fn guesses_at_what_is_remembered_are_held_up() {
    let (server, _) = remembering().await;
    assert_eq!(bind_as(&server, PASSWORD).await, Success);
    let guesses = (0..40).map(|_| {
        let address = server.address;
        let guess = async move {
            Client::connect_from(STRANGER, address).await.ask(bind(SLOW, "wrong")).await.code()
        };
        tokio::spawn(guess)
    });
    let mut looked_at = 0;
    for guess in guesses.collect::<Vec<_>>() {
        match guess.await.unwrap() {
            InvalidCredentials => looked_at += 1,
            Busy => {}
            other => panic!("{other:?}"),
        }
    }
    assert!((5..=12).contains(&looked_at), "{looked_at} passwords were looked at");
    assert_eq!(server.gate.derived(), 1 + looked_at);
    // A right password, from there, is not told before its turn.
    let mut late = Client::connect_from(STRANGER, server.address).await;
    late.request(bind(SLOW, PASSWORD)).await;
    assert_eq!(bind_as(&server, PASSWORD).await, Success);
    assert!([Success, Busy].contains(&late.receive().await.code()));
    assert_eq!(server.gate.derived(), 1 + looked_at);
}
