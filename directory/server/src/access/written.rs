//! Rules as they are written: a `[[access]]` of a configuration, or what such a one has between braces
//! in one value of an entry's attribute.

use super::{
    Attributes, Below, Needs, Network, Origin, Rights, Rule, Stored, Strength, Target, What, Who,
};
use crate::limits::STORED_RULE_BYTES_MAX;
use keyway_codec::Filter;
use keyway_codec::dn::Dn;
use keyway_codec::message::Scope;
use keyway_store::EntryId;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::ops::Deref;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;

/// The scopes of a rule.
const SCOPES: [(&str, Scope); 4] = [
    ("base", Scope::Base),
    ("one", Scope::One),
    ("sub", Scope::Subtree),
    ("children", Scope::Subordinate),
];

/// A rule whose names and types are right; values are not checked yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    who: Option<Spanned<String>>,
    #[serde(default)]
    dn: SomeOf,
    #[serde(default)]
    dn_below: SomeOf,
    #[serde(default)]
    group: SomeOf,
    #[serde(default)]
    named_by: SomeOf,
    #[serde(default)]
    from: SomeOf,
    over: Option<Spanned<String>>,
    what: Option<Spanned<String>>,
    below: Option<Spanned<String>>,
    scope: Option<Spanned<String>>,
    filter: Option<Spanned<String>>,
    #[serde(default)]
    no_member_of: SomeOf,
    rights: Vec<Spanned<String>>,
    attributes: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    except: Option<SomeOf>,
}

/// The texts of a list that is not there, or has one at least: an empty one would read like none of them, and
/// leave the condition out.
#[derive(Default)]
struct SomeOf(Vec<Spanned<String>>);

impl<'de> Deserialize<'de> for SomeOf {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let texts = Vec::deserialize(from)?;
        match texts.is_empty() {
            true => {
                Err(D::Error::custom("the list is empty; name one at least, or leave the line out"))
            }
            false => Ok(SomeOf(texts)),
        }
    }
}

impl Deref for SomeOf {
    type Target = [Spanned<String>];

    fn deref(&self) -> &[Spanned<String>] {
        &self.0
    }
}

/// The fault of a rule, and which bytes of the text show it.
#[derive(Debug)]
pub struct Fault {
    /// Where.
    pub span: Range<usize>,
    /// Why.
    pub why: String,
}

fn fault<T>(at: &Spanned<T>, why: impl Into<String>) -> Fault {
    Fault { span: at.span(), why: why.into() }
}

fn unknown(at: &Spanned<String>, known: &str) -> Fault {
    fault(at, format!("\"{}\" is not one of {known}", at.get_ref()))
}

impl Written {
    /// The attributes that it names.
    pub fn attributes(&self) -> impl Iterator<Item = &Spanned<String>> {
        let lists = [self.attributes.as_deref(), self.except.as_deref()].into_iter().flatten();
        lists.flatten().chain(&*self.named_by)
    }

    /// Checks a rule that is written there. In an entry it goes down from that.
    ///
    /// # Errors
    /// The part of it that makes no sense whatever the schema is.
    pub fn check(written: &Spanned<Written>, origin: Origin) -> Result<Rule, Fault> {
        let rule = written.get_ref();
        let attributes = match (&rule.attributes, &rule.except) {
            (None, None) => Attributes::All,
            (Some(names), None) => Attributes::Only(plain(names)),
            (None, Some(names)) => Attributes::Except(plain(names)),
            (Some(_), Some(_)) => {
                return Err(fault(written, "a rule has either attributes or except"));
            }
        };
        let below = match &origin {
            Origin::Entry(_) => None,
            _ => rule.below()?,
        };
        Ok(Rule {
            who: rule.who(written)?,
            needs: rule.needs()?,
            what: rule.what()?,
            target: Target { below, ..rule.target()? },
            attributes,
            rights: rights(&rule.rights)?,
            origin,
        })
    }

    fn who(&self, whole: &Spanned<Written>) -> Result<Who, Fault> {
        let lists = [&self.dn, &self.dn_below, &self.group, &self.named_by];
        let names_subjects = lists.iter().any(|list| !list.is_empty());
        match &self.who {
            Some(who) => Who::from_name(who.get_ref())
                .ok_or_else(|| unknown(who, "everyone, users, self, administrator")),
            None if names_subjects => Ok(Who::Users),
            None => {
                Err(fault(whole, "say which users it is for: who, group, dn, dn_below or named_by"))
            }
        }
    }

    fn needs(&self) -> Result<Needs, Fault> {
        let network =
            |text: &Spanned<String>| Network::parse(text.get_ref()).map_err(|why| fault(text, why));
        Ok(Needs {
            dns: names(&self.dn)?,
            subtrees: names(&self.dn_below)?,
            groups: names(&self.group)?,
            relations: plain(&self.named_by),
            from: self.from.iter().map(network).collect::<Result<_, _>>()?,
            strength: match &self.over {
                Some(over) => Strength::from_name(over.get_ref())
                    .ok_or_else(|| unknown(over, "any, private, tls, certificate"))?,
                None => Strength::Any,
            },
        })
    }

    fn what(&self) -> Result<What, Fault> {
        let Some(what) = &self.what else { return Ok(What::Only(super::Place::Data)) };
        What::from_name(what.get_ref()).ok_or_else(|| {
            unknown(what, "root-dse, schema, data, system, config, monitor, everything")
        })
    }

    fn scope(&self) -> Result<Option<Scope>, Fault> {
        let Some(scope) = &self.scope else { return Ok(None) };
        let one = SCOPES.iter().find(|(name, _)| name == scope.get_ref());
        one.map(|(_, scope)| Some(*scope)).ok_or_else(|| unknown(scope, "base, one, sub, children"))
    }

    fn below(&self) -> Result<Option<Below>, Fault> {
        match (&self.below, &self.scope) {
            (None, None) => Ok(None),
            (Some(dn), _) => {
                let scope = self.scope()?.unwrap_or(Scope::Subtree);
                Ok(Some(Below { dn: name(dn)?, scope }))
            }
            (None, Some(scope)) => Err(fault(scope, "it needs a DN to go down from: below")),
        }
    }

    /// All but the part of the tree.
    fn target(&self) -> Result<Target, Fault> {
        let filter = |text: &Spanned<String>| match Filter::parse(text.get_ref()) {
            Ok(_) => Ok(text.get_ref().clone()),
            Err(why) => Err(fault(text, why.to_string())),
        };
        Ok(Target {
            below: None,
            filter: self.filter.as_ref().map(filter).transpose()?,
            except_members_of: names(&self.no_member_of)?,
        })
    }
}

impl Rule {
    /// The rule that an entry holds in a value: `who = "users", attributes = ["mail"], rights =
    /// ["read"]`. It speaks of that entry and those below it, or as much of that as `scope` says.
    ///
    /// # Errors
    /// The part that makes no sense whatever the schema is, with the number of the character.
    pub fn of_value(id: EntryId, value: &[u8]) -> Result<Rule, String> {
        if value.len() > STORED_RULE_BYTES_MAX {
            return Err(format!("it is longer than {STORED_RULE_BYTES_MAX} bytes"));
        }
        let text = str::from_utf8(value).map_err(|_| "it is no text in UTF-8".to_owned())?;
        let whole = format!("{BEFORE}{text}{AFTER}");
        let place = |Fault { span, why }: Fault| {
            let at = span.start.saturating_sub(BEFORE.len()).min(text.len());
            let before = text.get(..at).unwrap_or(text);
            format!("character {}: {why}", before.chars().count() + 1)
        };
        let one: One = toml::from_str(&whole).map_err(|error| {
            place(Fault { span: error.span().unwrap_or_default(), why: error.message().to_owned() })
        })?;
        of_entry(&one.rule, id, text).map_err(place)
    }
}

/// The text that makes a document of a value.
const BEFORE: &str = "rule={";
const AFTER: &str = "}";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    rule: Spanned<Written>,
}

fn of_entry(written: &Spanned<Written>, id: EntryId, text: &str) -> Result<Rule, Fault> {
    let rule = written.get_ref();
    if let Some(below) = &rule.below {
        let why = "a rule in an entry speaks of that entry and those below it: put it into the one \
                   that it is to speak of, and leave this out";
        return Err(fault(below, why));
    }
    if let Some(what) = rule.what.as_ref().filter(|what| what.get_ref() != "data") {
        let why = "a rule in an entry speaks of data; others go into keyway.toml";
        return Err(fault(what, why));
    }
    let scope = rule.scope()?.unwrap_or(Scope::Subtree);
    let origin = Origin::Entry(Arc::new(Stored { id, scope, text: text.to_owned() }));
    Written::check(written, origin)
}

fn rights(names: &[Spanned<String>]) -> Result<Rights, Fault> {
    names.iter().try_fold(Rights::NONE, |rights, name| {
        let right = Rights::from_name(name.get_ref());
        Ok(rights | right.ok_or_else(|| unknown(name, Rights::NAMES))?)
    })
}

fn plain(texts: &[Spanned<String>]) -> Vec<String> {
    texts.iter().map(|text| text.get_ref().clone()).collect()
}

fn names(texts: &[Spanned<String>]) -> Result<Vec<String>, Fault> {
    texts.iter().map(name).collect()
}

fn name(text: &Spanned<String>) -> Result<String, Fault> {
    match Dn::parse(text.get_ref()) {
        Ok(dn) if dn.is_empty() => Err(fault(text, "it is empty; name an entry")),
        Ok(_) => Ok(text.get_ref().clone()),
        Err(why) => Err(fault(text, format!("\"{}\" is not a DN: {why}", text.get_ref()))),
    }
}
