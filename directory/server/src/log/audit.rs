//! The audit log: who changed what.

use super::Log;
use super::kept::Kept;
use crate::failure::Result;
use crate::limits::{AUDITED_CHANGES_MAX, LOGGED_TEXT_BYTES_MAX};
use crate::network::Peer;
use keyway_codec::message::{ChangeOperation, Op};
use keyway_store::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// When it was done: its line is the same wherever it is.
    pub at: OnceLock<SystemTime>,
    /// The number of the row after its own, once it is kept.
    pub next: AtomicU64,
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
    /// Keeps its line in the store, with the change itself. May be called again, if the change is made again.
    ///
    /// # Errors
    /// The store's.
    pub fn keep(&self, write: &mut Write<'_>) -> Result<()> {
        let next = self.line().put(write)?;
        self.next.store(next, Ordering::Relaxed);
        Ok(())
    }

    /// It is done.
    pub fn done(&self) {
        self.line().record(|record| self.log.put(record));
        self.log.said(self.next.load(Ordering::Relaxed));
    }

    fn line(&self) -> Kept {
        let Change { event, dn, attributes, new_rdn, new_superior } = &self.change;
        Kept {
            at: *self.at.get_or_init(self.clock),
            connection: self.connection,
            operation: self.operation.into(),
            event: (*event).to_owned(),
            from: self.peer.to_string(),
            author: self.author.clone(),
            dn: dn.clone(),
            new_rdn: new_rdn.clone(),
            new_superior: new_superior.clone(),
            attributes: attributes.clone(),
        }
    }
}
