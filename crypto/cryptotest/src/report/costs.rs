//! The cost of work on each driver, and which is the first to finish it.

use crate::list::{Crossover, crossovers};
use keyway_engine::{CostReport, DriverReport, Linear};
use keyway_host::output::grouped;
use serde_json::{Value, json};
use std::fmt::Write;

/// Costs for people: a table, and who is first at what size below it.
pub(super) fn costs_text(reports: &[DriverReport], costs: &[CostReport]) -> String {
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
    let crossovers = crossovers(reports, costs);
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

/// A cost for programs.
pub(super) fn cost_value(cost: &CostReport) -> Value {
    let linear = |line: Linear| json!({ "fixed_ns": line.fixed, "ns_per_byte": line.per_byte });
    let [single, batched] = &cost.corrections;
    json!({
        "driver": cost.driver,
        "work": cost.work,
        "single": linear(cost.single),
        "batched": linear(cost.batched),
        "corrections": { "single": single, "batched": batched },
    })
}

/// Which driver is first, for programs.
pub(super) fn crossover_value(Crossover { work, first }: &Crossover) -> Value {
    let piece = |(from, driver): &(u64, String)| json!({ "from_bytes": from, "driver": driver });
    json!({ "work": work, "first": first.iter().map(piece).collect::<Vec<_>>() })
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
