//! `keyway crypto test`: one operation over and over, by some threads, every result checked. Or the
//! conformance suite on one driver.
//!
//! The work goes in rounds: all threads run theirs at the same time, which is measured; then all
//! check what they got and make it ready again, which is not.

use super::arguments::{Policy, Test};
use super::work::{Door, Errors, LOST, Load, Subject, WRONG, Work, check_memory};
use super::{Interrupt, drivers, engine, known, private_key, say};
use crate::failure::Failure;
use crate::output::{self, grouped};
use crate::progress::Progress;
use keyway_conformance::{Check, Outcome, Plan, Report};
use keyway_drivers::software;
use keyway_engine::{Algorithm, Demand, Driver, Engine};
use keyway_meter::{Distribution, counter, histogram};
use keyway_test_drivers::queued2003;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

const SIZES: [usize; 3] = [64, 1_024, 8_192];
const SECONDS: f64 = 1.0;
/// Bytes that one thread's operations take, in a processor's nearest caches. Several threads need
/// longer rounds, so that they do run at the same time.
const ROOM_ALONE: usize = 64 << 10;
const ROOM_TOGETHER: usize = 4 << 20;
/// How often an operation is run in one round where nothing is checked.
const REPEATS: usize = 16;
/// The engine times one request in so many unless told otherwise.
const SAMPLE: u32 = 1_024;
/// The stages of a request that the engine times.
const STAGES: [&str; 3] = ["queue", "run", "deliver"];
/// Failures of the suite that are shown to people.
const FAILURES_SHOWN: usize = 20;
/// The engine's own name for running a chain step by step.
const CHAIN: &str = "chain";

/// Tests what was asked for. Says whether all was right.
///
/// # Errors
/// If it could not be begun.
pub fn run(arguments: &Test) -> Result<bool, Failure> {
    let mut drivers = drivers(&arguments.more)?;
    known(arguments.driver.as_slice(), &drivers)?;
    let mut named = arguments.driver.clone();
    if arguments.policy == Policy::Queued2003 {
        let inner = drivers.iter().find(|driver| Some(driver.name()) == named.as_deref());
        let wrapper = queued2003(inner.cloned().unwrap_or_else(software));
        let wrapper = wrapper.map_err(|why| Failure::new(format!("cannot start: {why}")))?;
        named = Some(wrapper.name().to_owned());
        drivers.push(wrapper);
    }
    let engine = engine(&drivers, arguments.more.legacy)?;
    let rsa = private_key(arguments.key.as_deref())?;
    let interrupt = Interrupt::catch()?;
    let driver = drivers.iter().rfind(|driver| Some(driver.name()) == named.as_deref());
    match driver {
        Some(driver) if arguments.conformance || is_bare(arguments) => {
            conformance(arguments, driver, &interrupt)
        }
        _ => {
            let rsa = rsa.as_ref().map(|key| key.as_slice());
            measure(arguments, &engine, named.as_deref(), rsa, &interrupt)
        }
    }
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

/// What is done with each work and size.
struct Manner<'a> {
    engine: &'a Engine,
    door: Door,
    threads: usize,
    seconds: f64,
    count: Option<u64>,
    verify: bool,
    profile: bool,
    drivers: Vec<String>,
    interrupt: &'a Interrupt,
}

fn measure(
    arguments: &Test,
    engine: &Engine,
    named: Option<&str>,
    rsa: Option<&[u8]>,
    interrupt: &Interrupt,
) -> Result<bool, Failure> {
    let usual: Vec<Work> = vec![Work { steps: vec![Algorithm::Aes128Gcm] }];
    let works = if arguments.algorithms.is_empty() { &usual } else { &arguments.algorithms };
    let sizes = if arguments.sizes.is_empty() { &SIZES[..] } else { &arguments.sizes };
    let names = engine.drivers().into_iter().map(|driver| driver.name);
    let manner = Manner {
        engine,
        door: arguments.in_flight.map_or(Door::Direct, Door::Queue),
        threads: usize::from(arguments.threads),
        seconds: arguments.seconds.unwrap_or(SECONDS),
        count: arguments.count,
        verify: !arguments.no_verify,
        profile: arguments.profile,
        drivers: names.chain([CHAIN.to_owned()]).collect(),
        interrupt,
    };
    check_memory(manner.threads, manner.door.in_flight(), sizes)?;
    let demand = named.map_or(Demand::Any, Demand::Named);
    let bar = Progress::steps("testing", works.len() as u64 * sizes.len() as u64);
    let (mut figures, mut skipped, mut headed) = (Vec::new(), Vec::new(), false);
    for (index, work) in works.iter().enumerate() {
        let subject = match Subject::open(engine, work, demand, rsa) {
            Ok(subject) => Arc::new(subject),
            Err(why) => {
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
            let new = manner.measure(&subject, size);
            if !arguments.json {
                let header = if headed { String::new() } else { header() + "\n" };
                if !bar.aside(|| say(header + &new.text()))? {
                    interrupt.end();
                }
                headed = true;
            }
            figures.push(new);
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
            "verified": manner.verify,
            "threads": manner.threads,
            "in_flight": arguments.in_flight,
            "runs": figures.iter().map(Figures::json).collect::<Vec<_>>(),
            "left_out": skipped,
        }))?;
    }
    if named == Some("null") && figures.iter().any(|run| run.errors.contains_key(WRONG)) {
        output::note(
            "the null driver does no cryptography; --no-verify measures what is around it",
        );
    }
    Ok(!figures.is_empty() && figures.iter().all(|run| run.errors.is_empty()) && skipped.is_empty())
}

/// What one thread did.
#[derive(Default)]
struct Share {
    operations: u64,
    took: Duration,
    /// Nanoseconds an operation of each round, where they are asked for.
    rounds: Vec<f64>,
}

impl Share {
    fn per_second(&self) -> f64 {
        self.operations as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// The median of all threads' rounds; 0 if there are none.
fn median(shares: &[Share]) -> f64 {
    let mut rounds: Vec<f64> = shares.iter().flat_map(|share| share.rounds.clone()).collect();
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 2).copied().unwrap_or(0.0)
}

/// How one work of one size went.
struct Figures {
    threads: usize,
    work: Work,
    size: usize,
    operations: u64,
    /// Of one thread, on average.
    seconds: f64,
    /// Of all threads together.
    per_second: f64,
    /// Share of the requests that found their driver full.
    busy: f64,
    errors: Errors,
    /// Operations by driver.
    drivers: Vec<(String, u64)>,
    profile: Option<Profile>,
}

struct Profile {
    /// Nanoseconds of each driver's stages.
    stages: Vec<(String, &'static str, Distribution)>,
    /// Nanoseconds an operation of one thread with every request timed, and with none: the medians
    /// of the rounds, so that what else the machine does is not in them.
    with: f64,
    without: f64,
}

impl Manner<'_> {
    fn measure(&self, subject: &Arc<Subject>, size: usize) -> Figures {
        let label = subject.work.to_string();
        let before = meters(&self.drivers, &label);
        let earlier = self.profile.then(|| stages(&self.drivers, &label));
        let room = if self.threads > 1 { ROOM_TOGETHER } else { ROOM_ALONE };
        let (barrier, finished) = (Barrier::new(self.threads), AtomicUsize::new(0));
        let all = Mutex::new((Vec::new(), Vec::new(), 0, Errors::new()));
        std::thread::scope(|scope| {
            for index in 0..self.threads {
                let (barrier, finished, all) = (&barrier, &finished, &all);
                scope.spawn(move || {
                    let interrupt = self.interrupt;
                    let mut load =
                        Load::new(self.engine, subject, size, self.door, room, interrupt);
                    let quota = self.count.map(|count| part(count, self.threads, index));
                    let rounds = Rounds { quota, leads: index == 0, barrier, finished };
                    let (plain, timed, total) = self.rounds(&mut load, &rounds);
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    all.0.push(plain);
                    all.1.push(timed);
                    all.2 += total;
                    for (name, number) in std::mem::take(&mut load.errors) {
                        *all.3.entry(name).or_default() += number;
                    }
                });
            }
        });
        self.engine.set_sample(SAMPLE);
        let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (plain, timed, total, errors) = all;
        let shares = if self.profile { &timed } else { &plain };
        let after = meters(&self.drivers, &label);
        let profile = earlier.map(|earlier| {
            let now = stages(&self.drivers, &label).into_iter().zip(earlier);
            let new =
                now.map(|((driver, stage, now), (.., before))| (driver, stage, now.since(&before)));
            Profile {
                stages: new.filter(|(.., values)| values.count > 0).collect(),
                with: median(&timed),
                without: median(&plain),
            }
        });
        let (mut busy, mut drivers) = (0, Vec::new());
        for (name, (after, before)) in self.drivers.iter().zip(after.iter().zip(&before)) {
            busy += after[1].wrapping_sub(before[1]);
            let operations = after[0].wrapping_sub(before[0]);
            if operations > 0 {
                drivers.push((name.clone(), operations));
            }
        }
        let took: f64 = shares.iter().map(|share| share.took.as_secs_f64()).sum();
        Figures {
            threads: self.threads,
            work: subject.work.clone(),
            size,
            operations: shares.iter().map(|share| share.operations).sum(),
            seconds: took / self.threads as f64,
            per_second: shares.iter().map(Share::per_second).sum(),
            busy: busy as f64 / u64::max(total, 1) as f64,
            errors,
            drivers,
            profile,
        }
    }

    /// One thread's rounds until all threads have their quota or the time is over; how they went
    /// without and with every request timed, and how many operations that were with those that do
    /// not count. Where stages are timed every other round is without, to say what it costs.
    fn rounds(&self, load: &mut Load, shared: &Rounds<'_>) -> (Share, Share, u64) {
        let (mut plain, mut timed, mut total) = (Share::default(), Share::default(), 0);
        let repeats = if self.verify { 1 } else { REPEATS };
        let mut left = shared.quota.unwrap_or(u64::MAX);
        let (begun, mut is_finished) = (Instant::now(), false);
        for round in 0u64.. {
            let sampled = self.profile && round % 2 == 1;
            if shared.leads && self.profile {
                self.engine.set_sample(u32::from(sampled));
            }
            shared.barrier.wait();
            let most = if is_finished { 0 } else { left.min((load.operations() * repeats) as u64) };
            let (number, took) = load.run(most as usize);
            shared.barrier.wait();
            total += number as u64;
            // Without a quota the first round is left out: it finds everything cold.
            if shared.quota.is_some() || round > 0 {
                let share = if sampled { &mut timed } else { &mut plain };
                share.operations += number as u64;
                share.took += took;
                if self.profile && number > 0 {
                    share.rounds.push(took.as_secs_f64() * 1e9 / number as f64);
                }
            }
            if shared.quota.is_some() && sampled == self.profile {
                left -= number as u64;
            }
            if self.verify {
                load.verify();
            }
            load.renew();
            let is_late = round > 1 && begun.elapsed().as_secs_f64() >= self.seconds;
            let is_over = left == 0
                || (shared.quota.is_none() && is_late)
                || self.interrupt.came()
                || load.errors.contains_key(LOST);
            if is_over && !is_finished {
                is_finished = true;
                shared.finished.fetch_add(1, Ordering::Relaxed);
            }
            shared.barrier.wait();
            if shared.finished.load(Ordering::Relaxed) == self.threads {
                break;
            }
        }
        (plain, timed, total)
    }
}

/// What the threads of a measurement have in common.
struct Rounds<'a> {
    /// Operations of this thread; `None` where time decides.
    quota: Option<u64>,
    /// Whether this thread does what is done once.
    leads: bool,
    barrier: &'a Barrier,
    /// Threads that have done their part.
    finished: &'a AtomicUsize,
}

/// One thread's part of a number.
fn part(number: u64, threads: usize, index: usize) -> u64 {
    let (threads, index) = (threads as u64, index as u64);
    number / threads + u64::from(index < number % threads)
}

/// What the engine counts of one work: operations, and requests that found a driver full.
fn meters(drivers: &[String], label: &str) -> Vec<[u64; 2]> {
    let read = |driver: &String| {
        ["operations", "busy"]
            .map(|what| counter(&format!("engine.{driver}.{label}.{what}")).value())
    };
    drivers.iter().map(read).collect()
}

/// What the engine has timed of one work, by driver and stage.
fn stages(drivers: &[String], label: &str) -> Vec<(String, &'static str, Distribution)> {
    let read = |driver: &String, stage: &'static str| {
        let values = histogram(&format!("engine.{driver}.{label}.{stage}")).read();
        (driver.clone(), stage, values)
    };
    drivers.iter().flat_map(|driver| STAGES.map(|stage| read(driver, stage))).collect()
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

impl Figures {
    fn bytes(&self) -> u64 {
        self.operations * self.size as u64
    }

    /// Microseconds that one operation took one thread.
    fn us_per_operation(&self) -> f64 {
        self.seconds * self.threads as f64 * 1e6 / f64::max(self.operations as f64, 1.0)
    }

    fn mbit_per_second(&self) -> f64 {
        self.per_second * self.size as f64 * 8e-6
    }

    fn errors_in_all(&self) -> u64 {
        self.errors.values().sum()
    }

    fn text(&self) -> String {
        let run: u64 = self.drivers.iter().map(|(_, operations)| operations).sum();
        let share = |(name, operations): &(String, u64)| match self.drivers.len() {
            1 => name.clone(),
            _ => format!("{name} {:.0}%", 100.0 * *operations as f64 / run.max(1) as f64),
        };
        let drivers: Vec<_> = self.drivers.iter().map(share).collect();
        let sized = |text: String| if self.work.is_sized() { text } else { "-".to_owned() };
        let mut text = format!(
            "{:<30} {:<11} {:>8} {:>11} {:>15} {:>8.3} {:>10.3} {:>10} {:>5.1}% {:>7}  {}",
            self.work.to_string(),
            self.work.verb(),
            sized(grouped(self.size as u64)),
            grouped(self.operations),
            sized(grouped(self.bytes())),
            self.seconds,
            self.us_per_operation(),
            sized(format!("{:.1}", self.mbit_per_second())),
            100.0 * self.busy,
            grouped(self.errors_in_all()),
            drivers.join(", "),
        );
        for (name, number) in &self.errors {
            let _ = write!(text, "\n  {} {name}", grouped(*number));
        }
        if let Some(profile) = &self.profile {
            text.push_str(&profile.text());
        }
        text
    }

    fn json(&self) -> Value {
        let drivers: Map<_, _> =
            self.drivers.iter().map(|(name, number)| (name.clone(), json!(number))).collect();
        json!({
            "work": self.work.to_string(),
            "operation": self.work.verb(),
            "bytes": self.size,
            "operations": self.operations,
            "bytes_in_all": self.bytes(),
            "seconds": self.seconds,
            "us_per_operation": self.us_per_operation(),
            "operations_per_second": self.per_second,
            "mbit_per_second": self.mbit_per_second(),
            "busy_share": self.busy,
            "errors": self.errors,
            "drivers": drivers,
            "profile": self.profile.as_ref().map(Profile::json),
        })
    }
}

impl Profile {
    /// What it costs to time an operation, in nanoseconds.
    fn cost(&self) -> f64 {
        self.with - self.without
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if self.stages.is_empty() {
            text.push_str("\n  no request was timed");
        } else {
            let _ = write!(
                text,
                "\n  {:<24} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
                "NANOSECONDS", "MIN", "MEAN", "P50", "P99", "MAX", "REQUESTS"
            );
        }
        for (driver, stage, values) in &self.stages {
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
            self.cost(),
            self.with,
            self.without
        );
        text
    }

    fn json(&self) -> Value {
        let stages = self.stages.iter().map(|(driver, stage, values)| {
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
            "ns_per_operation_with": self.with,
            "ns_per_operation_without": self.without,
            "cost_ns": self.cost(),
        })
    }
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
    let (mut done, mut total) = (0, 0);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        keyway_conformance::run(driver.clone(), software(), &plan, &mut |progress| {
            (done, total) = (progress.done, progress.total);
            bar.of(progress.total as u64);
            bar.step(progress.done as u64, format_args!("{} {}", progress.check, progress.work));
            if interrupt.came() {
                // The only way out of the suite before its end.
                resume_unwind(Box::new("interrupted"));
            }
        })
    }));
    drop(bar);
    let report = match ran {
        Ok(report) => report,
        Err(_) if interrupt.came() => {
            let (done, total) = (grouped(done as u64), grouped(total as u64));
            return Err(Failure::new(format!("interrupted after {done} of {total} checks")));
        }
        Err(panic) => resume_unwind(panic),
    };
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
