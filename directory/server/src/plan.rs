//! Where a search looks for candidates: filter and scope to posting lists.
//!
//! A plan leads to every entry that matches and mostly to few others; each candidate is then put
//! to the filter itself. Lists are counted only as far as it takes to find a short one, and none
//! is copied: a list that is long is walked a step at a time.

use crate::directory::Core;
use crate::failure::Result;
use crate::filter::{Item, ItemScope, Matcher, Test};
use crate::index::Indexes;
use crate::integrity::MemberOf;
use crate::limits::{
    ALTERNATIVES_MAX, COUNT_MAX, COUNT_MIN, MEMBER_IDS_MAX, RANGE_IDS_MAX, UNION_LISTS_MAX,
};
use crate::names::Name;
use crate::operational::Computed;
use keyway_codec::syntax::MatchingRule;
use keyway_store::{EntryId, Key, KeyRange, Postings, View};
use std::iter::{Copied, Peekable};

/// How many candidates are few: a list this short is taken without looking further.
const FEW: usize = 8;

/// A set of posting lists that together hold all that matches some filter.
#[derive(Clone, Debug, Default, PartialEq)]
struct Lookup {
    lists: Vec<Key>,
    ranges: Vec<KeyRange>,
    /// Groups whose members they are; these are not looked up before all else.
    groups: Vec<EntryId>,
    /// Entries.
    ids: Vec<EntryId>,
}

/// Where candidates come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Lists to merge.
    lists: Vec<Key>,
    /// Ids to merge with them, ascending.
    ids: Vec<EntryId>,
    /// Whether this is the scope itself, so that a candidate need not be checked against it.
    pub is_scope: bool,
}

impl Source {
    /// One entry.
    pub fn entry(id: EntryId) -> Source {
        Source::entries(vec![id])
    }

    /// These entries.
    pub fn entries(mut ids: Vec<EntryId>) -> Source {
        ids.sort_unstable();
        Source { lists: Vec::new(), ids, is_scope: true }
    }

    /// The candidates after an id, ascending, each once.
    ///
    /// # Errors
    /// The store's.
    pub fn candidates<'t>(&'t self, view: View<'t>, after: EntryId) -> Result<Candidates<'t>> {
        let at = self.ids.partition_point(|id| *id <= after);
        let ids = self.ids.get(at..).unwrap_or_default();
        let lists = self
            .lists
            .iter()
            .map(|key| Ok(view.postings(key, after)?.peekable()))
            .collect::<Result<_>>()?;
        Ok(Candidates { lists, ids: ids.iter().copied().peekable() })
    }
}

/// Iterator over candidates, ascending.
pub struct Candidates<'t> {
    lists: Vec<Peekable<Postings<'t>>>,
    ids: Peekable<Copied<std::slice::Iter<'t, EntryId>>>,
}

impl Iterator for Candidates<'_> {
    type Item = Result<EntryId>;

    fn next(&mut self) -> Option<Self::Item> {
        if let ([list], None) = (self.lists.as_mut_slice(), self.ids.peek()) {
            return list.next().map(|id| Ok(id?));
        }
        let mut least = self.ids.peek().copied();
        for list in &mut self.lists {
            match list.peek() {
                Some(Ok(id)) => least = Some(least.map_or(*id, |least| least.min(*id))),
                Some(Err(_)) => return list.next().map(|error| Ok(error?)),
                None => {}
            }
        }
        let least = least?;
        self.ids.next_if(|id| *id == least);
        for list in &mut self.lists {
            list.next_if(|id| matches!(id, Ok(id) if *id == least));
        }
        Some(Ok(least))
    }
}

/// Chooses between the filter's indexes and the scope's own lists.
///
/// Counting costs a few nanoseconds an entry and looking at one some thousand, so lists are counted
/// to the length of the shortest. A search that returns few entries may be over long before it
/// has walked one: for it they are counted to `count_max` only.
///
/// # Errors
/// The store's.
pub fn plan(
    core: &Core,
    view: View<'_>,
    matcher: &Matcher,
    scope_lists: Vec<Key>,
    count_max: usize,
) -> Result<Source> {
    let planner = Planner { core, view, indexes: &core.indexes, count_max };
    let scope = Lookup { lists: scope_lists, ..Lookup::default() };
    let mut alternatives = planner.alternatives(matcher)?;
    let chosen = match alternatives.is_empty() {
        true => None,
        false => {
            alternatives.push(scope.clone());
            planner.shortest(alternatives)?.filter(|chosen| *chosen != scope)
        }
    };
    if let Some(chosen) = chosen
        && let Some(ids) = planner.collect(&chosen)?
    {
        return Ok(Source { lists: chosen.lists, ids, is_scope: false });
    }
    Ok(Source { lists: scope.lists, ids: Vec::new(), is_scope: true })
}

/// How far lists are counted for a search that returns at most so many entries, 0 for no limit.
pub fn count_max(entries_max: u32) -> usize {
    match usize::try_from(entries_max) {
        Ok(0) | Err(_) => COUNT_MAX,
        Ok(entries) => entries.saturating_mul(COUNT_ENTRY).clamp(COUNT_MIN, COUNT_MAX),
    }
}

/// Candidates that one entry in the answer is expected to take.
const COUNT_ENTRY: usize = 64;

struct Planner<'a> {
    core: &'a Core,
    view: View<'a>,
    indexes: &'a Indexes,
    count_max: usize,
}

impl Planner<'_> {
    /// Lookups of which each one leads to all that matches; none if no index helps.
    fn alternatives(&self, matcher: &Matcher) -> Result<Vec<Lookup>> {
        Ok(match matcher {
            // What is undefined is never true.
            Matcher::Undefined => vec![Lookup::default()],
            Matcher::Not(_) => Vec::new(),
            Matcher::Item(item) => self.item(item)?,
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
                    let Some(best) = self.shortest(self.alternatives(term)?)? else {
                        return Ok(Vec::new());
                    };
                    united.add(best);
                    if united.lists.len() + united.ranges.len() + united.groups.len()
                        > UNION_LISTS_MAX
                    {
                        return Ok(Vec::new());
                    }
                }
                vec![united]
            }
        })
    }

    fn item(&self, item: &Item) -> Result<Vec<Lookup>> {
        match (&item.scope, &item.test) {
            (ItemScope::Type { name, computed, .. }, Test::InChain { given, normal }) => {
                self.chain(name, !computed.is_empty(), given, normal)
            }
            _ => Ok(self.indexed(item)),
        }
    }

    /// What leads to an entry; nothing that helps if that cannot be told.
    fn chain(
        &self,
        name: &str,
        is_computed: bool,
        given: &[u8],
        normal: &[u8],
    ) -> Result<Vec<Lookup>> {
        if is_computed {
            // Members of groups in it are found so only if they are shown.
            let is_nested = self.core.integrity.member_of == MemberOf::Nested;
            let members = if is_nested { self.members(given) } else { None };
            return Ok(members.into_iter().collect());
        }
        let chain = self.core.chain(self.view, name, normal)?;
        let ids = match chain {
            Some(chain) if !chain.complete => return Ok(Vec::new()),
            // It is undefined for every entry.
            None => Vec::new(),
            Some(chain) => chain.ids,
        };
        Ok(vec![Lookup { ids, ..Lookup::default() }])
    }

    fn indexed(&self, item: &Item) -> Vec<Lookup> {
        let ItemScope::Type { name, computed, equality, substrings, .. } = &item.scope else {
            return Vec::new();
        };
        if item.dn_attributes {
            return Vec::new();
        }
        if let ([Computed::MemberOf], Test::Equal { given, .. }) = (computed.as_slice(), &item.test)
        {
            return self.members(given).into_iter().collect();
        }
        if !computed.is_empty() {
            return Vec::new();
        }
        // Keys are in the form of the type's own rules; that of the test may have another.
        let form = |own: &Option<MatchingRule>, rule: &MatchingRule| {
            own.is_some_and(|own| own.has_form_of(*rule))
        };
        let same = |rule: &MatchingRule| form(equality, rule);
        let list = |key: Option<Key>| key.map(Lookup::list).into_iter().collect();
        let range = |range: Option<KeyRange>| range.map(Lookup::range).into_iter().collect();
        match &item.test {
            Test::Present => list(self.indexes.presence(name)),
            Test::Equal { rule, normal, .. } if same(rule) => {
                list(self.indexes.equality(name, normal))
            }
            Test::AtLeast { rule, normal } if same(rule) => {
                range(self.indexes.at_least(name, normal))
            }
            Test::AtMost { rule, normal } | Test::Before { rule, normal } if same(rule) => {
                range(self.indexes.at_most(name, normal))
            }
            Test::Substrings { rule, initial, any, last } => {
                let mut lookups = Vec::new();
                if let (Some(initial), true) = (initial, same(rule)) {
                    lookups.extend(self.indexes.beginning(name, initial).map(Lookup::range));
                }
                let overlong = self.indexes.overlong(name);
                let parts = form(substrings, rule).then(|| initial.iter().chain(any).chain(last));
                for part in parts.into_iter().flatten() {
                    let keys = self.indexes.containing(name, part, GRAMS_MAX);
                    lookups.extend(keys.into_iter().map(|key| Lookup {
                        lists: std::iter::once(key).chain(overlong.clone()).collect(),
                        ..Lookup::default()
                    }));
                }
                lookups
            }
            _ => Vec::new(),
        }
    }

    /// The members of a group; nothing if there is no such group.
    fn members(&self, group: &[u8]) -> Option<Lookup> {
        if self.core.integrity.member_of == MemberOf::Off {
            return Some(Lookup::default());
        }
        if !self.core.finds_members() {
            return None;
        }
        let name = std::str::from_utf8(group).ok()?;
        let name = Name::parse(&self.core.schema, name).ok()?;
        let group = self.core.entry_named(self.view, &name).ok()?;
        Some(Lookup { groups: group.into_iter().collect(), ..Lookup::default() })
    }

    /// The one with the fewest candidates, as far as counting to a bound can tell.
    fn shortest(&self, lookups: Vec<Lookup>) -> Result<Option<Lookup>> {
        if lookups.len() < 2 {
            return Ok(lookups.into_iter().next());
        }
        let mut bound = FEW;
        let mut left = lookups;
        // A group of thousands takes long to read, and another term may make that needless.
        left.sort_by_key(|lookup| !lookup.groups.is_empty());
        loop {
            let mut best: Option<(usize, usize)> = None;
            for (position, lookup) in left.iter().enumerate() {
                let limit = best.map_or(bound, |(count, _)| count);
                let count = self.count(lookup, limit)?;
                if count < limit {
                    best = Some((count, position));
                }
                if count <= FEW / 2 {
                    break;
                }
            }
            if let Some((_, position)) = best {
                return Ok(Some(left.swap_remove(position)));
            }
            if bound >= self.count_max {
                return Ok(left.into_iter().next());
            }
            bound = (bound * 8).min(self.count_max);
        }
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
            match self.view.collect_range(range, limit.saturating_sub(count))? {
                Some(ids) => count += ids.len(),
                None => return Ok(limit),
            }
        }
        count += lookup.ids.len();
        for group in &lookup.groups {
            if count >= limit {
                return Ok(limit);
            }
            count += self.core.member_count(self.view, *group)?;
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
            match self.core.members(self.view, *group, max)? {
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

/// Grams of one part that are counted; one of them is mostly rare enough.
const GRAMS_MAX: usize = 16;

impl Lookup {
    fn list(key: Key) -> Lookup {
        Lookup { lists: vec![key], ..Lookup::default() }
    }

    fn range(range: KeyRange) -> Lookup {
        Lookup { ranges: vec![range], ..Lookup::default() }
    }

    fn add(&mut self, other: Lookup) {
        self.lists.extend(other.lists);
        self.ranges.extend(other.ranges);
        self.groups.extend(other.groups);
        self.ids.extend(other.ids);
    }
}
