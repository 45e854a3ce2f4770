//! Moments: seconds since 1970 as GeneralizedTime, and dates of a template as seconds.

use crate::number::push_padded;

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAY_S: u64 = 86_400;

/// Writes a moment as GeneralizedTime (RFC 4517 § 3.3.13), `20230412093011Z`.
pub(crate) fn push_generalized(out: &mut Vec<u8>, seconds: u64) {
    let (year, month, day) = date(seconds / DAY_S);
    push_padded(out, year, 4);
    let rest = seconds % DAY_S;
    for part in [month, day, rest / 3_600, rest / 60 % 60, rest % 60] {
        push_padded(out, part, 2);
    }
    out.push(b'Z');
}

/// Year, month and day of a day since 1970-01-01 in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Years that begin in March have the leap day at their end; 400 of them are 146,097 days.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month < 3 { year - 1 } else { year };
    let (era, year) = (year / 400, year % 400);
    let shifted = if month < 3 { month + 9 } else { month - 3 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468
}

/// Reads `2024-02-29` or `20240229093011Z`, from 1970 to 9999.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|it| *it != '-').collect();
    let digits = digits.strip_suffix('Z').unwrap_or(&digits);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || ![8, 14].contains(&digits.len()) {
        return None;
    }
    let part = |from: usize, to: usize| digits.get(from..to).map_or(Some(0), |it| it.parse().ok());
    let (year, month, day): (u64, u64, u64) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    let fits = year >= 1970
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    let days = fits.then(|| days(year, month, day))?;
    // A day that its month does not have is another one when it is written.
    (date(days) == (year, month, day)).then_some(days * DAY_S + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        for (text, seconds) in [
            ("19700101000000Z", 0),
            ("20000229120000Z", 951_825_600),
            ("20240229093011Z", 1_709_199_011),
            ("20991231235959Z", 4_102_444_799),
        ] {
            assert_eq!(parse(text), Some(seconds), "{text}");
            let mut out = Vec::new();
            push_generalized(&mut out, seconds);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
        assert_eq!(parse("2024-02-29"), parse("20240229000000Z"));
        for bad in ["2023-02-29", "1969-12-31", "2023", "2023-13-01", "x", "20230101250000Z"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
