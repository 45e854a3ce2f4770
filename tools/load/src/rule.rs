//! The rules for a result: `p99 < 20ms`, `auth errors > 0.1% or lag > 5ms`.

use crate::scenario::section::duration;
use keyway_codec::definitions::nearest;
use std::fmt;

/// Terms, of which those joined by `and` bind closer than those joined by `or`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    text: String,
    alternatives: Vec<Vec<Term>>,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    /// The job, else all jobs.
    job: Option<usize>,
    figure: Figure,
    comparison: Comparison,
    /// In nanoseconds, starts a second, a share from 0 to 1, or a number.
    limit: f64,
}

/// A figure that a result has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// So many of a hundred were as fast or faster (response time), in nanoseconds.
    Percentile(f64),
    /// The slowest, in nanoseconds.
    Max,
    /// The mean, in nanoseconds.
    Mean,
    /// Sequences done rightly, a second.
    Rate,
    /// Sequences that failed, of all that were started or due.
    ErrorShare,
    /// Sequences that failed.
    ErrorCount,
    /// How late our own starts were (p99), in nanoseconds.
    Lag,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The figures that a rule may name.
const FIGURES: &str = "p50, p90, p99, p99.9 (any percentile), max, mean, rate, errors, lag";

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Rule {
    /// Reads one; jobs are those with these names.
    ///
    /// # Errors
    /// The fault of the text.
    pub fn parse(text: &str, jobs: &[String]) -> Result<Rule, String> {
        let spaced = text.replace('<', " < ").replace('>', " > ").replace("<  =", "<=");
        let spaced = spaced.replace("< =", "<=").replace("> =", ">=");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let alternatives = words
            .split(|word| *word == "or")
            .map(|terms| {
                terms.split(|word| *word == "and").map(|term| Term::parse(term, jobs)).collect()
            })
            .collect::<Result<_, _>>()
            .map_err(|why| format!("'{text}': {why}"))?;
        Ok(Rule { text: text.to_owned(), alternatives })
    }

    /// Whether it holds of these figures; one that is not there makes its term false.
    pub fn holds(&self, figure: &dyn Fn(Option<usize>, Figure) -> Option<f64>) -> bool {
        self.alternatives.iter().any(|terms| terms.iter().all(|term| term.holds(figure)))
    }
}

impl Term {
    fn parse(words: &[&str], jobs: &[String]) -> Result<Term, String> {
        let (job, figure, comparison, limit) = match words {
            [figure, comparison, limit @ ..] if is_comparison(comparison) => {
                (None, *figure, *comparison, limit.concat())
            }
            [job, figure, comparison, limit @ ..] if is_comparison(comparison) => {
                (Some(*job), *figure, *comparison, limit.concat())
            }
            _ => {
                return Err(format!(
                    "a term is [JOB] FIGURE < LIMIT (or <=, >, >=), with FIGURE one of {FIGURES}"
                ));
            }
        };
        let job = job.map(|name| index(name, jobs)).transpose()?;
        let comparison = match comparison {
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            _ => Comparison::GreaterOrEqual,
        };
        let (figure, limit) = figure_and_limit(figure, &limit)?;
        Ok(Term { job, figure, comparison, limit })
    }

    fn holds(&self, figure: &dyn Fn(Option<usize>, Figure) -> Option<f64>) -> bool {
        let Some(value) = figure(self.job, self.figure) else { return false };
        match self.comparison {
            Comparison::Less => value < self.limit,
            Comparison::LessOrEqual => value <= self.limit,
            Comparison::Greater => value > self.limit,
            Comparison::GreaterOrEqual => value >= self.limit,
        }
    }
}

fn is_comparison(word: &str) -> bool {
    ["<", "<=", ">", ">="].contains(&word)
}

fn index(name: &str, jobs: &[String]) -> Result<usize, String> {
    jobs.iter().position(|job| job == name).ok_or_else(|| {
        match nearest(name, jobs.iter().map(String::as_str)) {
            Some(near) => format!("there is no job '{name}'; did you mean '{near}'?"),
            None => format!("there is no job '{name}'; jobs are {}", jobs.join(", ")),
        }
    })
}

fn figure_and_limit(figure: &str, limit: &str) -> Result<(Figure, f64), String> {
    let time = || {
        let time = duration(limit)
            .ok_or_else(|| format!("'{limit}' is not a duration (for example 20ms)"))?;
        Ok::<f64, String>(time.as_nanos() as f64)
    };
    let number = |text: &str| {
        let number = text.replace('_', "").parse::<f64>().ok().filter(|number| *number >= 0.0);
        number.ok_or_else(|| format!("'{limit}' is not a number"))
    };
    Ok(match figure {
        "max" => (Figure::Max, time()?),
        "mean" => (Figure::Mean, time()?),
        "lag" => (Figure::Lag, time()?),
        "rate" => (Figure::Rate, number(limit.trim_end_matches("/s"))?),
        "errors" => match limit.strip_suffix('%') {
            Some(percent) => (Figure::ErrorShare, number(percent)? / 100.0),
            None => (Figure::ErrorCount, number(limit)?),
        },
        _ => {
            let percentile = figure.strip_prefix('p').and_then(|text| text.parse::<f64>().ok());
            let percentile = percentile.filter(|percentile| (0.0..=100.0).contains(percentile));
            let unknown = || format!("there is no figure '{figure}'; there are {FIGURES}");
            (Figure::Percentile(percentile.ok_or_else(unknown)?), time()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> bool {
        let jobs = ["auth".to_owned(), "search".to_owned()];
        let figure = |job: Option<usize>, figure| match (job, figure) {
            (None, Figure::Percentile(99.0)) => Some(21e6),
            (Some(0), Figure::Percentile(99.0)) => Some(9e6),
            (None, Figure::ErrorShare) => Some(0.0005),
            (None, Figure::Rate) => Some(5_000.0),
            _ => None,
        };
        Rule::parse(text, &jobs).unwrap().holds(&figure)
    }

    #[test]
    fn rules() {
        assert!(holds("p99 > 20ms"));
        assert!(holds("p99>20ms"));
        assert!(!holds("p99 >= 22 ms"));
        assert!(holds("auth p99 < 10ms"));
        assert!(!holds("errors > 0.1% or lag > 5ms"));
        assert!(holds("errors > 0.1% or rate <= 5_000/s"));
        assert!(holds("p99 > 1s or p99 > 20ms and rate > 1"));
        assert!(!holds("p99 > 20ms and errors > 1%"));
        assert!(!holds("search p99 < 1h"));
    }

    #[test]
    fn what_makes_no_sense() {
        let why = |text| Rule::parse(text, &["auth".to_owned()]).unwrap_err();
        assert!(why("p99").contains("a term is"));
        assert!(why("p99 > 20").contains("not a duration"));
        assert!(why("p101 > 20ms").contains("no figure 'p101'"));
        assert!(why("auht p99 > 20ms").contains("did you mean 'auth'?"));
        assert!(why("errors > x").contains("not a number"));
        assert!(why("").contains("a term is"));
    }
}
