//! Writes: what is asked for is checked and made ready on the caller's thread, then done in one
//! job of the store's committer, and answered when it is on the disk.
//!
//! A job makes all its checks before its first change, and can be run again.

mod add;
mod delete;
mod draft;
pub(crate) mod edit;
mod modify;
mod password_modify;
mod read_entry;
mod redefine;
mod rename;
mod secret;
mod upgrade;
mod values;
mod vet;

pub(crate) use add::{Add, Source};
pub(crate) use delete::Delete;
pub(crate) use draft::Draft;
pub(crate) use edit::{describe, keep_once};
pub(crate) use modify::Modify;
pub use password_modify::{PasswordModify, no_such_identity};
pub(crate) use rename::Rename;

use crate::access::{Place as AccessPlace, RULE, Rights, Rule, Subject, View};
use crate::candidate::Candidate;
use crate::controls::{RequestControls, ResponseControl};
use crate::directory::{Core, Current, Directory};
use crate::evaluate::{Evaluator, Truth};
use crate::failure::{Failure, Result};
use crate::locate::{Seeking, locate};
use crate::log::Audit;
use crate::log::stages::{self, Stage};
use crate::made::Handover;
use crate::naming::{self, NamingContext, Place};
use crate::policy::micros;
use crate::redefine::{Redefinition, install, require_generation};
use crate::search::Selection;
use keyway_codec::message::{AddRequest, ModifyDnRequest, ModifyRequest, Op, ResultCode};
use keyway_codec::secret::SECRETS;
use keyway_schema::operational::{MODIFIERS_NAME, MODIFY_TIMESTAMP};
use keyway_schema::{EntryAttributes, EntryName, Matcher, Schema};
use keyway_store::{EntryId, EntryRef, Names, Store, View as Tree, Write};
pub(crate) use secret::{Giver, Secrets};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, PoisonError};
use tokio::sync::oneshot;
pub(crate) use upgrade::Upgrades;
pub(crate) use values::LargeDraft;
use vet::Old;

/// What a write that was done answers.
#[derive(Clone, Debug, Default)]
pub struct WriteDone {
    /// The controls to answer with.
    pub response_controls: Vec<ResponseControl>,
    /// The access rules that entries hold now, if it has changed any.
    pub(crate) rules: Option<Vec<Rule>>,
}

/// A client's write that was understood, or why it is refused.
pub struct PreparedWrite(Result<Operation>);

/// A write that is ready to be done.
pub(crate) enum Operation {
    Add(Add),
    Delete(Delete),
    Modify(Modify),
    Rename(Rename),
    /// A change of the schema; `None` if it changes nothing.
    Redefine(Option<Redefinition>),
    /// A change of an entry that nobody has stored.
    Made(Handover),
}

impl Operation {
    /// Understands a client's request; `None` if it is no write.
    pub fn of(
        core: &Arc<Core>,
        subject: &Subject,
        op: &Op<'_>,
        controls: &RequestControls<'_>,
    ) -> Option<Result<Operation>> {
        Some(match op {
            Op::AddRequest(add) => Add::new(core, subject, add, controls).map(Operation::Add),
            Op::ModifyRequest(modify) => Operation::modify(core, subject, modify, controls),
            Op::DeleteRequest(dn) => {
                Delete::new(core, subject, dn, controls).map(Operation::Delete)
            }
            Op::ModifyDnRequest(rename) => {
                Rename::new(core, subject, rename, controls).map(Operation::Rename)
            }
            _ => return None,
        })
    }

    /// Understands a client's modify.
    fn modify(
        core: &Arc<Core>,
        subject: &Subject,
        request: &ModifyRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> Result<Operation> {
        if request.changes.is_empty() {
            // It would need no right, and change who has changed the entry last.
            let text = "the request has no change in it";
            return Err(Failure::new(ResultCode::ProtocolError, text));
        }
        let name = EntryName::parse(&core.schema, request.dn)?;
        match naming::place(&core.shared.contexts(), &name) {
            Place::Subschema => {
                let redefinition = redefine::redefinition(core, subject, request, controls);
                return redefinition.map(Operation::Redefine);
            }
            Place::Made(tree) => {
                let made = Handover::new(core, subject, request, controls, (tree, &name));
                return made.map(Operation::Made);
            }
            _ => {}
        }
        Modify::new(core, subject, request, controls).map(Operation::Modify)
    }

    /// Whether anybody could be in other groups when it is done.
    pub fn changes_groups(&self, core: &Core) -> bool {
        let is_membership = |name: &str| core.integrity.is_membership(name);
        match self {
            Operation::Add(add) => add.attributes.iter().any(|(name, _)| is_membership(name)),
            Operation::Modify(modify) => modify.edits.iter().any(|edit| is_membership(&edit.name)),
            // Groups and their members go by their names.
            Operation::Delete(_) | Operation::Rename(_) => true,
            // What a group is may change with the schema.
            Operation::Redefine(_) => true,
            Operation::Made(_) => false,
        }
    }

    /// Does it. May be called again if what it did was undone.
    ///
    /// # Errors
    /// Also `busy`, if the schema was changed since it was prepared.
    pub fn apply(&self, core: &Core, write: &mut Write<'_>) -> Result<WriteDone> {
        if let Some(request) = self.request() {
            require_generation(write, request.generation)?;
        }
        let done = match self {
            // It is for others to do.
            Operation::Made(_) => return Err(unwilling("this is not stored")),
            Operation::Redefine(None) => return Ok(WriteDone::default()),
            Operation::Redefine(Some(redefinition)) => {
                return redefinition.apply(write).map(|()| WriteDone::default());
            }
            Operation::Add(add) => add.apply(core, write),
            Operation::Delete(delete) => delete.apply(core, write),
            Operation::Modify(modify) => modify.apply(core, write),
            Operation::Rename(rename) => rename.apply(core, write),
        };
        done.map_err(|failure| match self.request() {
            Some(request) => request.disclosed(core, write.view(), failure),
            None => failure,
        })
    }

    fn request(&self) -> Option<&Request> {
        match self {
            Operation::Add(add) => Some(add.request()),
            Operation::Delete(delete) => Some(delete.request()),
            Operation::Modify(modify) => Some(modify.request()),
            Operation::Rename(rename) => Some(rename.request()),
            Operation::Redefine(_) | Operation::Made(_) => None,
        }
    }

    /// The state of the schema that it leaves, if it changes it.
    fn next(&self) -> Option<Arc<Core>> {
        match self {
            Operation::Redefine(redefinition) => redefinition.as_ref().map(Redefinition::next),
            _ => None,
        }
    }

    /// Whose passwords it would store.
    fn giver(&self) -> Giver {
        let subject = match self {
            Operation::Add(add) => add.subject(),
            Operation::Modify(modify) => modify.subject(),
            // They store none.
            Operation::Delete(_)
            | Operation::Rename(_)
            | Operation::Redefine(_)
            | Operation::Made(_) => return Giver::User,
        };
        if subject.is_administrator() { Giver::Administrator } else { Giver::User }
    }
}

/// What all writes have in common.
pub(crate) struct Request {
    /// The schema's, under which it was understood.
    pub generation: u64,
    pub subject: Subject,
    pub name: EntryName,
    pub context: Arc<NamingContext>,
    /// RDNs below the context's top.
    pub below: usize,
    /// Which entry has to be there.
    pub needed: Needed,
    /// Who does it and when, as the entry will say.
    pub stamp: Stamp,
    /// When, in microseconds since 1970.
    pub now: u64,
    /// Referral objects are entries like others.
    pub manages_referrals: bool,
    pub assertion: Option<Matcher>,
    pub pre_read: Option<Selection>,
    pub post_read: Option<Selection>,
}

/// Which entry has to be there for a write, so that a failure says something of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    /// The entry of the name.
    Itself,
    /// The entry above it, of an add.
    Parent,
}

/// Who changes an entry, and when.
#[derive(Clone)]
pub(crate) struct Stamp {
    pub author: String,
    pub time: String,
}

impl Stamp {
    /// Enters it as the last change.
    pub fn mark(&self, attributes: &mut EntryAttributes) {
        edit::set(attributes, MODIFIERS_NAME, &self.author);
        edit::set(attributes, MODIFY_TIMESTAMP, &self.time);
    }
}

impl Request {
    /// Understands name and controls, and refuses a subject that has none of these rights before
    /// it learns what there is.
    fn new(
        core: &Core,
        subject: &Subject,
        dn: &str,
        one_of: Rights,
        controls: &RequestControls<'_>,
    ) -> Result<Request> {
        let name = EntryName::parse(&core.schema, dn)?;
        let contexts = core.shared.contexts();
        let (context, below) = match naming::place(&contexts, &name) {
            Place::Inside { context, below } => (context.clone(), below),
            place => {
                let asked = match place {
                    Place::Made(tree) => tree.place(),
                    _ => AccessPlace::Data,
                };
                if !core.permissions(subject, asked).may_anywhere(one_of) {
                    return Err(Failure::denied("change this"));
                }
                return Err(match place {
                    Place::Made(_) => {
                        unwilling("entries here can be modified, not added, deleted or renamed")
                    }
                    Place::Root => unwilling("the root DSE cannot be changed"),
                    Place::Subschema => {
                        unwilling("the schema's entry can be modified, not deleted or renamed")
                    }
                    _ => Failure::no_such_object("").context(
                        "no naming context holds this DN; one more is held if naming_contexts of \
                         keyway.toml names it",
                    ),
                });
            }
        };
        if !core.permissions(subject, context.place()).may_anywhere(one_of) {
            return Err(Failure::denied("change this"));
        }
        let selection = |wanted: &Option<Vec<&str>>| {
            wanted.as_ref().map(|wanted| Selection::new(&core.schema, wanted, false))
        };
        Ok(Request {
            generation: core.generation,
            subject: subject.clone(),
            name,
            context,
            below,
            needed: Needed::Itself,
            stamp: Stamp {
                author: subject.name().as_deref().unwrap_or_default().to_owned(),
                time: core.shared.timestamp(),
            },
            now: micros(core.shared.now()),
            manages_referrals: controls.manage_dsa_it,
            assertion: controls.assertion.as_ref().map(|one| Matcher::new(&core.schema, one)),
            pre_read: selection(&controls.pre_read),
            post_read: selection(&controls.post_read),
        })
    }

    /// The subject's rights where the entry is.
    fn rights(&self, core: &Core) -> View {
        core.permissions(&self.subject, self.context.place())
    }

    /// What its subject may be told of a failure.
    fn disclosed(&self, core: &Core, view: Tree<'_>, failure: Failure) -> Failure {
        let (name, below) = match self.needed {
            Needed::Itself => (self.name.clone(), self.below),
            // Above the top of a naming context there is nothing to tell of.
            Needed::Parent if self.below == 0 => return failure,
            Needed::Parent => (self.name.parent(), self.below - 1),
        };
        core.disclosed(view, &self.rights(core), (&self.context, &name, below), failure)
    }

    /// The entry that is to be changed.
    fn find<'w>(&self, core: &Core, view: Tree<'w>) -> Result<(EntryId, EntryRef<'w>)> {
        let id = self.locate(core, view, &self.name)?;
        let entry = view.entry(id)?.ok_or_else(|| Failure::no_such_object(""))?;
        Ok((id, entry))
    }

    /// The entry of a name.
    fn locate(&self, core: &Core, view: Tree<'_>, name: &EntryName) -> Result<EntryId> {
        let manages_referrals =
            self.manages_referrals || !core.standing.may_have_referrals(view)?;
        let how = Seeking { manages_referrals, ..Seeking::default() };
        Ok(locate(&core.schema, &core.shared.contexts(), view, name, how)?.id)
    }

    /// By which component the entry hangs from the one above.
    fn component(&self) -> Result<&[u8]> {
        component(&self.context, &self.name, self.below)
    }

    /// RFC 4528.
    fn assert_entry(
        &self,
        core: &Core,
        write: &Write<'_>,
        id: EntryId,
        entry: EntryRef<'_>,
    ) -> Result<()> {
        let Some(matcher) = &self.assertion else { return Ok(()) };
        let (rights, names) = (self.rights(core), RefCell::new(Names::new()));
        let candidate = Candidate::stored(core, id, entry, write.view(), &names);
        asserted(Evaluator::search(&core.schema, &rights).matches(matcher, &candidate)?)
    }
}

/// By which component an entry hangs from the one above.
fn component<'n>(
    context: &'n NamingContext,
    name: &'n EntryName,
    below: usize,
) -> Result<&'n [u8]> {
    if below == 0 {
        return Ok(&context.component);
    }
    let first = name.parts.first();
    first.and_then(|part| part.component.as_deref()).ok_or_else(|| {
        let text = "the attribute of the RDN is not known, or not made for naming";
        Failure::new(ResultCode::UndefinedAttributeType, text)
    })
}

/// What an assertion control makes of its filter's truth.
///
/// # Errors
/// `assertionFailed` unless it is true.
pub(crate) fn asserted(truth: Truth) -> Result<()> {
    match truth {
        Truth::True => Ok(()),
        _ => Err(Failure::new(ResultCode::AssertionFailed, "the entry does not match")),
    }
}

pub(crate) fn unwilling(why: impl Into<String>) -> Failure {
    Failure::new(ResultCode::UnwillingToPerform, why)
}

/// The RDN of a stored entry, as it was written.
fn rdn_of(entry: &EntryRef<'_>) -> Result<keyway_codec::dn::Rdn> {
    // The top of a naming context is stored under its whole name.
    let dn = keyway_codec::dn::Dn::parse(entry.rdn());
    let rdn = dn.ok().and_then(|dn| dn.rdns.into_iter().next());
    rdn.ok_or_else(|| Failure::new(ResultCode::Other, "a stored RDN is malformed"))
}

/// Checks that an RDN can name an entry: each type once, and none that only the server sets.
fn check_rdn(schema: &Schema, rdn: &keyway_codec::dn::Rdn) -> Result<()> {
    for (index, ava) in rdn.avas.iter().enumerate() {
        let Some(attribute) = schema.attribute(&ava.attribute) else {
            let text = format!("attribute {} of the RDN is not known", ava.attribute);
            return Err(Failure::new(ResultCode::UndefinedAttributeType, text));
        };
        edit::require_writable(attribute)?;
        let violation = |what: &str| {
            let text = format!("attribute {} {what}", attribute.name());
            Err(Failure::new(ResultCode::NamingViolation, text))
        };
        if attribute.equality().is_none() {
            return violation("has no equality rule and cannot name an entry");
        }
        let is_secret = |name: &&str| name.eq_ignore_ascii_case(attribute.name());
        if SECRETS.iter().any(is_secret) {
            return violation(
                "holds passwords or keys, which names show to everybody, and cannot name an entry",
            );
        }
        if attribute.name() == RULE {
            return violation("says who may do what and cannot name an entry");
        }
        let mut before = rdn.avas.iter().take(index);
        if before.any(|other| schema.attribute(&other.attribute) == Some(attribute)) {
            return violation("is in the RDN twice");
        }
    }
    Ok(())
}

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
            Ok(()) => Operation::of(&self.core(), subject, op, controls)?,
            Err(failure) => Err(failure),
        };
        Some(PreparedWrite(prepared))
    }

    /// Adds an entry (RFC 4511 § 4.7). The superclasses of its classes and the values of its RDN
    /// are added if they are not given; passwords are hashed.
    ///
    /// What is asked is checked, and submitted to the store unless passwords are to be hashed
    /// first, before this returns. The future resolves when the entry is on the disk; dropping it
    /// does not undo anything.
    pub fn add(
        &self,
        subject: &Subject,
        request: &AddRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> impl Future<Output = Result<WriteDone>> + Send + 'static + use<> {
        let prepared = self.refresh(subject);
        let prepared = prepared.and_then(|()| Add::new(&self.core(), subject, request, controls));
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
        let prepared = prepared.and_then(|()| Delete::new(&self.core(), subject, dn, controls));
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
            prepared.and_then(|()| Operation::modify(&self.core(), subject, request, controls));
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
            prepared.and_then(|()| Rename::new(&self.core(), subject, request, controls));
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
        let prepared =
            prepared.and_then(|()| Modify::password(&self.core(), subject, dn, hashed, gave_old));
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
        let core = self.core();
        let (store, current) = (self.store.clone(), self.current.clone());
        async move {
            let answer = match started? {
                Started::Submitted(answer) => answer,
                Started::Hashing(mut operation, old, secrets, audit) => {
                    if let Some(old) = old {
                        old.settle(&core, &mut operation).await?;
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
        if let Operation::Made(handover) = operation {
            return Ok(Started::Submitted(handover.submit(audit)));
        }
        let giver = operation.giver();
        let old = self.vet(&mut operation, from)?.map(Box::new);
        let secrets = Secrets::take(&self.shared.passwords, &mut operation, giver)?;
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
    current: &Current,
    operation: Operation,
    audit: Option<Audit>,
) -> Result<oneshot::Receiver<Result<WriteDone>>> {
    let (sender, receiver) = oneshot::channel();
    let core = current.read().unwrap_or_else(PoisonError::into_inner).clone();
    let (next, current, shared) = (operation.next(), current.clone(), core.shared.clone());
    let changes_groups = operation.changes_groups(&core);
    let (laps, committed) = (stages::current(), stages::current());
    let latest = current.clone();
    let audit = audit.map(Arc::new);
    let kept = audit.clone();
    let job = move |write: &mut Write<'_>| {
        laps.iter().for_each(|laps| laps.lap(Stage::Queue));
        // Others may have changed the indexes by the time that it is its turn.
        let core = latest.read().unwrap_or_else(PoisonError::into_inner).clone();
        let done = operation.apply(&core, write)?;
        // Its line is on the disk when the change is.
        kept.as_ref().map_or(Ok(()), |audit| audit.keep(write))?;
        Ok(done)
    };
    // Nobody may be waiting any more: the connection is gone.
    store.submit(job, move |mut result| {
        committed.iter().for_each(|laps| laps.lap(Stage::Store));
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
pub(crate) fn take_rules(current: &Current, rules: Vec<Rule>) {
    let core = current.read().unwrap_or_else(PoisonError::into_inner).clone();
    // They were tried when the change was made, and the configuration's own when they were taken.
    let _ = core.shared.access.store(rules, &core.schema);
}
