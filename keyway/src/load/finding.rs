//! `keyway load find`: the knee.

use super::arguments::Find as Arguments;
use super::{interrupt, provider, sample};
use crate::failure::Failure;
use crate::output;
use keyway_load::{Figure, Find, Found, Probe, Rule, Scenario, find, summary};
use serde_json::json;
use std::io::{self, Write};

/// Searches with a sample.
pub fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let (_, scenario) = sample(&arguments.scenario, &arguments.target.options())?;
    let names: Vec<String> = scenario.job_names().map(str::to_owned).collect();
    let until = Rule::parse(&arguments.until, &names);
    let until = until.map_err(|why| Failure::usage(format!("--until {why}")))?;
    if arguments.from > arguments.to {
        return Err(Failure::usage("--from is above --to"));
    }
    if arguments.hold.is_zero() {
        return Err(Failure::usage("--hold should be above 0"));
    }
    let (low, high, hold) = (arguments.from, arguments.to, arguments.hold);
    search(scenario, &Find { low, high, until, hold }, arguments.json)
}

/// Searches, and says what was found; whether any rate was good.
pub fn search(mut scenario: Scenario, search: &Find, is_json: bool) -> Result<bool, Failure> {
    let mut err = io::stderr();
    if !is_json {
        // With nobody to read it there is nothing to be done.
        let _ = writeln!(
            err,
            "   RATE/S    REACHED  ERRORS        P50        P99        MAX  until {}",
            search.until
        );
    }
    let found = find(&mut scenario, search, &provider(), &interrupt()?, &mut |probe| {
        if !is_json {
            let _ = writeln!(err, "{}", line(probe));
        }
    })?;
    match is_json {
        true => output::json(&value(&found))?,
        false => output::text(found.verdict())?,
    }
    Ok(found.good.is_some())
}

fn line(probe: &Probe) -> String {
    let outcome = &probe.outcome;
    let at = |figure| {
        let ns = outcome.figure(None, figure, outcome.recorded_s);
        ns.map_or("-".to_owned(), summary::time)
    };
    let verdict = match probe {
        Probe { is_good: true, .. } => "good",
        Probe { is_short: true, .. } => "the rate was not reached",
        _ => "the rule came true",
    };
    format!(
        "{:>9} {:>10} {:>7} {:>10} {:>10} {:>10}  {verdict}{}",
        summary::grouped(probe.rate),
        summary::grouped(outcome.rate()),
        summary::grouped(outcome.recorded.errors() as f64),
        at(Figure::Percentile(50.0)),
        at(Figure::Percentile(99.0)),
        at(Figure::Max),
        if probe.client_limit.is_some() { " (the client may have been the limit)" } else { "" },
    )
}

fn value(found: &Found) -> serde_json::Value {
    let probe = |probe: &Probe| {
        let outcome = &probe.outcome;
        let ms = |figure| outcome.figure(None, figure, outcome.recorded_s).map(|ns| ns / 1e6);
        json!({
            "rate": probe.rate,
            "reached": outcome.rate(),
            "good": probe.is_good,
            "errors": outcome.recorded.errors(),
            "p50_ms": ms(Figure::Percentile(50.0)),
            "p99_ms": ms(Figure::Percentile(99.0)),
            "max_ms": ms(Figure::Max),
            "client_limit": probe.client_limit,
        })
    };
    json!({
        "good": found.good,
        "bad": found.bad,
        "confirmed": found.is_confirmed,
        "interrupted": found.was_interrupted,
        "verdict": found.verdict(),
        "probes": found.probes.iter().map(probe).collect::<Vec<_>>(),
    })
}
