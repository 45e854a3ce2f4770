//! A pump that stops so that another daemon can go on in its place.

use super::command::Position;
use super::pair::{Pair, RUNG};
use super::state::PumpState;
use keyway_ring::Armed;
use rustix::event::epoll;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

impl PumpState {
    /// Finishes what was taken, says how far it is, and waits for another command. Slow requests are not
    /// waited for: the other daemon does them again.
    pub fn finish_frozen(&mut self) {
        if self.frozen.as_ref().is_some_and(Option::is_none) {
            return self.wait_for_command();
        }
        self.submit();
        self.collect();
        self.wake_clients();
        if self.batch.is_empty()
            && self.in_flight.iter().all(|(_, request)| request.slow.is_some())
            && let Some(tell) = self.frozen.as_mut().and_then(Option::take)
        {
            let position = |(index, pair): (usize, &Pair)| {
                let client = self.clients.get(pair.client)?.number;
                let (taken, answered) = pair.end.positions();
                let its = self.in_flight.iter().filter(|(_, request)| {
                    request.pair == index && request.pair_generation == pair.generation
                });
                let under_way = its.map(|(_, request)| request.descriptor).collect();
                Some(Position { client, queue: pair.number, taken, answered, under_way })
            };
            let positions = self.pairs.iter().filter_map(position).collect();
            // From now on another daemon may be waiting for the clients' bells.
            for (_, pair) in self.pairs.iter() {
                let _ = epoll::delete(&self.epoll, &pair.bell);
            }
            // The control thread may have given up, and then says so.
            let _ = tell.send(positions);
            return;
        }
        self.sleep();
    }

    /// Sleeps until a command comes or the pump is to end. Slow work that is done meanwhile waits:
    /// an answer may be the other daemon's to give.
    fn wait_for_command(&mut self) {
        let asleep = Armed(&self.mailbox.asleep);
        asleep.set();
        if !self.mailbox.any.load(Ordering::Acquire) && !self.mailbox.ended.load(Ordering::Acquire)
        {
            let mut events = [const { MaybeUninit::uninit() }; 1];
            // A signal may have ended it.
            let _ = epoll::wait(&self.epoll, &mut events, None);
        }
        asleep.clear();
        self.mailbox.bell.take();
    }

    /// Listens again to the clients, which may have rung meanwhile.
    pub fn thaw(&mut self) {
        self.frozen = None;
        self.mailbox.open_memory();
        for (index, pair) in self.pairs.iter_mut() {
            let _ = epoll::add(&self.epoll, &pair.bell, pair.event(index), RUNG);
            pair.idle_since = None;
            if pair.parked {
                pair.parked = false;
                self.active.push(index);
            }
        }
    }
}
