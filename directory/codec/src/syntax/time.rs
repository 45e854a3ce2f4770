//! Generalized Time (RFC 4517 § 3.3.13) and UTC Time (§ 3.3.34).

/// A point in time, to the second; the fraction is kept as its decimal digits.
struct Timestamp {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    /// 60 for a leap second.
    second: i64,
    /// Without zeros at its end.
    fraction: Vec<u8>,
}

/// `YYYYMMDDHHMMSS[.fraction]` in UTC, which is ordered as time is.
///
/// `None` if the value is malformed, or its offset moves it out of the years 0000 to 9999.
pub(super) fn generalized(value: &[u8]) -> Option<Vec<u8>> {
    let mut digits = Digits { rest: value };
    let mut time = Timestamp {
        year: digits.number(4)?,
        month: digits.number(2)?,
        day: digits.number(2)?,
        hour: digits.number(2)?,
        minute: 0,
        second: 0,
        fraction: Vec::new(),
    };
    let mut unit_s = 3600;
    if digits.is_next() {
        time.minute = digits.number(2)?;
        unit_s = 60;
        if digits.is_next() {
            time.second = digits.number(2)?;
            unit_s = 1;
        }
    }
    if !time.is_valid() {
        return None;
    }
    if let [b'.' | b',', rest @ ..] = digits.rest {
        digits.rest = rest;
        let seconds = time.add_fraction(digits.run()?, unit_s);
        time.minute += seconds / 60;
        time.second += seconds % 60;
    }
    time.minute -= offset_minutes(digits.rest)?;
    time.into_utc().map(Timestamp::into_text)
}

/// Whether the value is a UTC Time: a two-digit year, minutes, and seconds and a zone if wanted.
pub(super) fn is_utc_time(value: &[u8]) -> bool {
    let parse = || {
        let mut digits = Digits { rest: value };
        let time = Timestamp {
            year: 2000 + digits.number(2)?, // a leap year, as is every fourth of the range
            month: digits.number(2)?,
            day: digits.number(2)?,
            hour: digits.number(2)?,
            minute: digits.number(2)?,
            second: if digits.is_next() { digits.number(2)? } else { 0 },
            fraction: Vec::new(),
        };
        let zoned = digits.rest.is_empty() || offset_minutes(digits.rest).is_some();
        Some(time.is_valid() && zoned)
    };
    parse().unwrap_or(false)
}

/// `Z`, or hours and perhaps minutes east or west of Greenwich.
fn offset_minutes(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = match zone {
        b"Z" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let mut digits = Digits { rest };
    let hours = digits.number(2).filter(|hours| *hours < 24)?;
    let minutes = if digits.is_next() { digits.number(2)? } else { 0 };
    (digits.rest.is_empty() && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

impl Timestamp {
    fn is_valid(&self) -> bool {
        (1..=12).contains(&self.month)
            && (1..=month_days(self.year, self.month)).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second <= 60
    }

    /// Takes a fraction of an hour, a minute or a second: keeps that of the second, and returns
    /// the whole seconds in it.
    fn add_fraction(&mut self, fraction: &[u8], unit_s: i64) -> i64 {
        // Long multiplication, last digit first. The carry stays below the unit.
        let mut carry = 0;
        let mut digits: Vec<u8> = fraction
            .iter()
            .rev()
            .map(|digit| {
                let product = i64::from(digit.wrapping_sub(b'0')) * unit_s + carry;
                carry = product / 10;
                b'0' + (product % 10) as u8
            })
            .collect();
        digits.reverse();
        let kept = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        digits.truncate(kept);
        self.fraction = digits;
        carry
    }

    /// Brings minutes beyond the hour, and so on upwards, into range.
    fn into_utc(mut self) -> Option<Timestamp> {
        let hours = self.hour + self.minute.div_euclid(60);
        let days = self.day + hours.div_euclid(24);
        self.minute = self.minute.rem_euclid(60);
        self.hour = hours.rem_euclid(24);
        self.day = days;
        // An offset is below a day and a fraction below an hour: one month over at most.
        if self.day < 1 {
            self.month -= 1;
            if self.month < 1 {
                self.month = 12;
                self.year -= 1;
            }
            self.day += month_days(self.year, self.month);
        } else if self.day > month_days(self.year, self.month) {
            self.day -= month_days(self.year, self.month);
            self.month += 1;
            if self.month > 12 {
                self.month = 1;
                self.year += 1;
            }
        }
        (0..=9999).contains(&self.year).then_some(self)
    }

    fn into_text(self) -> Vec<u8> {
        let Timestamp { year, month, day, hour, minute, second, fraction } = self;
        let mut out =
            format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}").into_bytes();
        if !fraction.is_empty() {
            out.push(b'.');
            out.extend_from_slice(&fraction);
        }
        out
    }
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Reads digits from the front of a value.
struct Digits<'a> {
    rest: &'a [u8],
}

impl<'a> Digits<'a> {
    fn is_next(&self) -> bool {
        self.rest.first().is_some_and(u8::is_ascii_digit)
    }

    /// A number of exactly this many digits; further ones may follow.
    fn number(&mut self, length: usize) -> Option<i64> {
        let (number, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        number.iter().try_fold(0, |value, digit| {
            digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0'))
        })
    }

    /// All the digits that follow, one at least.
    fn run(&mut self) -> Option<&'a [u8]> {
        let end =
            self.rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!run.is_empty()).then_some(run)
    }
}

#[cfg(test)]
mod tests;
