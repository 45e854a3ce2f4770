//! Whether an entry matches a filter: three-valued, as X.511 and RFC 4511 § 4.5.1.7 have it.

use crate::access::{Rights, View as Permissions};
use crate::candidate::Candidate;
use crate::failure::{Failure, Result};
use crate::integrity::Chain;
use crate::limits::CHAINS_MAX;
use crate::state::Snapshot;
use keyway_codec::dn::Dn;
use keyway_codec::message::ResultCode;
use keyway_codec::syntax::{MatchingRule, sounds, sounds_like};
use keyway_schema::operational::Computed;
use keyway_schema::{
    EntryName, FilterItem, FilterTest, ItemScope, Matcher, Schema, base, has_options,
};
use keyway_store::{EntryId, Large, View};
use memchr::memmem;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The truth of a filter for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It matches.
    True,
    /// It does not.
    False,
    /// It cannot be told: something is unknown, invalid or not the subject's to ask.
    Undefined,
}

/// Takes the truth of an assertion control's filter (RFC 4528).
///
/// # Errors
/// `assertionFailed` unless it is true.
pub(crate) fn asserted(truth: Truth) -> Result<()> {
    match truth {
        Truth::True => Ok(()),
        _ => Err(Failure::new(ResultCode::AssertionFailed, "the entry does not match")),
    }
}

impl Truth {
    fn not(self) -> Truth {
        match self {
            Truth::True => Truth::False,
            Truth::False => Truth::True,
            Truth::Undefined => Truth::Undefined,
        }
    }

    /// True if one is, else undefined if one is.
    fn or(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::True, _) | (_, Truth::True) => Truth::True,
            (Truth::False, Truth::False) => Truth::False,
            _ => Truth::Undefined,
        }
    }
}

/// Filters put to entries on behalf of a subject: what he has no right to is undefined to him.
pub struct Evaluator<'a> {
    /// The schema.
    pub schema: &'a Schema,
    /// The subject's rights.
    pub view: &'a Permissions,
    /// Which of them is needed.
    pub right: Rights,
    work: Cell<usize>,
    /// The group that was asked for last.
    group: RefCell<Option<(Vec<u8>, Option<EntryId>)>>,
    /// The entries that lead to an entry, by attribute and name.
    chains: RefCell<Vec<KnownChain>>,
}

/// An attribute, a name in its normal form, and what leads there by it, if that can be told.
type KnownChain = (String, Vec<u8>, Option<Rc<Chain>>);

/// The work that a question for an entry's groups counts as.
const MEMBER_OF_WORK: usize = 8;

/// Bytes of a value that count as one more piece of work.
const WORK_BYTES: usize = 64;

impl<'a> Evaluator<'a> {
    /// For filters, which need the right to search.
    pub fn search(schema: &'a Schema, view: &'a Permissions) -> Self {
        Evaluator::new(schema, view, Rights::SEARCH)
    }

    /// For what needs this right.
    pub fn new(schema: &'a Schema, view: &'a Permissions, right: Rights) -> Self {
        Evaluator {
            schema,
            view,
            right,
            work: Cell::new(0),
            group: RefCell::default(),
            chains: RefCell::default(),
        }
    }

    /// Work done so far: tests put to entries and to their values, long values counting as more.
    pub fn work(&self) -> usize {
        self.work.get()
    }

    fn worked(&self, work: usize) {
        self.work.set(self.work.get().saturating_add(work));
    }

    /// Whether the entry matches.
    ///
    /// # Errors
    /// The store's, if the entry's place in the tree had to be looked at.
    pub fn matches(&self, matcher: &Matcher, entry: &Candidate<'_, '_>) -> Result<Truth> {
        match matcher {
            Matcher::Item(item) => self.item(item, entry),
            Matcher::Undefined => Ok(Truth::Undefined),
            Matcher::Not(term) => Ok(self.matches(term, entry)?.not()),
            Matcher::Or(terms) => self.any(terms, entry, |truth| truth),
            // De Morgan: a conjunction is false exactly if one of its terms, denied, is true.
            Matcher::And(terms) => Ok(self.any(terms, entry, Truth::not)?.not()),
        }
    }

    fn any(
        &self,
        terms: &[Matcher],
        entry: &Candidate<'_, '_>,
        seen_as: fn(Truth) -> Truth,
    ) -> Result<Truth> {
        let mut found = Truth::False;
        for term in terms {
            found = found.or(seen_as(self.matches(term, entry)?));
            if found == Truth::True {
                break;
            }
        }
        Ok(found)
    }

    fn item(&self, item: &FilterItem, entry: &Candidate<'_, '_>) -> Result<Truth> {
        self.worked(1);
        let mut found = match &item.scope {
            ItemScope::Type { name, .. } if !self.may(name, entry)? => return Ok(Truth::Undefined),
            _ => Truth::False,
        };
        if let (ItemScope::Type { name, computed, .. }, FilterTest::InChain { given, normal }) =
            (&item.scope, &item.test)
        {
            return match computed.as_slice() {
                [] => self.in_chain(name, normal, entry),
                _ => self.in_nested_group(given, entry),
            };
        }
        for (stored, values) in entry.attributes() {
            let name = base(stored);
            if !item.looks_at(self.schema, name) || !has_options(stored, &item.options) {
                continue;
            }
            found = found.or(match self.may(name, entry)? {
                true => self.test(&item.test, values),
                false => Truth::Undefined,
            });
            if found == Truth::True {
                return Ok(found);
            }
        }
        for large in entry.large() {
            let name = base(large.name);
            if !item.looks_at(self.schema, name) || !has_options(large.name, &item.options) {
                continue;
            }
            found = found.or(match self.may(name, entry)? {
                true => self.large(&item.test, &large, entry)?,
                false => Truth::Undefined,
            });
            if found == Truth::True {
                return Ok(found);
            }
        }
        if let ItemScope::Type { computed, .. } = &item.scope {
            for which in computed {
                found = found.or(self.computed(*which, &item.test, entry)?);
            }
        }
        if item.dn_attributes {
            found = found.or(self.dn_attributes(item, entry)?);
        }
        Ok(found)
    }

    fn may(&self, name: &str, entry: &Candidate<'_, '_>) -> Result<bool> {
        self.view.may(self.right, name, entry)
    }

    fn computed(
        &self,
        which: Computed,
        test: &FilterTest,
        entry: &Candidate<'_, '_>,
    ) -> Result<Truth> {
        if let (Computed::MemberOf, FilterTest::Equal { given, .. }, Some(tree)) =
            (which, test, entry.tree())
        {
            let is_in = match self.group(given, entry.snapshot(), tree)? {
                Some(group) => entry.shows_group(group)?,
                None => false,
            };
            self.worked(MEMBER_OF_WORK + entry.groups_looked_up());
            return Ok(if is_in { Truth::True } else { Truth::False });
        }
        let values = entry.computed(which)?;
        self.worked(values.len());
        Ok(self.test(test, values.iter().map(Vec::as_slice)))
    }

    /// Whether an attribute leads from the entry to another one.
    fn in_chain(&self, name: &str, normal: &[u8], entry: &Candidate<'_, '_>) -> Result<Truth> {
        let Some(tree) = entry.tree() else { return Ok(Truth::False) };
        let Some(chain) = self.chain(name, normal, entry.snapshot(), tree)? else {
            return Ok(Truth::Undefined);
        };
        Ok(match chain.ids.binary_search(&entry.id()) {
            Ok(_) => Truth::True,
            Err(_) if chain.complete => Truth::False,
            Err(_) => Truth::Undefined,
        })
    }

    /// The entries that lead to an entry, looked up once.
    fn chain(
        &self,
        name: &str,
        normal: &[u8],
        snapshot: &Snapshot,
        tree: View<'_>,
    ) -> Result<Option<Rc<Chain>>> {
        let is_it = |known: &&KnownChain| known.0 == name && known.1 == normal;
        if let Some((_, _, chain)) = self.chains.borrow().iter().find(is_it) {
            return Ok(chain.clone());
        }
        let chain = snapshot.chain(tree, name, normal)?.map(Rc::new);
        self.worked(chain.as_ref().map_or(0, |chain| chain.ids.len()));
        if self.chains.borrow().len() < CHAINS_MAX {
            self.chains.borrow_mut().push((name.to_owned(), normal.to_vec(), chain.clone()));
        }
        Ok(chain)
    }

    /// Whether the entry is in a group, or in a group that is in it, whatever `memberOf` shows.
    fn in_nested_group(&self, dn: &[u8], entry: &Candidate<'_, '_>) -> Result<Truth> {
        let Some(tree) = entry.tree() else { return Ok(Truth::False) };
        self.worked(MEMBER_OF_WORK);
        let Some(group) = self.group(dn, entry.snapshot(), tree)? else { return Ok(Truth::False) };
        if entry.shows_group(group)? {
            return Ok(Truth::True);
        }
        Ok(match entry.is_in_nested(group)? {
            Some(true) => Truth::True,
            Some(false) => Truth::False,
            None => Truth::Undefined,
        })
    }

    /// The entry of a group's name, looked up once.
    fn group(&self, dn: &[u8], snapshot: &Snapshot, tree: View<'_>) -> Result<Option<EntryId>> {
        if let Some((known, id)) = &*self.group.borrow()
            && known == dn
        {
            return Ok(*id);
        }
        let name =
            std::str::from_utf8(dn).ok().and_then(|dn| EntryName::parse(&snapshot.schema, dn).ok());
        let id = match name {
            Some(name) => snapshot.entry_named(tree, &name)?,
            None => None,
        };
        *self.group.borrow_mut() = Some((dn.to_vec(), id));
        Ok(id)
    }

    /// Whether one of these values passes.
    fn test<'v>(&self, test: &FilterTest, mut values: impl Iterator<Item = &'v [u8]>) -> Truth {
        if matches!(test, FilterTest::Present) {
            return if values.next().is_some() { Truth::True } else { Truth::False };
        }
        let mut found = Truth::False;
        for value in values {
            found = found.or(self.value(test, value));
            if found == Truth::True {
                break;
            }
        }
        found
    }

    /// Whether a value of a large attribute passes. One that is to be equal is looked up.
    fn large(
        &self,
        test: &FilterTest,
        large: &Large<'_>,
        entry: &Candidate<'_, '_>,
    ) -> Result<Truth> {
        if matches!(test, FilterTest::Present) {
            return Ok(Truth::True);
        }
        if let FilterTest::Equal { rule, normal, .. } = test
            && let Some(holds) = entry.large_holds(large, *rule, normal)?
        {
            self.worked(1);
            return Ok(if holds { Truth::True } else { Truth::False });
        }
        let mut found = Truth::False;
        for value in entry.large_values(large)?.into_iter().flatten() {
            found = found.or(self.value(test, value?.1));
            if found == Truth::True {
                break;
            }
        }
        Ok(found)
    }

    fn value(&self, test: &FilterTest, value: &[u8]) -> Truth {
        let rule = match test {
            FilterTest::Present => return Truth::True,
            // It is about the whole entry.
            FilterTest::InChain { .. } => return Truth::Undefined,
            // Values that are spelled alike are equal, without any work.
            FilterTest::Equal { given, .. } if given == value => return Truth::True,
            FilterTest::Equal { rule, .. }
            | FilterTest::Approximate { rule, .. }
            | FilterTest::Substrings { rule, .. }
            | FilterTest::AtLeast { rule, .. }
            | FilterTest::Before { rule, .. }
            | FilterTest::Bits { rule, .. }
            | FilterTest::AtMost { rule, .. } => *rule,
        };
        self.worked(1 + value.len() / WORK_BYTES);
        if let FilterTest::Approximate { sounds: asked, .. } = test {
            return match sounds(value) {
                Some(held) if sounds_like(&held, asked) => Truth::True,
                Some(_) => Truth::False,
                None => Truth::Undefined,
            };
        }
        let Some(held) = self.schema.normalize(rule, value) else { return Truth::Undefined };
        let passes = match test {
            FilterTest::Present | FilterTest::InChain { .. } | FilterTest::Approximate { .. } => {
                true
            }
            FilterTest::Equal { normal, .. } => held == *normal,
            FilterTest::AtLeast { normal, .. } => held >= *normal,
            FilterTest::AtMost { normal, .. } => held <= *normal,
            FilterTest::Before { normal, .. } => held < *normal,
            FilterTest::Bits { rule, bits } => {
                let number = str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
                let Some(number) = number else { return Truth::Undefined };
                match rule {
                    MatchingRule::IntegerBitAnd => number & bits == *bits,
                    _ => number & bits != 0,
                }
            }
            FilterTest::Substrings { initial, any, last, .. } => {
                has_parts(&held, initial.as_deref(), any, last.as_deref())
            }
        };
        if passes { Truth::True } else { Truth::False }
    }

    /// The test put to the attributes of the entry's DN.
    fn dn_attributes(&self, item: &FilterItem, entry: &Candidate<'_, '_>) -> Result<Truth> {
        let Ok(dn) = Dn::parse(entry.dn()?) else { return Ok(Truth::Undefined) };
        let mut found = Truth::False;
        for ava in dn.rdns.iter().flat_map(|rdn| &rdn.avas) {
            let Some(attribute) = self.schema.attribute(&ava.attribute) else { continue };
            if !item.looks_at(self.schema, attribute.name()) || !item.options.is_empty() {
                continue;
            }
            found = found.or(match self.may(attribute.name(), entry)? {
                true => self.value(&item.test, &ava.value),
                false => Truth::Undefined,
            });
        }
        Ok(found)
    }
}

/// Whether the parts follow each other in the value without overlapping.
fn has_parts(value: &[u8], initial: Option<&[u8]>, any: &[Vec<u8>], last: Option<&[u8]>) -> bool {
    let Some(rest) = value.strip_prefix(initial.unwrap_or_default()) else { return false };
    let Some(mut rest) = rest.strip_suffix(last.unwrap_or_default()) else { return false };
    for part in any {
        let Some(at) = memmem::find(rest, part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::has_parts;

    #[test]
    fn parts_follow_each_other() {
        let any = |parts: &[&str]| parts.iter().map(|part| part.as_bytes().to_vec()).collect();
        let cases: &[(&[&str], bool)] = &[
            (&[], true),
            (&[""], true),
            (&["ab", "ab"], true),
            (&["aba", "ba"], false),
            (&["abab", ""], true),
            (&["c"], false),
        ];
        for (parts, expected) in cases {
            let parts: Vec<Vec<u8>> = any(parts);
            assert_eq!(has_parts(b"abab", None, &parts, None), *expected, "{parts:?}");
        }
        assert!(!has_parts(b"aba", Some(b"ab"), &[], Some(b"ba")));
    }

    #[test]
    fn a_long_part_that_almost_occurs_everywhere_is_searched_for_in_one_pass() {
        let value = vec![b'a'; 4 << 20];
        let mut part = vec![b'a'; 2 << 20];
        part.push(b'b');
        // The naive search compares terabytes here.
        assert!(!has_parts(&value, None, &[part], None));
    }
}
