//! The result of a search for the knee, as one JSON value.

use super::{FORM, agents, failed, second, times};
use crate::find::{Found, Probe};
use crate::rule::Figure;
use crate::scenario::{Find, Scenario};
use serde_json::{Value, json};

/// The kind that these results state.
pub(crate) const KIND: &str = "find";

/// The result of a search, with the histogram of each rate. Times are in milliseconds, those of histograms in
/// nanoseconds.
#[must_use]
pub fn of_find(scenario: &Scenario, search: &Find, found: &Found) -> Value {
    let began = found.probes.first().map_or(0, |probe| probe.outcome.began.as_secs());
    let last = found.probes.last().map(|probe| &probe.outcome);
    json!({
        "keyway_load": FORM,
        "kind": KIND,
        "version": env!("CARGO_PKG_VERSION"),
        "name": scenario.name,
        "seed": scenario.seed,
        "urls": scenario.urls.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "began_unix_s": began,
        "from": search.low,
        "to": search.high,
        "until": search.until.to_string(),
        "hold_s": search.hold.as_secs_f64(),
        "good": found.good,
        "bad": found.bad,
        "confirmed": found.is_confirmed,
        "interrupted": found.was_interrupted,
        "ended_by": found.ended_by,
        "verdict": found.words(),
        "agents": last.map(agents),
        "probes": found.probes.iter().map(|it| probe(scenario, it)).collect::<Vec<_>>(),
        "scenario": scenario.text,
    })
}

fn probe(scenario: &Scenario, probe: &Probe) -> Value {
    let outcome = &probe.outcome;
    let ms = |figure| outcome.figure(None, figure, outcome.recorded_s).map(|ns| ns / 1e6);
    let jobs = scenario.jobs.iter().zip(&outcome.recorded.jobs);
    let failures = jobs.flat_map(|(job, tally)| {
        failed(tally).into_iter().map(|mut failed| {
            failed["job"] = job.name.as_str().into();
            failed
        })
    });
    json!({
        "rate": probe.rate,
        "reached": outcome.rate(),
        "good": probe.verdict == crate::find::Verdict::Good,
        "verdict": probe.verdict.words(),
        "errors": outcome.recorded.errors(),
        "p50_ms": ms(Figure::Percentile(50.0)),
        "p99_ms": ms(Figure::Percentile(99.0)),
        "max_ms": ms(Figure::Max),
        "client_limit": probe.client_limit,
        "unseen": outcome.unseen,
        "response": times(&outcome.recorded.response()),
        "failed": failures.collect::<Vec<_>>(),
        "seconds": outcome.seconds.iter().map(second).collect::<Vec<_>>(),
    })
}
