//! `keyway crypto list`: the drivers, what they do, what their work costs, and where it pays to
//! take another.

use super::arguments::List;
use super::shared::say;
use crate::crypto::failed::failed;
use keyway_cryptotest::{Crossover, chains, drivers, engine, features, known};
use keyway_engine::{Algorithm, CostReport, DriverReport, Kind, Linear, Place, Selection};
use keyway_host::failure::Failure;
use keyway_host::output::grouped;
use serde_json::{Value, json};
use std::fmt::Write;

/// Chains that are shown to people; programs see them all.
const CHAINS_SHOWN: usize = 4;

/// Shows what there is; nothing can be wrong with that.
///
/// # Errors
/// If a driver cannot be made, or a name is nobody's.
pub fn run(arguments: &List) -> Result<bool, Failure> {
    let drivers = drivers(&arguments.more.with).map_err(failed)?;
    known(&arguments.drivers, &drivers).map_err(failed)?;
    let engine = engine(&drivers, arguments.more.legacy).map_err(failed)?;
    let wanted = |name: &str| {
        arguments.drivers.is_empty() || arguments.drivers.iter().any(|driver| driver == name)
    };
    let asked = |algorithm: &Algorithm| {
        let allowed = arguments.more.legacy || !algorithm.is_legacy();
        allowed && (arguments.algorithms.is_empty() || arguments.algorithms.contains(algorithm))
    };
    let mut shown = Vec::new();
    for (driver, mut report) in drivers.iter().zip(engine.drivers()) {
        report.algorithms.retain(&asked);
        if wanted(&report.name) {
            shown.push(Shown { features: features(driver), chains: chains(driver, asked), report });
        }
    }
    let costs = arguments.costs.then(|| {
        let is_asked = |cost: &CostReport| cost.work.parse().is_ok_and(|work| asked(&work));
        let mut costs = engine.costs(true);
        costs.retain(|cost| wanted(&cost.driver) && is_asked(cost));
        costs
    });
    if arguments.json {
        say(as_json(&shown, costs.as_deref()))?;
        return Ok(true);
    }
    say(as_text(&shown))?;
    if let Some(costs) = costs {
        say(costs_text(&shown, &costs))?;
    }
    Ok(true)
}

/// A driver, with what the engine does not know of it.
struct Shown {
    report: DriverReport,
    features: Vec<String>,
    /// Chains that it does whole.
    chains: Vec<String>,
}

fn place(place: Place) -> &'static str {
    match place {
        Place::Caller => "caller",
        Place::Host => "host",
        Place::Device => "device",
    }
}

fn selection(selection: Selection) -> &'static str {
    match selection {
        Selection::Any => "yes",
        Selection::Named => "by name",
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Aead => "aead",
        Kind::Packet => "packet",
        Kind::Mask => "mask",
        Kind::Cipher => "cipher",
        Kind::Compression => "compression",
        Kind::Hash => "hash",
        Kind::Mac => "mac",
        Kind::Hkdf => "hkdf",
        Kind::Exchange => "exchange",
        Kind::Kem => "kem",
        Kind::Signature => "signature",
        Kind::Encryption => "encryption",
        Kind::Random => "random",
        Kind::Password => "password",
    }
}

/// The algorithms by kind, in the order of declaration.
fn by_kind(algorithms: &[Algorithm]) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
    for algorithm in algorithms {
        let kind = kind(algorithm.kind());
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, names)) => names.push(algorithm.name()),
            None => kinds.push((kind, vec![algorithm.name()])),
        }
    }
    kinds
}

fn as_text(shown: &[Shown]) -> String {
    let mut text =
        format!("{:<14} {:<7} {:<8} {:>8}  FEATURES", "DRIVER", "PLACE", "CHOSEN", "PARALLEL");
    for Shown { report, features, .. } in shown {
        let DriverReport { name, parallel, .. } = report;
        let (place, selection) = (place(report.place), selection(report.selection));
        let features = features.join(", ");
        let _ = write!(text, "\n{name:<14} {place:<7} {selection:<8} {parallel:>8}  {features}");
    }
    for Shown { report, chains, .. } in shown {
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

fn costs_text(shown: &[Shown], costs: &[CostReport]) -> String {
    let mut text = format!(
        "\n{:<14} {:<22} {:>12} {:>10} {:>12} {:>10}  CORRECTIONS\n{:<14} {:<22} {:>12} {:>10} {:>12} \
         {:>10}  where a size class has one",
        "DRIVER",
        "ALGORITHM",
        "SINGLE ns",
        "+ ns/byte",
        "BATCHED ns",
        "+ ns/byte",
        "",
        "",
        "",
        "",
        "",
        ""
    );
    for cost in costs {
        let CostReport { driver, work, single, batched, .. } = cost;
        let _ = write!(
            text,
            "\n{driver:<14} {work:<22} {:>12.0} {:>10.3} {:>12.0} {:>10.3}  {}",
            single.fixed,
            single.per_byte,
            batched.fixed,
            batched.per_byte,
            corrections(cost)
        );
    }
    let crossovers = crossovers(shown, costs);
    if !crossovers.is_empty() {
        text.push_str("\n\nWho finishes a lone request first, among those that are chosen:");
    }
    for Crossover { work, first } in crossovers {
        let _ = write!(text, "\n  {work:<22} {}", first_text(&first));
    }
    text
}

fn first_text(first: &[(u64, String)]) -> String {
    let mut text = String::new();
    for (index, (from, driver)) in first.iter().enumerate() {
        let _ = match index {
            0 => write!(text, "{driver}"),
            _ => write!(text, ", from {} bytes on {driver}", grouped(*from)),
        };
    }
    if first.len() == 1 {
        text.push_str(" at every size");
    }
    text
}

/// Corrections that are not 1, by the largest size of their class.
fn corrections(cost: &CostReport) -> String {
    let mut parts = Vec::new();
    for (name, factors) in ["single", "batched"].iter().zip(&cost.corrections) {
        for (class, factor) in factors.iter().enumerate() {
            if (factor - 1.0).abs() > 0.005 {
                let size = match class + 1 == factors.len() {
                    false => format!("<={}", 64u64 << (2 * class)),
                    true => "more".to_owned(),
                };
                parts.push(format!("{name} {size}: x{factor:.2}"));
            }
        }
    }
    parts.join(", ")
}

fn crossovers(shown: &[Shown], costs: &[CostReport]) -> Vec<Crossover> {
    let reports: Vec<_> = shown.iter().map(|shown| shown.report.clone()).collect();
    keyway_cryptotest::crossovers(&reports, costs)
}

fn as_json(shown: &[Shown], costs: Option<&[CostReport]>) -> Value {
    let drivers = shown.iter().map(|Shown { report, features, chains }| {
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
    });
    let mut value = json!({ "drivers": drivers.collect::<Vec<_>>() });
    if let (Some(costs), Some(object)) = (costs, value.as_object_mut()) {
        let linear = |line: Linear| json!({ "fixed_ns": line.fixed, "ns_per_byte": line.per_byte });
        let rows = costs.iter().map(|cost| {
            let [single, batched] = &cost.corrections;
            json!({
                "driver": cost.driver,
                "work": cost.work,
                "single": linear(cost.single),
                "batched": linear(cost.batched),
                "corrections": { "single": single, "batched": batched },
            })
        });
        object.insert("costs".to_owned(), rows.collect());
        let crossovers = crossovers(shown, costs).into_iter().map(|Crossover { work, first }| {
            let pieces = first.iter();
            let pieces =
                pieces.map(|(from, driver)| json!({ "from_bytes": from, "driver": driver }));
            json!({ "work": work, "first": pieces.collect::<Vec<_>>() })
        });
        object.insert("crossovers".to_owned(), crossovers.collect());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_first_is_said_in_words() {
        let first = |pieces: &[(u64, &str)]| {
            let pieces = pieces.iter().map(|(from, name)| (*from, (*name).to_owned()));
            first_text(&pieces.collect::<Vec<_>>())
        };
        assert_eq!(first(&[(1, "near")]), "near at every size");
        let text = "near, from 1,800 bytes on between, from 22,500 bytes on far";
        assert_eq!(first(&[(1, "near"), (1_800, "between"), (22_500, "far")]), text);
    }
}
