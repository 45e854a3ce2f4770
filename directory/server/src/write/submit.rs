//! Writes, from a client's request to the committer and back.

use super::done::WriteDone;
use super::modify::Modify;
use super::operation::Operation;
use super::rename::Rename;
use super::secret::Secrets;
use super::validate::Old;
use crate::access::{Rule, Subject};
use crate::controls::RequestControls;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::feed::{ChangeNote, Reason};
use crate::log::Audit;
use crate::log::stages::{self, Stage};
use crate::policy::micros;
use crate::redefine::install;
use crate::state::CurrentSnapshot;
use keyway_codec::message::{AddRequest, ModifyDnRequest, ModifyRequest, Op, ResultCode};
use keyway_lock::Unpoisoned;
use keyway_store::{Store, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A client's write that was understood, or why it is refused.
pub struct PreparedWrite {
    operation: Result<Operation>,
    /// The DN of its client.
    author: String,
}

/// The request that a change comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestOrigin {
    /// Where its client is.
    pub from: IpAddr,
    /// The number of its connection.
    pub connection: u64,
    /// Its message id.
    pub operation: u32,
}

impl RequestOrigin {
    /// That of a change that came over no connection.
    pub(crate) const HERE: RequestOrigin =
        RequestOrigin { from: IpAddr::V4(Ipv4Addr::UNSPECIFIED), connection: 0, operation: 0 };
}

impl Directory {
    /// Understands a client's write; `None` if it is none.
    pub fn prepare(
        &self,
        subject: &Subject,
        op: &Op<'_>,
        controls: &RequestControls<'_>,
    ) -> Option<PreparedWrite> {
        let prepared = match self.refresh(subject) {
            Ok(()) => Operation::of(&self.snapshot(), subject, op, controls)?,
            Err(failure) => Err(failure),
        };
        Some(PreparedWrite { operation: prepared, author: author(subject) })
    }

    /// Adds an entry (RFC 4511 § 4.7). The superclasses of its classes and the values of its RDN
    /// are added if they are not given; passwords are hashed.
    ///
    /// The request is checked, and submitted to the store unless passwords are to be hashed
    /// first, before this returns. The future resolves when the entry is on the disk; dropping it
    /// does not undo anything.
    pub fn add(
        &self,
        subject: &Subject,
        request: &AddRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> impl Future<Output = Result<WriteDone>> + Send + 'static + use<> {
        let prepared = self.refresh(subject);
        let prepared =
            prepared.and_then(|()| Operation::add(&self.snapshot(), subject, request, controls));
        self.carry_out_here(prepared, subject)
    }

    /// Deletes an entry without children (RFC 4511 § 4.8). As [`Directory::add`].
    pub fn delete(
        &self,
        subject: &Subject,
        dn: &str,
        controls: &RequestControls<'_>,
    ) -> impl Future<Output = Result<WriteDone>> + Send + 'static + use<> {
        let prepared = self.refresh(subject);
        let prepared =
            prepared.and_then(|()| Operation::delete(&self.snapshot(), subject, dn, controls));
        self.carry_out_here(prepared, subject)
    }

    /// Changes attributes of an entry, all as asked or nothing (RFC 4511 § 4.6). As
    /// [`Directory::add`].
    pub fn modify(
        &self,
        subject: &Subject,
        request: &ModifyRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> impl Future<Output = Result<WriteDone>> + Send + 'static + use<> {
        let prepared = self.refresh(subject);
        let prepared =
            prepared.and_then(|()| Operation::modify(&self.snapshot(), subject, request, controls));
        self.carry_out_here(prepared, subject)
    }

    /// Renames or moves an entry and all below it (RFC 4511 § 4.9). As [`Directory::add`].
    pub fn modify_dn(
        &self,
        subject: &Subject,
        request: &ModifyDnRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> impl Future<Output = Result<WriteDone>> + Send + 'static + use<> {
        let prepared = self.refresh(subject);
        let prepared =
            prepared.and_then(|()| Rename::new(&self.snapshot(), subject, request, controls));
        self.carry_out_here(prepared.map(Operation::Rename), subject)
    }

    /// Sets an entry's password to a value that is hashed already, on behalf of the subject.
    pub(crate) fn set_password(
        &self,
        subject: &Subject,
        (dn, hashed, gave_old): (&str, Vec<u8>, bool),
        origin: RequestOrigin,
        audit: Option<Audit>,
    ) -> impl Future<Output = Result<()>> + Send + 'static + use<> {
        let prepared = self.refresh(subject);
        let prepared = prepared
            .and_then(|()| Modify::password(&self.snapshot(), subject, dn, hashed, gave_old));
        // It was hashed here, so nothing is left to be taken out of it.
        let submitted = prepared.and_then(|modify| {
            let note = self.note_of(author(subject), origin);
            submit(&self.store, &self.current, (Operation::Modify(modify), note), audit)
        });
        async move { answered(submitted?).await.map(drop) }
    }

    /// Does a write that is prepared. The change is written into the audit log, also if
    /// its client does not wait. As [`Directory::add`].
    pub fn carry_out(
        &self,
        prepared: PreparedWrite,
        origin: RequestOrigin,
        audit: Option<Audit>,
    ) -> impl Future<Output = Result<WriteDone>> + Send + 'static + use<> {
        let PreparedWrite { operation, author } = prepared;
        let note = self.note_of(author, origin);
        let started = operation
            .and_then(|operation| self.start((operation, note.clone()), origin.from, audit));
        let snapshot = self.snapshot();
        let (store, current) = (self.store.clone(), self.current.clone());
        async move {
            let answer = match started? {
                Started::Submitted(answer) => answer,
                Started::Hashing(mut operation, old, secrets, audit) => {
                    if let Some(old) = old {
                        old.settle(&snapshot, &mut operation).await?;
                    }
                    secrets.put_hashed(&mut operation).await?;
                    submit(&store, &current, (*operation, note), audit.map(|audit| *audit))?
                }
            };
            answered(answer).await
        }
    }

    fn carry_out_here(
        &self,
        operation: Result<Operation>,
        subject: &Subject,
    ) -> impl Future<Output = Result<WriteDone>> + Send + 'static + use<> {
        let prepared = PreparedWrite { operation, author: author(subject) };
        self.carry_out(prepared, RequestOrigin::HERE, None)
    }

    /// The note on a change that a client asks for.
    fn note_of(&self, author: String, origin: RequestOrigin) -> ChangeNote {
        ChangeNote {
            at: micros(self.now()),
            reason: Reason::Request,
            connection: origin.connection,
            operation: origin.operation,
            author,
        }
    }

    fn start(
        &self,
        (mut operation, note): (Operation, ChangeNote),
        from: IpAddr,
        audit: Option<Audit>,
    ) -> Result<Started> {
        if let Operation::Virtual(handover) = operation {
            return Ok(Started::Submitted(handover.submit(audit)));
        }
        let source = operation.password_source();
        let old = self.validate(&mut operation, from)?.map(Box::new);
        let secrets = Secrets::take(&self.shared.passwords, &mut operation, source)?;
        // Submitted at once if it can be, so that a client's writes are done in their order.
        match secrets.is_empty() && old.is_none() {
            true => {
                let submitted = submit(&self.store, &self.current, (operation, note), audit);
                Ok(Started::Submitted(submitted?))
            }
            false => Ok(Started::Hashing(Box::new(operation), old, secrets, audit.map(Box::new))),
        }
    }
}

fn author(subject: &Subject) -> String {
    subject.name().as_deref().unwrap_or_default().to_owned()
}

async fn answered(answer: oneshot::Receiver<Result<WriteDone>>) -> Result<WriteDone> {
    let gone = |_| Failure::new(ResultCode::Unavailable, "the store was closed");
    answer.await.map_err(gone)?
}

/// How far a write has got before it is waited for.
enum Started {
    Submitted(oneshot::Receiver<Result<WriteDone>>),
    Hashing(Box<Operation>, Option<Box<Old>>, Secrets, Option<Box<Audit>>),
}

fn submit(
    store: &Store,
    current: &CurrentSnapshot,
    (operation, note): (Operation, ChangeNote),
    audit: Option<Audit>,
) -> Result<oneshot::Receiver<Result<WriteDone>>> {
    let (sender, receiver) = oneshot::channel();
    let snapshot = current.read().unpoisoned().clone();
    let (next, current, shared) = (operation.next(), current.clone(), snapshot.shared.clone());
    let changes_groups = operation.changes_groups(&snapshot);
    let (timer, committed) = (stages::current(), stages::current());
    let latest = current.clone();
    let audit = audit.map(Arc::new);
    let (kept, note) = (audit.clone(), note.encode());
    let job = move |write: &mut Write<'_>| {
        timer.iter().for_each(|timer| timer.lap(Stage::Queue));
        write.note(&note);
        // Others may have changed the indexes by the time that it is its turn.
        let snapshot = latest.read().unpoisoned().clone();
        let done = operation.apply(&snapshot, write)?;
        // Its line is on the disk when the change is.
        kept.as_ref().map_or(Ok(()), |audit| audit.keep(write))?;
        Ok(done)
    };
    // The client may be gone with its connection.
    store.submit(job, move |mut result| {
        committed.iter().for_each(|timer| timer.lap(Stage::Store));
        if let (Ok(_), Some(next)) = (&result, next) {
            install(&shared, &current, Some(next), None);
        }
        if let Ok(WriteDone { rules: Some(rules), .. }) = &mut result {
            take_rules(&current, std::mem::take(rules));
        }
        if result.is_ok() && changes_groups {
            shared.access.groups_changed();
        }
        if let (Ok(_), Some(audit)) = (&result, audit) {
            audit.done();
        }
        drop(sender.send(result));
    })?;
    Ok(receiver)
}

/// Uses the access rules that a change has left in the entries.
pub(crate) fn take_rules(current: &CurrentSnapshot, rules: Vec<Rule>) {
    let snapshot = current.read().unpoisoned().clone();
    // They were tried when the change was made, and the configuration's own when they were taken.
    let _ = snapshot.shared.access.store(rules, &snapshot.schema);
}
