//! The outcome of a run.

use crate::host::HostUse;
use crate::latencies::{Latencies, add, latencies};
use crate::limits::{BUSY_SHARE, FUTILE_SHARE, LAG_MAX};
use crate::rule::Figure;
use crate::scenario::{Scenario, Threshold};
use crate::schedule::Rate;
use crate::tally::{ConnectionTally, Fault, JobTally, PhaseTally, SecondTally};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// When it began, from 1970 on.
    pub began: Duration,
    /// How long it took, to the last answer.
    pub elapsed: Duration,
    /// For how long starts that count were made, in seconds.
    pub recorded_s: f64,
    /// Connections that were open at the beginning, and those wanted.
    pub open: (usize, usize),
    /// All phases that count, in one.
    pub recorded: PhaseTally,
    /// Each phase.
    pub phases: Vec<PhaseTally>,
    /// The counts of connections.
    pub connections: ConnectionTally,
    /// How late our own starts were.
    pub lag: Latencies,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// The use of our own threads.
    pub threads: Vec<ThreadUse>,
    /// The seconds in which we, and not the server, may have been the limit.
    pub limited: Limited,
    /// Each threshold, and whether it was kept.
    pub verdicts: Vec<(String, bool)>,
    /// The caller has ended it.
    pub was_interrupted: bool,
    /// The threshold that has ended it.
    pub aborted_by: Option<String>,
    /// Why else it ended before its time: almost everything failed, or the server does not take the
    /// account.
    pub ended_by: Option<String>,
    /// Why a connection was of no use last, where one of our own threads has said so.
    pub(crate) last_error: Option<(Fault, String)>,
    /// The machines that it ran on, if it was not this one alone.
    pub agents: Vec<AgentUse>,
    /// The figures that monitors could not read at some time, and why.
    pub unseen: Vec<String>,
}

/// Seconds in which we, and not the server, may have been the limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limited {
    /// How many.
    pub seconds: u64,
    /// Of how many in which something was due or done.
    pub of: u64,
    /// The greatest share of a core that a thread of ours used in one of them.
    pub cpu_share: f64,
    /// How late our own starts were in one of them at most (p99), in nanoseconds.
    pub lag_ns: u64,
}

/// A machine that took part.
#[derive(Debug, Clone)]
pub struct AgentUse {
    /// The name that it gives itself.
    pub name: String,
    /// The part of [`Outcome::threads`] that is its.
    pub threads: Range<usize>,
    /// How far its clock is ahead of ours, in nanoseconds, and how sure that is.
    pub clock_ns: (i64, u64),
    /// That it was lost, when and why.
    pub lost: Option<String>,
}

/// A second of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Second {
    /// Its number, from 0.
    pub number: u64,
    /// Starts that came due.
    pub due: u64,
    /// Sequences that ended, rightly.
    pub done: u64,
    /// Those that failed.
    pub errors: u64,
    /// Response times in nanoseconds: of half, of 99 in 100, of all.
    pub p50_ns: u64,
    /// See there.
    pub p99_ns: u64,
    /// See there.
    pub max_ns: u64,
    /// How late our own starts were (p99), in nanoseconds.
    pub lag_ns: u64,
    /// The share of a core that our busiest thread used.
    pub cpu_share: f64,
    /// Starts that waited for a connection at its end.
    pub backlog: usize,
    /// The use of this whole machine.
    pub host: Option<HostUse>,
    /// The values of monitors, by name; `None` where there was no value.
    pub monitors: Vec<(Arc<str>, Option<f64>)>,
}

impl Second {
    pub(crate) fn new(number: u64) -> Second {
        Second {
            number,
            due: 0,
            done: 0,
            errors: 0,
            p50_ns: 0,
            p99_ns: 0,
            max_ns: 0,
            lag_ns: 0,
            cpu_share: 0.0,
            backlog: 0,
            host: None,
            monitors: Vec::new(),
        }
    }

    pub(crate) fn settle(&mut self, response: &Latencies, lag: &Latencies) {
        self.p50_ns = response.value_at_quantile(0.5);
        self.p99_ns = response.value_at_quantile(0.99);
        self.max_ns = response.max();
        self.lag_ns = lag.value_at_quantile(0.99);
    }
}

/// The use of one of our threads.
#[derive(Debug, Clone)]
pub struct ThreadUse {
    cpu_ns: u64,
    length_ns: u64,
    /// How late its own starts were.
    pub lag: Latencies,
    /// The greatest share of a core in one second.
    pub busiest: f64,
}

impl ThreadUse {
    fn new() -> ThreadUse {
        ThreadUse { cpu_ns: 0, length_ns: 0, lag: latencies(), busiest: 0.0 }
    }

    pub(crate) fn add(&mut self, tally: &SecondTally, share: f64) {
        self.cpu_ns += tally.cpu_ns;
        self.length_ns += tally.length_ns;
        add(&mut self.lag, &tally.lag);
        // The last second is short, and its share says little.
        if tally.length_ns > 500_000_000 {
            self.busiest = self.busiest.max(share);
        }
    }

    /// Processor time in microseconds.
    #[must_use]
    pub fn cpu_us(&self) -> f64 {
        self.cpu_ns as f64 / 1e3
    }

    /// The share of a core, over all.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.cpu_ns as f64 / self.length_ns.max(1) as f64
    }
}

impl Outcome {
    pub(crate) fn new(
        scenario: &Scenario,
        threads: usize,
        open: (usize, usize),
        began: Duration,
        agents: Vec<AgentUse>,
    ) -> Outcome {
        Outcome {
            began,
            elapsed: Duration::ZERO,
            recorded_s: 0.0,
            open,
            recorded: PhaseTally::new(scenario),
            phases: scenario.phases.iter().map(|_| PhaseTally::new(scenario)).collect(),
            connections: ConnectionTally::new(),
            lag: latencies(),
            seconds: Vec::new(),
            threads: vec![ThreadUse::new(); threads],
            limited: Limited::default(),
            verdicts: Vec::new(),
            was_interrupted: false,
            aborted_by: None,
            ended_by: None,
            last_error: None,
            agents,
            unseen: Vec::new(),
        }
    }

    /// Notes whether we may have been the limit in a second.
    pub(crate) fn judge_client(&mut self, second: &Second, is_open: bool) {
        if second.due + second.done == 0 {
            return;
        }
        let limited = &mut self.limited;
        limited.of += 1;
        let is_late = is_open && u128::from(second.lag_ns) > LAG_MAX.as_nanos();
        if is_late || second.cpu_share > BUSY_SHARE {
            limited.seconds += 1;
            limited.cpu_share = limited.cpu_share.max(second.cpu_share);
            limited.lag_ns = limited.lag_ns.max(second.lag_ns);
        }
    }

    pub(crate) fn conclude(&mut self, scenario: &Scenario) {
        // A run that was ended early has recorded less than was planned.
        let is_counted = scenario.phases.iter().any(|phase| phase.most.is_some());
        let is_whole = !self.was_interrupted
            && self.aborted_by.is_none()
            && self.ended_by.is_none()
            && !is_counted;
        let mut left = if is_whole { f64::INFINITY } else { self.elapsed.as_secs_f64() };
        for phase in &scenario.phases {
            let length = phase.length.as_secs_f64().min(left.max(0.0));
            left -= length;
            if phase.record {
                self.recorded_s += length;
            }
        }
        let recorded_s = self.recorded_s;
        let verdict = |threshold: &Threshold| {
            let negated = if threshold.is_negated { "never " } else { "" };
            (format!("{negated}{}", threshold.that), self.keeps(threshold, recorded_s))
        };
        self.verdicts = scenario.thresholds.iter().map(verdict).collect();
    }

    /// Whether a threshold is kept.
    pub(crate) fn keeps(&self, threshold: &Threshold, recorded_s: f64) -> bool {
        threshold.is_negated
            != threshold.that.holds(&|job, figure| self.figure(job, figure, recorded_s))
    }

    /// A figure of one job or of all, in the unit of [`Figure`].
    #[must_use]
    pub fn figure(&self, job: Option<usize>, figure: Figure, recorded_s: f64) -> Option<f64> {
        let jobs: Vec<&JobTally> = match job {
            Some(job) => vec![self.recorded.jobs.get(job)?],
            None => self.recorded.jobs.iter().collect(),
        };
        let mut response = latencies();
        jobs.iter().for_each(|job| add(&mut response, &job.response));
        let sum =
            |count: fn(&JobTally) -> u64| jobs.iter().map(|job| count(job)).sum::<u64>() as f64;
        let (due, errors) = (sum(|job| job.due), sum(JobTally::errors));
        let latency = |value: f64| (!response.is_empty()).then_some(value);
        match figure {
            Figure::Percentile(percent) => {
                latency(response.value_at_quantile(percent / 100.0) as f64)
            }
            Figure::Max => latency(response.max() as f64),
            Figure::Mean => latency(response.mean()),
            Figure::Rate => Some(sum(|job| job.in_time) / recorded_s.max(1e-9)),
            Figure::ErrorCount => Some(errors),
            Figure::ErrorShare => Some(if due > 0.0 { errors / due } else { 0.0 }),
            Figure::Lag => Some(self.lag.value_at_quantile(0.99) as f64),
        }
    }

    /// Sequences done rightly in time, a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.figure(None, Figure::Rate, self.recorded_s).unwrap_or_default()
    }

    /// A fault, and why a connection was of no use, if that was the reason.
    pub(crate) fn words_of(&self, fault: Fault) -> String {
        match &self.last_error {
            Some((last, why)) if *last == fault => format!("{fault} ({why})"),
            _ => fault.to_string(),
        }
    }

    /// Sequences that went right, and those that failed, warm-up included.
    fn ended(&self) -> (u64, u64) {
        let sum = |count: fn(&PhaseTally) -> u64| self.phases.iter().map(count).sum();
        (sum(PhaseTally::done), sum(PhaseTally::errors))
    }

    /// Why there is no use in going on, if almost everything has failed that has ended.
    pub(crate) fn futile(&self, scenario: &Scenario) -> Option<String> {
        let (done, errors) = self.ended();
        let share = errors as f64 / (done + errors).max(1) as f64;
        if share < FUTILE_SHARE {
            return None;
        }
        let jobs = scenario.jobs.iter().enumerate();
        let failed = self.phases.iter().flat_map(|phase| {
            let job = |(at, job)| Some((job, phase.jobs.get(at)?));
            jobs.clone().filter_map(job)
        });
        let each = failed.flat_map(|(job, tally)| {
            tally
                .failed
                .iter()
                .map(move |((step, fault), failed)| (job, *step, *fault, failed.count))
        });
        let (job, step, fault, _) = each.max_by_key(|(.., count)| *count)?;
        let advice = crate::advice::advice(job, step, fault);
        Some(format!(
            "{:.1} % of what was started failed, most of it in {}: {}{advice}",
            100.0 * share,
            job.step_name(step),
            self.words_of(fault),
        ))
    }

    /// Whether all thresholds were kept, and more went right than failed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let (done, errors) = self.ended();
        self.aborted_by.is_none()
            && self.ended_by.is_none()
            && self.agents.iter().all(|agent| agent.lost.is_none())
            && self.verdicts.iter().all(|(_, kept)| *kept)
            && done > 0
            && done >= errors
    }

    /// Why we, and not the server, may have been the limit.
    #[must_use]
    pub fn client_limit(&self, scenario: &Scenario) -> Option<String> {
        let (done, errors) = self.ended();
        // A generator that does little but hear that it failed is no measure of anything.
        if errors > done {
            return None;
        }
        let Limited { seconds, of, cpu_share, lag_ns } = self.limited;
        // One second in ten may be a hiccup.
        if seconds == 0 || seconds * 10 < of {
            return None;
        }
        let those = if seconds == 1 { "it" } else { "them" };
        let mut why = format!(
            "the client may have been the limit in {seconds} of {of} seconds: in {those} its busiest \
             thread used up to {:.0} % of a core",
            100.0 * cpu_share
        );
        if scenario.phases.iter().any(|phase| phase.rate != Rate::AsAnswered) {
            let late = crate::format::time(lag_ns as f64);
            why.push_str(&format!(", and its own starts were up to {late} late (p99)"));
        }
        let shares =
            self.seconds.iter().filter_map(|second| second.host.map(|host| host.cpu_share));
        let shares: Vec<f64> = shares.collect();
        if !shares.is_empty() {
            let mean = 100.0 * shares.iter().sum::<f64>() / shares.len() as f64;
            why.push_str(&format!("; all cores of this machine together were {mean:.0} % busy"));
        }
        Some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_limit_of_the_client_is_told_by_the_seconds_in_which_it_was_one() {
        let text = "[target]\nurls = [\"ldap://h\"]\n[[phase]]\nfor = \"10s\"\nrate = 10\n\
                    [[job]]\nsteps = [{ search = { filter = \"(uid=a)\" } }]\n";
        let scenario = Scenario::parse(text, "a", Path::new("")).unwrap();
        let mut outcome = Outcome::new(&scenario, 1, (1, 1), Duration::ZERO, Vec::new());
        let lag_max_ns = LAG_MAX.as_nanos() as u64;
        for number in 0..10 {
            let late_ns = if number == 7 { 3 * lag_max_ns } else { 80_000 };
            let second = Second {
                due: 10,
                done: 10,
                lag_ns: late_ns,
                cpu_share: 0.09,
                ..Second::new(number)
            };
            // The lag of all seconds together, of which nearly all are early.
            outcome.lag.saturating_record(second.lag_ns.min(80_000));
            outcome.judge_client(&second, true);
        }
        let why = outcome.client_limit(&scenario).unwrap();
        let late = crate::format::time(3.0 * lag_max_ns as f64);
        assert!(
            why.contains("in 1 of 10 seconds: in it its busiest thread used up to 9 %"),
            "{why}"
        );
        assert!(why.contains(&format!("up to {late} late (p99)")), "{why}");
    }
}
