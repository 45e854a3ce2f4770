//! The audit log: who changed what.

use super::handle::Log;
use super::kept::Kept;
use crate::failure::Result;
use crate::limits::{AUDITED_CHANGES_MAX, LOGGED_TEXT_BYTES_MAX};
use keyway_codec::message::{ChangeOperation, Op};
use keyway_store::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// A change that was asked for, to be written down when it is on the disk: then, and also if its client has gone.
pub struct Audit {
    log: Log,
    wall_clock: fn() -> SystemTime,
    request: AuditedRequest,
    change: AuditedChange,
    /// When it was done: its line is the same wherever it is.
    at: OnceLock<SystemTime>,
    /// The number of the row after its own, once it is kept.
    next: AtomicU64,
}

/// The request that asked for a change.
pub struct AuditedRequest {
    /// The number of its connection.
    pub connection: u64,
    /// Its message id.
    pub operation: u32,
    /// Where its client is.
    pub from: String,
    /// Who asked for it.
    pub author: String,
}

/// The change of an operation, without any value.
#[derive(Default)]
pub struct AuditedChange {
    /// The operation, as a word for programs.
    pub event: &'static str,
    /// The DN of the entry.
    pub dn: String,
    /// Attributes, and what is done to them.
    attributes: Vec<String>,
    new_rdn: String,
    new_superior: String,
}

impl AuditedChange {
    /// The change that an operation makes; `None` if it makes none.
    pub fn of(op: &Op<'_>) -> Option<AuditedChange> {
        match op {
            Op::AddRequest(add) => {
                let names = add.attributes.iter().map(|attribute| cut(&attribute.description));
                Some(AuditedChange { attributes: some(names), ..AuditedChange::new("add", add.dn) })
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
                Some(AuditedChange {
                    attributes: some(changes),
                    ..AuditedChange::new("modify", modify.dn)
                })
            }
            Op::DeleteRequest(dn) => Some(AuditedChange::new("delete", dn)),
            Op::ModifyDnRequest(rename) => Some(AuditedChange {
                new_rdn: cut(rename.new_rdn),
                new_superior: rename.new_superior.map(cut).unwrap_or_default(),
                ..AuditedChange::new("rename", rename.dn)
            }),
            _ => None,
        }
    }

    /// A change of an entry.
    pub fn new(event: &'static str, dn: &str) -> AuditedChange {
        AuditedChange { event, dn: cut(dn), ..AuditedChange::default() }
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
    /// A line for a change that is to be made.
    pub fn new(
        log: Log,
        wall_clock: fn() -> SystemTime,
        request: AuditedRequest,
        change: AuditedChange,
    ) -> Audit {
        Audit { log, wall_clock, request, change, at: OnceLock::new(), next: AtomicU64::new(0) }
    }

    /// Keeps its line in the store, with the change itself. May be called again, if the change is made again.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn keep(&self, write: &mut Write<'_>) -> Result<()> {
        let next = self.line().put(write)?;
        self.next.store(next, Ordering::Relaxed);
        Ok(())
    }

    /// It is done.
    pub(crate) fn done(&self) {
        self.line().record(|record| self.log.put(record));
        self.log.said(self.next.load(Ordering::Relaxed));
    }

    /// It is done, and no transaction of the store has its line: the line goes to the disk by itself.
    pub(crate) fn done_beside_the_store(&self) {
        self.done();
        self.log.sync();
    }

    fn line(&self) -> Kept {
        let AuditedChange { event, dn, attributes, new_rdn, new_superior } = &self.change;
        Kept {
            at: *self.at.get_or_init(self.wall_clock),
            connection: self.request.connection,
            operation: self.request.operation.into(),
            event: (*event).to_owned(),
            from: self.request.from.clone(),
            author: self.request.author.clone(),
            dn: dn.clone(),
            new_rdn: new_rdn.clone(),
            new_superior: new_superior.clone(),
            attributes: attributes.clone(),
        }
    }
}
