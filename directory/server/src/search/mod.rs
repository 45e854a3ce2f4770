//! Searches: cursors that are stepped (RFC 4511 § 4.5).
//!
//! A search holds no transaction and no list of results between steps, but for a few candidates, only
//! where it is; each step reads the last committed state, so that a client that does not read holds up
//! nothing. The one exception is a large entry, which is sent in pieces of one state of the store
//! (`pieces`). A change between two steps may be seen or not; an entry is returned at most once unless
//! it is deleted and added again.
//!
//! Entries of the changelog are made when a search comes to them.
//!
//! Referral objects are returned as references, all of them before the entries: whether one matches
//! the filter its own server knows. The entries that aliases stand for are found before the first step.

mod allow;
mod bases;
mod find;
mod kept_reads;
mod page;
mod pieces;
mod select;
mod shapes;
mod start;
mod unindexed;
mod write;

use keyway_schema::{EntryAttributes, Matcher};
pub use page::Cookies;
pub use select::{Filtered, Selection};
pub use shapes::{SearchCost, SearchShape, all as all_shapes};
pub(crate) use unindexed::Unindexed;
use unindexed::nanoseconds;
use write::Sink;
pub(crate) use write::encode_entry;

use crate::access::{self, Rights, Subject, View};
use crate::candidate::Candidate;
use crate::changelog::{Changelog, Next};
use crate::controls::ResponseControl;
use crate::directory::Directory;
use crate::evaluate::{Evaluator, Truth};
use crate::failure::{Failure, Result};
use crate::limits::{
    CLOCK_CANDIDATES, ENTRY_PIECES_MIN, STEP_CANDIDATES_MAX, STEP_FEED_BYTES_MAX, STEP_TESTS_MAX,
};
use crate::locate::{is_alias, urls};
use crate::plan::Source;
use crate::policy::USER_PASSWORD;
use crate::policy::{Account, LOCKED_TIME, as_seen, micros, subentry};
use crate::state::Snapshot;
use crate::virtual_entries::VirtualEntry;
use bases::SearchBases;
pub(crate) use kept_reads::KeptReads;
use keyway_codec::controls::{PAGED_RESULTS, PagedResults};
use keyway_codec::message::{EntryWriter, LdapResult, Message, Op, ResultCode, Scope};
use keyway_store::{EntryId, EntryRef, Names, View as Tree};
use page::Position;
use pieces::{Message as Entry, Pieces, Sending};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use unindexed::Lacking;

/// Work from which on it is noted each time where a search's candidates come from.
const NOTED_MIN: Duration = Duration::from_millis(2);

/// A search under way. It is `Send` and holds no part of the request.
pub struct Search {
    /// The state of the schema that it began with.
    snapshot: Arc<Snapshot>,
    subject: Subject,
    place: access::Place,
    target: Target,
    matcher: Matcher,
    selection: Selection,
    /// Entries that may be returned in all, and those that were.
    entries_max: u32,
    sent: u32,
    deadline: Option<Instant>,
    page: Option<Page>,
    /// Referral objects of the scope, ascending, and those that were not returned yet.
    references: Vec<EntryId>,
    references_left: VecDeque<EntryId>,
    /// One was returned.
    has_referred: bool,
    /// Each entry comes with its account's usability.
    shows_usability: bool,
    is_long: bool,
    /// Candidates that it has looked at.
    looked_at: u64,
    /// The index that it lacks, if none helps.
    lacking: Option<Arc<Lacking>>,
    /// The shape that its filter is counted by, and how long its steps took.
    shape: &'static SearchShape,
    spent: Duration,
    /// When the last step was over.
    stepped: Option<Instant>,
    /// A large entry that is being sent.
    sending: Option<Sending>,
}

/// How far a search is.
#[derive(Clone, Copy)]
pub struct SearchProgress {
    /// Candidates that it has looked at.
    pub candidates: u64,
    /// Entries that it has returned, earlier pages included.
    pub returned: u32,
    /// The shape of its filter.
    pub shape: &'static SearchShape,
    /// It looks at virtual entries.
    pub is_virtual: bool,
    /// When it came so far.
    pub at: Option<Instant>,
}

/// The entries that are searched.
enum Target {
    /// Virtual entries.
    Virtual(VirtualEntries),
    /// Changes of the feed.
    Changelog(Box<Changelog>),
    /// A part of the tree.
    Tree(Cursor),
    /// Nothing.
    Empty,
}

/// Virtual entries: the root DSE, the subschema, or those of a tree.
struct VirtualEntries {
    /// Those that were not looked at.
    entries: VecDeque<VirtualEntry>,
    /// How many were.
    passed: u64,
}

/// Where in the tree a search is.
struct Cursor {
    base: EntryId,
    scope: Scope,
    bases: SearchBases,
    source: Source,
    after: EntryId,
    /// Aliases are followed, and so not returned.
    skips_aliases: bool,
}

/// A search in pages.
struct Page {
    /// The bytes that cookies are bound to.
    query: Vec<u8>,
    /// Entries left in this page.
    left: u32,
}

/// The outcome of a step of a search.
pub enum Step {
    /// There is more to do: the budget is used up, or others should have their turn.
    More,
    /// It is done, with this result and these controls.
    Done(LdapResult<'static>, Vec<ResponseControl>),
    /// It failed within an entry, whose message cannot be ended.
    Broken(LdapResult<'static>),
}

impl Cursor {
    fn new(base: EntryId, scope: Scope, bases: SearchBases, source: Source) -> Cursor {
        Cursor { base, scope, bases, source, after: EntryId::ROOT, skips_aliases: false }
    }
}

impl Target {
    /// One virtual entry.
    fn virtual_entry(dn: &str, attributes: EntryAttributes) -> Target {
        let entry = VirtualEntry { dn: dn.to_owned(), attributes };
        Target::Virtual(VirtualEntries { entries: VecDeque::from([entry]), passed: 0 })
    }

    /// Goes on after an id.
    fn resume(&mut self, after: EntryId) {
        match self {
            Target::Tree(cursor) => cursor.after = after,
            Target::Virtual(virtual_entries) => {
                let passed = usize::try_from(after.0).unwrap_or(usize::MAX);
                virtual_entries.entries.drain(..passed.min(virtual_entries.entries.len()));
                virtual_entries.passed = after.0;
            }
            Target::Changelog(changelog) => changelog.resume(after.0),
            Target::Empty => {}
        }
    }

    /// Whether it is no part of the data.
    fn is_virtual(&self) -> bool {
        matches!(self, Target::Virtual(_) | Target::Changelog(_))
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
    /// This entry is to be sent in pieces.
    Entry(EntryId, Entry),
}

impl Pause {
    fn too_long() -> Pause {
        Pause::Limit(ResultCode::TimeLimitExceeded, "the search took longer than it may")
    }
}

impl Search {
    /// How many entries it has returned so far, earlier pages included.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Which access rules decided what it has returned, if that was asked.
    pub fn deciding_rules(&self) -> Option<ResponseControl> {
        self.subject.trace().as_deref().map(ResponseControl::deciding_rules)
    }

    /// Whether it has sent a part of an entry: nothing else may be sent before the rest.
    pub fn is_within_entry(&self) -> bool {
        self.sending.is_some()
    }

    /// Whether its last step ended because it had looked at so much: the next may take as long.
    pub fn is_long(&self) -> bool {
        self.is_long
    }

    /// Which index it lacks, if none helps: `description substring`.
    pub fn lacking(&self) -> Option<&str> {
        self.lacking.as_ref().map(|lacking| lacking.label.as_str())
    }

    /// How far it is.
    pub fn progress(&self) -> SearchProgress {
        let (candidates, returned) = (self.looked_at, self.sent);
        let is_virtual = self.is_virtual();
        SearchProgress { candidates, returned, shape: self.shape, is_virtual, at: self.stepped }
    }

    /// Whether it looks at virtual entries, which says nothing of the data.
    fn is_virtual(&self) -> bool {
        self.target.is_virtual()
    }

    /// Where its candidates come from, if it takes long enough for an operator to want to know, or if that
    /// has not been noted of the likes of it.
    fn note_access_path(&self) {
        if let Target::Tree(cursor) = &self.target
            && (self.spent >= NOTED_MIN || self.shape.needs_access_path())
        {
            self.shape.set_access_path(cursor.source.describe());
        }
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
        let (clock, before, sent) =
            (self.snapshot.shared.clock.monotonic, self.looked_at, self.sent);
        let started = clock();
        let advanced = self.advance(directory, message_id, out, budget_bytes);
        let now = clock();
        let time = now.saturating_duration_since(started);
        self.stepped = Some(now);
        self.snapshot.shared.search_time.add(nanoseconds(time));
        self.spent += time;
        if !self.is_virtual() {
            self.shape.cost(self.looked_at - before, self.sent.saturating_sub(sent), time);
        }
        if let Some(lacking) = &self.lacking {
            lacking.cost(self.looked_at - before, time);
        }
        self.note_access_path();
        match advanced {
            // It was begun in the same step.
            Ok(Pause::Turn | Pause::Entry(..)) => Step::More,
            Ok(Pause::End) => self.end(directory, LdapResult::success()),
            Ok(Pause::PageFull(after)) => self.done(LdapResult::success(), Some(after)),
            Ok(Pause::Limit(code, text)) => self.end(directory, LdapResult::new(code, text)),
            Err(failure) if self.is_within_entry() => Step::Broken(failure.into()),
            Err(failure) => Step::Done(failure.into(), Vec::new()),
        }
    }

    fn end(&self, directory: &Directory, result: LdapResult<'static>) -> Step {
        match self.hidden_base(directory) {
            Ok(None) => self.done(result, None),
            Ok(Some(failure)) | Err(failure) => Step::Done(failure.into(), Vec::new()),
        }
    }

    /// `noSuchObject`, if nothing was found below a base that the subject may not know of.
    fn hidden_base(&self, directory: &Directory) -> Result<Option<Failure>> {
        match &self.target {
            Target::Tree(Cursor { base, .. })
                if *base != EntryId::ROOT && self.sent == 0 && !self.has_referred =>
            {
                let read = directory.store.read()?;
                let rights = self.snapshot.permissions(&self.subject, self.place);
                self.snapshot.hidden(read.view(), &rights, *base)
            }
            _ => Ok(None),
        }
    }

    fn done(&self, result: LdapResult<'static>, next: Option<EntryId>) -> Step {
        let Some(page) = &self.page else { return Step::Done(result, Vec::new()) };
        let cookie = match next {
            Some(after) => {
                self.snapshot.shared.cookies.seal(&page.query, Position { after, sent: self.sent })
            }
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
        let snapshot = &*self.snapshot.clone();
        if self.sending.is_some() {
            return self.send(snapshot.shared.monotonic(), out, budget_bytes);
        }
        directory.refresh(&self.subject)?;
        let view = snapshot.permissions(&self.subject, self.place);
        match std::mem::replace(&mut self.target, Target::Empty) {
            Target::Empty => Ok(Pause::End),
            Target::Virtual(mut virtual_entries) => {
                let end = out.len().saturating_add(budget_bytes);
                let pause =
                    self.show(snapshot, &view, &mut virtual_entries, (message_id, end), out);
                self.target = Target::Virtual(virtual_entries);
                pause
            }
            Target::Changelog(mut changelog) => {
                let end = out.len().saturating_add(budget_bytes);
                let read = directory.store.read()?;
                let state = (read.view(), &mut *changelog);
                let pause = self.show_changes(snapshot, &view, state, (message_id, end), out);
                self.target = Target::Changelog(changelog);
                pause
            }
            Target::Tree(mut cursor) => {
                let end = out.len().saturating_add(budget_bytes);
                let read = directory.store.read()?;
                let pause = snapshot.with_names(|names| {
                    cursor.forget_invalidated_indexes(snapshot);
                    let walk = Walk {
                        snapshot,
                        tree: read.view(),
                        version: read.version(),
                        view: &view,
                        names,
                        message_id,
                        end,
                    };
                    self.walk(&walk, &mut cursor, out)
                });
                self.target = Target::Tree(cursor);
                let (id, entry) = match pause {
                    Ok(Pause::Entry(id, entry)) => (id, entry),
                    other => return other,
                };
                let (read, now) =
                    (snapshot.shared.kept_reads.keep(read)?, snapshot.shared.monotonic());
                self.sending = Some(Sending::new(read, id, entry, now));
                self.send(now, out, end.saturating_sub(out.len()))
            }
        }
    }

    /// Goes on with an entry that is sent in pieces.
    fn send(&mut self, now: Instant, out: &mut Vec<u8>, budget_bytes: usize) -> Result<Pause> {
        let end = out.len().saturating_add(budget_bytes.max(1));
        if let Some(sending) = &mut self.sending
            && sending.step(out, end, now)?
        {
            self.sending = None;
        }
        Ok(Pause::Turn)
    }

    /// Goes through virtual entries.
    fn show(
        &mut self,
        snapshot: &Snapshot,
        view: &View,
        virtual_entries: &mut VirtualEntries,
        (message_id, end): (u32, usize),
        out: &mut Vec<u8>,
    ) -> Result<Pause> {
        let evaluator = Evaluator::search(&snapshot.schema, view);
        let begun = virtual_entries.passed;
        while let Some(VirtualEntry { dn, attributes }) = virtual_entries.entries.front() {
            if virtual_entries.passed > begun && out.len() >= end {
                return Ok(Pause::Turn);
            }
            let candidate = Candidate::unstored(snapshot, dn, attributes);
            let passed = virtual_entries.passed;
            let pause =
                self.show_one(snapshot, &evaluator, (dn, &candidate), (message_id, passed), out)?;
            if let Some(pause) = pause {
                return Ok(pause);
            }
            virtual_entries.entries.pop_front();
            virtual_entries.passed += 1;
        }
        Ok(Pause::End)
    }

    /// Goes through the changelog.
    fn show_changes(
        &mut self,
        snapshot: &Snapshot,
        view: &View,
        (state, changelog): (Tree<'_>, &mut Changelog),
        (message_id, end): (u32, usize),
        out: &mut Vec<u8>,
    ) -> Result<Pause> {
        let evaluator = Evaluator::search(&snapshot.schema, view);
        let read = changelog.bytes();
        for looked_at in 0.. {
            if looked_at % CLOCK_CANDIDATES == 0
                && self.deadline.is_some_and(|at| snapshot.shared.monotonic() >= at)
            {
                return Ok(Pause::too_long());
            }
            self.is_long = looked_at >= STEP_CANDIDATES_MAX
                || evaluator.work() >= STEP_TESTS_MAX
                || changelog.bytes() - read >= STEP_FEED_BYTES_MAX;
            if self.is_long || (looked_at > 0 && out.len() >= end) {
                return Ok(Pause::Turn);
            }
            let (number, entry) = match changelog.look(state)? {
                Next::Entry(number, entry) => (number, entry),
                Next::Nothing => continue,
                Next::End => break,
            };
            self.looked_at += 1;
            let VirtualEntry { dn, attributes } = &*entry;
            let candidate = Candidate::unstored(snapshot, dn, attributes);
            let sent = self.sent;
            let pause =
                self.show_one(snapshot, &evaluator, (dn, &candidate), (message_id, number), out)?;
            if let Some(pause) = pause {
                return Ok(pause);
            }
            changelog.pass();
            if sent == self.sent && !changelog.may_pass_over() {
                let text = "the search has looked at as many changes as it may that do not match: \
                            bound it by changeNumber";
                return Ok(Pause::Limit(ResultCode::AdminLimitExceeded, text));
            }
        }
        Ok(Pause::End)
    }

    /// Shows a virtual entry, if it matches; says why it must not. All before the number `passed` were looked at.
    fn show_one(
        &mut self,
        snapshot: &Snapshot,
        evaluator: &Evaluator<'_>,
        (dn, candidate): (&str, &Candidate<'_, '_>),
        (message_id, passed): (u32, u64),
        out: &mut Vec<u8>,
    ) -> Result<Option<Pause>> {
        let view = evaluator.view;
        if evaluator.matches(&self.matcher, candidate)? != Truth::True
            || !view.may_something(Rights::READ, candidate)?
        {
            return Ok(None);
        }
        let passed = EntryId(passed);
        if let Some(pause) = count(self.entries_max, &mut self.sent, &mut self.page, passed) {
            return Ok(Some(pause));
        }
        let mut filtered = Filtered::new(&snapshot.schema, &self.selection, view);
        let mut writer = EntryWriter::begin(out, message_id, dn);
        match encode_entry(&mut writer, candidate, &mut filtered) {
            Ok(()) => writer.finish(&[]),
            Err(failure) => {
                writer.discard();
                return Err(failure);
            }
        }
        Ok(None)
    }

    fn walk(&mut self, walk: &Walk<'_>, cursor: &mut Cursor, out: &mut Vec<u8>) -> Result<Pause> {
        self.refer(walk, cursor.scope, out)?;
        if !self.references_left.is_empty() {
            return Ok(Pause::Turn);
        }
        let snapshot = walk.snapshot;
        let tree = walk.tree;
        let evaluator = Evaluator::search(&snapshot.schema, walk.view);
        let mut filtered = Filtered::new(&snapshot.schema, &self.selection, walk.view);
        let candidates = cursor.source.candidates(tree, cursor.after)?;
        for (looked_at, id) in candidates.enumerate() {
            let id = id?;
            if looked_at % CLOCK_CANDIDATES == 0
                && self.deadline.is_some_and(|at| snapshot.shared.monotonic() >= at)
            {
                return Ok(Pause::too_long());
            }
            self.is_long = looked_at >= STEP_CANDIDATES_MAX || evaluator.work() >= STEP_TESTS_MAX;
            if self.is_long || (looked_at > 0 && out.len() >= walk.end) {
                return Ok(Pause::Turn);
            }
            self.looked_at += 1;
            let Some(entry) = tree.entry(id)? else {
                cursor.after = id;
                continue;
            };
            let candidate = Candidate::stored(snapshot, id, entry, tree, walk.names);
            if !self.is_passed_over(cursor, id, &entry)
                && evaluator.matches(&self.matcher, &candidate)? == Truth::True
                && cursor.holds(&candidate, entry.parent())?
                && walk.view.may_something(Rights::READ, &candidate)?
            {
                if let Some(pause) =
                    count(self.entries_max, &mut self.sent, &mut self.page, cursor.after)
                {
                    return Ok(pause);
                }
                let usability = match self.shows_usability {
                    true => walk.usability(&candidate, &entry)?,
                    false => None,
                };
                let control = usability.as_ref().map(ResponseControl::as_control);
                if is_large(&entry) {
                    let mut pieces = Pieces::default();
                    walk.encode(&mut pieces, &candidate, &entry, (&self.selection, &mut filtered))?;
                    cursor.after = id;
                    let message =
                        pieces.message(walk.message_id, candidate.dn()?, control.as_slice());
                    let Some(whole) = message.whole() else {
                        return Ok(Pause::Entry(id, message));
                    };
                    out.extend_from_slice(whole);
                    continue;
                }
                let mut writer = EntryWriter::begin(out, walk.message_id, candidate.dn()?);
                let selection = (&self.selection, &mut filtered);
                match walk.encode(&mut writer, &candidate, &entry, selection) {
                    Ok(()) => writer.finish(control.as_slice()),
                    Err(failure) => {
                        writer.discard();
                        return Err(failure);
                    }
                }
            }
            cursor.after = id;
        }
        Ok(Pause::End)
    }
}

/// Counts an entry that is to be returned; says why it must not be. All up to `passed` were looked at.
fn count(
    entries_max: u32,
    sent: &mut u32,
    page: &mut Option<Page>,
    passed: EntryId,
) -> Option<Pause> {
    if entries_max > 0 && *sent >= entries_max {
        let text = "there are more entries than may be returned";
        return Some(Pause::Limit(ResultCode::SizeLimitExceeded, text));
    }
    if let Some(page) = page {
        match page.left.checked_sub(1) {
            Some(left) => page.left = left,
            None => return Some(Pause::PageFull(passed)),
        }
    }
    *sent += 1;
    None
}

impl Search {
    /// Whether a candidate stands for something else, and was returned as that.
    fn is_passed_over(&self, cursor: &Cursor, id: EntryId, entry: &EntryRef<'_>) -> bool {
        let is_reference = self.references.binary_search(&id).is_ok();
        is_reference || (cursor.skips_aliases && id != cursor.base && is_alias(entry))
    }

    /// Appends search continuation references as far as there is room (RFC 4511 § 4.5.3).
    fn refer(&mut self, walk: &Walk<'_>, scope: Scope, out: &mut Vec<u8>) -> Result<()> {
        // Below the children of the base there is nothing to be looked for.
        let scope = if scope == Scope::One { Scope::Base } else { Scope::Subtree };
        while out.len() < walk.end {
            let Some(id) = self.references_left.pop_front() else { return Ok(()) };
            let Some(entry) = walk.tree.entry(id)? else { continue };
            let candidate = Candidate::stored(walk.snapshot, id, entry, walk.tree, walk.names);
            if !walk.view.may(Rights::READ, "ref", &candidate)? {
                continue;
            }
            let urls = urls(&entry, "", candidate.dn()?, Some(scope));
            let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
            if !urls.is_empty() {
                Message::new(walk.message_id, Op::SearchResultReference(urls)).encode(out);
                self.has_referred = true;
            }
        }
        Ok(())
    }
}

/// The context of one step.
struct Walk<'a> {
    snapshot: &'a Snapshot,
    tree: Tree<'a>,
    /// That of the tree.
    version: u64,
    view: &'a View,
    names: &'a RefCell<Names>,
    message_id: u32,
    /// Length of the output at which the budget is used up.
    end: usize,
}

/// Whether an entry is sent in pieces.
fn is_large(entry: &EntryRef<'_>) -> bool {
    let apart = entry.large().map(|large| large.bytes).sum::<u64>();
    entry.attributes_bytes() as u64 + apart >= ENTRY_PIECES_MIN as u64
}

impl Walk<'_> {
    /// Hands over the attributes of an entry, as it is to be seen.
    fn encode<'a>(
        &self,
        sink: &mut impl Sink,
        candidate: &Candidate<'a, '_>,
        entry: &EntryRef<'a>,
        (selection, filtered): (&Selection, &mut Filtered<'a>),
    ) -> Result<()> {
        let Some(seen) = as_seen(self.snapshot, self.tree, self.version, candidate.id(), entry)?
        else {
            return encode_entry(sink, candidate, filtered);
        };
        let candidate =
            Candidate::stored(self.snapshot, candidate.id(), *entry, self.tree, self.names);
        let mut filtered = Filtered::new(&self.snapshot.schema, selection, self.view);
        encode_entry(sink, &candidate.showing(&seen), &mut filtered)
    }

    /// Whether a user could bind as an entry that has a password, for those who may read the attributes that
    /// it follows from.
    fn usability(
        &self,
        candidate: &Candidate<'_, '_>,
        entry: &EntryRef<'_>,
    ) -> Result<Option<ResponseControl>> {
        let snapshot = self.snapshot;
        if !entry.has(USER_PASSWORD) || !self.view.may(Rights::READ, LOCKED_TIME, candidate)? {
            return Ok(None);
        }
        let policy = snapshot.shared.policies.of(
            snapshot,
            self.tree,
            Some(self.version),
            subentry(entry),
        )?;
        let account = Account::read(&snapshot.schema, entry);
        let account = snapshot.shared.policies.pending.apply(&policy, candidate.id(), account);
        let now = micros(snapshot.shared.now());
        let usability = account.status(&policy, now).usability(now);
        Ok(Some(ResponseControl::usability(usability)))
    }
}

impl Cursor {
    /// Goes on without indexes if one was invalidated since it was planned. Asked when the state of the
    /// store is taken: that has all of those that were not invalidated yet.
    fn forget_invalidated_indexes(&mut self, snapshot: &Snapshot) {
        if self.source.invalidations.is_some_and(|known| known != snapshot.indexes.invalidations())
        {
            self.source = Source::scope(self.bases.lists(self.scope));
        }
    }

    /// Whether a candidate is within the scope.
    fn holds(&self, candidate: &Candidate<'_, '_>, parent: EntryId) -> Result<bool> {
        let id = candidate.id();
        let extra = &self.bases.extra;
        let is_exact = self.source.is_scope && extra.is_empty();
        if is_exact && (self.scope != Scope::Subordinate || id != self.base) {
            return Ok(true);
        }
        match self.scope {
            Scope::Base => Ok(id == self.base),
            Scope::One => Ok(parent == self.base || extra.binary_search(&id).is_ok()),
            Scope::Subordinate if id == self.base => Ok(false),
            Scope::Subordinate | Scope::Subtree => candidate.is_within(&self.bases.tops),
        }
    }
}
