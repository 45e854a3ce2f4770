//! Searches against a model: random trees and filters, with indexes and without, before and after
//! random changes. The model has no index and no plan: it holds every entry as a list of values
//! and looks at each with rules of its own.

use super::*;
use crate::IndexKind::{Approximate, Equality, Presence, Substring};
use crate::{IndexSetting, IndexStatus};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The attributes of a model's entry. All are of text that ignores case.
const NAMES: [&str; 4] = ["cn", "sn", "description", "mail"];
const WORDS: [&str; 9] = ["a", "ab", "abc", "abcabc", "bc", "c d", "cde", "xyz", "zabcz"];

type Values = BTreeMap<&'static str, Vec<&'static str>>;

#[derive(Clone, Debug)]
enum Ask {
    Equal(&'static str, &'static str),
    Like(&'static str, &'static str),
    Present(&'static str),
    Parts(&'static str, Option<&'static str>, Vec<&'static str>, Option<&'static str>),
    And(Vec<Ask>),
    Or(Vec<Ask>),
    Not(Box<Ask>),
    Undefined,
}

impl Ask {
    fn text(&self) -> String {
        let all = |terms: &[Ask]| terms.iter().map(Ask::text).collect::<String>();
        match self {
            Ask::Equal(name, word) => format!("({name}={})", word.to_uppercase()),
            Ask::Like(name, word) => format!("({name}~={})", word.to_uppercase()),
            Ask::Present(name) => format!("({name}=*)"),
            Ask::Parts(name, initial, any, last) => {
                let middle: String = any.iter().map(|part| format!("*{part}")).collect();
                let (initial, last) = (initial.unwrap_or_default(), last.unwrap_or_default());
                format!("({name}={initial}{middle}*{last})")
            }
            Ask::And(terms) => format!("(&{})", all(terms)),
            Ask::Or(terms) => format!("(|{})", all(terms)),
            Ask::Not(term) => format!("(!{})", term.text()),
            Ask::Undefined => "(unheard-of=x)".into(),
        }
    }

    fn holds(&self, entry: &Values) -> Option<bool> {
        let values = |name| entry.get(name).into_iter().flatten();
        let any = |terms: &[Ask], wanted: bool| {
            let truths: Vec<_> = terms.iter().map(|term| term.holds(entry)).collect();
            if truths.contains(&Some(wanted)) {
                Some(wanted)
            } else if truths.contains(&None) {
                None
            } else {
                Some(!wanted)
            }
        };
        match self {
            Ask::Equal(name, word) => Some(values(name).any(|value| value == word)),
            Ask::Like(name, word) => Some(values(name).any(|value| is_like(value, word))),
            Ask::Present(name) => Some(values(name).next().is_some()),
            Ask::Parts(name, initial, middle, last) => Some(values(name).any(|value| {
                let Some(rest) = value.strip_prefix(initial.unwrap_or_default()) else {
                    return false;
                };
                let Some(mut rest) = rest.strip_suffix(last.unwrap_or_default()) else {
                    return false;
                };
                middle.iter().all(|part| match rest.split_once(part) {
                    Some((_, after)) => {
                        rest = after;
                        true
                    }
                    None => false,
                })
            })),
            Ask::And(terms) => any(terms, false),
            Ask::Or(terms) => any(terms, true),
            Ask::Not(term) => term.holds(entry).map(|truth| !truth),
            Ask::Undefined => None,
        }
    }
}

/// Whether a word of the list is found in another by its sound: they are so few that this can be said.
fn is_like(value: &str, asked: &str) -> bool {
    let sounds = |text: &str| -> Vec<&str> {
        let sound = |word| match word {
            "a" => "A",
            "ab" => "AB",
            "abc" => "ABK",
            "abcabc" => "ABKBK",
            "bc" => "BK",
            "c" => "K",
            "d" => "T",
            "cde" => "KT",
            "xyz" => "SS",
            "zabcz" => "SBKS",
            other => panic!("{other}"),
        };
        text.split(' ').map(sound).collect()
    };
    let (value, asked) = (sounds(value), sounds(asked));
    let mut rest = value.iter();
    asked.iter().all(|one| rest.any(|other| other == one))
}

fn ask() -> impl Strategy<Value = Ask> {
    let name = || prop::sample::select(&NAMES[..]);
    let word = || prop::sample::select(&WORDS[..]);
    let part = || prop::sample::select(&["a", "b", "ab", "bc", "abc", "cab", "z", "de"][..]);
    let parts = (
        name(),
        prop::option::of(part()),
        prop::collection::vec(part(), 0..3),
        prop::option::of(part()),
    );
    let parts = parts.prop_filter_map("there is a part", |(name, initial, any, last)| {
        let some = initial.is_some() || last.is_some() || !any.is_empty();
        some.then_some(Ask::Parts(name, initial, any, last))
    });
    let leaf = prop_oneof![
        4 => (name(), word()).prop_map(|(name, word)| Ask::Equal(name, word)),
        4 => parts,
        2 => (name(), word()).prop_map(|(name, word)| Ask::Like(name, word)),
        2 => name().prop_map(Ask::Present),
        1 => Just(Ask::Undefined),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            some().prop_map(Ask::And),
            some().prop_map(Ask::Or),
            inner.prop_map(|term| Ask::Not(Box::new(term))),
        ]
    })
}

fn values() -> impl Strategy<Value = Values> {
    let words = || prop::sample::subsequence(&WORDS[..], 0..3);
    (words(), words(), words(), words()).prop_map(|(cn, sn, description, mail)| {
        let lists = NAMES.into_iter().zip([cn, sn, description, mail]);
        lists.filter(|(_, list)| !list.is_empty()).collect()
    })
}

#[derive(Clone, Debug)]
enum Act {
    Put(usize, Values),
    Remove(usize),
    Move(usize, bool),
    /// Other indexes are wanted.
    Want(usize),
    /// They are all to be made anew.
    Anew,
    /// A piece of building them is done.
    Build,
    /// The directory is closed and opened again.
    Again,
}

/// The attributes that are indexed, by turns.
const TABLES: [&[&str]; 4] =
    [&[], &["cn", "sn", "description", "mail"], &["uid", "name", "mail"], &["cn"]];

/// A change of an entry, or something that happens to the indexes.
fn act_or_turn() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => act(),
        1 => (0..TABLES.len()).prop_map(Act::Want),
        1 => Just(Act::Anew),
        3 => Just(Act::Build),
        1 => Just(Act::Again),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..12_usize, values()).prop_map(|(at, values)| Act::Put(at, values)),
        1 => (0..12_usize).prop_map(Act::Remove),
        1 => (0..12_usize, any::<bool>()).prop_map(|(at, left)| Act::Move(at, left)),
    ]
}

fn indexed(names: &[&str]) -> Settings {
    let kinds = [Equality, Presence, Substring, Approximate];
    let setting = |attribute: &&str| IndexSetting::new(attribute, &kinds);
    Settings { indexes: names.iter().map(setting).collect(), ..settings() }
}

const UNITS: [&str; 2] = ["ou=left,dc=example,dc=com", "ou=right,dc=example,dc=com"];

/// A directory beside its model: where each numbered entry is, and what it has.
struct Pair {
    fixture: Fixture,
    settings: Settings,
    entries: BTreeMap<usize, (usize, Values)>,
}

impl Pair {
    fn new(settings: &Settings) -> Pair {
        let fixture = empty(settings);
        fixture.directory.add_naming_context(BASE).unwrap();
        fixture.add(BASE, &[("objectClass", &["domain"])]);
        for unit in UNITS {
            fixture.add(unit, &[("objectClass", &["organizationalUnit"])]);
        }
        Pair { fixture, settings: settings.clone(), entries: BTreeMap::new() }
    }

    fn dn(at: usize, unit: usize) -> String {
        format!("uid=e{at},{}", UNITS[unit])
    }

    fn act(mut self, act: &Act) -> Pair {
        match act {
            Act::Want(table) => {
                self.settings = indexed(TABLES[*table]);
                self.fixture.directory.turn_to(&self.settings).unwrap();
            }
            Act::Anew => self.fixture.directory.reindex(&[], false).unwrap(),
            Act::Build => drop(self.fixture.directory.build_piece().unwrap()),
            Act::Again => {
                let Fixture { directory, folder } = self.fixture;
                directory.close().unwrap();
                let (store, engine) = (store(&folder), super::engine());
                let directory = Directory::open_to_serve(store, &self.settings, engine).unwrap();
                self.fixture = Fixture { directory, folder };
            }
            Act::Put(at, values) => self.put(*at, values),
            Act::Remove(at) => {
                if let Some((unit, _)) = self.entries.remove(at) {
                    self.fixture.delete(&Pair::dn(*at, unit)).unwrap();
                }
            }
            Act::Move(at, left) => {
                let Some((unit, _)) = self.entries.get_mut(at) else { return self };
                let old = Pair::dn(*at, *unit);
                *unit = usize::from(!*left);
                let rdn = format!("uid=e{at}");
                self.fixture.rename(&old, &rdn, true, Some(UNITS[*unit])).unwrap();
            }
        }
        self
    }

    fn put(&mut self, at: usize, values: &Values) {
        if let Some((unit, held)) = self.entries.get_mut(&at) {
            let replaced = NAMES.iter().map(|name| {
                let new = values.get(name).map(Vec::as_slice).unwrap_or_default();
                change(ChangeOperation::Replace, name, new)
            });
            self.fixture.modify(&Pair::dn(at, *unit), replaced.collect()).unwrap();
            *held = values.clone();
            return;
        }
        let unit = at % 2;
        let mut attributes: Vec<(&str, &[&str])> =
            vec![("objectClass", &["account", "extensibleObject"])];
        attributes.extend(values.iter().map(|(name, values)| (*name, values.as_slice())));
        self.fixture.add(&Pair::dn(at, unit), &attributes);
        self.entries.insert(at, (unit, values.clone()));
    }

    fn check(&self, ask: &Ask) {
        let text = ask.text();
        for (base, unit) in [(BASE, None), (UNITS[0], Some(0)), (UNITS[1], Some(1))] {
            let entries = self.entries.iter();
            let inside = entries.filter(|(_, (at, _))| unit.is_none_or(|unit| unit == *at));
            let holding = inside.filter(|(_, (_, values))| ask.holds(values) == Some(true));
            let mut expected: Vec<String> = holding.map(|(at, _)| format!("e{at}")).collect();
            expected.sort();
            let only_ours = format!("(&{text}(uid=*))");
            let request = SearchRequest { base, ..request(&only_ours) };
            assert_eq!(self.fixture.search(&request).names(), expected, "{text} below {base}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 200, ..Default::default() })]

    #[test]
    fn directory_and_model_agree(
        acts in prop::collection::vec(act(), 1..25),
        asks in prop::collection::vec(ask(), 40),
    ) {
        for table in TABLES {
            let mut pair = Pair::new(&indexed(table));
            for act in &acts {
                pair = pair.act(act);
            }
            for ask in &asks {
                pair.check(ask);
            }
            pair.fixture.directory.check(&mut |_, _| {}).unwrap();
            feed::replays(&pair.fixture.directory);
        }
    }

    #[test]
    fn indexes_may_come_and_go_at_any_moment(
        acts in prop::collection::vec(act_or_turn(), 1..40),
        asks in prop::collection::vec(ask(), 6),
    ) {
        let mut pair = Pair::new(&indexed(TABLES[1]));
        for act in &acts {
            pair = pair.act(act);
            for ask in &asks {
                pair.check(ask);
            }
            pair.fixture.directory.check(&mut |_, _| {}).unwrap();
        }
        pair.fixture.directory.finish_indexes().unwrap();
        let reports = pair.fixture.directory.index_reports().unwrap();
        prop_assert!(reports.iter().all(|one| one.standing == IndexStatus::Whole));
        asks.iter().for_each(|ask| pair.check(ask));
        pair.fixture.directory.check(&mut |_, _| {}).unwrap();
    }
}
