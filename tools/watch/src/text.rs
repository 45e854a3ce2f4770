//! Numbers and cells of tables as text.

use serde_json::{Value, json};
use std::fmt::Write;

/// How a number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFormat {
    /// As it is, or with a letter for its thousands.
    Count,
    /// With one digit behind the point.
    Tenths,
    /// Nanoseconds.
    Time,
}

/// A number in its form.
#[must_use]
pub fn shown(form: NumberFormat, value: f64) -> String {
    match form {
        NumberFormat::Count => count(value),
        NumberFormat::Tenths => format!("{value:.1}"),
        NumberFormat::Time if value == 0.0 => "-".to_owned(),
        NumberFormat::Time => time(value as u64),
    }
}

/// A number in five characters.
#[must_use]
pub fn count(value: f64) -> String {
    for (from, by, letter) in
        [(99_949.5e9, 1e12, 'T'), (99_949.5e6, 1e9, 'G'), (99_949.5e3, 1e6, 'M')]
    {
        if value >= from {
            return format!("{:.0}{letter}", value / by);
        }
    }
    if value >= 99_999.5 { format!("{:.0}k", value / 1e3) } else { format!("{value:.0}") }
}

/// Nanoseconds in five characters; no more digits than a bucket knows.
#[must_use]
pub fn time(nanoseconds: u64) -> String {
    let mut value = nanoseconds as f64;
    for unit in ["ns", "us", "ms"] {
        if value < 999.5 {
            let digits = usize::from(unit != "ns" && value < 9.95);
            return format!("{value:.digits$}{unit}");
        }
        value /= 1000.0;
    }
    format!("{:.0}s", value.min(9999.0))
}

/// A rate for people, without digits behind the point.
#[must_use]
pub fn number(rate: f64) -> String {
    format!("{rate:.0}")
}

/// A rate for programs, with one digit behind the point.
#[must_use]
pub fn tenths(rate: f64) -> Value {
    json!((rate * 10.0).round() / 10.0)
}

/// A name, on a line of its own if it is too long for its column, and what stands right of it.
#[must_use]
pub fn row(name: &str, width: usize, cells: &str) -> String {
    if name.len() > width {
        return format!("{name}\n{:width$} {cells}", "");
    }
    format!("{name:<width$} {cells}")
}

/// As wide as the column's name and as six digits, with a gap.
#[must_use]
pub fn cell(text: &str, column: &str) -> String {
    let mut cell = String::new();
    // Writing to a String cannot fail.
    let _ = write!(cell, "{text:>width$}", width = column.len().max(6) + 1);
    cell
}

/// So many characters of it.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_five_characters() {
        let shown = [0, 999, 1_000, 9_949, 9_950, 999_499, 999_500, 61_000_000_000].map(time);
        assert_eq!(shown, ["0ns", "999ns", "1.0us", "9.9us", "10us", "999us", "1.0ms", "61s"]);
        assert!((0..64).all(|bits| time(u64::MAX >> bits).len() <= 5));
    }

    #[test]
    fn numbers_are_five_characters() {
        let shown = [0.0, 7.4, 99_999.0, 100_000.0, 99_949_400.0, 1e8, 3e11, 5e14].map(count);
        assert_eq!(shown, ["0", "7", "99999", "100k", "99949k", "100M", "300G", "500T"]);
        assert_eq!(super::shown(NumberFormat::Time, 0.0), "-");
    }
}
