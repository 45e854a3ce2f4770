//! Writes, from a client's request to the committer and back.

use super::add::Add;
use super::delete::Delete;
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
use crate::log::Audit;
use crate::log::stages::{self, Stage};
use crate::redefine::install;
use crate::state::CurrentSnapshot;
use keyway_codec::message::{AddRequest, ModifyDnRequest, ModifyRequest, Op, ResultCode};
use keyway_lock::Unpoisoned;
use keyway_store::{Store, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A client's write that was understood, or why it is refused.
pub struct PreparedWrite(Result<Operation>);

/// Where a change comes from that came over no connection.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

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
        Some(PreparedWrite(prepared))
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
            prepared.and_then(|()| Add::new(&self.snapshot(), subject, request, controls));
        self.carry_out_prepared(prepared.map(Operation::Add), HERE, None)
    }

    /// Deletes an entry without children (RFC 4511 § 4.8). As [`Directory::add`].
    pub fn delete(
        &self,
        subject: &Subject,
        dn: &str,
        controls: &RequestControls<'_>,
    ) -> impl Future<Output = Result<WriteDone>> + Send + 'static + use<> {
        let prepared = self.refresh(subject);
        let prepared = prepared.and_then(|()| Delete::new(&self.snapshot(), subject, dn, controls));
        self.carry_out_prepared(prepared.map(Operation::Delete), HERE, None)
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
        self.carry_out_prepared(prepared, HERE, None)
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
        self.carry_out_prepared(prepared.map(Operation::Rename), HERE, None)
    }

    /// Sets an entry's password to a value that is hashed already, on behalf of the subject.
    pub(crate) fn set_password(
        &self,
        subject: &Subject,
        dn: &str,
        hashed: Vec<u8>,
        gave_old: bool,
        audit: Option<Audit>,
    ) -> impl Future<Output = Result<()>> + Send + 'static + use<> {
        let prepared = self.refresh(subject);
        let prepared = prepared
            .and_then(|()| Modify::password(&self.snapshot(), subject, dn, hashed, gave_old));
        // It was hashed here, so nothing is left to be taken out of it.
        let submitted = prepared.and_then(|modify| {
            submit(&self.store, &self.current, Operation::Modify(modify), audit)
        });
        async move { answered(submitted?).await.map(drop) }
    }

    /// Does a write that is prepared; `from` is where its client is. The change is written into the audit log, also if
    /// its client does not wait. As [`Directory::add`].
    pub fn carry_out(
        &self,
        prepared: PreparedWrite,
        from: IpAddr,
        audit: Option<Audit>,
    ) -> impl Future<Output = Result<WriteDone>> + Send + 'static + use<> {
        self.carry_out_prepared(prepared.0, from, audit)
    }

    fn carry_out_prepared(
        &self,
        prepared: Result<Operation>,
        from: IpAddr,
        audit: Option<Audit>,
    ) -> impl Future<Output = Result<WriteDone>> + Send + 'static + use<> {
        let started = prepared.and_then(|operation| self.start(operation, from, audit));
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
                    submit(&store, &current, *operation, audit.map(|audit| *audit))?
                }
            };
            answered(answer).await
        }
    }

    fn start(
        &self,
        mut operation: Operation,
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
            true => Ok(Started::Submitted(submit(&self.store, &self.current, operation, audit)?)),
            false => Ok(Started::Hashing(Box::new(operation), old, secrets, audit.map(Box::new))),
        }
    }
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
    operation: Operation,
    audit: Option<Audit>,
) -> Result<oneshot::Receiver<Result<WriteDone>>> {
    let (sender, receiver) = oneshot::channel();
    let snapshot = current.read().unpoisoned().clone();
    let (next, current, shared) = (operation.next(), current.clone(), snapshot.shared.clone());
    let changes_groups = operation.changes_groups(&snapshot);
    let (timer, committed) = (stages::current(), stages::current());
    let latest = current.clone();
    let audit = audit.map(Arc::new);
    let kept = audit.clone();
    let job = move |write: &mut Write<'_>| {
        timer.iter().for_each(|timer| timer.lap(Stage::Queue));
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
