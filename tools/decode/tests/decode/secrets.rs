//! No password is in anything that is told, unless it was asked for.

use super::wire::*;
use keyway_codec::Op;
use keyway_codec::extended::{PASSWORD_MODIFY, PasswordModifyRequest, PasswordModifyResponse};
use keyway_codec::message::*;
use keyway_codec::sasl::Plain;
use keyway_decode::view::{Full, Json, Line, Printer, View};
use keyway_decode::{Options, Secrets};
use std::borrow::Cow;

/// Each password begins with this.
const SECRET: &str = "hunter2";

fn conversation() -> Conversation {
    let mut plain = Vec::new();
    let parts = Plain { authorization: "", authentication: "kurt", password: "hunter2-of-plain" };
    parts.encode(&mut plain);
    let sasl = |mechanism, credentials| {
        let authentication = Authentication::Sasl { mechanism, credentials: Some(credentials) };
        Op::BindRequest(BindRequest { version: 3, name: "", authentication })
    };
    let mut parameters = Vec::new();
    let (old, new) = (Some(&b"hunter2-of-old"[..]), Some(&b"hunter2-of-new"[..]));
    PasswordModifyRequest { user: Some("uid=kurt"), old, new }.encode(&mut parameters);
    let mut generated = Vec::new();
    PasswordModifyResponse { generated: Some(b"hunter2-of-server") }.encode(&mut generated);
    let replace = |attribute| Change { operation: ChangeOperation::Replace, attribute };
    let modify = ModifyRequest {
        dn: "uid=kurt,dc=example,dc=com",
        changes: vec![
            replace(attribute("userPassword", b"hunter2-of-modify")),
            replace(attribute("userPassword;x-old", b"hunter2-of-option")),
            replace(attribute("unicodePwd", b"hunter2-of-ad")),
            replace(attribute("userPKCS12", b"hunter2-of-key")),
            replace(attribute("description", b"shown")),
        ],
    };
    let requests = vec![
        bind(1, "cn=admin", b"hunter2-of-bind"),
        encode(2, sasl("PLAIN", &plain)),
        encode(3, sasl("SCRAM-SHA-256", b"n,,n=kurt,r=hunter2-of-nonce")),
        encode(4, Op::ModifyRequest(modify)),
        add(5, "uid=a,dc=example,dc=com", vec![attribute("userPassword", b"hunter2-of-add")]),
        encode(
            6,
            Op::ExtendedRequest(ExtendedRequest { oid: PASSWORD_MODIFY, value: Some(&parameters) }),
        ),
        encode(
            7,
            Op::CompareRequest(CompareRequest {
                dn: "uid=a",
                attribute: "userpassword",
                value: b"hunter2-of-compare",
            }),
        ),
        search(8, "(&(uid=a)(userPassword=hunter2-of-filter)(!(userPassword=*hunter2-of-piece*)))"),
        encode(
            9,
            Op::ExtendedRequest(ExtendedRequest {
                oid: "1.2.3",
                value: Some(b"hunter2-of-vendor"),
            }),
        ),
        add(
            10,
            "changeNumber=1,cn=changelog",
            vec![attribute("changes", b"replace: userPassword\nuserPassword: hunter2-of-log\n")],
        ),
    ];
    let mut with_control = Vec::new();
    let mut message = keyway_codec::Message::new(11, Op::DeleteRequest("uid=b"));
    message.controls.push(Control {
        oid: keyway_codec::controls::ASSERTION,
        critical: true,
        value: Some(Cow::Borrowed(b"(userPassword=hunter2-of-control)")),
    });
    message.encode(&mut with_control);
    let ok = LdapResult::success;
    let extended = |value| ExtendedResponse { result: ok(), oid: None, value };
    let responses = vec![
        bound(1),
        bound(2),
        encode(
            3,
            Op::BindResponse(BindResponse {
                result: LdapResult::new(ResultCode::SaslBindInProgress, ""),
                server_sasl_credentials: Some(b"r=hunter2-of-server-nonce"),
            }),
        ),
        encode(4, Op::ModifyResponse(ok())),
        added(5),
        encode(6, Op::ExtendedResponse(extended(Some(Cow::Borrowed(&generated))))),
        encode(7, Op::CompareResponse(LdapResult::new(ResultCode::CompareFalse, ""))),
        entry(8, "uid=a", b"a"),
        done(8),
        encode(9, Op::ExtendedResponse(extended(Some(Cow::Borrowed(b"hunter2-of-answer"))))),
        added(10),
        encode(11, Op::DeleteResponse(ok())),
    ];
    let say = |end| move |octets| (end, octets);
    let all = requests.into_iter().chain([with_control]).map(say(End::Client));
    Conversation::new(false, all.chain(responses.into_iter().map(say(End::Server))).collect())
}

fn told(view: impl View, secrets: Secrets) -> String {
    let mut printer = Printer::new(view, None, Vec::new());
    let options = Options { secrets, keep_answers: true };
    into(&capture(&conversation().segments(1000)), options, &mut printer);
    printer.end().unwrap();
    String::from_utf8(printer.into_output()).unwrap()
}

#[test]
fn no_view_shows_one() {
    for text in
        [told(Line, Secrets::Hidden), told(Full, Secrets::Hidden), told(Json, Secrets::Hidden)]
    {
        assert!(!text.contains(SECRET), "{text}");
        assert!(text.contains("kurt"), "{text}");
        assert_eq!(text.matches("closed").count(), 1, "{text}");
    }
}

#[test]
fn asked_for_they_are_shown() {
    let text = told(Full, Secrets::Shown);
    for of in ["bind", "modify", "option", "ad", "add", "old", "new", "compare", "filter", "entry"]
    {
        assert!(text.contains(&format!("hunter2-of-{of}")), "{of} in {text}");
    }
}

#[test]
fn the_length_is_not_shown() {
    let text = told(Full, Secrets::Hidden);
    assert!(text.contains("credentials  *\n"), "{text}");
    assert!(text.contains("replace      userPassword: *\n"), "{text}");
    assert!(text.contains("userPassword=\\2a"), "{text}");
    assert!(text.contains("description: shown"), "{text}");
}

/// Filters ask what is shown, so that they cannot be used to guess.
#[test]
fn a_filter_does_not_find_them() {
    let query = keyway_decode::Query::parse("(|(filter=*hunter2*)(diagnostic=*))").unwrap();
    let mut printer = Printer::new(Line, Some(query), Vec::new());
    let options = Options { secrets: Secrets::Hidden, keep_answers: true };
    into(&capture(&conversation().segments(1000)), options, &mut printer);
    assert_eq!(printer.told, 0);
}
