//! The parts of a scenario, checked.

use crate::request::Request;
use crate::rule::Rule;
use crate::text::Piece;
use std::time::Duration;

/// A rule that must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// The rule.
    pub that: Rule,
    /// That it must not hold instead.
    pub is_negated: bool,
    /// The run is ended if it is broken after so long.
    pub abort_after: Option<Duration>,
}

/// Connections that are alike.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) connections: usize,
    pub(crate) in_flight: usize,
    pub(crate) lifetime: Lifetime,
    /// The request that each of them begins with, and the sources it needs.
    pub(crate) bind: Option<(Request, Vec<usize>)>,
}

impl Group {
    /// Whether its connections begin with the bind of one account, always the same.
    pub(crate) fn has_account(&self) -> bool {
        self.bind.as_ref().is_some_and(|(_, sources)| sources.is_empty())
    }
}

impl Job {
    /// The name of one of its steps.
    pub(crate) fn step_name(&self, step: usize) -> String {
        let kind = match self.steps.get(step) {
            Some(Step::Operation(operation)) => operation.kind,
            _ => "wait",
        };
        match kind == self.name {
            true => self.name.clone(),
            false => format!("{}, step {} ({kind})", self.name, step + 1),
        }
    }
}

/// How long a connection is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Kept,
    /// For so many sequences.
    Sequences(u64),
}

/// A sequence of steps: one unit of the rate.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) weight: f64,
    pub(crate) group: usize,
    pub(crate) think: Duration,
    pub(crate) steps: Vec<Step>,
    /// The sources that its texts name.
    pub(crate) sources: Vec<usize>,
    /// How many values its steps take from answers.
    pub(crate) taken: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Wait(Duration),
    Operation(Box<Operation>),
}

/// A request, and what its answer should be.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) kind: &'static str,
    pub(crate) request: Request,
    /// The identifier octet of the answer.
    pub(crate) answer: u8,
    /// Whether nothing else may be under way on the connection.
    pub(crate) is_bind: bool,
    /// Whether it goes over the second connection.
    pub(crate) on_second: bool,
    pub(crate) codes: Vec<u32>,
    pub(crate) entries: Option<(u32, u32)>,
    /// Attributes of which some entry has to have a value.
    pub(crate) values: Vec<(String, Vec<Piece>)>,
    pub(crate) takes: Vec<Take>,
}

/// A value that a step takes from the first entry of its answer.
#[derive(Debug, Clone)]
pub(crate) struct Take {
    /// From which attribute; without one the entry's name.
    pub(crate) attribute: Option<String>,
    pub(crate) slot: usize,
}
