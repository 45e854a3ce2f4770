//! Extended operations and controls.

use crate::client::{Client, bind, compare, extended, search, who_am_i};
use crate::directory::{BASE, FAST, PASSWORD, SLOW};
use crate::support::{plain, start_gated};
use keyway_codec::extended::{CancelRequest, PasswordModifyRequest, PasswordModifyResponse};
use keyway_codec::message::{Control, Op, ResultCode, Scope};
use keyway_ldapd::{ConnectionSettings, Mode};

pub const PASSWORD_MODIFY: &str = "1.3.6.1.4.1.4203.1.11.1";
const CANCEL: &str = "1.3.6.1.1.8";
const START_TLS: &str = "1.3.6.1.4.1.1466.20037";

pub fn password_modify(user: Option<&str>, old: Option<&str>, new: Option<&str>) -> Vec<u8> {
    let (old, new) = (old.map(str::as_bytes), new.map(str::as_bytes));
    let mut value = Vec::new();
    PasswordModifyRequest { user, old, new }.encode(&mut value);
    value
}

fn cancel(id: u32) -> Vec<u8> {
    let mut value = Vec::new();
    CancelRequest { id }.encode(&mut value);
    value
}

#[tokio::test]
async fn ones_own_password_is_changed_with_the_old_one() {
    use ResultCode::*;
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    let change = |old, new| password_modify(None, old, new);
    let value = change(Some(PASSWORD), Some("new"));
    assert_eq!(
        client.ask(extended(PASSWORD_MODIFY, Some(&value))).await.code(),
        StrongerAuthRequired
    );
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), Success);
    let wrong = change(Some("wrong"), Some("new"));
    assert_eq!(
        client.ask(extended(PASSWORD_MODIFY, Some(&wrong))).await.code(),
        InvalidCredentials
    );
    let empty = change(None, Some(""));
    assert_eq!(
        client.ask(extended(PASSWORD_MODIFY, Some(&empty))).await.code(),
        ConstraintViolation
    );
    assert_eq!(client.ask(extended(PASSWORD_MODIFY, Some(b"x"))).await.code(), ProtocolError);
    let answer = client.ask(extended(PASSWORD_MODIFY, Some(&value))).await;
    assert_eq!((answer.code(), answer.value()), (Success, None));
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), InvalidCredentials);
    assert_eq!(client.ask(bind(FAST, "new")).await.code(), Success);
}

#[tokio::test]
async fn a_password_is_made_for_who_gives_none() {
    use ResultCode::*;
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(SLOW, PASSWORD)).await.code(), Success);
    let answer = client.ask(extended(PASSWORD_MODIFY, None)).await;
    assert_eq!(answer.code(), Success);
    let value = answer.value().unwrap();
    let generated = PasswordModifyResponse::decode(&value).unwrap().generated.unwrap();
    let generated = std::str::from_utf8(generated).unwrap();
    assert_eq!(client.ask(bind(SLOW, PASSWORD)).await.code(), InvalidCredentials);
    assert_eq!(client.ask(bind(SLOW, generated)).await.code(), Success);
}

/// A client that sends these meant something else than a password that it does not know.
#[tokio::test]
async fn a_request_value_that_sets_nothing_changes_nothing() {
    use ResultCode::*;
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(SLOW, PASSWORD)).await.code(), Success);
    // Empty; a component that there is none of; lengths that lie; a password that is no element.
    let values: [&[u8]; 7] = [
        &[0x30, 0],
        &[0x30, 2, 0x85, 0],
        &[0x30, 2, 0x82, 9],
        &[0x30, 0x84, 0, 0, 0, 9, 0x82, 1, b'x'],
        &[0x30, 4, 0xa2, 2, 4, 0],
        &[0x30, 0, 0x82, 1, b'x'],
        &[],
    ];
    for value in values {
        let answer = client.ask(extended(PASSWORD_MODIFY, Some(value))).await;
        assert_eq!((answer.code(), answer.value()), (ProtocolError, None), "{value:x?}");
    }
    assert_eq!(client.ask(bind(SLOW, PASSWORD)).await.code(), Success);
}

#[tokio::test]
async fn what_looks_like_a_hash_is_no_new_password() {
    use ResultCode::*;
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), Success);
    let strange = "{SHA}0goJVFx6/xSk9ZbduhkpbVj2wQE=";
    let value = password_modify(None, None, Some(strange));
    let answer = client.ask(extended(PASSWORD_MODIFY, Some(&value))).await;
    assert_eq!(answer.code(), ConstraintViolation);
    assert_eq!(client.ask(bind(FAST, strange)).await.code(), InvalidCredentials);
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), Success);
}

#[tokio::test]
async fn the_passwords_of_others_are_out_of_reach() {
    use ResultCode::*;
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), Success);
    for user in [SLOW, "u:slow", "dn:uid=slow,dc=example,dc=com"] {
        // The right old password and a wrong one look the same.
        for old in [PASSWORD, "wrong"] {
            let value = password_modify(Some(user), Some(old), Some("new"));
            let answer = client.ask(extended(PASSWORD_MODIFY, Some(&value))).await;
            assert_eq!(answer.code(), InsufficientAccessRights);
        }
    }
    assert_eq!(client.ask(bind(SLOW, PASSWORD)).await.code(), Success);
}

#[tokio::test]
async fn unknown_operations_and_values_where_none_belong_are_protocol_errors() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    for op in [
        extended("1.2.3.4", None),
        extended("1.3.6.1.4.1.4203.1.11.3", Some(b"")),
        extended(START_TLS, Some(b"x")),
        // Nothing to upgrade to on this listener.
        extended(START_TLS, None),
        extended(CANCEL, None),
        extended(CANCEL, Some(b"x")),
    ] {
        assert_eq!(client.ask(op).await.code(), ResultCode::ProtocolError);
    }
}

#[tokio::test]
async fn cancel_says_what_it_found() {
    use ResultCode::*;
    let server = start_gated(Mode::Plain, ConnectionSettings::default(), false).await;
    let mut client = Client::connect(server.address).await;
    let nothing = cancel(77);
    assert_eq!(client.ask(extended(CANCEL, Some(&nothing))).await.code(), NoSuchOperation);
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), Success);
    let change = client.request(extended(PASSWORD_MODIFY, None)).await;
    server.gate.arrived().await;
    let change_value = cancel(change);
    assert_eq!(client.ask(extended(CANCEL, Some(&change_value))).await.code(), TooLate);
    server.gate.open();
    assert_eq!(client.receive().await.id(), change);
}

#[tokio::test]
async fn critical_controls_that_do_not_apply_are_refused() {
    use ResultCode::*;
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    let control = |oid, critical| vec![Control { oid, critical, value: None }];
    let paged = "1.2.840.113556.1.4.319";
    let unknown = "1.2.3.4";
    for (op, oid) in [
        (bind(FAST, PASSWORD), unknown),
        (bind(FAST, PASSWORD), paged),
        (compare(BASE, "dc", "example"), paged),
        (search(BASE, Scope::Base), unknown),
        (who_am_i(), unknown),
    ] {
        let answer = client.ask_with(op, control(oid, true)).await;
        assert_eq!(answer.code(), UnavailableCriticalExtension);
    }
    // The refused binds did nothing, and what is not critical does not matter.
    assert_eq!(client.ask(who_am_i()).await.value(), Some(Vec::new()));
    let answer = client.ask_with(bind(FAST, PASSWORD), control(unknown, false)).await;
    assert_eq!(answer.code(), Success);
    // An abandon that must not be carried out is not answered either.
    let abandon = client.request(Op::AbandonRequest(1)).await;
    assert_eq!(client.ask(who_am_i()).await.id(), abandon + 1);
}
