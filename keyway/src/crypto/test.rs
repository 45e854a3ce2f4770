//! `keyway crypto test`: one operation over and over, by some threads, every result checked. Or the
//! conformance suite on one driver.

use super::arguments::{Policy, Signatures, Test};
use super::shared::{interrupt, private_key, say, words};
use crate::crypto::failed::failed;
use keyway_conformance::{Check, Outcome, Plan, Report};
use keyway_cryptotest::{
    Entry, Figures, Interrupt, Profile, StageTimes, Subject, Trial, WRONG, Work, check_memory,
    drivers, engine, known,
};
use keyway_drivers::{generate_private_key, software};
use keyway_engine::{Algorithm, Demand, Driver, Engine};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress;
use keyway_test_drivers::queued2003;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::sync::Arc;
use zeroize::Zeroizing;

const SIZES: [usize; 3] = [64, 1_024, 8_192];
const SECONDS: f64 = 1.0;
/// Failures of the suite that are shown to people.
const FAILURES_SHOWN: usize = 20;

/// Tests what was asked for. Says whether all was right.
///
/// # Errors
/// If it could not be begun.
pub fn run(arguments: &Test) -> Result<bool, Failure> {
    let mut drivers = drivers(&arguments.more.with).map_err(failed)?;
    known(arguments.driver.as_slice(), &drivers).map_err(failed)?;
    let mut named = arguments.driver.clone();
    if arguments.policy == Policy::Queued2003 {
        let inner = drivers.iter().find(|driver| Some(driver.name()) == named.as_deref());
        let wrapper = queued2003(inner.cloned().unwrap_or_else(software));
        let wrapper = wrapper.map_err(|why| Failure::new(format!("cannot start: {why}")))?;
        named = Some(wrapper.name().to_owned());
        drivers.push(wrapper);
    }
    let engine = engine(&drivers, arguments.more.legacy).map_err(failed)?;
    let keys = rsa_keys(arguments)?;
    let interrupt = interrupt()?;
    let driver = drivers.iter().rfind(|driver| Some(driver.name()) == named.as_deref());
    match driver {
        Some(driver) if arguments.conformance || is_bare(arguments) => {
            conformance(arguments, driver, &interrupt)
        }
        _ => measure(arguments, &engine, named.as_deref(), &keys, &interrupt),
    }
}

/// An RSA private key, if there is one, and its size in bits where it was made for the test.
struct RsaKey {
    bits: Option<u32>,
    pkcs8: Option<Zeroizing<Vec<u8>>>,
}

/// The keys that are tested with, one after the other; at least one.
fn rsa_keys(arguments: &Test) -> Result<Vec<RsaKey>, Failure> {
    if arguments.rsa_bits.is_empty() {
        return Ok(vec![RsaKey { bits: None, pkcs8: private_key(arguments.key.as_deref())? }]);
    }
    let bar = Progress::steps("making keys", arguments.rsa_bits.len() as u64);
    let make = |(at, bits): (usize, &u32)| {
        bar.step(at as u64, format_args!("RSA, {bits} bits"));
        let key = generate_private_key(Algorithm::RsaPkcs1Sha256, *bits);
        let key = key.map_err(|why| Failure::new(format!("an RSA key of {bits} bits: {why}")))?;
        Ok(RsaKey { bits: Some(*bits), pkcs8: Some(key) })
    };
    arguments.rsa_bits.iter().enumerate().map(make).collect()
}

/// The works that are tested.
fn works(arguments: &Test) -> Result<Vec<Work>, Failure> {
    let usual = match arguments.operation {
        Signatures::Sign => Algorithm::Aes128Gcm,
        Signatures::Verify => Algorithm::RsaPkcs1Sha256,
    };
    let works = match arguments.algorithms.is_empty() {
        true => vec![usual.into()],
        false => arguments.algorithms.clone(),
    };
    if arguments.operation == Signatures::Sign {
        return Ok(works);
    }
    let verifying = |work: &Work| {
        let why = || Failure::usage(format!("{work} makes no signatures that could be verified"));
        work.verifying().ok_or_else(why)
    };
    works.iter().map(verifying).collect()
}

/// Whether a driver was named, and nothing of how it is to be measured.
fn is_bare(arguments: &Test) -> bool {
    let Test { driver, algorithms, sizes, count, seconds, in_flight, direct, .. } = arguments;
    driver.is_some()
        && algorithms.is_empty()
        && sizes.is_empty()
        && (count.is_none() && seconds.is_none())
        && (in_flight.is_none() && !direct)
        && (!arguments.profile && !arguments.no_verify)
}

fn measure(
    arguments: &Test,
    engine: &Engine,
    named: Option<&str>,
    keys: &[RsaKey],
    interrupt: &Interrupt,
) -> Result<bool, Failure> {
    let works = works(arguments)?;
    // Other keys than RSA's have one size.
    let pairs = works.iter().flat_map(|work| {
        let keys = if work.is_rsa() { keys } else { &keys[..1] };
        keys.iter().map(move |key| (work, key))
    });
    let pairs: Vec<_> = pairs.collect();
    let sizes = if arguments.sizes.is_empty() { &SIZES[..] } else { &arguments.sizes };
    let trial = Trial {
        engine,
        entry: arguments.in_flight.map_or(Entry::Direct, Entry::Queue),
        threads: usize::from(arguments.threads),
        seconds: arguments.seconds.unwrap_or(SECONDS),
        count: arguments.count,
        verify: !arguments.no_verify,
        profile: arguments.profile,
        interrupt,
    };
    check_memory(trial.threads, trial.entry.in_flight(), sizes).map_err(failed)?;
    let demand = named.map_or(Demand::Any, Demand::Named);
    let bar = Progress::steps("testing", pairs.len() as u64 * sizes.len() as u64);
    let (mut figures, mut skipped, mut headed) = (Vec::new(), Vec::new(), false);
    for (index, (work, key)) in pairs.into_iter().enumerate() {
        let bits = key.bits.filter(|_| work.is_rsa());
        let rsa = key.pkcs8.as_ref().map(|key| key.as_slice());
        let subject = match Subject::open(engine, work, demand, rsa) {
            Ok(subject) => Arc::new(subject),
            Err(why) => {
                let why = words(&why);
                bar.aside(|| output::note(format_args!("{work} is left out: {why}")));
                skipped.push(json!({ "work": work.to_string(), "why": why }));
                continue;
            }
        };
        let mut fitting: Vec<_> = sizes.iter().map(|size| work.fit(*size)).collect();
        fitting.dedup();
        for (at, size) in fitting.into_iter().enumerate() {
            if interrupt.came() {
                break;
            }
            let position = (index * sizes.len() + at) as u64;
            bar.step(position, format_args!("{work}, {size} bytes"));
            let new = trial.measure(&subject, size);
            if !arguments.json {
                let header = if headed { String::new() } else { header() + "\n" };
                if !bar.aside(|| say(header + &as_text(&new, bits)))? {
                    interrupt.end();
                }
                headed = true;
            }
            figures.push((new, bits));
        }
    }
    drop(bar);
    if arguments.json {
        say(json!({
            "policy": match arguments.policy {
                Policy::Direct => "direct",
                Policy::Queued2003 => "queued2003",
            },
            "interrupted": interrupt.came(),
            "verified": trial.verify,
            "threads": trial.threads,
            "in_flight": arguments.in_flight,
            "runs": figures.iter().map(as_json).collect::<Vec<_>>(),
            "pending_most": pending_most(engine),
            "left_out": skipped,
        }))?;
    }
    let marks = pending_most(engine);
    if !arguments.json && marks["in_all"] != 0 {
        say(format_args!("requests under way at most: {}", pending_text(&marks)))?;
    }
    if named == Some("null") && figures.iter().any(|(run, _)| run.errors.contains_key(WRONG)) {
        output::note(
            "the null driver does no cryptography; --no-verify measures what is around it",
        );
    }
    Ok(!figures.is_empty()
        && figures.iter().all(|(run, _)| run.errors.is_empty())
        && skipped.is_empty())
}

fn header() -> String {
    format!(
        "{:<30} {:<11} {:>8} {:>11} {:>15} {:>8} {:>10} {:>10} {:>6} {:>7}  DRIVERS",
        "WORK",
        "",
        "BYTES",
        "OPERATIONS",
        "TOTAL BYTES",
        "SECONDS",
        "US/OP",
        "MBIT/S",
        "BUSY",
        "ERRORS"
    )
}

/// High-water marks of requests on drivers that work beside the caller, since the engine was made.
fn pending_most(engine: &Engine) -> Value {
    let drivers = engine.drivers().into_iter().filter(|driver| driver.pending_most > 0);
    let drivers: Map<_, _> =
        drivers.map(|driver| (driver.name, json!(driver.pending_most))).collect();
    json!({ "in_all": engine.pending_most(), "drivers": drivers })
}

fn pending_text(marks: &Value) -> String {
    let drivers = marks["drivers"].as_object().into_iter().flatten();
    let drivers: Vec<_> = drivers.map(|(name, most)| format!("{name} {most}")).collect();
    format!("{}; {} in all", drivers.join(", "), marks["in_all"])
}

fn as_text(figures: &Figures, bits: Option<u32>) -> String {
    let run: u64 = figures.drivers.iter().map(|(_, operations)| operations).sum();
    let share = |(name, operations): &(String, u64)| match figures.drivers.len() {
        1 => name.clone(),
        _ => format!("{name} {:.0}%", 100.0 * *operations as f64 / run.max(1) as f64),
    };
    let drivers: Vec<_> = figures.drivers.iter().map(share).collect();
    let sized = |text: String| if figures.work.is_sized() { text } else { "-".to_owned() };
    let mut text = format!(
        "{:<30} {:<11} {:>8} {:>11} {:>15} {:>8.3} {:>10.3} {:>10} {:>5.1}% {:>7}  {}",
        bits.map_or(figures.work.to_string(), |bits| format!("{} {bits}", figures.work)),
        figures.work.verb(),
        sized(grouped(figures.bytes as u64)),
        grouped(figures.operations),
        sized(grouped(figures.bytes_in_all())),
        figures.seconds,
        figures.us_per_operation(),
        sized(format!("{:.1}", figures.mbit_per_second())),
        100.0 * figures.busy,
        grouped(figures.errors_in_all()),
        drivers.join(", "),
    );
    for (name, number) in &figures.errors {
        let _ = write!(text, "\n  {} {name}", grouped(*number));
    }
    if let Some(profile) = &figures.profile {
        text.push_str(&profile_text(profile));
    }
    text
}

fn as_json((figures, bits): &(Figures, Option<u32>)) -> Value {
    let drivers: Map<_, _> =
        figures.drivers.iter().map(|(name, number)| (name.clone(), json!(number))).collect();
    json!({
        "work": figures.work.to_string(),
        "operation": figures.work.verb(),
        "rsa_bits": bits,
        "bytes": figures.bytes,
        "operations": figures.operations,
        "bytes_in_all": figures.bytes_in_all(),
        "seconds": figures.seconds,
        "us_per_operation": figures.us_per_operation(),
        "operations_per_second": figures.per_second,
        "mbit_per_second": figures.mbit_per_second(),
        "busy_share": figures.busy,
        "errors": figures.errors,
        "drivers": drivers,
        "profile": figures.profile.as_ref().map(profile_json),
    })
}

fn profile_text(profile: &Profile) -> String {
    let mut text = String::new();
    if profile.stages.is_empty() {
        text.push_str("\n  no request was timed");
    } else {
        let _ = write!(
            text,
            "\n  {:<24} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "NANOSECONDS", "MIN", "MEAN", "P50", "P99", "MAX", "REQUESTS"
        );
    }
    for StageTimes { driver, stage, nanoseconds: values } in &profile.stages {
        let _ = write!(
            text,
            "\n  {:<24} {:>10} {:>10.0} {:>10} {:>10} {:>10} {:>10}",
            format!("{driver} {stage}"),
            grouped(values.min),
            values.mean(),
            grouped(values.percentile(50.0)),
            grouped(values.percentile(99.0)),
            grouped(values.max),
            grouped(values.count),
        );
    }
    let _ = write!(
        text,
        "\n  timing them costs {:.0} ns an operation: {:.0} with it, {:.0} without",
        profile.cost(),
        profile.with,
        profile.without
    );
    text
}

fn profile_json(profile: &Profile) -> Value {
    let stages = profile.stages.iter().map(|StageTimes { driver, stage, nanoseconds: values }| {
        json!({
            "driver": driver,
            "stage": stage,
            "requests": values.count,
            "min_ns": values.min,
            "mean_ns": values.mean(),
            "p50_ns": values.percentile(50.0),
            "p99_ns": values.percentile(99.0),
            "max_ns": values.max,
        })
    });
    json!({
        "stages": stages.collect::<Vec<_>>(),
        "ns_per_operation_with": profile.with,
        "ns_per_operation_without": profile.without,
        "cost_ns": profile.cost(),
    })
}

/// Has the driver pass the suite.
fn conformance(
    arguments: &Test,
    driver: &Arc<dyn Driver>,
    interrupt: &Interrupt,
) -> Result<bool, Failure> {
    let only: Vec<_> = arguments.algorithms.iter().flat_map(|work| work.steps.clone()).collect();
    let only = (!only.is_empty()).then_some(only);
    let plan = Plan { only, threads: usize::from(arguments.threads).max(4), ..Plan::default() };
    let bar = Progress::steps("conformance", 1);
    let report = keyway_cryptotest::conformance(driver, &plan, interrupt, |progress| {
        bar.of(progress.total as u64);
        bar.step(progress.done as u64, format_args!("{} {}", progress.check, progress.work));
    });
    drop(bar);
    let report = report.map_err(failed)?;
    if arguments.json {
        say(report_json(driver.name(), &report))?;
    } else {
        say(report_text(driver.name(), &report))?;
    }
    Ok(report.passed())
}

fn report_text(driver: &str, report: &Report) -> String {
    /// Of one check, over all works.
    #[derive(Default)]
    struct Row {
        passed: u64,
        skipped: u64,
        failed: u64,
        cases: u64,
        seconds: f64,
    }
    let mut rows: Vec<(&str, Row)> = Vec::new();
    for check in &report.checks {
        if rows.iter().all(|(name, _)| *name != check.name) {
            rows.push((check.name, Row::default()));
        }
        let Some((_, row)) = rows.iter_mut().find(|(name, _)| *name == check.name) else {
            continue;
        };
        row.seconds += check.nanoseconds as f64 * 1e-9;
        match &check.outcome {
            Outcome::Passed { cases } => {
                row.passed += 1;
                row.cases += *cases as u64;
            }
            Outcome::Skipped { .. } => row.skipped += 1,
            Outcome::Failed { .. } => row.failed += 1,
        }
    }
    let mut text = format!(
        "{:<12} {:>7} {:>8} {:>7} {:>9} {:>8}",
        "CHECK", "PASSED", "SKIPPED", "FAILED", "CASES", "SECONDS"
    );
    for (name, Row { passed, skipped, failed, cases, seconds }) in &rows {
        let cases = grouped(*cases);
        let _ = write!(
            text,
            "\n{name:<12} {passed:>7} {skipped:>8} {failed:>7} {cases:>9} {seconds:>8.2}"
        );
    }
    for failure in report.failures().take(FAILURES_SHOWN) {
        let _ = write!(text, "\n{failure}");
    }
    let unshown = report.failures().count().saturating_sub(FAILURES_SHOWN);
    if unshown > 0 {
        let _ = write!(text, "\n... and {} more; --json has them all", grouped(unshown as u64));
    }
    let verdict = if report.passed() { "conforms" } else { "does NOT conform" };
    let _ = write!(text, "\n{driver} {verdict}");
    text
}

fn report_json(driver: &str, report: &Report) -> Value {
    let check = |check: &Check| {
        let mut value = json!({
            "check": check.name,
            "work": check.work,
            "seconds": check.nanoseconds as f64 * 1e-9,
        });
        let (outcome, more) = match &check.outcome {
            Outcome::Passed { cases } => ("passed", json!({ "cases": cases })),
            Outcome::Skipped { why } => ("skipped", json!({ "why": why })),
            Outcome::Failed { why, case } => ("failed", json!({ "why": why, "case": case })),
        };
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.insert("outcome".to_owned(), json!(outcome));
            value.extend(more);
        }
        value
    };
    json!({
        "driver": driver,
        "conforms": report.passed(),
        "checks": report.checks.iter().map(check).collect::<Vec<_>>(),
    })
}
