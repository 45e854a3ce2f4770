//! Change records (RFC 2849) of what was changed.

use super::{Changes, comment, comment_note};
use crate::operation::{Note, Operation};
use crate::secrets::{STAR, Secrets, is_secret};
use crate::view::View;
use keyway_codec::Op;
use keyway_codec::ldif::Writer;
use keyway_codec::message::{Attribute, ChangeOperation, Control, ResultCode};

impl View for Changes {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        if !self.is_begun {
            self.is_begun = true;
            Writer::new(out).version();
        }
        comment(operation, out);
        if operation.code() == Some(ResultCode::Success) {
            record(operation, out);
        }
    }

    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>) {
        comment_note(note, out);
    }
}

/// Appends the record of a change; whether it is one, and has anything left in it.
pub(super) fn record(operation: &Operation<'_>, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if !names(operation).all(is_name) {
        return false;
    }
    let done = match operation.request.op() {
        Some(Op::AddRequest(add)) => {
            head(operation, add.dn, "add", out);
            add.attributes.iter().for_each(|attribute| values(attribute, operation, out));
            true
        }
        Some(Op::DeleteRequest(dn)) => {
            head(operation, dn, "delete", out);
            true
        }
        Some(Op::ModifyRequest(modify)) => {
            head(operation, modify.dn, "modify", out);
            let mut left = 0;
            for change in &modify.changes {
                left +=
                    u32::from(modification(change.operation, &change.attribute, operation, out));
            }
            left > 0
        }
        Some(Op::ModifyDnRequest(rename)) => {
            head(operation, rename.dn, "modrdn", out);
            let mut writer = Writer::new(out);
            writer.value("newrdn", rename.new_rdn.as_bytes());
            writer.value("deleteoldrdn", if rename.delete_old_rdn { b"1" } else { b"0" });
            if let Some(superior) = rename.new_superior {
                writer.value("newsuperior", superior.as_bytes());
            }
            true
        }
        _ => false,
    };
    if !done {
        out.truncate(start);
        return false;
    }
    Writer::new(out).end();
    true
}

/// The attributes that a change names.
fn names<'o>(operation: &'o Operation<'_>) -> impl Iterator<Item = &'o str> {
    let attributes: Vec<&str> = match operation.request.op() {
        Some(Op::AddRequest(add)) => add.attributes.iter().map(|it| &*it.description).collect(),
        Some(Op::ModifyRequest(modify)) => {
            modify.changes.iter().map(|change| &*change.attribute.description).collect()
        }
        _ => Vec::new(),
    };
    attributes.into_iter()
}

/// Whether a line of LDIF can begin with it (RFC 4512, section 2.5): none is in base64.
fn is_name(description: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.;_{}".contains(&byte);
    !description.is_empty() && description.bytes().all(is_plain)
}

fn head(operation: &Operation<'_>, dn: &str, kind: &str, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.dn(dn);
    let controls = operation.request.message().map_or(&[][..], |message| &message.controls);
    for control in controls {
        writer.value("control", &control_line(control));
    }
    writer.value("changetype", kind.as_bytes());
}

/// `OID true: value`, with base64 where that is needed.
fn control_line(control: &Control<'_>) -> Vec<u8> {
    use base64::Engine;
    let mut line = format!("{} {}", control.oid, control.critical);
    if let Some(value) = &control.value {
        line.push_str(":: ");
        line.push_str(&base64::engine::general_purpose::STANDARD.encode(value));
    }
    line.into_bytes()
}

/// Whether an attribute's values are passwords that are not shown.
fn is_hidden(attribute: &Attribute<'_>, operation: &Operation<'_>) -> bool {
    operation.secrets == Secrets::Hidden
        && is_secret(&attribute.description)
        && attribute.values.iter().any(|value| **value == *STAR)
}

fn hidden(attribute: &Attribute<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"# ");
    crate::view::plain(&attribute.description, out);
    out.extend_from_slice(b": *  (--show-secrets)\n");
}

fn values(attribute: &Attribute<'_>, operation: &Operation<'_>, out: &mut Vec<u8>) {
    if is_hidden(attribute, operation) {
        return hidden(attribute, out);
    }
    for value in &attribute.values {
        Writer::new(out).value(&attribute.description, value);
    }
}

fn modification(
    operation: ChangeOperation,
    attribute: &Attribute<'_>,
    of: &Operation<'_>,
    out: &mut Vec<u8>,
) -> bool {
    if is_hidden(attribute, of) {
        hidden(attribute, out);
        return false;
    }
    let word = match operation {
        ChangeOperation::Add => "add",
        ChangeOperation::Delete => "delete",
        ChangeOperation::Replace => "replace",
        ChangeOperation::Increment => "increment",
    };
    Writer::new(out).value(word, attribute.description.as_bytes());
    values(attribute, of, out);
    out.extend_from_slice(b"-\n");
    true
}
