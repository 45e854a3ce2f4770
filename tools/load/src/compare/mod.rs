//! Two results beside one another, and whether their difference is more than noise.

mod find;
mod row;

use crate::result::FIND;
use row::{Row, SURE, over_seconds, percentile, shown};
use serde_json::Value;

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
