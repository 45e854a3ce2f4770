//! A result as one JSON value, with its histograms, and read again.

mod find;

use crate::error::Error;
use crate::latencies::{Latencies, latencies};
use crate::limits::RESULT_BYTES_MAX;
use crate::outcome::{AgentUse, Outcome, Second};
use crate::scenario::{Scenario, Step};
use crate::tally::{Failed, Fault, JobTally, PhaseTally};
use crate::trust::read as read_file;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) use find::KIND as FIND;
pub use find::of_find;

/// The form of results that this program writes and reads.
const FORM: u64 = 1;

/// The result. Times are in milliseconds, those of histograms in nanoseconds.
#[must_use]
pub fn value(scenario: &Scenario, outcome: &Outcome) -> Value {
    let lag = &outcome.lag;
    json!({
        "keyway_load": FORM,
        "version": env!("CARGO_PKG_VERSION"),
        "name": scenario.name,
        "seed": scenario.seed,
        "urls": scenario.urls.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "began_unix_s": outcome.began.as_secs(),
        "elapsed_s": outcome.elapsed.as_secs_f64(),
        "recorded_s": outcome.recorded_s,
        "interrupted": outcome.was_interrupted,
        "aborted_by": outcome.aborted_by,
        "ended_by": outcome.ended_by,
        "good": outcome.is_good(),
        "rate": outcome.rate(),
        "due": outcome.recorded.due(),
        "done": outcome.recorded.done(),
        "errors": outcome.recorded.errors(),
        "response": times(&outcome.recorded.response()),
        "jobs": scenario.jobs.iter().zip(&outcome.recorded.jobs).map(|(job, tally)| {
            self::job(&job.name, &job.steps, tally, outcome.recorded_s)
        }).collect::<Vec<_>>(),
        "phases": scenario.phases.iter().zip(&outcome.phases).map(|(phase, tally)| json!({
            "length_s": phase.length.as_secs_f64(),
            "recorded": phase.record,
            "planned": phase.planned(),
            "due": tally.due(),
            "done": tally.done(),
            "errors": tally.errors(),
            "response": summary(&tally.response()),
        })).collect::<Vec<_>>(),
        "seconds": outcome.seconds.iter().map(second).collect::<Vec<_>>(),
        "connections": connections(outcome),
        "client": {
            "threads": outcome.threads.iter().map(|thread| json!({
                "core_share": thread.share(),
                "busiest_core_share": thread.busiest,
                "cpu_us": thread.cpu_us(),
                "lag_p99_ms": ms(thread.lag.value_at_quantile(0.99)),
            })).collect::<Vec<_>>(),
            "cpu_us_per_operation": cpu_us(outcome),
            "lag": summary(lag),
            "limit": outcome.client_limit(scenario),
        },
        "agents": agents(outcome),
        "unseen": outcome.unseen,
        "thresholds": outcome.verdicts.iter().map(|(rule, kept)| json!({
            "rule": rule,
            "kept": kept,
        })).collect::<Vec<_>>(),
        "scenario": scenario.text,
    })
}

/// The machines that it ran on.
fn agents(outcome: &Outcome) -> Vec<Value> {
    let agent = |agent: &AgentUse| {
        json!({
            "name": agent.name,
            "threads": [agent.threads.start, agent.threads.end],
            "clock_ahead_ns": agent.clock_ns.0,
            "clock_sure_ns": agent.clock_ns.1,
            "lost": agent.lost,
        })
    };
    outcome.agents.iter().map(agent).collect()
}

/// Our processor time for an operation, in microseconds.
fn cpu_us(outcome: &Outcome) -> f64 {
    let operations =
        |phase: &PhaseTally| phase.jobs.iter().map(crate::summary::operations).sum::<u64>();
    let all: u64 = outcome.phases.iter().map(operations).sum();
    outcome.threads.iter().map(|thread| thread.cpu_us()).sum::<f64>() / all.max(1) as f64
}

fn job(name: &str, steps: &[Step], tally: &JobTally, recorded_s: f64) -> Value {
    let kind = |step: &Step| match step {
        Step::Wait(_) => "wait",
        Step::Operation(operation) => operation.kind,
    };
    json!({
        "name": name,
        "rate": tally.in_time as f64 / recorded_s.max(1e-9),
        "due": tally.due,
        "started": tally.started,
        "done": tally.response.len(),
        "errors": tally.errors(),
        "response": times(&tally.response),
        "steps": steps.iter().zip(&tally.service).map(|(step, service)| json!({
            "kind": kind(step),
            "service": times(service),
        })).collect::<Vec<_>>(),
        "failed": failed(tally),
    })
}

fn failed(tally: &JobTally) -> Vec<Value> {
    let failed = |((step, fault), failed): (&(usize, Fault), &Failed)| {
        json!({
            "step": step,
            "what": fault.to_string(),
            "count": failed.count,
            "response": summary(&failed.latencies),
        })
    };
    tally.failed.iter().map(failed).collect()
}

fn second(second: &Second) -> Value {
    json!({
        "second": second.number,
        "due": second.due,
        "done": second.done,
        "errors": second.errors,
        "p50_ms": ms(second.p50_ns),
        "p99_ms": ms(second.p99_ns),
        "max_ms": ms(second.max_ns),
        "lag_ms": ms(second.lag_ns),
        "core_share": second.cpu_share,
        "waiting": second.backlog,
        "monitors": second.monitors.iter().map(|(name, value)| {
            (name.to_string(), Value::from(*value))
        }).collect::<serde_json::Map<_, _>>(),
        "host": second.host,
    })
}

fn connections(outcome: &Outcome) -> Value {
    let tally = &outcome.connections;
    json!({
        "open": outcome.open.0,
        "wanted": outcome.open.1,
        "opening": summary(&tally.opening),
        "tls": summary(&tally.tls),
        "tls_full": tally.tls_full,
        "tls_resumed": tally.tls_resumed,
        "tls_slow": tally.tls_slow,
        "not_opened": tally.not_opened,
        "lost": tally.lost,
        "late_answers": tally.late_answers,
        "bytes_in": tally.bytes_in,
        "bytes_out": tally.bytes_out,
        "entries": tally.entries,
    })
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Percentiles in milliseconds.
fn summary(times: &Latencies) -> Value {
    let at = |quantile| ms(times.value_at_quantile(quantile));
    json!({
        "count": times.len(),
        "mean_ms": times.mean() / 1e6,
        "p50_ms": at(0.5),
        "p90_ms": at(0.9),
        "p95_ms": at(0.95),
        "p99_ms": at(0.99),
        "p999_ms": at(0.999),
        "max_ms": ms(times.max()),
    })
}

/// The times with their histogram: each bucket's value in nanoseconds, and its count.
fn times(times: &Latencies) -> Value {
    let mut value = summary(times);
    let buckets = times.iter_recorded();
    let buckets =
        buckets.map(|bucket| json!([bucket.value_iterated_to(), bucket.count_at_value()]));
    value["buckets"] = buckets.collect();
    value
}

/// The histogram of what [`times`] wrote.
pub(crate) fn histogram(value: &Value) -> Latencies {
    let mut times = latencies();
    for bucket in value["buckets"].as_array().into_iter().flatten() {
        let (value, count) = (bucket[0].as_u64(), bucket[1].as_u64());
        if let (Some(value), Some(count)) = (value, count) {
            times.saturating_record_n(value, count);
        }
    }
    times
}

/// Reads a result.
///
/// # Errors
/// If the file cannot be read or is something else.
pub fn read(path: &Path) -> Result<Value, Error> {
    let bytes = read_file(path, RESULT_BYTES_MAX)?;
    let wrong = |why: String| Error::Content(path.to_owned(), why);
    let value: Value = serde_json::from_slice(&bytes).map_err(|why| {
        wrong(format!("not a result of keyway load (--output FILE writes one): {why}"))
    })?;
    match value["keyway_load"].as_u64() {
        Some(FORM) => Ok(value),
        Some(form) => Err(wrong(format!("it is of form {form}, and this program reads {FORM}"))),
        None => Err(wrong("not a result of keyway load (--output FILE writes one)".into())),
    }
}
