//! An object of JSON on a line for each operation.
//!
//! Octets that are no UTF-8 are `{"base64": "..."}`. Times are RFC 3339, latencies microseconds.

use super::{Calendar, Json, View};
use crate::direction::Direction;
use crate::operation::{Event, Note, Operation, Part};
use crate::parameters::{self, control_name};
use crate::query::{end, mechanism, scope, user};
use crate::secrets::hide;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keyway_codec::message::{Attribute, ChangeOperation, Control};
use keyway_codec::{Message, Op};
use serde_json::{Map, Value, json};

impl View for Json {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        line(&object(operation), out);
    }

    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>) {
        let mut object = match &note.what {
            Event::Gap { direction, bytes } => {
                json!({ "event": "gap", "from": direction.sender(), "bytes": bytes })
            }
            Event::OutOfStep { direction, why } => {
                json!({ "event": "out-of-step", "from": direction.sender(), "why": why })
            }
            Event::InStep { direction, bytes } => {
                json!({ "event": "in-step", "from": direction.sender(), "bytes": bytes })
            }
            Event::Malformed { direction, why } => {
                let why = why.to_string();
                json!({ "event": "malformed", "from": direction.sender(), "why": why })
            }
            Event::Unreadable(why) => json!({ "event": "unreadable", "why": why }),
            Event::Closed { unbind } => json!({ "event": "closed", "unbind": unbind }),
        };
        object["time"] = time(note.time_ns);
        if let Some(connection) = note.connection {
            object["conn"] = connection.number.into();
            object["client"] = connection.client.to_string().into();
            object["server"] = connection.server.to_string().into();
        }
        line(&object, out);
    }
}

fn line(object: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(keyway_host::text::json(object).as_bytes());
    out.push(b'\n');
}

fn time(ns: u64) -> Value {
    let mut text = Vec::new();
    Calendar::timestamp(ns, &mut text);
    String::from_utf8_lossy(&text).into()
}

/// Octets as text where they are.
fn octets(octets: &[u8]) -> Value {
    match std::str::from_utf8(octets) {
        Ok(text) => text.into(),
        Err(_) => json!({ "base64": STANDARD.encode(octets) }),
    }
}

fn object(operation: &Operation<'_>) -> Value {
    let connection = operation.connection;
    let mut object = json!({
        "event": "operation",
        "time": time(operation.time_ns()),
        "conn": connection.number,
        "id": operation.id,
        "client": connection.client.to_string(),
        "server": connection.server.to_string(),
        "tls": connection.tls,
        "udp": connection.udp,
        "bound": connection.bound,
        "op": operation.name(),
        "end": end(operation.end),
        "sent": operation.request_bytes,
        "received": operation.response_bytes,
    });
    if let Some(ns) = operation.latency_ns() {
        object["latency_us"] = (ns as f64 / 1000.0).into();
    }
    let counts = [
        ("entries", operation.entries),
        ("references", operation.references),
        ("intermediate", operation.intermediate),
    ];
    for (name, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
        object[name] = number.into();
    }
    object["request"] = match &operation.request {
        Part::Whole(message) => request(operation, message),
        Part::Absent => Value::Null,
        Part::Cut => json!({ "cut": true }),
        Part::Malformed(why) => json!({ "malformed": why.to_string() }),
    };
    if let Some(result) = operation.result() {
        object["code"] = result.code.code().into();
        object["result"] = result.code.name().into();
        let texts = [("matched", &result.matched_dn), ("diagnostic", &result.diagnostic)];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            object[name] = text.as_ref().into();
        }
        if !result.referrals.is_empty() {
            object["referrals"] = result.referrals.iter().map(AsRef::as_ref).collect();
        }
    }
    answer(operation, &mut object);
    object
}

fn request(operation: &Operation<'_>, message: &Message<'_>) -> Value {
    let mut request = match &message.op {
        Op::BindRequest(bind) => json!({
            "name": bind.name,
            "version": bind.version,
            "mechanism": mechanism(operation),
        }),
        Op::SearchRequest(search) => json!({
            "base": search.base,
            "scope": scope(search.scope),
            "filter": search.filter.to_string(),
            "attributes": search.attributes,
            "size_limit": search.size_limit,
            "time_limit_s": search.time_limit_s,
        }),
        Op::ModifyRequest(modify) => {
            let changes: Vec<_> = modify
                .changes
                .iter()
                .map(|change| {
                    let what = match change.operation {
                        ChangeOperation::Add => "add",
                        ChangeOperation::Delete => "delete",
                        ChangeOperation::Replace => "replace",
                        ChangeOperation::Increment => "increment",
                    };
                    json!({ what: change.attribute.description, "values": values(&change.attribute) })
                })
                .collect();
            json!({ "dn": modify.dn, "changes": changes })
        }
        Op::AddRequest(add) => json!({ "dn": add.dn, "attributes": attributes(&add.attributes) }),
        Op::DeleteRequest(dn) => json!({ "dn": dn }),
        Op::ModifyDnRequest(rename) => json!({
            "dn": rename.dn,
            "new_rdn": rename.new_rdn,
            "delete_old_rdn": rename.delete_old_rdn,
            "new_superior": rename.new_superior,
        }),
        Op::CompareRequest(compare) => json!({
            "dn": compare.dn,
            "attribute": compare.attribute,
            "value": octets(compare.value),
        }),
        Op::AbandonRequest(id) => json!({ "abandons": id }),
        Op::ExtendedRequest(request) => {
            let parts = |octets| parameters::extended(request.oid, octets, Direction::Request);
            let value = request.value.map(|octets| parts(octets).json());
            json!({ "oid": request.oid, "value": value })
        }
        _ => json!({}),
    };
    if let Some(user) = user(operation) {
        request["user"] = user.into();
    }
    if let Op::BindRequest(bind) = &message.op {
        use keyway_codec::message::Authentication::{Sasl, Simple};
        match bind.authentication {
            Simple(secret) | Sasl { credentials: Some(secret), .. } if !secret.is_empty() => {
                request["credentials"] = octets(secret);
            }
            _ => {}
        }
    }
    if !message.controls.is_empty() {
        request["controls"] = controls(&message.controls, Direction::Request);
    }
    request
}

fn values(attribute: &Attribute<'_>) -> Value {
    attribute.values.iter().map(|value| octets(value)).collect()
}

fn attributes(attributes: &[Attribute<'_>]) -> Value {
    let mut object = Map::new();
    for attribute in attributes {
        object.insert(attribute.description.to_string(), values(attribute));
    }
    Value::Object(object)
}

fn controls(controls: &[Control<'_>], direction: Direction) -> Value {
    controls
        .iter()
        .map(|control| {
            let parts = |octets: &[u8]| parameters::control(control.oid, octets, direction).json();
            json!({
                "oid": control.oid,
                "name": control_name(control.oid),
                "critical": control.critical,
                "value": control.value.as_deref().map(parts),
            })
        })
        .collect()
}

/// The messages beside the result, if they were kept.
fn answer(operation: &Operation<'_>, object: &mut Value) {
    if let Some(message) = operation.response.message() {
        if !message.controls.is_empty() {
            object["response_controls"] = controls(&message.controls, Direction::Response);
        }
        if let Op::ExtendedResponse(response) = &message.op
            && let Some(value) = &response.value
        {
            let oid = operation.oid().unwrap_or_default();
            object["value"] = parameters::extended(oid, value, Direction::Response).json();
        }
    }
    let mut found = Vec::new();
    for (_, octets) in operation.answers.iter() {
        let mut scratch = Vec::new();
        let Ok(message) = Message::decode(octets) else { continue };
        match &hide(message, operation.secrets, &mut scratch).op {
            Op::SearchResultEntry(entry) => {
                found.push(json!({ "dn": entry.dn, "attributes": attributes(&entry.attributes) }));
            }
            Op::SearchResultReference(uris) => found.push(json!({ "reference": uris })),
            _ => {}
        }
    }
    if !found.is_empty() {
        object["found"] = found.into();
    }
}
