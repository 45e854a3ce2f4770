//! Which lines are wanted.

use super::line::Line;
use super::{Book, Log};
use keyway_host::timestamp::Timestamp;

/// What a line has to be.
pub struct Selection<'a> {
    arguments: &'a Log,
}

impl<'a> Selection<'a> {
    pub fn of(arguments: &'a Log) -> Selection<'a> {
        Selection { arguments }
    }

    pub fn takes(&self, line: &Line) -> bool {
        let Log { of, since, until, fields, slow, .. } = self.arguments;
        let is_of = |book: &Book| book.name() == line.log;
        let has = |(name, text): &(String, String)| {
            line.field(name).is_some_and(|value| value.contains(text.as_str()))
        };
        (of.is_empty() || of.iter().any(is_of))
            && since.as_ref().is_none_or(|since| line.time.as_str() >= since.as_str())
            && until.as_ref().is_none_or(|until| line.time.as_str() < until.as_str())
            && fields.iter().all(has)
            && slow.is_none_or(|ms| {
                line.number("time_us").is_some_and(|us| us >= ms.saturating_mul(1_000))
            })
    }
}

/// A time as it begins in the log, or so long ago.
pub fn time(text: &str) -> Result<String, String> {
    let wrong =
        || "it is neither the beginning of a time, like 2026-11-24T08, nor 30s, 15m, 1h30m or 7d";
    if text.get(..5).is_some_and(|year| year.ends_with('-')) {
        let is_of_time = |c: char| c.is_ascii_digit() || "-T:.Z".contains(c);
        return text.chars().all(is_of_time).then(|| text.to_owned()).ok_or_else(|| wrong().into());
    }
    let seconds = keyway_load::duration(text).map(|ago| ago.as_secs()).ok_or_else(wrong)?;
    let now = Timestamp::now().date_time().unix_timestamp();
    let then = i64::try_from(seconds).ok().and_then(|ago| now.checked_sub(ago));
    let then = then.filter(|then| *then >= 0).ok_or_else(wrong)?;
    Ok(Timestamp::from_unix_s(then).to_string())
}

/// `FIELD=TEXT`
pub fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, text)) if !name.is_empty() => Ok((name.to_owned(), text.to_owned())),
        _ => Err("it is not FIELD=TEXT, like result=49 or event=bind".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time("2026-11-24T08"), Ok("2026-11-24T08".to_owned()));
        let (earlier, later) = (time("2h").unwrap(), time("15m").unwrap());
        assert!(earlier < later && later.starts_with("20"), "{earlier} {later}");
        for wrong in ["", "h", "2w", "-2h", "2026-x", "99999999999d", "é"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
