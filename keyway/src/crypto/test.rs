//! `keyway crypto test`: one operation over and over, by some threads, every result checked. Or the
//! conformance suite on one driver.

use super::arguments::{Policy, Signatures, Test};
use super::shared::{interrupt, private_key, say, words};
use crate::crypto::failed::failed;
use keyway_conformance::Plan;
use keyway_cryptotest::report::{
    figures_heading, figures_text, figures_value, pending_text, pending_value, suite_text,
    suite_value,
};
use keyway_cryptotest::{
    Entry, Interrupt, Subject, Trial, WRONG, Work, check_memory, drivers, engine, known, signing,
    verifying,
};
use keyway_drivers::{generate_private_key, software};
use keyway_engine::{Algorithm, Demand, Driver, Engine};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::progress::Progress;
use keyway_test_drivers::queued2003;
use serde_json::json;
use std::sync::Arc;
use zeroize::Zeroizing;

const SIZES: [usize; 3] = [64, 1_024, 8_192];
const SECONDS: f64 = 1.0;

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
    match arguments.operation {
        Signatures::Sign => Ok(signing(&arguments.algorithms)),
        Signatures::Verify => verifying(&arguments.algorithms).map_err(|work| {
            Failure::usage(format!("{work} makes no signatures that could be verified"))
        }),
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
                let header = if headed { String::new() } else { figures_heading() + "\n" };
                if !bar.aside(|| say(header + &figures_text(&new, bits)))? {
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
            "runs": figures.iter().map(|(run, bits)| figures_value(run, *bits)).collect::<Vec<_>>(),
            "pending_most": pending_value(engine),
            "left_out": skipped,
        }))?;
    }
    let marks = pending_value(engine);
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
        say(suite_value(driver.name(), &report))?;
    } else {
        say(suite_text(driver.name(), &report))?;
    }
    Ok(report.passed())
}
