//! A line for each operation.
//!
//! `12:00:01.123456  c12.3  search   0.213ms  success  1 entry  "dc=example" sub (uid=a) [cn mail]`

use super::text::{count, latency, plain, quoted};
use super::{Line, View, clock};
use crate::operation::{End, Event, Note, Operation, Part};
use crate::query::{mechanism, scope, user};
use keyway_codec::message::{Authentication, ChangeOperation};
use keyway_codec::{Op, extended};
use std::io::Write;

impl View for Line {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        begin(operation, out);
        column(operation.name(), 8, out);
        let start = out.len();
        match operation.latency_ns() {
            Some(ns) => latency(ns, out),
            None => out.push(b'-'),
        }
        // To the right of its column.
        let width = out.len() - start;
        let padding = 9_usize.saturating_sub(width);
        out.splice(start..start, std::iter::repeat_n(b' ', padding));
        out.extend_from_slice(b"  ");
        result(operation, out);
        subject(operation, out);
        diagnostic(operation, out);
        out.push(b'\n');
    }

    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>) {
        clock(note.time_ns, out);
        if let Some(connection) = note.connection {
            write(out, format_args!("  c{}", connection.number));
        }
        out.extend_from_slice(b"  -- ");
        event(note, out);
        out.push(b'\n');
    }
}

impl Line {
    /// The subject of the request: the part of the line after its result.
    #[must_use]
    pub fn subject(operation: &Operation<'_>) -> String {
        let mut out = Vec::new();
        subject(operation, &mut out);
        String::from_utf8_lossy(&out).trim().to_owned()
    }

    /// How long something took, from nanoseconds.
    #[must_use]
    pub fn latency(ns: u64) -> String {
        let mut out = Vec::new();
        latency(ns, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// How it ended, and how much was found: the part before that.
    #[must_use]
    pub fn result(operation: &Operation<'_>) -> String {
        let mut out = Vec::new();
        result(operation, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Time, connection and message id.
pub(super) fn begin(operation: &Operation<'_>, out: &mut Vec<u8>) {
    clock(operation.time_ns(), out);
    let start = out.len();
    write(out, format_args!("  c{}.{}", operation.connection.number, operation.id));
    while out.len() - start < 10 {
        out.push(b' ');
    }
    out.push(b' ');
}

fn column(text: &str, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(text.len())));
    out.push(b' ');
}

/// Writing to a vector cannot fail.
pub(super) fn write(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
}

/// The result in words, and how much was found.
pub(super) fn result(operation: &Operation<'_>, out: &mut Vec<u8>) {
    match (operation.end, operation.code()) {
        (_, Some(code)) if code.name() == "unknown" => {
            write(out, format_args!("code {}", code.code()));
        }
        (_, Some(code)) => out.extend_from_slice(code.name().as_bytes()),
        (End::Answered, None) => out.extend_from_slice(match operation.response {
            Part::Malformed(_) => b"answer malformed",
            _ => b"answer cut off",
        }),
        (End::Complete, None) => out.push(b'-'),
        (End::Abandoned, None) => out.extend_from_slice(b"abandoned"),
        (End::Unanswered, None) => out.extend_from_slice(b"no answer"),
        (End::Unsolicited, None) => out.extend_from_slice(b"unsolicited"),
    }
    let searched = operation.kind.0 == keyway_codec::message::tag::SEARCH_REQUEST;
    if searched && (operation.end == End::Answered || operation.entries > 0) {
        out.extend_from_slice(b", ");
        count(operation.entries, "entry", "entries", out);
    }
    if operation.references > 0 {
        out.extend_from_slice(b", ");
        count(operation.references, "reference", "references", out);
    }
    if operation.intermediate > 0 {
        out.extend_from_slice(b", ");
        count(operation.intermediate, "intermediate", "intermediate", out);
    }
}

/// The subject of the request.
fn subject(operation: &Operation<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"  ");
    let request = match &operation.request {
        Part::Whole(message) => &message.op,
        Part::Absent if operation.end == End::Unsolicited => return,
        Part::Absent => return out.extend_from_slice(b"(request not captured)"),
        Part::Cut => return out.extend_from_slice(b"(request cut off)"),
        Part::Malformed(why) => return write(out, format_args!("(request {why})")),
    };
    if let Some(dn) = operation.dn() {
        quoted(dn, out);
    }
    match request {
        Op::BindRequest(bind) => {
            out.push(b' ');
            plain(mechanism(operation).unwrap_or_default(), out);
            if bind.name.is_empty() && matches!(bind.authentication, Authentication::Simple(b"")) {
                out.extend_from_slice(b" anonymous");
            }
            said(" user=", user(operation), out);
        }
        Op::SearchRequest(search) => {
            out.push(b' ');
            out.extend_from_slice(scope(search.scope).as_bytes());
            write(out, format_args!(" {}", search.filter));
            list(search.attributes.iter().copied(), out);
        }
        Op::ModifyRequest(modify) => {
            for change in &modify.changes {
                out.extend_from_slice(match change.operation {
                    ChangeOperation::Add => b" +",
                    ChangeOperation::Delete => b" -",
                    ChangeOperation::Replace => b" =",
                    ChangeOperation::Increment => b" #",
                });
                plain(&change.attribute.description, out);
            }
        }
        Op::AddRequest(add) => {
            list(add.attributes.iter().map(|attribute| attribute.description.as_ref()), out);
        }
        Op::ModifyDnRequest(rename) => {
            said(" to ", Some(rename.new_rdn), out);
            said(" below ", rename.new_superior, out);
        }
        Op::CompareRequest(compare) => {
            out.push(b' ');
            plain(compare.attribute, out);
            out.push(b'=');
            super::value(compare.value, out);
        }
        Op::AbandonRequest(id) => write(out, format_args!("id {id}")),
        Op::ExtendedRequest(request) if request.oid == extended::PASSWORD_MODIFY => {
            said("user=", user(operation).or(Some("self")), out);
        }
        Op::ExtendedRequest(request) if operation.name() == "extended" => plain(request.oid, out),
        _ => {}
    }
}

fn said(what: &str, text: Option<&str>, out: &mut Vec<u8>) {
    if let Some(text) = text {
        out.extend_from_slice(what.as_bytes());
        quoted(text, out);
    }
}

fn list<'l>(names: impl Iterator<Item = &'l str>, out: &mut Vec<u8>) {
    let start = out.len();
    for name in names {
        out.extend_from_slice(if out.len() == start { b" [" } else { b" " });
        plain(name, out);
    }
    if out.len() > start {
        out.push(b']');
    }
}

fn diagnostic(operation: &Operation<'_>, out: &mut Vec<u8>) {
    let Some(result) = operation.result() else { return };
    if !result.diagnostic.is_empty() {
        out.extend_from_slice(b"  ");
        quoted(&result.diagnostic, out);
    }
}

/// An event, as a sentence.
pub(super) fn event(note: &Note<'_>, out: &mut Vec<u8>) {
    match &note.what {
        Event::Gap { direction, bytes } => {
            write(out, format_args!("gap of {bytes} bytes from the {}", direction.sender()));
        }
        Event::OutOfStep { direction, why } => {
            write(out, format_args!("out of step with the {}: {why}", direction.sender()));
        }
        Event::InStep { direction, bytes } => write(
            out,
            format_args!("in step with the {} again after {bytes} bytes", direction.sender()),
        ),
        Event::Malformed { direction, why } => {
            write(out, format_args!("the {}'s message is {why}", direction.sender()));
        }
        Event::Unreadable(why) => plain(why, out),
        Event::Closed { unbind: true } => out.extend_from_slice(b"closed"),
        Event::Closed { unbind: false } => out.extend_from_slice(b"closed without an unbind"),
    }
    if let Some(connection) = note.connection {
        write(out, format_args!(" ({} to {})", connection.client, connection.server));
    }
}
