//! Searches: cursors that are stepped (RFC 4511 § 4.5).
//!
//! A search holds no transaction and no list of results between steps, only where it is; each step
//! takes a fresh transaction, so that a client that does not read holds up nothing. What changes
//! between two steps may be seen or not; an entry is returned at most once unless it is deleted
//! and added again.
//!
//! Entries are returned as they are: aliases below the base are not followed. A search that would
//! have to follow one to find its base is refused.

mod find;
mod page;
mod select;
mod write;

pub use page::Cookies;
pub use select::{Filtered, Selection};
pub(crate) use write::encode_entry;

use crate::access::{self, Rights, Subject, View};
use crate::candidate::Candidate;
use crate::controls::{RequestControls, ResponseControl};
use crate::directory::{Core, Directory};
use crate::evaluate::{Evaluator, Truth};
use crate::failure::{Failure, Result};
use crate::filter::Matcher;
use crate::limits::{CLOCK_CANDIDATES, STEP_CANDIDATES_MAX};
use crate::names::{self, Name, Place};
use crate::plan::{Source, plan};
use crate::schema::Attributes;
use keyway_codec::controls::{PAGED_RESULTS, PagedResults};
use keyway_codec::message::{Deref, EntryWriter, LdapResult, ResultCode, Scope, SearchRequest};
use keyway_store::{EntryId, Key};
use page::Position;
use std::cell::RefCell;
use std::time::{Duration, SystemTime};

/// A search under way. It is `Send` and holds no part of the request.
pub struct Search {
    subject: Subject,
    place: access::Place,
    target: Target,
    matcher: Matcher,
    selection: Selection,
    /// Entries that may be returned in all, and those that were.
    entries_max: u32,
    sent: u32,
    deadline: Option<SystemTime>,
    page: Option<Page>,
}

/// What is searched.
enum Target {
    /// An entry that is made up: the root DSE or the subschema.
    Made { dn: &'static str, attributes: Attributes },
    /// A part of the tree.
    Tree(Cursor),
    /// Nothing.
    Empty,
}

/// Where in the tree a search is.
struct Cursor {
    base: EntryId,
    scope: Scope,
    /// The entries that a subtree scope goes down from.
    tops: Vec<EntryId>,
    source: Source,
    after: EntryId,
}

/// A search in pages.
struct Page {
    /// What cookies are bound to.
    query: Vec<u8>,
    /// Entries left in this page.
    left: u32,
}

/// What a step of a search came to.
pub enum Step {
    /// There is more to do: the budget is used up, or others should have their turn.
    More,
    /// It is done, with this result and these controls.
    Done(LdapResult<'static>, Vec<ResponseControl>),
}

impl Directory {
    /// Starts a search. Nothing is returned before it is stepped.
    ///
    /// # Errors
    /// What ends the search before it has begun: the base is missing or not for this subject, the
    /// assertion does not hold, a cookie is not of this query.
    pub fn search(
        &self,
        subject: &Subject,
        request: &SearchRequest<'_>,
        controls: &RequestControls<'_>,
    ) -> Result<Search> {
        let core = &*self.core;
        let selection = Selection::new(&core.schema, &request.attributes, request.types_only);
        let matcher = Matcher::new(&core.schema, &request.filter);
        let (place, mut target) = self.target(subject, request, &matcher)?;
        if let Some(assertion) = &controls.assertion {
            self.assert_target(subject, place, &target, &Matcher::new(&core.schema, assertion))?;
        }
        let mut sent = 0;
        let page = match &controls.paged {
            Some(paged) => {
                let query = page::query(subject, request);
                if !paged.cookie.is_empty() {
                    let position = core.cookies.open(&query, &paged.cookie)?;
                    sent = position.sent;
                    target.resume(position.after);
                    if paged.size == 0 {
                        // RFC 2696 § 3: the client gives up.
                        target = Target::Empty;
                    }
                }
                Some(Page { query, left: if paged.size == 0 { u32::MAX } else { paged.size } })
            }
            None => None,
        };
        let administrator = subject.is_administrator();
        let limit = |asked: u32, ours: u32| match (asked, ours) {
            (asked, _) if administrator => asked,
            (0, ours) => ours,
            (asked, 0) => asked,
            (asked, ours) => asked.min(ours),
        };
        let seconds = limit(request.time_limit_s, core.search_time_max_s);
        Ok(Search {
            subject: subject.clone(),
            place,
            target,
            matcher,
            selection,
            entries_max: limit(request.size_limit, core.search_entries_max),
            sent,
            deadline: (seconds > 0).then(|| core.now() + Duration::from_secs(seconds.into())),
            page,
        })
    }
}

impl Directory {
    /// Finds the base and plans the way to the entries.
    fn target(
        &self,
        subject: &Subject,
        request: &SearchRequest<'_>,
        matcher: &Matcher,
    ) -> Result<(access::Place, Target)> {
        let core = &*self.core;
        let name = Name::parse(&core.schema, request.base)?;
        let contexts = core.contexts();
        let base_itself = matches!(request.scope, Scope::Base | Scope::Subtree);
        match names::place(&contexts, &name) {
            Place::Root if request.scope == Scope::Base => {
                core.may_look(subject, access::Place::RootDse)?;
                let attributes = core.root_dse(&contexts);
                Ok((access::Place::RootDse, Target::Made { dn: "", attributes }))
            }
            Place::Root => {
                core.may_look(subject, access::Place::Data)?;
                let read = self.store.read()?;
                let tops = names::tops(read.view(), &contexts)?;
                let source = match request.scope {
                    Scope::One => Source::entries(tops.clone()),
                    _ => {
                        let lists = tops.iter().map(|top| Key::subtree(*top)).collect();
                        plan(read.view(), &core.indexes, matcher, lists)?
                    }
                };
                let (base, scope, after) = (EntryId::ROOT, request.scope, EntryId::ROOT);
                let cursor = Cursor { base, scope, tops, source, after };
                Ok((access::Place::Data, Target::Tree(cursor)))
            }
            Place::Subschema => {
                core.may_look(subject, access::Place::Subschema)?;
                let target = match base_itself {
                    true => Target::Made {
                        dn: crate::operational::SUBSCHEMA_DN,
                        attributes: core.subschema(),
                    },
                    false => Target::Empty,
                };
                Ok((access::Place::Subschema, target))
            }
            Place::Outside => {
                core.may_look(subject, access::Place::Data)?;
                Err(Failure::no_such_object(""))
            }
            Place::Inside { context, below } => {
                let place = context.place();
                core.may_look(subject, place)?;
                let read = self.store.read()?;
                let view = read.view();
                let base = names::resolve(view, context, &name, below)?;
                if matches!(request.deref, Deref::FindingBase | Deref::Always) {
                    refuse_alias(&view.entry(base)?)?;
                }
                let source = match request.scope {
                    Scope::Base => Source::entry(base),
                    Scope::One => plan(view, &core.indexes, matcher, vec![Key::children(base)])?,
                    _ => plan(view, &core.indexes, matcher, vec![Key::subtree(base)])?,
                };
                Ok((place, Target::Tree(Cursor::new(base, request.scope, source))))
            }
        }
    }

    /// RFC 4528: the assertion is about the base.
    fn assert_target(
        &self,
        subject: &Subject,
        place: access::Place,
        target: &Target,
        matcher: &Matcher,
    ) -> Result<()> {
        let core = &*self.core;
        let view = core.access.view(subject, place);
        let evaluator = Evaluator::search(&core.schema, &view);
        let truth = match target {
            Target::Made { dn, attributes } => {
                evaluator.matches(matcher, &Candidate::made(dn, attributes))?
            }
            Target::Tree(Cursor { base, .. }) if *base != EntryId::ROOT => {
                let read = self.store.read()?;
                let view = read.view();
                let entry = view.entry(*base)?.ok_or_else(|| Failure::no_such_object(""))?;
                core.with_names(|names| {
                    evaluator.matches(matcher, &Candidate::stored(*base, entry, view, names))
                })?
            }
            Target::Tree(_) | Target::Empty => Truth::Undefined,
        };
        crate::write::asserted(truth)
    }
}

impl Core {
    /// Refuses a subject that may not see anything there, before he learns what is there.
    fn may_look(&self, subject: &Subject, place: access::Place) -> Result<()> {
        let view = self.access.view(subject, place);
        if view.may_anywhere(Rights::READ) || view.may_anywhere(Rights::SEARCH) {
            return Ok(());
        }
        Err(Failure::denied(match subject {
            Subject::Anonymous => "search here without a bind",
            _ => "search here",
        }))
    }
}

/// Refuses to look for the base behind an alias.
fn refuse_alias(base: &Option<keyway_store::EntryRef<'_>>) -> Result<()> {
    let is_alias = base.is_some_and(|entry| {
        let mut classes = entry.values(crate::schema::OBJECT_CLASS);
        classes.any(|class| class.eq_ignore_ascii_case(b"alias") || class == b"2.5.6.1")
    });
    if !is_alias {
        return Ok(());
    }
    let text = "the base is an alias, and aliases are not followed here";
    Err(Failure::new(ResultCode::AliasDereferencingProblem, text))
}

impl Cursor {
    fn new(base: EntryId, scope: Scope, source: Source) -> Cursor {
        Cursor { base, scope, tops: vec![base], source, after: EntryId::ROOT }
    }
}

impl Target {
    /// Goes on after an id.
    fn resume(&mut self, after: EntryId) {
        match self {
            Target::Tree(cursor) => cursor.after = after,
            Target::Made { .. } | Target::Empty => *self = Target::Empty,
        }
    }
}

/// Why a step stopped looking.
enum Pause {
    /// Others should have their turn.
    Turn,
    /// All has been looked at.
    End,
    /// The page is full; the next one begins after this id.
    PageFull(EntryId),
    /// A limit is reached.
    Limit(ResultCode, &'static str),
}

impl Search {
    /// How many entries it has returned so far, earlier pages included.
    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }

    /// Goes on: appends encoded entries to `out` until some `budget_bytes` are used, or for some
    /// thousand candidates. At least one candidate is looked at. After [`Step::Done`] it is over.
    pub fn step(
        &mut self,
        directory: &Directory,
        message_id: u32,
        out: &mut Vec<u8>,
        budget_bytes: usize,
    ) -> Step {
        match self.advance(directory, message_id, out, budget_bytes) {
            Ok(Pause::Turn) => Step::More,
            Ok(Pause::End) => self.done(&directory.core, LdapResult::success(), None),
            Ok(Pause::PageFull(after)) => {
                self.done(&directory.core, LdapResult::success(), Some(after))
            }
            Ok(Pause::Limit(code, text)) => {
                self.done(&directory.core, LdapResult::new(code, text), None)
            }
            Err(failure) => Step::Done(failure.into(), Vec::new()),
        }
    }

    fn done(&self, core: &Core, result: LdapResult<'static>, next: Option<EntryId>) -> Step {
        let Some(page) = &self.page else { return Step::Done(result, Vec::new()) };
        let cookie = match next {
            Some(after) => core.cookies.seal(&page.query, Position { after, sent: self.sent }),
            None => Ok(Vec::new()),
        };
        let cookie = match cookie {
            Ok(cookie) => cookie,
            Err(failure) => return Step::Done(failure.into(), Vec::new()),
        };
        let mut value = Vec::new();
        PagedResults { size: 0, cookie: cookie.into() }.encode(&mut value);
        Step::Done(result, vec![ResponseControl { oid: PAGED_RESULTS, value }])
    }

    fn advance(
        &mut self,
        directory: &Directory,
        message_id: u32,
        out: &mut Vec<u8>,
        budget_bytes: usize,
    ) -> Result<Pause> {
        let core = &*directory.core;
        let view = core.access.view(&self.subject, self.place);
        match std::mem::replace(&mut self.target, Target::Empty) {
            Target::Empty => Ok(Pause::End),
            Target::Made { dn, attributes } => {
                let candidate = Candidate::made(dn, &attributes);
                let evaluator = Evaluator::search(&core.schema, &view);
                if evaluator.matches(&self.matcher, &candidate)? == Truth::True {
                    let mut filtered = Filtered::new(&core.schema, &self.selection, &view);
                    let mut writer = EntryWriter::begin(out, message_id, dn);
                    encode_entry(&mut writer, &candidate, &mut filtered)?;
                    writer.finish(&[]);
                }
                Ok(Pause::End)
            }
            Target::Tree(mut cursor) => {
                let end = out.len().saturating_add(budget_bytes);
                let pause = core.with_names(|names| {
                    let read = directory.store.read()?;
                    let walk =
                        Walk { core, tree: read.view(), view: &view, names, message_id, end };
                    self.walk(&walk, &mut cursor, out)
                });
                self.target = Target::Tree(cursor);
                pause
            }
        }
    }

    fn walk(&mut self, walk: &Walk<'_>, cursor: &mut Cursor, out: &mut Vec<u8>) -> Result<Pause> {
        let core = walk.core;
        let tree = walk.tree;
        let evaluator = Evaluator::search(&core.schema, walk.view);
        let mut filtered = Filtered::new(&core.schema, &self.selection, walk.view);
        let candidates = cursor.source.candidates(tree, cursor.after)?;
        for (looked_at, id) in candidates.enumerate() {
            let id = id?;
            if looked_at % CLOCK_CANDIDATES == 0 && self.deadline.is_some_and(|at| core.now() >= at)
            {
                let text = "the search took longer than it may";
                return Ok(Pause::Limit(ResultCode::TimeLimitExceeded, text));
            }
            if looked_at >= STEP_CANDIDATES_MAX || (looked_at > 0 && out.len() >= walk.end) {
                return Ok(Pause::Turn);
            }
            let Some(entry) = tree.entry(id)? else {
                cursor.after = id;
                continue;
            };
            let candidate = Candidate::stored(id, entry, tree, walk.names);
            if evaluator.matches(&self.matcher, &candidate)? == Truth::True
                && cursor.holds(tree, id, entry.parent())?
                && walk.view.may_something(Rights::READ, id)
            {
                if self.entries_max > 0 && self.sent >= self.entries_max {
                    let text = "there are more entries than may be returned";
                    return Ok(Pause::Limit(ResultCode::SizeLimitExceeded, text));
                }
                if let Some(page) = &mut self.page {
                    match page.left.checked_sub(1) {
                        Some(left) => page.left = left,
                        None => return Ok(Pause::PageFull(cursor.after)),
                    }
                }
                let mut writer = EntryWriter::begin(out, walk.message_id, candidate.dn()?);
                match encode_entry(&mut writer, &candidate, &mut filtered) {
                    Ok(()) => writer.finish(&[]),
                    Err(failure) => {
                        writer.discard();
                        return Err(failure);
                    }
                }
                self.sent += 1;
            }
            cursor.after = id;
        }
        Ok(Pause::End)
    }
}

/// What one step works with.
struct Walk<'a> {
    core: &'a Core,
    tree: keyway_store::View<'a>,
    view: &'a View<'a>,
    names: &'a RefCell<keyway_store::Names>,
    message_id: u32,
    /// Length of the output at which the budget is used up.
    end: usize,
}

impl Cursor {
    /// Whether a candidate is within the scope.
    fn holds(&self, tree: keyway_store::View<'_>, id: EntryId, parent: EntryId) -> Result<bool> {
        if self.source.is_scope && (self.scope != Scope::Subordinate || id != self.base) {
            return Ok(true);
        }
        match self.scope {
            Scope::Base => Ok(id == self.base),
            Scope::One => Ok(parent == self.base),
            Scope::Subordinate if id == self.base => Ok(false),
            Scope::Subordinate | Scope::Subtree => {
                for top in &self.tops {
                    if tree.contains(&Key::subtree(*top), id)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}
