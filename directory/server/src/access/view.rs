//! The rights of one subject in one place.

use super::compiled::Compiled;
use super::facts::Facts;
use super::rights::Rights;
use super::rule::{Origin, Place};
use super::subject::Subject;
use super::table::{Resolved, Table};
use super::trace::Trace;
use crate::candidate::Candidate;
use crate::failure::{Failure, Result};
use crate::integrity::ReferenceAttribute;
use crate::state::Snapshot;
use keyway_schema::{EntryName, Schema};
use keyway_store::{EntryId, Names, View as Tree};
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

/// The rules that speak of one subject in one place.
pub struct View {
    resolved: Arc<Resolved>,
    place: Place,
    own: Option<EntryId>,
    /// The entries below which rules hold, by the rules' places.
    tops: RefCell<Vec<(u16, Option<EntryId>)>>,
    trace: Option<Arc<Trace>>,
}

impl View {
    pub(super) fn new(resolved: Arc<Resolved>, place: Place, own: Option<EntryId>) -> View {
        View { resolved, place, own, tops: RefCell::default(), trace: None }
    }

    /// This view, and its decisions are noted there.
    pub(super) fn traced(self, trace: Option<Arc<Trace>>) -> View {
        View { trace, ..self }
    }

    /// The view of the server itself, which may do everything.
    pub fn unrestricted() -> View {
        static EVERYTHING: OnceLock<Arc<Resolved>> = OnceLock::new();
        let resolved = EVERYTHING.get_or_init(|| {
            let anonymous = Subject::anonymous();
            Arc::new(Arc::new(Table::everything()).resolve(&Facts::nothing(&anonymous), 0))
        });
        View::new(Arc::clone(resolved), Place::Data, None)
    }

    /// Whether the subject may do this to an attribute, given by its canonical name without
    /// options, of this entry.
    ///
    /// # Errors
    /// The store's.
    pub fn may(&self, right: Rights, attribute: &str, entry: &Candidate<'_, '_>) -> Result<bool> {
        self.one_grants(right, attribute, entry)
    }

    /// Whether the subject may do this to some attribute of this entry.
    ///
    /// # Errors
    /// The store's.
    pub fn may_something(&self, right: Rights, entry: &Candidate<'_, '_>) -> Result<bool> {
        self.one_grants(right, "", entry)
    }

    /// Whether the subject may know that this entry is there: it may do something to it.
    ///
    /// # Errors
    /// The store's.
    pub fn may_know(&self, entry: &Candidate<'_, '_>) -> Result<bool> {
        for (at, rule) in self.chosen() {
            if rule.rule.rights != Rights::NONE && self.holds(at, rule, entry)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the subject may do one of these to some attribute of some entry of the place.
    pub fn may_anywhere(&self, one_of: Rights) -> bool {
        let may = self.chosen().any(|(_, rule)| rule.rule.rights.has_one_of(one_of));
        if let (false, Some(trace)) = (may, &self.trace) {
            // Nothing was read for it.
            trace.note(one_of, "", None);
        }
        may
    }

    /// Whether the subject may do this to an attribute of some entry of the place.
    pub fn may_somewhere(&self, right: Rights, attribute: &str) -> bool {
        let mut chosen = self.chosen();
        chosen.any(|(_, rule)| rule.rule.rights.contains(right) && rule.includes(right, attribute))
    }

    /// Whether this right is the same for all entries of the place.
    pub fn is_settled(&self, right: Rights) -> bool {
        !self.resolved.chosen(self.place).unsettled.has_one_of(right)
    }

    /// Whether a rule grants it; an empty attribute is any.
    fn one_grants(
        &self,
        right: Rights,
        attribute: &str,
        entry: &Candidate<'_, '_>,
    ) -> Result<bool> {
        let speaks_of = |rule: &Compiled| {
            rule.rule.rights.contains(right)
                && (attribute.is_empty() || rule.includes(right, attribute))
        };
        for (at, rule) in self.chosen() {
            if speaks_of(rule) && self.holds(at, rule, entry)? {
                self.note(right, attribute, Some(rule), entry)?;
                return Ok(true);
            }
        }
        self.note(right, attribute, None, entry)?;
        Ok(false)
    }

    fn note(
        &self,
        right: Rights,
        attribute: &str,
        rule: Option<&Compiled>,
        entry: &Candidate<'_, '_>,
    ) -> Result<()> {
        let Some(trace) = &self.trace else { return Ok(()) };
        if trace.wants(right, attribute, rule) {
            let rule = rule.map(|rule| Ok::<_, Failure>((rule, place_of(rule, entry)?)));
            trace.note(right, attribute, rule.transpose()?);
        }
        Ok(())
    }

    /// Whether the entry is one that a rule speaks of; asked once an entry.
    fn holds(&self, at: u16, rule: &Compiled, entry: &Candidate<'_, '_>) -> Result<bool> {
        if !rule.asks_entry() {
            return Ok(true);
        }
        if let Some(known) = entry.memo().get(at) {
            return Ok(known);
        }
        let holds = rule.holds_for(at, self, entry)?;
        entry.memo().set(at, holds);
        Ok(holds)
    }

    fn chosen(&self) -> impl Iterator<Item = (u16, &Compiled)> {
        let rules = &self.resolved.table.rules;
        let chosen = self.resolved.chosen(self.place).rules.iter();
        chosen.filter_map(|at| Some((*at, rules.get(usize::from(*at))?)))
    }

    /// Whether a value of an attribute, which is its rule's or a subtype's, is the subject's own DN.
    pub(crate) fn is_named_by(&self, schema: &Schema, attribute: &str, value: &[u8]) -> bool {
        let Ok(attribute) = ReferenceAttribute::to_dn(schema, attribute) else { return false };
        let own = self.dn().map(|dn| attribute.normal(dn));
        own.is_some() && attribute.normalize(schema, value) == own
    }

    /// The normal form of the subject's DN.
    pub(super) fn dn(&self) -> Option<&[u8]> {
        self.resolved.dn.as_deref()
    }

    pub(super) fn is_own(&self, entry: &Candidate<'_, '_>) -> bool {
        self.own == Some(entry.id())
    }

    /// The entry of a rule's name, looked up once.
    pub(super) fn top(
        &self,
        at: u16,
        snapshot: &Snapshot,
        tree: Tree<'_>,
        name: &EntryName,
    ) -> Result<Option<EntryId>> {
        let known = self.tops.borrow().iter().find(|(rule, _)| *rule == at).map(|(_, top)| *top);
        if let Some(top) = known {
            return Ok(top);
        }
        let top = snapshot.entry_named(tree, name)?;
        self.tops.borrow_mut().push((at, top));
        Ok(top)
    }
}

impl Snapshot {
    /// The rights of a subject in a place, as far as they are known: its name and groups are looked up
    /// before, by [`Snapshot::look_up`].
    pub fn permissions(&self, subject: &Subject, place: Place) -> View {
        let resolved = subject.known().unwrap_or_else(|| {
            let facts = Facts::nothing(subject);
            Arc::new(self.shared.access.table().resolve(&facts, 0))
        });
        View::new(resolved, place, subject.id()).traced(subject.trace())
    }
}

/// Where a rule is, in words; an entry that holds one is named by the tree of the entry that it was put to.
fn place_of(rule: &Compiled, entry: &Candidate<'_, '_>) -> Result<String> {
    Ok(match &rule.rule.origin {
        Origin::BuiltIn => "built in".to_owned(),
        Origin::Line(line) => format!("line {line} of the configuration"),
        Origin::Entry(stored) => {
            let tree = entry.tree();
            let dn = tree.map(|tree| tree.dn(stored.id, &mut Names::new())).transpose()?;
            format!("entry \"{}\"", dn.flatten().unwrap_or_default())
        }
    })
}
