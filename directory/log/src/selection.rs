//! Which lines are wanted.

use crate::line::Line;

/// The conditions on a line.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// From this time on: as it begins in the log.
    pub since: Option<String>,
    /// Up to this time, in this form too.
    pub until: Option<String>,
    /// Names of fields, and a text that is in the value of each.
    pub fields: Vec<(String, String)>,
    /// How long an operation has to take at least, in milliseconds.
    pub slow_ms: Option<u64>,
}

impl Selection {
    /// Whether a line is that.
    pub fn takes(&self, line: &Line) -> bool {
        let Selection { since, until, fields, slow_ms } = self;
        let has = |(name, text): &(String, String)| {
            line.field(name).is_some_and(|value| value.contains(text.as_str()))
        };
        since.as_ref().is_none_or(|since| line.time.as_str() >= since.as_str())
            && until.as_ref().is_none_or(|until| line.time.as_str() < until.as_str())
            && fields.iter().all(has)
            && slow_ms.is_none_or(|ms| {
                line.number("time_us").is_some_and(|us| us >= ms.saturating_mul(1_000))
            })
    }
}
