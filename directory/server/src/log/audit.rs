//! The audit log: who changed what.

use super::{Book, Log, Record, Value};
use crate::limits::{AUDITED_CHANGES_MAX, LOGGED_TEXT_BYTES_MAX};
use crate::network::Peer;
use keyway_codec::message::{ChangeOperation, Op};
use std::time::SystemTime;

/// A change that was asked for, to be written down when it is on the disk: then, and also if
/// whoever asked for it has gone.
pub(crate) struct Audit {
    pub log: Log,
    pub clock: fn() -> SystemTime,
    pub connection: u64,
    pub operation: u32,
    pub peer: Peer,
    /// Who asked for it.
    pub author: String,
    pub change: Change,
}

/// What is changed, without any value.
#[derive(Default)]
pub(crate) struct Change {
    pub event: &'static str,
    pub dn: String,
    /// Attributes, and what is done to them.
    attributes: Vec<String>,
    new_rdn: String,
    new_superior: String,
}

impl Change {
    /// What an operation changes; `None` if it is none that does.
    pub fn of(op: &Op<'_>) -> Option<Change> {
        match op {
            Op::AddRequest(add) => {
                let names = add.attributes.iter().map(|attribute| cut(&attribute.description));
                Some(Change { attributes: some(names), ..Change::new("add", add.dn) })
            }
            Op::ModifyRequest(modify) => {
                let changes = modify.changes.iter().map(|change| {
                    let verb = match change.operation {
                        ChangeOperation::Add => "add",
                        ChangeOperation::Delete => "delete",
                        ChangeOperation::Replace => "replace",
                        ChangeOperation::Increment => "increment",
                    };
                    format!("{verb} {}", cut(&change.attribute.description))
                });
                Some(Change { attributes: some(changes), ..Change::new("modify", modify.dn) })
            }
            Op::DeleteRequest(dn) => Some(Change::new("delete", dn)),
            Op::ModifyDnRequest(rename) => Some(Change {
                new_rdn: cut(rename.new_rdn),
                new_superior: rename.new_superior.map(cut).unwrap_or_default(),
                ..Change::new("rename", rename.dn)
            }),
            _ => None,
        }
    }

    /// A change of an entry.
    pub fn new(event: &'static str, dn: &str) -> Change {
        Change { event, dn: cut(dn), ..Change::default() }
    }
}

/// Not more of them than a line may have.
fn some(texts: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = texts.len().saturating_sub(AUDITED_CHANGES_MAX);
    let mut some: Vec<String> = texts.take(AUDITED_CHANGES_MAX).collect();
    if more > 0 {
        some.push(format!("and {more} more"));
    }
    some
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(LOGGED_TEXT_BYTES_MAX)].to_owned()
}

impl Audit {
    /// It is done.
    pub fn done(&self) {
        let change = &self.change;
        let attributes = match change.attributes.is_empty() {
            true => Value::None,
            false => Value::List(&change.attributes),
        };
        let fields = [
            ("connection", Value::Number(self.connection)),
            ("operation", Value::Number(self.operation.into())),
            ("from", Value::Shown(&self.peer)),
            ("as", Value::Text(&self.author)),
            ("dn", Value::Text(&change.dn)),
            ("attributes", attributes),
            ("new_rdn", Value::filled(&change.new_rdn)),
            ("new_superior", Value::filled(&change.new_superior)),
        ];
        let (at, event) = ((self.clock)(), change.event);
        self.log.put(&Record { at, book: Book::Audit, event, fields: &fields });
    }
}
