//! Clients that write all the time, and know what the server has told them.
//!
//! Each has a tree of its own. From the changes that a client has sent follows what its tree may be. A count that all
//! clients share says what was sent, and what acknowledged, before what.

use crate::state::{Entry, State, difference};
use keyway_tests::Server;
use keyway_tests::client::Client;
use keyway_tests::cryptod::eventually;
use keyway_tests::dice::Dice;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

pub const BASE: &str = "dc=example,dc=com";
/// Entries that a client has at least before it deletes one, and at most before it adds one.
const FEW: usize = 8;
const MANY: usize = 24;

/// A change by a client.
#[derive(Clone, Debug)]
pub enum Action {
    Add { dn: String, entry: Entry },
    Replace { dn: String, values: BTreeSet<Vec<u8>> },
    AddValue { dn: String, value: String },
    DeleteValue { dn: String, value: String },
    Rename { dn: String, new_rdn: String, delete_old_rdn: bool, above: String },
    Delete { dn: String },
}

impl Action {
    /// As the feed calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Action::Add { .. } => "add",
            Action::Rename { .. } => "modrdn",
            Action::Delete { .. } => "delete",
            _ => "modify",
        }
    }

    /// The entry's name before it.
    pub fn dn(&self) -> &str {
        let (Action::Add { dn, .. }
        | Action::Replace { dn, .. }
        | Action::AddValue { dn, .. }
        | Action::DeleteValue { dn, .. }
        | Action::Rename { dn, .. }
        | Action::Delete { dn }) = self;
        dn
    }

    fn send(&self, client: &mut Client) -> Result<(), String> {
        let text = |value: &Vec<u8>| String::from_utf8(value.clone()).unwrap();
        match self {
            Action::Add { dn, entry } => {
                let all: Vec<(&String, Vec<String>)> =
                    entry.iter().map(|(name, of)| (name, of.iter().map(text).collect())).collect();
                let all: Vec<(&str, Vec<&str>)> = all
                    .iter()
                    .map(|(name, of)| (name.as_str(), of.iter().map(String::as_str).collect()))
                    .collect();
                let all: Vec<_> = all.iter().map(|(name, of)| (*name, of.as_slice())).collect();
                client.add(dn, &all)
            }
            Action::Replace { dn, values } => {
                let values: Vec<String> = values.iter().map(text).collect();
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                client.replace_values(dn, "description", &values)
            }
            Action::AddValue { dn, value } => client.add_value(dn, "serialNumber", value),
            Action::DeleteValue { dn, value } => client.delete_value(dn, "serialNumber", value),
            Action::Rename { dn, new_rdn, delete_old_rdn, above } => {
                let moved = (!dn.ends_with(above)).then_some(above.as_str());
                client.rename(dn, new_rdn, *delete_old_rdn, moved)
            }
            Action::Delete { dn } => client.delete(dn),
        }
    }
}

fn values(of: &[&str]) -> BTreeSet<Vec<u8>> {
    of.iter().map(|value| value.as_bytes().to_vec()).collect()
}

/// The tree of a client.
#[derive(Clone)]
struct Tree {
    top: String,
    entries: State,
    /// The entry that has the newest mark. It is in no deletion, so that no state comes twice.
    newest: String,
}

impl Tree {
    /// As it is before the first change.
    fn new(number: usize) -> Tree {
        let top = format!("ou=w{number},{BASE}");
        let unit = |name: String| {
            let name = values(&[&name]);
            let class = values(&["organizationalUnit", "top"]);
            Entry::from([("objectClass".to_owned(), class), ("ou".to_owned(), name)])
        };
        let below = ["a", "b"].map(|name| (format!("ou={name},{top}"), unit(name.to_owned())));
        let mut entries = State::from(below);
        entries.insert(top.clone(), unit(format!("w{number}")));
        Tree { top, entries, newest: String::new() }
    }

    fn has(&self, dn: &str) -> bool {
        dn.strip_suffix(&self.top).is_some_and(|rest| rest.is_empty() || rest.ends_with(','))
    }

    /// A change that can be made. What it adds has a mark that no other has.
    fn next(&self, dice: &mut Dice, mark: u64) -> Action {
        let devices: Vec<&String> =
            self.entries.keys().filter(|dn| dn.starts_with("cn=")).collect();
        let older: Vec<&String> =
            devices.iter().filter(|dn| **dn != &self.newest).copied().collect();
        let above = |dice: &mut Dice| format!("ou={},{}", dice.one(&["a", "b"]), self.top);
        let kind = match devices.len() {
            0..FEW => 0,
            FEW..MANY => dice.below(6),
            _ => 1 + dice.below(5),
        };
        if kind == 0 {
            let name = format!("e{mark}");
            let classes = values(&["device", "top"]);
            let entry = [("objectClass", classes), ("cn", values(&[&name]))];
            let mut entry: Entry = entry.map(|(name, of)| (name.to_owned(), of)).into();
            if dice.below(2) == 0 {
                entry.insert("description".to_owned(), texts(dice, mark));
            }
            return Action::Add { dn: format!("cn={name},{}", above(dice)), entry };
        }
        let old: &String = older[dice.below(older.len())];
        let serials = self.entries[old].get("serialNumber");
        let dn = devices[dice.below(devices.len())].clone();
        match (kind, serials) {
            (1, _) => Action::Replace { dn, values: texts(dice, mark) },
            (2, _) => Action::AddValue { dn, value: mark.to_string() },
            (3, Some(serials)) => {
                let serials: Vec<_> = serials.iter().collect();
                let value = String::from_utf8((*dice.one(&serials)).clone()).unwrap();
                Action::DeleteValue { dn: old.clone(), value }
            }
            (4, _) => Action::Delete { dn: old.clone() },
            _ => Action::Rename {
                dn,
                new_rdn: format!("cn=r{mark}"),
                delete_old_rdn: dice.below(3) > 0,
                above: above(dice),
            },
        }
    }

    fn make(&mut self, action: &Action) {
        let entries = &mut self.entries;
        let entry = |entries: &mut State, dn: &str| entries.remove(dn).expect("it is there");
        match action {
            Action::Add { dn, entry } => {
                entries.insert(dn.clone(), entry.clone());
                self.newest.clone_from(dn);
            }
            Action::Replace { dn, values } => {
                let entry = entries.get_mut(dn).expect("it is there");
                entry.insert("description".to_owned(), values.clone());
                self.newest.clone_from(dn);
            }
            Action::AddValue { dn, value } => {
                let entry = entries.get_mut(dn).expect("it is there");
                let serials = entry.entry("serialNumber".to_owned()).or_default();
                serials.insert(value.clone().into_bytes());
                self.newest.clone_from(dn);
            }
            Action::DeleteValue { dn, value } => {
                let entry = entries.get_mut(dn).expect("it is there");
                let serials = entry.get_mut("serialNumber").expect("they are there");
                serials.remove(value.as_bytes());
                if serials.is_empty() {
                    entry.remove("serialNumber");
                }
            }
            Action::Rename { dn, new_rdn, delete_old_rdn, above } => {
                let mut entry = entry(entries, dn);
                let value = |rdn: &str| rdn.as_bytes()["cn=".len()..].to_vec();
                let names = entry.get_mut("cn").expect("it has a name");
                let (old, _) = dn.split_once(',').expect("an entry above it");
                if *delete_old_rdn {
                    names.remove(&value(old));
                }
                names.insert(value(new_rdn));
                self.newest = format!("{new_rdn},{above}");
                entries.insert(self.newest.clone(), entry);
            }
            Action::Delete { dn } => drop(entry(entries, dn)),
        }
    }
}

/// Values of any kind and length, one with the mark.
fn texts(dice: &mut Dice, mark: u64) -> BTreeSet<Vec<u8>> {
    let other = match dice.below(4) {
        0 => " begins and ends with a space ".to_owned(),
        1 => "Größe: 7 µm\nand a second line".to_owned(),
        2 => "x".repeat(1 + dice.below(3_000)),
        _ => "short".to_owned(),
    };
    values(&[&format!("mark {mark}"), &other])
}

/// A change, with the counts just before it was sent and just after it was acknowledged.
pub struct Change {
    pub sent: u64,
    pub acknowledged: u64,
    pub action: Action,
}

/// All that a client did, in order.
pub struct Journal {
    first: Tree,
    pub changes: Vec<Change>,
}

/// The count that all share, and how far each is.
pub struct Count {
    next: AtomicU64,
    made: Vec<AtomicUsize>,
    is_over: AtomicBool,
}

impl Count {
    /// The next number.
    pub fn tick(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// Waits until every client has made so many more changes.
    pub fn advance(&self, changes: usize) {
        let made = || self.made.iter().map(|made| made.load(Ordering::SeqCst));
        let wanted: Vec<usize> = made().map(|made| made + changes).collect();
        eventually("all clients write", || {
            made().zip(&wanted).all(|(made, wanted)| made >= *wanted)
        });
    }
}

/// Ends the clients, also where the rest fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A client that is the administrator.
pub fn administrator(server: &Server) -> Client {
    let mut client = Client::connect(server.address().parse().unwrap()).unwrap();
    client.bind(server.administrator(), &server.password()).unwrap();
    client
}

/// Makes the trees of so many clients.
pub fn plant(server: &Server, clients: usize) {
    let mut client = administrator(server);
    for number in 0..clients {
        let mut entries: Vec<_> = Tree::new(number).entries.into_iter().collect();
        entries.sort_by_key(|(dn, _)| dn.len());
        for (dn, entry) in entries {
            Action::Add { dn, entry }.send(&mut client).unwrap();
        }
    }
}

/// Does something while clients write, and waits until all their changes are acknowledged.
pub fn beside_writers<R>(
    server: &Server,
    clients: usize,
    seed: u64,
    meanwhile: impl FnOnce(&Count) -> R,
) -> (Vec<Journal>, R) {
    let count = Count {
        next: AtomicU64::new(1),
        made: (0..clients).map(|_| AtomicUsize::new(0)).collect(),
        is_over: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let write = |number: usize| {
            let (mut client, count) = (administrator(server), &count);
            move || {
                let first = Tree::new(number);
                let (mut tree, mut changes) = (first.clone(), Vec::new());
                let mut dice = Dice::new(seed ^ (number as u64) << 48);
                while !count.is_over.load(Ordering::SeqCst) {
                    let sent = count.tick();
                    let action = tree.next(&mut dice, sent);
                    action.send(&mut client).unwrap_or_else(|why| panic!("{action:?}: {why}"));
                    let acknowledged = count.tick();
                    tree.make(&action);
                    changes.push(Change { sent, acknowledged, action });
                    count.made[number].fetch_add(1, Ordering::SeqCst);
                }
                Journal { first, changes }
            }
        };
        let running: Vec<_> = (0..clients).map(|number| scope.spawn(write(number))).collect();
        let ends = Ends(&count.is_over);
        let came = meanwhile(&count);
        drop(ends);
        (running.into_iter().map(|one| one.join().unwrap()).collect(), came)
    })
}

/// The trees of clients, made anew of their journals, ever further on.
pub struct Replay<'j> {
    journals: &'j [Journal],
    trees: Vec<(usize, Tree)>,
}

impl<'j> Replay<'j> {
    pub fn new(journals: &'j [Journal]) -> Replay<'j> {
        let trees = journals.iter().map(|journal| (0, journal.first.clone())).collect();
        Replay { journals, trees }
    }

    /// The clients to whose trees an entry belongs.
    pub fn owner(&self, dn: &str) -> Option<usize> {
        self.journals.iter().position(|journal| journal.first.has(dn))
    }

    /// The entries that belong to no client.
    pub fn others(&self, state: &State) -> State {
        let others = state.iter().filter(|(dn, _)| self.owner(dn).is_none());
        others.map(|(dn, entry)| (dn.clone(), entry.clone())).collect()
    }

    fn part(&self, number: usize, state: &State) -> State {
        let its = state.iter().filter(|(dn, _)| self.journals[number].first.has(dn));
        its.map(|(dn, entry)| (dn.clone(), entry.clone())).collect()
    }

    /// Goes to where a client had made so many changes, and gives its entries there.
    fn go(&mut self, number: usize, changes: usize) -> &Tree {
        let (made, tree) = &mut self.trees[number];
        if *made > changes {
            (*made, *tree) = (0, self.journals[number].first.clone());
        }
        for change in &self.journals[number].changes[*made..changes] {
            tree.make(&change.action);
        }
        *made = changes;
        tree
    }

    /// Asserts that a state has exactly so many changes of each client.
    pub fn assert_at(&mut self, state: &State, changes: &[usize]) {
        for (number, changes) in changes.iter().enumerate() {
            let found = self.part(number, state);
            let wanted = &self.go(number, *changes).entries;
            assert!(
                found == *wanted,
                "client {number} after {changes} changes: {}",
                difference(wanted, &found)
            );
        }
    }

    /// Asserts that a state is that of one moment between two counts: how many changes of each client it has.
    pub fn assert_one_moment(&mut self, state: &State, began: u64, ended: u64) -> Vec<usize> {
        let journals = self.journals;
        let cut: Vec<usize> = (0..journals.len())
            .map(|number| {
                let changes = &journals[number].changes;
                let least = changes.partition_point(|change| change.acknowledged < began);
                let most = changes.partition_point(|change| change.sent < ended);
                let found = self.part(number, state);
                let mut tree = self.go(number, least).clone();
                let mut next = least;
                while tree.entries != found {
                    assert!(
                        next < most,
                        "client {number} never had such entries after {least} to {most} changes: {}",
                        difference(&tree.entries, &found)
                    );
                    tree.make(&changes[next].action);
                    next += 1;
                }
                next
            })
            .collect();
        let each = || journals.iter().zip(&cut);
        let included = each().filter_map(|(journal, cut)| journal.changes[..*cut].last());
        let excluded = each().filter_map(|(journal, cut)| journal.changes.get(*cut));
        let last = included.max_by_key(|change| change.sent);
        let first = excluded.min_by_key(|change| change.acknowledged);
        if let (Some(last), Some(first)) = (last, first) {
            assert!(
                last.sent < first.acknowledged,
                "{:?} was sent at {}, after {:?} had been acknowledged at {}, which is missing",
                last.action,
                last.sent,
                first.action,
                first.acknowledged
            );
        }
        cut
    }
}
