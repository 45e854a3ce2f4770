//! What searches have found out and the next ones use: names, bases and paths stay right whatever happens between
//! two of them. The model is a tree of names without any memory.

use super::*;
use crate::IndexKind::Equality;
use crate::IndexSetting;
use keyway_lock::Unpoisoned;
use proptest::prelude::*;
use std::collections::BTreeMap;

const WORDS: [&str; 4] = ["a", "b", "c", "d"];
const SCOPES: [Scope; 4] = [Scope::Base, Scope::One, Scope::Subtree, Scope::Subordinate];

/// A change of the tree. Entries are chosen by their places among those that there are.
#[derive(Clone, Debug)]
enum Act {
    Add(prop::sample::Index, &'static str),
    Rename(prop::sample::Index, &'static str),
    Move(prop::sample::Index, prop::sample::Index),
    Delete(prop::sample::Index),
    /// A definition is added or removed: all names are understood anew.
    Define,
}

fn act() -> impl Strategy<Value = Act> {
    let (at, word) = (any::<prop::sample::Index>, || prop::sample::select(&WORDS[..]));
    prop_oneof![
        4 => (at(), word()).prop_map(|(at, word)| Act::Add(at, word)),
        2 => (at(), word()).prop_map(|(at, word)| Act::Rename(at, word)),
        3 => (at(), at()).prop_map(|(at, to)| Act::Move(at, to)),
        2 => at().prop_map(Act::Delete),
        1 => Just(Act::Define),
    ]
}

/// The tree: by each entry's number the one above it and its own name. Number 0 is the top.
struct Tree {
    fixture: Fixture,
    entries: BTreeMap<usize, (usize, &'static str)>,
    next: usize,
    defined: bool,
    /// All names that there ever were, so that searches begin at some that are gone.
    names: Vec<String>,
}

impl Tree {
    fn new() -> Tree {
        let indexes = vec![IndexSetting::new("description", &[Equality])];
        let fixture = empty(&Settings { indexes, ..settings() });
        fixture.directory.add_naming_context(BASE).unwrap();
        fixture.add(BASE, &[("objectClass", &["domain"]), ("description", &["n0"])]);
        let (entries, names) = (BTreeMap::new(), vec![BASE.to_owned()]);
        Tree { fixture, entries, next: 1, defined: false, names }
    }

    fn dn(&self, at: usize) -> String {
        match self.entries.get(&at) {
            Some((above, word)) => format!("ou={word},{}", self.dn(*above)),
            None => BASE.to_owned(),
        }
    }

    fn pick(&self, at: &prop::sample::Index) -> Option<usize> {
        let all: Vec<usize> = self.entries.keys().copied().collect();
        (!all.is_empty()).then(|| all[at.index(all.len())])
    }

    fn is_free(&self, above: usize, word: &str) -> bool {
        self.entries.values().all(|one| *one != (above, word))
    }

    /// Whether an entry is another one or below it.
    fn is_within(&self, at: usize, top: usize) -> bool {
        at == top || self.entries.get(&at).is_some_and(|(above, _)| self.is_within(*above, top))
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Add(above, word) => {
                let above = self.pick(above).unwrap_or(0);
                if !self.is_free(above, word) {
                    return;
                }
                let (at, dn) = (self.next, format!("ou={word},{}", self.dn(above)));
                let description = format!("n{at}");
                let values: [(&str, &[&str]); 2] =
                    [("objectClass", &["organizationalUnit"]), ("description", &[&description])];
                self.fixture.add(&dn, &values);
                self.entries.insert(at, (above, word));
                self.next += 1;
            }
            Act::Rename(at, word) => {
                let Some(at) = self.pick(at) else { return };
                let (above, _) = self.entries[&at];
                if self.is_free(above, word) {
                    self.fixture.rename(&self.dn(at), &format!("ou={word}"), true, None).unwrap();
                    self.entries.insert(at, (above, word));
                }
            }
            Act::Move(at, to) => {
                let (Some(at), Some(to)) = (self.pick(at), self.pick(to)) else { return };
                let (above, word) = self.entries[&at];
                if above == to || self.is_within(to, at) || !self.is_free(to, word) {
                    return;
                }
                let (rdn, to_dn) = (format!("ou={word}"), self.dn(to));
                self.fixture.rename(&self.dn(at), &rdn, true, Some(&to_dn)).unwrap();
                self.entries.insert(at, (to, word));
            }
            Act::Delete(at) => {
                let Some(at) = self.pick(at) else { return };
                if self.entries.values().all(|(above, _)| *above != at) {
                    self.fixture.delete(&self.dn(at)).unwrap();
                    self.entries.remove(&at);
                }
            }
            Act::Define => {
                self.define(!self.defined);
                self.defined = !self.defined;
            }
        }
        let names: Vec<String> = self.entries.keys().map(|at| self.dn(*at)).collect();
        let new: Vec<String> =
            names.into_iter().filter(|name| !self.names.contains(name)).collect();
        self.names.extend(new);
    }

    fn define(&self, add: bool) {
        let definition = "( 1.3.6.1.4.1.99999.7 NAME 'shade' EQUALITY caseIgnoreMatch \
                          SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )";
        let (operation, value) = match add {
            true => (ChangeOperation::Add, definition),
            false => (ChangeOperation::Delete, "1.3.6.1.4.1.99999.7"),
        };
        let changes = vec![change(operation, "attributeTypes", &[value])];
        self.fixture.modify("cn=schema", changes).unwrap();
    }

    /// The DNs that a search has to find; `None` if there is no such base.
    fn expected(&self, base: &str, scope: Scope, wanted: Option<usize>) -> Option<Vec<String>> {
        let all = || std::iter::once(0).chain(self.entries.keys().copied());
        let top = all().find(|at| self.dn(*at) == base)?;
        let is_in = |at: &usize| match scope {
            Scope::Base => *at == top,
            Scope::One => *at != 0 && self.entries[at].0 == top,
            Scope::Subtree => self.is_within(*at, top),
            Scope::Subordinate => *at != top && self.is_within(*at, top),
        };
        let found = all().filter(is_in).filter(|at| wanted.is_none_or(|wanted| wanted == *at));
        let mut found: Vec<String> = found.map(|at| self.dn(at)).collect();
        found.sort();
        Some(found)
    }

    fn check(&self) {
        let subject = self.fixture.administrator();
        let last = (0..self.next).rev().take(4).map(Some);
        for wanted in last.chain([None]) {
            let filter =
                wanted.map_or("(description=*)".to_owned(), |at| format!("(description=n{at})"));
            for base in self.names.iter().rev().take(4).chain([&self.names[0]]) {
                for scope in SCOPES {
                    // One that is spelled in another way is another text of the same name.
                    let spelled = base.to_uppercase().replace(',', " , ");
                    let expected = self.expected(base, scope, wanted);
                    for base in [base, &spelled] {
                        let request = SearchRequest { base, scope, ..request(&filter) };
                        let controls = RequestControls::default();
                        let learnt = self.fixture.run(&subject, &request, &controls);
                        self.fixture.directory.shared.learnt.lock().unpoisoned().clear();
                        let anew = self.fixture.run(&subject, &request, &controls);
                        for found in [learnt, anew] {
                            match (found, &expected) {
                                (Ok(found), Some(expected)) => {
                                    let mut dns: Vec<String> =
                                        found.entries.into_iter().map(|(dn, _)| dn).collect();
                                    dns.sort();
                                    assert_eq!(&dns, expected, "{filter} {scope:?} {base}");
                                }
                                (Err(failure), None) => {
                                    assert_eq!(failure.code, ResultCode::NoSuchObject);
                                }
                                (found, expected) => {
                                    panic!("{filter} {scope:?} {base}: {found:?}, not {expected:?}")
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, max_shrink_iters: 200, ..Default::default() })]

    #[test]
    fn names_bases_and_scopes_are_those_of_the_tree(acts in prop::collection::vec(act(), 1..20)) {
        let mut tree = Tree::new();
        for act in &acts {
            tree.act(act);
            tree.check();
        }
    }
}

/// How a search for all below a base ends, and how many entries it returns.
fn ask(fixture: &Fixture, subject: &Subject, base: &str) -> (ResultCode, usize) {
    let request = SearchRequest { base, ..request("(objectClass=*)") };
    match fixture.run(subject, &request, &RequestControls::default()) {
        Ok(found) => (found.code(), found.entries.len()),
        Err(failure) => (failure.code, 0),
    }
}

#[test]
fn a_base_is_understood_anew_under_another_schema() {
    let fixture = filled();
    let admin = fixture.administrator();
    let (small, large) = (format!("shade=red,{BASE}"), format!("shade=RED,{BASE}"));
    let define = |rule: &str| {
        let definition = format!(
            "( 1.3.6.1.4.1.99999.7 NAME 'shade' EQUALITY {rule} SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )"
        );
        let add = change(ChangeOperation::Add, "attributeTypes", &[&definition]);
        fixture.modify("cn=schema", vec![add]).unwrap();
    };
    let values: [(&str, &[&str]); 3] =
        [("objectClass", &["account", "extensibleObject"]), ("uid", &["x"]), ("shade", &["red"])];
    assert_eq!(ask(&fixture, &admin, &small), (ResultCode::NoSuchObject, 0));
    define("caseExactMatch");
    assert_eq!(ask(&fixture, &admin, &small), (ResultCode::NoSuchObject, 0));
    fixture.add(&small, &values);
    assert_eq!(ask(&fixture, &admin, &small), (ResultCode::Success, 1));
    assert_eq!(ask(&fixture, &admin, &large), (ResultCode::NoSuchObject, 0));
    fixture.delete(&small).unwrap();
    let gone = change(ChangeOperation::Delete, "attributeTypes", &["1.3.6.1.4.1.99999.7"]);
    fixture.modify("cn=schema", vec![gone]).unwrap();
    define("caseIgnoreMatch");
    assert_eq!(ask(&fixture, &admin, &large), (ResultCode::NoSuchObject, 0));
    fixture.add(&small, &values);
    assert_eq!(ask(&fixture, &admin, &large), (ResultCode::Success, 1));
}

#[test]
fn an_entry_that_leaves_the_scope_or_changes_before_a_step_is_not_returned() {
    let fixture = filled();
    let (admin, controls) = (fixture.administrator(), RequestControls::default());
    let leave: [&dyn Fn(); 3] = [
        &|| {
            drop(
                fixture
                    .rename(&format!("uid=ada,{PEOPLE}"), "uid=ada", true, Some(GROUPS))
                    .unwrap(),
            )
        },
        &|| {
            let mail = change(ChangeOperation::Replace, "mail", &["other@example.com"]);
            fixture.modify(&format!("uid=alan,{PEOPLE}"), vec![mail]).unwrap();
        },
        &|| drop(fixture.delete(&format!("uid=barbara,{PEOPLE}")).unwrap()),
    ];
    for (uid, leave) in ["ada", "alan", "barbara"].into_iter().zip(leave) {
        let filter = format!("(mail={uid}@example.com)");
        let request = SearchRequest { base: PEOPLE, ..request(&filter) };
        assert_eq!(fixture.search(&request).names(), [uid]);
        let mut search = fixture.directory.search(&admin, &request, &controls, ANNOUNCED).unwrap();
        leave();
        let mut out = Vec::new();
        let step = search.step(&fixture.directory, 7, &mut out, 500);
        assert!(matches!(step, Step::Done(result, _) if result.code == ResultCode::Success));
        assert!(out.is_empty(), "{uid} is returned");
    }
}

#[test]
fn rights_follow_entries_that_move_and_rules_that_change() {
    let rules = ["who = \"users\", rights = [\"read\", \"search\"]"];
    let fixture = filled_with(&Settings { rules: Vec::new(), ..settings() });
    let put = |dn: &str, rules: &[&str]| {
        let rule = change(ChangeOperation::Replace, "keywayAccessRule", rules);
        fixture.modify(dn, vec![rule]).unwrap();
    };
    let ada = fixture.user("ada");
    let sees = |base: &str| ask(&fixture, &ada, base).1;
    put(GROUPS, &rules);
    assert_eq!((sees(GROUPS), sees(PEOPLE)), (4, 0));
    fixture.rename(&format!("uid=kurt,{PEOPLE}"), "uid=kurt", true, Some(GROUPS)).unwrap();
    assert_eq!((sees(GROUPS), sees(PEOPLE)), (5, 0));
    fixture.rename(&format!("cn=all,{GROUPS}"), "cn=all", true, Some(PEOPLE)).unwrap();
    assert_eq!((sees(GROUPS), sees(PEOPLE)), (4, 0));
    put(PEOPLE, &rules);
    assert_eq!((sees(GROUPS), sees(PEOPLE)), (4, 15));
    put(GROUPS, &[]);
    assert_eq!((sees(GROUPS), sees(PEOPLE)), (0, 15));
    fixture.rename(PEOPLE, "ou=humans", true, None).unwrap();
    assert_eq!(ask(&fixture, &ada, PEOPLE), (ResultCode::NoSuchObject, 0));
    assert_eq!(sees(&format!("ou=humans,{BASE}")), 15);
}
