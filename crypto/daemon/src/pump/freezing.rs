//! A pump that stops so that another daemon can go on in its place.

use super::command::Position;
use super::pair::Pair;
use super::state::Work;
use rustix::event::epoll::{self, EventFlags};

impl Work {
    /// Finishes what was taken, says how far it is, and waits for another command.
    pub fn finish_frozen(&mut self) {
        self.submit();
        self.collect();
        self.wake_clients();
        if self.batch.is_empty()
            && self.queue.in_flight() == 0
            && let Some(tell) = self.frozen.as_mut().and_then(Option::take)
        {
            let position = |(_, pair): (usize, &Pair)| {
                let client = self.clients.get(pair.client)?.number;
                let (taken, answered) = pair.end.positions();
                Some(Position { client, queue: pair.number, taken, answered })
            };
            let positions = self.pairs.iter().filter_map(position).collect();
            // From now on another daemon may be waiting for the clients' bells.
            for (_, pair) in self.pairs.iter() {
                let _ = epoll::delete(&self.epoll, &pair.bell);
            }
            // Who asked may have given up, and then says so.
            let _ = tell.send(positions);
        }
        self.sleep();
    }

    /// Listens to the clients again, who may have rung meanwhile.
    pub fn thaw(&mut self) {
        self.frozen = None;
        for (index, pair) in self.pairs.iter_mut() {
            let _ = epoll::add(&self.epoll, &pair.bell, pair.event(index), EventFlags::IN);
            pair.idle_since = None;
            if pair.parked {
                pair.parked = false;
                self.active.push(index);
            }
        }
    }
}
