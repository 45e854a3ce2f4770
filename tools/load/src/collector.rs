//! The reports of threads, here or on agents, put together second by second.

use crate::control::Interrupt;
use crate::error::Error;
use crate::event::Event;
use crate::host::Host;
use crate::latencies::{add, latencies};
use crate::limits::{FUTILE_AFTER_S, SECONDS_KEPT_MAX};
use crate::monitor::Monitors;
use crate::outcome::{AgentUse, Outcome, Second};
use crate::scenario::Scenario;
use crate::schedule::Rate;
use crate::start::Moment;
use crate::tally::SecondTally;
use crate::worker::WorkerMessage;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A second that is shorter than this, in nanoseconds, has no share of a core.
const SHORT_NS: u64 = 50_000_000;

/// Threads that are at work.
pub(crate) trait Workers {
    /// The next message of a worker, if one comes before long.
    fn next(&mut self) -> Option<WorkerMessage>;

    /// Has them come to an end.
    fn stop(&mut self);
}

/// The reports of threads, put together.
pub(crate) struct Collector<'g> {
    scenario: &'g Scenario,
    began: Instant,
    pub(crate) outcome: Outcome,
    host: Host,
    monitors: Monitors,
    /// An end was asked for, or a threshold or a failure demands it.
    is_over: bool,
    /// Seconds that not all threads have reported.
    seconds: BTreeMap<u64, Vec<SecondTally>>,
    /// The first second that a thread may still report.
    next: Vec<u64>,
}

impl<'g> Collector<'g> {
    /// For so many threads, whose connections are open.
    pub(crate) fn new(
        scenario: &'g Scenario,
        threads: usize,
        open: (usize, usize),
        agents: Vec<AgentUse>,
        monitors: Monitors,
        begin: Moment,
    ) -> Collector<'g> {
        let outcome = Outcome::new(scenario, threads, open, begin.unix, agents);
        let (seconds, next) = (BTreeMap::new(), vec![0; threads]);
        Collector {
            scenario,
            began: begin.at,
            outcome,
            host: Host::new(),
            monitors,
            is_over: false,
            seconds,
            next,
        }
    }

    /// Listens until all have ended.
    pub(crate) fn all(
        &mut self,
        workers: &mut dyn Workers,
        interrupt: &Interrupt,
        said: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let mut is_stopped = false;
        while self.next.iter().any(|next| *next != u64::MAX) {
            if interrupt.came() && !self.is_over {
                self.outcome.was_interrupted = true;
                self.is_over = true;
            }
            if self.is_over && !std::mem::replace(&mut is_stopped, true) {
                workers.stop();
            }
            match workers.next() {
                Some(WorkerMessage::Second(tally)) => {
                    if let Some(next) = self.next.get_mut(tally.thread) {
                        *next = (*next).max(tally.second + 1);
                        self.seconds.entry(tally.second).or_default().push(*tally);
                    }
                }
                Some(WorkerMessage::End(threads)) => self.end(threads),
                Some(WorkerMessage::Lost { agent, threads, why }) => {
                    self.lose(agent, &why, said);
                    self.end(threads);
                }
                Some(WorkerMessage::Failed(why)) => return Err(Error::Server(why)),
                Some(WorkerMessage::Broken(fault, why)) => {
                    self.outcome.last_error = Some((fault, why))
                }
                Some(WorkerMessage::Refused(why)) => {
                    self.outcome.ended_by.get_or_insert(why);
                    self.is_over = true;
                }
                Some(WorkerMessage::Ready { .. }) => continue,
                None => {}
            }
            self.settle(said);
            self.monitors.news().iter().for_each(|words| said(Event::Monitor(words)));
        }
        self.outcome.elapsed = self.began.elapsed();
        self.outcome.unseen = self.monitors.troubles();
        self.outcome.conclude(self.scenario);
        Ok(())
    }

    fn end(&mut self, threads: Range<usize>) {
        self.next.get_mut(threads).into_iter().flatten().for_each(|next| *next = u64::MAX);
    }

    /// An agent is gone: results that it has not reported are in no sum.
    fn lose(&mut self, agent: usize, why: &str, said: &mut dyn FnMut(Event<'_>)) {
        let after = self.began.elapsed().as_secs_f64();
        if let Some(agent) = self.outcome.agents.get_mut(agent) {
            let words = format!("{} was lost after {after:.1} s: {why}", agent.name);
            said(Event::Lost(&words));
            agent.lost = Some(words);
        }
    }

    /// Settles the seconds that all threads are beyond.
    fn settle(&mut self, said: &mut dyn FnMut(Event<'_>)) {
        let beyond = self.next.iter().copied().min().unwrap_or_default();
        let lengths = self.scenario.phases.iter().map(|phase| phase.length);
        let planned = lengths.fold(Duration::ZERO, Duration::saturating_add);
        while let Some(entry) = self.seconds.first_entry().filter(|entry| *entry.key() < beyond) {
            let (number, tallies) = entry.remove_entry();
            let is_short = tallies.iter().all(|tally| tally.length_ns < SHORT_NS);
            let mut second = self.add(number, tallies);
            // The end of a run is no second: nothing is due any more, and no answer has come.
            let is_idle = second.due + second.done + second.errors == 0 && second.backlog == 0;
            let is_after = Duration::from_secs(number) >= planned || beyond == u64::MAX;
            if is_idle && (is_after || is_short) {
                continue;
            }
            second.host = self.host.look();
            second.monitors = self.monitors.look();
            said(Event::Second(&second));
            if self.outcome.seconds.len() < SECONDS_KEPT_MAX {
                self.outcome.seconds.push(second);
            }
            self.check_thresholds(number);
            self.check_use(number);
        }
    }

    fn add(&mut self, number: u64, tallies: Vec<SecondTally>) -> Second {
        let mut second = Second::new(number);
        let mut response = latencies();
        let mut lag = latencies();
        let is_open = self.scenario.phases.iter().any(|phase| phase.rate != Rate::AsAnswered);
        for tally in tallies {
            for (phase, more) in tally.phases.iter().enumerate() {
                let Some(more) = more else { continue };
                second.due += more.due();
                second.done += more.done();
                second.errors += more.errors();
                add(&mut response, &more.response());
                self.outcome.phases[phase].add(more);
                if self.scenario.phases[phase].record {
                    self.outcome.recorded.add(more);
                }
            }
            // The rest of the last second may be so short that its share says nothing.
            let share = match tally.length_ns {
                SHORT_NS.. => tally.cpu_ns as f64 / tally.length_ns as f64,
                _ => 0.0,
            };
            second.cpu_share = second.cpu_share.max(share);
            second.backlog += tally.backlog;
            add(&mut lag, &tally.lag);
            self.outcome.threads[tally.thread].add(&tally, share);
            self.outcome.connections.add(&tally.connections);
        }
        second.settle(&response, &lag);
        add(&mut self.outcome.lag, &lag);
        self.outcome.judge_client(&second, is_open);
        second
    }

    /// Ends a run that has come to nothing so far: no figure of it is of any use.
    fn check_use(&mut self, number: u64) {
        if number + 1 == FUTILE_AFTER_S && self.outcome.ended_by.is_none() {
            self.outcome.ended_by = self.outcome.futile(self.scenario);
            self.is_over |= self.outcome.ended_by.is_some();
        }
    }

    /// Ends the run if a threshold that says so is broken.
    fn check_thresholds(&mut self, number: u64) {
        if self.outcome.aborted_by.is_some() {
            return;
        }
        let so_far = Duration::from_secs(number + 1);
        let broken = self.scenario.thresholds.iter().find(|threshold| {
            threshold.abort_after.is_some_and(|after| so_far > after)
                && !self.outcome.keeps(threshold, so_far.as_secs_f64())
        });
        if let Some(broken) = broken.filter(|_| self.outcome.recorded.due() > 0) {
            self.outcome.aborted_by = Some(broken.that.to_string());
            self.is_over = true;
        }
    }
}
