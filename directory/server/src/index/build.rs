//! Building indexes and dropping them: pieces of work for the committer, between which others write.
//!
//! 1. The store's row says what there is to be, and searches forget what is to go.
//! 2. Each write lists its entries in what there is to be. A job that does nothing has come behind
//!    all jobs that were begun before.
//! 3. Piece by piece lists are dropped, then entries are listed. The row says how far that is, so
//!    that it goes on after a death.
//! 4. When the row says that an index is whole, searches use it.

use super::required::required_indexes;
use super::state::range;
use super::{IndexKind, Indexes, Kinds, State};
use crate::access::RULE;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::large::whole;
use crate::limits::{INDEX_PIECE_ENTRIES_MAX, INDEX_PIECE_KEYS_MAX, INDEX_PIECE_ROWS_MAX};
use crate::locate;
use crate::log::{Severity, Value};
use crate::state::{CurrentSnapshot, DirectoryState, Snapshot};
use keyway_codec::message::ResultCode;
use keyway_lock::Unpoisoned;
use keyway_schema::{OBJECT_CLASS, Schema};
use keyway_store::{EntryId, Key, Store, View, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How often the log hears how far it is.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// How long is waited after a piece that the disk has refused.
const AFTER_REFUSAL: Duration = Duration::from_secs(10);

/// An index, and what is to become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexReport {
    /// The attribute.
    pub attribute: String,
    /// The kind.
    pub kind: IndexKind,
    /// Whether searches use it, or why not.
    pub standing: IndexStatus,
}

/// Whether searches use an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexStatus {
    /// They do.
    Whole,
    /// It is being built: so much of a hundred of the entries is listed.
    Building(u8),
    /// It is being dropped.
    Dropping,
    /// The settings want it, and the store does not know yet: a start or a reload tells it.
    Wanted,
    /// The settings want it no more, and the store does not know yet.
    Unwanted,
}

impl Directory {
    /// Notes in the store which indexes the settings want. No search uses them yet.
    pub(crate) fn begin_indexes(&self) -> Result<State> {
        let wanted = self.snapshot().indexes.kinds();
        let state = self.store.write_now(move |write| turn(write, &wanted, &Kinds::new()))?;
        self.read_indexes(&state.whole);
        Ok(state)
    }

    /// Has searches use what is whole.
    pub(crate) fn read_indexes(&self, whole: &Kinds) {
        install(&self.shared, &self.current, whole);
    }

    /// Does all that is to be done before the indexes are those of the settings.
    ///
    /// # Errors
    /// The store's.
    pub fn finish_indexes(&self) -> Result<()> {
        while !self.build_piece()? {}
        Ok(())
    }

    /// Does one piece of it; whether it was the last.
    ///
    /// # Errors
    /// The store's.
    pub fn build_piece(&self) -> Result<bool> {
        Ok(step(&self.store, &self.shared, &self.current)?.is_settled())
    }

    /// Goes on with what is to be done to the indexes, in the background, until the directory is
    /// closed. The log hears of it.
    pub fn build_indexes(&self) {
        let (store, shared, current) =
            (self.store.clone(), self.shared.clone(), self.current.clone());
        let stop = self.builder.stop.clone();
        let mut is_building = lock(&self.shared.building);
        let settled = self.store.read().map_err(Failure::from);
        let settled = settled.and_then(|read| Ok(State::read(read.view())?.unwrap_or_default()));
        if *is_building || settled.is_ok_and(|state| state.is_settled()) {
            return;
        }
        let work = move || Background { store, shared, current, stop }.run();
        let started = thread::Builder::new().name("index-builder".into()).spawn(work);
        if let Ok(thread) = started {
            *is_building = true;
            *lock(&self.builder.thread) = Some(thread);
        }
    }

    /// Begins to make indexes anew, all or those of some attributes; [`Directory::build_indexes`]
    /// goes on with it. Until they are whole searches do without.
    ///
    /// # Errors
    /// `unwillingToPerform` if an attribute is not indexed, or its index is one that the directory
    /// cannot do without while it `is_served`; the store's.
    pub fn reindex(&self, attributes: &[String], is_served: bool) -> Result<()> {
        let is_building = lock(&self.shared.building);
        let snapshot = self.snapshot();
        let wanted = snapshot.indexes.kinds();
        let anew = match is_served {
            true => anew_while_served(&snapshot, &wanted, attributes)?,
            false => anew(&snapshot, &wanted, attributes)?,
        };
        let state = self.store.write_now(move |write| turn(write, &wanted, &anew))?;
        self.follow(&state, |whole| self.read_indexes(whole))?;
        drop(is_building);
        Ok(())
    }

    /// Whether a server would make the indexes of these attributes anew.
    ///
    /// # Errors
    /// As [`Directory::reindex`].
    pub fn check_reindex(&self, attributes: &[String]) -> Result<()> {
        let snapshot = self.snapshot();
        anew_while_served(&snapshot, &snapshot.indexes.kinds(), attributes).map(drop)
    }

    /// Has all searches and writes turn to the indexes that the store knows of: `install` makes searches
    /// use those that are whole. No other thread builds meanwhile.
    pub(crate) fn follow(&self, state: &State, install: impl FnOnce(&Kinds)) -> Result<()> {
        self.shared.invalidated.invalidate(&(&self.snapshot().indexes.whole() - &state.whole));
        install(&state.whole);
        // Behind all who have begun with the indexes of before.
        match state.is_settled() {
            true => Ok(()),
            false => self.store.write_now(|_| Ok(())),
        }
    }

    /// All indexes, those that are to come and those that are to go.
    ///
    /// # Errors
    /// The store's.
    pub fn index_reports(&self) -> Result<Vec<IndexReport>> {
        let wanted = self.snapshot().indexes.kinds();
        let read = self.store.read()?;
        let view = read.view();
        let state = State::read(view)?.unwrap_or_default();
        let percent = percent(view, state.after)?;
        let all = &(&(&wanted | &state.whole) | &state.adding) | &state.dropping;
        let report = |index: &(String, IndexKind)| {
            let standing = match () {
                () if state.dropping.contains(index) => IndexStatus::Dropping,
                () if state.adding.contains(index) => IndexStatus::Building(percent),
                () if !wanted.contains(index) => IndexStatus::Unwanted,
                () if state.whole.contains(index) => IndexStatus::Whole,
                () => IndexStatus::Wanted,
            };
            IndexReport { attribute: index.0.clone(), kind: index.1, standing }
        };
        Ok(all.iter().map(report).collect())
    }

    /// Whether everything that the directory cannot do without is whole.
    pub(crate) fn has_needed_indexes(&self) -> bool {
        let snapshot = self.snapshot();
        needed(&snapshot, &snapshot.indexes.kinds()).is_subset(&snapshot.indexes.whole())
    }
}

/// Which of the indexes that are wanted are to be made anew, if it is those of these attributes.
fn anew(snapshot: &Snapshot, wanted: &Kinds, attributes: &[String]) -> Result<Kinds> {
    if attributes.is_empty() {
        return Ok(wanted.clone());
    }
    let mut anew = Kinds::new();
    for given in attributes {
        let Some(name) = is_among(snapshot, given, wanted) else {
            let text = format!("attribute {given} is not indexed");
            return Err(Failure::new(ResultCode::UnwillingToPerform, text));
        };
        anew.extend(wanted.iter().filter(|(attribute, _)| *attribute == name).cloned());
    }
    Ok(anew)
}

/// The indexes to make anew as [`anew`] has them, without those that a server cannot do without.
fn anew_while_served(snapshot: &Snapshot, wanted: &Kinds, attributes: &[String]) -> Result<Kinds> {
    let needed = needed(snapshot, wanted);
    if let Some(name) = attributes.iter().find_map(|name| is_among(snapshot, name, &needed)) {
        let text =
            format!("the server cannot do without the index of {name}; stop it to make that anew");
        return Err(Failure::new(ResultCode::UnwillingToPerform, text));
    }
    Ok(&anew(snapshot, wanted, attributes)? - &needed)
}

/// The canonical name of an attribute, if one of these indexes is of it.
fn is_among(snapshot: &Snapshot, given: &str, kinds: &Kinds) -> Option<String> {
    let name = snapshot.schema.attribute(given)?.name();
    kinds.iter().any(|(attribute, _)| attribute == name).then(|| name.to_owned())
}

/// The wanted indexes by which references, groups, unique values and numbers, entries that stand for
/// others, and access rules are found.
fn needed(snapshot: &Snapshot, wanted: &Kinds) -> Kinds {
    let of_integrity = snapshot.integrity.indexed(&snapshot.schema, &[]);
    let made = Indexes::new(&of_integrity, &snapshot.schema);
    let mut needed = made.map(|made| made.kinds()).unwrap_or_default();
    let others = [(OBJECT_CLASS, IndexKind::Equality), (RULE, IndexKind::Presence)];
    needed.extend(others.map(|(name, kind)| (name.to_owned(), kind)));
    &needed & wanted
}

/// Notes in the store which indexes there are to be, and which of them are to be made anew.
pub(crate) fn turn(write: &mut Write<'_>, wanted: &Kinds, anew: &Kinds) -> Result<State> {
    let before = State::read(write.view())?;
    let next = match &before {
        Some(before) => before.turned_to(wanted, anew),
        // Nothing is in it yet.
        None => State { whole: wanted.clone(), ..State::default() },
    };
    if before.as_ref() != Some(&next) {
        next.put(write)?;
    }
    Ok(next)
}

/// Has searches use what is whole.
fn install(shared: &DirectoryState, current: &CurrentSnapshot, whole: &Kinds) {
    let settings = shared.settings.read().unpoisoned();
    let mut current = current.write().unpoisoned();
    *current = Arc::new(current.reading(&settings, whole));
}

impl Snapshot {
    /// This snapshot with the integrity and the indexes of these settings, of which those in `whole` are whole.
    pub(crate) fn reading(&self, settings: &crate::settings::Settings, whole: &Kinds) -> Snapshot {
        let mut snapshot = self.clone();
        // They were tried before; a schema that has changed meanwhile keeps what it was made with.
        let indexes = match required_indexes(settings, &snapshot.schema) {
            Ok((integrity, indexes)) => {
                snapshot.integrity = Arc::new(integrity);
                indexes
            }
            Err(_) => Indexes::clone(&snapshot.indexes),
        };
        let indexes = indexes.reading(whole, &snapshot.shared.invalidated);
        snapshot.special_entries =
            Arc::new(locate::SpecialEntries::new(&snapshot.schema, &indexes));
        snapshot.indexes = Arc::new(indexes);
        snapshot
    }
}

/// Does one piece of what is to be done. Says what is left, which searches then know.
fn step(store: &Store, shared: &DirectoryState, current: &CurrentSnapshot) -> Result<State> {
    let mut is_building = lock(&shared.building);
    let latest = current.clone();
    let job = move |write: &mut Write<'_>| {
        let snapshot = latest.read().unpoisoned().clone();
        piece(&snapshot, write)
    };
    let state = store.write_now(job)?;
    if state.is_settled() {
        install(shared, current, &state.whole);
        *is_building = false;
    }
    Ok(state)
}

fn piece(snapshot: &Snapshot, write: &mut Write<'_>) -> Result<State> {
    let mut state = State::read(write.view())?.unwrap_or_default();
    // The schema has just been changed: searches and writes under way do not know of it yet.
    if snapshot.require_current(write).is_err()
        || !state.adding.is_subset(&snapshot.indexes.kinds())
    {
        return Ok(state);
    }
    if let Some(kind) = state.dropping.first().cloned() {
        if !write.drop_lists(&range(&kind), INDEX_PIECE_ROWS_MAX)? {
            state.dropping.remove(&kind);
            state.put(write)?;
        }
        return Ok(state);
    }
    if state.adding.is_empty() {
        return Ok(state);
    }
    let indexes = Indexes::clone(&snapshot.indexes).only(&state.adding);
    let next = listings(write.view(), &snapshot.schema, &indexes, state.after)?;
    for (id, keys) in &next {
        write.list(*id, keys)?;
    }
    match next.last() {
        Some((id, _)) => state.after = *id,
        None => {
            let whole = &state.whole | &state.adding;
            state = State { whole, ..State::default() };
        }
    }
    state.put(write)?;
    Ok(state)
}

/// The next entries, and where they are to be listed.
fn listings(
    view: View<'_>,
    schema: &Schema,
    indexes: &Indexes,
    after: EntryId,
) -> Result<Vec<(EntryId, Vec<Key>)>> {
    let (mut next, mut count) = (Vec::new(), 0);
    for entry in view.entries(after)?.take(INDEX_PIECE_ENTRIES_MAX) {
        let (id, entry) = entry?;
        let keys = indexes.all_keys(schema, &whole(view, id, &entry)?);
        count += keys.len();
        next.push((id, keys));
        if count >= INDEX_PIECE_KEYS_MAX {
            break;
        }
    }
    Ok(next)
}

/// How many of a hundred entries are not after this one.
fn percent(view: View<'_>, after: EntryId) -> Result<u8> {
    let last = view.last_entry()?;
    let percent = after.0.saturating_mul(100).checked_div(last.0).unwrap_or(0);
    Ok(u8::try_from(percent.min(100)).unwrap_or(100))
}

/// The work of a thread in the background.
struct Background {
    store: Store,
    shared: Arc<DirectoryState>,
    current: CurrentSnapshot,
    stop: Arc<AtomicBool>,
}

impl Background {
    /// Works until all is done, the directory is closed or the store has failed. Between two pieces
    /// it waits for as long as the first took: the committer is there for others half of the time.
    fn run(&self) {
        let mut told = None;
        while !self.stop.load(Ordering::Relaxed) {
            let started = self.now();
            let pause = match step(&self.store, &self.shared, &self.current) {
                Ok(state) => {
                    self.tell(&mut told, &state);
                    if state.is_settled() {
                        return;
                    }
                    self.now().saturating_duration_since(started)
                }
                Err(why) => {
                    if self.store.failed().is_some() {
                        break;
                    }
                    self.say(Severity::Error, &format!("cannot go on: {}", why.diagnostic));
                    AFTER_REFUSAL
                }
            };
            thread::park_timeout(pause.min(AFTER_REFUSAL));
        }
        *lock(&self.shared.building) = false;
    }

    fn now(&self) -> Instant {
        self.shared.monotonic()
    }

    /// Says when it begins to drop and to build, now and then, and at the end how far it is.
    fn tell(&self, told: &mut Option<(Instant, bool)>, state: &State) {
        let (now, drops) = (self.now(), !state.dropping.is_empty());
        if state.is_settled() {
            return self.say(Severity::Info, "the indexes are those of the configuration");
        }
        let is_recent = |at: Instant| now.saturating_duration_since(at) < TELL_EVERY;
        if told.is_some_and(|(at, dropped)| dropped == drops && is_recent(at)) {
            return;
        }
        *told = Some((now, drops));
        if drops {
            return self.say(Severity::Info, &format!("dropping {}", shown(&state.dropping)));
        }
        let read = self.store.read().map_err(Failure::from);
        let percent = read.and_then(|read| percent(read.view(), state.after)).unwrap_or(0);
        let text = format!("building {}: {percent} %", shown(&state.adding));
        self.say(Severity::Info, &text);
    }

    fn say(&self, severity: Severity, text: &str) {
        self.shared.log.say(self.shared.now(), severity, "index", &[("text", Value::Text(text))]);
    }
}

/// `mail for substring, sn for equality`
fn shown(kinds: &Kinds) -> String {
    let texts = kinds.iter().map(|(attribute, kind)| format!("{attribute} for {kind}"));
    texts.collect::<Vec<_>>().join(", ")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unpoisoned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexKind::*;

    #[test]
    fn kinds_are_shown_in_words() {
        let kinds = [("mail", Substring), ("sn", Equality)];
        let kinds = kinds.map(|(name, kind)| (name.to_owned(), kind)).into_iter().collect();
        assert_eq!(shown(&kinds), "mail for substring, sn for equality");
    }
}
