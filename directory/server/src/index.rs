//! Indexes: under which keys an entry can be found.
//!
//! An attribute's index holds the values of its subtypes as well, since a filter on the type asks
//! for them, and is made with the attribute's own rules. A key leads to candidates, never to
//! answers: long values are cut, so that the entry itself always decides.

use crate::limits::SUBSTRING_INDEXED_BYTES_MAX;
use crate::schema::{AttributeType, Attributes, Schema, base};
use keyway_codec::syntax::MatchingRule;
use keyway_store::{Key, KeyRange};
use std::collections::{HashMap, HashSet};

const EQUALITY: u8 = b'e';
const PRESENCE: u8 = b'p';
const SUBSTRING: u8 = b'i';

/// Changes whenever the same entry would get other keys, so that a store is indexed anew.
const FORM: &str = "1";

/// Bytes of a value in one substring key.
const GRAM_BYTES: usize = 3;

/// How one attribute is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSetting {
    /// The attribute.
    pub attribute: String,
    /// Find values that are equal, in order, or begin alike.
    pub equality: bool,
    /// Find entries that have the attribute.
    pub presence: bool,
    /// Find values by any part of three bytes or more.
    pub substrings: bool,
}

impl IndexSetting {
    /// What `keyway up` starts with.
    pub fn defaults() -> Vec<IndexSetting> {
        let setting = |attribute: &str, presence, substrings| IndexSetting {
            attribute: attribute.into(),
            equality: true,
            presence,
            substrings,
        };
        let mut settings = vec![];
        for attribute in ["uid", "cn", "sn", "givenName", "mail"] {
            settings.push(setting(attribute, true, true));
        }
        for attribute in [
            "objectClass",
            "member",
            "uniqueMember",
            "memberUid",
            "uidNumber",
            "gidNumber",
            "entryUUID",
            "ou",
            "o",
            "dc",
            "l",
            "telephoneNumber",
            "employeeNumber",
            "manager",
        ] {
            settings.push(setting(attribute, false, false));
        }
        settings
    }

    fn line(&self, canonical: &str) -> String {
        let kinds = [(self.equality, " eq"), (self.presence, " pres"), (self.substrings, " sub")];
        let kinds: String = kinds.iter().filter(|(on, _)| *on).map(|(_, kind)| *kind).collect();
        format!("{canonical}{kinds}")
    }

    /// The settings that a fingerprint was made of; `None` if their keys had another form.
    pub fn from_fingerprint(text: &str) -> Option<Vec<IndexSetting>> {
        let mut lines = text.split('\n');
        if lines.next() != Some(FORM) {
            return None;
        }
        let setting = |line: &str| {
            let mut words = line.split(' ');
            let attribute = words.next()?.to_owned();
            let kinds: Vec<&str> = words.collect();
            let has = |kind| kinds.contains(&kind);
            let (equality, presence, substrings) = (has("eq"), has("pres"), has("sub"));
            Some(IndexSetting { attribute, equality, presence, substrings })
        };
        lines.filter(|line| !line.is_empty()).map(setting).collect()
    }
}

/// The indexes of a server, checked against its schema.
pub struct Indexes {
    /// By canonical name.
    indexes: HashMap<String, Index>,
    /// Canonical names of the indexes that each attribute's values go into.
    targets: HashMap<String, Vec<String>>,
    fingerprint: String,
}

#[derive(Clone, Copy)]
struct Index {
    equality: Option<MatchingRule>,
    presence: bool,
    substrings: Option<MatchingRule>,
}

impl Indexes {
    /// Checks the settings.
    ///
    /// # Errors
    /// The attribute that is not known or lacks the rule, and why.
    pub fn new(settings: &[IndexSetting], schema: &Schema) -> Result<Indexes, String> {
        let mut indexes = HashMap::new();
        let mut lines = Vec::new();
        for setting in settings {
            let attribute = schema
                .attribute(&setting.attribute)
                .ok_or_else(|| format!("attribute {} is not known", setting.attribute))?;
            let index = index(setting, attribute)?;
            lines.push(setting.line(attribute.name()));
            if indexes.insert(attribute.name().to_owned(), index).is_some() {
                return Err(format!("attribute {} is indexed twice", attribute.name()));
            }
        }
        lines.sort_unstable();
        let fingerprint = format!("{FORM}\n{}", lines.join("\n"));
        let targets = targets(&indexes, schema);
        Ok(Indexes { indexes, targets, fingerprint })
    }

    /// Differs if keys made with these settings differ.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The keys that an entry loses and gets when its attributes change, as far as these are
    /// concerned. Values that stay are not looked at unless they may share a key with one that
    /// goes: in a group of thousands one member comes and goes cheaply.
    pub fn difference(
        &self,
        schema: &Schema,
        old: &Attributes,
        new: &Attributes,
    ) -> (Vec<Key>, Vec<Key>) {
        let gone = without(old, new);
        let removed = self.keys(schema, &gone);
        let added = self.keys(schema, &without(new, old));
        let shares = |name: &str| {
            gone.iter().any(|(other, _)| self.share_a_key(base(name), base(other), name == other))
        };
        let sharing: Attributes = new.iter().filter(|(name, _)| shares(name)).cloned().collect();
        let kept = self.keys(schema, &sharing);
        let removed = removed.into_iter().filter(|key| kept.binary_search(key).is_err());
        (removed.collect(), added)
    }

    /// Whether a value of the one attribute can have a key of a value of the other that is not
    /// equal to it. Values of one description are never equal, so only parts and presence count.
    fn share_a_key(&self, one: &str, other: &str, same_description: bool) -> bool {
        let targets = |name| self.targets.get(name).into_iter().flatten();
        targets(one).filter(|target| targets(other).any(|shared| shared == *target)).any(|target| {
            let index = self.indexes.get(target);
            !same_description || index.is_some_and(|one| one.presence || one.substrings.is_some())
        })
    }

    /// Whether values of both attributes go into one index.
    pub fn related(&self, one: &str, other: &str) -> bool {
        let targets = |name| self.targets.get(name).into_iter().flatten();
        targets(one).any(|target| targets(other).any(|shared| shared == target))
    }

    /// The keys of an entry with these attributes, sorted, each once.
    pub fn keys(&self, schema: &Schema, attributes: &Attributes) -> Vec<Key> {
        let mut keys = Vec::new();
        for (stored, values) in attributes {
            for target in self.targets.get(base(stored)).into_iter().flatten() {
                let Some(index) = self.indexes.get(target) else { continue };
                if index.presence {
                    keys.push(presence_key(target));
                }
                for value in values {
                    self.value_keys(schema, target, index, value, &mut keys);
                }
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn value_keys(
        &self,
        schema: &Schema,
        target: &str,
        index: &Index,
        value: &[u8],
        keys: &mut Vec<Key>,
    ) {
        let normal = index.equality.and_then(|rule| schema.normalize(rule, value));
        if let Some(normal) = &normal {
            keys.push(equality_key(target, normal));
        }
        let normal = index.substrings.and_then(|rule| schema.normalize(rule, value));
        if let Some(normal) = &normal {
            if normal.len() > SUBSTRING_INDEXED_BYTES_MAX {
                keys.push(overlong_key(target));
            } else {
                keys.extend(grams(normal).map(|gram| gram_key(target, gram)));
            }
        }
    }

    /// The list of entries that have a value equal to this normal form of the attribute.
    pub fn equality(&self, attribute: &str, normal: &[u8]) -> Option<Key> {
        self.indexes.get(attribute)?.equality?;
        Some(equality_key(attribute, normal))
    }

    /// The lists of entries that have a value greater than or equal to this normal form.
    pub fn at_least(&self, attribute: &str, normal: &[u8]) -> Option<KeyRange> {
        self.indexes.get(attribute)?.equality?;
        Some(KeyRange::at_least(EQUALITY, &[attribute.as_bytes(), normal]))
    }

    /// The lists of entries that have a value less than or equal to this normal form.
    pub fn at_most(&self, attribute: &str, normal: &[u8]) -> Option<KeyRange> {
        self.indexes.get(attribute)?.equality?;
        Some(KeyRange::at_most(EQUALITY, &[attribute.as_bytes(), normal]))
    }

    /// The lists of entries that have a value whose normal form begins so.
    pub fn beginning(&self, attribute: &str, initial: &[u8]) -> Option<KeyRange> {
        self.indexes.get(attribute)?.equality?;
        Some(KeyRange::prefix(EQUALITY, &[attribute.as_bytes(), initial]))
    }

    /// The lists of all entries that have a value of the attribute.
    pub fn all(&self, attribute: &str) -> Option<KeyRange> {
        self.indexes.get(attribute)?.equality?;
        Some(KeyRange::all(EQUALITY, &[attribute.as_bytes()]))
    }

    /// The list of entries that have the attribute.
    pub fn presence(&self, attribute: &str) -> Option<Key> {
        self.indexes.get(attribute)?.presence.then(|| presence_key(attribute))
    }

    /// At most `max` lists that each hold all entries with such a part in a value, but for those in
    /// [`Indexes::overlong`]. None if the part is too short or the attribute not indexed so.
    pub fn containing(&self, attribute: &str, part: &[u8], max: usize) -> Vec<Key> {
        if self.overlong(attribute).is_none() {
            return Vec::new();
        }
        grams(part).take(max).map(|gram| gram_key(attribute, gram)).collect()
    }

    /// The list of entries with a value too long to be found by its parts.
    pub fn overlong(&self, attribute: &str) -> Option<Key> {
        self.indexes.get(attribute)?.substrings?;
        Some(overlong_key(attribute))
    }
}

/// The values of the one that the other does not have, spelled alike under the same description.
fn without(these: &Attributes, those: &Attributes) -> Attributes {
    let rest = these.iter().filter_map(|(name, values)| {
        let other = those.iter().find(|(other, _)| other == name);
        let other = other.map_or(&[][..], |(_, values)| values);
        let (values, other) = middles(values, other);
        let other: HashSet<&[u8]> = other.iter().map(Vec::as_slice).collect();
        let rest = values.iter().filter(|value| !other.contains(value.as_slice()));
        let rest: Vec<Vec<u8>> = rest.cloned().collect();
        (!rest.is_empty()).then(|| (name.clone(), rest))
    });
    rest.collect()
}

/// What is left of two lists without what both begin and end with: of thousands of values mostly one
/// changes, and the others need not be hashed.
fn middles<'v>(one: &'v [Vec<u8>], other: &'v [Vec<u8>]) -> (&'v [Vec<u8>], &'v [Vec<u8>]) {
    let alike = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (one.get(alike..), other.get(alike..));
    let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
    let pairs = one.iter().rev().zip(other.iter().rev());
    let alike = pairs.take_while(|(a, b)| a == b).count();
    let middle = |all: &'v [Vec<u8>]| all.get(..all.len() - alike).unwrap_or_default();
    (middle(one), middle(other))
}

fn index(setting: &IndexSetting, attribute: &AttributeType) -> Result<Index, String> {
    let name = attribute.name();
    let demand = |wanted: bool, rule: Option<MatchingRule>, what: &str| match rule {
        _ if !wanted => Ok(None),
        Some(rule) => Ok(Some(rule)),
        None => Err(format!("attribute {name} has no {what} rule to index by")),
    };
    Ok(Index {
        equality: demand(setting.equality, attribute.equality(), "equality")?,
        presence: setting.presence,
        substrings: demand(setting.substrings, attribute.substrings(), "substrings")?,
    })
}

fn targets(indexes: &HashMap<String, Index>, schema: &Schema) -> HashMap<String, Vec<String>> {
    let mut targets: HashMap<String, Vec<String>> = HashMap::new();
    for name in indexes.keys() {
        for member in schema.attribute(name).into_iter().flat_map(|one| schema.family(one)) {
            targets.entry(member.name().to_owned()).or_default().push(name.clone());
        }
    }
    targets
}

fn equality_key(attribute: &str, normal: &[u8]) -> Key {
    Key::new(EQUALITY, &[attribute.as_bytes(), normal])
}

/// The list of entries that have an attribute, if it is indexed so.
pub(crate) fn presence_key(attribute: &str) -> Key {
    Key::new(PRESENCE, &[attribute.as_bytes()])
}

fn gram_key(attribute: &str, gram: &[u8]) -> Key {
    Key::new(SUBSTRING, &[attribute.as_bytes(), gram])
}

fn overlong_key(attribute: &str) -> Key {
    gram_key(attribute, &[])
}

/// Every run of [`GRAM_BYTES`] in a normal form. Most forms have a blank at both ends, so that
/// the first and last two letters of a value are found as well.
fn grams(normal: &[u8]) -> impl Iterator<Item = &[u8]> {
    normal.windows(GRAM_BYTES)
}
