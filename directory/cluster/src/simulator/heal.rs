//! All is mended, persons do what the servers tell them to, and then all must be well.

use std::time::Duration;

use super::event::Event;
use super::store::Store;
use super::world::{World, url};
use crate::role::START_WAIT;

/// How long healing may take.
const LIMIT: Duration = Duration::from_secs(240);

impl World {
    /// Mends everything; then all servers must come to have the same contents.
    pub fn heal(&mut self) -> Result<(), String> {
        self.calm = true;
        self.note(|| "all is mended".into());
        self.cuts.clear();
        if let Some(etcd) = &mut self.etcd {
            etcd.is_up = true;
        }
        self.end_twins();
        for at in 0..self.options.members {
            let server = &mut self.servers[at];
            // One that stands still goes on when it would have: its events wait for it until then.
            server.slow_until = Duration::ZERO;
            if server.process.is_none() {
                self.after(Duration::ZERO, Event::Start { server: at });
            }
        }
        let end = self.now + LIMIT;
        let mut without_writer = Duration::ZERO;
        while self.now < end {
            let pause = Duration::from_secs(2);
            self.run_until(self.now + pause)?;
            if self.is_well() {
                let store = self.servers[0].store.clone();
                for aside in std::mem::take(&mut self.set_aside) {
                    self.checker.rejoined(&aside, &store);
                }
                return self.checker.end(&store, self.options.etcd);
            }
            for at in 0..self.options.members {
                self.rejoin(at);
            }
            without_writer = match self.writer() {
                Some(_) => Duration::ZERO,
                None => without_writer + pause,
            };
            if without_writer > START_WAIT + Duration::from_secs(5) && !self.options.etcd {
                without_writer = Duration::ZERO;
                let furthest = (0..self.options.members).max_by_key(|at| {
                    let store = &self.servers[*at].store;
                    (store.reign(), store.position())
                });
                furthest.into_iter().try_for_each(|at| self.promote(at))?;
            }
        }
        let state = |at: usize| {
            let server = &self.servers[at];
            let process = server.process.as_ref();
            let role = process.map(|process| process.standing.role_name());
            let error = process
                .and_then(|process| process.follower.as_ref()?.last_error().map(str::to_owned));
            format!(
                "{at}: {role:?} {:?} {} {error:?}",
                server.store.reign(),
                server.store.position()
            )
        };
        let states: Vec<_> = (0..self.options.members).map(state).collect();
        Err(format!("not well after {LIMIT:?}: {}", states.join("; ")))
    }

    fn is_well(&mut self) -> bool {
        let writers = (0..self.options.members).filter(|at| self.may_write(*at)).count();
        let first = &self.servers[0].store;
        let all = self.servers.iter().take(self.options.members);
        writers == 1
            && all.clone().all(|server| {
                server.store.place() == first.place() && server.store.sum() == first.sum()
            })
            && all.clone().all(|server| server.store.map == first.map)
    }

    /// The writer of the highest reign.
    fn writer(&mut self) -> Option<usize> {
        let open: Vec<usize> = (0..self.servers.len()).filter(|at| self.may_write(*at)).collect();
        open.into_iter().max_by_key(|at| self.servers[*at].store.reign())
    }

    /// A person lets a member that has stopped take the writer's contents.
    pub fn rejoin(&mut self, at: usize) {
        let follower =
            self.servers[at].process.as_ref().and_then(|process| process.follower.as_ref());
        let Some(stop) = follower.and_then(|follower| follower.stopped().cloned()) else { return };
        let Some(writer) =
            self.writer().filter(|writer| *writer != at && !self.is_cut(at, *writer))
        else {
            return;
        };
        self.note(|| format!("server {at} rejoins server {writer}: {stop}"));
        let store = self.servers[writer].store.clone();
        self.replace(at, store);
    }

    /// A member whose rows are too old takes the contents of another one.
    pub fn take_base(&mut self, at: usize) {
        let others =
            (0..self.servers.len()).filter(|other| *other != at && !self.is_cut(at, *other));
        let up = others.filter(|other| self.servers[*other].process.is_some());
        let Some(from) = up.max_by_key(|other| self.servers[*other].store.position()) else {
            return;
        };
        if self.servers[from].store.position() <= self.servers[at].store.position() {
            return;
        }
        self.note(|| format!("server {at} takes a base from server {from}"));
        let store = self.servers[from].store.clone();
        self.replace(at, store);
    }

    fn replace(&mut self, at: usize, store: Store) {
        self.kill(at, false);
        let server = &mut self.servers[at];
        let old = std::mem::replace(&mut server.store, store);
        server.durable = server.store.position();
        self.checker.rejoined(&old, &self.servers[at].store);
        self.start(at);
    }

    /// Of two that are copies of each other a person ends one.
    fn end_twins(&mut self) {
        for twin in self.options.members..self.servers.len() {
            let member = self.servers[twin].member;
            let original = (0..self.options.members).find(|at| self.servers[*at].member == member);
            let Some(original) = original else { continue };
            self.kill(twin, false);
            if !self.are_only_twins() && self.random.chance(50) {
                self.kill(original, false);
                let store = self.servers[twin].store.clone();
                self.servers[twin].store =
                    std::mem::replace(&mut self.servers[original].store, store);
                self.servers[original].durable = self.servers[original].store.position();
            }
            self.servers[twin].is_ended = true;
            self.set_aside.push(self.servers[twin].store.clone());
            self.urls.insert(url(original), original);
        }
    }
}
