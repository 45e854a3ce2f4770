//! Password policy: what a bind and a change come to, and what the controls say of it.

use crate::client::{Answer, Client, bind, extended, search};
use crate::directory::{BASE, FAST, PASSWORD, add, person, replace, wait};
use crate::extended::{PASSWORD_MODIFY, password_modify};
use crate::support::{Running, plain, remembering};
use keyway_codec::message::{
    Attribute, Change, ChangeOperation, Control, ModifyRequest, Op, ResultCode, Scope,
};
use keyway_codec::password_policy::{
    ACCOUNT_USABILITY, AccountUsability, PASSWORD_POLICY, PasswordError, PasswordPolicyResponse,
    PasswordWarning, Unusable,
};

use std::time::{Duration, Instant};

/// A user with a policy of their own.
const WATCHED: &str = "uid=watched,dc=example,dc=com";
const POLICY: &str = "cn=policy,dc=example,dc=com";

/// Adds that user with `PASSWORD` and a policy of these attributes.
async fn watch(server: &Running, policy: &[(&str, &str)]) {
    let mut attributes = vec![
        ("objectClass", "organizationalRole"),
        ("objectClass", "pwdPolicy"),
        ("pwdAttribute", "userPassword"),
    ];
    attributes.extend(policy);
    add(&server.directory, POLICY, &attributes).await;
    person(&server.directory, WATCHED, &[("userPassword", PASSWORD)]).await;
    // A password that an administrator gives must be changed, if the policy says so.
    replace(&server.directory, WATCHED, "pwdReset", &[]).await;
    replace(&server.directory, WATCHED, "pwdPolicySubentry", &[POLICY]).await;
}

fn asking() -> Vec<Control<'static>> {
    vec![Control { oid: PASSWORD_POLICY, critical: true, value: None }]
}

fn said(answer: &Answer) -> PasswordPolicyResponse {
    let message = answer.message();
    let control = message.controls.iter().find(|control| control.oid == PASSWORD_POLICY);
    let control = control.expect("the policy's control");
    PasswordPolicyResponse::decode(control.value.as_deref().unwrap()).unwrap()
}

async fn ask(client: &mut Client, op: Op<'_>) -> (ResultCode, PasswordPolicyResponse) {
    let answer = client.ask_with(op, asking()).await;
    (answer.code(), said(&answer))
}

/// A bind of the watched one from one of this machine's addresses.
async fn bind_from(
    server: &Running,
    last: u8,
    password: &str,
) -> (ResultCode, PasswordPolicyResponse) {
    let mut client = Client::connect_from([127, 0, 0, last], server.address).await;
    ask(&mut client, bind(WATCHED, password)).await
}

fn error(error: PasswordError) -> PasswordPolicyResponse {
    PasswordPolicyResponse { warning: None, error: Some(error) }
}

fn warning(warning: PasswordWarning) -> PasswordPolicyResponse {
    PasswordPolicyResponse { warning: Some(warning), error: None }
}

const NOTHING: PasswordPolicyResponse = PasswordPolicyResponse { warning: None, error: None };
const LOCKOUT: [(&str, &str); 3] =
    [("pwdLockout", "TRUE"), ("pwdMaxFailure", "3"), ("pwdLockoutDuration", "60")];

#[tokio::test]
async fn failures_lock_and_time_unlocks() {
    use ResultCode::*;
    let server = plain().await;
    watch(&server, &LOCKOUT).await;
    for last in 1..=3 {
        assert_eq!(bind_from(&server, last, "wrong").await, (InvalidCredentials, NOTHING));
    }
    // Who does not ask is told nothing.
    let mut client = Client::connect(server.address).await;
    let answer = client.ask(bind(WATCHED, PASSWORD)).await;
    assert_eq!(answer.code(), InvalidCredentials);
    assert!(answer.message().controls.is_empty());
    let locked = (InvalidCredentials, error(PasswordError::AccountLocked));
    assert_eq!(bind_from(&server, 4, PASSWORD).await, locked);
    // So many guesses again, and a right one is like any other.
    for last in 5..=7 {
        assert_eq!(bind_from(&server, last, "wrong").await, (InvalidCredentials, NOTHING));
    }
    assert_eq!(bind_from(&server, 8, PASSWORD).await, (InvalidCredentials, NOTHING));
    wait(61);
    assert_eq!(bind_from(&server, 8, PASSWORD).await, (Success, NOTHING));
    // Success wipes the slate.
    for last in 9..=10 {
        assert_eq!(bind_from(&server, last, "wrong").await, (InvalidCredentials, NOTHING));
    }
    assert_eq!(bind_from(&server, 8, PASSWORD).await, (Success, NOTHING));
}

/// The values of an attribute of the watched one, as another user reads it.
async fn seen(reader: &mut Client, attribute: &str) -> usize {
    let Op::SearchRequest(mut request) = search(WATCHED, Scope::Base) else { unreachable!() };
    request.attributes = vec![attribute];
    reader.request(Op::SearchRequest(request)).await;
    let answer = reader.receive().await;
    let message = answer.message();
    let Op::SearchResultEntry(entry) = &message.op else { panic!("{message:?}") };
    let values = entry.attributes.iter().map(|one| one.values.len()).sum();
    assert_eq!(reader.receive().await.code(), ResultCode::Success);
    values
}

#[tokio::test]
async fn what_a_bind_changes_is_seen_when_it_is_answered() {
    let server = plain().await;
    let policy = [("pwdLockout", "TRUE"), ("pwdMaxFailure", "12"), ("pwdLockoutDuration", "60")];
    watch(&server, &policy).await;
    let mut reader = Client::connect(server.address).await;
    assert_eq!(reader.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    for failures in 1..=12 {
        let (code, _) = bind_from(&server, failures, "wrong").await;
        assert_eq!(code, ResultCode::InvalidCredentials);
        assert_eq!(seen(&mut reader, "pwdFailureTime").await, usize::from(failures));
        assert_eq!(seen(&mut reader, "pwdAccountLockedTime").await, usize::from(failures == 12));
    }
}

#[tokio::test]
async fn the_last_passwords_are_remembered_however_fast_they_follow_each_other() {
    let server = plain().await;
    watch(&server, &[("pwdInHistory", "4")]).await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(WATCHED, PASSWORD)).await.code(), ResultCode::Success);
    let mut change = async |new: &str| {
        let value = own_change(None, new);
        client.ask(extended(PASSWORD_MODIFY, Some(&value))).await.code()
    };
    for number in 0..12 {
        assert_eq!(change(&format!("password {number}")).await, ResultCode::Success);
    }
    for number in 7..12 {
        let code = change(&format!("password {number}")).await;
        assert_eq!(code, ResultCode::ConstraintViolation, "{number}");
    }
    assert_eq!(change("password 6").await, ResultCode::Success);
}

#[tokio::test]
async fn strangers_lock_out_strangers() {
    use ResultCode::*;
    let server = plain().await;
    watch(&server, &LOCKOUT).await;
    assert_eq!(bind_from(&server, 1, PASSWORD).await, (Success, NOTHING));
    let shown = Instant::now();
    while shown.elapsed() < Duration::from_millis(5) {
        bind_from(&server, 1, PASSWORD).await;
    }
    for last in 2..=4 {
        assert_eq!(bind_from(&server, last, "wrong").await, (InvalidCredentials, NOTHING));
    }
    let locked = (InvalidCredentials, error(PasswordError::AccountLocked));
    assert_eq!(bind_from(&server, 5, PASSWORD).await, locked);
    // That it was right then makes it no less a stranger.
    assert_eq!(bind_from(&server, 5, PASSWORD).await, locked);
    for _ in 0..2 {
        assert_eq!(bind_from(&server, 1, PASSWORD).await, (Success, NOTHING));
    }
    assert_eq!(bind_from(&server, 1, "wrong").await, (InvalidCredentials, NOTHING));
    assert_eq!(bind_from(&server, 1, PASSWORD).await.0, InvalidCredentials);
}

#[tokio::test]
async fn who_is_disabled_is_so_by_a_remembered_password_too() {
    use ResultCode::*;
    let (server, _) = remembering().await;
    watch(&server, &[]).await;
    let locked = (InvalidCredentials, error(PasswordError::AccountLocked));
    for (attribute, value) in [
        ("pwdAccountLockedTime", "000001010000Z"),
        ("nsAccountLock", "true"),
        ("pwdEndTime", "20200101000000Z"),
        ("pwdStartTime", "21000101000000Z"),
    ] {
        assert_eq!(bind_from(&server, 1, PASSWORD).await, (Success, NOTHING));
        assert_eq!(bind_from(&server, 1, PASSWORD).await, (Success, NOTHING));
        replace(&server.directory, WATCHED, attribute, &[value]).await;
        assert_eq!(bind_from(&server, 1, PASSWORD).await, locked, "{attribute}");
        replace(&server.directory, WATCHED, attribute, &[]).await;
    }
}

#[tokio::test]
async fn passwords_expire_with_warning_and_grace() {
    use ResultCode::*;
    let server = plain().await;
    let policy = [("pwdMaxAge", "100"), ("pwdExpireWarning", "50"), ("pwdGraceAuthNLimit", "2")];
    watch(&server, &policy).await;
    assert_eq!(bind_from(&server, 1, PASSWORD).await, (Success, NOTHING));
    wait(60);
    let (code, told) = bind_from(&server, 1, PASSWORD).await;
    let Some(PasswordWarning::ExpiresIn(left)) = told.warning else { panic!("{told:?}") };
    assert!(code == Success && (20..=40).contains(&left), "{left}");
    wait(60);
    for left in [1, 0] {
        let expected = warning(PasswordWarning::GraceLeft(left));
        assert_eq!(bind_from(&server, 1, PASSWORD).await, (Success, expected));
    }
    let expired = (InvalidCredentials, error(PasswordError::PasswordExpired));
    assert_eq!(bind_from(&server, 1, PASSWORD).await, expired);
    assert_eq!(bind_from(&server, 1, "wrong").await, (InvalidCredentials, NOTHING));
    replace(&server.directory, WATCHED, "userPassword", &["another"]).await;
    assert_eq!(bind_from(&server, 1, "another").await, (Success, NOTHING));
}

fn own_change<'a>(old: Option<&'a str>, new: &'a str) -> Vec<u8> {
    password_modify(None, old, Some(new))
}

#[tokio::test]
async fn what_others_set_must_be_changed() {
    use ResultCode::*;
    let server = plain().await;
    watch(&server, &[("pwdMustChange", "TRUE")]).await;
    replace(&server.directory, WATCHED, "userPassword", &["given"]).await;
    let mut client = Client::connect(server.address).await;
    let reset = error(PasswordError::ChangeAfterReset);
    assert_eq!(ask(&mut client, bind(WATCHED, "given")).await, (Success, reset));
    let refused = (InsufficientAccessRights, reset);
    assert_eq!(ask(&mut client, search(BASE, Scope::Base)).await, refused);
    assert_eq!(ask(&mut client, Op::DeleteRequest(WATCHED)).await, refused);
    let other = password_modify(Some("uid=slow,dc=example,dc=com"), None, Some("new"));
    assert_eq!(ask(&mut client, extended(PASSWORD_MODIFY, Some(&other))).await, refused);
    let change = own_change(Some("given"), "my own");
    assert_eq!(ask(&mut client, extended(PASSWORD_MODIFY, Some(&change))).await.0, Success);
    assert!(client.ask(search(BASE, Scope::Base)).await.is_entry());
    client.receive().await;
    assert_eq!(ask(&mut client, bind(WATCHED, "my own")).await, (Success, NOTHING));
}

#[tokio::test]
async fn new_passwords_are_long_old_enough_and_new() {
    use PasswordError::*;
    use ResultCode::*;
    let server = plain().await;
    let policy = [
        ("pwdCheckQuality", "2"),
        ("pwdMinLength", "8"),
        ("pwdMaxLength", "12"),
        ("pwdInHistory", "2"),
        ("pwdMinAge", "60"),
        ("pwdSafeModify", "TRUE"),
    ];
    watch(&server, &policy).await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(ask(&mut client, bind(WATCHED, PASSWORD)).await, (Success, NOTHING));
    let mut change = async |old: Option<&str>, new: &str| {
        let value = own_change(old, new);
        ask(&mut client, extended(PASSWORD_MODIFY, Some(&value))).await
    };
    let right = Some(PASSWORD);
    let young = (ConstraintViolation, error(PasswordTooYoung));
    assert_eq!(change(right, "first one").await, young);
    wait(61);
    let unsafe_ = (InsufficientAccessRights, error(MustSupplyOldPassword));
    assert_eq!(change(None, "first one").await, unsafe_);
    assert_eq!(change(Some("wrong"), "first one").await, (InvalidCredentials, NOTHING));
    for (new, why) in [
        ("short", PasswordTooShort),
        ("much too long", PasswordTooLong),
        ("aaaaaaaa", InsufficientPasswordQuality),
        ("xWATCHEDx", InsufficientPasswordQuality),
    ] {
        assert_eq!(change(right, new).await, (ConstraintViolation, error(why)), "{new}");
    }
    assert_eq!(change(right, "first one").await, (Success, NOTHING));
    assert_eq!(change(Some("first one"), "second one").await, young);
    wait(61);
    let used = (ConstraintViolation, error(PasswordInHistory));
    assert_eq!(change(Some("first one"), "first one").await, used);
    assert_eq!(change(Some("first one"), "second one").await, (Success, NOTHING));
    wait(61);
    assert_eq!(change(Some("second one"), "first one").await, used);
    assert_eq!(change(Some("second one"), "third one").await, (Success, NOTHING));
}

fn delete_and_add<'a>(old: &'a str, new: &'a str) -> Op<'a> {
    let change = |operation, value: &'a str| {
        let values = vec![value.as_bytes().into()];
        Change { operation, attribute: Attribute { description: "userPassword".into(), values } }
    };
    let changes = vec![change(ChangeOperation::Delete, old), change(ChangeOperation::Add, new)];
    Op::ModifyRequest(ModifyRequest { dn: WATCHED, changes })
}

/// As pam_ldap does it (draft § 5.2.15).
#[tokio::test]
async fn the_old_password_is_deleted_by_itself() {
    use ResultCode::*;
    let server = plain().await;
    watch(&server, &[("pwdSafeModify", "TRUE"), ("pwdInHistory", "1")]).await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(ask(&mut client, bind(WATCHED, PASSWORD)).await, (Success, NOTHING));
    assert_eq!(ask(&mut client, delete_and_add("wrong", "new one")).await.0, NoSuchAttribute);
    let used = (ConstraintViolation, error(PasswordError::PasswordInHistory));
    assert_eq!(ask(&mut client, delete_and_add(PASSWORD, PASSWORD)).await, used);
    assert_eq!(ask(&mut client, delete_and_add(PASSWORD, "new one")).await, (Success, NOTHING));
    assert_eq!(bind_from(&server, 1, PASSWORD).await.0, InvalidCredentials);
    assert_eq!(bind_from(&server, 1, "new one").await, (Success, NOTHING));
}

#[tokio::test]
async fn usability_is_told_to_users_who_may_read_it() {
    let server = plain().await;
    watch(&server, &LOCKOUT).await;
    let mut client = Client::connect(server.address).await;
    client.ask(bind(crate::directory::FAST, PASSWORD)).await;
    let mut usability = async || {
        let asking = Control { oid: ACCOUNT_USABILITY, critical: true, value: None };
        let answer = client.ask_with(search(WATCHED, Scope::Base), vec![asking]).await;
        client.receive().await;
        let message = answer.message();
        let control = message.controls.first().expect("the control");
        AccountUsability::decode(control.value.as_deref().unwrap()).unwrap()
    };
    assert_eq!(usability().await, AccountUsability::Available { expires_in_s: None });
    for last in 2..=4 {
        bind_from(&server, last, "wrong").await;
    }
    let AccountUsability::NotAvailable(Unusable {
        inactive: true, unlocked_in_s: Some(left), ..
    }) = usability().await
    else {
        panic!("it is locked")
    };
    assert!((30..=60).contains(&left), "{left}");
}
