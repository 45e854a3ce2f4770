//! Sleep: of clients that wait for answers, of pairs in which nothing comes, of the pump itself.

use super::command::add;
use super::pair::RUNG;
use super::state::{MAILBOX, PumpState};
use keyway_ring::Armed;
use rustix::event::epoll::{self, EventFlags};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl PumpState {
    /// Wakes clients that sleep over answers.
    pub fn wake_clients(&mut self) {
        while let Some(index) = self.answered.pop() {
            let Some(pair) = self.pairs.get_mut(index) else { continue };
            pair.answered = false;
            if pair.end.wake() {
                self.meters.wakeups.increment();
                if let Some(client) = self.clients.get(pair.client) {
                    add(&client.usage.wakeups, 1);
                }
            }
        }
    }

    /// Parks pairs in which nothing was found for as long as a wake-up takes.
    pub fn park_the_idle(&mut self) {
        let now = Instant::now();
        let (pairs, spin) = (&mut self.pairs, self.spin);
        self.active.retain(|index| {
            let Some(pair) = pairs.get_mut(*index) else { return false };
            let since = *pair.idle_since.get_or_insert(now);
            if now.duration_since(since) < spin {
                return true;
            }
            let Some(armed) = pair.end.armed() else { return false };
            armed.set();
            // Not one that came meanwhile. One with all its requests in flight is looked at when
            // some are done.
            let came = pair.end.is_ready() && pair.in_flight < pair.entries;
            if came {
                armed.clear();
                pair.idle_since = None;
            }
            pair.parked = !came;
            came
        });
        if self.first >= self.active.len() {
            self.first = 0;
        }
    }

    /// Sleeps until a client rings, slow work is done, or a command comes.
    pub fn sleep(&mut self) {
        let asleep = Armed(&self.mailbox.asleep);
        asleep.set();
        let found = self.queue.arm();
        let nothing = !found
            && !self.mailbox.has_finished()
            && !self.mailbox.any.load(Ordering::Acquire)
            && !self.mailbox.ended.load(Ordering::Acquire);
        if nothing {
            self.meters.sleeps.increment();
            self.look(true);
        }
        Armed(&self.mailbox.asleep).clear();
        self.collect();
        self.wake_clients();
    }

    /// Looks after parked clients that have rung, and waits for one if it is told to.
    pub fn look(&mut self, wait: bool) {
        let timeout = match (wait, self.muted) {
            (false, _) => Some(Duration::ZERO),
            (true, 0) => None,
            (true, _) => Some(Duration::from_millis(100)),
        };
        let timeout = timeout.map(|time| rustix::time::Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        });
        let mut events = [const { std::mem::MaybeUninit::uninit() }; 64];
        // A signal may have ended it.
        if let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            for event in events {
                match event.data.u64() {
                    MAILBOX => drop(self.mailbox.bell.take()),
                    data => self.rung(data as u32 as usize, (data >> 32) as u32),
                }
            }
        }
        if self.muted > 0 {
            self.unmute();
        }
    }

    fn rung(&mut self, index: usize, generation: u32) {
        let Some(pair) = self.pairs.get_mut(index) else { return };
        if pair.generation != generation {
            return;
        }
        // However often it rang meanwhile: that is what it costs.
        self.meters.doorbells.increment();
        pair.idle_since = None;
        let Some(client) = self.clients.get_mut(pair.client) else { return };
        add(&client.usage.doorbells, 1);
        let now = Instant::now();
        let (since, count) = &mut client.rung;
        if now.duration_since(*since) >= Duration::from_secs(1) {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        if *count > client.limits.doorbells {
            if pair.muted_until.is_none() {
                self.muted += 1;
                let _ =
                    epoll::modify(&self.epoll, &pair.bell, pair.event(index), EventFlags::empty());
            }
            pair.muted_until = Some(*since + Duration::from_secs(1));
            return;
        }
        if let Some(armed) = pair.end.armed() {
            armed.clear();
        }
        if pair.parked {
            pair.parked = false;
            self.active.push(index);
        }
    }

    /// Listens again to those who have been quiet long enough.
    fn unmute(&mut self) {
        let now = Instant::now();
        for (index, pair) in self.pairs.iter_mut() {
            if pair.muted_until.is_some_and(|until| until <= now) {
                pair.muted_until = None;
                self.muted -= 1;
                if pair.parked {
                    // The entry that it rang for is still there.
                    pair.parked = false;
                    self.active.push(index);
                }
                let _ = epoll::modify(&self.epoll, &pair.bell, pair.event(index), RUNG);
            }
        }
    }
}
