//! Two searches for the knee beside one another.

use super::{Row, percentile, shown};
use crate::format::grouped;
use serde_json::Value;

/// How far two knees have to be apart, where no other rate lies between: a search looks no closer.
const NEAR: f64 = 1.05;

/// The knees, and the latencies at rates that both have tried.
///
/// # Errors
/// If they looked for different things.
pub(super) fn searches(one: &Value, other: &Value) -> Result<String, String> {
    for (key, what) in
        [("until", "until the rule"), ("hold_s", "holding each rate for, in seconds,")]
    {
        if one[key] != other[key] {
            return Err(format!(
                "these searches looked for different things: A {what} {}, B {what} {}; search again with \
                 the same",
                one[key], other[key]
            ));
        }
    }
    let mut text = format!("A: {}\nB: {}\n{}\n", words(one), words(other), knees(one, other));
    let rows = common(one, other);
    if rows.is_empty() {
        text.push_str("No rate was tried by both.");
        return Ok(text);
    }
    text.push_str("\nAt the rates that both have tried:\n");
    text.push_str(&shown(&rows));
    text.push_str(
        "The noise is what a figure varies by within a trial, and nothing of how it varies from search to \
         search: repeat both before you believe a small difference.",
    );
    Ok(text)
}

fn words(result: &Value) -> &str {
    result["verdict"].as_str().unwrap_or("no verdict")
}

/// The higher of two knees, if that can be said: each lies between the highest rate that was good and the
/// lowest that was not.
fn knees(one: &Value, other: &Value) -> String {
    let between = |result: &Value| Some((result["good"].as_f64()?, result["bad"].as_f64()?));
    for (name, result) in [("A", one), ("B", other)] {
        let was_cut = result["interrupted"] == true || result["ended_by"].is_string();
        if was_cut || result["confirmed"] != true {
            return format!(
                "Which knee is higher cannot be said: {name} did not find one for sure."
            );
        }
        if limited(result) {
            return format!(
                "Which knee is higher cannot be said: in {name} the client may have been the limit."
            );
        }
    }
    match (between(one), between(other)) {
        (Some((a, bad)), Some((b, _))) if b > NEAR * a && b >= bad => higher("B", a, b),
        (Some((a, _)), Some((b, bad))) if a > NEAR * b && a >= bad => higher("A", b, a),
        (Some(_), Some(_)) => {
            "The knees are too near to one another to say which is higher.".to_owned()
        }
        (None, Some((b, _))) if one["good"].as_f64() > Some(b) => {
            "A's knee is higher: it found no limit.".to_owned()
        }
        (Some((a, _)), None) if other["good"].as_f64() > Some(a) => {
            "B's knee is higher: it found no limit.".to_owned()
        }
        _ => "Which knee is higher cannot be said: there is no limit that both have found."
            .to_owned(),
    }
}

fn higher(name: &str, low: f64, high: f64) -> String {
    format!(
        "{name}'s knee is higher by {:.0} %: {}/s against {}/s.",
        100.0 * (high / low - 1.0),
        grouped(high),
        grouped(low)
    )
}

/// Whether the lowest rate that was too much may have been so for the client only.
fn limited(result: &Value) -> bool {
    let bad = |probe: &&Value| probe["good"] != true && probe["rate"] == result["bad"];
    probes(result).filter(bad).any(|probe| probe["client_limit"].is_string())
}

fn probes(result: &Value) -> impl Iterator<Item = &Value> {
    result["probes"].as_array().into_iter().flatten()
}

/// p50 and p99 at each rate at which both had answers, once for each.
fn common(one: &Value, other: &Value) -> Vec<Row> {
    let has_times = |probe: &&Value| probe["p50_ms"].is_number();
    let mut rows = Vec::new();
    let mut seen: Vec<&Value> = Vec::new();
    for probe in probes(one).filter(has_times) {
        let rate = &probe["rate"];
        let same = probes(other).filter(has_times).find(|other| other["rate"] == *rate);
        let Some(same) = same.filter(|_| !seen.contains(&rate)) else { continue };
        seen.push(rate);
        let name = format!("{}/s", grouped(rate.as_f64().unwrap_or_default()));
        for (percentile_name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let keys = ("p50_ms", "p99_ms");
            rows.push(percentile(&name, percentile_name, quantile, (probe, same), keys));
        }
    }
    rows
}
