//! A row of a comparison, and the table that rows make.

use crate::format::{grouped, time};
use crate::latencies::Latencies;
use crate::result::histogram;
use serde_json::Value;
use std::fmt::Write as _;

/// Standard errors that a difference must exceed.
pub(super) const SURE: f64 = 3.0;

/// One figure of both.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) one: f64,
    pub(super) other: f64,
    /// Differences below this are noise.
    pub(super) noise: f64,
    pub(super) is_time: bool,
}

/// Rows below their heading.
pub(super) fn shown(rows: &[Row]) -> String {
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

pub(super) fn percentile(
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
pub(super) fn spread(times: &Latencies, quantile: f64) -> f64 {
    let count = times.len().max(1) as f64;
    let error = SURE * (quantile * (1.0 - quantile) / count).sqrt();
    let at = |quantile: f64| times.value_at_quantile(quantile.clamp(0.0, 1.0)) as f64;
    (at(quantile + error) - at(quantile - error)) / 2.0
}

/// The mean of a figure over whole seconds, and its standard error.
pub(super) fn over_seconds(result: &Value, key: &str) -> (f64, f64) {
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
