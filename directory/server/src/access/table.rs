//! The table of rules, checked against the schema, and which of them speak of a subject.

use super::condition::Facts;
use super::{Attributes, Below, Place, Rights, Rule, Subject, View, What, Who};
use crate::directory::{Core, USER_PASSWORD};
use crate::failure::Result;
use crate::filter::Matcher;
use crate::integrity::{Link, Membership};
use crate::limits::ACCESS_RULES_MAX;
use crate::names::Name;
use crate::policy::HISTORY;
use crate::schema::Schema;
use keyway_codec::Filter;
use keyway_codec::message::Scope;
use keyway_store::{Names, View as Tree};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A rule that has been understood.
pub(crate) struct Compiled {
    /// As it was written, but that attributes have canonical names and their subtypes beside them.
    pub rule: Rule,
    pub(super) dns: Vec<Vec<u8>>,
    pub(super) groups: Vec<Name>,
    pub(super) relations: Vec<Link>,
    pub(super) below: Option<(Name, Scope)>,
    /// That name as entries' names have it if it is spelled alike.
    pub(super) below_text: String,
    pub(super) filter: Option<Matcher>,
    pub(super) except: Vec<Name>,
}

/// Rules that have been understood.
pub(crate) struct Table {
    pub rules: Vec<Compiled>,
}

/// The rules that speak of one subject, for each place.
pub(crate) struct Resolved {
    /// What it was looked up in.
    pub table: Arc<Table>,
    /// The normal form of the subject's DN.
    pub dn: Option<Vec<u8>>,
    generation: u64,
    places: [Chosen; Place::ALL.len()],
}

/// The rules that speak of one subject in one place, by their places in the table.
#[derive(Clone, Default)]
pub(crate) struct Chosen {
    /// Those that ask nothing of an entry first.
    pub rules: Vec<u16>,
    /// Rights for which an entry is asked something.
    pub unsettled: Rights,
}

impl Resolved {
    /// The rules for a place.
    pub fn chosen(&self, place: Place) -> &Chosen {
        let at = Place::ALL.iter().position(|one| *one == place).unwrap_or_default();
        &self.places[at]
    }
}

/// The table in force. It can be replaced.
pub struct Access {
    table: RwLock<Arc<Table>>,
    /// Changes with the table, and with every group.
    generation: AtomicU64,
}

impl Access {
    /// Understands a table. The administrator may do everything, also if the table does not say so:
    /// nobody else could mend it.
    ///
    /// # Errors
    /// What of it makes no sense, with the line of the rule.
    pub fn new(rules: &[Rule], schema: &Schema) -> std::result::Result<Access, String> {
        let table = RwLock::new(Arc::new(Table::new(rules, schema)?));
        Ok(Access { table, generation: AtomicU64::new(1) })
    }

    /// Puts another table in its place, understood likewise.
    ///
    /// # Errors
    /// As [`Access::new`]; then nothing changes.
    pub fn replace(&self, rules: &[Rule], schema: &Schema) -> std::result::Result<(), String> {
        let table = Arc::new(Table::new(rules, schema)?);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = table;
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Has everybody's name and groups looked up again, if rules ask for them.
    pub(crate) fn groups_changed(&self) {
        if self.table().asks_for_names() {
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    pub(super) fn table(&self) -> Arc<Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether what is known of a subject is still true.
    pub(crate) fn is_fresh(&self, subject: &Subject) -> bool {
        let generation = self.generation.load(Ordering::Acquire);
        subject.known().is_some_and(|known| known.generation == generation)
    }
}

impl Core {
    /// Looks up which rules speak of a subject, and keeps it with him.
    ///
    /// # Errors
    /// The store's.
    pub fn look_up(&self, subject: &Subject, tree: Tree<'_>) -> Result<()> {
        // Read first: what changes meanwhile has it looked up again.
        let generation = self.access.generation.load(Ordering::Acquire);
        let table = self.access.table();
        let facts = self.facts(subject, &table, tree)?;
        subject.keep(Arc::new(table.resolve(&facts, generation)));
        Ok(())
    }

    /// What rules ask of a subject.
    pub(super) fn facts<'s>(
        &self,
        subject: &'s Subject,
        table: &Table,
        tree: Tree<'_>,
    ) -> Result<Facts<'s>> {
        let mut facts = Facts::nothing(subject);
        let (Some(id), true) = (subject.id(), table.asks_for_names()) else { return Ok(facts) };
        let names = RefCell::new(Names::new());
        // He may have been renamed or deleted since he was bound.
        let Some(dn) = tree.dn(id, &mut names.borrow_mut())? else { return Ok(facts) };
        facts.is_called(&dn, &self.schema);
        let membership = Membership { core: self, view: tree, names: &names, nested: true };
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

    /// What a subject may do in a place, as far as it is known: his name and groups are looked up
    /// before, by [`Core::look_up`].
    pub fn permissions(&self, subject: &Subject, place: Place) -> View {
        let resolved = subject.known().unwrap_or_else(|| {
            let facts = Facts::nothing(subject);
            Arc::new(self.access.table().resolve(&facts, 0))
        });
        View::new(resolved, place, subject.id())
    }
}

impl Table {
    fn new(rules: &[Rule], schema: &Schema) -> std::result::Result<Table, String> {
        if rules.len() > ACCESS_RULES_MAX {
            return Err(format!("there are more than {ACCESS_RULES_MAX} access rules"));
        }
        let administrator =
            Rule::new(Who::Administrator, What::Everything, Attributes::All, Rights::ALL);
        let compile = |rule: &Rule| {
            Compiled::new(rule, schema).map_err(|why| match rule.line {
                Some(line) => format!("line {line}: [[access]]: {why}"),
                None => format!("an access rule: {why}"),
            })
        };
        let rules = rules.iter().chain([&administrator]).map(compile).collect::<Result<_, _>>()?;
        Ok(Table { rules })
    }

    /// The table of what the server does for itself.
    pub fn everything() -> Table {
        let rule = Rule::new(Who::Everyone, What::Everything, Attributes::All, Rights::ALL);
        Table { rules: vec![Compiled::bare(rule)] }
    }

    /// Whether it matters what a subject is called and which groups he is in.
    fn asks_for_names(&self) -> bool {
        let asks = |one: &Compiled| {
            !(one.groups.is_empty() && one.dns.is_empty() && one.relations.is_empty())
        };
        self.rules.iter().any(asks)
    }

    /// Chooses the rules for somebody.
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
        Resolved { table: Arc::clone(self), dn: facts.dn.clone(), generation, places }
    }
}

impl Compiled {
    fn bare(rule: Rule) -> Compiled {
        let (dns, groups, relations, except) = Default::default();
        let below_text = String::new();
        Compiled { rule, dns, groups, relations, below: None, below_text, filter: None, except }
    }

    fn new(rule: &Rule, schema: &Schema) -> std::result::Result<Compiled, String> {
        let mut rule = rule.clone();
        match &mut rule.attributes {
            Attributes::All => {}
            Attributes::Only(names) | Attributes::Except(names) => *names = expand(names, schema)?,
        }
        let name = |dn: &String| name(schema, dn);
        let names = |dns: &[String]| dns.iter().map(name).collect::<Result<Vec<_>, String>>();
        let relation = |name: &String| Link::to_dn(schema, name);
        let below = match &rule.target.below {
            Some(Below { dn, scope }) => Some((name(dn)?, *scope)),
            None => None,
        };
        Ok(Compiled {
            dns: names(&rule.needs.dns)?.iter().map(Name::canonical).collect(),
            groups: names(&rule.needs.groups)?,
            relations: rule.needs.relations.iter().map(relation).collect::<Result<_, _>>()?,
            below_text: below.as_ref().map(|(name, _)| name.text()).unwrap_or_default(),
            below,
            filter: rule.target.filter.as_ref().map(|text| filter(schema, text)).transpose()?,
            except: names(&rule.target.except_members_of)?,
            rule,
        })
    }
}

fn name(schema: &Schema, dn: &str) -> std::result::Result<Name, String> {
    let name = Name::parse(schema, dn).map_err(|why| why.diagnostic)?;
    match name.parts.iter().find(|part| part.component.is_none()) {
        Some(part) => Err(format!("\"{dn}\": the type of {} is not known", part.text)),
        None if name.is_root() => Err("a DN is empty".into()),
        None => Ok(name),
    }
}

fn filter(schema: &Schema, text: &str) -> std::result::Result<Matcher, String> {
    let filter = Filter::parse(text).map_err(|why| format!("filter {text}: {why}"))?;
    let matcher = Matcher::new(schema, &filter);
    match matcher.has_undefined() {
        true => Err(format!(
            "filter {text}: it names an attribute that is not known or cannot be compared so, or \
             a value that is none of it"
        )),
        false => Ok(matcher),
    }
}

/// Names made canonical, with all their subtypes.
fn expand(names: &[String], schema: &Schema) -> std::result::Result<Vec<String>, String> {
    let mut expanded = Vec::new();
    for name in names {
        let attribute =
            schema.attribute(name).ok_or_else(|| format!("attribute {name} is not known"))?;
        let family = schema.family(attribute);
        expanded.extend(family.map(|member| member.name().to_owned()));
        // Earlier passwords are as secret as the one there is.
        if attribute.name() == USER_PASSWORD {
            expanded.push(HISTORY.to_owned());
        }
    }
    Ok(expanded)
}
