//! Where a search looks for candidates: filter and scope to posting lists.
//!
//! A plan leads to every entry that matches and mostly to few others; each candidate is then put
//! to the filter itself. The shortest list is walked, and what other lists of a conjunction do not
//! have is left out, as far as it is cheaper to walk them along than to look at the entries. Lists of a few
//! are read at once. Longer ones are counted by whole chunks, only as far as it takes to find a short one, and
//! are not copied: they are walked a step at a time.

mod access_path;
mod explain;
mod lack;
mod lookup;
mod source;

pub use explain::{Explained, Part, Use};
pub use lack::Lack;
pub use source::Source;

use crate::failure::Result;
use crate::limits::{
    ALTERNATIVES_MAX, COUNT_MAX, COUNT_MIN, MEMBER_IDS_MAX, NARROWING_MAX, RANGE_IDS_MAX,
    UNION_LISTS_MAX,
};
use crate::state::Snapshot;
use access_path::AccessPath;
use keyway_schema::Matcher;
use keyway_store::{EntryId, Key, View};
use lookup::{Lookup, NARROWING_LISTS_MAX};
use source::Union;

/// How many candidates are few: a list this short is read and not counted first.
const FEW: usize = 8;

/// Candidates that one entry in the answer is expected to take.
const COUNT_ENTRY: usize = 64;

/// Candidates from which on others are asked to leave some of them out.
const NARROWED_MIN: usize = 32;

/// The cost of looking at an entry, counted in ids of a list that are walked along: less than it is,
/// since these have to be counted first.
const LOOK_IDS: usize = 64;

/// The lists to be walked.
struct Plan {
    /// The lists that are walked.
    walked: Lookup,
    /// All that is in them, if they were read.
    read: Option<Vec<EntryId>>,
    /// The lists that leave some of their candidates out.
    also: Vec<Lookup>,
    lack: Option<Lack>,
}

impl Plan {
    /// To walk these.
    fn of(walked: Lookup) -> Plan {
        Plan { walked, read: None, also: Vec::new(), lack: None }
    }
}

/// A lookup that was found to be the shortest.
struct Shortest {
    /// Its place.
    at: usize,
    /// How many candidates it leads to.
    count: usize,
    /// These, if they were read.
    read: Option<Vec<EntryId>>,
}

impl Shortest {
    fn counted(at: usize, count: usize) -> Shortest {
        Shortest { at, count, read: None }
    }

    fn read(at: usize, ids: Vec<EntryId>) -> Shortest {
        Shortest { at, count: ids.len(), read: Some(ids) }
    }
}

/// Chooses between the filter's indexes and the scope's own lists.
///
/// Counting costs a fraction of a nanosecond an entry and looking at one some thousand. A search that
/// returns few entries may be over long before it has walked one list: for it they are counted to
/// `count_max` only.
///
/// # Errors
/// The store's.
pub fn plan(
    snapshot: &Snapshot,
    view: View<'_>,
    matcher: &Matcher,
    scope_lists: Vec<Key>,
    count_max: usize,
) -> Result<Source> {
    let invalidations = snapshot.indexes.invalidations();
    let planner = Planner { snapshot, view, count_max };
    let scope = Lookup { lists: scope_lists, ..Lookup::default() };
    let plan = planner.plan(matcher, &scope)?;
    let goes_by_indexes = plan.walked != scope || !plan.also.is_empty();
    let Some(mut source) = planner.source(plan, &scope)? else {
        return Ok(Source::scope(scope.lists));
    };
    source.invalidations = goes_by_indexes.then_some(invalidations);
    Ok(source)
}

/// How far lists are counted for a search that returns at most so many entries, 0 for no limit.
pub fn count_max(entries_max: u32) -> usize {
    match usize::try_from(entries_max) {
        Ok(0) | Err(_) => COUNT_MAX,
        Ok(entries) => entries.saturating_mul(COUNT_ENTRY).clamp(COUNT_MIN, COUNT_MAX),
    }
}

struct Planner<'a> {
    snapshot: &'a Snapshot,
    view: View<'a>,
    count_max: usize,
}

impl Planner<'_> {
    fn plan(&self, matcher: &Matcher, scope: &Lookup) -> Result<Plan> {
        let mut lookups = self.alternatives(matcher)?;
        if lookups.is_empty() {
            let lack = self.lack(matcher)?;
            return Ok(Plan { lack, ..Plan::of(scope.clone()) });
        }
        lookups.push(scope.clone());
        let Some(Shortest { at, count, read }) = self.shortest(&lookups)? else {
            return Ok(Plan::of(scope.clone()));
        };
        let walked = lookups.swap_remove(at);
        // What is in the scope is asked when it is walked.
        let read = read.filter(|_| walked != *scope);
        let also = self.narrowing(count, lookups)?;
        Ok(Plan { read, also, ..Plan::of(walked) })
    }

    /// The source of a plan, with its ranges and groups read; `None` if they are too long.
    fn source(&self, plan: Plan, scope: &Lookup) -> Result<Option<Source>> {
        let Plan { walked, read, also, lack } = plan;
        if let Some(ids) = read {
            return Ok(Some(Source::read(walked, ids)));
        }
        let is_scope = walked == *scope || also.contains(scope);
        let mut unions = Vec::with_capacity(also.len());
        for lookup in also {
            if let Some(ids) = self.collect(&lookup)? {
                unions.push(Union::new(lookup, ids));
            }
        }
        let Some(ids) = self.collect(&walked)? else { return Ok(None) };
        Ok(Some(Source::meeting(Union::new(walked, ids), unions, is_scope, lack)))
    }

    /// Lookups of which each one leads to all that matches; none if no index helps.
    fn alternatives(&self, matcher: &Matcher) -> Result<Vec<Lookup>> {
        Ok(match matcher {
            // A test that is undefined is never true.
            Matcher::Undefined => vec![Lookup::default()],
            Matcher::Not(_) => Vec::new(),
            Matcher::Item(item) => match AccessPath::of(self.snapshot, self.view, item)? {
                AccessPath::Lookups(lookups) => lookups,
                AccessPath::All | AccessPath::None(_) => Vec::new(),
            },
            Matcher::And(terms) => {
                let mut all = Vec::new();
                for term in terms {
                    all.extend(self.alternatives(term)?);
                    if all.len() >= ALTERNATIVES_MAX {
                        break;
                    }
                }
                all
            }
            Matcher::Or(terms) => {
                let mut united = Lookup::default();
                for term in terms {
                    let mut lookups = self.alternatives(term)?;
                    let Some(Shortest { at, .. }) = self.shortest(&lookups)? else {
                        return Ok(Vec::new());
                    };
                    united.add(lookups.swap_remove(at));
                    if united.len() > UNION_LISTS_MAX {
                        return Ok(Vec::new());
                    }
                }
                vec![united]
            }
        })
    }

    /// Why no index helps; `None` if one does, or if none is needed because all entries match.
    fn lack(&self, matcher: &Matcher) -> Result<Option<Lack>> {
        Ok(match matcher {
            Matcher::Undefined => None,
            Matcher::Not(_) => Some(Lack::Cannot("it says what entries are not")),
            Matcher::Item(item) => match AccessPath::of(self.snapshot, self.view, item)? {
                AccessPath::Lookups(_) | AccessPath::All => None,
                AccessPath::None(lack) => Some(lack),
            },
            // One that there could be would be enough.
            Matcher::And(terms) => {
                let lacks: Vec<Option<Lack>> =
                    terms.iter().map(|term| self.lack(term)).collect::<Result<_>>()?;
                let mut lacks: Vec<Lack> = lacks.into_iter().flatten().collect();
                let at = lacks.iter().position(|lack| matches!(lack, Lack::Index { .. }));
                (!lacks.is_empty()).then(|| lacks.swap_remove(at.unwrap_or(0)))
            }
            Matcher::Or(terms) => {
                for term in terms {
                    if self.alternatives(term)?.is_empty() {
                        return self.lack(term);
                    }
                }
                Some(Lack::Cannot("it has too many terms"))
            }
        })
    }

    /// The one with the fewest candidates, as far as counting to a bound can tell.
    fn shortest(&self, lookups: &[Lookup]) -> Result<Option<Shortest>> {
        if lookups.len() < 2 {
            return Ok(lookups.first().map(|_| Shortest::counted(0, self.count_max)));
        }
        let mut bound = FEW + 1;
        // A group of thousands takes long to read, and another term may make that needless.
        let (groups, plain): (Vec<usize>, Vec<usize>) =
            (0..lookups.len()).partition(|at| lookups.get(*at).is_some_and(Lookup::has_groups));
        let order: Vec<usize> = plain.into_iter().chain(groups).collect();
        loop {
            let mut best: Option<Shortest> = None;
            for (at, lookup) in order.iter().filter_map(|at| Some((*at, lookups.get(*at)?))) {
                let limit = best.as_ref().map_or(bound, |best| best.count);
                let found = match lookup.is_plain() && limit <= FEW + 1 {
                    true => self.read(lookup, limit)?.map(|ids| Shortest::read(at, ids)),
                    false => Some(Shortest::counted(at, self.count(lookup, limit)?)),
                };
                best = found.filter(|found| found.count < limit).or(best);
                if best.as_ref().is_some_and(|best| best.count <= FEW / 2) {
                    break;
                }
            }
            if best.is_some() {
                return Ok(best);
            }
            if bound >= self.count_max {
                return Ok(order.first().map(|at| Shortest::counted(*at, bound)));
            }
            bound = (bound * 8).min(self.count_max);
        }
    }

    /// Which of the other lookups are worth walking along with one of so many candidates, the
    /// shortest first.
    fn narrowing(&self, candidates: usize, others: Vec<Lookup>) -> Result<Vec<Lookup>> {
        if candidates < NARROWED_MIN {
            return Ok(Vec::new());
        }
        let total = usize::try_from(self.view.entry_count()?).unwrap_or(usize::MAX).max(1);
        let mut worth = Vec::new();
        let limit = candidates.saturating_mul(LOOK_IDS).min(total);
        for lookup in others.into_iter().filter(Lookup::can_narrow).take(NARROWING_MAX) {
            let count = self.count(&lookup, limit)?;
            // As many as it is long, of those that there are, stay.
            let left_out = candidates.saturating_mul(total.saturating_sub(count)) / total;
            let is_collected = lookup.ranges.is_empty() || count <= candidates;
            if count < limit && is_collected && left_out.saturating_mul(LOOK_IDS) > count {
                worth.push((count, lookup));
            }
        }
        worth.sort_by_key(|(count, _)| *count);
        Ok(worth.into_iter().take(NARROWING_LISTS_MAX).map(|(_, lookup)| lookup).collect())
    }

    /// All that lists lead to, ascending, if it is less than `limit`.
    fn read(&self, lookup: &Lookup, limit: usize) -> Result<Option<Vec<EntryId>>> {
        let mut ids = Vec::with_capacity(limit);
        for list in &lookup.lists {
            for id in self.view.postings(list, EntryId::ROOT)?.take(limit - ids.len()) {
                ids.push(id?);
            }
            if ids.len() == limit {
                return Ok(None);
            }
        }
        if lookup.lists.len() > 1 {
            ids.sort_unstable();
            ids.dedup();
        }
        Ok(Some(ids))
    }

    /// How many candidates it leads to, counted up to `limit`.
    fn count(&self, lookup: &Lookup, limit: usize) -> Result<usize> {
        let mut count = 0;
        for list in &lookup.lists {
            if count >= limit {
                return Ok(limit);
            }
            count += self.view.count_at_most(list, limit - count)?;
        }
        for range in &lookup.ranges {
            count += self.view.count_range_at_most(range, limit.saturating_sub(count))?;
        }
        count += lookup.ids.len();
        for group in &lookup.groups {
            if count >= limit {
                return Ok(limit);
            }
            count += self.snapshot.member_count(self.view, *group)?;
        }
        Ok(count.min(limit))
    }

    /// The ids of all ranges and groups, ascending; `None` if they are too many.
    fn collect(&self, lookup: &Lookup) -> Result<Option<Vec<EntryId>>> {
        let mut all = lookup.ids.clone();
        for range in &lookup.ranges {
            match self.view.collect_range(range, RANGE_IDS_MAX.saturating_sub(all.len()))? {
                Some(ids) => all.extend(ids),
                None => return Ok(None),
            }
        }
        for group in &lookup.groups {
            let max = MEMBER_IDS_MAX.saturating_sub(all.len());
            match self.snapshot.members(self.view, *group, max)? {
                Some(ids) => all.extend(ids),
                None => return Ok(None),
            }
        }
        if lookup.ranges.len() > 1 || !lookup.groups.is_empty() || !lookup.ids.is_empty() {
            all.sort_unstable();
            all.dedup();
        }
        Ok(Some(all))
    }
}
