//! How fast an operation was, and whether it was right.

use super::profile::{profile_text, profile_value};
use crate::trial::Figures;
use keyway_engine::Engine;
use keyway_host::output::grouped;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The heading of a table of figures.
#[must_use]
pub fn figures_heading() -> String {
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

/// A row of a table of figures; of a key of so many bits, if it is RSA's.
#[must_use]
pub fn figures_text(figures: &Figures, bits: Option<u32>) -> String {
    let run: u64 = figures.drivers.iter().map(|(_, operations)| operations).sum();
    let share = |(name, operations): &(String, u64)| match figures.drivers.len() {
        1 => name.clone(),
        _ => format!("{name} {:.0}%", 100.0 * *operations as f64 / run.max(1) as f64),
    };
    let drivers: Vec<_> = figures.drivers.iter().map(share).collect();
    let sized = |text: String| if figures.work.is_sized() { text } else { "-".to_owned() };
    let mut text = format!(
        "{:<30} {:<11} {:>8} {:>11} {:>15} {:>8.3} {:>10.3} {:>10} {:>5.1}% {:>7}  {}",
        bits.map_or(figures.work.to_string(), |bits| format!("{} {bits}", figures.work)),
        figures.work.verb(),
        sized(grouped(figures.bytes as u64)),
        grouped(figures.operations),
        sized(grouped(figures.bytes_in_all())),
        figures.seconds,
        figures.us_per_operation(),
        sized(format!("{:.1}", figures.mbit_per_second())),
        100.0 * figures.busy,
        grouped(figures.errors_in_all()),
        drivers.join(", "),
    );
    for (name, number) in &figures.errors {
        let _ = write!(text, "\n  {} {name}", grouped(*number));
    }
    if let Some(profile) = &figures.profile {
        text.push_str(&profile_text(profile));
    }
    text
}

/// Figures for programs.
#[must_use]
pub fn figures_value(figures: &Figures, bits: Option<u32>) -> Value {
    let drivers: Map<_, _> =
        figures.drivers.iter().map(|(name, number)| (name.clone(), json!(number))).collect();
    json!({
        "work": figures.work.to_string(),
        "operation": figures.work.verb(),
        "rsa_bits": bits,
        "bytes": figures.bytes,
        "operations": figures.operations,
        "bytes_in_all": figures.bytes_in_all(),
        "seconds": figures.seconds,
        "us_per_operation": figures.us_per_operation(),
        "operations_per_second": figures.per_second,
        "mbit_per_second": figures.mbit_per_second(),
        "busy_share": figures.busy,
        "errors": figures.errors,
        "drivers": drivers,
        "profile": figures.profile.as_ref().map(profile_value),
    })
}

/// High-water marks of requests on drivers that work beside the caller, since the engine was made.
#[must_use]
pub fn pending_value(engine: &Engine) -> Value {
    let drivers = engine.drivers().into_iter().filter(|driver| driver.pending_most > 0);
    let drivers: Map<_, _> =
        drivers.map(|driver| (driver.name, json!(driver.pending_most))).collect();
    json!({ "in_all": engine.pending_most(), "drivers": drivers })
}

/// The marks in words.
#[must_use]
pub fn pending_text(marks: &Value) -> String {
    let drivers = marks["drivers"].as_object().into_iter().flatten();
    let drivers: Vec<_> = drivers.map(|(name, most)| format!("{name} {most}")).collect();
    format!("{}; {} in all", drivers.join(", "), marks["in_all"])
}
