//! The part that all writes have in common: the entry, its author, and the conditions.

use super::edit;
use crate::access::{Place as AccessPlace, Rights, Subject, View};
use crate::candidate::Candidate;
use crate::controls::RequestControls;
use crate::evaluate::{Evaluator, asserted};
use crate::failure::{Failure, Result, unwilling};
use crate::locate::{Seeking, locate};
use crate::naming::{self, NamingContext, Place};
use crate::policy::micros;
use crate::search::Selection;
use crate::state::Snapshot;
use keyway_codec::message::ResultCode;
use keyway_schema::operational::{MODIFIERS_NAME, MODIFY_TIMESTAMP};
use keyway_schema::{EntryAttributes, EntryName, Matcher};
use keyway_store::{EntryId, EntryRef, Names, View as Tree, Write};
use std::cell::RefCell;
use std::sync::Arc;

/// The part that all writes have in common.
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
    /// What else only the server sets is taken as it is given: an entry is to come back as it was.
    pub is_relaxed: bool,
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
    pub fn new(
        snapshot: &Snapshot,
        subject: &Subject,
        dn: &str,
        one_of: Rights,
        controls: &RequestControls<'_>,
    ) -> Result<Request> {
        let name = snapshot.entry_name(dn)?.into_name();
        let contexts = snapshot.shared.contexts();
        let (context, below) = match naming::place(&contexts, &name) {
            Place::Inside { context, below } => (context.clone(), below),
            place => {
                let asked = match place {
                    Place::Virtual(tree) => tree.place(),
                    _ => AccessPlace::Data,
                };
                if !snapshot.permissions(subject, asked).may_anywhere(one_of) {
                    return Err(Failure::denied("change this"));
                }
                return Err(match place {
                    Place::Virtual(_) => unwilling(
                        "this entry is not stored: it cannot be renamed, and has no password",
                    ),
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
        if !snapshot.permissions(subject, context.place()).may_anywhere(one_of) {
            return Err(Failure::denied("change this"));
        }
        if controls.relax && !subject.is_administrator() {
            return Err(Failure::denied("relax rules: only the administrator may"));
        }
        let selection = |wanted: &Option<Vec<&str>>| {
            wanted.as_ref().map(|wanted| Selection::new(&snapshot.schema, wanted, false))
        };
        Ok(Request {
            generation: snapshot.generation,
            subject: subject.clone(),
            name,
            context,
            below,
            needed: Needed::Itself,
            stamp: Stamp {
                author: subject.name().as_deref().unwrap_or_default().to_owned(),
                time: snapshot.shared.timestamp(),
            },
            now: micros(snapshot.shared.now()),
            is_relaxed: controls.relax,
            manages_referrals: controls.manage_dsa_it,
            assertion: controls.assertion.as_ref().map(|one| Matcher::new(&snapshot.schema, one)),
            pre_read: selection(&controls.pre_read),
            post_read: selection(&controls.post_read),
        })
    }

    /// The subject's rights where the entry is.
    pub fn rights(&self, snapshot: &Snapshot) -> View {
        snapshot.permissions(&self.subject, self.context.place())
    }

    /// A failure as its subject may be told it.
    pub fn disclosed(&self, snapshot: &Snapshot, view: Tree<'_>, failure: Failure) -> Failure {
        let (name, below) = match self.needed {
            Needed::Itself => (self.name.clone(), self.below),
            // Above the top of a naming context there is nothing to tell of.
            Needed::Parent if self.below == 0 => return failure,
            Needed::Parent => (self.name.parent(), self.below - 1),
        };
        snapshot.disclosed(view, &self.rights(snapshot), (&self.context, &name, below), failure)
    }

    /// The entry that is to be changed.
    pub fn find<'w>(&self, snapshot: &Snapshot, view: Tree<'w>) -> Result<(EntryId, EntryRef<'w>)> {
        let id = self.locate(snapshot, view, &self.name)?;
        let entry = view.entry(id)?.ok_or_else(|| Failure::no_such_object(""))?;
        Ok((id, entry))
    }

    /// The entry of a name.
    pub fn locate(&self, snapshot: &Snapshot, view: Tree<'_>, name: &EntryName) -> Result<EntryId> {
        let manages_referrals =
            self.manages_referrals || !snapshot.special_entries.may_have_referrals(view)?;
        let how = Seeking { manages_referrals, ..Seeking::default() };
        let knows = snapshot.known_to(view, &self.subject);
        Ok(locate(&snapshot.schema, &snapshot.shared.contexts(), view, name, how, &knows)?.id)
    }

    /// By which component the entry hangs from the one above.
    pub fn component(&self) -> Result<&[u8]> {
        component(&self.context, &self.name, self.below)
    }

    /// RFC 4528.
    pub fn assert_entry(
        &self,
        snapshot: &Snapshot,
        write: &Write<'_>,
        id: EntryId,
        entry: EntryRef<'_>,
    ) -> Result<()> {
        let Some(matcher) = &self.assertion else { return Ok(()) };
        let (rights, names) = (self.rights(snapshot), RefCell::new(Names::new()));
        let candidate = Candidate::stored(snapshot, id, entry, write.view(), &names);
        asserted(Evaluator::search(&snapshot.schema, &rights).matches(matcher, &candidate)?)
    }
}

/// By which component an entry hangs from the one above.
pub(super) fn component<'n>(
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
