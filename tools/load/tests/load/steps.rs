//! The requests of steps and of connections' binds, as a server sees them.

use crate::stub::{Answer, FINE, Stub};
use crate::{SEARCH, outcome, scenario};
use keyway_codec::Op;
use keyway_codec::extended::{PASSWORD_MODIFY, PasswordModifyRequest, WHO_AM_I};
use keyway_codec::message::{Authentication, ExtendedRequest, ResultCode};
use keyway_codec::sasl::Plain;

const NO: Answer = Answer::Code(ResultCode::Other, 0);

/// Runs steps against a server that takes only what is right; says how many were done.
fn done(settings: &str, steps: &str, is_right: fn(&Op<'_>) -> bool) -> u64 {
    let stub = Stub::new(move |op| if is_right(op) { FINE } else { NO });
    let settings = format!("threads = 1\nconnections = {{ count = 1{settings} }}");
    let text = scenario(&stub.url, &settings, "for = \"100ms\"\nrate = 100", steps);
    let outcome = outcome(&text).unwrap();
    assert_eq!(outcome.recorded.errors(), 0);
    outcome.recorded.done()
}

#[test]
fn whoami_asks_for_nothing() {
    let is_right = |op: &Op<'_>| {
        matches!(op, Op::ExtendedRequest(ExtendedRequest { oid: WHO_AM_I, value: None }))
    };
    assert_eq!(done("", "{ whoami = {} }", is_right), 10);
}

/// The lengths of both elements vary with the names and passwords in them.
#[test]
fn passmod_is_an_element_in_an_element() {
    let is_right = |op: &Op<'_>| {
        let Op::ExtendedRequest(request) = op else { return false };
        let passmod = PasswordModifyRequest::decode(request.value).unwrap();
        let user = passmod.user.unwrap().strip_prefix("uid=user.").unwrap();
        let new = format!("a new one of {user}");
        request.oid == PASSWORD_MODIFY
            && (0..100).contains(&user.parse().unwrap())
            && passmod.old == Some(b"old")
            && passmod.new == Some(new.as_bytes())
    };
    let step = "{ passmod = { user = \"uid=user.{user}\", old_password = \"old\", \
                new_password = \"a new one of {user}\" } }";
    assert_eq!(done("", step, is_right), 10);
}

#[test]
fn any_extended_operation_can_be_asked_for() {
    let is_right = |op: &Op<'_>| {
        let Op::ExtendedRequest(request) = op else { return false };
        request.oid == "1.2.3.4" && request.value.unwrap().starts_with(b"user ")
    };
    let step = "{ extended = { oid = \"1.2.3.4\", value = \"user {user}\" } }";
    assert_eq!(done("", step, is_right), 10);
}

#[test]
fn sasl_is_spoken() {
    let plain = |op: &Op<'_>| {
        let Op::BindRequest(bind) = op else { return matches!(op, Op::SearchRequest(_)) };
        let Authentication::Sasl { mechanism: "PLAIN", credentials } = bind.authentication else {
            return false;
        };
        let plain = Plain::decode(credentials.unwrap()).unwrap();
        bind.name.is_empty()
            && plain.authorization == "u:other"
            && plain.authentication.starts_with("user.")
            && plain.password == "secret"
    };
    let account = "sasl = \"plain\", user = \"user.{user}\", as = \"u:other\", \
                   password = \"secret\"";
    assert_eq!(done(&format!(", bind = {{ {account} }}"), SEARCH, plain), 10);
    assert_eq!(done("", &format!("{{ bind = {{ {account} }} }}"), plain), 10);
    let external = |op: &Op<'_>| {
        let Op::BindRequest(bind) = op else { return matches!(op, Op::SearchRequest(_)) };
        let wanted = Authentication::Sasl { mechanism: "EXTERNAL", credentials: Some(b"") };
        bind.name.is_empty() && bind.authentication == wanted
    };
    assert_eq!(done(", bind = { sasl = \"EXTERNAL\" }", SEARCH, external), 10);
}
