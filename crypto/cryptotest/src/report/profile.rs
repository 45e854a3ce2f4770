//! Where the time of operations went.

use crate::trial::{Profile, StageTimes};
use keyway_host::output::grouped;
use serde_json::{Value, json};
use std::fmt::Write;

/// A profile for people, lines below those of the figures.
pub(super) fn profile_text(profile: &Profile) -> String {
    let mut text = String::new();
    if profile.stages.is_empty() {
        text.push_str("\n  no request was timed");
    } else {
        let _ = write!(
            text,
            "\n  {:<24} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "NANOSECONDS", "MIN", "MEAN", "P50", "P99", "MAX", "REQUESTS"
        );
    }
    for StageTimes { driver, stage, nanoseconds: values } in &profile.stages {
        let _ = write!(
            text,
            "\n  {:<24} {:>10} {:>10.0} {:>10} {:>10} {:>10} {:>10}",
            format!("{driver} {stage}"),
            grouped(values.min),
            values.mean(),
            grouped(values.percentile(50.0)),
            grouped(values.percentile(99.0)),
            grouped(values.max),
            grouped(values.count),
        );
    }
    let _ = write!(
        text,
        "\n  timing them costs {:.0} ns an operation: {:.0} with it, {:.0} without",
        profile.cost(),
        profile.with,
        profile.without
    );
    text
}

/// A profile for programs.
pub(super) fn profile_value(profile: &Profile) -> Value {
    let stages = profile.stages.iter().map(|StageTimes { driver, stage, nanoseconds: values }| {
        json!({
            "driver": driver,
            "stage": stage,
            "requests": values.count,
            "min_ns": values.min,
            "mean_ns": values.mean(),
            "p50_ns": values.percentile(50.0),
            "p99_ns": values.percentile(99.0),
            "max_ns": values.max,
        })
    });
    json!({
        "stages": stages.collect::<Vec<_>>(),
        "ns_per_operation_with": profile.with,
        "ns_per_operation_without": profile.without,
        "cost_ns": profile.cost(),
    })
}
