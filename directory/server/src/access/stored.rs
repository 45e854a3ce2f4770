//! Rules that entries hold, each for itself and what is below it. They go with their entries: when
//! these are renamed, exported, imported or deleted.

use super::in_force::Access;
use super::rule::{Origin, RULE, Rule};
use super::table::Misfit;
use crate::failure::{Failure, Result};
use crate::index::presence_key;
use crate::naming::NamingContext;
use crate::state::Snapshot;
use keyway_codec::message::ResultCode;
use keyway_schema::{EntryAttributes, base};
use keyway_store::{EntryId, Names, View as Tree};
use std::sync::Arc;

/// Whether one of these is a rule, or would be.
pub(crate) fn holds_rules(attributes: &EntryAttributes) -> bool {
    values(attributes).next().is_some()
}

fn values(attributes: &EntryAttributes) -> impl Iterator<Item = &Vec<u8>> {
    attributes.iter().filter(|(name, _)| base(name) == RULE).flat_map(|(_, values)| values)
}

impl Snapshot {
    /// The rules that entries hold.
    ///
    /// # Errors
    /// The parts of them that make no sense, and in which entry; or the store's.
    pub(crate) fn stored_rules(&self, tree: Tree<'_>) -> Result<Vec<Rule>> {
        let rules = read(tree, None)?;
        Access::check_stored(&rules, &self.schema).map_err(|misfit| in_entry(tree, &misfit))?;
        Ok(rules)
    }

    /// The rules that entries hold when one of them has these attributes; it is none yet if it has
    /// no id, and [`settle`] gives it one.
    ///
    /// # Errors
    /// `invalidAttributeSyntax` or `unwillingToPerform` with the place of the fault; or the store's.
    pub(crate) fn proposed_rules(
        &self,
        tree: Tree<'_>,
        context: &NamingContext,
        id: Option<EntryId>,
        attributes: &EntryAttributes,
    ) -> Result<Vec<Rule>> {
        if context.is_system && holds_rules(attributes) {
            let text = "rules for the server's own entries go into keyway.toml";
            return Err(Failure::new(ResultCode::UnwillingToPerform, text));
        }
        let mut rules = read(tree, id)?;
        for (number, value) in values(attributes).enumerate() {
            let rule = Rule::of_value(id.unwrap_or(EntryId::ROOT), value);
            rules.push(rule.map_err(|why| {
                let text = format!("value {number} of attribute {RULE} is no access rule: {why}");
                Failure::new(ResultCode::InvalidAttributeSyntax, text)
            })?);
        }
        Access::check_stored(&rules, &self.schema).map_err(|misfit| {
            let text = format!("attribute {RULE}: {misfit}");
            Failure::new(ResultCode::UnwillingToPerform, text)
        })?;
        Ok(rules)
    }
}

/// Gives the rules of a new entry its id.
pub(crate) fn settle(rules: &mut [Rule], new: EntryId) {
    for rule in rules {
        if let Origin::Entry(stored) = &mut rule.origin
            && stored.id == EntryId::ROOT
        {
            Arc::make_mut(stored).id = new;
        }
    }
}

/// The rules of all entries but one.
fn read(tree: Tree<'_>, but: Option<EntryId>) -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    for id in tree.postings(&presence_key(RULE), EntryId::ROOT)? {
        let id = id?;
        let Some(entry) = tree.entry(id)?.filter(|_| but != Some(id)) else { continue };
        for value in values(&entry.to_entry().attributes) {
            let rule = Rule::of_value(id, value);
            rules.push(rule.map_err(|why| {
                let dn = tree.dn_of(&entry, &mut Names::new()).unwrap_or_default();
                let text = format!("attribute {RULE} of \"{dn}\": {why}");
                Failure::new(ResultCode::Other, text)
            })?);
        }
    }
    Ok(rules)
}

fn in_entry(tree: Tree<'_>, misfit: &Misfit) -> Failure {
    let dn = match &misfit.origin {
        Origin::Entry(stored) => tree.dn(stored.id, &mut Names::new()).ok().flatten(),
        _ => None,
    };
    let text = match dn {
        Some(dn) => format!("attribute {RULE} of \"{dn}\": {misfit}"),
        None => misfit.to_string(),
    };
    Failure::new(ResultCode::UnwillingToPerform, text)
}
