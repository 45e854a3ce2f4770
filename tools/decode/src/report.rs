//! Operations summed up, in the manner of 389 Directory Server's logconv: which kinds, codes, filters
//! and clients there were, what was slow, and what clients left undone.

mod latencies;
mod shape;

use crate::limits::DISTINCT_MAX;
use crate::operation::{End, Event, Note, Operation};
use crate::view::{Calendar, Line, View, plain};
use keyway_codec::Op;
use keyway_codec::message::{Authentication, ResultCode};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

pub(crate) use latencies::Latencies;
pub use shape::shape;

/// How many operations are shown as the slowest.
const SLOWEST: usize = 10;

/// The counts of one kind.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    failed: u64,
    entries: u64,
    latencies: Latencies,
}

/// Tallies by name; beyond the limit of names those of all others together.
#[derive(Debug, Default)]
struct Tallies(HashMap<String, Tally>);

const OTHERS: &str = "(others)";

impl Tallies {
    fn of(&mut self, name: &str) -> &mut Tally {
        let name = match self.0.contains_key(name) || self.0.len() < DISTINCT_MAX {
            true => name,
            false => OTHERS,
        };
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), Tally::default());
        }
        // The name is there by now; if there is no room for another one, it is counted under the last.
        self.0.entry(name.to_owned()).or_default()
    }

    /// The first so many by what `by` says, most first.
    fn top<K: Ord>(&self, rows: usize, by: impl Fn(&Tally) -> K) -> Vec<(&str, &Tally)> {
        let mut all: Vec<_> = self.0.iter().map(|(name, tally)| (name.as_str(), tally)).collect();
        all.sort_by_key(|(name, tally)| (Reverse(by(tally)), *name));
        all.truncate(rows);
        all
    }
}

impl Tally {
    fn add(&mut self, operation: &Operation<'_>) {
        self.count += 1;
        self.failed += u64::from(operation.code().is_some_and(is_failure));
        self.entries += operation.entries;
        if let Some(ns) = operation.latency_ns() {
            self.latencies.add(ns);
        }
    }
}

/// Whether a code says that something was not done.
fn is_failure(code: ResultCode) -> bool {
    !matches!(
        code,
        ResultCode::Success
            | ResultCode::CompareFalse
            | ResultCode::CompareTrue
            | ResultCode::Referral
            | ResultCode::SaslBindInProgress
    )
}

/// Sums up.
#[derive(Debug, Default)]
pub struct Report {
    /// How many rows each table has.
    rows: usize,
    json: bool,
    first_ns: Option<u64>,
    last_ns: u64,
    kinds: Tallies,
    codes: BTreeMap<u32, u64>,
    filters: Tallies,
    clients: Tallies,
    names: Tallies,
    failed_binds: Tallies,
    /// The slowest operations, the fastest of them last.
    slowest: Vec<(u64, String)>,
    closed: u64,
    without_unbind: u64,
    abandoned: u64,
    unanswered: u64,
    anonymous: u64,
    start_tls: u64,
    found_nothing: u64,
    gaps: u64,
    gap_bytes: u64,
    unreadable: u64,
}

impl Report {
    /// One whose tables have so many rows, as text or as one line of JSON.
    #[must_use]
    pub fn new(rows: usize, json: bool) -> Self {
        Report { rows, json, ..Report::default() }
    }

    fn add(&mut self, operation: &Operation<'_>) {
        let time_ns = operation.time_ns();
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        self.last_ns = self.last_ns.max(operation.end_ns.unwrap_or(time_ns));
        self.kinds.of(operation.name()).add(operation);
        self.clients.of(&operation.connection.client.ip().to_string()).add(operation);
        match operation.end {
            End::Abandoned => self.abandoned += 1,
            End::Unanswered => self.unanswered += 1,
            _ => {}
        }
        if let Some(code) = operation.code() {
            *self.codes.entry(code.code()).or_default() += 1;
        }
        match operation.request.op() {
            Some(Op::SearchRequest(search)) => {
                self.filters.of(&shape(&search.filter)).add(operation);
                let nothing = operation.entries == 0 && operation.end == End::Answered;
                self.found_nothing += u64::from(nothing);
            }
            Some(Op::BindRequest(bind)) => {
                let is_anonymous = bind.name.is_empty()
                    && matches!(bind.authentication, Authentication::Simple(b""));
                self.anonymous += u64::from(is_anonymous);
                self.names.of(bind.name).add(operation);
                if operation.code() == Some(ResultCode::InvalidCredentials) {
                    let client = operation.connection.client.ip();
                    self.failed_binds.of(&format!("{} from {client}", bind.name)).add(operation);
                }
            }
            _ => {}
        }
        self.start_tls += u64::from(operation.name() == "starttls");
        if let Some(ns) = operation.latency_ns() {
            self.note_slow(ns, operation);
        }
    }

    fn note_slow(&mut self, ns: u64, operation: &Operation<'_>) {
        let is_full = self.slowest.len() == SLOWEST;
        if is_full && self.slowest.last().is_some_and(|(least, _)| ns <= *least) {
            return;
        }
        let mut line = Vec::new();
        Line.operation(operation, &mut line);
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        self.slowest.push((ns, line));
        self.slowest.sort_by_key(|(ns, _)| Reverse(*ns));
        self.slowest.truncate(SLOWEST);
    }

    fn seconds(&self) -> f64 {
        let first = self.first_ns.unwrap_or(self.last_ns);
        self.last_ns.saturating_sub(first) as f64 / 1e9
    }

    /// Other findings, with their numbers.
    fn remarks(&self) -> Vec<(&'static str, u64)> {
        let all = [
            ("connections closed", self.closed),
            ("closed without an unbind", self.without_unbind),
            ("operations abandoned", self.abandoned),
            ("operations without an answer", self.unanswered),
            ("anonymous binds", self.anonymous),
            ("StartTLS", self.start_tls),
            ("searches that found nothing", self.found_nothing),
            ("gaps in what was captured", self.gaps),
            ("bytes missing in them", self.gap_bytes),
            ("connections that cannot be read", self.unreadable),
        ];
        all.into_iter().filter(|(_, number)| *number > 0).collect()
    }

    /// The summary so far.
    #[must_use]
    pub fn said(&self) -> String {
        if self.json { format!("{}\n", self.value()) } else { self.text() }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let count: u64 = self.kinds.0.values().map(|tally| tally.count).sum();
        let seconds = self.seconds();
        let rate = if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        line(&mut text, format_args!("{count} operations in {seconds:.1} s, {rate:.1} a second"));
        if let Some(first_ns) = self.first_ns {
            let (mut from, mut to) = (Vec::new(), Vec::new());
            Calendar::timestamp(first_ns, &mut from);
            Calendar::timestamp(self.last_ns, &mut to);
            let (from, to) = (String::from_utf8_lossy(&from), String::from_utf8_lossy(&to));
            line(&mut text, format_args!("from {from} to {to}"));
        }
        table(&mut text, "operation", &self.kinds.top(self.rows, |tally| tally.count));
        line(&mut text, format_args!("\n{:>9}  result", "count"));
        let mut codes: Vec<_> = self.codes.iter().collect();
        codes.sort_by_key(|(code, count)| (Reverse(**count), **code));
        for (code, count) in codes.into_iter().take(self.rows) {
            line(&mut text, format_args!("{count:>9}  {}", ResultCode::from_code(*code)));
        }
        table(&mut text, "filter, by number", &self.filters.top(self.rows, |tally| tally.count));
        let total = |tally: &Tally| tally.latencies.total_ns();
        table(&mut text, "filter, by all its time", &self.filters.top(self.rows, total));
        table(&mut text, "client", &self.clients.top(self.rows, |tally| tally.count));
        table(&mut text, "who binds", &self.names.top(self.rows, |tally| tally.count));
        let failed = self.failed_binds.top(self.rows, |tally| tally.count);
        if !failed.is_empty() {
            table(&mut text, "wrong credentials", &failed);
        }
        if !self.slowest.is_empty() {
            text.push_str("\nslowest\n");
            self.slowest.iter().for_each(|(_, slow)| line(&mut text, format_args!("  {slow}")));
        }
        text.push('\n');
        for (what, number) in self.remarks() {
            line(&mut text, format_args!("{number:>9}  {what}"));
        }
        text
    }

    fn value(&self) -> Value {
        let rows = |tallies: &Tallies| -> Value {
            let rows = tallies.top(self.rows, |tally| tally.count);
            rows.into_iter().map(|(name, tally)| row(name, tally)).collect()
        };
        let codes: BTreeMap<_, _> = self
            .codes
            .iter()
            .map(|(code, count)| (ResultCode::from_code(*code).to_string(), *count))
            .collect();
        let slowest: Vec<_> = self.slowest.iter().map(|(_, line)| line).collect();
        let remarks: BTreeMap<_, _> = self.remarks().into_iter().collect();
        json!({
            "event": "report",
            "seconds": self.seconds(),
            "operations": rows(&self.kinds),
            "results": codes,
            "filters": rows(&self.filters),
            "clients": rows(&self.clients),
            "binds": rows(&self.names),
            "wrong_credentials": rows(&self.failed_binds),
            "slowest": slowest,
            "remarks": remarks,
        })
    }
}

impl View for Report {
    fn operation(&mut self, operation: &Operation<'_>, _: &mut Vec<u8>) {
        self.add(operation);
    }

    fn note(&mut self, note: &Note<'_>, _: &mut Vec<u8>) {
        match &note.what {
            Event::Gap { bytes, .. } => {
                self.gaps += 1;
                self.gap_bytes += bytes;
            }
            Event::Unreadable(_) => self.unreadable += 1,
            Event::Closed { unbind } => {
                self.closed += 1;
                self.without_unbind += u64::from(!unbind);
            }
            Event::OutOfStep { .. } | Event::InStep { .. } | Event::Malformed { .. } => {}
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.said().as_bytes());
    }
}

/// Writing to a string cannot fail.
fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{arguments}");
}

fn table(text: &mut String, title: &str, rows: &[(&str, &Tally)]) {
    let head = ["count", "failed", "entries", "p50 ms", "p99 ms", "max ms"];
    let [count, failed, entries, p50, p99, max] = head;
    line(
        text,
        format_args!("\n{count:>9} {failed:>7} {entries:>9} {p50:>9} {p99:>9} {max:>9}  {title}"),
    );
    for (name, tally) in rows {
        let ms = |ns: u64| ns as f64 / 1e6;
        let latencies = &tally.latencies;
        let mut shown = Vec::new();
        plain(if name.is_empty() { "(empty)" } else { name }, &mut shown);
        line(
            text,
            format_args!(
                "{:>9} {:>7} {:>9} {:>9.3} {:>9.3} {:>9.3}  {}",
                tally.count,
                tally.failed,
                tally.entries,
                ms(latencies.percentile_ns(50)),
                ms(latencies.percentile_ns(99)),
                ms(latencies.max_ns()),
                String::from_utf8_lossy(&shown),
            ),
        );
    }
}

fn row(name: &str, tally: &Tally) -> Value {
    let latencies = &tally.latencies;
    let us = |ns: u64| ns as f64 / 1000.0;
    json!({
        "name": name,
        "count": tally.count,
        "failed": tally.failed,
        "entries": tally.entries,
        "p50_us": us(latencies.percentile_ns(50)),
        "p99_us": us(latencies.percentile_ns(99)),
        "max_us": us(latencies.max_ns()),
    })
}
