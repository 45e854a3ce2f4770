//! A point in time, as it is written down for people.

use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::{Date, OffsetDateTime, Time, UtcOffset};

/// Seconds since 1970 (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    unix_s: i64,
}

/// Seconds in a day.
pub const DAY_S: i64 = 86_400;

impl Timestamp {
    /// The time of the system's clock.
    pub fn now() -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp { unix_s: i64::try_from(since.as_secs()).unwrap_or(i64::MAX) }
    }

    /// From seconds since 1970.
    pub const fn from_unix_s(unix_s: i64) -> Timestamp {
        Timestamp { unix_s }
    }

    /// As seconds since 1970.
    pub const fn unix_s(self) -> i64 {
        self.unix_s
    }

    /// This many days later.
    pub fn after_days(self, days: i64) -> Timestamp {
        Timestamp { unix_s: self.unix_s.saturating_add(days.saturating_mul(DAY_S)) }
    }

    /// For a certificate.
    pub fn date_time(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(self.unix_s).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.date_time();
        let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
        let (hour, minute, second) = (at.hour(), at.minute(), at.second());
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Reads a time of RFC 3339 or the beginning of one (`2026-11-24`, `2026-11-24T08`), in microseconds since 1970; `None`
/// if it is neither. Parts that are left out are 0, and without an offset it is UTC.
pub fn parse_unix_us(text: &str) -> Option<u64> {
    let (date, rest) = text.split_at_checked("2026-11-24".len())?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u32>().ok()).flatten()
    };
    let two =
        |text: &str| number(text).filter(|_| text.len() == 2).and_then(|it| u8::try_from(it).ok());
    let mut fields = date.split('-');
    let (year, month, day) = (fields.next()?, two(fields.next()?)?, two(fields.next()?)?);
    let year = number(year).filter(|_| year.len() == 4).and_then(|it| i32::try_from(it).ok())?;
    let date = Date::from_calendar_date(year, month.try_into().ok()?, day).ok()?;
    let (clock, offset) = match rest.find(['Z', 'z', '+', '-']) {
        Some(at) => rest.split_at(at),
        None => (rest, "Z"),
    };
    let offset = match offset {
        "Z" | "z" => UtcOffset::UTC,
        other => {
            let (hours, minutes) = other.get(1..)?.split_once(':')?;
            let (hours, minutes) = (two(hours)? as i8, two(minutes).filter(|it| *it < 60)? as i8);
            let sign = if other.starts_with('-') { -1 } else { 1 };
            UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()?
        }
    };
    let (mut clock_fields, mut micros) = ([0; 3], 0);
    if !clock.is_empty() {
        let clock = clock.strip_prefix(['T', 't', ' '])?;
        let (clock, fraction) = match clock.split_once('.') {
            Some((clock, fraction)) => (clock, Some(fraction)),
            None => (clock, None),
        };
        let mut count = 0;
        for part in clock.split(':') {
            *clock_fields.get_mut(count)? = two(part)?;
            count += 1;
        }
        if let Some(fraction) = fraction {
            number(fraction.get(..9.min(fraction.len()))?).filter(|_| count == 3)?;
            let digits = format!("{fraction:0<6}");
            micros = number(digits.get(..6)?)?;
        }
    }
    let [hour, minute, second] = clock_fields;
    // A second that a clock was stopped for comes after the last one.
    let (second, more) = if second == 60 { (59, 1_000_000) } else { (second, 0) };
    let time = Time::from_hms_micro(hour, minute, second, micros).ok()?;
    let at = OffsetDateTime::new_in_offset(date, time, offset).unix_timestamp_nanos() / 1_000;
    u64::try_from(at).ok()?.checked_add(more)
}

/// Microseconds since 1970 as a time of RFC 3339 (UTC), with six digits behind the second.
pub fn show_unix_us(unix_us: u64) -> String {
    let seconds = i64::try_from(unix_us / 1_000_000).unwrap_or(i64::MAX);
    let text = Timestamp::from_unix_s(seconds).to_string();
    format!("{}.{:06}Z", text.trim_end_matches('Z'), unix_us % 1_000_000)
}

/// Microseconds since 1970, by the system's clock.
pub fn now_unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Counts while the machine sleeps too, so that what is remembered of passwords grows old.
pub fn time_since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_whole_or_refused() {
        let read = |text: &str| parse_unix_us(text).map(show_unix_us);
        for (text, wanted) in [
            ("2026-11-27", "2026-11-27T00:00:00.000000Z"),
            ("2026-11-27Z", "2026-11-27T00:00:00.000000Z"),
            ("2026-11-27T08", "2026-11-27T08:00:00.000000Z"),
            ("2026-11-27T08Z", "2026-11-27T08:00:00.000000Z"),
            ("2026-11-27T08:52Z", "2026-11-27T08:52:00.000000Z"),
            ("2026-11-27t08:52:30z", "2026-11-27T08:52:30.000000Z"),
            ("2026-11-27T08:52:30.25Z", "2026-11-27T08:52:30.250000Z"),
            ("2026-11-27T08:52:30.1234567", "2026-11-27T08:52:30.123456Z"),
            ("2026-11-27T08:52:30-05:00", "2026-11-27T13:52:30.000000Z"),
            ("2026-11-27T00:30+01:00", "2026-11-26T23:30:00.000000Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000000Z"),
            ("2028-02-29", "2028-02-29T00:00:00.000000Z"),
        ] {
            assert_eq!(read(text).as_deref(), Some(wanted), "{text}");
        }
        for wrong in [
            "",
            "2026",
            "2026-11",
            "2026-11-31",
            "2026-02-29",
            "2026-11-27T",
            "2026-11-27TZ",
            "2026-11-27T08-52",
            "2026-11-27T08:5",
            "2026-11-27T08:52:30ZZ",
            "2026-11-27T08:52:30-",
            "2026-11-27T08:52:30-99:99",
            "2026-11-27T24",
            "2026-11-27T08:60",
            "2026-11-27T08:52:30.",
            "2026-11-27T08.5",
            "1969-12-31",
            "2026-11-27T08:52:30.12x",
            "2026-1127T08",
            "2026-11-2é",
            "+026-11-27",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
