//! `[[phase]]` and `[[threshold]]`: how many starts when, and what must come of them.

use super::Threshold;
use super::section::{Section, Value, number};
use crate::error::Error;
use crate::limits::{PHASE_MAX, PHASES_MAX, RATE_MAX};
use crate::rule::Rule;
use crate::schedule::{Phase, Rate};
use std::time::Duration;

/// How long a run is that does not say so.
const USUAL_LENGTH: Duration = Duration::from_secs(10);

/// A search for the highest rate at which a rule does not come true.
#[derive(Debug, Clone, PartialEq)]
pub struct Find {
    /// The lowest rate tried, in sequences a second.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// The rule that is not to come true.
    pub until: Rule,
    /// How long a rate is held.
    pub hold: Duration,
}

pub(crate) fn read(
    root: &mut Section<'_>,
    jobs: &[String],
) -> Result<(Vec<Phase>, Option<Find>), Error> {
    let (mut phases, mut find) = (Vec::new(), None);
    let document = root.document();
    for (index, value) in root.list("phase").into_iter().enumerate() {
        let mut section = Section::of(document, value, format!("phase {}", index + 1))?;
        match section.section("find")? {
            Some(search) if find.is_none() => find = Some(read_find(search, jobs)?),
            Some(search) => return Err(search.error("a scenario has one find at most")),
            None => phases.extend(phase(&mut section)?),
        }
        if phases.len() > PHASES_MAX {
            return Err(section.error(format!("a scenario has {PHASES_MAX} phases at most")));
        }
        section.finish()?;
    }
    if phases.is_empty() && find.is_none() {
        let (length, rate) = (USUAL_LENGTH, Rate::AsAnswered);
        phases.push(Phase { length, rate, record: true, most: None });
    }
    let ahead = phases.len().saturating_sub(1);
    if phases.iter().take(ahead).any(|phase| phase.most.is_some()) {
        return Err(root.error("operations is for the last phase: the run is over with them"));
    }
    Ok((phases, find))
}

/// A phase; with a list of steps several.
fn phase(section: &mut Section<'_>) -> Result<Vec<Phase>, Error> {
    let most = section.whole("operations", 1..u64::MAX)?;
    let usual = if most.is_some() { PHASE_MAX } else { USUAL_LENGTH };
    let length = section.time("for")?.unwrap_or(usual);
    if length.is_zero() || length > PHASE_MAX {
        return Err(section.error_of("for", "for should be a time above 0, and a week at most"));
    }
    let record = section.flag("record")?.unwrap_or(true);
    let Some(value) = section.get("rate") else {
        return Ok(vec![Phase { length, rate: Rate::AsAnswered, record, most }]);
    };
    let rates = match value.get_ref().as_table() {
        None => vec![level(section, value)?],
        Some(_) => {
            let mut line = Section::of(section.document(), value, "rate")?;
            let from = line.number("from", 0.0, RATE_MAX)?;
            let to = line.number("to", 0.0, RATE_MAX)?;
            let steps = line.list("steps");
            let rates = match (from, to, steps.is_empty()) {
                (Some(from), Some(to), true) => vec![Rate::Line { from, to }],
                (None, None, false) => {
                    steps.into_iter().map(|step| level(&line, step)).collect::<Result<_, _>>()?
                }
                _ => return Err(line.error("either from and to, or steps = [RATE, ...]")),
            };
            line.finish()?;
            rates
        }
    };
    if most.is_some() && rates.len() > 1 {
        return Err(section.error("operations goes with one rate, or without any"));
    }
    Ok(rates.into_iter().map(|rate| Phase { length, rate, record, most }).collect())
}

fn level(section: &Section<'_>, value: &Value<'_>) -> Result<Rate, Error> {
    match number(value.get_ref()) {
        Some(rate) if rate <= RATE_MAX => Ok(Rate::Line { from: rate, to: rate }),
        _ => {
            let why =
                "rate should be sequences a second, { from = N, to = N } or { steps = [N, ...] }";
            Err(section.error_at(value, why))
        }
    }
}

fn read_find(mut section: Section<'_>, jobs: &[String]) -> Result<Find, Error> {
    let wrong = "find should be { rate = [LOW, HIGH], until = \"p99 > 20ms\", hold = \"10s\" }";
    let ends: Vec<Option<f64>> =
        section.list("rate").into_iter().map(|value| number(value.get_ref())).collect();
    let (low, high) = match ends[..] {
        [Some(low), Some(high)] if low > 0.0 && low <= high && high <= RATE_MAX => (low, high),
        _ => return Err(section.error(wrong)),
    };
    let until = section.text("until")?.ok_or_else(|| section.error(wrong))?;
    let until = Rule::parse(until, jobs).map_err(|why| section.error(why))?;
    let hold = section.time("hold")?.unwrap_or(USUAL_LENGTH);
    if hold.is_zero() || hold > PHASE_MAX {
        return Err(section.error_of("hold", "hold should be a time above 0, and a week at most"));
    }
    section.finish()?;
    Ok(Find { low, high, until, hold })
}

pub(crate) fn thresholds(root: &mut Section<'_>, jobs: &[String]) -> Result<Vec<Threshold>, Error> {
    let document = root.document();
    let read = |(index, value)| {
        let mut section = Section::of(document, value, format!("threshold {}", index + 1))?;
        let that = section.text("that")?;
        let that = that.ok_or_else(|| section.error("that = \"p99 < 20ms\" is missing"))?;
        let that = Rule::parse(that, jobs).map_err(|why| section.error(why))?;
        let abort_after = match section.get("abort") {
            None => None,
            Some(value) => {
                let why = "abort should be true or \"after 30s\"";
                let after = match value.get_ref().as_str() {
                    Some(text) => text.strip_prefix("after ").and_then(super::section::duration),
                    None => value.get_ref().as_bool().filter(|is| *is).map(|_| Duration::ZERO),
                };
                Some(after.ok_or_else(|| section.error_at(value, why))?)
            }
        };
        section.finish()?;
        Ok(Threshold { that, is_negated: false, abort_after })
    };
    root.list("threshold").into_iter().enumerate().map(read).collect()
}
