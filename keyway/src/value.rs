//! Values of flags as all commands read them: times, numbers, bytes.

use keyway_host::timestamp::{now_unix_us, parse_unix_us};
use keyway_load::duration;
use std::time::Duration;

/// Reads a time: `90s`, `1m30s`, `250ms`, `2h`, `1d`, or a number of seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    let seconds = || {
        let seconds = text.replace('_', "").parse::<f64>().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    };
    duration(text)
        .or_else(seconds)
        .filter(|time| *time <= keyway_load::limits::PHASE_MAX)
        .ok_or_else(|| {
            "it is no time of a week at most, such as 30s, 1m30s, 250ms, 2h or 1d".to_owned()
        })
}

/// Reads a moment: a time of RFC 3339 or its beginning, which is UTC without an offset, or so long ago. In microseconds
/// since 1970.
pub fn moment(text: &str) -> Result<u64, String> {
    let ago = || {
        let ago = u64::try_from(duration(text)?.as_micros()).ok()?;
        now_unix_us().checked_sub(ago)
    };
    parse_unix_us(text).or_else(ago).ok_or_else(|| {
        "it is neither a time, like 2026-11-24T08:30 (UTC) or 2026-11-24T08:30+01:00, nor 30s, 15m, 1h30m or 7d"
            .to_owned()
    })
}

/// Reads a [`time()`] that is more than none.
pub fn some_time(text: &str) -> Result<Duration, String> {
    let more = time(text)?;
    if more.is_zero() { Err("it should be more than 0".to_owned()) } else { Ok(more) }
}

/// Reads a [`time()`] in seconds, within bounds.
pub fn seconds_within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let seconds = time(text)?.as_secs_f64();
    match (least..=most).contains(&seconds) {
        true => Ok(seconds),
        false => Err(format!("it is not a time from {least}s to {most}s")),
    }
}

/// Reads a number, with k, M or G (or K, m, g) for thousands, millions and milliards: `5000`, `5_000`, `5k`,
/// `2.5M`.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || "it is not a number like 5000, 5k or 5M".to_owned();
    let (digits, factor) = factor(text, 1_000);
    let digits = digits.replace('_', "");
    match digits.split_once('.') {
        None => {
            let number: Option<u64> = digits.parse().ok();
            number.and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)
        }
        Some(_) if factor == 1 => Err(wrong()),
        // Whole once it is multiplied: 2.5M is a number, 0.0001k is none.
        Some((whole, part)) => {
            let digit = |c: char| c.is_ascii_digit();
            if part.is_empty() || !part.chars().all(digit) || part.len() > 9 {
                return Err(wrong());
            }
            let below = 10_u64.pow(part.len() as u32);
            let part: u64 = part.parse().map_err(|_| wrong())?;
            let whole: u64 = whole.parse().map_err(|_| wrong())?;
            let more = part.checked_mul(factor).filter(|it| it % below == 0).map(|it| it / below);
            let all = whole.checked_mul(factor).and_then(|whole| whole.checked_add(more?));
            all.ok_or_else(wrong)
        }
    }
}

/// Reads a [`count`] for clap, within bounds.
pub fn count_within<const LEAST: u64, const MOST: u64>(text: &str) -> Result<u64, String> {
    let number = count(text)?;
    match (LEAST..=MOST).contains(&number) {
        true => Ok(number),
        false if MOST == u64::MAX => Err(format!("it should be {LEAST} or more")),
        false => Err(format!("it is not a number from {LEAST} to {MOST}")),
    }
}

/// Reads a [`count_within`] that is small.
pub fn small_within<const LEAST: u64, const MOST: u64>(text: &str) -> Result<u16, String> {
    let number = count_within::<LEAST, MOST>(text)?;
    u16::try_from(number).map_err(|_| format!("it is not a number from {LEAST} to {}", u16::MAX))
}

/// Reads a [`count`] of rows, lines or threads, within bounds.
pub fn size_within<const LEAST: u64, const MOST: u64>(text: &str) -> Result<usize, String> {
    let number = count_within::<LEAST, MOST>(text)?;
    usize::try_from(number)
        .map_err(|_| format!("it is not a number from {LEAST} to {}", usize::MAX))
}

/// Reads a number of bytes, with k, M or G for 1,024 of them, 1,024 times that, and so on: `64`, `4k`, `10G`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = factor(text, 1_024);
    let bytes = digits.replace('_', "").parse::<u64>().ok();
    bytes
        .and_then(|bytes| bytes.checked_mul(factor))
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "it is not a number of bytes, like 1000000, 512k, 100M or 10G".to_owned())
}

/// Digits, and what their suffix multiplies them by.
fn factor(text: &str, thousand: u64) -> (&str, u64) {
    for (suffixes, power) in [(['k', 'K'], 1), (['m', 'M'], 2), (['g', 'G'], 3)] {
        if let Some(digits) = text.strip_suffix(suffixes) {
            return (digits, thousand.pow(power));
        }
    }
    (text, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let ms = |text| time(text).map(|time| time.as_millis());
        for (text, expected) in [
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("1h0.5m", 3_630_000),
            ("250ms", 250),
            ("1d", 86_400_000),
            ("2.5", 2_500),
            ("0s", 0),
        ] {
            assert_eq!(ms(text), Ok(expected), "{text}");
        }
        for bad in ["", "s", "30x", "1m30", "30s1m", "1s1s", "-1s", "1e3s", "8d", "inf", "nan"] {
            assert!(time(bad).is_err(), "{bad}");
        }
        assert!(some_time("0s").is_err() && seconds_within("2h", 0.1, 60.0).is_err());
    }

    #[test]
    fn numbers() {
        for (text, expected) in [
            ("0", 0),
            ("5_000", 5_000),
            ("5k", 5_000),
            ("5M", 5_000_000),
            ("2.5M", 2_500_000),
            ("1g", 1_000_000_000),
        ] {
            assert_eq!(count(text), Ok(expected), "{text}");
        }
        for bad in ["", "k", "-1", "1.5", "0.0001k", "1.k", "99999999999G", "5Mk", "5x", "é"] {
            assert!(count(bad).is_err(), "{bad}");
        }
        assert_eq!(count_within::<1, 100>("100"), Ok(100));
        assert!(count_within::<1, 100>("1k").is_err());
        assert_eq!((small_within::<1, 100>("99"), size_within::<1, 100>("100")), (Ok(99), Ok(100)));
        for bad in ["0", "101", "x", ""] {
            assert!(small_within::<1, 100>(bad).is_err() && size_within::<1, 100>(bad).is_err());
        }
        assert_eq!((bytes("7"), bytes("2k"), bytes("10G")), (Ok(7), Ok(2_048), Ok(10 << 30)));
        for bad in ["", "0", "k", "-1", "1T", "99999999999G", "é"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
