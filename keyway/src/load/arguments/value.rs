//! Values of flags, read.

use keyway_load::{Users, duration};
use std::time::Duration;

/// Reads a time: `30s`, `250ms`, or a number of seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    let seconds = || text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    duration(text)
        .or_else(seconds)
        .filter(|time| *time <= keyway_load::limits::PHASE_MAX)
        .ok_or_else(|| "it is no time, such as 30s, 250ms or 5m".into())
}

/// Reads sequences a second.
pub fn rate(text: &str) -> Result<f64, String> {
    match text.replace('_', "").parse() {
        Ok(rate) if rate > 0.0 && rate <= keyway_load::limits::RATE_MAX => Ok(rate),
        _ => Err("it is no number of sequences a second".into()),
    }
}

/// Reads who the users are: a range, or a file.
pub fn users(text: &str) -> Result<Users, String> {
    let range = text
        .split_once('-')
        .and_then(|(low, high)| Some((low.parse::<u64>().ok()?, high.parse::<u64>().ok()?)));
    match range {
        Some((low, high)) if low <= high && high < u64::MAX => Ok(Users::Range(low, high)),
        Some(_) => Err("the first is greater than the last".into()),
        None => Ok(Users::File(text.into())),
    }
}
