//! The result of a replay.

use crate::replay::Comparison;
use keyway_host::output::grouped;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The result of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// The results beside those of the capture.
    pub comparison: Comparison,
    /// How many differences were told.
    pub differences_told: u64,
    /// Whether all requests were sent.
    pub sent_all: bool,
}

impl Replayed {
    /// Whether every request came to what it did before.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.comparison.different == 0
    }

    /// All of it for programs, with the requests that were left out by reason.
    #[must_use]
    pub fn value(&self, left_out: &BTreeMap<&'static str, u64>) -> Value {
        let mut value = self.comparison.value();
        value["left_out"] = json!(left_out);
        value["complete"] = json!(self.sent_all);
        value
    }

    /// The sums in words, lines below the table.
    #[must_use]
    pub fn summary(&self) -> String {
        let Comparison { sent, same, different, unknown, .. } = &self.comparison;
        let mut text = format!(
            "{} requests sent: {} answered as when captured, {} otherwise",
            grouped(*sent),
            grouped(*same),
            grouped(*different)
        );
        if *unknown > 0 {
            text.push_str(&format!("; {} have no answer in the capture", grouped(*unknown)));
        }
        let untold = different.saturating_sub(self.differences_told);
        if untold > 0 {
            text.push_str(&format!("; {} differences not told (--rows)", grouped(untold)));
        }
        let (p99_ns, max_ns) = self.comparison.late_ns();
        if max_ns > 0 {
            let ms = |ns: u64| ns as f64 / 1e6;
            text.push_str(&format!(
                "\nsent late, answers waited for included: p99 {:.3} ms, max {:.3} ms",
                ms(p99_ns),
                ms(max_ns)
            ));
        }
        if !self.sent_all {
            text.push_str("\nstopped before the end");
        }
        text
    }
}
