//! The conditions of a rule, one by one: those that a subject has to meet, and those of an entry.
//! The check whether all are met and the explanation which one is not use the same conditions.

use super::compiled::{Compiled, Top};
use super::facts::Facts;
use super::{Strength, View, Who};
use crate::candidate::Candidate;
use crate::evaluate::{Evaluator, Truth};
use crate::failure::Result;
use keyway_codec::message::Scope;
use keyway_schema::EntryName;
use keyway_store::{EntryId, Key};

/// A demand that a rule can make of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfSubject {
    Who,
    Dn,
    Subtree,
    Group,
    From,
    Strength,
}

impl OfSubject {
    pub const ALL: [OfSubject; 6] = [
        OfSubject::Who,
        OfSubject::Dn,
        OfSubject::Subtree,
        OfSubject::Group,
        OfSubject::From,
        OfSubject::Strength,
    ];
}

/// A demand that a rule can make of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfEntry {
    Own,
    Relation,
    Below,
    Filter,
    Except,
}

impl OfEntry {
    pub const ALL: [OfEntry; 5] =
        [OfEntry::Own, OfEntry::Below, OfEntry::Relation, OfEntry::Filter, OfEntry::Except];
}

impl Compiled {
    /// Whether a subject meets all that is demanded of him.
    pub fn speaks_of(&self, facts: &Facts<'_>) -> bool {
        OfSubject::ALL.iter().all(|condition| self.met_by_subject(*condition, facts))
    }

    pub(super) fn met_by_subject(&self, condition: OfSubject, facts: &Facts<'_>) -> bool {
        let needs = &self.rule.needs;
        match condition {
            OfSubject::Who => match self.rule.who {
                Who::Everyone => self.relations.is_empty() || !facts.is_anonymous(),
                Who::Users | Who::Owner => !facts.is_anonymous(),
                Who::Administrator => facts.subject.is_administrator(),
            },
            OfSubject::Dn => {
                let name = facts.name.as_ref().map(EntryName::canonical);
                self.dns.is_empty() || self.dns.iter().any(|dn| Some(dn) == name.as_ref())
            }
            OfSubject::Subtree => {
                let is_within = |top| facts.name.as_ref().is_some_and(|name| name.is_within(top));
                self.subtrees.is_empty() || self.subtrees.iter().any(is_within)
            }
            OfSubject::Group => {
                let is_in = |group: &EntryName| facts.groups.contains(&group.canonical());
                self.groups.is_empty() || self.groups.iter().any(is_in)
            }
            OfSubject::From => {
                let holds = |address| needs.from.iter().any(|network| network.holds(address));
                needs.from.is_empty() || facts.over.address.is_some_and(holds)
            }
            OfSubject::Strength => {
                needs.strength == Strength::Any || facts.over.strength >= needs.strength
            }
        }
    }

    /// Whether it demands anything of an entry.
    pub fn asks_entry(&self) -> bool {
        self.rule.who == Who::Owner
            || !self.relations.is_empty()
            || self.below.is_some()
            || self.filter.is_some()
            || !self.except.is_empty()
    }

    /// Whether an entry meets all that is demanded of it. `at` is the rule's place.
    pub fn holds_for(&self, at: u16, view: &View, entry: &Candidate<'_, '_>) -> Result<bool> {
        for condition in OfEntry::ALL {
            if !self.met_by_entry(condition, at, view, entry)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn met_by_entry(
        &self,
        condition: OfEntry,
        at: u16,
        view: &View,
        entry: &Candidate<'_, '_>,
    ) -> Result<bool> {
        match condition {
            OfEntry::Own => Ok(self.rule.who != Who::Owner || view.is_own(entry)),
            OfEntry::Relation => self.is_related(view.dn(), entry),
            OfEntry::Below => self.is_below(at, view, entry),
            OfEntry::Filter => match &self.filter {
                Some(filter) => {
                    let unrestricted = View::unrestricted();
                    let evaluator = Evaluator::search(&entry.snapshot().schema, &unrestricted);
                    Ok(evaluator.matches(filter, entry)? == Truth::True)
                }
                None => Ok(true),
            },
            OfEntry::Except => self.is_in_none(entry),
        }
    }

    /// Whether one of the attributes names the subject.
    fn is_related(&self, subject: Option<&[u8]>, entry: &Candidate<'_, '_>) -> Result<bool> {
        if self.relations.is_empty() {
            return Ok(true);
        }
        let Some(dn) = subject else { return Ok(false) };
        let snapshot = entry.snapshot();
        for attribute in &self.relations {
            let wanted = attribute.normal(dn);
            // The index knows at once what a group of thousands would have to be read for.
            if let (Some(tree), Some(key)) =
                (entry.tree(), snapshot.indexes.equality(&attribute.name, &wanted))
            {
                if tree.contains(&key, entry.id())? {
                    return Ok(true);
                }
                continue;
            }
            let mut values = entry.attributes().filter(|(stored, _)| attribute.means(stored));
            let is_wanted = |value| {
                attribute.normalize(&snapshot.schema, value).as_deref() == Some(wanted.as_slice())
            };
            if values.any(|(_, mut values)| values.any(is_wanted)) {
                return Ok(true);
            }
            for large in entry.large().filter(|large| attribute.means(large.name)) {
                for value in entry.large_values(&large)?.into_iter().flatten() {
                    if is_wanted(value?.1) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn is_below(&self, at: u16, view: &View, entry: &Candidate<'_, '_>) -> Result<bool> {
        let Some((top, scope)) = &self.below else { return Ok(true) };
        let Some(tree) = entry.tree() else { return Ok(false) };
        let goes_down = matches!(scope, Scope::Subtree | Scope::Subordinate);
        // The tree need not be asked, and the name will mostly be needed anyway.
        if goes_down && is_spelled_below(entry.dn()?, &self.below_text) {
            return Ok(true);
        }
        let top = match top {
            Top::Entry(id) => Some(*id),
            Top::Named(name) => view.top(at, entry.snapshot(), tree, name)?,
        };
        let (Some(top), id) = (top, entry.id()) else { return Ok(false) };
        Ok(match scope {
            Scope::Base => id == top,
            Scope::One => entry.parent() == Some(top),
            Scope::Subtree => tree.contains(&Key::subtree(top), id)?,
            Scope::Subordinate => id != top && tree.contains(&Key::subtree(top), id)?,
        })
    }

    fn is_in_none(&self, entry: &Candidate<'_, '_>) -> Result<bool> {
        if self.except.is_empty() || entry.id() == EntryId::ROOT {
            return Ok(true);
        }
        for name in &self.except {
            // Where it cannot be told, nothing is granted.
            if entry.is_in_group(name)? != Some(false) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a DN goes on behind its first RDNs exactly as another one does.
fn is_spelled_below(dn: &str, above: &str) -> bool {
    let Some(before) = dn.strip_suffix(above).and_then(|rest| rest.strip_suffix(',')) else {
        return false;
    };
    // The comma is part of a value if it is escaped.
    let escapes = before.bytes().rev().take_while(|byte| *byte == b'\\').count();
    !before.is_empty() && escapes % 2 == 0
}

#[cfg(test)]
mod tests {
    use super::is_spelled_below;

    #[test]
    fn what_is_spelled_below_is_below() {
        let top = "ou=people,dc=x";
        assert!(is_spelled_below("uid=a,ou=people,dc=x", top));
        assert!(is_spelled_below(r"cn=a\\,ou=people,dc=x", top));
        for other in
            ["ou=people,dc=x", ",ou=people,dc=x", "uid=a,ou=People,dc=x", "cn=you=people,dc=x"]
        {
            assert!(!is_spelled_below(other, top), "{other}");
        }
        assert!(!is_spelled_below(r"cn=a\,ou=people,dc=x", top), "it is directly below dc=x");
    }
}
