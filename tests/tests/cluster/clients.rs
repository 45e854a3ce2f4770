//! Clients that change entries of their own through whichever server they reach, and remember what they were told.

use crate::wire::{Answer, Wire, control};
use keyway_codec::message::{ChangeOperation, ResultCode};
use keyway_tests::dice::Dice;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The control by which an answer says the position of a change.
pub const POSITION: &str = "2.25.15936739705580567830054646219924409936.2.3";
pub const BELOW: &str = "ou=Groups,dc=example,dc=com";
/// A client takes a connection for lost that is silent for so long.
const PATIENCE: Duration = Duration::from_secs(4);
/// Changes of one connection at most.
const CHANGES_MAX: usize = 60;

/// How far a change is known to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was acknowledged, by this epoch, writer and position.
    Done { epoch: u64, writer: String, position: u64 },
    /// It was refused before it was made, or it is not known.
    Unknown,
}

/// A change; each leaves a value of its own in the entry, or takes the entry away.
#[derive(Clone, Debug)]
pub struct Wrote {
    pub entry: String,
    /// The attribute and the value; `None` if it deleted the entry, which had this DN.
    pub value: Option<(&'static str, String)>,
    pub dn: String,
    pub outcome: Outcome,
}

/// All that a client did.
#[derive(Default)]
pub struct History {
    pub wrote: Vec<Wrote>,
    /// Reads of an older state than the connection had written.
    pub stale: Vec<String>,
    /// How many reads were checked, and connections made.
    pub reads: usize,
    pub connections: usize,
    /// Codes and texts of refusals, and how often.
    pub refusals: BTreeMap<String, usize>,
}

/// An entry of a connection's.
struct Own {
    entry: String,
    dn: String,
    /// Values that it was told are there.
    values: Vec<(&'static str, String)>,
    is_deleted: bool,
}

/// A client.
pub struct Client<'a> {
    pub number: usize,
    pub address: &'a str,
    pub password: &'a str,
    pub dice: Dice,
    pub end: &'a AtomicBool,
    entries: usize,
    history: History,
}

impl<'a> Client<'a> {
    pub fn new(
        number: usize,
        address: &'a str,
        password: &'a str,
        seed: u64,
        end: &'a AtomicBool,
    ) -> Client<'a> {
        let dice = Dice::new(seed.wrapping_add(1 + number as u64));
        Client { number, address, password, dice, end, entries: 0, history: History::default() }
    }

    /// Works until it is told to end.
    pub fn run(mut self) -> History {
        while !self.end.load(Ordering::Relaxed) {
            if self.connection().is_err() {
                // A server that is down refuses at once: the machine has better to do than that.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.history
    }

    fn connection(&mut self) -> Result<(), String> {
        let mut wire = Wire::connect(self.address, PATIENCE)?;
        let bound = wire.bind("cn=admin,cn=keyway", self.password)?;
        if bound.code != ResultCode::Success {
            self.refused(&bound);
            return Err("no bind".into());
        }
        self.history.connections += 1;
        let mut all: Vec<Own> = Vec::new();
        for change in 0..1 + self.dice.below(CHANGES_MAX) {
            if self.end.load(Ordering::Relaxed) {
                break;
            }
            let live: Vec<usize> = (0..all.len()).filter(|at| !all[*at].is_deleted).collect();
            let (kind, at) = match live.is_empty() {
                true => (0, 0),
                false => (self.dice.below(10), *self.dice.one(&live)),
            };
            let done = match kind {
                0..3 => {
                    all.push(self.new_entry());
                    let own = all.last_mut().unwrap();
                    self.add(&mut wire, own)
                }
                3..7 => self.modify(&mut wire, &mut all[at], change),
                7..9 => self.rename(&mut wire, &mut all[at], change),
                _ => self.delete(&mut wire, &mut all[at]),
            }?;
            if !done {
                // It may have been made, or be on its way still.
                return Ok(());
            }
            let own = &all[self.dice.below(all.len())];
            self.check(&mut wire, own)?;
        }
        Ok(())
    }

    fn new_entry(&mut self) -> Own {
        let entry = format!("c{}e{}", self.number, self.entries);
        self.entries += 1;
        let dn = format!("cn={entry}n,{BELOW}");
        Own { entry, dn, values: Vec::new(), is_deleted: false }
    }

    fn add(&mut self, wire: &mut Wire, own: &mut Own) -> Result<bool, String> {
        let name = format!("{}n", own.entry);
        let value = format!("{}v", own.entry);
        let all: [(&str, &[&str]); 4] = [
            ("objectClass", &["organizationalRole"]),
            ("cn", &[&name]),
            ("l", &[&own.entry]),
            ("description", &[&value]),
        ];
        let added = wire.add(&own.dn, &all, &[control(POSITION, None)]);
        self.note(own, Some(("description", value)), added)
    }

    fn modify(&mut self, wire: &mut Wire, own: &mut Own, change: usize) -> Result<bool, String> {
        let value = format!("{}v{change}", own.entry);
        let changes: [(_, _, &[&str]); 1] = [(ChangeOperation::Add, "description", &[&value])];
        let modified = wire.modify(&own.dn, &changes, &[control(POSITION, None)]);
        self.note(own, Some(("description", value)), modified)
    }

    fn rename(&mut self, wire: &mut Wire, own: &mut Own, change: usize) -> Result<bool, String> {
        let value = format!("{}n{change}", own.entry);
        let renamed =
            wire.rename(&own.dn, &format!("cn={value}"), false, &[control(POSITION, None)]);
        let dn = format!("cn={value},{BELOW}");
        let done = self.note(own, Some(("cn", value)), renamed)?;
        if done {
            own.dn = dn;
        }
        Ok(done)
    }

    fn delete(&mut self, wire: &mut Wire, own: &mut Own) -> Result<bool, String> {
        let deleted = wire.delete(&own.dn, &[control(POSITION, None)]);
        let done = self.note(own, None, deleted)?;
        own.is_deleted = done;
        Ok(done)
    }

    /// Remembers a change; whether it was acknowledged.
    fn note(
        &mut self,
        own: &mut Own,
        value: Option<(&'static str, String)>,
        answer: Result<Answer, String>,
    ) -> Result<bool, String> {
        let place =
            answer.as_ref().ok().filter(|it| it.code == ResultCode::Success).map(|answer| {
                let place = answer.control(POSITION).expect("the position of the change");
                let words: Vec<&str> = place.split(' ').collect();
                let (position, epoch) = (words[0].parse().unwrap(), words[1].parse().unwrap());
                let writer = format!("{:016x}", words[2].parse::<u64>().unwrap());
                Outcome::Done { epoch, writer, position }
            });
        let is_done = place.is_some();
        self.history.wrote.push(Wrote {
            entry: own.entry.clone(),
            value: value.clone(),
            dn: own.dn.clone(),
            outcome: place.unwrap_or(Outcome::Unknown),
        });
        let answer = answer.inspect_err(|why| self.lost(why))?;
        match is_done {
            true => own.values.extend(value),
            false => self.refused(&answer),
        }
        Ok(is_done)
    }

    /// What this connection was told is there it reads, or it gets no answer.
    fn check(&mut self, wire: &mut Wire, own: &Own) -> Result<(), String> {
        let read =
            wire.read(&own.dn, &["cn", "description"], &[]).inspect_err(|why| self.lost(why))?;
        let is_there = match read.code {
            ResultCode::Success => true,
            ResultCode::NoSuchObject => false,
            _ => {
                self.refused(&read);
                return Ok(());
            }
        };
        self.history.reads += 1;
        let missing = own.values.iter().find(|(name, value)| {
            !read.entries.first().is_some_and(|entry| entry.values(name).contains(&&**value))
        });
        if is_there == own.is_deleted || (is_there && missing.is_some()) {
            let (dn, values) = (&own.dn, &own.values);
            self.history
                .stale
                .push(format!("{dn} with {values:?}, deleted: {}: {read:?}", own.is_deleted));
        }
        Ok(())
    }

    fn refused(&mut self, answer: &Answer) {
        self.count(format!("{}: {}", answer.code.name(), answer.text));
    }

    fn lost(&mut self, why: &str) {
        self.count(why.to_owned());
    }

    fn count(&mut self, what: String) {
        *self.history.refusals.entry(what).or_default() += 1;
    }
}
