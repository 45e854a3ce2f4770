//! The results of requests that were sent again, beside their results when they were captured.

use super::Request;
use crate::report::Latencies;
use keyway_codec::message::ResultCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// The result of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// Whether it was sent.
    pub sent: bool,
    /// Its result code, if it was answered.
    pub code: Option<u32>,
    /// How many entries were found.
    pub entries: u64,
    /// From the request to the last answer, in nanoseconds.
    pub latency_ns: Option<u64>,
}

/// A request that came to something else than before.
#[derive(Debug)]
pub struct Difference<'r> {
    connection: u64,
    request: &'r Request,
    now: Now,
}

#[derive(Debug, Default)]
struct Kind {
    count: u64,
    different: u64,
    then: Latencies,
    now: Latencies,
}

/// Sums of all that was sent.
#[derive(Debug, Default)]
pub struct Comparison {
    kinds: BTreeMap<&'static str, Kind>,
    /// How many requests were sent.
    pub sent: u64,
    /// How many of them had the same result code and the same number of entries.
    pub same: u64,
    /// How many had not, or no answer, or were not sent at all.
    pub different: u64,
    /// How many cannot be compared: the capture has no answer to them.
    pub unknown: u64,
    late: Latencies,
}

impl Comparison {
    /// Adds what came of a request; says so if that is something else than before.
    pub fn add<'r>(
        &mut self,
        connection: u64,
        request: &'r Request,
        now: Now,
    ) -> Option<Difference<'r>> {
        self.sent += u64::from(now.sent);
        let kind = self.kinds.entry(request.kind).or_default();
        kind.count += u64::from(now.sent);
        if let (Some(then_ns), Some(now_ns)) = (request.latency_ns, now.latency_ns) {
            kind.then.add(then_ns);
            kind.now.add(now_ns);
        }
        let is_same = match request.is_answered() {
            true => (request.code, request.entries) == (now.code, now.entries),
            false if now.sent => {
                self.unknown += u64::from(!request.is_silent());
                return None;
            }
            false => false,
        };
        self.same += u64::from(is_same);
        self.different += u64::from(!is_same);
        kind.different += u64::from(!is_same);
        (!is_same).then_some(Difference { connection, request, now })
    }

    /// Notes how long after its time a request was sent, in nanoseconds.
    pub fn was_late(&mut self, ns: u64) {
        self.late.add(ns);
    }

    /// How late requests were sent: of a hundred the last but one, and the last, in nanoseconds.
    #[must_use]
    pub fn late_ns(&self) -> (u64, u64) {
        (self.late.percentile_ns(99), self.late.max_ns())
    }

    /// A table: each kind of request, how it was answered then and now.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<10} {:>9} {:>9}   {:^29}   {:^29}\n{:<10} {:>9} {:>9}",
            "", "", "", "when captured, ms", "now, ms", "operation", "sent", "different"
        );
        for _ in 0..2 {
            // Writing to a string cannot fail.
            let _ = write!(text, "   {:>9} {:>9} {:>9}", "p50", "p99", "max");
        }
        text.push('\n');
        for (name, kind) in &self.kinds {
            let _ = write!(text, "{name:<10} {:>9} {:>9}", kind.count, kind.different);
            for latencies in [&kind.then, &kind.now] {
                let figures = figures_ns(latencies).map(|ns| match latencies.max_ns() {
                    0 => "-".to_owned(),
                    _ => format!("{:.3}", ns as f64 / 1e6),
                });
                let [p50, p99, max] = figures;
                let _ = write!(text, "   {p50:>9} {p99:>9} {max:>9}");
            }
            text.push('\n');
        }
        text
    }

    /// The comparison as JSON; times are in microseconds.
    #[must_use]
    pub fn value(&self) -> Value {
        let times = |latencies: &Latencies| {
            let [p50, p99, max] = figures_ns(latencies).map(|ns| ns as f64 / 1e3);
            json!({ "p50_us": p50, "p99_us": p99, "max_us": max })
        };
        let row = |(name, kind): (&&'static str, &Kind)| {
            json!({
                "name": name,
                "sent": kind.count,
                "different": kind.different,
                "captured": times(&kind.then),
                "now": times(&kind.now),
            })
        };
        let (late_p99_ns, late_max_ns) = self.late_ns();
        json!({
            "event": "replayed",
            "sent": self.sent,
            "same": self.same,
            "different": self.different,
            "not_compared": self.unknown,
            "late_p99_us": late_p99_ns as f64 / 1e3,
            "late_max_us": late_max_ns as f64 / 1e3,
            "operations": self.kinds.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

fn figures_ns(latencies: &Latencies) -> [u64; 3] {
    [latencies.percentile_ns(50), latencies.percentile_ns(99), latencies.max_ns()]
}

fn name(code: Option<u32>) -> String {
    code.map_or_else(|| "no answer".to_owned(), |code| ResultCode::from_code(code).to_string())
}

impl Difference<'_> {
    /// For programs.
    #[must_use]
    pub fn value(&self) -> Value {
        let Difference { connection, request, now } = self;
        json!({
            "event": "difference",
            "conn": connection,
            "id": request.id,
            "op": request.kind,
            "request": request.line,
            "captured": { "code": request.code, "entries": request.entries },
            "now": { "sent": now.sent, "code": now.code, "entries": now.entries },
        })
    }
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { connection, request, now } = self;
        let Request { id, kind, line, .. } = request;
        let gap = if line.is_empty() { "" } else { " " };
        write!(f, "c{connection}.{id} {kind}{gap}{line}: ")?;
        if request.is_silent() {
            return f.write_str("not sent now");
        }
        f.write_str(&name(request.code))?;
        let is_search = *kind == "search";
        if is_search {
            write!(f, ", {} found", request.entries)?;
        }
        match (now.sent, now.code) {
            (false, _) => return f.write_str(" when captured; not sent now"),
            (true, code) => write!(f, " when captured; {} now", name(code))?,
        }
        if is_search {
            write!(f, ", {} found", now.entries)?;
        }
        Ok(())
    }
}
