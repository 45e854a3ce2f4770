//! Points in time as the account's state has them: microseconds since 1970 in UTC.

use keyway_codec::syntax::MatchingRule;
use keyway_schema::Schema;
use keyway_schema::operational::generalized_time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds in a second.
pub const SECOND: u64 = 1_000_000;

/// Microseconds from 1970 to a time; 0 for any before.
pub fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A GeneralizedTime (RFC 4517 § 3.3.13) in microseconds since 1970; `None` if it is none.
pub fn parse(schema: &Schema, value: &[u8]) -> Option<u64> {
    let normal = schema.normalize(MatchingRule::GeneralizedTime, value)?;
    let digits = |from: usize, to: usize| -> Option<u64> {
        str::from_utf8(normal.get(from..to)?).ok()?.parse().ok()
    };
    let days = days(digits(0, 4)?, digits(4, 6)?, digits(6, 8)?);
    let seconds = digits(8, 10)? * 3_600 + digits(10, 12)? * 60 + digits(12, 14)?;
    let Some(days) = days else { return Some(0) };
    let fraction = normal.get(15..).unwrap_or_default().iter().take(6);
    let scale = [100_000, 10_000, 1_000, 100, 10, 1];
    let micros: u64 =
        fraction.zip(scale).map(|(digit, scale)| u64::from(digit.wrapping_sub(b'0')) * scale).sum();
    Some((days * 86_400 + seconds) * SECOND + micros)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar; `None` if it was before.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    // Counted from 0000-03-01, so that a leap day is the last of its year.
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    (year * 365 + leap_days + (153 * month + 2) / 5 + day).checked_sub(719_469)
}

/// The time to the second.
pub fn seconds(micros: u64) -> String {
    generalized_time(UNIX_EPOCH + Duration::from_micros(micros))
}

/// The time to the microsecond, so that two that follow each other are two values.
pub fn exact(micros: u64) -> String {
    let whole = seconds(micros);
    format!("{}.{:06}Z", whole.trim_end_matches('Z'), micros % SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let schema = Schema::standard().unwrap();
        for time in [0, 1, 999_999, 951_782_400 * SECOND, 951_868_799 * SECOND + 500_000] {
            assert_eq!(parse(&schema, exact(time).as_bytes()), Some(time));
            assert_eq!(parse(&schema, seconds(time).as_bytes()), Some(time / SECOND * SECOND));
        }
        for day in (0..80_000).step_by(13) {
            let time = day * 86_400 * SECOND;
            assert_eq!(parse(&schema, seconds(time).as_bytes()), Some(time));
        }
    }

    #[test]
    fn other_forms() {
        let schema = Schema::standard().unwrap();
        let parse = |text: &str| parse(&schema, text.as_bytes());
        assert_eq!(parse("197001010100+0100"), Some(0));
        assert_eq!(parse("1970010100.5Z"), Some(1_800 * SECOND));
        assert_eq!(parse("000001010000Z"), Some(0));
        assert_eq!(parse("19690101000000Z"), Some(0));
        assert_eq!(parse("soon"), None);
    }
}
