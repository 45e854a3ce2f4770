//! Virtual users: room for one sequence at a time, on a connection of their own or one that they share.

use super::Worker;
use super::answer::fault;
use super::state::{Pending, SETUP_ID, State, Wake};
use crate::scenario::{Lifetime, Operation, Step};
use crate::tally::Fault;
use crate::text::Drawn;
use fastrand::Rng;
use keyway_codec::{Message, Op};

impl<'s> Worker<'s> {
    /// The operation that a virtual user is at.
    pub(super) fn operation(&self, user: usize) -> Option<&'s Operation> {
        let state = &self.virtual_users[user];
        match self.scenario.jobs[state.job].steps.get(state.step) {
            Some(Step::Operation(operation)) => Some(operation),
            _ => None,
        }
    }

    /// Begins a sequence on a virtual user that is free.
    pub(super) fn begin(&mut self, user: usize, pending: Pending, now: u64) {
        let scenario = self.scenario;
        let job = &scenario.jobs[pending.job];
        let state = &mut self.virtual_users[user];
        state.is_busy = true;
        (state.job, state.phase, state.step) = (pending.job, pending.phase, 0);
        state.intended_ns = pending.at_ns;
        state.random = Rng::with_seed(pending.seed);
        for source in &job.sources {
            state.drawn[*source] = scenario.sources[*source].draw(&mut state.random);
        }
        self.tally.job(scenario, pending.phase, pending.job).started += 1;
        self.advance(user, now);
    }

    /// Goes on with the step that is next.
    pub(super) fn advance(&mut self, user: usize, now: u64) {
        let scenario = self.scenario;
        let state = &self.virtual_users[user];
        match scenario.jobs[state.job].steps.get(state.step) {
            None => self.done(user, now),
            Some(Step::Wait(time)) => {
                self.wake_at(now + time.as_nanos() as u64, Wake::Step(user));
            }
            Some(Step::Operation(operation)) => {
                let second = state.second.filter(|_| operation.on_second);
                self.dispatch(user, second.unwrap_or(state.first), now);
            }
        }
    }

    /// The wait of a step is over.
    pub(super) fn waited(&mut self, user: usize, now: u64) {
        if self.virtual_users[user].is_busy {
            self.virtual_users[user].step += 1;
            self.advance(user, now);
        }
    }

    fn dispatch(&mut self, user: usize, connection: usize, now: u64) {
        if self.connections[connection].state == State::Ready {
            return self.send(user, connection, now);
        }
        self.connections[connection].waiting.push(user);
        if self.connections[connection].state == State::Closed {
            self.open(connection, now);
        }
    }

    /// Writes the request of the step into the connection's output.
    pub(super) fn send(&mut self, user: usize, index: usize, now: u64) {
        let scenario = self.scenario;
        let Some(operation) = self.operation(user) else { return };
        let connection = &mut self.connections[index];
        let state = &mut self.virtual_users[user];
        let slot = if connection.is_second { 0 } else { state.slot };
        let id = state.next_id(connection.virtual_users.len(), slot);
        (state.message_id, state.on, state.sent_ns) = (id, index, now);
        (state.entries, state.values_seen) = (0, 0);
        let mut drawn = Drawn {
            sources: &scenario.sources,
            indices: &state.drawn,
            taken: &state.taken,
            random: &mut state.random,
            makers: &mut self.makers,
        };
        let held = connection.out.len();
        operation.request.write(id, &mut drawn, &mut self.scratch, &mut connection.out);
        if self.makers.failed().is_some() {
            // Half a request is none, and the run is over.
            connection.out.truncate(held);
        }
        connection.in_flight += 1;
        self.dirty(index);
    }

    /// The last message of an answer has come.
    pub(super) fn complete(&mut self, user: usize, operation: &Operation, code: u32, now: u64) {
        let scenario = self.scenario;
        let state = &mut self.virtual_users[user];
        state.message_id = 0;
        let connection = &mut self.connections[state.on];
        connection.in_flight = connection.in_flight.saturating_sub(1);
        let (step, took) = (state.step, now.saturating_sub(state.sent_ns));
        let job = self.tally.job(scenario, state.phase, state.job);
        if let Some(service) = job.service.get_mut(step) {
            service.saturating_record(took);
        }
        match fault(operation, code, state.entries, state.values_seen) {
            Some(fault) => self.failed(user, fault, now),
            None => {
                state.step += 1;
                self.advance(user, now);
            }
        }
    }

    /// All steps went right.
    fn done(&mut self, user: usize, now: u64) {
        let scenario = self.scenario;
        let state = &self.virtual_users[user];
        let after = now.saturating_sub(state.intended_ns);
        let is_in_time = now <= self.end_ns;
        let job = self.tally.job(scenario, state.phase, state.job);
        job.response.saturating_record(after);
        job.in_time += u64::from(is_in_time);
        self.release(user, now);
    }

    /// The step has failed, and with it the sequence.
    pub(super) fn failed(&mut self, user: usize, fault: Fault, now: u64) {
        let scenario = self.scenario;
        let state = &self.virtual_users[user];
        let after = now.saturating_sub(state.intended_ns);
        let job = self.tally.job(scenario, state.phase, state.job);
        job.fail(state.step, fault, after);
        self.release(user, now);
    }

    /// An operation has taken too long: it is given up, and the server told so.
    pub(super) fn timed_out(&mut self, user: usize, now: u64) {
        let (id, on) = (self.virtual_users[user].message_id, self.virtual_users[user].on);
        if self.operation(user).is_some_and(|operation| operation.is_bind) {
            // There is no abandoning a bind, and nothing may follow until it is answered.
            return self.fail(on, Fault::TimedOut, "a bind has timed out", now);
        }
        self.virtual_users[user].message_id = 0;
        let connection = &mut self.connections[on];
        connection.in_flight = connection.in_flight.saturating_sub(1);
        Message::new(SETUP_ID - 1, Op::AbandonRequest(id)).encode(&mut connection.out);
        self.dirty(on);
        self.failed(user, Fault::TimedOut, now);
    }

    /// The virtual user is free for another sequence, now or in a while.
    fn release(&mut self, user: usize, now: u64) {
        let state = &mut self.virtual_users[user];
        state.is_busy = false;
        state.message_id = 0;
        let (first, second, group) = (state.first, state.second, state.group);
        let think = self.scenario.jobs[state.job].think.as_nanos() as u64;
        let connection = &mut self.connections[first];
        connection.sequences += 1;
        if let Lifetime::Sequences(most) = self.scenario.groups[group].lifetime
            && connection.sequences >= most
        {
            self.retire(first, now);
            second.into_iter().for_each(|second| self.retire(second, now));
        }
        let opens_at = |index: usize| match self.connections[index].state {
            State::Closed => self.connections[index].retry_ns,
            _ => 0,
        };
        let at = opens_at(first).max(second.map_or(0, opens_at)).max(now + think);
        match at > now {
            true => self.wake_at(at, Wake::Free(user)),
            false => self.free[group].push_back(user),
        }
    }
}
