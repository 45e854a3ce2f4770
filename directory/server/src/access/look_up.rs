//! Which rules speak of a subject: looked up once a bind, and again when rules or groups change.

use super::compiled::Compiled;
use super::facts::Facts;
use super::in_force::Access;
use super::table::{Chosen, Resolved, Table};
use super::{Place, Subject};
use crate::failure::Result;
use crate::integrity::Membership;
use crate::state::Snapshot;
use keyway_store::{Names, View as Tree};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Access {
    /// Whether what is known of a subject is still true.
    pub(crate) fn is_fresh(&self, subject: &Subject) -> bool {
        let generation = self.generation.load(Ordering::Acquire);
        subject.known().is_some_and(|known| known.generation == generation)
    }
}

impl Snapshot {
    /// Looks up which rules speak of a subject, and keeps it with him.
    ///
    /// # Errors
    /// The store's.
    pub fn look_up(&self, subject: &Subject, tree: Tree<'_>) -> Result<()> {
        // Read first: a change meanwhile has it looked up again.
        let generation = self.shared.access.generation.load(Ordering::Acquire);
        let table = self.shared.access.table();
        let facts = self.facts(subject, &table, tree)?;
        subject.keep(Arc::new(table.resolve(&facts, generation)));
        Ok(())
    }

    /// The facts about a subject that rules ask for.
    pub(super) fn facts<'s>(
        &self,
        subject: &'s Subject,
        table: &Table,
        tree: Tree<'_>,
    ) -> Result<Facts<'s>> {
        let mut facts = Facts::nothing(subject);
        let Some(id) = subject.id() else { return Ok(facts) };
        let names = RefCell::new(Names::new());
        // He may have been renamed or deleted since he was bound.
        let Some(dn) = tree.dn(id, &mut names.borrow_mut())? else {
            facts.is_gone = true;
            return Ok(facts);
        };
        facts.text = Some((*dn).into());
        if !table.asks_for_names() {
            return Ok(facts);
        }
        facts.is_called(&dn, &self.schema);
        let membership = Membership { snapshot: self, view: tree, names: &names, nested: true };
        let own = membership.groups_of_name(&dn)?;
        for name in table.rules.iter().flat_map(|compiled| &compiled.groups) {
            if let Some(group) = self.entry_named(tree, name)?
                && own.contain(group)
            {
                facts.groups.push(name.canonical());
            }
        }
        Ok(facts)
    }
}

impl Table {
    /// Chooses the rules for a subject.
    pub fn resolve(self: &Arc<Self>, facts: &Facts<'_>, generation: u64) -> Resolved {
        let mut places: [Chosen; Place::ALL.len()] = Default::default();
        let speaking: Vec<(u16, &Compiled)> =
            (0..).zip(&self.rules).filter(|(_, compiled)| compiled.speaks_of(facts)).collect();
        for (place, chosen) in Place::ALL.iter().zip(&mut places) {
            let here = || speaking.iter().filter(|(_, one)| one.rule.what.includes(*place));
            let (plain, asking): (Vec<_>, Vec<_>) = here().partition(|(_, one)| !one.asks_entry());
            chosen.rules = plain.iter().chain(&asking).map(|(at, _)| *at).collect();
            for (_, compiled) in asking {
                chosen.unsettled = chosen.unsettled | compiled.rule.rights;
            }
        }
        let (dn, text) = (facts.dn.clone(), facts.text.clone());
        Resolved { table: Arc::clone(self), dn, text, generation, places }
    }
}
