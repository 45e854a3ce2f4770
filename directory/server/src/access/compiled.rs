//! A rule that has been understood, against a schema.

use super::secret::Secrets;
use super::{Attributes, Below, Origin, Rights, Rule};
use crate::integrity::ReferenceAttribute;
use keyway_codec::Filter;
use keyway_codec::message::Scope;
use keyway_schema::{EntryName, Matcher, Schema};
use keyway_store::EntryId;
use std::sync::Arc;

/// A rule that has been understood.
pub(crate) struct Compiled {
    /// As it was written, but that attributes have canonical names and their subtypes beside them.
    pub rule: Rule,
    pub(super) dns: Vec<Vec<u8>>,
    pub(super) subtrees: Vec<EntryName>,
    pub(super) groups: Vec<EntryName>,
    pub(super) relations: Vec<ReferenceAttribute>,
    pub(super) below: Option<(Top, Scope)>,
    /// That name as entries' names have it if it is spelled alike.
    pub(super) below_text: String,
    pub(super) filter: Option<Matcher>,
    pub(super) except: Vec<EntryName>,
    secrets: Arc<Secrets>,
}

/// Where a part of the tree begins.
pub(super) enum Top {
    /// At the entry of this name, whichever it is.
    Named(EntryName),
    /// At this entry, whatever it is called.
    Entry(EntryId),
}

impl Compiled {
    /// A rule that demands nothing.
    pub(super) fn bare(rule: Rule, secrets: Arc<Secrets>) -> Compiled {
        let (dns, subtrees, groups, relations, except) = Default::default();
        let (below, below_text, filter) = (None, String::new(), None);
        Compiled {
            rule,
            dns,
            subtrees,
            groups,
            relations,
            below,
            below_text,
            filter,
            except,
            secrets,
        }
    }

    /// Understands a rule.
    ///
    /// # Errors
    /// The parts of it that make no sense under this schema.
    pub(super) fn new(
        rule: &Rule,
        schema: &Schema,
        secrets: &Arc<Secrets>,
    ) -> Result<Compiled, String> {
        let mut rule = rule.clone();
        match &mut rule.attributes {
            Attributes::All => {}
            Attributes::Only(names) | Attributes::Except(names) => *names = expand(names, schema)?,
        }
        let name = |dn: &String| name(schema, dn);
        let names = |dns: &[String]| dns.iter().map(name).collect::<Result<Vec<_>, String>>();
        let relation = |name: &String| ReferenceAttribute::to_dn(schema, name);
        let (below, below_text) = match (&rule.origin, &rule.target.below) {
            (Origin::Entry(stored), _) => {
                (Some((Top::Entry(stored.id), stored.scope)), String::new())
            }
            (_, Some(Below { dn, scope })) => {
                let name = name(dn)?;
                let text = name.text();
                (Some((Top::Named(name), *scope)), text)
            }
            (_, None) => (None, String::new()),
        };
        Ok(Compiled {
            dns: names(&rule.needs.dns)?.iter().map(EntryName::canonical).collect(),
            subtrees: names(&rule.needs.subtrees)?,
            groups: names(&rule.needs.groups)?,
            relations: rule.needs.relations.iter().map(relation).collect::<Result<_, _>>()?,
            below_text,
            below,
            filter: rule.target.filter.as_ref().map(|text| filter(schema, text)).transpose()?,
            except: names(&rule.target.except_members_of)?,
            secrets: Arc::clone(secrets),
            rule,
        })
    }

    /// Whether it speaks of an attribute, given by its canonical name, where it is about this right.
    pub fn includes(&self, right: Rights, attribute: &str) -> bool {
        self.rule.attributes.include(attribute) && !self.withholds(right, attribute)
    }

    /// Whether an attribute is left out because it is secret.
    pub(super) fn withholds(&self, right: Rights, attribute: &str) -> bool {
        self.rule.withholds_secrets(right) && self.secrets.contain(attribute)
    }
}

fn name(schema: &Schema, dn: &str) -> Result<EntryName, String> {
    let name = EntryName::parse(schema, dn).map_err(|why| why.to_string())?;
    match name.parts.iter().find(|part| part.component.is_none()) {
        Some(part) => Err(format!("\"{dn}\": the type of {} is not known", part.text)),
        None if name.is_root() => Err("a DN is empty".into()),
        None => Ok(name),
    }
}

fn filter(schema: &Schema, text: &str) -> Result<Matcher, String> {
    let filter = Filter::parse(text).map_err(|why| format!("filter {text}: {why}"))?;
    let matcher = Matcher::new(schema, &filter);
    // Such a filter would be looked up anew for each entry that a client asks for.
    if matcher.follows_names() {
        return Err(format!(
            "filter {text}: it follows names; use group, named_by or no_member_of"
        ));
    }
    match matcher.has_undefined() {
        true => Err(format!(
            "filter {text}: it names an attribute that is not known or cannot be compared so, or \
             a value that is none of it"
        )),
        false => Ok(matcher),
    }
}

/// Names made canonical, with all their subtypes.
fn expand(names: &[String], schema: &Schema) -> Result<Vec<String>, String> {
    let mut expanded = Vec::new();
    for name in names {
        let attribute =
            schema.attribute(name).ok_or_else(|| format!("attribute {name} is not known"))?;
        let family = schema.family(attribute);
        expanded.extend(family.map(|member| member.name().to_owned()));
    }
    Ok(expanded)
}
