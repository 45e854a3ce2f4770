//! From a name to the entry that an operation is about, over aliases (RFC 4512 § 2.6.2) and up to
//! referral objects (RFC 3296).

use crate::failure::{Failure, Result};
use crate::index::Indexes;
use crate::learnt::KnownName;
use crate::limits::ALIAS_STEPS_MAX;
use crate::naming::{self, NamingContext, Place};
use keyway_codec::limits::REFERRALS_MAX;
use keyway_codec::message::{ResultCode, Scope};
use keyway_schema::{AttributeType, EntryName, OBJECT_CLASS, Schema, text_of};
use keyway_store::{EntryId, EntryRef, Key, Read, View};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The treatment of entries that stand for others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seeking {
    /// Aliases are followed.
    pub follows_aliases: bool,
    /// Referral objects are entries like others: ManageDsaIT was given, or there are none.
    pub manages_referrals: bool,
    /// The scope of the search whose base it is; `None` for any other operation.
    pub scope: Option<Scope>,
}

/// Where an entry is.
pub(crate) struct Located {
    pub context: Arc<NamingContext>,
    pub id: EntryId,
}

/// Finds an entry. `knows` says whether the subject may know of one, and is asked only of entries that
/// stand for others, and of those behind an alias.
///
/// A referral object or alias that the subject may not know of stands for nothing: named itself it is an entry
/// like others, for the rights to decide. Behind an alias an entry that the subject may not know of is missing.
///
/// # Errors
/// `referral` for a referral object and what would be below one; `aliasProblem` for an alias of
/// nothing, `aliasDereferencingProblem` for a chain of them that does not end; `noSuchObject`.
pub(crate) fn locate(
    schema: &Schema,
    contexts: &[Arc<NamingContext>],
    view: View<'_>,
    name: &EntryName,
    how: Seeking,
    knows: &dyn Fn(&NamingContext, EntryId) -> Result<bool>,
) -> Result<Located> {
    let mut name = Cow::Borrowed(name);
    for step in 0..=ALIAS_STEPS_MAX {
        let found = match naming::place(contexts, &name) {
            // The server's own entries are not the other name of any entry.
            Place::Inside { context, below } if step == 0 || !context.is_system => {
                Some((context.clone(), naming::descend(view, context, &name, below)?))
            }
            _ => None,
        };
        let Some((context, Some((id, left)))) = found else {
            return Err(missing(step, ""));
        };
        let entry = match how.follows_aliases || !how.manages_referrals {
            true => view.entry(id)?,
            false => None,
        };
        let referral = entry.filter(|entry| !how.manages_referrals && is_referral(entry));
        let alias = entry.filter(|entry| how.follows_aliases && is_alias(entry));
        let is_asked = step > 0 || referral.is_some() || alias.is_some();
        let is_known = !is_asked || knows(&context, id)?;
        if let Some(entry) = referral.filter(|_| is_known) {
            return Err(referred(&entry, &name, left, how.scope));
        }
        if let Some(entry) = alias.filter(|_| is_known) {
            let target = aliased(schema, &entry).ok_or_else(|| missing(step + 1, ""))?;
            let parts = &mut name.to_mut().parts;
            parts.truncate(left);
            parts.extend(target.parts);
            continue;
        }
        if left > 0 || (step > 0 && !is_known) {
            return Err(missing(step, &text_of(name.parts.get(left..).unwrap_or_default())));
        }
        return Ok(Located { context, id });
    }
    let text = "aliases lead to each other, or too far";
    Err(Failure::new(ResultCode::AliasDereferencingProblem, text))
}

/// As [`locate`], for a name that is known.
///
/// # Errors
/// As [`locate`].
pub(crate) fn locate_known(
    schema: &Schema,
    contexts: &[Arc<NamingContext>],
    read: &Read,
    known: &KnownName,
    how: Seeking,
    knows: &dyn Fn(&NamingContext, EntryId) -> Result<bool>,
) -> Result<Located> {
    // No entry on the way stands for another one then, and the subject is not asked for.
    if !how.follows_aliases
        && how.manages_referrals
        && let Place::Inside { context, below } = naming::place(contexts, known.name())
        && let Some(id) = known.find(read, context, below)?
    {
        return Ok(Located { context: context.clone(), id });
    }
    locate(schema, contexts, read.view(), known.name(), how, knows)
}

/// There is no such entry, or none behind an alias.
fn missing(step: usize, matched_dn: &str) -> Failure {
    match step {
        0 => Failure::no_such_object(matched_dn),
        _ => Failure::new(ResultCode::AliasProblem, "an alias names an entry that is not there"),
    }
}

/// Whether an entry is of this class, by its name or OID.
fn is_of(entry: &EntryRef<'_>, class: &Class) -> bool {
    let mut classes = entry.values(OBJECT_CLASS);
    classes.any(|value| value.eq_ignore_ascii_case(class.name) || value == class.oid)
}

/// Whether an entry stands for another one of this directory.
pub(crate) fn is_alias(entry: &EntryRef<'_>) -> bool {
    is_of(entry, &ALIAS)
}

/// Whether an entry stands for one of another directory.
pub(crate) fn is_referral(entry: &EntryRef<'_>) -> bool {
    is_of(entry, &REFERRAL)
}

/// The name that an alias stands for.
pub(crate) fn aliased(schema: &Schema, entry: &EntryRef<'_>) -> Option<EntryName> {
    let target = entry.values("aliasedObjectName").next()?;
    EntryName::parse(schema, str::from_utf8(target).ok()?).ok()
}

/// Where to go on for a name of which `left` RDNs are below a referral object.
fn referred(entry: &EntryRef<'_>, name: &EntryName, left: usize, scope: Option<Scope>) -> Failure {
    let (below, at) = name.parts.split_at_checked(left).unwrap_or_default();
    let urls = urls(entry, &text_of(below), &text_of(at), scope);
    Failure::referral(urls)
}

/// The values of `ref`, made to lead to an entry `below` the referral object that is named `at`.
/// The parts of a value beside its DN are left out (RFC 3296 § 5).
pub(crate) fn urls(
    entry: &EntryRef<'_>,
    below: &str,
    at: &str,
    scope: Option<Scope>,
) -> Vec<String> {
    let values = entry.values("ref").take(REFERRALS_MAX);
    let texts = values.filter_map(|value| str::from_utf8(value).ok());
    texts.map(|text| url(text, below, at, scope)).collect()
}

fn url(value: &str, below: &str, at: &str, scope: Option<Scope>) -> String {
    // A label may follow it.
    let uri = value.split_ascii_whitespace().next().unwrap_or_default();
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
    if !["ldap", "ldaps", "ldapi"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return uri.to_owned();
    }
    let (host, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let dn = rest.strip_prefix('/').unwrap_or_default().split('?').next().unwrap_or_default();
    let dn = if dn.is_empty() { escaped(at) } else { dn.to_owned() };
    let dn = if below.is_empty() { dn } else { format!("{},{dn}", escaped(below)) };
    let scope = match scope {
        None => "",
        Some(Scope::Base) => "??base",
        Some(Scope::One) => "??one",
        Some(Scope::Subtree) => "??sub",
        Some(Scope::Subordinate) => "??children",
    };
    format!("{scheme}://{host}/{dn}{scope}")
}

/// A DN as a URL has it (RFC 4516 § 2.1).
fn escaped(dn: &str) -> String {
    let mut out = String::with_capacity(dn.len());
    for byte in dn.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'-' | b'.' | b'_' | b'~' | b'=' | b',' | b'+' | b'@' | b':' => {
                out.push(char::from(byte));
            }
            _ => {
                out.push('%');
                for digit in [byte >> 4, byte & 15] {
                    out.extend(char::from_digit(digit.into(), 16).map(|c| c.to_ascii_uppercase()));
                }
            }
        }
    }
    out
}

/// A class of entries that stand for others.
struct Class {
    name: &'static [u8],
    oid: &'static [u8],
}

const ALIAS: Class = Class { name: b"alias", oid: b"2.5.6.1" };
const REFERRAL: Class = Class { name: b"referral", oid: b"2.16.840.1.113730.3.2.6" };

/// Which entries stand for others, as the index of `objectClass` knows it. Without that index
/// referral objects are only noticed where they are named, and aliases below a base are entries.
pub(crate) struct SpecialEntries {
    aliases: Option<Key>,
    referrals: Option<Key>,
    /// A version of the store, and whether it has referral objects: twice the version, and one.
    known: AtomicU64,
}

impl SpecialEntries {
    pub fn new(schema: &Schema, indexes: &Indexes) -> SpecialEntries {
        let rule = schema.attribute(OBJECT_CLASS).and_then(AttributeType::equality);
        let key = |class: &Class| {
            let normal = rule.and_then(|rule| schema.normalize(rule, class.name))?;
            indexes.equality(OBJECT_CLASS, &normal)
        };
        let (aliases, referrals) = (key(&ALIAS), key(&REFERRAL));
        SpecialEntries { aliases, referrals, known: AtomicU64::new(u64::MAX) }
    }

    /// Whether there are referral objects in this state of the store: asked once for each.
    pub fn has_referrals(&self, read: &Read) -> Result<bool> {
        let (known, version) = (self.known.load(Ordering::Relaxed), read.version());
        if known >> 1 == version {
            return Ok(known & 1 == 1);
        }
        let has = self.may_have_referrals(read.view())?;
        self.known.store(version << 1 | u64::from(has), Ordering::Relaxed);
        Ok(has)
    }

    /// Whether there may be referral objects in a state that is being changed.
    pub fn may_have_referrals(&self, view: View<'_>) -> Result<bool> {
        match &self.referrals {
            Some(key) => Ok(view.count_at_most(key, 1)? > 0),
            None => Ok(true),
        }
    }

    /// The list of all aliases.
    pub fn aliases(&self) -> Option<&Key> {
        self.aliases.as_ref()
    }

    /// The list of all referral objects.
    pub fn referrals(&self) -> Option<&Key> {
        self.referrals.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lead_to_what_was_asked_for() {
        let url = |value: &str, below: &str, scope| super::url(value, below, "ou=r,dc=b", scope);
        assert_eq!(url("ldap://h/ou=r,dc=c", "", None), "ldap://h/ou=r,dc=c");
        assert_eq!(url("ldap://h:1/ou=r,dc=c", "cn=x", None), "ldap://h:1/cn=x,ou=r,dc=c");
        assert_eq!(url("ldap://h", "", None), "ldap://h/ou=r,dc=b");
        assert_eq!(url("LDAPS://h/ label", "cn=a b", None), "LDAPS://h/cn=a%20b,ou=r,dc=b");
        let sub = Some(Scope::Subtree);
        assert_eq!(url("ldap://h/dc=c?cn?one?(a=b)", "", sub), "ldap://h/dc=c??sub");
        assert_eq!(url("ldap:///dc=c", "", Some(Scope::Base)), "ldap:///dc=c??base");
        assert_eq!(url("http://h/x?y", "cn=x", sub), "http://h/x?y");
        assert_eq!(url("ldap://h/dc=c", "cn=50%\u{fc}", None), "ldap://h/cn=50%25%C3%BC,dc=c");
    }
}
