//! The thread itself: turn after turn, and what it does when there is nothing to do.

use super::command::add;
use super::pair::Taken;
use super::state::PumpState;
use crate::limits::{BATCH_MAX, QUANTUM_NS, TURN_NS_MAX};
use keyway_ring::descriptor::{Opcode, Status};
use keyway_wire as wire;
use std::sync::atomic::Ordering;
use std::thread;

/// Work by its [`cost`](crate::fair::cost) after which parked clients are looked after, in
/// nanoseconds.
const LOOK_AFTER_NS: u32 = 20_000;
/// Turns without work after which the clock is looked at, which takes longer than a turn.
const IDLE_TURNS: u32 = 16;
/// About what it takes to answer nothing, in nanoseconds.
const NULL_COST_NS: u32 = 10;

impl PumpState {
    /// Until the control thread ends it.
    pub fn run(&mut self) {
        let mut idle_turns = 0;
        while !self.mailbox.ended.load(Ordering::Acquire) {
            if self.mailbox.any.load(Ordering::Acquire) {
                self.apply_commands();
            }
            if self.frozen.is_some() {
                self.finish_frozen();
                continue;
            }
            let worked = self.turn();
            idle_turns = if worked { 0 } else { idle_turns + 1 };
            if self.since_look >= LOOK_AFTER_NS || idle_turns == IDLE_TURNS {
                self.since_look = 0;
                // Where all are polled, no client rings.
                if self.active.len() < self.pairs.used() || self.muted > 0 {
                    self.look(false);
                }
            }
            if worked {
                continue;
            }
            if idle_turns == IDLE_TURNS {
                idle_turns = 0;
                self.park_the_idle();
            }
            if self.active.is_empty() {
                self.sleep();
            } else if self.in_flight.used() > 0 {
                // Work under way may wait for this processor.
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        if !self.mailbox.handed_over.load(Ordering::Acquire) {
            for (_, pair) in self.pairs.iter() {
                pair.end.close();
            }
        }
    }

    /// One turn: takes, does and answers. Says whether there was anything.
    fn turn(&mut self) -> bool {
        (self.turn, self.turn_ns) = (self.turn + 1, 0);
        let count = self.active.len();
        let (mut any, mut passed_over) = (false, None);
        for step in 0..count {
            let Some(&index) = self.active.get((self.first + step) % count) else { break };
            let taken = self.take_from(index);
            any |= taken;
            // A client's credit is for all its pairs: one that got nothing of it is the first in the next turn.
            if !taken && passed_over.is_none() && self.waits(index) {
                passed_over = Some((self.first + step) % count);
            }
            if self.batch.len() + self.taken.len() >= BATCH_MAX || self.turn_ns >= TURN_NS_MAX {
                // The next turn begins behind it.
                self.first = (self.first + step + 1) % count;
                passed_over = None;
                break;
            }
        }
        self.first = passed_over.unwrap_or(self.first);
        let mut taken = std::mem::take(&mut self.taken);
        for request in taken.drain(..) {
            if let Err(status) = self.begin(&request) {
                self.refuse(&request, status);
            }
        }
        self.taken = taken;
        self.submit();
        self.collect();
        any |= !self.answered.is_empty();
        self.wake_clients();
        any
    }

    /// Whether a pair has requests that wait for nothing but its client's credit.
    fn waits(&self, index: usize) -> bool {
        let Some(pair) = self.pairs.get(index) else { return false };
        let spent = self.clients.get(pair.client).is_some_and(|client| !client.credit.has_any());
        spent && pair.in_flight < pair.entries && pair.end.is_ready()
    }

    /// Takes as many requests of this pair as its client has credit for, and says whether there
    /// were any. Those for nothing are answered at once.
    fn take_from(&mut self, index: usize) -> bool {
        let Some(pair) = self.pairs.get_mut(index) else { return false };
        let Some(client) = self.clients.get_mut(pair.client) else { return false };
        if client.turn != self.turn {
            client.turn = self.turn;
            client.credit.turn(QUANTUM_NS.saturating_mul(client.weight));
        }
        let (mut any, mut nulls, mut costs) = (false, 0, 0_u32);
        while self.batch.len() + self.taken.len() < BATCH_MAX
            && client.credit.has_any()
            && self.turn_ns.saturating_add(costs) < TURN_NS_MAX
            && pair.in_flight < pair.entries
            && let Some(descriptor) = pair.end.take()
        {
            any = true;
            let cost = if descriptor.opcode == Opcode::Null as u8 {
                nulls += 1;
                pair.end.answer(&wire::refused(descriptor.cookie, Status::Done));
                NULL_COST_NS
            } else {
                pair.in_flight += 1;
                let generation = pair.generation;
                let (cost, large) = client.cost(&descriptor);
                self.taken.push(Taken { pair: index, generation, descriptor, large });
                cost
            };
            client.credit.spend(cost);
            costs = costs.saturating_add(cost);
        }
        if any && !client.credit.has_any() && pair.end.is_ready() {
            add(&client.usage.throttled, 1);
            self.meters.throttled.increment();
        }
        if any {
            pair.idle_since = None;
            self.since_look = self.since_look.saturating_add(costs);
            self.turn_ns = self.turn_ns.saturating_add(costs);
        }
        if nulls > 0 {
            pair.note_answer(index, &mut self.answered);
            add(&client.usage.requests, nulls);
            self.meters.requests.add(nulls);
        }
        any
    }
}
