//! `[[access]]`: who may do what.

use super::{Wrong, choice, plain, raw, wrong};
use keyway_codec::Filter;
use keyway_codec::dn::Dn;
use keyway_codec::message::Scope;
use keyway_server::access::{
    Attributes, Below, Needs, Network, Rights, Rule, Strength, Target, What, Who,
};
use toml::Spanned;

/// The scopes of a rule.
const SCOPES: [(&str, Scope); 4] = [
    ("base", Scope::Base),
    ("one", Scope::One),
    ("sub", Scope::Subtree),
    ("children", Scope::Subordinate),
];

/// A rule, and where it is if it is in the file; `text` is all of that.
pub fn rule(spanned: &Spanned<raw::Rule>, text: Option<&str>) -> Result<Rule, Wrong> {
    let raw = spanned.get_ref();
    let attributes = match (&raw.attributes, &raw.except) {
        (None, None) => Attributes::All,
        (Some(names), None) => Attributes::Only(plain(names)),
        (None, Some(names)) => Attributes::Except(plain(names)),
        (Some(_), Some(_)) => {
            return Err(wrong(spanned, "a rule has either attributes or except"));
        }
    };
    Ok(Rule {
        who: who(spanned)?,
        needs: needs(raw)?,
        what: match &raw.what {
            Some(what) => What::from_name(what.get_ref()).ok_or_else(|| {
                unknown(what, "root-dse, schema, data, system, config, monitor, everything")
            })?,
            None => What::from_name("data").unwrap_or(What::Everything),
        },
        target: target(raw)?,
        attributes,
        rights: rights(&raw.rights)?,
        line: text.map(|text| super::line_of(text, spanned.span().start)),
    })
}

fn unknown(at: &Spanned<String>, known: &str) -> Wrong {
    wrong(at, format!("\"{}\" is not one of {known}", at.get_ref()))
}

fn who(spanned: &Spanned<raw::Rule>) -> Result<Who, Wrong> {
    let raw = spanned.get_ref();
    let names_somebody = !(raw.dn.is_empty() && raw.group.is_empty() && raw.named_by.is_empty());
    match &raw.who {
        Some(who) => Who::from_name(who.get_ref())
            .ok_or_else(|| unknown(who, "everyone, users, self, administrator")),
        None if names_somebody => Ok(Who::Users),
        None => Err(wrong(spanned, "say whom it is for: who, group, dn or named_by")),
    }
}

fn rights(names: &[Spanned<String>]) -> Result<Rights, Wrong> {
    names.iter().try_fold(Rights::NONE, |rights, name| {
        let right = Rights::from_name(name.get_ref());
        Ok(rights | right.ok_or_else(|| unknown(name, Rights::NAMES))?)
    })
}

fn needs(raw: &raw::Rule) -> Result<Needs, Wrong> {
    let network =
        |text: &Spanned<String>| Network::parse(text.get_ref()).map_err(|why| wrong(text, why));
    Ok(Needs {
        dns: names(&raw.dn)?,
        groups: names(&raw.group)?,
        relations: plain(&raw.named_by),
        from: raw.from.iter().map(network).collect::<Result<_, _>>()?,
        strength: match &raw.over {
            Some(over) => Strength::from_name(over.get_ref())
                .ok_or_else(|| unknown(over, "any, private, tls, certificate"))?,
            None => Strength::Any,
        },
    })
}

fn target(raw: &raw::Rule) -> Result<Target, Wrong> {
    let below = match (&raw.below, &raw.scope) {
        (None, None) => None,
        (Some(dn), scope) => Some(Below {
            dn: name(dn)?,
            scope: match scope {
                Some(scope) => choice(scope, &SCOPES)?,
                None => Scope::Subtree,
            },
        }),
        (None, Some(scope)) => return Err(wrong(scope, "it needs a DN to go down from: below")),
    };
    let filter = |text: &Spanned<String>| match Filter::parse(text.get_ref()) {
        Ok(_) => Ok(text.get_ref().clone()),
        Err(why) => Err(wrong(text, why.to_string())),
    };
    Ok(Target {
        below,
        filter: raw.filter.as_ref().map(filter).transpose()?,
        except_members_of: names(&raw.no_member_of)?,
    })
}

fn names(texts: &[Spanned<String>]) -> Result<Vec<String>, Wrong> {
    texts.iter().map(name).collect()
}

fn name(text: &Spanned<String>) -> Result<String, Wrong> {
    match Dn::parse(text.get_ref()) {
        Ok(dn) if dn.is_empty() => Err(wrong(text, "it is empty; name an entry")),
        Ok(_) => Ok(text.get_ref().clone()),
        Err(why) => Err(wrong(text, format!("\"{}\" is not a DN: {why}", text.get_ref()))),
    }
}
