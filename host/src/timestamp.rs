//! A point in time, as it is written down for people.

use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

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

/// Counts while the machine sleeps too, so that what is remembered of passwords grows old.
pub fn time_since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}
