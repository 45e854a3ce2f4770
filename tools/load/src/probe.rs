//! Before a run: each job once, so that what cannot work is said at once, with what to do about it.

use crate::advice::advice;
use crate::control::Interrupt;
use crate::error::Error;
use crate::limits::TRIAL_MAX;
use crate::run::run;
use crate::scenario::Scenario;
use crate::schedule::{Phase, Rate};
use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// Does each job of a scenario once, over one connection, as it is done in a run; nothing of it counts.
/// `provider` is the cryptography of TLS. Says which step of which job failed, how, and what to do about it.
///
/// # Errors
/// As [`run`]: no connection can be opened, or the server does not take the account.
pub fn probe(
    scenario: &mut Scenario,
    provider: &Arc<CryptoProvider>,
    interrupt: &Interrupt,
) -> Result<Option<String>, Error> {
    let trial = Trial::of(scenario);
    let jobs = 0..scenario.jobs.len();
    let has_work = |job: &usize| trial.weights.get(*job).is_some_and(|weight| *weight > 0.0);
    let mut failed = Ok(None);
    for job in jobs.filter(has_work) {
        failed = one(scenario, job, provider, interrupt);
        if !matches!(failed, Ok(None)) {
            break;
        }
    }
    trial.undo(scenario);
    failed
}

/// The parts of a scenario that its trial replaces.
struct Trial {
    weights: Vec<f64>,
    connections: Vec<usize>,
    phases: Vec<Phase>,
    thresholds: Vec<crate::scenario::Threshold>,
    monitors: Vec<crate::scenario::monitors::Monitor>,
    threads: Option<usize>,
    /// Where sources are whose values come in order.
    next: Vec<u64>,
}

impl Trial {
    fn of(scenario: &mut Scenario) -> Trial {
        let length = scenario.timeout.saturating_mul(4).min(TRIAL_MAX);
        let phase = Phase { length, rate: Rate::AsAnswered, record: true, most: Some(1) };
        Trial {
            weights: scenario.jobs.iter().map(|job| job.weight).collect(),
            connections: scenario.groups.iter().map(|group| group.connections).collect(),
            phases: std::mem::replace(&mut scenario.phases, vec![phase]),
            thresholds: std::mem::take(&mut scenario.thresholds),
            monitors: std::mem::take(&mut scenario.monitors),
            threads: scenario.threads.replace(1),
            next: scenario.sources.iter().map(crate::source::Source::place).collect(),
        }
    }

    fn undo(self, scenario: &mut Scenario) {
        for (job, weight) in scenario.jobs.iter_mut().zip(self.weights) {
            job.weight = weight;
        }
        for (group, connections) in scenario.groups.iter_mut().zip(self.connections) {
            group.connections = connections;
        }
        scenario.phases = self.phases;
        scenario.thresholds = self.thresholds;
        scenario.monitors = self.monitors;
        scenario.threads = self.threads;
        for (source, next) in scenario.sources.iter().zip(self.next) {
            source.go_to(next);
        }
    }
}

fn one(
    scenario: &mut Scenario,
    number: usize,
    provider: &Arc<CryptoProvider>,
    interrupt: &Interrupt,
) -> Result<Option<String>, Error> {
    let group = scenario.jobs.get(number).map_or(0, |job| job.group);
    for (at, job) in scenario.jobs.iter_mut().enumerate() {
        job.weight = f64::from(u8::from(at == number));
    }
    for (at, settings) in scenario.groups.iter_mut().enumerate() {
        settings.connections = usize::from(at == group);
    }
    let outcome = run(scenario, provider, interrupt, &mut |_| ())?;
    if outcome.was_interrupted {
        return Err(Error::Server("interrupted before it had begun".into()));
    }
    if let Some(why) = &outcome.ended_by {
        return Err(Error::Server(why.clone()));
    }
    let tally = outcome.phases.first().and_then(|phase| phase.jobs.get(number));
    let failed = tally.and_then(|tally| tally.failed.keys().next());
    let (Some((step, fault)), Some(job)) = (failed, scenario.jobs.get(number)) else {
        return Ok(None);
    };
    let url = scenario.urls.first().map(ToString::to_string).unwrap_or_default();
    Ok(Some(format!(
        "{url}: {}, tried once before the start, failed: {}{}",
        job.step_name(*step),
        outcome.words_of(*fault),
        advice(job, *step, *fault),
    )))
}
