//! Two results beside one another, and whether their difference is more than noise.

mod find;

use crate::format::{grouped, time};
use crate::latencies::Latencies;
use crate::result::{FIND, histogram};
use serde_json::Value;
use std::fmt::Write as _;

/// Standard errors that a difference must exceed.
const SURE: f64 = 3.0;

/// One figure of both.
struct Row {
    name: String,
    one: f64,
    other: f64,
    /// Differences below this are noise.
    noise: f64,
    is_time: bool,
}

/// Both beside one another.
///
/// # Errors
/// Why they cannot be compared.
pub fn table(one: &Value, other: &Value) -> Result<String, String> {
    match (one["kind"] == FIND, other["kind"] == FIND) {
        (false, false) => Ok(runs(one, other)),
        (true, true) => find::searches(one, other),
        (is_first, _) => {
            let [search, run] = if is_first { ["A", "B"] } else { ["B", "A"] };
            Err(format!(
                "{search} is a search for the knee, and {run} is a run: compare two of a kind"
            ))
        }
    }
}

/// A table of both, with the noise of each figure: what the figure varies by within the runs.
///
/// For rates that is the spread from second to second; for percentiles the order statistics around
/// them, spread further by as much as seconds differ.
fn runs(one: &Value, other: &Value) -> String {
    let mut rows = vec![rate(one, other)];
    rows.push(errors(one, other));
    for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        rows.push(percentile("all", name, quantile, (one, other), ("p50_ms", "p99_ms")));
    }
    for job in one["jobs"].as_array().into_iter().flatten() {
        let same = |found: &&Value| found["name"] == job["name"];
        let mut others = other["jobs"].as_array().into_iter().flatten();
        let (Some(found), Some(name)) = (others.find(same), job["name"].as_str()) else { continue };
        for (percentile_name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            rows.push(percentile(name, percentile_name, quantile, (job, found), ("", "")));
        }
    }
    let mut text = shown(&rows);
    text.push_str(
        "One run of each says how the figures vary within it, and nothing of how they vary from run \
         to run: repeat both before you believe a small difference.",
    );
    text
}

/// Rows below their heading.
fn shown(rows: &[Row]) -> String {
    let mut text = format!(
        "{:24} {:>12} {:>12} {:>10} {:>10}  VERDICT\n",
        "FIGURE", "A", "B", "CHANGE", "NOISE"
    );
    for row in rows {
        let figure = |value: f64| match row.is_time {
            true => time(value),
            false => grouped(value),
        };
        let change = row.other - row.one;
        let part = |value: f64| match row.one > 0.0 {
            true => format!("{:.1} %", 100.0 * value / row.one),
            false => "-".to_owned(),
        };
        let verdict = match change.abs() > row.noise {
            false => "within the noise",
            true if change > 0.0 => "B is higher",
            true => "B is lower",
        };
        // Into memory it cannot fail.
        let _ = writeln!(
            text,
            "{:24} {:>12} {:>12} {:>10} {:>10}  {verdict}",
            row.name,
            figure(row.one),
            figure(row.other),
            part(change),
            part(row.noise),
        );
    }
    text
}

/// The mean of a figure over whole seconds, and its standard error.
fn over_seconds(result: &Value, key: &str) -> (f64, f64) {
    let seconds = result["seconds"].as_array().map_or(&[][..], Vec::as_slice);
    // The last one is short.
    let whole = seconds.get(..seconds.len().saturating_sub(1)).unwrap_or_default();
    let values: Vec<f64> = whole.iter().filter_map(|second| second[key].as_f64()).collect();
    let count = values.len() as f64;
    if count < 2.0 {
        return (values.first().copied().unwrap_or_default(), f64::INFINITY);
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

fn rate(one: &Value, other: &Value) -> Row {
    let value = |result: &Value| result["rate"].as_f64().unwrap_or_default();
    let error = over_seconds(one, "done").1.hypot(over_seconds(other, "done").1);
    let (one, other) = (value(one), value(other));
    Row { name: "rate (/s)".into(), one, other, noise: SURE * error, is_time: false }
}

fn errors(one: &Value, other: &Value) -> Row {
    let count = |result: &Value| result["errors"].as_f64().unwrap_or_default();
    let (one, other) = (count(one), count(other));
    // Counts vary by their square roots.
    Row { name: "errors".into(), one, other, noise: SURE * (one + other).sqrt(), is_time: false }
}

fn percentile(
    job: &str,
    name: &str,
    quantile: f64,
    (one, other): (&Value, &Value),
    keys: (&str, &str),
) -> Row {
    let key = if quantile > 0.5 { keys.1 } else { keys.0 };
    let read = |result: &Value| {
        let times = histogram(&result["response"]);
        let (mean, error) = over_seconds(result, key);
        let relative = if mean > 0.0 && error.is_finite() { error / mean } else { 0.0 };
        let value = times.value_at_quantile(quantile) as f64;
        (value, spread(&times, quantile).max(SURE * relative * value))
    };
    let ((a, noise_a), (b, noise_b)) = (read(one), read(other));
    let noise = noise_a.hypot(noise_b);
    Row { name: format!("{job} {name}"), one: a, other: b, noise, is_time: true }
}

/// How far the order statistics are apart between which a percentile lies almost surely.
fn spread(times: &Latencies, quantile: f64) -> f64 {
    let count = times.len().max(1) as f64;
    let error = SURE * (quantile * (1.0 - quantile) / count).sqrt();
    let at = |quantile: f64| times.value_at_quantile(quantile.clamp(0.0, 1.0)) as f64;
    (at(quantile + error) - at(quantile - error)) / 2.0
}
