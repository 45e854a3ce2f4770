//! Indexes: under which keys an entry can be found.
//!
//! An attribute's index holds the values of its subtypes as well, since a filter on the type asks
//! for them, and is made with the attribute's own rules. A key leads to candidates, never to
//! answers: long values are cut, so that the entry itself always decides.
//!
//! Entries are listed in all indexes that there are to be. Searches use those that are whole and were
//! not invalidated since.

mod build;
mod builder;
mod invalidated;
mod required;
mod setting;
mod state;

pub(crate) use build::turn;
pub use build::{IndexReport, IndexStatus};
pub(crate) use builder::Builder;
pub(crate) use invalidated::InvalidatedIndexes;
pub(crate) use required::required_indexes;
pub use setting::{IndexKind, IndexSetting};
pub(crate) use state::{Kinds, State, range};

use crate::limits::{APPROXIMATE_WORDS_MAX, SUBSTRING_INDEXED_BYTES_MAX};
use keyway_codec::syntax::{MatchingRule, sounds};
use keyway_schema::{AttributeType, EntryAttributes, Schema, base};
use keyway_store::{Key, KeyRange};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Bytes of a value in one substring key.
pub(crate) const GRAM_BYTES: usize = 3;

/// The indexes of a server, checked against its schema.
#[derive(Clone)]
pub struct Indexes {
    /// By canonical name.
    indexes: HashMap<String, Index>,
    /// Canonical names of the indexes that each attribute's values go into.
    targets: HashMap<String, Vec<String>>,
    /// Those that later ones have invalidated.
    invalidated: Arc<InvalidatedIndexes>,
    /// How often something was, when these were made.
    epoch: u64,
}

/// The keys that values can have in common in the indexes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DirectoryState {
    /// No key.
    Nothing,
    /// That the attribute is there.
    Presence,
    /// The key of values that are equal; that it is there may be another.
    Equal,
    /// Also those of parts of values, or of values that are not equal.
    Parts,
}

#[derive(Clone, Copy, Default)]
struct Index {
    equality: Option<MatchingRule>,
    presence: bool,
    substrings: Option<MatchingRule>,
    /// `None` if the index for equality is one for this as well.
    ordering: Option<MatchingRule>,
    approximate: Option<MatchingRule>,
    /// The kinds that are whole, as [`IndexKind::bit`] says.
    ready: u8,
}

impl Index {
    fn has(&self, kind: IndexKind) -> bool {
        match kind {
            IndexKind::Equality => self.equality.is_some(),
            IndexKind::Presence => self.presence,
            IndexKind::Substring => self.substrings.is_some(),
            IndexKind::Ordering => self.ordering.is_some(),
            IndexKind::Approximate => self.approximate.is_some(),
        }
    }
}

impl Indexes {
    /// Checks the settings. All indexes are taken to be whole.
    ///
    /// # Errors
    /// The attribute that is not known or lacks the rule, and why.
    pub fn new(settings: &[IndexSetting], schema: &Schema) -> Result<Indexes, String> {
        let mut indexes = HashMap::new();
        for setting in settings {
            let attribute = schema
                .attribute(&setting.attribute)
                .ok_or_else(|| format!("attribute {} is not known", setting.attribute))?;
            let index = index(setting, attribute)?;
            if indexes.insert(attribute.name().to_owned(), index).is_some() {
                return Err(format!("attribute {} is indexed twice", attribute.name()));
            }
        }
        let targets = targets(&indexes, schema);
        Ok(Indexes { indexes, targets, invalidated: Arc::default(), epoch: 0 })
    }

    /// These indexes, for searches that may use only those that are whole, and are not invalidated from now on.
    #[must_use]
    pub fn reading(mut self, whole: &Kinds, invalidated: &Arc<InvalidatedIndexes>) -> Indexes {
        for (attribute, index) in &mut self.indexes {
            let kinds = IndexKind::ALL.into_iter();
            let ready = kinds.filter(|kind| whole.contains(&(attribute.clone(), *kind)));
            index.ready = ready.fold(0, |bits, kind| bits | kind.bit());
        }
        Indexes { epoch: invalidated.epoch(), invalidated: invalidated.clone(), ..self }
    }

    /// These indexes, for searches that may not use some of them.
    #[must_use]
    pub fn without(mut self, kinds: &Kinds) -> Indexes {
        for (attribute, kind) in kinds {
            if let Some(index) = self.indexes.get_mut(attribute) {
                index.ready &= !kind.bit();
            }
        }
        self
    }

    /// All that entries are listed in.
    pub fn kinds(&self) -> Kinds {
        self.those(|_, _| true)
    }

    /// All that searches may use.
    pub fn whole(&self) -> Kinds {
        self.those(|index, kind| index.ready & kind.bit() != 0)
    }

    fn those(&self, which: impl Fn(&Index, IndexKind) -> bool) -> Kinds {
        let mut kinds = Kinds::new();
        for (attribute, index) in &self.indexes {
            let own = IndexKind::ALL.into_iter().filter(|kind| index.has(*kind));
            let own = own.filter(|kind| which(index, *kind));
            kinds.extend(own.map(|kind| (attribute.clone(), kind)));
        }
        kinds
    }

    /// The same, without those kinds that are not among these.
    #[must_use]
    pub fn only(mut self, kinds: &Kinds) -> Indexes {
        for (attribute, index) in &mut self.indexes {
            let has = |kind| kinds.contains(&(attribute.clone(), kind));
            index.equality = index.equality.filter(|_| has(IndexKind::Equality));
            index.presence &= has(IndexKind::Presence);
            index.substrings = index.substrings.filter(|_| has(IndexKind::Substring));
            index.ordering = index.ordering.filter(|_| has(IndexKind::Ordering));
            index.approximate = index.approximate.filter(|_| has(IndexKind::Approximate));
        }
        self
    }

    /// How often an index was invalidated: a plan is good for as long as that stays the same.
    pub fn invalidations(&self) -> u64 {
        self.invalidated.epoch()
    }

    /// The index of an attribute, if it has this kind and searches may use it.
    fn whole_index(&self, attribute: &str, kind: IndexKind) -> Option<&Index> {
        let index = self.indexes.get(attribute)?;
        let is_usable = index.ready & kind.bit() != 0
            && index.has(kind)
            && !self.invalidated.has(self.epoch, attribute, kind);
        is_usable.then_some(index)
    }

    /// The keys that an entry loses and gets when its attributes change, as far as these are
    /// concerned. Values that stay are not looked at unless they may share a key with one that
    /// goes: in a group of thousands one member comes and goes cheaply.
    pub fn difference(
        &self,
        schema: &Schema,
        old: &EntryAttributes,
        new: &EntryAttributes,
    ) -> (Vec<Key>, Vec<Key>) {
        let (gone, come) = Indexes::exchanged(old, new);
        self.exchange(schema, &gone, &come, new)
    }

    /// The values that go and those that come when an entry's attributes change.
    pub fn exchanged(
        old: &EntryAttributes,
        new: &EntryAttributes,
    ) -> (EntryAttributes, EntryAttributes) {
        (without(old, new), without(new, old))
    }

    /// The keys that an entry loses and gets when values go and others come. `after` has all of its values
    /// afterwards that may have a key in common with one that goes.
    pub fn exchange(
        &self,
        schema: &Schema,
        gone: &EntryAttributes,
        come: &EntryAttributes,
        after: &EntryAttributes,
    ) -> (Vec<Key>, Vec<Key>) {
        let removed = self.keys(schema, gone);
        let added = self.keys(schema, come);
        let shares = |name: &str| {
            gone.iter().any(|(other, _)| self.share_a_key(base(name), base(other), name == other))
        };
        let sharing: EntryAttributes =
            after.iter().filter(|(name, _)| shares(name)).cloned().collect();
        let kept = self.keys(schema, &sharing);
        let removed = removed.into_iter().filter(|key| kept.binary_search(key).is_err());
        (removed.collect(), added)
    }

    /// Whether a value of the one attribute can have a key of a value of the other that is not
    /// equal to it. Values of one description are never equal, so only what values share that are not
    /// equal counts.
    fn share_a_key(&self, one: &str, other: &str, same_description: bool) -> bool {
        let targets = |name| self.targets.get(name).into_iter().flatten();
        let has_more = |index: &Index| {
            let mut kinds = IndexKind::ALL.into_iter();
            kinds.any(|kind| kind != IndexKind::Equality && index.has(kind))
        };
        targets(one)
            .filter(|target| targets(other).any(|shared| shared == *target))
            .any(|target| !same_description || self.indexes.get(target).is_some_and(has_more))
    }

    /// The keys that values of an attribute that go can have in common with those of another that stay, both
    /// given as they are stored.
    pub fn shared(&self, schema: &Schema, gone: &str, stays: &str) -> DirectoryState {
        let targets = |name| self.targets.get(base(name)).into_iter().flatten();
        let own = schema.attribute(base(stays)).and_then(AttributeType::equality);
        let of = |index: &Index| {
            let is_own = |rule: MatchingRule| own.is_some_and(|own| own.has_form_of(rule));
            match index.equality {
                _ if index.substrings.or(index.ordering).or(index.approximate).is_some() => {
                    DirectoryState::Parts
                }
                Some(rule) if gone != stays && is_own(rule) => DirectoryState::Equal,
                Some(_) if gone != stays => DirectoryState::Parts,
                _ if index.presence => DirectoryState::Presence,
                _ => DirectoryState::Nothing,
            }
        };
        targets(gone)
            .filter(|target| targets(stays).any(|shared| shared == *target))
            .filter_map(|target| self.indexes.get(target).map(of))
            .max()
            .unwrap_or(DirectoryState::Nothing)
    }

    /// Whether values of both attributes go into one index.
    pub fn related(&self, one: &str, other: &str) -> bool {
        let targets = |name| self.targets.get(name).into_iter().flatten();
        targets(one).any(|target| targets(other).any(|shared| shared == target))
    }

    /// The keys of an entry with these attributes, sorted, each once.
    pub fn keys(&self, schema: &Schema, attributes: &EntryAttributes) -> Vec<Key> {
        let mut keys = self.all_keys(schema, attributes);
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The keys of an entry with these attributes, in no order, some of them more than once: for an entry that is to
    /// be listed, as the store sorts the keys of a whole change.
    pub fn all_keys(&self, schema: &Schema, attributes: &EntryAttributes) -> Vec<Key> {
        let mut keys = Vec::new();
        for (stored, values) in attributes {
            for target in self.targets.get(base(stored)).into_iter().flatten() {
                let Some(index) = self.indexes.get(target) else { continue };
                if index.presence {
                    keys.push(presence_key(target));
                }
                for value in values {
                    value_keys(schema, target, index, value, &mut keys);
                }
            }
        }
        keys
    }

    /// The list of entries that have a value equal to this normal form of the attribute.
    pub fn equality(&self, attribute: &str, normal: &[u8]) -> Option<Key> {
        self.whole_index(attribute, IndexKind::Equality)?;
        Some(equality_key(attribute, normal))
    }

    /// The lists of entries that have a value greater than or equal to this normal form of a rule.
    pub fn at_least(&self, attribute: &str, rule: MatchingRule, normal: &[u8]) -> Option<KeyRange> {
        let kind = self.ordered(attribute, rule)?;
        Some(KeyRange::at_least(kind.byte(), &[attribute.as_bytes(), normal]))
    }

    /// The lists of entries that have a value less than or equal to this normal form of a rule.
    pub fn at_most(&self, attribute: &str, rule: MatchingRule, normal: &[u8]) -> Option<KeyRange> {
        let kind = self.ordered(attribute, rule)?;
        Some(KeyRange::at_most(kind.byte(), &[attribute.as_bytes(), normal]))
    }

    /// The kind whose keys are in the order of a rule.
    fn ordered(&self, attribute: &str, rule: MatchingRule) -> Option<IndexKind> {
        let has_form = |own: Option<MatchingRule>| own.is_some_and(|own| own.has_form_of(rule));
        let index = |kind| self.whole_index(attribute, kind);
        if index(IndexKind::Equality).is_some_and(|index| has_form(index.equality)) {
            return Some(IndexKind::Equality);
        }
        index(IndexKind::Ordering)
            .filter(|index| has_form(index.ordering))
            .map(|_| IndexKind::Ordering)
    }

    /// The lists of entries that have a value whose normal form begins so.
    pub fn beginning(&self, attribute: &str, initial: &[u8]) -> Option<KeyRange> {
        self.whole_index(attribute, IndexKind::Equality)?;
        Some(KeyRange::prefix(IndexKind::Equality.byte(), &[attribute.as_bytes(), initial]))
    }

    /// The lists of all entries that have a value of the attribute.
    pub fn all(&self, attribute: &str) -> Option<KeyRange> {
        self.whole_index(attribute, IndexKind::Equality)?;
        Some(KeyRange::all(IndexKind::Equality.byte(), &[attribute.as_bytes()]))
    }

    /// The list of entries that have the attribute.
    pub fn presence(&self, attribute: &str) -> Option<Key> {
        self.whole_index(attribute, IndexKind::Presence)?;
        Some(presence_key(attribute))
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
        self.whole_index(attribute, IndexKind::Substring)?;
        Some(overlong_key(attribute))
    }

    /// The lists of entries that have a word of this sound: those with it, and those with too many
    /// words to be found by each.
    pub fn sounding(&self, attribute: &str, code: &str) -> Option<[Key; 2]> {
        self.whole_index(attribute, IndexKind::Approximate)?;
        Some([sound_key(attribute, code), sound_key(attribute, "")])
    }
}

fn value_keys(schema: &Schema, target: &str, index: &Index, value: &[u8], keys: &mut Vec<Key>) {
    let form = |rule: Option<MatchingRule>| rule.and_then(|rule| schema.normalize(rule, value));
    if let Some(normal) = form(index.equality) {
        keys.push(equality_key(target, &normal));
    }
    if let Some(normal) = form(index.ordering) {
        keys.push(Key::new(IndexKind::Ordering.byte(), &[target.as_bytes(), &normal]));
    }
    if let Some(normal) = form(index.substrings) {
        if normal.len() > SUBSTRING_INDEXED_BYTES_MAX {
            keys.push(overlong_key(target));
        } else {
            keys.extend(grams(&normal).map(|gram| gram_key(target, gram)));
        }
    }
    if let Some(codes) = index.approximate.and_then(|_| sounds(value)) {
        match codes.len() > APPROXIMATE_WORDS_MAX {
            true => keys.push(sound_key(target, "")),
            false => keys.extend(codes.iter().map(|code| sound_key(target, code))),
        }
    }
}

/// The values of the one that the other does not have, spelled alike under the same description.
fn without(these: &EntryAttributes, those: &EntryAttributes) -> EntryAttributes {
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

/// The rest of two lists without what both begin and end with: of thousands of values mostly one
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
    let demand = |kind: IndexKind, rule: Option<MatchingRule>| match rule {
        _ if !setting.kinds.contains(&kind) => Ok(None),
        Some(rule) => Ok(Some(rule)),
        None => Err(format!("attribute {name} has no rule to index by for {kind}")),
    };
    let equality = demand(IndexKind::Equality, attribute.equality())?;
    let ordering = demand(IndexKind::Ordering, attribute.ordering())?;
    let is_ordered =
        |rule: MatchingRule| equality.is_some_and(|equality| equality.has_form_of(rule));
    let words = attribute.equality().filter(|rule| rule.has_words());
    Ok(Index {
        equality,
        presence: setting.kinds.contains(&IndexKind::Presence),
        substrings: demand(IndexKind::Substring, attribute.substrings())?,
        ordering: ordering.filter(|rule| !is_ordered(*rule)),
        approximate: demand(IndexKind::Approximate, words)?,
        ready: u8::MAX,
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
    Key::new(IndexKind::Equality.byte(), &[attribute.as_bytes(), normal])
}

/// The list of entries that have an attribute, if it is indexed so.
pub(crate) fn presence_key(attribute: &str) -> Key {
    Key::new(IndexKind::Presence.byte(), &[attribute.as_bytes()])
}

fn gram_key(attribute: &str, gram: &[u8]) -> Key {
    Key::new(IndexKind::Substring.byte(), &[attribute.as_bytes(), gram])
}

fn overlong_key(attribute: &str) -> Key {
    gram_key(attribute, &[])
}

fn sound_key(attribute: &str, code: &str) -> Key {
    Key::new(IndexKind::Approximate.byte(), &[attribute.as_bytes(), code.as_bytes()])
}

/// Every run of [`GRAM_BYTES`] in a normal form. Most forms have a blank at both ends, so that
/// the first and last two letters of a value are found as well.
fn grams(normal: &[u8]) -> impl Iterator<Item = &[u8]> {
    normal.windows(GRAM_BYTES)
}
