//! What the control thread has asked for, carried out between two turns.

use super::client::{Client, Entry};
use super::command::{ClientId, Command};
use super::pair::{Pair, RUNG, Taken};
use super::state::Work;
use crate::keys::KeySession;
use keyway_ring::descriptor::Descriptor;
use rustix::event::epoll;
use std::sync::atomic::Ordering;

impl Work {
    /// Carries out all of it.
    pub fn obey(&mut self) {
        self.mailbox.any.store(false, Ordering::Release);
        while let Ok(command) = self.commands.try_recv() {
            self.carry_out(command);
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Admit { client: number, owner, limits, weight, usage } => {
                let client = Client::new(number, owner, limits, weight, usage);
                self.numbers.insert(number, self.clients.put(client));
            }
            Command::Remove(number) => self.remove(number),
            Command::Pair { client, number, end, bell, entries } => {
                let Some((client, _)) = self.client(client) else { return };
                self.generations = self.generations.wrapping_add(1);
                self.add_pair(Pair {
                    client,
                    number,
                    end,
                    bell,
                    entries,
                    in_flight: 0,
                    idle_since: None,
                    parked: false,
                    answered: false,
                    generation: self.generations,
                    muted_until: None,
                });
            }
            Command::ClosePair(client, number) => {
                let Some((client, _)) = self.client(client) else { return };
                self.drop_pairs(|pair| pair.client == client && pair.number == number);
            }
            Command::Session { client, handle, session, key } => {
                let Some((_, client)) = self.client(client) else { return };
                let makes_nonces = key.as_ref().is_some_and(KeySession::makes_nonces);
                let (generation, algorithm) = (handle.generation, session.algorithm());
                let spare = Vec::new();
                let entry = Entry { generation, session, algorithm, key, makes_nonces, spare };
                put_at(&mut client.sessions, handle.index.into(), entry);
            }
            Command::CloseSession(client, handle) => {
                let Some((_, client)) = self.client(client) else { return };
                let is_it = |entry: &mut Entry| entry.generation == handle.generation;
                take_if(&mut client.sessions, handle.index.into(), is_it);
            }
            Command::Region { client, handle, memory } => {
                let Some((_, client)) = self.client(client) else { return };
                put_at(&mut client.regions, handle.index.into(), (handle.generation, memory));
            }
            Command::Forget(client, handle) => {
                let Some((_, client)) = self.client(client) else { return };
                let is_it = |(generation, _): &mut (u16, _)| *generation == handle.generation;
                take_if(&mut client.regions, handle.index.into(), is_it);
            }
            Command::Again { client, number, descriptor } => self.again(client, number, descriptor),
            Command::Freeze(tell) => self.frozen = Some(Some(tell)),
            Command::Thaw => self.thaw(),
        }
    }

    fn client(&mut self, number: ClientId) -> Option<(usize, &mut Client)> {
        let slot = *self.numbers.get(&number)?;
        Some((slot, self.clients.get_mut(slot)?))
    }

    /// Counts a request as taken; it is begun with those of the next turn.
    fn again(&mut self, client: ClientId, number: u32, descriptor: Descriptor) {
        let Some((client, _)) = self.client(client) else { return };
        let is_it = |(_, pair): &(usize, &Pair)| pair.client == client && pair.number == number;
        let Some(index) = self.pairs.iter().find(is_it).map(|(index, _)| index) else { return };
        if let Some(pair) = self.pairs.get_mut(index)
            && pair.in_flight < pair.entries
        {
            pair.in_flight += 1;
            self.taken.push(Taken { pair: index, generation: pair.generation, descriptor });
        }
    }

    fn remove(&mut self, number: ClientId) {
        let Some(client) = self.numbers.remove(&number) else { return };
        self.drop_pairs(|pair| pair.client == client);
        self.clients.take(client);
    }

    fn add_pair(&mut self, pair: Pair) {
        // Another daemon may have slept before.
        if let Some(armed) = pair.end.armed() {
            armed.clear();
        }
        let index = self.pairs.put(pair);
        if self.frozen.is_none()
            && let Some(pair) = self.pairs.get(index)
        {
            let _ = epoll::add(&self.epoll, &pair.bell, pair.event(index), RUNG);
        }
        self.active.push(index);
    }

    fn drop_pairs(&mut self, which: impl Fn(&Pair) -> bool) {
        let which = |(index, pair)| which(pair).then_some(index);
        let dropped: Vec<usize> = self.pairs.iter().filter_map(which).collect();
        for index in dropped {
            let Some(pair) = self.pairs.take(index) else { continue };
            let _ = epoll::delete(&self.epoll, &pair.bell);
            self.muted -= usize::from(pair.muted_until.is_some());
            self.active.retain(|active| *active != index);
            pair.end.close();
        }
    }
}

/// Puts it where the control thread has given it a place.
fn put_at<T>(into: &mut Vec<Option<T>>, index: usize, it: T) {
    if into.len() <= index {
        into.resize_with(index + 1, || None);
    }
    into[index] = Some(it);
}

fn take_if<T>(from: &mut [Option<T>], index: usize, is_it: impl FnOnce(&mut T) -> bool) {
    if let Some(place) = from.get_mut(index) {
        place.take_if(is_it);
    }
}
