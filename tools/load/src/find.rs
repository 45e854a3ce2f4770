//! The knee: the highest rate at which a rule does not come true. SLAMD's optimizing job.

use crate::error::Error;
use crate::limits::PROBES_MAX;
use crate::outcome::Outcome;
use crate::run::{Event, Interrupt, run};
use crate::scenario::{Find, Scenario};
use crate::schedule::{Phase, Rate};
use rustls::crypto::CryptoProvider;
use std::sync::Arc;
use std::time::Duration;

/// Rates that are nearer to one another than this are the same.
const NEAR: f64 = 0.05;
/// The part of a probe that only warms up, of the time that the rate is held.
const WARM_UP: f64 = 0.2;
/// From one rate to the next while all is well.
const FACTOR: f64 = 2.0;
/// A rate that was not reached is no good, whatever the rule says.
const REACHED: f64 = 0.98;

/// One rate that was tried.
#[derive(Debug)]
pub struct Probe {
    /// The rate asked for, in sequences a second.
    pub rate: f64,
    /// Whether the rule did not come true, and the rate was reached.
    pub is_good: bool,
    /// The rate was not reached.
    pub is_short: bool,
    /// The client may have been the limit, not the server.
    pub client_limit: Option<String>,
    /// What it came to.
    pub outcome: Outcome,
}

/// What a search came to.
#[derive(Debug)]
pub struct Found {
    /// All rates tried, in order.
    pub probes: Vec<Probe>,
    /// The highest that was good, and was so a second time; `None` if none was.
    pub good: Option<f64>,
    /// The lowest that was not.
    pub bad: Option<f64>,
    /// Whether the good one was good when it was tried again.
    pub is_confirmed: bool,
    /// Somebody has ended it.
    pub was_interrupted: bool,
}

/// Searches: upwards by doubling, then by halving the gap until it is small, then once more at what
/// was found.
///
/// # Errors
/// As [`run`].
pub fn find(
    scenario: &mut Scenario,
    search: &Find,
    provider: &Arc<CryptoProvider>,
    interrupt: &Interrupt,
    said: &mut dyn FnMut(&Probe),
) -> Result<Found, Error> {
    let mut found = Found {
        probes: Vec::new(),
        good: None,
        bad: None,
        is_confirmed: false,
        was_interrupted: false,
    };
    let mut rate = search.low;
    while found.probes.len() < PROBES_MAX {
        let is_good = found.probe(scenario, search, rate, provider, interrupt, said)?;
        if found.was_interrupted {
            return Ok(found);
        }
        match is_good {
            true => found.good = Some(rate),
            false => found.bad = Some(rate),
        }
        rate = match (found.good, found.bad) {
            (Some(good), None) if good >= search.high => break,
            (Some(good), None) => (good * FACTOR).min(search.high),
            (Some(good), Some(bad)) if bad / good > 1.0 + NEAR => (good * bad).sqrt(),
            _ => break,
        };
    }
    if let Some(good) = found.good {
        found.is_confirmed = found.probe(scenario, search, good, provider, interrupt, said)?;
    }
    Ok(found)
}

impl Found {
    fn probe(
        &mut self,
        scenario: &mut Scenario,
        search: &Find,
        rate: f64,
        provider: &Arc<CryptoProvider>,
        interrupt: &Interrupt,
        said: &mut dyn FnMut(&Probe),
    ) -> Result<bool, Error> {
        let warm_up = Duration::from_secs_f64(search.hold.as_secs_f64() * WARM_UP);
        let level = Rate::Line { from: rate, to: rate };
        scenario.phases = vec![
            Phase { length: warm_up, rate: level, record: false },
            Phase { length: search.hold, rate: level, record: true },
        ];
        let outcome = run(scenario, provider, interrupt, &mut |_: Event<'_>| ())?;
        self.was_interrupted = outcome.was_interrupted;
        let recorded_s = outcome.recorded_s;
        let comes_true = search.until.holds(&|job, figure| outcome.figure(job, figure, recorded_s));
        // What is under way at the end is not missing.
        let missing = (rate - outcome.rate()) * recorded_s;
        let is_short = missing > scenario.lanes() as f64 && outcome.rate() < REACHED * rate;
        let client_limit = outcome.client_limit(scenario);
        let is_good = !comes_true && !is_short;
        let probe = Probe { rate, is_good, is_short, client_limit, outcome };
        said(&probe);
        self.probes.push(probe);
        Ok(is_good)
    }

    /// The search in words.
    #[must_use]
    pub fn verdict(&self) -> String {
        let number = |rate: f64| crate::summary::grouped(rate);
        let held = |rate: f64| match self.is_confirmed {
            true => format!("the knee is at {}/s", number(rate)),
            false => format!(
                "the knee is near {}/s: this rate was good once, and not when it was tried again",
                number(rate)
            ),
        };
        let mut words = match (self.good, self.bad) {
            (Some(good), Some(bad)) => {
                format!("{}; {}/s was too much", held(good), number(bad))
            }
            (Some(good), None) => {
                format!("{}/s, the highest rate tried, is no limit", number(good))
            }
            (None, Some(bad)) => format!("{}/s, the lowest rate tried, was too much", number(bad)),
            (None, None) => "no rate was held to its end".to_owned(),
        };
        if self.was_interrupted {
            words.push_str(" (interrupted)");
        }
        let limited = self.probes.iter().rev().find(|probe| !probe.is_good);
        if let Some(why) = limited.and_then(|probe| probe.client_limit.as_ref()) {
            words.push_str(&format!("; but {why}, so this says nothing of the server"));
        }
        words
    }
}
