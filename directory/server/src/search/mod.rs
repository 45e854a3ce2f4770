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
mod start;
mod write;

pub use page::Cookies;
pub use select::{Filtered, Selection};
pub(crate) use write::encode_entry;

use crate::access::{self, Rights, Subject, View};
use crate::candidate::Candidate;
use crate::controls::ResponseControl;
use crate::directory::{Core, Directory};
use crate::evaluate::{Evaluator, Truth};
use crate::failure::Result;
use crate::filter::Matcher;
use crate::limits::{CLOCK_CANDIDATES, STEP_CANDIDATES_MAX, STEP_TESTS_MAX};
use crate::plan::Source;
use crate::schema::Attributes;
use keyway_codec::controls::{PAGED_RESULTS, PagedResults};
use keyway_codec::message::{EntryWriter, LdapResult, ResultCode, Scope};
use keyway_store::{EntryId, Key, Names, View as Tree};
use page::Position;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::SystemTime;

/// A search under way. It is `Send` and holds no part of the request.
pub struct Search {
    /// The state of the schema that it began with.
    core: Arc<Core>,
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
    is_long: bool,
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

    /// Whether its last step ended because it had looked at so much: the next may take as long.
    pub(crate) fn is_long(&self) -> bool {
        self.is_long
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
            Ok(Pause::End) => self.done(LdapResult::success(), None),
            Ok(Pause::PageFull(after)) => self.done(LdapResult::success(), Some(after)),
            Ok(Pause::Limit(code, text)) => self.done(LdapResult::new(code, text), None),
            Err(failure) => Step::Done(failure.into(), Vec::new()),
        }
    }

    fn done(&self, result: LdapResult<'static>, next: Option<EntryId>) -> Step {
        let Some(page) = &self.page else { return Step::Done(result, Vec::new()) };
        let cookie = match next {
            Some(after) => self.core.cookies.seal(&page.query, Position { after, sent: self.sent }),
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
        let core = &*self.core.clone();
        directory.refresh(&self.subject)?;
        let view = core.permissions(&self.subject, self.place);
        match std::mem::replace(&mut self.target, Target::Empty) {
            Target::Empty => Ok(Pause::End),
            Target::Made { dn, attributes } => {
                let candidate = Candidate::made(core, dn, &attributes);
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
            self.is_long = looked_at >= STEP_CANDIDATES_MAX || evaluator.work() >= STEP_TESTS_MAX;
            if self.is_long || (looked_at > 0 && out.len() >= walk.end) {
                return Ok(Pause::Turn);
            }
            let Some(entry) = tree.entry(id)? else {
                cursor.after = id;
                continue;
            };
            let candidate = Candidate::stored(core, id, entry, tree, walk.names);
            if evaluator.matches(&self.matcher, &candidate)? == Truth::True
                && cursor.holds(tree, id, entry.parent())?
                && walk.view.may_something(Rights::READ, &candidate)?
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
    tree: Tree<'a>,
    view: &'a View,
    names: &'a RefCell<Names>,
    message_id: u32,
    /// Length of the output at which the budget is used up.
    end: usize,
}

impl Cursor {
    /// Whether a candidate is within the scope.
    fn holds(&self, tree: Tree<'_>, id: EntryId, parent: EntryId) -> Result<bool> {
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
