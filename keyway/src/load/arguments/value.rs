//! Values of load's flags, read.

use crate::value::count;
use keyway_load::Users;

/// Reads sequences a second.
pub fn rate(text: &str) -> Result<f64, String> {
    let number = text.replace('_', "").parse::<f64>().ok();
    match number.or_else(|| count(text).ok().map(|whole| whole as f64)) {
        Some(rate) if rate > 0.0 && rate <= keyway_load::limits::RATE_MAX => Ok(rate),
        _ => Err("it is no number of sequences a second, such as 500, 0.5 or 5k".into()),
    }
}

/// Reads who the users are: a range, or a file.
pub fn users(text: &str) -> Result<Users, String> {
    let range =
        text.split_once('-').and_then(|(low, high)| Some((count(low).ok()?, count(high).ok()?)));
    match range {
        Some((low, high)) if low <= high && high < u64::MAX => Ok(Users::Range(low, high)),
        Some(_) => Err("the first is greater than the last".into()),
        None => Ok(Users::File(text.into())),
    }
}
