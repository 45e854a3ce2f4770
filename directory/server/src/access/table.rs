//! The table of rules, checked against the schema, and which of them speak of a subject.

use super::compiled::Compiled;
use super::facts::Facts;
use super::secret::Secrets;
use super::{Attributes, Origin, Place, Rights, Rule, Subject, View, What, Who};
use crate::directory::Core;
use crate::failure::Result;
use crate::integrity::Membership;
use crate::limits::{ACCESS_RULES_MAX, STORED_RULES_MAX};
use crate::schema::Schema;
use keyway_store::{Names, View as Tree};
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

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
    /// What the table is made of.
    rules: Mutex<Rules>,
}

/// All rules but those that are built in.
struct Rules {
    /// Those of the configuration.
    configured: Vec<Rule>,
    /// Those that entries hold.
    stored: Vec<Rule>,
}

/// A rule that makes no sense, and why.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub origin: Origin,
    pub why: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Line(line) => write!(f, "line {line}: [[access]]: {}", self.why),
            Origin::Entry(stored) => write!(f, "the rule {{ {} }}: {}", stored.text, self.why),
            Origin::BuiltIn => write!(f, "an access rule: {}", self.why),
        }
    }
}

impl From<Misfit> for String {
    fn from(misfit: Misfit) -> String {
        misfit.to_string()
    }
}

impl Access {
    /// Understands the rules of a configuration. The administrator may do everything, also if they do
    /// not say so: nobody else could mend them.
    ///
    /// # Errors
    /// What of it makes no sense, with the line of the rule.
    pub fn new(rules: &[Rule], schema: &Schema) -> std::result::Result<Access, String> {
        let table = RwLock::new(Arc::new(Table::new(rules, &[], schema)?));
        let rules = Mutex::new(Rules { configured: rules.to_vec(), stored: Vec::new() });
        Ok(Access { table, generation: AtomicU64::new(1), rules })
    }

    /// Whether these could be the rules that entries hold.
    ///
    /// # Errors
    /// What of them makes no sense.
    pub(crate) fn check_stored(
        stored: &[Rule],
        schema: &Schema,
    ) -> std::result::Result<(), Misfit> {
        Table::new(&[], stored, schema).map(drop)
    }

    /// Puts other rules in the place of the configuration's.
    ///
    /// # Errors
    /// What of them makes no sense; then nothing changes.
    pub(crate) fn configure(
        &self,
        configured: &[Rule],
        schema: &Schema,
    ) -> std::result::Result<(), Misfit> {
        let mut rules = self.rules();
        let table = Table::new(configured, &rules.stored, schema)?;
        rules.configured = configured.to_vec();
        self.install(table);
        Ok(())
    }

    /// Puts other rules in the place of those that entries hold.
    ///
    /// # Errors
    /// As [`Access::check_stored`]; then nothing changes.
    pub(crate) fn store(
        &self,
        stored: Vec<Rule>,
        schema: &Schema,
    ) -> std::result::Result<(), Misfit> {
        let mut rules = self.rules();
        let table = Table::new(&rules.configured, &stored, schema)?;
        rules.stored = stored;
        self.install(table);
        Ok(())
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those who call it hold the rules, so that tables follow each other as the rules do.
    fn install(&self, table: Table) {
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        self.generation.fetch_add(1, Ordering::Release);
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
        View::new(resolved, place, subject.id()).traced(subject.trace())
    }
}

impl Table {
    fn new(
        configured: &[Rule],
        stored: &[Rule],
        schema: &Schema,
    ) -> std::result::Result<Table, Misfit> {
        let crowded = |rules: &[Rule], max: usize, where_: &str| match rules.get(max) {
            Some(one) => {
                let why = format!("there are more than {max} access rules {where_}");
                Err(Misfit { origin: one.origin.clone(), why })
            }
            None => Ok(()),
        };
        crowded(configured, ACCESS_RULES_MAX, "in the configuration")?;
        crowded(stored, STORED_RULES_MAX, "in entries")?;
        let administrator =
            Rule::new(Who::Administrator, What::Everything, Attributes::All, Rights::ALL);
        let secrets = Arc::new(Secrets::new(schema));
        let compile = |rule: &Rule| {
            Compiled::new(rule, schema, &secrets)
                .map_err(|why| Misfit { origin: rule.origin.clone(), why })
        };
        let rules = configured.iter().chain(stored).chain([&administrator]);
        Ok(Table { rules: rules.map(compile).collect::<std::result::Result<_, _>>()? })
    }

    /// The table of what the server does for itself.
    pub fn everything() -> Table {
        let rule = Rule::new(Who::Everyone, What::Everything, Attributes::All, Rights::ALL);
        Table { rules: vec![Compiled::bare(rule, Arc::new(Secrets::none()))] }
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
