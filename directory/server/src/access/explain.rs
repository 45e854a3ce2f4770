//! Why a subject may do something, or not: which rules say so, and which nearly do.

use super::compiled::Compiled;
use super::condition::{OfEntry, OfSubject};
use super::facts::Facts;
use super::table::Table;
use super::{Origin, Place, RULE, Rights, Rule, Subject, View};
use crate::candidate::Candidate;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::naming::{self};
use crate::state::Snapshot;
use keyway_schema::EntryName;
use keyway_schema::operational::SUBSCHEMA_DN;
use keyway_store::{EntryId, Names, Read, View as Tree};
use std::sync::Arc;

/// A question to the rules.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The entry; empty for the root DSE.
    pub dn: &'a str,
    /// The right that is asked about.
    pub right: Rights,
    /// To which attribute; `None` for any, and for what is done to whole entries.
    pub attribute: Option<&'a str>,
}

/// A rule, and what keeps it from granting what was asked.
#[derive(Clone, Debug)]
pub struct Considered {
    /// The rule.
    pub rule: Rule,
    /// The DN of the entry that holds it, if one does.
    pub entry: Option<String>,
    /// The demands of the rule that are not met; if there are none, it grants it.
    pub why_not: Vec<String>,
}

impl Considered {
    /// Whether it grants what was asked.
    pub fn grants(&self) -> bool {
        self.why_not.is_empty()
    }
}

impl Directory {
    /// Whether the subject may read the access rules of some entry.
    ///
    /// # Errors
    /// The store's.
    pub fn may_read_rules(&self, subject: &Subject) -> Result<bool> {
        self.refresh(subject)?;
        let rights = self.snapshot().permissions(subject, Place::Data);
        Ok(rights.may_somewhere(Rights::READ, RULE))
    }

    /// The answer of every rule to a question, in the order of the table. The one for the administrator
    /// that is always there is the last.
    ///
    /// # Errors
    /// `noSuchObject`, `invalidDNSyntax`, `undefinedAttributeType`, or the store's.
    pub fn explain(&self, subject: &Subject, question: &Question<'_>) -> Result<Vec<Considered>> {
        let snapshot = &*self.snapshot();
        let read = self.store.read()?;
        let attribute = question.attribute.map(|name| canonical(snapshot, name)).transpose()?;
        let table = snapshot.shared.access.table();
        let facts = snapshot.facts(subject, &table, read.view())?;
        let resolved = Arc::new(table.resolve(&facts, 0));
        self.with_entry(&read, question.dn, |place, entry| {
            let view = View::new(Arc::clone(&resolved), place, subject.id());
            let asked = RequestRecord { question, attribute: attribute.as_deref(), place };
            let rules = (0..).zip(&table.rules);
            rules
                .map(|(at, rule)| {
                    let why_not = asked.put_to(at, rule, &facts, &view, entry)?;
                    considered(read.view(), rule, why_not)
                })
                .collect()
        })
    }

    /// Which rules grant a subject a right on an attribute: on some entry, or on this one. Their demands
    /// on the subject are not looked at.
    ///
    /// # Errors
    /// As [`Directory::explain`].
    pub fn who_can(&self, question: &Question<'_>, anywhere: bool) -> Result<Vec<Considered>> {
        let snapshot = &*self.snapshot();
        let read = self.store.read()?;
        let attribute = question.attribute.map(|name| canonical(snapshot, name)).transpose()?;
        let table = snapshot.shared.access.table();
        let grants = |rule: &&Compiled| {
            let included =
                attribute.as_deref().is_none_or(|one| rule.includes(question.right, one));
            rule.rule.rights.contains(question.right)
                && (included || !question.right.is_of_attributes())
        };
        let found = |rule: &Compiled| considered(read.view(), rule, Vec::new());
        if anywhere {
            return table.rules.iter().filter(grants).map(found).collect();
        }
        let anonymous = Subject::anonymous();
        let resolved =
            Arc::new(Arc::new(Table::everything()).resolve(&Facts::nothing(&anonymous), 0));
        self.with_entry(&read, question.dn, |place, entry| {
            let view = View::new(Arc::clone(&resolved), place, None);
            let mut granting = Vec::new();
            for (at, rule) in (0..).zip(&table.rules).filter(|(_, rule)| grants(rule)) {
                let here = [OfEntry::Below, OfEntry::Filter, OfEntry::Except];
                let mut holds = rule.rule.what.includes(place);
                for condition in here {
                    holds = holds && rule.met_by_entry(condition, at, &view, entry)?;
                }
                if holds {
                    granting.push(found(rule)?);
                }
            }
            Ok(granting)
        })
    }

    fn with_entry<T>(
        &self,
        read: &Read,
        dn: &str,
        f: impl FnOnce(Place, &Candidate<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let snapshot = &*self.snapshot();
        let name = EntryName::parse(&snapshot.schema, dn)?;
        let contexts = snapshot.shared.contexts();
        let nothing = Vec::new();
        match naming::place(&contexts, &name) {
            naming::Place::Root => f(Place::RootDse, &Candidate::unstored(snapshot, "", &nothing)),
            naming::Place::Subschema => {
                f(Place::Subschema, &Candidate::unstored(snapshot, SUBSCHEMA_DN, &nothing))
            }
            naming::Place::Virtual(tree) => {
                f(tree.place(), &Candidate::unstored(snapshot, tree.dn(), &nothing))
            }
            naming::Place::Outside => Err(Failure::no_such_object("")),
            naming::Place::Inside { context, below } => {
                let view = read.view();
                let id: EntryId = naming::resolve(view, context, &name, below)?;
                let entry = view.entry(id)?.ok_or_else(|| Failure::no_such_object(""))?;
                snapshot.with_names(|names| {
                    f(context.place(), &Candidate::stored(snapshot, id, entry, view, names))
                })
            }
        }
    }
}

fn considered(tree: Tree<'_>, rule: &Compiled, why_not: Vec<String>) -> Result<Considered> {
    let entry = match &rule.rule.origin {
        Origin::Entry(stored) => tree.dn(stored.id, &mut Names::new())?,
        _ => None,
    };
    Ok(Considered { rule: rule.rule.clone(), entry, why_not })
}

fn canonical(snapshot: &Snapshot, name: &str) -> Result<String> {
    Ok(crate::write::describe(&snapshot.schema, name)?.attribute.name().to_owned())
}

/// A question, understood.
struct RequestRecord<'a> {
    question: &'a Question<'a>,
    attribute: Option<&'a str>,
    place: Place,
}

impl RequestRecord<'_> {
    fn put_to(
        &self,
        at: u16,
        rule: &Compiled,
        facts: &Facts<'_>,
        view: &View,
        entry: &Candidate<'_, '_>,
    ) -> Result<Vec<String>> {
        let mut why_not = self.not_granted(rule);
        let unmet = OfSubject::ALL.iter().filter(|one| !rule.met_by_subject(**one, facts));
        why_not.extend(unmet.map(|one| of_subject(*one, &rule.rule)));
        for condition in OfEntry::ALL {
            if rule.rule.what.includes(self.place)
                && !rule.met_by_entry(condition, at, view, entry)?
            {
                why_not.push(of_entry(condition, &rule.rule));
            }
        }
        Ok(why_not)
    }

    fn not_granted(&self, rule: &Compiled) -> Vec<String> {
        let (right, compiled, rule) = (self.question.right, rule, &rule.rule);
        let mut why_not = Vec::new();
        if !rule.rights.contains(right) {
            why_not.push(format!("it does not grant {right}"));
        }
        let name = self.attribute.unwrap_or_default();
        let included = self.attribute.is_none_or(|one| rule.attributes.include(one));
        if right.is_of_attributes() && !included {
            why_not.push(format!("it does not speak of attribute {name}"));
        } else if right.is_of_attributes() && compiled.withholds(right, name) {
            why_not.push(format!("{name} is secret, and it does not name it"));
        }
        if !rule.what.includes(self.place) {
            why_not.push(format!("it speaks of {} only", rule.what));
        }
        why_not
    }
}

fn of_subject(condition: OfSubject, rule: &Rule) -> String {
    let needs = &rule.needs;
    match condition {
        OfSubject::Who => format!("it is for {}", rule.who),
        OfSubject::Dn => format!("the client is not {}", needs.dns.join(" or ")),
        OfSubject::Subtree => {
            format!("the client is neither {0} nor below", needs.subtrees.join(" or "))
        }
        OfSubject::Group => format!("the client is not in group {}", needs.groups.join(" or ")),
        OfSubject::From => {
            let networks: Vec<String> = needs.from.iter().map(ToString::to_string).collect();
            format!("the client does not come from {}", networks.join(" or "))
        }
        OfSubject::Strength => format!("the connection is not as strong as {}", needs.strength),
    }
}

fn of_entry(condition: OfEntry, rule: &Rule) -> String {
    let (needs, target) = (&rule.needs, &rule.target);
    match condition {
        OfEntry::Own => "the entry is not the client's own".to_owned(),
        OfEntry::Relation => {
            format!("{} of the entry does not name the client", needs.relations.join(" or "))
        }
        OfEntry::Below => {
            let dn = target.below.as_ref().map(|below| below.dn.as_str());
            let dn = dn.unwrap_or("the entry that holds it");
            format!("the entry is not in the part of the tree at {dn}")
        }
        OfEntry::Filter => {
            format!("the entry does not match {}", target.filter.as_deref().unwrap_or_default())
        }
        OfEntry::Except => format!(
            "the entry is a member of {}, which the rule leaves out, or there is no such group",
            target.except_members_of.join(" or ")
        ),
    }
}
