//! The table of rules, checked against the schema, and what of it speaks of one subject.

use super::compiled::Compiled;
use super::secret::Secrets;
use super::{Attributes, Origin, Place, Rights, Rule, What, Who};
use crate::limits::{ACCESS_RULES_MAX, STORED_RULES_MAX};
use keyway_schema::Schema;
use std::fmt;
use std::sync::Arc;

/// Rules that have been understood.
pub(crate) struct Table {
    pub rules: Vec<Compiled>,
}

/// The rules that speak of one subject, for each place.
pub(crate) struct Resolved {
    /// The table that it was looked up in.
    pub table: Arc<Table>,
    /// The normal form of the subject's DN.
    pub dn: Option<Vec<u8>>,
    /// The DN as it was written then.
    pub(super) text: Option<Arc<str>>,
    pub(super) generation: u64,
    pub(super) places: [Chosen; Place::ALL.len()],
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

impl Table {
    pub(super) fn new(
        configured: &[Rule],
        stored: &[Rule],
        schema: &Schema,
    ) -> Result<Table, Misfit> {
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
        Ok(Table { rules: rules.map(compile).collect::<Result<_, _>>()? })
    }

    /// The table of what the server does for itself.
    pub fn everything() -> Table {
        let rule = Rule::new(Who::Everyone, What::Everything, Attributes::All, Rights::ALL);
        Table { rules: vec![Compiled::bare(rule, Arc::new(Secrets::none()))] }
    }

    /// Whether it matters what a subject is called and which groups he is in.
    pub(super) fn asks_for_names(&self) -> bool {
        let asks = |one: &Compiled| {
            !(one.groups.is_empty()
                && one.dns.is_empty()
                && one.subtrees.is_empty()
                && one.relations.is_empty())
                || one.rule.rights.contains(Rights::SELF_WRITE)
        };
        self.rules.iter().any(asks)
    }
}
