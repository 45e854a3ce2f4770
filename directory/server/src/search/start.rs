//! Starting a search: its base, its plan, its limits.

use super::bases::SearchBases;
use super::page;
use super::{Cursor, Page, Search, Selection, Target, VirtualEntries, allow, shapes};
use crate::access::{self, Rights, Subject};
use crate::candidate::Candidate;
use crate::controls::RequestControls;
use crate::directory::Directory;
use crate::evaluate::{Evaluator, Truth, asserted};
use crate::failure::{Failure, Result};
use crate::locate::{Located, Seeking, locate_known};
use crate::naming::{self, NamingContext, Place};
use crate::plan::{Source, count_max, plan};
use crate::settings::Announced;
use crate::state::Snapshot;
use crate::virtual_entries::{VirtualEntry, VirtualTree, Wanted};
use keyway_codec::message::{Deref, Scope, SearchRequest};
use keyway_schema::operational::SUBSCHEMA_DN;
use keyway_schema::{EntryAttributes, EntryName, Matcher};
use keyway_store::{EntryId, Read, View};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The inputs of a search's plan.
struct Planned<'a> {
    subject: &'a Subject,
    matcher: &'a Matcher,
    count_max: usize,
}

impl Planned<'_> {
    fn source(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        bases: &SearchBases,
        scope: Scope,
    ) -> Result<Source> {
        let source = plan(snapshot, view, self.matcher, bases.lists(scope), self.count_max)?;
        if let Some(lack) = &source.lack {
            allow::allow(snapshot, view, self.subject, &bases.lists(scope), lack)?;
        }
        Ok(source)
    }
}

impl Directory {
    /// Starts a search. Nothing is returned before it is stepped. `announced` is what the root DSE
    /// says of the connection.
    ///
    /// # Errors
    /// The reason that ends the search before it has begun: the base is missing or not for this subject, the
    /// assertion does not hold, a cookie is not of this query.
    pub fn search(
        &self,
        subject: &Subject,
        request: &SearchRequest<'_>,
        controls: &RequestControls<'_>,
        announced: Announced,
    ) -> Result<Search> {
        let snapshot = &self.snapshot();
        self.refresh(subject)?;
        self.begin(snapshot, subject, request, controls, announced).map_err(|failure| {
            let told = self.told(snapshot, subject, request.base, failure);
            told.unwrap_or_else(|store| store)
        })
    }

    /// A failure to begin as this subject may be told it: nothing of it may say that there is a base.
    #[cold]
    fn told(
        &self,
        snapshot: &Snapshot,
        subject: &Subject,
        base: &str,
        failure: Failure,
    ) -> Result<Failure> {
        let Ok(name) = EntryName::parse(&snapshot.schema, base) else { return Ok(failure) };
        let contexts = snapshot.shared.contexts();
        let Place::Inside { context, below } = naming::place(&contexts, &name) else {
            return Ok(failure);
        };
        if snapshot.may_look(subject, context.place()).is_err() {
            return Ok(failure);
        }
        let read = self.store.read()?;
        let rights = snapshot.permissions(subject, context.place());
        Ok(snapshot.disclosed(read.view(), &rights, (context, &name, below), failure))
    }

    // Inlined: a `Search` is large, and is not to be copied on its way out.
    #[inline]
    fn begin(
        &self,
        snapshot: &Arc<Snapshot>,
        subject: &Subject,
        request: &SearchRequest<'_>,
        controls: &RequestControls<'_>,
        announced: Announced,
    ) -> Result<Search> {
        let matcher = Matcher::new(&snapshot.schema, &request.filter);
        let bounds = Bounds::new(snapshot, subject, request, controls);
        let planned =
            Planned { subject, matcher: &matcher, count_max: count_max(bounds.answer_max) };
        let manages = controls.manage_dsa_it;
        let Found { place, mut target, references } =
            self.target(snapshot, subject, request, &planned, manages, announced)?;
        if let Some(assertion) = &controls.assertion {
            let assertion = Matcher::new(&snapshot.schema, assertion);
            self.assert_target(snapshot, subject, place, &target, &assertion)?;
        }
        let (mut sent, mut page) = (0, None);
        let mut references_left: VecDeque<EntryId> = references.iter().copied().collect();
        if let Some(paged) = &controls.paged {
            let query = page::query(subject, request);
            if !paged.cookie.is_empty() {
                // They came with the first page.
                references_left.clear();
                let position = snapshot.shared.cookies.open(&query, &paged.cookie)?;
                sent = position.sent;
                target.resume(position.after);
                if paged.size == 0 {
                    // RFC 2696 § 3: the client gives up.
                    target = Target::Empty;
                }
            }
            page = Some(Page { query, left: if paged.size == 0 { u32::MAX } else { paged.size } });
        }
        let lack = match &target {
            Target::Tree(cursor) => cursor.source.lack.as_ref(),
            Target::Virtual(_) | Target::Changelog(_) | Target::Empty => None,
        };
        let lacking = lack.map(|lack| snapshot.shared.unindexed.count(lack));
        let shape = shapes::shape_of(request.scope, &request.filter);
        // A virtual entry says nothing of the data.
        if !target.is_virtual() {
            shape.begun(lacking.is_some());
        }
        Ok(Search {
            snapshot: snapshot.clone(),
            subject: subject.clone(),
            place,
            target,
            matcher,
            selection: Selection::new(&snapshot.schema, &request.attributes, request.types_only),
            entries_max: bounds.entries_max,
            sent,
            deadline: bounds.deadline,
            page,
            references,
            references_left,
            has_referred: false,
            shows_usability: controls.account_usability && place == access::Place::Data,
            is_long: false,
            looked_at: 0,
            lacking,
            shape,
            spent: Duration::ZERO,
            stepped: None,
            sending: None,
        })
    }
}

/// How much a search may return, and until when.
struct Bounds {
    /// Entries, 0 for no limit.
    entries_max: u32,
    /// Entries in this answer, which may be a page.
    answer_max: u32,
    deadline: Option<Instant>,
}

impl Bounds {
    fn new(
        snapshot: &Snapshot,
        subject: &Subject,
        request: &SearchRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> Bounds {
        let limit = |asked: u32, ours: u32| match (asked, ours) {
            (asked, _) if subject.is_administrator() => asked,
            (0, ours) => ours,
            (asked, 0) => asked,
            (asked, ours) => asked.min(ours),
        };
        let entries_max =
            limit(request.size_limit, snapshot.shared.search_entries_max.load(Ordering::Relaxed));
        let answer_max = match &controls.paged {
            Some(paged) if entries_max == 0 || paged.size < entries_max => paged.size,
            _ => entries_max,
        };
        let seconds =
            limit(request.time_limit_s, snapshot.shared.search_time_max_s.load(Ordering::Relaxed));
        let deadline = (seconds > 0)
            .then(|| snapshot.shared.monotonic() + Duration::from_secs(seconds.into()));
        Bounds { entries_max, answer_max, deadline }
    }
}

/// The entries that a search goes through.
struct Found {
    place: access::Place,
    target: Target,
    /// Referral objects within it, ascending.
    references: Vec<EntryId>,
}

impl Found {
    fn new(place: access::Place, target: Target) -> Found {
        Found { place, target, references: Vec::new() }
    }
}

impl Directory {
    /// Finds the base and plans the way to the entries.
    fn target(
        &self,
        snapshot: &Snapshot,
        subject: &Subject,
        request: &SearchRequest<'_>,
        planned: &Planned<'_>,
        manages: bool,
        announced: Announced,
    ) -> Result<Found> {
        let known = snapshot.with_learnt(|learnt| {
            let mut parents = learnt.parents(&snapshot.schema);
            match request.scope {
                Scope::Base => parents.child(request.base),
                _ => parents.parent(request.base),
            }
        })?;
        let name = known.name();
        let contexts = snapshot.shared.contexts();
        let base_itself = matches!(request.scope, Scope::Base | Scope::Subtree);
        match naming::place(&contexts, name) {
            Place::Root if request.scope == Scope::Base => {
                snapshot.may_look(subject, access::Place::RootDse)?;
                let attributes = self.root_dse(snapshot, subject, &contexts, announced)?;
                Ok(Found::new(access::Place::RootDse, Target::virtual_entry("", attributes)))
            }
            Place::Root => {
                snapshot.may_look(subject, access::Place::Data)?;
                let read = self.store.read()?;
                let tops = naming::tops(read.view(), &contexts)?;
                if request.scope == Scope::One {
                    let (source, tops) = (Source::entries(tops.clone()), SearchBases::of(tops));
                    let target = Target::Tree(Cursor::new(EntryId::ROOT, Scope::One, tops, source));
                    return Ok(Found::new(access::Place::Data, target));
                }
                let base = (EntryId::ROOT, tops);
                tree(snapshot, access::Place::Data, &read, base, request, planned, manages)
            }
            Place::Subschema => {
                snapshot.may_look(subject, access::Place::Subschema)?;
                let target = match base_itself {
                    true => Target::virtual_entry(SUBSCHEMA_DN, snapshot.subschema()),
                    false => Target::Empty,
                };
                Ok(Found::new(access::Place::Subschema, target))
            }
            Place::Virtual(VirtualTree::Changelog) => {
                snapshot.may_look(subject, access::Place::Changelog)?;
                let filter = Some(&request.filter);
                let max = allow::unindexed_max(snapshot, self.store.read()?.view(), subject)?;
                let changelog = self.changelog(snapshot, name, request.scope, filter, max)?;
                let target = Target::Changelog(Box::new(changelog));
                Ok(Found::new(access::Place::Changelog, target))
            }
            Place::Virtual(tree) => {
                snapshot.may_look(subject, tree.place())?;
                let wanted = Wanted::new(name, request.scope, Some(&request.filter));
                let entries = snapshot.virtual_tree(tree, &wanted).below(name, request.scope)?;
                Ok(Found::new(tree.place(), Target::Virtual(VirtualEntries { entries, passed: 0 })))
            }
            Place::Outside => {
                snapshot.may_look(subject, access::Place::Data)?;
                Err(Failure::no_such_object(""))
            }
            Place::Inside { context, .. } => {
                snapshot.may_look(subject, context.place())?;
                let read = self.store.read()?;
                let how = Seeking {
                    follows_aliases: matches!(request.deref, Deref::FindingBase | Deref::Always),
                    manages_referrals: manages || !snapshot.special_entries.has_referrals(&read)?,
                    scope: Some(request.scope),
                };
                let knows = snapshot.known_to(read.view(), subject);
                let Located { context, id } =
                    locate_known(&snapshot.schema, &contexts, &read, &known, how, &knows)?;
                tree(snapshot, context.place(), &read, (id, vec![id]), request, planned, manages)
            }
        }
    }

    /// RFC 4528: the assertion is about the base.
    fn assert_target(
        &self,
        snapshot: &Snapshot,
        subject: &Subject,
        place: access::Place,
        target: &Target,
        matcher: &Matcher,
    ) -> Result<()> {
        let view = snapshot.permissions(subject, place);
        let evaluator = Evaluator::search(&snapshot.schema, &view);
        let truth = match target {
            Target::Virtual(VirtualEntries { entries, .. }) => match entries.front() {
                Some(VirtualEntry { dn, attributes }) => {
                    evaluator.matches(matcher, &Candidate::unstored(snapshot, dn, attributes))?
                }
                None => Truth::Undefined,
            },
            Target::Changelog(changelog) => {
                let VirtualEntry { dn, attributes } = changelog.base();
                evaluator.matches(matcher, &Candidate::unstored(snapshot, dn, attributes))?
            }
            Target::Tree(Cursor { base, .. }) if *base != EntryId::ROOT => {
                let read = self.store.read()?;
                let view = read.view();
                let entry = view.entry(*base)?.ok_or_else(|| Failure::no_such_object(""))?;
                snapshot.with_names(|names| {
                    evaluator
                        .matches(matcher, &Candidate::stored(snapshot, *base, entry, view, names))
                })?
            }
            Target::Tree(_) | Target::Empty => Truth::Undefined,
        };
        asserted(truth)
    }
}

impl Directory {
    /// The root DSE's attributes as this subject is told of them: how much is changed is for those who may see the
    /// changes.
    pub(crate) fn root_dse(
        &self,
        snapshot: &Snapshot,
        subject: &Subject,
        contexts: &[Arc<NamingContext>],
        announced: Announced,
    ) -> Result<EntryAttributes> {
        let changelog = match snapshot.may_look(subject, access::Place::Changelog) {
            Ok(()) => self.changelog_numbers()?,
            Err(_) => None,
        };
        Ok(snapshot.root_dse(contexts, announced, changelog))
    }
}

impl Snapshot {
    /// Refuses a subject that may not see anything there, before he learns what is there.
    fn may_look(&self, subject: &Subject, place: access::Place) -> Result<()> {
        if self.permissions(subject, place).may_anywhere(Rights::READ | Rights::SEARCH) {
            return Ok(());
        }
        Err(Failure::denied(match subject.is_anonymous() {
            true => "search here without a bind",
            false => "search here",
        }))
    }
}

/// The part of the tree that a scope is, from its base or its tops.
fn tree(
    snapshot: &Snapshot,
    place: access::Place,
    read: &Read,
    (base, tops): (EntryId, Vec<EntryId>),
    request: &SearchRequest<'_>,
    planned: &Planned<'_>,
    manages: bool,
) -> Result<Found> {
    let (view, scope) = (read.view(), request.scope);
    let mut bases = SearchBases::of(tops);
    let follows = matches!(request.deref, Deref::InSearching | Deref::Always);
    if follows && place == access::Place::Data {
        bases.follow(snapshot, view, planned.subject, scope)?;
    }
    let references = match manages || !snapshot.special_entries.has_referrals(read)? {
        true => Vec::new(),
        false => {
            let rights = snapshot.permissions(planned.subject, place);
            bases.references(snapshot, view, &rights, scope)?
        }
    };
    let source = match scope {
        Scope::Base => Source::entry(base),
        _ => planned.source(snapshot, view, &bases, scope)?,
    };
    let mut cursor = Cursor::new(base, scope, bases, source);
    cursor.skips_aliases = follows && scope != Scope::Base;
    Ok(Found { place, target: Target::Tree(cursor), references })
}
