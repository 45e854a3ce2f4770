//! The drivers, what they do, what their work costs, and where it pays to take another.

use super::costs::{cost_value, costs_text, crossover_value};
use super::names::{by_kind, place, selection};
use crate::drivers::Drivers;
use crate::list::{chains, crossovers, features};
use keyway_engine::{Algorithm, CostReport, DriverReport, Engine, Selection};
use keyway_host::output::grouped;
use serde_json::{Value, json};
use std::fmt::Write;

/// Chains that are shown to people; programs see them all.
const CHAINS_SHOWN: usize = 4;

/// The part of the drivers that is listed.
#[derive(Clone, Copy, Debug)]
pub struct ListQuery<'q> {
    /// The drivers; all, if it is empty.
    pub drivers: &'q [String],
    /// The algorithms; all, if it is empty.
    pub algorithms: &'q [Algorithm],
    /// Whether those that should not be used any more are listed too.
    pub legacy: bool,
    /// Whether costs are measured.
    pub costs: bool,
}

/// Drivers, and costs of their work.
#[derive(Debug)]
pub struct DriverList {
    drivers: Vec<ListedDriver>,
    costs: Option<Vec<CostReport>>,
}

/// A driver, with what the engine does not know of it.
#[derive(Debug)]
struct ListedDriver {
    report: DriverReport,
    features: Vec<String>,
    /// Chains that it does whole.
    chains: Vec<String>,
}

impl DriverList {
    /// The drivers of an engine that was made of them.
    #[must_use]
    pub fn of(drivers: &Drivers, engine: &Engine, query: ListQuery<'_>) -> DriverList {
        let wanted =
            |name: &str| query.drivers.is_empty() || query.drivers.iter().any(|it| it == name);
        let asked = |algorithm: &Algorithm| {
            let allowed = query.legacy || !algorithm.is_legacy();
            allowed && (query.algorithms.is_empty() || query.algorithms.contains(algorithm))
        };
        let mut listed = Vec::new();
        for (driver, mut report) in drivers.iter().zip(engine.drivers()) {
            report.algorithms.retain(asked);
            if wanted(&report.name) {
                let (features, chains) = (features(driver), chains(driver, asked));
                listed.push(ListedDriver { features, chains, report });
            }
        }
        let costs = query.costs.then(|| {
            let is_asked = |cost: &CostReport| cost.work.parse().is_ok_and(|work| asked(&work));
            let mut costs = engine.costs(true);
            costs.retain(|cost| wanted(&cost.driver) && is_asked(cost));
            costs
        });
        DriverList { drivers: listed, costs }
    }
}

impl DriverList {
    /// The drivers for people: a table, and what each does below it.
    #[must_use]
    pub fn text(&self) -> String {
        drivers_text(&self.drivers)
    }

    /// The costs for people, if they were asked for.
    #[must_use]
    pub fn costs_text(&self) -> Option<String> {
        self.costs.as_ref().map(|costs| costs_text(&self.reports(), costs))
    }

    /// All of it for programs.
    #[must_use]
    pub fn value(&self) -> Value {
        let mut value =
            json!({ "drivers": self.drivers.iter().map(driver_value).collect::<Vec<_>>() });
        if let (Some(costs), Some(object)) = (&self.costs, value.as_object_mut()) {
            object.insert("costs".to_owned(), costs.iter().map(cost_value).collect());
            let crossovers = crossovers(&self.reports(), costs);
            object
                .insert("crossovers".to_owned(), crossovers.iter().map(crossover_value).collect());
        }
        value
    }

    fn reports(&self) -> Vec<DriverReport> {
        self.drivers.iter().map(|listed| listed.report.clone()).collect()
    }
}

fn drivers_text(shown: &[ListedDriver]) -> String {
    let mut text =
        format!("{:<14} {:<7} {:<8} {:>8}  FEATURES", "DRIVER", "PLACE", "CHOSEN", "PARALLEL");
    for ListedDriver { report, features, .. } in shown {
        let DriverReport { name, parallel, .. } = report;
        let (place, selection) = (place(report.place), selection(report.selection));
        let features = features.join(", ");
        let _ = write!(text, "\n{name:<14} {place:<7} {selection:<8} {parallel:>8}  {features}");
    }
    for ListedDriver { report, chains, .. } in shown {
        let _ = write!(text, "\n\n{}", report.name);
        let earlier = shown.iter().find(|other| other.report.algorithms == report.algorithms);
        match earlier.map(|other| &other.report.name) {
            _ if report.algorithms.is_empty() => text.push_str("\n  none of these algorithms"),
            Some(name) if *name != report.name => {
                let _ = write!(text, "\n  the same algorithms as {name}");
            }
            _ => {
                for (kind, names) in by_kind(&report.algorithms) {
                    let _ = write!(text, "\n  {kind:<12} {}", wrapped(&names.join(", ")));
                }
            }
        }
        if !chains.is_empty() {
            let few: Vec<_> = chains.iter().take(CHAINS_SHOWN).map(String::as_str).collect();
            let rest = match chains.len().saturating_sub(CHAINS_SHOWN) {
                0 => String::new(),
                more => format!(", and {} more", grouped(more as u64)),
            };
            let label = "whole chains";
            let _ = write!(text, "\n  {label:<12} {}{rest}", wrapped(&few.join(", ")));
        }
    }
    text
}

/// Breaks a list of names behind a kind.
fn wrapped(names: &str) -> String {
    const WIDTH: usize = 84;
    let mut text = String::new();
    let mut column = 0;
    for name in names.split(' ') {
        if column > 0 && column + name.len() >= WIDTH {
            text.push_str("\n               ");
            column = 0;
        } else if column > 0 {
            text.push(' ');
        }
        text.push_str(name);
        column += name.len() + 1;
    }
    text
}

fn driver_value(ListedDriver { report, features, chains }: &ListedDriver) -> Value {
    let kinds = by_kind(&report.algorithms).into_iter();
    let algorithms: serde_json::Map<_, _> =
        kinds.map(|(kind, names)| (kind.to_owned(), json!(names))).collect();
    json!({
        "name": report.name,
        "place": place(report.place),
        "chosen": report.selection == Selection::Any,
        "queues": report.queued,
        "parallel": report.parallel,
        "algorithms": algorithms,
        "chains": chains,
        "features": features,
    })
}
