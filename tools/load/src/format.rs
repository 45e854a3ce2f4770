//! Numbers and times as people read them.

/// A time given in nanoseconds, in three figures and a unit.
#[must_use]
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        _ if ns < 999.5 => (ns, "ns"),
        _ if ns < 999.5e3 => (ns / 1e3, "us"),
        _ if ns < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}

/// A number with its thousands apart.
#[must_use]
pub fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}").into_bytes();
    let groups = digits.rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_figures() {
        let times = [
            (0.0, "0.00 ns"),
            (1_500.0, "1.50 us"),
            (12_340.0, "12.3 us"),
            (999_600.0, "1.00 ms"),
            (123_400_000.0, "123 ms"),
            (2.5e9, "2.50 s"),
        ];
        for (ns, text) in times {
            assert_eq!(time(ns), text);
        }
        assert_eq!(grouped(1_234_567.0), "1,234,567");
    }
}
