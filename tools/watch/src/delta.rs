//! The difference of two samples of a page, and how it is said: lines for people, JSON for programs.

use crate::counters::{EngineWork, PageCounters};
use crate::page::PageSample;
use crate::text::{cell, number, row, tenths, time};
use keyway_host::timestamp::Timestamp;
use keyway_meter::{Distribution, OPERATIONS};
use serde_json::{Map, Value, json};

/// Width of the names of drivers, algorithms and clients, and of error kinds.
const NAME_WIDTH: usize = 27;
const ERROR_WIDTH: usize = 64;
const ENTRIES: &str = "ldap.entries_sent";
const BYTES_OUT: &str = "ldap.bytes_out";
/// Shown to programs only.
const MORE: [(&str, &str); 5] = [
    ("abandon", "ldap.abandon"),
    ("refused", "ldap.refused"),
    ("bytes_in", "ldap.bytes_in"),
    ("commits", "store.commits"),
    ("changes", "store.changes"),
];

/// The difference of two samples, and the later one.
pub struct PageDelta {
    /// How much time is between them.
    pub seconds: f64,
    /// The difference.
    pub between: PageCounters,
    /// The later one.
    pub since_start: PageCounters,
}

impl PageDelta {
    /// From one sample to a later one.
    #[must_use]
    pub fn between(before: &PageSample, now: &PageSample) -> PageDelta {
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        PageDelta {
            seconds: seconds.max(f64::EPSILON),
            between: PageCounters::of(&now.page.since(&before.page)),
            since_start: PageCounters::of(&now.page),
        }
    }

    fn rate(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    /// How often a second a counter was counted.
    #[must_use]
    pub fn of(&self, name: &str) -> f64 {
        self.rate(self.between.value(name))
    }

    /// A line below [`header`].
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = cell(&number(self.rate(self.between.total())), "total");
        for (column, name) in OPERATIONS {
            line += &cell(&number(self.of(name)), column);
        }
        line += &cell(&self.since_start.connections().to_string(), "conns");
        line += &cell(&number(self.of(ENTRIES)), "entries");
        line += &cell(&number(self.of(BYTES_OUT) / 1024.0), "KB-out");
        line
    }

    /// Lines below the line: the engine's work, its errors and its clients, as far as there were
    /// any in the interval.
    #[must_use]
    pub fn sections(&self) -> Vec<String> {
        let (mut engine, mut errors, mut clients) = (Vec::new(), Vec::new(), Vec::new());
        for (driver, algorithms) in &self.between.engine {
            let busy = || algorithms.iter().filter(|(_, work)| !work.idle());
            if busy().next().is_none() {
                continue;
            }
            engine.push(row(
                driver,
                NAME_WIDTH,
                &self.counts(&EngineWork::sum(algorithms.values())),
            ));
            for (algorithm, work) in busy() {
                let cells = format!("{} {}", self.counts(work), times(work));
                engine.push(row(&format!("  {algorithm}"), NAME_WIDTH, &cells));
                for (kind, count) in work.kinds.iter().filter(|(_, count)| **count > 0) {
                    let ever = self.since_start.engine[driver][algorithm].kinds[kind];
                    let name = format!("{driver} {algorithm} {kind}");
                    errors.push(row(&name, ERROR_WIDTH, &format!("{count:>10} {ever:>14}")));
                }
            }
        }
        for (client, work) in self.between.clients.iter().filter(|(_, work)| !work.idle()) {
            clients.push(row(client, NAME_WIDTH, &self.counts(work)));
        }
        let titles = [
            row("engine", NAME_WIDTH, &format!("{COUNTS_TITLE} {TIMES_TITLE}")),
            row("errors", ERROR_WIDTH, &format!("{:>10} {:>14}", "count", "since start")),
            row("clients", NAME_WIDTH, COUNTS_TITLE),
        ];
        let sections = titles.into_iter().zip([engine, errors, clients]);
        let shown = sections.filter(|(_, lines)| !lines.is_empty());
        shown.flat_map(|(title, lines)| [title].into_iter().chain(lines)).collect()
    }

    fn counts(&self, work: &EngineWork) -> String {
        let [operations, kilobytes, errors, busy] = [
            self.rate(work.operations),
            self.rate(work.bytes) / 1024.0,
            self.rate(work.errors),
            self.rate(work.busy),
        ]
        .map(number);
        format!("{operations:>8} {kilobytes:>8} {errors:>5} {busy:>6}")
    }

    /// All of it for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let columns = || OPERATIONS.iter().chain(&MORE);
        let (between, since_start) = (&self.between, &self.since_start);
        let mut rates = Map::new();
        let mut counts = Map::new();
        rates.insert("total".to_owned(), tenths(self.rate(between.total())));
        counts.insert("total".to_owned(), since_start.total().into());
        for (column, name) in columns().chain(&[("entries", ENTRIES), ("bytes_out", BYTES_OUT)]) {
            rates.insert((*column).to_owned(), tenths(self.of(name)));
            counts.insert((*column).to_owned(), since_start.value(name).into());
        }
        let (mut engine, mut errors) = (Vec::new(), Vec::new());
        for (driver, algorithms) in &since_start.engine {
            for (algorithm, ever) in algorithms {
                let work = &between.engine[driver][algorithm];
                engine.push(json!({
                    "driver": driver,
                    "algorithm": algorithm,
                    "per_second": self.rates_json(work),
                    "since_start": counts_json(ever),
                    "interval_ns": times_json(work),
                    "since_start_ns": times_json(ever),
                }));
                errors.extend(ever.kinds.iter().map(|(kind, count)| {
                    json!({
                        "driver": driver,
                        "algorithm": algorithm,
                        "error": kind,
                        "interval": work.kinds[kind],
                        "since_start": count,
                    })
                }));
            }
        }
        let clients = since_start.clients.iter().map(|(client, ever)| {
            json!({
                "client": client,
                "per_second": self.rates_json(&between.clients[client]),
                "since_start": counts_json(ever),
                "errors": ever.kinds,
            })
        });
        json!({
            "time": Timestamp::now().to_string(),
            "interval_s": (self.seconds * 1e6).round() / 1e6,
            "connections": since_start.connections(),
            "per_second": rates,
            "since_start": counts,
            "engine": engine,
            "errors": errors,
            "clients": clients.collect::<Value>(),
        })
    }

    fn rates_json(&self, work: &EngineWork) -> Value {
        json!({
            "operations": tenths(self.rate(work.operations)),
            "bytes": tenths(self.rate(work.bytes)),
            "errors": tenths(self.rate(work.errors)),
            "busy": tenths(self.rate(work.busy)),
        })
    }
}

fn counts_json(work: &EngineWork) -> Value {
    json!({
        "operations": work.operations,
        "bytes": work.bytes,
        "errors": work.errors,
        "busy": work.busy,
    })
}

fn times_json(work: &EngineWork) -> Value {
    let one = |(what, times): (&String, &Distribution)| {
        let json = json!({
            "count": times.count,
            "min": times.min,
            "mean": (times.mean() * 10.0).round() / 10.0,
            "p50": times.percentile(50.0),
            "p99": times.percentile(99.0),
            "max": times.max,
        });
        (what.clone(), json)
    };
    work.times.iter().map(one).collect::<Map<_, _>>().into()
}

const COUNTS_TITLE: &str = "    op/s     KB/s err/s busy/s";
const TIMES_TITLE: &str = "run p50   p99   max queue p50   p99   max";

/// Percentiles of the interval's samples; a dash where there was none.
fn times(work: &EngineWork) -> String {
    let of = |what| match work.times.get(what) {
        Some(times) if times.count > 0 => {
            [times.percentile(50.0), times.percentile(99.0), times.max].map(time)
        }
        _ => ["-"; 3].map(str::to_owned),
    };
    let ([a, b, c], [d, e, f]) = (of("run"), of("queue"));
    format!("{a:>7} {b:>5} {c:>5} {d:>9} {e:>5} {f:>5}")
}

/// The titles of [`PageDelta::line`].
#[must_use]
pub fn header() -> String {
    let columns = OPERATIONS.iter().map(|(column, _)| *column);
    let columns = ["total"].into_iter().chain(columns).chain(["conns", "entries", "KB-out"]);
    columns.map(|column| cell(column, column)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{CLOSED, OPENED};
    use keyway_meter::Snapshot;
    use std::time::{Duration, Instant};

    fn sample(at: Instant, values: &[(&str, u64)]) -> PageSample {
        let counters = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let histograms = Vec::new();
        PageSample { at, page: Snapshot { pid: 1, started_unix_ms: 0, counters, histograms } }
    }

    /// A second of work, with times that this process recorded under a name of the test's own.
    fn second_of_work(test: &str) -> PageDelta {
        let start = Instant::now();
        let run = keyway_meter::histogram(&format!("engine.{test}.aes-128-gcm.run"));
        let names = ["engine.software.aes-128-gcm.run", "engine.software.aes-128-gcm.queue"];
        let empty = names.map(|name| (name.to_owned(), run.read()));
        run.record(1_500);
        run.record(40_000_000);
        let values = [
            ("ldap.search", 1_234),
            ("engine.software.aes-128-gcm.operations", 99_999_999),
            ("engine.software.aes-128-gcm.bytes", 1 << 33),
            ("engine.software.aes-128-gcm.errors", 7),
            ("engine.software.aes-128-gcm.error.authentication", 7),
            ("engine.software.sha-256.operations", 1),
            ("engine.software.an-algorithm-that-no-user-could-pronounce.busy", 3),
            ("engine.null.sha-256.operations", 5),
            ("client.tls.operations", 12),
            ("client.tls.error.exhausted", 2),
            ("client.tls.error.authentication", 1),
            ("client.idle.operations", 4),
        ];
        let idle = [
            ("engine.null.sha-256.operations", 5),
            ("client.idle.operations", 4),
            ("engine.software.aes-128-gcm.error.authentication", 5),
        ];
        let mut before = sample(start, &values.map(|(name, _)| (name, 0)));
        for (name, value) in &mut before.page.counters {
            *value = idle.iter().find(|(idle, _)| idle == name).map_or(0, |(_, value)| *value);
        }
        let mut now = sample(start + Duration::from_secs(1), &values);
        now.page.histograms = vec![(names[0].to_owned(), run.read()), empty[1].clone()];
        before.page.histograms = empty.to_vec();
        PageDelta::between(&before, &now)
    }

    #[test]
    fn rates_are_of_the_interval_and_connections_of_the_moment() {
        let start = Instant::now();
        let before = sample(start, &[("ldap.search", 10), (OPENED, 5)]);
        let values = [
            ("ldap.search", 30),
            (OPENED, 9),
            (CLOSED, 2),
            ("ldap.bind", 4),
            (BYTES_OUT, 4096),
            ("engine.software.sha-256.operations", 6),
            ("engine.software.sha-256.bytes", 1_000_000),
            ("engine.null.sha-256.operations", 0),
        ];
        let now = sample(start + Duration::from_secs(2), &values);
        let json = PageDelta::between(&before, &now).json();
        assert_eq!(json["connections"], 7);
        assert_eq!(json["interval_s"], 2.0);
        let rates = &json["per_second"];
        assert_eq!(rates["total"], 12.0);
        assert_eq!(rates["search"], 10.0);
        assert_eq!(rates["bind"], 2.0);
        assert_eq!(rates["bytes_out"], 2048.0);
        assert_eq!(json["since_start"]["total"], 34);
        let [null, software] = &json["engine"].as_array().unwrap()[..] else {
            panic!("{json}");
        };
        assert_eq!((&null["driver"], &null["algorithm"]), (&json!("null"), &json!("sha-256")));
        assert_eq!(null["per_second"]["operations"], 0.0);
        assert_eq!(software["per_second"]["operations"], 3.0);
        assert_eq!(software["per_second"]["bytes"], 500_000.0);
        assert_eq!(software["since_start"]["operations"], 6);
        assert_eq!((&json["errors"], &json["clients"]), (&json!([]), &json!([])));
    }

    #[test]
    fn lines_stand_below_their_header() {
        let start = Instant::now();
        let values = [("ldap.search", 1_234), ("ldap.entries_sent", 99)];
        let now = sample(start + Duration::from_secs(1), &values);
        let delta = PageDelta::between(&sample(start, &[]), &now);
        let (line, header) = (delta.line(), header());
        assert_eq!(line.len(), header.len());
        assert!(line.len() <= 100);
        assert!(line.ends_with("     99      0"), "{line}");
        assert_eq!(header.split_whitespace().count(), line.split_whitespace().count());
        assert!(delta.sections().is_empty());
    }

    #[test]
    fn sections_show_what_the_interval_had() {
        let sections = second_of_work("test-sections").sections().join("\n");
        let expected = "\
engine                          op/s     KB/s err/s busy/s run p50   p99   max queue p50   p99   max
software                    100000000  8388608     7      3
  aes-128-gcm               99999999  8388608     7      0   1.5us  40ms  40ms         -     -     -
  an-algorithm-that-no-user-could-pronounce
                                   0        0     0      3       -     -     -         -     -     -
  sha-256                          1        0     0      0       -     -     -         -     -     -
errors                                                                count    since start
software aes-128-gcm authentication                                       2              7
clients                         op/s     KB/s err/s busy/s
tls                               12        0     3      0";
        assert_eq!(sections, expected);
        assert!(sections.lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn programs_are_told_times_errors_and_clients() {
        let json = second_of_work("test-json").json();
        let work = &json["engine"][1];
        assert_eq!(work["algorithm"], "aes-128-gcm");
        let run = &work["interval_ns"]["run"];
        assert_eq!(
            (&run["count"], &run["min"], &run["max"]),
            (&json!(2), &json!(1_500), &run["p99"])
        );
        assert_eq!(run["p99"], 40_000_000);
        assert_eq!(work["since_start_ns"]["queue"]["count"], 0);
        let error = json!({
            "driver": "software",
            "algorithm": "aes-128-gcm",
            "error": "authentication",
            "interval": 2,
            "since_start": 7,
        });
        assert_eq!(json["errors"], json!([error]));
        let tls = &json["clients"][1];
        assert_eq!((&tls["client"], &tls["per_second"]["errors"]), (&json!("tls"), &json!(3.0)));
        assert_eq!(tls["errors"], json!({ "authentication": 1, "exhausted": 2 }));
    }
}
