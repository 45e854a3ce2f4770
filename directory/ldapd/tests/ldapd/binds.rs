//! Who may say who he is, and how.

use crate::client::{Client, bind, sasl, who_am_i};
use crate::directory::{BASE, FAST, PASSWORD, SLOW};
use crate::support::{Running, plain, start, start_gated};
use keyway_codec::message::{Authentication, BindRequest, Op, ResultCode};
use keyway_ldapd::{ConnectionSettings, Limits, Mode};

/// How many checks may wait in a test of what happens beyond that.
const WAITING: usize = 1;

async fn identity(client: &mut Client) -> String {
    String::from_utf8(client.ask(who_am_i()).await.value().unwrap()).unwrap()
}

/// The code of a bind on a connection of its own.
async fn code(server: &Running, op: Op<'_>) -> ResultCode {
    Client::connect(server.address).await.ask(op).await.code()
}

#[tokio::test]
async fn a_bind_sets_the_identity_and_a_failed_one_clears_it() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(identity(&mut client).await, "");
    for name in [FAST, SLOW] {
        assert_eq!(client.ask(bind(name, PASSWORD)).await.code(), ResultCode::Success);
        assert_eq!(identity(&mut client).await, format!("dn:{name}"));
        assert_eq!(client.ask(bind(name, "wrong")).await.code(), ResultCode::InvalidCredentials);
        assert_eq!(identity(&mut client).await, "");
    }
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    assert_eq!(client.ask(bind("", "")).await.code(), ResultCode::Success);
    assert_eq!(identity(&mut client).await, "");
}

#[tokio::test]
async fn a_bind_goes_by_the_settings_as_they_are_on_an_open_connection_too() {
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    let trusting = |trust_loopback| {
        let settings = ConnectionSettings { trust_loopback, ..ConnectionSettings::default() };
        server.server.reconfigure(settings);
    };
    trusting(false);
    let refused = client.ask(bind(FAST, PASSWORD)).await.code();
    assert_eq!(refused, ResultCode::ConfidentialityRequired);
    trusting(true);
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
}

#[tokio::test]
async fn what_is_no_proof_is_refused() {
    use ResultCode::*;
    let server = plain().await;
    // RFC 4513 § 5.1.2: the unauthenticated bind.
    assert_eq!(code(&server, bind(FAST, "")).await, UnwillingToPerform);
    assert_eq!(code(&server, bind("", PASSWORD)).await, InvalidCredentials);
    let absent = format!("uid=absent,{BASE}");
    assert_eq!(code(&server, bind(&absent, PASSWORD)).await, InvalidCredentials);
    assert_eq!(code(&server, bind(BASE, PASSWORD)).await, InvalidCredentials);
    assert_eq!(code(&server, bind(FAST, "secret\0")).await, InvalidCredentials);
    assert_eq!(code(&server, bind(FAST, &"x".repeat(2000))).await, InvalidCredentials);
}

#[tokio::test]
async fn other_versions_and_methods_are_refused() {
    use ResultCode::*;
    let server = plain().await;
    let old = |version, authentication| BindRequest { version, name: FAST, authentication };
    let simple = Authentication::Simple(PASSWORD.as_bytes());
    assert_eq!(code(&server, Op::BindRequest(old(2, simple.clone()))).await, ProtocolError);
    let kerberos = Authentication::Other(0x81);
    assert_eq!(code(&server, Op::BindRequest(old(3, kerberos))).await, AuthMethodNotSupported);
    assert_eq!(code(&server, sasl("CRAM-MD5", None)).await, AuthMethodNotSupported);
    assert_eq!(code(&server, sasl("", None)).await, AuthMethodNotSupported);
    assert_eq!(code(&server, sasl("EXTERNAL", None)).await, InappropriateAuthentication);
}

#[tokio::test]
async fn plain_takes_a_dn_or_a_uid() {
    use ResultCode::*;
    let server = plain().await;
    let cases = [
        (format!("\0{FAST}\0{PASSWORD}"), Success),
        (format!("\0dn:{FAST}\0{PASSWORD}"), Success),
        (format!("\0u:fast\0{PASSWORD}"), Success),
        (format!("\0fast\0{PASSWORD}"), Success),
        (format!("dn:{FAST}\0fast\0{PASSWORD}"), Success),
        (format!("u:fast\0{FAST}\0{PASSWORD}"), Success),
        (format!("dn:{SLOW}\0fast\0{PASSWORD}"), InvalidCredentials),
        (format!("\0absent\0{PASSWORD}"), InvalidCredentials),
        ("\0fast\0wrong".into(), InvalidCredentials),
        ("\0fast\0".into(), ProtocolError),
        ("\0fast".into(), ProtocolError),
        (format!("\0fast\0{PASSWORD}\0"), ProtocolError),
        ("".into(), ProtocolError),
    ];
    for (credentials, expected) in cases {
        let op = sasl("PLAIN", Some(&credentials));
        assert_eq!(code(&server, op).await, expected, "{credentials:?}");
    }
    assert_eq!(code(&server, sasl("PLAIN", None)).await, ProtocolError);
}

#[tokio::test]
async fn passwords_need_privacy_where_loopback_is_not_trusted() {
    use ResultCode::*;
    let settings = ConnectionSettings { trust_loopback: false, ..ConnectionSettings::default() };
    let server = start(Mode::Plain, settings.clone()).await;
    let modify = crate::extended::password_modify(None, None, Some("new"));
    for op in [
        bind(FAST, PASSWORD),
        bind(FAST, "wrong"),
        bind("uid=absent", "x"),
        sasl("PLAIN", Some("\0fast\0secret")),
        crate::client::extended(crate::extended::PASSWORD_MODIFY, Some(&modify)),
    ] {
        assert_eq!(code(&server, op).await, ConfidentialityRequired);
    }
    assert_eq!(code(&server, bind("", "")).await, Success);
    let allowed = ConnectionSettings { allow_plain_password: true, ..settings };
    let server = start(Mode::Plain, allowed).await;
    assert_eq!(code(&server, bind(FAST, PASSWORD)).await, Success);
}

#[tokio::test]
async fn a_full_line_is_busy_and_fast_binds_go_on() {
    let limits = Limits { password_checks_waiting_max: WAITING, ..Limits::default() };
    let settings = ConnectionSettings { limits, ..ConnectionSettings::default() };
    let server = start_gated(Mode::Plain, settings, false).await;
    let (sender, mut codes) = tokio::sync::mpsc::unbounded_channel();
    let slow_bind = || {
        let (address, sender) = (server.address, sender.clone());
        tokio::spawn(async move {
            let answer = Client::connect(address).await.ask(bind(SLOW, PASSWORD)).await;
            sender.send(answer.code()).unwrap();
        })
    };
    slow_bind();
    // One is being worked on; as many as may wait do; the others are turned away.
    server.gate.arrived().await;
    for _ in 0..WAITING + 3 {
        slow_bind();
    }
    for _ in 0..3 {
        assert_eq!(codes.recv().await, Some(ResultCode::Busy));
    }
    assert_eq!(code(&server, bind(FAST, PASSWORD)).await, ResultCode::Success);
    server.gate.open();
    for _ in 0..1 + WAITING {
        assert_eq!(codes.recv().await, Some(ResultCode::Success));
    }
}
