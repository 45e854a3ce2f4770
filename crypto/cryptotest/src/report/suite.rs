//! The findings of the conformance suite on a driver.

use keyway_conformance::{Check, Outcome, Report};
use keyway_host::output::grouped;
use serde_json::{Value, json};
use std::fmt::Write;

/// Failures of the suite that are shown to people.
const FAILURES_SHOWN: usize = 20;

/// A check, over all works.
#[derive(Default)]
struct CheckSums {
    passed: u64,
    skipped: u64,
    failed: u64,
    cases: u64,
    seconds: f64,
}

/// The checks in the order in which they were begun.
fn rows(report: &Report) -> Vec<(&str, CheckSums)> {
    let mut rows: Vec<(&str, CheckSums)> = Vec::new();
    for check in &report.checks {
        if rows.iter().all(|(name, _)| *name != check.name) {
            rows.push((check.name, CheckSums::default()));
        }
        let Some((_, row)) = rows.iter_mut().find(|(name, _)| *name == check.name) else {
            continue;
        };
        row.seconds += check.nanoseconds as f64 * 1e-9;
        match &check.outcome {
            Outcome::Passed { cases } => {
                row.passed += 1;
                row.cases += *cases as u64;
            }
            Outcome::Skipped { .. } => row.skipped += 1,
            Outcome::Failed { .. } => row.failed += 1,
        }
    }
    rows
}

/// The suite's findings, for people.
#[must_use]
pub fn suite_text(driver: &str, report: &Report) -> String {
    let rows = rows(report);
    let mut text = format!(
        "{:<12} {:>7} {:>8} {:>7} {:>9} {:>8}",
        "CHECK", "PASSED", "SKIPPED", "FAILED", "CASES", "SECONDS"
    );
    for (name, CheckSums { passed, skipped, failed, cases, seconds }) in &rows {
        let cases = grouped(*cases);
        let _ = write!(
            text,
            "\n{name:<12} {passed:>7} {skipped:>8} {failed:>7} {cases:>9} {seconds:>8.2}"
        );
    }
    for failure in report.failures().take(FAILURES_SHOWN) {
        let _ = write!(text, "\n{failure}");
    }
    let unshown = report.failures().count().saturating_sub(FAILURES_SHOWN);
    if unshown > 0 {
        let _ = write!(text, "\n... and {} more; --json has them all", grouped(unshown as u64));
    }
    let verdict = if report.passed() { "conforms" } else { "does NOT conform" };
    let _ = write!(text, "\n{driver} {verdict}");
    text
}

/// The suite's findings, for programs.
#[must_use]
pub fn suite_value(driver: &str, report: &Report) -> Value {
    let check = |check: &Check| {
        let mut value = json!({
            "check": check.name,
            "work": check.work,
            "seconds": check.nanoseconds as f64 * 1e-9,
        });
        let (outcome, more) = match &check.outcome {
            Outcome::Passed { cases } => ("passed", json!({ "cases": cases })),
            Outcome::Skipped { why } => ("skipped", json!({ "why": why })),
            Outcome::Failed { why, case } => ("failed", json!({ "why": why, "case": case })),
        };
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.insert("outcome".to_owned(), json!(outcome));
            value.extend(more);
        }
        value
    };
    json!({
        "driver": driver,
        "conforms": report.passed(),
        "checks": report.checks.iter().map(check).collect::<Vec<_>>(),
    })
}
