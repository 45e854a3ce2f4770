//! The connections and virtual users of a thread, and their being opened before a run.

use super::state::{Connection, State, VirtualUser};
use super::{Worker, WorkerMessage};
use crate::limits::CONNECT_MAX;
use crate::scenario::Lifetime;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;

/// Connections that are being opened at a time, before a run, on one thread.
const OPENING_AT_ONCE: usize = 64;
/// How long is waited for them before the next look, in nanoseconds.
const LOOK_EVERY_NS: u64 = 10_000_000;

impl Worker<'_> {
    /// This thread's share of all connections, with their virtual users.
    pub(super) fn set_up(&mut self, stripe: usize, stripes: usize) {
        let mut number = 0;
        for (group, settings) in self.scenario.groups.iter().enumerate() {
            let needs_second = self.scenario.needs_second(group);
            for _ in 0..settings.connections {
                // All threads of all agents count alike, so that each connection is one's without a word.
                number += 1;
                if number % stripes != stripe {
                    continue;
                }
                let server = number / stripes % self.shared.servers.len();
                let first = self.connections.len();
                let virtual_users =
                    self.virtual_users.len()..self.virtual_users.len() + settings.in_flight;
                let connection = Connection::new(group, server, false, virtual_users.clone());
                self.connections.push(connection);
                for (slot, user) in virtual_users.enumerate() {
                    let mut state = VirtualUser::new(self.scenario, group, first, slot as u32);
                    if needs_second {
                        state.second = Some(self.connections.len());
                        let second = Connection::new(group, server, true, user..user + 1);
                        self.connections.push(second);
                    }
                    self.virtual_users.push(state);
                }
            }
        }
        // A round over all connections before the second virtual user of one.
        let slots = self.scenario.groups.iter().map(|group| group.in_flight).max().unwrap_or(1);
        for slot in 0..slots {
            for connection in self.connections.iter().filter(|connection| !connection.is_second) {
                if slot < connection.virtual_users.len() {
                    self.free[connection.group].push_back(connection.virtual_users.start + slot);
                }
            }
        }
    }

    /// Opens what is to be open before the first start, and says how many are.
    pub(super) fn prepare(&mut self) -> io::Result<()> {
        let scenario = self.scenario;
        let once = |group: usize| scenario.groups[group].lifetime == Lifetime::Sequences(1);
        let mut seen = vec![false; scenario.groups.len()];
        let mut wanted = VecDeque::new();
        for (index, connection) in self.connections.iter().enumerate() {
            // A connection that serves one sequence is opened later; the first is opened now to see that
            // it can be.
            let is_first = !std::mem::replace(&mut seen[connection.group], true);
            if !once(connection.group) || is_first {
                wanted.push_back(index);
            }
        }
        // One account is tried once before it is used many times.
        let binds = |index: &usize| {
            let connection = &self.connections[*index];
            !connection.is_second && scenario.groups[connection.group].has_account()
        };
        wanted.make_contiguous().sort_by_key(|index| !binds(index));
        let all: Vec<usize> = wanted.iter().copied().collect();
        let mut opening: Vec<usize> = Vec::new();
        let until = self.now() + CONNECT_MAX.as_nanos() as u64;
        loop {
            let now = self.now();
            let at_once = match self.shared.may_bind.load(Ordering::Relaxed) {
                true => OPENING_AT_ONCE,
                false => usize::from(self.thread == 0),
            };
            while opening.len() < at_once
                && let Some(index) = wanted.pop_front()
            {
                self.open(index, now);
                opening.push(index);
            }
            self.look_for_timeouts(now);
            self.flush_all(now);
            opening.retain(|index| self.connections[*index].is_opening());
            if opening.is_empty() && self.thread == 0 {
                self.shared.may_bind.store(true, Ordering::Relaxed);
            }
            let is_over = opening.is_empty() && wanted.is_empty();
            if is_over || now > until || self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            if opening.len() < at_once && !wanted.is_empty() {
                continue;
            }
            self.wait(now, now + LOOK_EVERY_NS)?;
        }
        let is_open = |index: &&usize| self.connections[**index].state == State::Ready;
        let open = all.iter().filter(is_open).count();
        let why_not = self.last_error.take();
        let said = WorkerMessage::Ready { open, wanted: all.len(), why_not };
        let _ = self.sender.send(said);
        let now = self.now();
        for index in all {
            if once(self.connections[index].group) {
                self.retire(index, now);
            }
        }
        Ok(())
    }
}
