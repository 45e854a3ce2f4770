//! The fields of an operation, by name.

use crate::operation::{End, Kind as Operations, Operation, Part};
use crate::parameters::{control_name, extended_names};
use keyway_codec::message::{Attribute, Authentication, ResultCode, Scope};
use keyway_codec::sasl::Plain;
use keyway_codec::{Op, extended};
use std::fmt::Write;

/// A value of a field.
pub(super) enum Value<'a> {
    Text(&'a [u8]),
    /// Times are in nanoseconds.
    Number(u64),
}

/// How a field's values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Time,
    Code,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Op,
    Code,
    Result,
    Latency,
    Entries,
    References,
    Dn,
    Filter,
    Scope,
    Attribute,
    Bound,
    User,
    Mechanism,
    Oid,
    Control,
    Client,
    Server,
    Connection,
    Id,
    Sent,
    Received,
    Diagnostic,
    End,
    Tls,
}

/// Each with its name, its kind, and what it is.
pub(super) const FIELDS: &[(&str, Field, Kind, &str)] = &[
    ("op", Field::Op, Kind::Text, "bind, search, modify, ..., also passwd, whoami, starttls"),
    ("code", Field::Code, Kind::Code, "result code, as a number or by its name in RFC 4511"),
    ("result", Field::Result, Kind::Text, "the result code's name"),
    ("latency", Field::Latency, Kind::Time, "from request to last answer: 250us, 10ms, 1.5s"),
    ("entries", Field::Entries, Kind::Number, "entries found"),
    ("references", Field::References, Kind::Number, "references found"),
    ("dn", Field::Dn, Kind::Text, "the entry, the search's base, or the bind's name"),
    ("filter", Field::Filter, Kind::Text, "the search's filter"),
    ("scope", Field::Scope, Kind::Text, "base, one, sub, subordinate"),
    ("attribute", Field::Attribute, Kind::Text, "asked for, changed, added or compared"),
    ("bound", Field::Bound, Kind::Text, "the identity that the connection is bound as"),
    ("user", Field::User, Kind::Text, "the user that SASL PLAIN or a password modify names"),
    ("mechanism", Field::Mechanism, Kind::Text, "simple, or SASL's"),
    ("oid", Field::Oid, Kind::Text, "of an extended operation"),
    (
        "control",
        Field::Control,
        Kind::Text,
        "a control of the request: by number, or as paged-results",
    ),
    ("client", Field::Client, Kind::Text, "address, or address:port"),
    ("server", Field::Server, Kind::Text, "address, or address:port"),
    ("conn", Field::Connection, Kind::Number, "the connection's number"),
    ("id", Field::Id, Kind::Number, "the message id"),
    ("sent", Field::Sent, Kind::Number, "octets of the request"),
    ("received", Field::Received, Kind::Number, "octets of all answers"),
    ("diagnostic", Field::Diagnostic, Kind::Text, "the server's message"),
    ("end", Field::End, Kind::Text, "answered, unanswered, abandoned, complete, unsolicited"),
    ("tls", Field::Tls, Kind::Text, "true or false"),
];

/// A line for each field.
#[must_use]
pub fn help() -> String {
    let mut text = String::new();
    for (name, _, _, what) in FIELDS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<11} {what}");
    }
    text
}

impl Field {
    pub(super) fn named(name: &str) -> Option<Self> {
        let known = FIELDS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
        known.map(|(_, field, ..)| *field)
    }

    /// The values that it can have, where these are known, so that a slip of the pen is no filter
    /// that nothing matches.
    pub(super) fn values(self) -> Option<Vec<&'static str>> {
        Some(match self {
            Field::Op => Operations::names().chain(extended_names()).chain(["notice"]).collect(),
            Field::Scope => vec!["base", "one", "sub", "subordinate"],
            Field::End => vec!["answered", "unanswered", "abandoned", "complete", "unsolicited"],
            Field::Tls => vec!["true", "false"],
            Field::Result => ResultCode::ALL.iter().map(|code| code.name()).collect(),
            _ => return None,
        })
    }

    pub(super) fn kind(self) -> Kind {
        let known = FIELDS.iter().find(|(_, field, ..)| *field == self);
        known.map_or(Kind::Text, |(_, _, kind, _)| *kind)
    }

    /// Whether `test` holds for a value of this field.
    pub(super) fn any(
        self,
        operation: &Operation<'_>,
        test: &mut dyn FnMut(Value<'_>) -> bool,
    ) -> bool {
        let mut text = |text: &str| test(Value::Text(text.as_bytes()));
        let request = operation.request.op();
        match self {
            Field::Op => text(operation.name()) || text(operation.kind.name()),
            Field::Result => operation.code().is_some_and(|code| text(code.name())),
            Field::Dn => operation.dn().is_some_and(text),
            Field::Filter => match request {
                Some(Op::SearchRequest(search)) => text(&search.filter.to_string()),
                _ => false,
            },
            Field::Scope => match request {
                Some(Op::SearchRequest(search)) => text(scope(search.scope)),
                _ => false,
            },
            Field::Attribute => request.is_some_and(|request| attributes(request, &mut text)),
            Field::Bound => text(&operation.connection.bound),
            Field::User => user(operation).is_some_and(text),
            Field::Mechanism => mechanism(operation).is_some_and(text),
            Field::Oid => operation.oid().is_some_and(text),
            Field::Control => match &operation.request {
                Part::Whole(message) => message.controls.iter().any(|control| {
                    text(control.oid) || control_name(control.oid).is_some_and(&mut text)
                }),
                _ => false,
            },
            Field::Client => {
                let client = operation.connection.client;
                text(&client.to_string()) || text(&client.ip().to_string())
            }
            Field::Server => {
                let server = operation.connection.server;
                text(&server.to_string()) || text(&server.ip().to_string())
            }
            Field::Diagnostic => match operation.result() {
                Some(result) if !result.diagnostic.is_empty() => text(&result.diagnostic),
                _ => false,
            },
            Field::End => text(end(operation.end)),
            Field::Tls => text(if operation.connection.tls { "true" } else { "false" }),
            _ => self.number(operation).is_some_and(|number| test(Value::Number(number))),
        }
    }

    fn number(self, operation: &Operation<'_>) -> Option<u64> {
        Some(match self {
            Field::Code => u64::from(operation.code()?.code()),
            Field::Latency => operation.latency_ns()?,
            Field::Entries => operation.entries,
            Field::References => operation.references,
            Field::Connection => operation.connection.number,
            Field::Id => u64::from(operation.id),
            Field::Sent => operation.request_bytes,
            Field::Received => operation.response_bytes,
            _ => return None,
        })
    }
}

/// A scope's name, as ldapsearch and URLs have it.
pub(crate) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Base => "base",
        Scope::One => "one",
        Scope::Subtree => "sub",
        Scope::Subordinate => "subordinate",
    }
}

/// How an operation ended, in a word.
pub(crate) fn end(end: End) -> &'static str {
    match end {
        End::Answered => "answered",
        End::Complete => "complete",
        End::Abandoned => "abandoned",
        End::Unanswered => "unanswered",
        End::Unsolicited => "unsolicited",
    }
}

/// How a bind proves its name.
pub(crate) fn mechanism<'o>(operation: &'o Operation<'_>) -> Option<&'o str> {
    match operation.request.op()? {
        Op::BindRequest(bind) => Some(match bind.authentication {
            Authentication::Simple(_) => "simple",
            Authentication::Sasl { mechanism, .. } => mechanism,
            Authentication::Other(_) => "unknown",
        }),
        _ => None,
    }
}

/// The user that a request names beside its DN.
pub(crate) fn user<'o>(operation: &'o Operation<'_>) -> Option<&'o str> {
    match operation.request.op()? {
        Op::BindRequest(bind) => match bind.authentication {
            Authentication::Sasl { mechanism, credentials: Some(credentials) }
                if mechanism.eq_ignore_ascii_case("PLAIN") =>
            {
                Plain::decode(credentials).map(|plain| plain.authentication)
            }
            _ => None,
        },
        Op::ExtendedRequest(request) if request.oid == extended::PASSWORD_MODIFY => {
            extended::PasswordModifyRequest::decode(request.value).ok()?.user
        }
        _ => None,
    }
}

fn attributes(request: &Op<'_>, text: &mut dyn FnMut(&str) -> bool) -> bool {
    let mut described = |attribute: &Attribute<'_>| text(&attribute.description);
    match request {
        Op::SearchRequest(search) => search.attributes.iter().any(|name| text(name)),
        Op::ModifyRequest(modify) => {
            modify.changes.iter().any(|change| described(&change.attribute))
        }
        Op::AddRequest(add) => add.attributes.iter().any(described),
        Op::CompareRequest(compare) => text(compare.attribute),
        _ => false,
    }
}
