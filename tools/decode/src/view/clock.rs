//! Times, in UTC.

/// Appends the time of day: `12:00:01.123456`.
pub fn clock(time_ns: u64, out: &mut Vec<u8>) {
    let seconds = time_ns / 1_000_000_000;
    let of_day = seconds % 86_400;
    digits(of_day / 3600, 2, out);
    out.push(b':');
    digits(of_day / 60 % 60, 2, out);
    out.push(b':');
    digits(of_day % 60, 2, out);
    out.push(b'.');
    digits(time_ns % 1_000_000_000 / 1000, 6, out);
}

/// Appends a number with so many digits at least.
pub(super) fn digits(number: u64, count: usize, out: &mut Vec<u8>) {
    let start = out.len();
    let mut number = number;
    while number > 0 || out.len() - start < count {
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
    }
    if let Some(written) = out.get_mut(start..) {
        written.reverse();
    }
}

/// A date, in the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calendar {
    /// From 1970.
    pub year: u64,
    /// From 1.
    pub month: u64,
    /// From 1.
    pub day: u64,
}

impl Calendar {
    /// The date of a time.
    #[must_use]
    pub fn of(time_ns: u64) -> Self {
        // Years begin in March here, so that the leap day is the last one.
        let days = time_ns / 86_400_000_000_000 + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted = (5 * of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        Calendar {
            year: era * 400 + year + u64::from(month <= 2),
            month,
            day: of_year - (153 * shifted + 2) / 5 + 1,
        }
    }

    /// Appends date and time as RFC 3339 has them: `2026-11-24T12:00:01.123456Z`.
    pub fn timestamp(time_ns: u64, out: &mut Vec<u8>) {
        let Calendar { year, month, day } = Calendar::of(time_ns);
        digits(year, 4, out);
        out.push(b'-');
        digits(month, 2, out);
        out.push(b'-');
        digits(day, 2, out);
        out.push(b'T');
        clock(time_ns, out);
        out.push(b'Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(seconds: u64) -> String {
        let mut out = Vec::new();
        Calendar::timestamp(seconds * 1_000_000_000 + 123_456_789, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(stamp(0), "1970-01-01T00:00:00.123456Z");
        assert_eq!(stamp(951_782_399), "2000-02-28T23:59:59.123456Z");
        assert_eq!(stamp(951_782_400), "2000-02-29T00:00:00.123456Z");
        assert_eq!(stamp(1_709_251_199), "2024-02-29T23:59:59.123456Z");
        assert_eq!(stamp(4_107_542_400), "2100-03-01T00:00:00.123456Z");
    }
}
