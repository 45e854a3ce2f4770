//! The knee: the highest rate at which a rule does not come true. SLAMD's optimizing job.

use crate::control::Interrupt;
use crate::error::Error;
use crate::limits::PROBES_MAX;
use crate::outcome::Outcome;
use crate::scenario::{Find, Scenario};

/// Rates that are nearer to one another than this are the same.
const NEAR: f64 = 0.05;
/// From one rate to the next while all is well.
const FACTOR: f64 = 2.0;
/// A rate that was not reached is no good, whatever the rule says.
const REACHED: f64 = 0.98;

/// One rate that was tried.
#[derive(Debug)]
pub struct Probe {
    /// The rate asked for, in sequences a second.
    pub rate: f64,
    /// The verdict on it.
    pub verdict: Verdict,
    /// The client may have been the limit, not the server.
    pub client_limit: Option<String>,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The verdict on a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The rule did not come true, and the rate was reached.
    Good,
    /// The rule came true.
    RuleBroken,
    /// The rate was not reached.
    NotReached,
    /// Nothing: it was not held to its end.
    Cut,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Good => "good",
            Verdict::RuleBroken => "the rule came true",
            Verdict::NotReached => "the rate was not reached",
            Verdict::Cut => "not held to its end",
        }
    }
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// All rates tried, in order.
    pub probes: Vec<Probe>,
    /// The highest that was good; `None` if none was.
    pub good: Option<f64>,
    /// The lowest that was not.
    pub bad: Option<f64>,
    /// Whether the good one was good when it was tried again; `None` if it was not tried again.
    pub is_confirmed: Option<bool>,
    /// The caller has ended it.
    pub was_interrupted: bool,
    /// The reason if something else ended it early.
    pub ended_by: Option<String>,
}

/// Searches: upwards by doubling, then by halving the gap until it is small, then once more at what
/// was found. `run` runs the scenario as it is then.
///
/// # Errors
/// As [`crate::run()`] for the first rate. A later failure ends the search, with the results so far.
pub fn find(
    scenario: &mut Scenario,
    search: &Find,
    interrupt: &Interrupt,
    run: &mut dyn FnMut(&Scenario) -> Result<Outcome, Error>,
    said: &mut dyn FnMut(&Probe),
) -> Result<Found, Error> {
    let mut found = Found::default();
    let mut rate = search.low;
    while found.probes.len() < PROBES_MAX {
        match found.probe(scenario, search, rate, interrupt, run, said)? {
            Verdict::Cut => return Ok(found),
            Verdict::Good => found.good = Some(rate),
            Verdict::RuleBroken | Verdict::NotReached => found.bad = Some(rate),
        }
        rate = match (found.good, found.bad) {
            (Some(good), None) if good >= search.high => break,
            (Some(good), None) => (good * FACTOR).min(search.high),
            (Some(good), Some(bad)) if bad / good > 1.0 + NEAR => (good * bad).sqrt(),
            _ => break,
        };
    }
    if let Some(good) = found.good {
        found.is_confirmed = match found.probe(scenario, search, good, interrupt, run, said)? {
            Verdict::Cut => None,
            verdict => Some(verdict == Verdict::Good),
        };
    }
    Ok(found)
}

impl Found {
    fn probe(
        &mut self,
        scenario: &mut Scenario,
        search: &Find,
        rate: f64,
        interrupt: &Interrupt,
        run: &mut dyn FnMut(&Scenario) -> Result<Outcome, Error>,
        said: &mut dyn FnMut(&Probe),
    ) -> Result<Verdict, Error> {
        scenario.hold(rate, search.hold);
        let outcome = match run(scenario) {
            Ok(outcome) => outcome,
            Err(why) if self.probes.is_empty() => return Err(why),
            Err(_) if interrupt.came() => {
                self.was_interrupted = true;
                return Ok(Verdict::Cut);
            }
            Err(why) => {
                self.ended_by = Some(why.to_string());
                return Ok(Verdict::Cut);
            }
        };
        self.was_interrupted = outcome.was_interrupted;
        self.ended_by = outcome.agents.iter().find_map(|agent| agent.lost.clone());
        let verdict = match self.was_interrupted || self.ended_by.is_some() {
            true => Verdict::Cut,
            false => verdict(scenario, search, rate, &outcome),
        };
        let client_limit = outcome.client_limit(scenario);
        let probe = Probe { rate, verdict, client_limit, outcome };
        said(&probe);
        self.probes.push(probe);
        Ok(verdict)
    }

    /// Whether any rate was good, and the search came to its end.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.good.is_some() && !self.was_interrupted && self.ended_by.is_none()
    }

    /// The search in words.
    #[must_use]
    pub fn words(&self) -> String {
        let number = |rate: f64| crate::format::grouped(rate);
        let held = |rate: f64| match self.is_confirmed {
            Some(true) => format!("the knee is at {}/s", number(rate)),
            Some(false) => format!(
                "the knee is near {}/s: this rate was good once, and not when it was tried again",
                number(rate)
            ),
            None => format!("{}/s was good, and was not tried again", number(rate)),
        };
        let mut words = match (self.good, self.bad) {
            (Some(good), Some(bad)) => {
                format!("{}; {}/s was too much", held(good), number(bad))
            }
            (Some(good), None) if self.is_confirmed == Some(true) => {
                format!("{}/s, the highest rate tried, is no limit", number(good))
            }
            (Some(good), None) => held(good),
            (None, Some(bad)) => format!("{}/s, the lowest rate tried, was too much", number(bad)),
            (None, None) => "no rate was held to its end".to_owned(),
        };
        if self.was_interrupted {
            words.push_str(" (interrupted)");
        }
        if let Some(why) = &self.ended_by {
            words.push_str(&format!("; the search ended early: {why}"));
        }
        let limited = self
            .probes
            .iter()
            .rev()
            .find(|probe| matches!(probe.verdict, Verdict::RuleBroken | Verdict::NotReached));
        if let Some(why) = limited.and_then(|probe| probe.client_limit.as_ref()) {
            words.push_str(&format!("; but {why}, so this says nothing of the server"));
        }
        words
    }
}

fn verdict(scenario: &Scenario, search: &Find, rate: f64, outcome: &Outcome) -> Verdict {
    let recorded_s = outcome.recorded_s;
    // Sequences under way at the end are not missing.
    let missing = (rate - outcome.rate()) * recorded_s;
    let is_short = missing > scenario.virtual_users() as f64 && outcome.rate() < REACHED * rate;
    if is_short {
        return Verdict::NotReached;
    }
    let comes_true = search.until.holds(&|job, figure| outcome.figure(job, figure, recorded_s));
    match comes_true || outcome.aborted_by.is_some() {
        true => Verdict::RuleBroken,
        false => Verdict::Good,
    }
}
