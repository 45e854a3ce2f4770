//! Starts that come due, and the virtual users that they are given to.

use super::state::Pending;
use super::{Worker, mix};
use crate::limits::BACKLOG_MAX;
use crate::schedule::Rate;
use crate::tally::Fault;
use fastrand::Rng;
use std::sync::atomic::Ordering;

impl Worker<'_> {
    /// Goes on at another rate if the caller has set one.
    pub(super) fn apply_rate_override(&mut self, now: u64) {
        let rate_override = self.shared.rate_override.get();
        if let Some(rate) = rate_override.filter(|_| rate_override != self.rate_override) {
            self.rate_override = rate_override;
            self.starts.level(now.saturating_sub(self.start_ns), rate);
            self.next_start = self.starts.next();
        }
    }

    /// The starts whose moment has come.
    pub(super) fn come_due(&mut self, now: u64) {
        while let Some(start) = self.next_start {
            let at_ns = self.start_ns + start.at_ns;
            if at_ns > now || at_ns >= self.end_ns {
                if at_ns >= self.end_ns {
                    self.next_start = None;
                }
                return;
            }
            self.tally.lag.saturating_record(now - at_ns);
            let seed = mix(self.scenario.seed, start.index);
            let job = self.scenario.pick_job(&mut Rng::with_seed(seed), None);
            self.tally.job(self.scenario, start.phase, job).due += 1;
            // Another seed than the job's choice had: its values must not depend on that.
            let pending = Pending { at_ns, phase: start.phase, job, seed: mix(seed, 1) };
            if self.backlogged < BACKLOG_MAX {
                self.backlog[self.scenario.jobs[job].group].push_back(pending);
                self.backlogged += 1;
            } else {
                let tally = self.tally.job(self.scenario, start.phase, job);
                tally.fail(0, Fault::Unstarted, now - at_ns);
            }
            self.next_start = self.starts.next();
        }
        let is_last = self
            .scenario
            .phases
            .last()
            .is_some_and(|phase| phase.most.is_some() && phase.rate != Rate::AsAnswered);
        self.is_counted_out |= is_last;
    }

    /// Gives free virtual users what waits; in a closed loop there is always something.
    pub(super) fn assign(&mut self, now: u64) {
        while self.phase_ends_ns.get(self.phase).is_some_and(|end| *end <= now) {
            self.phase += 1;
        }
        let is_closed = now < self.end_ns
            && !self.is_counted_out
            && self
                .scenario
                .phases
                .get(self.phase)
                .is_some_and(|phase| phase.rate == Rate::AsAnswered);
        for group in 0..self.free.len() {
            // Each virtual user once: one that fails at once must not go round for ever.
            for _ in 0..self.free[group].len() {
                let pending = match self.backlog[group].pop_front() {
                    Some(pending) => {
                        self.backlogged -= 1;
                        pending
                    }
                    None if is_closed && self.scenario.has_work(group) => {
                        let Some(pending) = self.closed(group, now) else { return };
                        pending
                    }
                    None => break,
                };
                let Some(user) = self.free[group].pop_front() else { break };
                self.begin(user, pending, now);
            }
        }
    }

    /// The next sequence of a closed loop, if it has another one.
    fn closed(&mut self, group: usize, now: u64) -> Option<Pending> {
        let most = self.scenario.phases.get(self.phase).and_then(|phase| phase.most);
        if let Some(most) = most {
            let (agent, agents) = self.scenario.share;
            let ours = most / agents + u64::from(agent < most % agents);
            if self.shared.taken.fetch_add(1, Ordering::Relaxed) >= ours {
                self.is_counted_out = true;
                return None;
            }
        }
        self.closed += 1;
        // No start of a schedule has so high an index: closed loops draw other values than those.
        let stream = mix(self.scenario.seed, 1 << 40 | self.stripe);
        let seed = mix(stream, self.closed);
        let job = self.scenario.pick_job(&mut Rng::with_seed(seed), Some(group));
        self.tally.job(self.scenario, self.phase, job).due += 1;
        Some(Pending { at_ns: now, phase: self.phase, job, seed: mix(seed, 1) })
    }
}
