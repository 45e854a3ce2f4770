//! A result in words: a table for people, and a line a second while it runs.

use crate::find::Probe;
use crate::format::{grouped, time};
use crate::latencies::Latencies;
use crate::outcome::{AgentUse, Outcome, Second};
use crate::rule::Figure;
use crate::scenario::{Find, Scenario, Step};
use crate::tally::JobTally;
use std::fmt::Write as _;

/// The heading of the lines that [`second`] makes.
pub const SECONDS_HEADING: &str =
    "  TIME       DUE      DONE  ERRORS       P50       P99       MAX  WAITING  CLIENT      LAG";

/// A line about a second.
#[must_use]
pub fn second(second: &Second) -> String {
    let mut line = format!(
        "{:>5}s {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>8} {:>6.0}% {:>8}",
        second.number + 1,
        grouped(second.due as f64),
        grouped(second.done as f64),
        grouped(second.errors as f64),
        time(second.p50_ns as f64),
        time(second.p99_ns as f64),
        time(second.max_ns as f64),
        grouped(second.backlog as f64),
        100.0 * second.cpu_share,
        time(second.lag_ns as f64),
    );
    for (name, value) in &second.monitors {
        let value = value.map_or("-".to_owned(), reading);
        // Into memory it cannot fail.
        let _ = write!(line, "  {name} {value}");
    }
    line
}

/// A monitor's value, in three figures.
fn reading(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => return grouped(value),
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// The table.
#[must_use]
pub fn table(scenario: &Scenario, outcome: &Outcome) -> String {
    let mut text = String::new();
    let urls: Vec<String> = scenario.urls.iter().map(ToString::to_string).collect();
    // Into memory it cannot fail.
    let _ = writeln!(
        text,
        "{} on {}: {:.1} s recorded, {} connections, {} threads{}",
        scenario.name,
        urls.join(", "),
        outcome.recorded_s,
        outcome.open.0,
        outcome.threads.len(),
        if outcome.was_interrupted { ", interrupted" } else { "" },
    );
    let _ = writeln!(
        text,
        "{:24} {:>10} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "RESPONSE", "RATE/S", "DONE", "ERRORS", "P50", "P90", "P99", "P99.9", "MAX"
    );
    let row = |text: &mut String, name: &str, rate: Option<f64>, times: &Latencies, errors: u64| {
        let rate = rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
        let at = |quantile: f64| match times.is_empty() {
            true => "-".to_owned(),
            false => time(times.value_at_quantile(quantile) as f64),
        };
        let _ = writeln!(
            text,
            "{name:24} {rate:>10} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            grouped(times.len() as f64),
            grouped(errors as f64),
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            at(1.0),
        );
    };
    let jobs = || scenario.jobs.iter().zip(&outcome.recorded.jobs);
    if scenario.jobs.len() > 1 {
        let (response, errors) = (outcome.recorded.response(), outcome.recorded.errors());
        row(&mut text, "all", Some(outcome.rate()), &response, errors);
    }
    for (job, tally) in jobs() {
        let rate = tally.in_time as f64 / outcome.recorded_s.max(1e-9);
        row(&mut text, &job.name, Some(rate), &tally.response, tally.errors());
        for (step, service) in job.steps.iter().zip(&tally.service) {
            if let Step::Operation(operation) = step {
                row(&mut text, &format!("  {} (service)", operation.kind), None, service, 0);
            }
        }
    }
    if scenario.phases.iter().any(|phase| phase.most.is_some()) {
        let done = outcome.recorded.done() + outcome.recorded.errors();
        let _ = writeln!(
            text,
            "total       {} operations in {}",
            grouped(done as f64),
            time(outcome.elapsed.as_nanos() as f64),
        );
    }
    for (job, tally) in jobs() {
        errors(&mut text, &job.name, &job.steps, tally);
    }
    connections(&mut text, outcome);
    client(&mut text, scenario, outcome);
    outcome.agents.iter().for_each(|used| agent(&mut text, used, outcome));
    for why in &outcome.unseen {
        let _ = writeln!(text, "UNSEEN      {why}");
    }
    for (rule, kept) in &outcome.verdicts {
        let _ = writeln!(text, "threshold   {} {rule}", if *kept { "kept  " } else { "BROKEN" });
    }
    if let Some(rule) = &outcome.aborted_by {
        let _ = writeln!(text, "ended early: the threshold '{rule}' was broken");
    }
    if let Some(why) = &outcome.ended_by {
        let _ = writeln!(text, "ENDED EARLY {why}");
    }
    text.truncate(text.trim_end().len());
    text
}

fn errors(text: &mut String, job: &str, steps: &[Step], tally: &JobTally) {
    for ((step, fault), failed) in &tally.failed {
        let kind = match steps.get(*step) {
            Some(Step::Operation(operation)) => operation.kind,
            _ => "wait",
        };
        let _ = writeln!(
            text,
            "error       {:>9} {job}, {kind}: {fault} (after p50 {}, max {})",
            grouped(failed.count as f64),
            time(failed.latencies.value_at_quantile(0.5) as f64),
            time(failed.latencies.max() as f64),
        );
    }
}

fn connections(text: &mut String, outcome: &Outcome) {
    let tally = &outcome.connections;
    let _ = write!(
        text,
        "connections {} opened (p50 {}, max {})",
        grouped(tally.opening.len() as f64),
        time(tally.opening.value_at_quantile(0.5) as f64),
        time(tally.opening.max() as f64),
    );
    if !tally.tls.is_empty() {
        let _ = write!(
            text,
            "; TLS {} full, {} resumed (p50 {}, max {}), {} slow",
            grouped(tally.tls_full as f64),
            grouped(tally.tls_resumed as f64),
            time(tally.tls.value_at_quantile(0.5) as f64),
            time(tally.tls.max() as f64),
            tally.tls_slow,
        );
    }
    for (count, what) in [
        (tally.not_opened, "not opened"),
        (tally.lost, "closed by the server"),
        (tally.late_answers, "answers after their time"),
    ] {
        if count > 0 {
            let _ = write!(text, "; {} {what}", grouped(count as f64));
        }
    }
    let _ = writeln!(text);
}

fn client(text: &mut String, scenario: &Scenario, outcome: &Outcome) {
    let cpu_us: f64 = outcome.threads.iter().map(|thread| thread.cpu_us()).sum();
    let operations: u64 = outcome.phases.iter().flat_map(|phase| &phase.jobs).map(operations).sum();
    let shares: Vec<String> =
        outcome.threads.iter().map(|thread| format!("{:.0} %", 100.0 * thread.share())).collect();
    let _ = write!(text, "client      {} of a core", shares.join(" and "));
    if operations > 0 {
        let _ = write!(text, ", {:.1} us an operation", cpu_us / operations as f64);
    }
    if !outcome.lag.is_empty() {
        let late = |quantile: f64| time(outcome.lag.value_at_quantile(quantile) as f64);
        let _ = write!(text, "; starts late by p50 {}, p99 {}", late(0.5), late(0.99));
    }
    let _ = writeln!(text);
    if let Some(why) = outcome.client_limit(scenario) {
        let _ = writeln!(text, "NOTE        {why}; use more threads or machines, or a lower rate");
    }
}

fn agent(text: &mut String, agent: &AgentUse, outcome: &Outcome) {
    let threads = outcome.threads.get(agent.threads.clone()).unwrap_or_default();
    let busiest = threads.iter().map(|thread| thread.busiest).fold(0.0, f64::max);
    let late = threads.iter().map(|thread| thread.lag.value_at_quantile(0.99)).max();
    let (ahead, sure) = agent.clock_ns;
    let _ = writeln!(
        text,
        "agent       {}: {} threads, busiest {:.0} % of a core, late by p99 {}; clock {}{} (± {})",
        agent.name,
        threads.len(),
        100.0 * busiest,
        time(late.unwrap_or_default() as f64),
        if ahead < 0 { "-" } else { "+" },
        time(ahead.unsigned_abs() as f64),
        time(sure as f64),
    );
    if let Some(lost) = &agent.lost {
        let _ = writeln!(text, "LOST        {lost}; its missing reports are in no sum");
    }
}

/// The heading of the lines that [`probe`] makes.
#[must_use]
pub fn probes_heading(search: &Find) -> String {
    format!("   RATE/S    REACHED  ERRORS        P50        P99        MAX  until {}", search.until)
}

/// A line about a rate that was tried.
#[must_use]
pub fn probe(probe: &Probe) -> String {
    let outcome = &probe.outcome;
    let at = |figure| {
        let ns = outcome.figure(None, figure, outcome.recorded_s);
        ns.map_or("-".to_owned(), time)
    };
    format!(
        "{:>9} {:>10} {:>7} {:>10} {:>10} {:>10}  {}{}",
        grouped(probe.rate),
        grouped(outcome.rate()),
        grouped(outcome.recorded.errors() as f64),
        at(Figure::Percentile(50.0)),
        at(Figure::Percentile(99.0)),
        at(Figure::Max),
        probe.verdict.words(),
        why_not(probe),
    )
}

/// The most frequent fault, and whether we may have been the reason.
fn why_not(probe: &Probe) -> String {
    let failed = probe.outcome.recorded.jobs.iter().flat_map(|job| &job.failed);
    let most = failed.max_by_key(|(_, failed)| failed.count);
    let mut words =
        most.map_or(String::new(), |((_, fault), it)| format!("; {} times {fault}", it.count));
    if probe.client_limit.is_some() {
        words += " (the client may have been the limit)";
    }
    words
}

/// How many operations were answered.
pub(crate) fn operations(job: &JobTally) -> u64 {
    job.service.iter().map(|service| service.len()).sum()
}
