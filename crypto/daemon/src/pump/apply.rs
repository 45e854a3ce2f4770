//! Commands of the control thread, applied between two turns.

use super::client::{Client, Entry};
use super::command::{ClientId, Command};
use super::pair::{Pair, RUNG, Taken};
use super::state::PumpState;
use crate::fair;
use crate::keys::KeySession;
use keyway_ring::descriptor::Descriptor;
use rustix::event::epoll;
use std::sync::atomic::Ordering;

impl PumpState {
    /// Applies all commands that wait.
    pub fn apply_commands(&mut self) {
        self.mailbox.any.store(false, Ordering::Release);
        while let Ok(command) = self.commands.try_recv() {
            self.apply(command);
        }
    }

    fn apply(&mut self, command: Command) {
        match command {
            Command::Admit { client: number, owner, limits, weight, usage } => {
                let client = Client::new(number, owner, limits, weight, usage);
                self.numbers.insert(number, self.clients.insert(client));
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
                self.drop_slow(client, |pair| pair.is_none());
            }
            Command::Session { client, handle, session, key, weight } => {
                let Some((_, client)) = self.client(client) else { return };
                let makes_nonces = key.as_ref().is_some_and(KeySession::makes_nonces);
                let (generation, algorithm) = (handle.generation, session.algorithm());
                let entry = Entry {
                    generation,
                    costliest: fair::costliest(session.algorithms()).unwrap_or(algorithm),
                    session,
                    algorithm,
                    key,
                    makes_nonces,
                    weight: weight.max(client.weight),
                    spare: Vec::new(),
                };
                put_at(&mut client.sessions, handle.index.into(), entry);
            }
            Command::CloseSession(client, handle) => {
                let Some((_, client)) = self.client(client) else { return };
                let is_it = |entry: &mut Entry| entry.generation == handle.generation;
                if let Some(entry) = take_if(&mut client.sessions, handle.index.into(), is_it) {
                    client.forget(entry);
                }
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
            Command::Freeze(tell) => {
                self.mailbox.close_memory();
                self.frozen = Some(Some(tell));
            }
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
        let Some((_, large)) = self.clients.get(client).map(|it| it.cost(&descriptor)) else {
            return;
        };
        if let Some(pair) = self.pairs.get_mut(index)
            && pair.in_flight < pair.entries
        {
            pair.in_flight += 1;
            let generation = pair.generation;
            self.taken.push(Taken { pair: index, generation, descriptor, large });
        }
    }

    fn remove(&mut self, number: ClientId) {
        let Some(client) = self.numbers.remove(&number) else { return };
        self.drop_pairs(|pair| pair.client == client);
        self.drop_slow(client, |_| true);
        self.clients.remove(client);
    }

    fn add_pair(&mut self, pair: Pair) {
        // Another daemon may have slept before.
        if let Some(armed) = pair.end.armed() {
            armed.clear();
        }
        let index = self.pairs.insert(pair);
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
            let Some(pair) = self.pairs.remove(index) else { continue };
            let _ = epoll::delete(&self.epoll, &pair.bell);
            self.muted -= usize::from(pair.muted_until.is_some());
            self.active.retain(|active| *active != index);
            pair.end.close();
        }
    }

    /// Drops slow requests of a client that no thread has begun, where `which` says by their pair
    /// that the client waits for them no more.
    fn drop_slow(&mut self, slot: usize, which: impl Fn(Option<&Pair>) -> bool) {
        let Some(client) = self.clients.get(slot) else { return };
        let (pairs, in_flight) = (&self.pairs, &self.in_flight);
        let dropped = self.slow.take_back(client.tag(1), |job| {
            let request = in_flight.get(job.place);
            let pair = request.and_then(|request| {
                pairs.get(request.pair).filter(|pair| pair.generation == request.pair_generation)
            });
            which(pair)
        });
        self.meters.dropped.add(dropped.len() as u64);
        for job in dropped {
            if let Some(request) = self.in_flight.remove(job.place)
                && let Some(client) = self.clients.get_mut(slot)
            {
                client.bytes_in_flight -= request.bytes;
                if let Some(kind) = request.slow {
                    client.slow_in_flight[kind] -= 1;
                }
            }
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

fn take_if<T>(
    from: &mut [Option<T>],
    index: usize,
    is_it: impl FnOnce(&mut T) -> bool,
) -> Option<T> {
    from.get_mut(index)?.take_if(is_it)
}
