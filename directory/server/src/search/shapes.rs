//! Filters by their shape: what they ask without the values, and what searches with such a filter cost.
//!
//! `(&(objectClass=person)(uid=ann))` and `(&(objectclass=device)(uid=bob))` have the shape
//! `(&(objectclass=?)(uid=?))`. Shapes are a process's, as its counters are: a thread remembers those that it
//! saw last, and so counts without a lock.

use super::unindexed::nanoseconds;
use crate::limits::{SHAPE_BYTES_MAX, SHAPES_MAX};
use keyway_codec::Filter;
use keyway_codec::message::Scope;
use keyway_lock::Unpoisoned;
use keyway_meter::{Counter, counter};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::time::Duration;

/// Searches of one scope with filters of one shape.
pub struct SearchShape {
    /// `base`, `one`, `sub` or `children`.
    pub scope: &'static str,
    /// The filter without its values.
    pub text: String,
    searches: Counter,
    time_ns: Counter,
    candidates: Counter,
    returned: Counter,
    unindexed: Counter,
    /// Where such a search found its candidates, as far as that was looked at.
    access_path: Mutex<String>,
    has_access_path: AtomicBool,
}

/// The cost of such searches.
pub struct SearchCost {
    /// How many there were.
    pub searches: u64,
    /// Their time, in nanoseconds.
    pub time_ns: u64,
    /// Candidates that they looked at.
    pub candidates: u64,
    /// Entries that they returned.
    pub returned: u64,
    /// How many no index helped.
    pub unindexed: u64,
    /// Where one found its candidates, as far as it was looked at.
    pub access_path: String,
}

/// By the hash of scope and shape.
static SHAPES: LazyLock<Mutex<HashMap<u64, &'static SearchShape>>> = LazyLock::new(Mutex::default);
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0_u8));

/// Shapes that a thread remembers; a power of two.
const REMEMBERED: usize = 64;

thread_local! {
    static LAST: RefCell<[Option<(u64, &'static SearchShape)>; REMEMBERED]> =
        const { RefCell::new([None; REMEMBERED]) };
}

/// The shape of a search. Takes a lock only if the thread has not seen it lately.
pub(crate) fn shape_of(scope: Scope, filter: &Filter<'_>) -> &'static SearchShape {
    let hash = hash(filter).wrapping_add(scope as u64);
    let place = (hash ^ (hash >> 32)) as usize & (REMEMBERED - 1);
    LAST.with_borrow_mut(|last| match last.get_mut(place) {
        Some(Some((known, shape))) if *known == hash => shape,
        Some(seen) => {
            let shape = look_up(hash, scope, filter);
            *seen = Some((hash, shape));
            shape
        }
        None => look_up(hash, scope, filter),
    })
}

/// All that there were searches of.
pub fn all() -> Vec<&'static SearchShape> {
    lock().values().copied().collect()
}

fn lock() -> MutexGuard<'static, HashMap<u64, &'static SearchShape>> {
    SHAPES.lock().unpoisoned()
}

#[cold]
fn look_up(hash: u64, scope: Scope, filter: &Filter<'_>) -> &'static SearchShape {
    let mut shapes = lock();
    // Shapes that come later are one shape, whatever they are.
    let is_new = shapes.len() < SHAPES_MAX && !shapes.contains_key(&hash);
    let key = if is_new || shapes.contains_key(&hash) { hash } else { 0 };
    let new = || {
        let text = if key == 0 { "other".to_owned() } else { text(filter, hash) };
        // As many as the limit says, for the rest of the process, as their counters are.
        &*Box::leak(Box::new(SearchShape::new(scope_name(scope), text)))
    };
    shapes.entry(key).or_insert_with(new)
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Base => "base",
        Scope::One => "one",
        Scope::Subtree => "sub",
        Scope::Subordinate => "children",
    }
}

impl SearchShape {
    fn new(scope: &'static str, text: String) -> SearchShape {
        let of = |what: &str| counter(&format!("search.filter.{scope}.{text}.{what}"));
        SearchShape {
            scope,
            searches: of("searches"),
            time_ns: of("time"),
            candidates: of("candidates"),
            returned: of("returned"),
            unindexed: of("unindexed"),
            access_path: Mutex::default(),
            has_access_path: AtomicBool::new(false),
            text,
        }
    }

    /// A search begins.
    #[inline]
    pub fn begun(&self, lacks_index: bool) {
        self.searches.increment();
        self.unindexed.add(u64::from(lacks_index));
    }

    /// A step of it has cost so much.
    #[inline]
    pub fn cost(&self, candidates: u64, returned: u32, time: Duration) {
        self.candidates.add(candidates);
        self.returned.add(returned.into());
        self.time_ns.add(nanoseconds(time));
    }

    /// Whether it has not been noted yet where such a search finds its candidates.
    #[inline]
    pub fn needs_access_path(&self) -> bool {
        !self.has_access_path.load(Ordering::Relaxed)
    }

    /// Says it.
    pub fn set_access_path(&self, access_path: String) {
        *self.access_path.lock().unpoisoned() = access_path;
        self.has_access_path.store(true, Ordering::Relaxed);
    }

    /// Where such a search found its candidates, when that was said last.
    pub fn access_path(&self) -> String {
        self.access_path.lock().unpoisoned().clone()
    }

    /// Their cost so far.
    pub fn total(&self) -> SearchCost {
        SearchCost {
            searches: self.searches.value(),
            time_ns: self.time_ns.value(),
            candidates: self.candidates.value(),
            returned: self.returned.value(),
            unindexed: self.unindexed.value(),
            access_path: self.access_path(),
        }
    }
}

/// The hash of a filter's shape, whatever the letters' case. A client that makes two shapes collide has them
/// counted together, and it does not know the seed.
fn hash(filter: &Filter<'_>) -> u64 {
    let mut mixed = Mixed(*SEED);
    mixed.filter(filter);
    mixed.0
}

/// A hash that takes a word in a multiplication: a search is counted by it.
struct Mixed(u64);

impl Mixed {
    #[inline]
    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }

    fn name(&mut self, kind: u64, name: &str) {
        self.word(kind + ((name.len() as u64) << 8));
        for part in name.as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            // Small letters of large ones; what else it changes it changes everywhere.
            self.word(u64::from_le_bytes(bytes) | 0x2020_2020_2020_2020);
        }
    }

    fn filter(&mut self, filter: &Filter<'_>) {
        match filter {
            Filter::And(terms) => self.terms(1, terms),
            Filter::Or(terms) => self.terms(2, terms),
            Filter::Not(term) => {
                self.word(3);
                self.filter(term);
            }
            Filter::Equality { attribute, .. } => self.name(4, attribute),
            Filter::GreaterOrEqual { attribute, .. } => self.name(5, attribute),
            Filter::LessOrEqual { attribute, .. } => self.name(6, attribute),
            Filter::Present(attribute) => self.name(7, attribute),
            Filter::Approx { attribute, .. } => self.name(8, attribute),
            Filter::Substrings { attribute, initial, any, last } => {
                let pieces = u64::from(initial.is_some()) + 2 * u64::from(last.is_some());
                self.name(16 + pieces + 4 * u64::from(!any.is_empty()), attribute);
            }
            Filter::Extensible { attribute, rule, dn_attributes, .. } => {
                self.name(9 + u64::from(*dn_attributes), attribute.as_deref().unwrap_or_default());
                self.name(11, rule.as_deref().unwrap_or_default());
            }
        }
    }

    /// Terms of one shape that follow each other count as several, however many they are.
    fn terms(&mut self, kind: u64, terms: &[Filter<'_>]) {
        self.word(kind);
        let (mut last, mut repeats) = (None, false);
        for term in terms {
            let this = hash(term);
            if last != Some(this) {
                self.word(this);
            } else if !repeats {
                self.word(12);
            }
            repeats = last == Some(this);
            last = Some(this);
        }
        self.word(13);
    }
}

/// As it is shown, and as a part of a counter's name: printable, without dots, no longer than it may be.
fn text(filter: &Filter<'_>, hash: u64) -> String {
    let mut text = String::new();
    write(&mut text, filter);
    let plain =
        |c: char| if c.is_ascii_graphic() && c != '.' { c.to_ascii_lowercase() } else { '_' };
    let mut text: String = text.chars().map(plain).collect();
    if text.len() > SHAPE_BYTES_MAX {
        text.truncate(SHAPE_BYTES_MAX - 9);
        text += &format!("~{:08x}", hash as u32);
    }
    text
}

fn write(text: &mut String, filter: &Filter<'_>) {
    // It is deeper and longer than an operator wants to read.
    if text.len() > 2 * SHAPE_BYTES_MAX {
        return;
    }
    let mut item = |attribute: &str, rest: &str| *text += &format!("({attribute}{rest})");
    match filter {
        Filter::And(terms) => write_terms(text, '&', terms),
        Filter::Or(terms) => write_terms(text, '|', terms),
        Filter::Not(term) => {
            *text += "(!";
            write(text, term);
            text.push(')');
        }
        Filter::Equality { attribute, .. } => item(attribute, "=?"),
        Filter::GreaterOrEqual { attribute, .. } => item(attribute, ">=?"),
        Filter::LessOrEqual { attribute, .. } => item(attribute, "<=?"),
        Filter::Approx { attribute, .. } => item(attribute, "~=?"),
        Filter::Present(attribute) => item(attribute, "=*"),
        Filter::Substrings { attribute, initial, any, last } => {
            let mark = |is_there: bool, mark| if is_there { mark } else { "" };
            let (initial, last) = (mark(initial.is_some(), "?"), mark(last.is_some(), "?"));
            item(attribute, &format!("={initial}*{}{last}", mark(!any.is_empty(), "?*")));
        }
        Filter::Extensible { attribute, rule, dn_attributes, .. } => {
            let attribute = attribute.as_deref().unwrap_or_default();
            let dn = if *dn_attributes { ":dn" } else { "" };
            let rule = rule.as_deref().map(|rule| format!(":{rule}")).unwrap_or_default();
            item(attribute, &format!("{dn}{rule}:=?"));
        }
    }
}

fn write_terms(text: &mut String, sign: char, terms: &[Filter<'_>]) {
    text.push('(');
    text.push(sign);
    let mut last = String::new();
    for term in terms {
        let mut this = String::new();
        write(&mut this, term);
        if this != last {
            *text += &this;
        } else if !text.ends_with('+') {
            text.push('+');
        }
        last = this;
        if text.len() > 2 * SHAPE_BYTES_MAX {
            return;
        }
    }
    text.push(')');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(filter: &str) -> &'static SearchShape {
        shape_of(Scope::Subtree, &Filter::parse(filter).unwrap())
    }

    #[test]
    fn values_and_cases_make_no_difference_and_all_else_does() {
        let same = ["(&(objectClass=person)(uid=ann))", "(&(OBJECTCLASS=device)(Uid=b))"];
        assert!(std::ptr::eq(shape(same[0]), shape(same[1])));
        assert_eq!(shape(same[0]).text, "(&(objectclass=?)(uid=?))");
        let all = [
            "(uid=a)",
            "(uid=*)",
            "(uid=a*)",
            "(uid=*a)",
            "(uid=*a*)",
            "(uid=a*b)",
            "(uid=a*b*c)",
            "(uid>=a)",
            "(uid<=a)",
            "(uid~=a)",
            "(!(uid=a))",
            "(&(uid=a))",
            "(|(uid=a))",
            "(|(uid=a)(uid=b))",
            "(uid:dn:caseExactMatch:=a)",
            "(:caseExactMatch:=a)",
            "(cn=a)",
            "(&(uid=a)(cn=b))",
            "(&(cn=b)(uid=a))",
        ];
        let texts: std::collections::HashSet<_> = all.iter().map(|it| &shape(it).text).collect();
        assert_eq!(texts.len(), all.len(), "{texts:?}");
        assert_eq!(shape("(uid=a*b*c)").text, "(uid=?*?*?)");
        assert_eq!(shape("(userPassword=secret)").text, "(userpassword=?)");
        assert_eq!(shape("(1.2.840.113556:=3)").text, "(1_2_840_113556:=?)");
    }

    #[test]
    fn as_many_terms_of_one_shape_as_there_are() {
        let many = |count: usize| format!("(|{})", "(uid=a)".repeat(count));
        assert!(std::ptr::eq(shape(&many(2)), shape(&many(500))));
        assert_eq!(shape(&many(3)).text, "(|(uid=?)+)");
    }

    #[test]
    fn a_text_is_as_short_as_a_name_needs() {
        let long: String = (0..200).map(|number| format!("(a{number}=x)")).collect();
        let (one, other) = (shape(&format!("(&{long})")), shape(&format!("(&{long}(z=1))")));
        assert_eq!(one.text.len(), SHAPE_BYTES_MAX);
        assert_ne!(one.text, other.text);
        let name = format!("search.filter.children.{}.candidates", one.text);
        assert!(name.len() <= keyway_meter::limits::NAME_BYTES_MAX);
    }
}
