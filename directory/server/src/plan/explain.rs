//! The way a search would go, for people: the plan with its counts.

use super::access_path::AccessPath;
use super::lack::Lack;
use super::lookup::Lookup;
use super::{Plan, Planner};
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::index::IndexKind;
use crate::limits::COUNT_MAX;
use crate::naming::{self, Place};
use crate::state::Snapshot;
use keyway_codec::Filter;
use keyway_codec::message::{ResultCode, Scope};
use keyway_schema::{EntryName, FilterItem, FilterTest, Matcher};
use keyway_store::{EntryId, Key, View};

/// How a search would be done.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Entries in the scope.
    pub scope: u64,
    /// Whether these are walked, because no index leads to fewer.
    pub walks_scope: bool,
    /// Whether the scope is walked along, to leave out what is not in it.
    pub narrows_scope: bool,
    /// Entries that would be read and put to the filter.
    pub read: u64,
    /// The index that is missing, if none helps.
    pub lack: Option<Lack>,
    /// The filter.
    pub filter: Part,
}

/// A part of a filter.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its text; of one with terms its sign only.
    pub text: String,
    /// The kinds of index that lead to what it matches.
    pub kinds: Vec<&'static str>,
    /// How many entries the shortest of them leads to.
    pub count: Option<u64>,
    /// The use that the plan makes of it.
    pub used: Use,
    /// Why no index leads to what it matches.
    pub lack: Option<Lack>,
    /// Its terms.
    pub terms: Vec<Part>,
}

/// The use that a plan makes of a part of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The entries that it leads to are read.
    Walked,
    /// The entries to be read that it does not lead to are left out.
    Narrows,
    /// Entries are put to it when they have been read.
    Tested,
}

impl Directory {
    /// How a search for a filter would be done by a user that no limit holds back.
    ///
    /// # Errors
    /// `noSuchObject`, `unwillingToPerform` for what is not in the tree, or the store's.
    pub fn explain_search(
        &self,
        base: &str,
        scope: Scope,
        filter: &Filter<'_>,
    ) -> Result<Explained> {
        let snapshot = &*self.snapshot();
        let read = self.store.read()?;
        let view = read.view();
        let lists = scope_lists(snapshot, view, base, scope)?;
        let scope = Lookup::lists(lists);
        let matcher = Matcher::new(&snapshot.schema, filter);
        let planner = Planner { snapshot, view, count_max: COUNT_MAX };
        let plan = planner.plan(&matcher, &scope)?;
        let part = planner.part(filter, &matcher, &plan)?;
        let (walks_scope, narrows_scope) = (plan.walked == scope, plan.also.contains(&scope));
        let (lack, all) = (plan.lack.clone(), planner.count(&scope, usize::MAX)?);
        let source = planner.source(plan, &scope)?;
        let walks_scope = walks_scope || source.is_none();
        let mut read = 0;
        match source {
            Some(source) => {
                for id in source.candidates(view, EntryId::ROOT)? {
                    id?;
                    read += 1;
                }
            }
            None => read = all as u64,
        }
        Ok(Explained { scope: all as u64, walks_scope, narrows_scope, read, lack, filter: part })
    }
}

/// The lists of a scope.
fn scope_lists(snapshot: &Snapshot, view: View<'_>, base: &str, scope: Scope) -> Result<Vec<Key>> {
    let name = EntryName::parse(&snapshot.schema, base)?;
    let contexts = snapshot.shared.contexts();
    let tops = match naming::place(&contexts, &name) {
        Place::Root => naming::tops(view, &contexts)?,
        Place::Inside { context, below } => vec![naming::resolve(view, context, &name, below)?],
        Place::Subschema | Place::Virtual(_) => {
            let text = "no entry there is in the store, and none is indexed";
            return Err(Failure::new(ResultCode::UnwillingToPerform, text));
        }
        Place::Outside => return Err(Failure::no_such_object("")),
    };
    let list = if scope == Scope::One { Key::children } else { Key::subtree };
    Ok(tops.into_iter().map(list).collect())
}

impl Planner<'_> {
    /// A filter as it was understood, and what a plan does with each part of it.
    fn part(&self, filter: &Filter<'_>, matcher: &Matcher, plan: &Plan) -> Result<Part> {
        let terms: Vec<(&Filter<'_>, &Matcher)> = match (filter, matcher) {
            (Filter::And(filters), Matcher::And(terms))
            | (Filter::Or(filters), Matcher::Or(terms)) => filters.iter().zip(terms).collect(),
            (Filter::Not(filter), Matcher::Not(term)) => vec![(filter, term)],
            _ => return self.leaf(filter, matcher, plan),
        };
        let lookups = self.alternatives(matcher)?;
        let used = plan.use_of(&lookups);
        let count = self.least(&lookups)?;
        let terms = terms.into_iter().map(|(filter, term)| self.part(filter, term, plan));
        let mut terms: Vec<Part> = terms.collect::<Result<_>>()?;
        if let (Matcher::Or(_), Use::Walked | Use::Narrows) = (matcher, used) {
            // They are used together, or not at all.
            terms.iter_mut().for_each(|term| term.used = used);
        }
        let text = match filter {
            Filter::And(_) => "&",
            Filter::Or(_) => "|",
            _ => "!",
        };
        Ok(Part { text: text.into(), kinds: Vec::new(), count, used, lack: None, terms })
    }

    fn leaf(&self, filter: &Filter<'_>, matcher: &Matcher, plan: &Plan) -> Result<Part> {
        let mut part = Part {
            text: filter.to_string(),
            kinds: Vec::new(),
            count: None,
            used: Use::Tested,
            lack: None,
            terms: Vec::new(),
        };
        let Matcher::Item(item) = matcher else {
            part.lack = Some(Lack::Cannot("it is never true: its attribute or value is not known"));
            return Ok(part);
        };
        match AccessPath::of(self.snapshot, self.view, item)? {
            AccessPath::All => part.lack = Some(Lack::Cannot("all entries have it")),
            AccessPath::None(lack) => part.lack = Some(lack),
            AccessPath::Lookups(lookups) => {
                part.kinds = kinds(item, &lookups);
                part.count = self.least(&lookups)?;
                part.used = plan.use_of(&lookups);
            }
        }
        Ok(part)
    }

    /// How many candidates the shortest has.
    fn least(&self, lookups: &[Lookup]) -> Result<Option<u64>> {
        let mut least = None;
        for lookup in lookups {
            let count = self.count(lookup, least.unwrap_or(usize::MAX))?;
            least = Some(count.min(least.unwrap_or(usize::MAX)));
        }
        Ok(least.map(|count| count as u64))
    }
}

impl Plan {
    fn use_of(&self, lookups: &[Lookup]) -> Use {
        match () {
            () if lookups.contains(&self.walked) => Use::Walked,
            () if lookups.iter().any(|lookup| self.also.contains(lookup)) => Use::Narrows,
            () => Use::Tested,
        }
    }
}

/// Which kinds of index these lookups of a test are of.
fn kinds(item: &FilterItem, lookups: &[Lookup]) -> Vec<&'static str> {
    let groups = lookups.iter().any(Lookup::has_groups);
    let ranges = lookups.iter().any(|lookup| !lookup.ranges.is_empty());
    let lists = lookups.iter().any(|lookup| !lookup.lists.is_empty());
    let kind = |on: bool, name: &'static str| on.then_some(name);
    let all = match &item.test {
        FilterTest::Present => [kind(true, IndexKind::Presence.name()), None],
        FilterTest::Approximate { .. } => [kind(true, IndexKind::Approximate.name()), None],
        FilterTest::Substrings { .. } => {
            [kind(ranges, IndexKind::Equality.name()), kind(lists, IndexKind::Substring.name())]
        }
        FilterTest::AtLeast { .. } | FilterTest::AtMost { .. } | FilterTest::Before { .. } => {
            [kind(true, IndexKind::Ordering.name()), None]
        }
        FilterTest::InChain { .. } => [kind(true, "the chain of names"), None],
        _ if groups => [kind(true, "the group's members"), None],
        _ => [kind(true, IndexKind::Equality.name()), None],
    };
    all.into_iter().flatten().collect()
}
