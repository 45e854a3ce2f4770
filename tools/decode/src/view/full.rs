//! All that is in an operation, on lines that are indented.

use super::line::{begin, event, result, write};
use super::text::{latency, plain, quoted};
use super::{Calendar, Full, View, value};
use crate::direction::Direction;
use crate::operation::{Note, Operation, Part};
use crate::parameters::{self, Value, control_name};
use crate::query::{mechanism, scope, user};
use crate::secrets::hide;
use keyway_codec::message::{Attribute, ChangeOperation, Control, Deref, LdapResult};
use keyway_codec::{Message, Op, extended};

impl View for Full {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        begin(operation, out);
        plain(operation.name(), out);
        out.extend_from_slice(b": ");
        result(operation, out);
        if let Some(ns) = operation.latency_ns() {
            out.extend_from_slice(b", ");
            latency(ns, out);
        }
        out.push(b'\n');
        connection(operation, out);
        match &operation.request {
            Part::Whole(message) => request(operation, message, out),
            Part::Absent => {}
            Part::Cut => field("request", format_args!("cut off"), out),
            Part::Malformed(why) => field("request", format_args!("{why}"), out),
        }
        answers(operation, out);
        if let Some(result) = operation.result() {
            outcome(result, out);
        }
        if let Some(message) = operation.response.message() {
            response(operation, message, out);
        }
        out.push(b'\n');
    }

    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>) {
        Calendar::timestamp(note.time_ns, out);
        out.extend_from_slice(b"  -- ");
        event(note, out);
        out.extend_from_slice(b"\n\n");
    }
}

fn label(name: &str, out: &mut Vec<u8>) {
    write(out, format_args!("    {name:<12} "));
}

fn field(name: &str, text: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
    label(name, out);
    write(out, text);
    out.push(b'\n');
}

fn text(name: &str, text: &str, out: &mut Vec<u8>) {
    label(name, out);
    quoted(text, out);
    out.push(b'\n');
}

fn connection(operation: &Operation<'_>, out: &mut Vec<u8>) {
    label("time", out);
    Calendar::timestamp(operation.time_ns(), out);
    out.push(b'\n');
    let connection = operation.connection;
    let how = match (connection.tls, connection.udp) {
        (true, _) => ", TLS",
        (false, true) => ", UDP (CLDAP)",
        (false, false) => "",
    };
    field("connection", format_args!("{} to {}{how}", connection.client, connection.server), out);
    if !connection.bound.is_empty() {
        text("bound as", &connection.bound, out);
    }
    let (sent, received) = (operation.request_bytes, operation.response_bytes);
    field("octets", format_args!("{sent} sent, {received} received"), out);
}

fn request(operation: &Operation<'_>, message: &Message<'_>, out: &mut Vec<u8>) {
    match &message.op {
        Op::BindRequest(bind) => {
            text("name", bind.name, out);
            field("version", format_args!("{}", bind.version), out);
            text("mechanism", mechanism(operation).unwrap_or_default(), out);
            credentials(&bind.authentication, out);
        }
        Op::SearchRequest(search) => {
            text("base", search.base, out);
            field("scope", format_args!("{}", scope(search.scope)), out);
            field("filter", format_args!("{}", search.filter), out);
            for name in &search.attributes {
                text("attribute", name, out);
            }
            let deref = match search.deref {
                Deref::Never => "never",
                Deref::InSearching => "search",
                Deref::FindingBase => "find",
                Deref::Always => "always",
            };
            field("deref", format_args!("{deref}"), out);
            let (size, time) = (search.size_limit, search.time_limit_s);
            field("limits", format_args!("{size} entries, {time} s (0: none)"), out);
            if search.types_only {
                field("types only", format_args!("yes"), out);
            }
        }
        Op::ModifyRequest(modify) => {
            text("dn", modify.dn, out);
            for change in &modify.changes {
                let operation = match change.operation {
                    ChangeOperation::Add => "add",
                    ChangeOperation::Delete => "delete",
                    ChangeOperation::Replace => "replace",
                    ChangeOperation::Increment => "increment",
                };
                attribute(operation, &change.attribute, out);
            }
        }
        Op::AddRequest(add) => {
            text("dn", add.dn, out);
            add.attributes.iter().for_each(|one| attribute("attribute", one, out));
        }
        Op::DeleteRequest(dn) => text("dn", dn, out),
        Op::ModifyDnRequest(rename) => {
            text("dn", rename.dn, out);
            text("new RDN", rename.new_rdn, out);
            field("delete old", format_args!("{}", rename.delete_old_rdn), out);
            if let Some(superior) = rename.new_superior {
                text("new superior", superior, out);
            }
        }
        Op::CompareRequest(compare) => {
            text("dn", compare.dn, out);
            label("assertion", out);
            plain(compare.attribute, out);
            out.push(b'=');
            value(compare.value, out);
            out.push(b'\n');
        }
        Op::AbandonRequest(id) => field("abandons id", format_args!("{id}"), out),
        Op::ExtendedRequest(request) => {
            text("oid", request.oid, out);
            match (request.oid, request.value) {
                (extended::PASSWORD_MODIFY, parameters) => {
                    text("user", user(operation).unwrap_or("(self)"), out);
                    if let Ok(parameters) = extended::PasswordModifyRequest::decode(parameters) {
                        parameters.old.iter().for_each(|old| octets("old", old, out));
                        parameters.new.iter().for_each(|new| octets("new", new, out));
                    }
                }
                (oid, Some(octets)) => {
                    parts("value", &parameters::extended(oid, octets, Direction::Request), out);
                }
                _ => {}
            }
        }
        _ => {}
    }
    controls(&message.controls, Direction::Request, out);
}

/// A value: what it is made of a line each, indented.
fn parts(name: &str, whole: &Value, out: &mut Vec<u8>) {
    let mut is_first = true;
    whole.leaves(&mut |path, octets| {
        label(if std::mem::take(&mut is_first) { name } else { "" }, out);
        if !path.is_empty() {
            write(out, format_args!("{path}: "));
        }
        value(octets, out);
        out.push(b'\n');
    });
    // Without parts, such as an empty list.
    if is_first {
        field(name, format_args!("(empty)"), out);
    }
}

fn credentials(authentication: &keyway_codec::message::Authentication<'_>, out: &mut Vec<u8>) {
    use keyway_codec::message::Authentication;
    match authentication {
        Authentication::Simple(b"") | Authentication::Sasl { credentials: None, .. } => {}
        Authentication::Simple(secret) | Authentication::Sasl { credentials: Some(secret), .. } => {
            octets("credentials", secret, out);
        }
        Authentication::Other(tag) => field("choice", format_args!("0x{tag:02x}"), out),
    }
}

fn octets(name: &str, octets: &[u8], out: &mut Vec<u8>) {
    label(name, out);
    value(octets, out);
    out.push(b'\n');
}

fn attribute(name: &str, attribute: &Attribute<'_>, out: &mut Vec<u8>) {
    if attribute.values.is_empty() {
        text(name, &attribute.description, out);
    }
    for each in &attribute.values {
        label(name, out);
        plain(&attribute.description, out);
        out.extend_from_slice(b": ");
        value(each, out);
        out.push(b'\n');
    }
}

fn controls(controls: &[Control<'_>], direction: Direction, out: &mut Vec<u8>) {
    for control in controls {
        label("control", out);
        if let Some(name) = control_name(control.oid) {
            write(out, format_args!("{name} "));
        }
        plain(control.oid, out);
        if control.critical {
            out.extend_from_slice(b" critical");
        }
        out.push(b'\n');
        if let Some(octets) = &control.value {
            parts("", &parameters::control(control.oid, octets, direction), out);
        }
    }
}

/// The messages before the last answer.
fn answers(operation: &Operation<'_>, out: &mut Vec<u8>) {
    for (_, octets) in operation.answers.iter() {
        let mut scratch = Vec::new();
        let Ok(message) = Message::decode(octets) else { continue };
        let message = hide(message, operation.secrets, &mut scratch);
        match &message.op {
            Op::SearchResultEntry(entry) => {
                text("entry", &entry.dn, out);
                entry.attributes.iter().for_each(|one| attribute("", one, out));
            }
            Op::SearchResultReference(uris) => {
                uris.iter().for_each(|uri| text("reference", uri, out));
            }
            Op::IntermediateResponse(response) => {
                let oid = response.oid.unwrap_or_default();
                text("intermediate", oid, out);
                if let Some(octets) = response.value {
                    parts("", &parameters::extended(oid, octets, Direction::Response), out);
                }
            }
            _ => {}
        }
        controls(&message.controls, Direction::Response, out);
    }
    if operation.answers.left_out > 0 {
        field("and", format_args!("{} more that were not kept", operation.answers.left_out), out);
    }
}

fn outcome(result: &LdapResult<'_>, out: &mut Vec<u8>) {
    field("result", format_args!("{}", result.code), out);
    if !result.matched_dn.is_empty() {
        text("matched", &result.matched_dn, out);
    }
    if !result.diagnostic.is_empty() {
        text("diagnostic", &result.diagnostic, out);
    }
    result.referrals.iter().for_each(|uri| text("referral", uri, out));
}

fn response(operation: &Operation<'_>, message: &Message<'_>, out: &mut Vec<u8>) {
    match &message.op {
        Op::BindResponse(response) => {
            response
                .server_sasl_credentials
                .iter()
                .for_each(|challenge| octets("challenge", challenge, out));
        }
        Op::ExtendedResponse(response) => {
            response.oid.iter().for_each(|oid| text("response", oid, out));
            if let Some(octets) = &response.value {
                let oid = operation.oid().unwrap_or_default();
                parts("value", &parameters::extended(oid, octets, Direction::Response), out);
            }
        }
        _ => {}
    }
    controls(&message.controls, Direction::Response, out);
}
