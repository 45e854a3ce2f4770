//! What goes wrong, and what persons do meanwhile.

use std::collections::HashSet;
use std::time::Duration;

use super::etcd::Etcd;
use super::event::Event;
use super::options::Fault;
use super::process::Server;
use super::world::{ETCD, World};
use crate::message::History;

impl World {
    /// One of the faults of this run, and the next one later.
    pub fn fault(&mut self) -> Result<(), String> {
        if self.calm {
            return Ok(());
        }
        let pause = self.random.between(200, 5000);
        self.after(pause, Event::Fault);
        if self.random.chance(30) {
            let at = self.random.index(self.servers.len());
            self.servers[at].copy = Some(self.servers[at].store.clone());
            let snapshot = self.etcd.clone();
            if let Some(etcd) = &mut self.etcd {
                etcd.snapshot = snapshot.map(|it| Box::new(Etcd { snapshot: None, ..it }));
            }
        }
        let fault = self.options.faults[self.random.index(self.options.faults.len())];
        let at = self.random.index(self.servers.len());
        self.checker.report.faults += 1;
        self.note(|| format!("{fault:?} (server {at})"));
        let long = match self.random.chance(30) {
            true => self.random.between(5_000, 30_000),
            false => self.random.between(50, 5_000),
        };
        match fault {
            Fault::Kill | Fault::Power => {
                self.kill(at, fault == Fault::Power);
                if fault == Fault::Power && self.random.chance(20) {
                    for other in 0..self.servers.len() {
                        self.kill(other, true);
                        self.after(long, Event::Start { server: other });
                    }
                }
                self.after(long, Event::Start { server: at });
            }
            Fault::Pause => self.pause(at, long),
            Fault::Cut => {
                let with_etcd = self.options.etcd && self.random.chance(40);
                let other = if with_etcd { ETCD } else { self.random.index(self.servers.len()) };
                self.cut(at, other, long);
            }
            Fault::Isolate => {
                (0..self.servers.len()).for_each(|other| self.cut(at, other, long));
                if self.options.etcd && self.random.chance(50) {
                    self.cut(at, ETCD, long);
                }
            }
            Fault::SlowDisk => self.servers[at].slow_until = self.now + long,
            Fault::Clock => self.servers[at].clock += long,
            // With etcd one server alone: its tail makes good what one lacks, from a base of another.
            Fault::OldCopy if self.options.etcd || self.are_only_old_copies() => {
                self.old_copy(0, fault, long)
            }
            Fault::OldCopy | Fault::Restore => self.old_copy(at, fault, long),
            Fault::Twin => self.twin(at),
            Fault::Promote => {
                let all = 0..self.servers.len();
                let up = all.filter(|at| self.servers[*at].process.is_some());
                let furthest = up.max_by_key(|at| {
                    let store = &self.servers[*at].store;
                    (store.reign(), store.position())
                });
                furthest.into_iter().try_for_each(|at| self.promote(at))?;
            }
            Fault::PromoteAny => self.promote(at)?,
            Fault::PromoteAsked => self.promote_several(at),
            Fault::Rejoin => self.rejoin(at),
            Fault::Trim => {
                if let Some(process) = &mut self.servers[at].process {
                    process.next_trim = Duration::ZERO;
                }
            }
            Fault::EtcdAway => self.etcd_away(long),
            Fault::EtcdRestored => self.etcd_restored(),
        }
        Ok(())
    }

    fn pause(&mut self, at: usize, long: Duration) {
        // Events wait for the end of a pause, which comes no earlier for another one.
        let now = self.now;
        let until = self.servers[at].paused.unwrap_or_default().max(now + long);
        self.servers[at].paused = Some(until);
        self.checker.stands_still(at, now, until);
    }

    /// A person promotes a member, and other persons others at the same moment, perhaps.
    fn promote_several(&mut self, at: usize) {
        for other in 0..self.servers.len() {
            if other == at || self.random.chance(25) {
                self.promote_asking(other);
            }
        }
    }

    fn cut(&mut self, one: usize, other: usize, long: Duration) {
        let (one, other) = (one.min(other), one.max(other));
        if one != other && self.cuts.insert((one, other)) {
            self.after(long, Event::Mend { one, other });
        }
    }

    /// How long a member may be silent before rows that it needs are removed.
    pub fn young(&self) -> Duration {
        match self.has(Fault::Trim) {
            true => Duration::from_secs(3),
            false => Duration::from_secs(600),
        }
    }

    fn old_copy(&mut self, at: usize, fault: Fault, long: Duration) {
        let Some(mut copy) = self.servers[at].copy.clone() else { return };
        if self.servers[at].is_ended {
            return;
        }
        self.kill(at, false);
        let destroyed = self.servers[at].store.only_here(&copy);
        let others = self.servers.iter().enumerate().filter(|(other, _)| *other != at);
        let others: HashSet<u64> =
            others.flat_map(|(_, other)| &other.store.rows).filter_map(|row| row.write()).collect();
        let gone = destroyed.iter().filter(|write| !others.contains(write));
        self.checker.gone.extend(gone);
        self.checker.destroyed.extend(destroyed);
        let server = &mut self.servers[at];
        let member = server.member;
        if fault == Fault::Restore {
            copy.history = History([self.random.next() as u8; 16]);
        }
        server.durable = copy.position();
        server.store = copy;
        server.heard = None;
        if !self.are_only_old_copies() {
            self.checker.tainted.insert(member);
        }
        self.after(long, Event::Start { server: at });
    }

    /// A copy of a folder is started on another machine, perhaps under the same name.
    fn twin(&mut self, at: usize) {
        if self.servers.len() > self.options.members || self.options.etcd {
            return;
        }
        let member = self.servers[at].member;
        if !self.are_only_twins() {
            self.checker.tainted.insert(member);
        }
        let mut twin = Server::new(member, self.servers[at].store.clone());
        twin.heard = self.servers[at].heard;
        let number = self.servers.len();
        self.servers.push(twin);
        if self.random.chance(50) {
            self.urls.insert(super::world::url(at), number);
        }
        self.start(number);
    }

    /// Whether nothing but copies goes wrong: then a copy must notice that it is one before it writes.
    pub fn are_only_twins(&self) -> bool {
        self.options.faults == [Fault::Twin]
    }

    /// Whether nothing but older copies of the writer's folder goes wrong: then it must notice that it lacks changes.
    fn are_only_old_copies(&self) -> bool {
        self.options.faults == [Fault::OldCopy]
    }

    fn etcd_away(&mut self, long: Duration) {
        if let Some(etcd) = &mut self.etcd {
            etcd.is_up = false;
        }
        self.after(long, Event::EtcdBack);
    }

    /// etcd goes back to a snapshot; it may have the identifier that it had.
    fn etcd_restored(&mut self) {
        // Under its old identifier only members that were in touch all the time can notice it for certain.
        let hides =
            [Fault::Cut, Fault::Isolate, Fault::Pause, Fault::Kill, Fault::EtcdAway, Fault::Clock];
        let is_noticed = !hides.iter().any(|fault| self.has(*fault));
        let number = (!is_noticed || self.random.chance(50)).then(|| self.random.next());
        let Some(etcd) = &mut self.etcd else { return };
        let Some(snapshot) = etcd.snapshot.clone() else { return };
        let store = number.unwrap_or(etcd.store);
        let end = |etcd: &Etcd| etcd.rows.last_key_value().map_or(0, |(position, _)| *position);
        let ends = (end(etcd), end(&snapshot));
        *etcd = Etcd { store, is_up: true, ..*snapshot };
        self.note(|| {
            format!("etcd goes back from position {} to {}, store {store}", ends.0, ends.1)
        });
    }
}
