//! Prometheus' text format (version 0.0.4): a metric for each event, parts in braces as labels.

use keyway_meter::{Distribution, EVENTS, Event, Snapshot};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What it is sent as.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of a histogram's buckets: powers of four, of times from 256 ns to 17 s, of others from 1 to
/// 65,536.
const TIME_BOUNDS: std::ops::RangeInclusive<u32> = 4..=17;
const COUNT_BOUNDS: std::ops::RangeInclusive<u32> = 0..=8;
/// Counters whose difference is how many there are now.
const NOW: [(&str, &str, &str, &str); 2] = [
    ("ldap_connections", "ldap.connection.opened", "ldap.connection.closed", "open now"),
    ("cryptod_clients", "cryptod.clients.connected", "cryptod.clients.gone", "connected now"),
];

/// The page of each process, `None` where none runs, as it is this many seconds after 1970.
pub fn render(pages: &[(&str, Option<Snapshot>)], now_unix_s: u64) -> String {
    let mut out = String::new();
    head(&mut out, "up", "gauge", "whether it runs");
    for (process, page) in pages {
        line(&mut out, "up", &[("process", process)], u8::from(page.is_some()));
    }
    let running: Vec<(&str, &Snapshot)> =
        pages.iter().filter_map(|(process, page)| Some((*process, page.as_ref()?))).collect();
    head(&mut out, "start_time_seconds", "gauge", "when it was started, since 1970");
    for (process, page) in &running {
        let seconds = page.started_unix_ms as f64 / 1000.0;
        line(&mut out, "start_time_seconds", &[("process", process)], seconds);
    }
    for (name, opened, closed, help) in NOW {
        head(&mut out, name, "gauge", help);
        for (_, page) in &running {
            if let (Some(opened), Some(closed)) = (page.value(opened), page.value(closed)) {
                line(&mut out, name, &[], opened.saturating_sub(closed));
            }
        }
    }
    EVENTS.iter().for_each(|event| match event.unit {
        "unix s" => seconds_left(&mut out, event, &running, now_unix_s),
        _ => metric(&mut out, event, &running),
    });
    out
}

/// How long it is until a point in time; negative after it.
fn seconds_left(out: &mut String, event: &Event, pages: &[(&str, &Snapshot)], now_unix_s: u64) {
    let points = pages.iter().filter_map(|(_, page)| page.value(event.name));
    let Some(first) = points.filter(|point| *point > 0).min() else { return };
    let name = named(event) + "_in_seconds";
    head(out, &name, "gauge", &format!("seconds until {}", event.help.trim_start_matches("when ")));
    line(out, &name, &[], i128::from(first) - i128::from(now_unix_s));
}

/// All of an event, in all pages: what is said twice is said once, with the sum.
fn metric(out: &mut String, event: &Event, pages: &[(&str, &Snapshot)]) {
    if event.is_histogram() {
        let mut all: Vec<(Vec<(&str, &str)>, &Distribution)> = Vec::new();
        for (process, page) in pages {
            let covered = page.histograms.iter().filter(|(name, _)| event.covers(name));
            all.extend(covered.map(|(name, values)| (labels(event, name, process), values)));
        }
        return histogram(out, event, &all);
    }
    let mut all: BTreeMap<Vec<(&str, &str)>, u64> = BTreeMap::new();
    for (process, page) in pages {
        for (name, value) in page.counters.iter().filter(|(name, _)| event.covers(name)) {
            let value = if event.is_gauge() { page.gauge(name).unwrap_or(0) } else { *value };
            let sum = all.entry(labels(event, name, process)).or_default();
            *sum = sum.saturating_add(value);
        }
    }
    if all.is_empty() {
        return;
    }
    let unit = event.unit.trim_end_matches(" now");
    let (name, kind) = match event.is_gauge() {
        true => (named(event), "gauge"),
        false => (named(event) + "_total", "counter"),
    };
    head(out, &name, kind, &format!("{unit} {}", event.help));
    all.iter().for_each(|(labels, value)| line(out, &name, labels, value));
}

fn histogram(out: &mut String, event: &Event, all: &[(Vec<(&str, &str)>, &Distribution)]) {
    if all.is_empty() {
        return;
    }
    let (unit, one, bounds) = match event.unit {
        "ns" => ("_seconds", 1e-9, TIME_BOUNDS),
        _ => ("", 1.0, COUNT_BOUNDS),
    };
    let name = named(event) + unit;
    head(out, &name, "histogram", event.help);
    for (labels, values) in all {
        for exponent in bounds.clone() {
            let bound = 4_u64.pow(exponent);
            let shown = format!("{}", bound as f64 * one);
            let labels = [labels.as_slice(), &[("le", shown.as_str())]].concat();
            line(out, &format!("{name}_bucket"), &labels, values.at_most(bound));
        }
        let labels_of_all = [labels.as_slice(), &[("le", "+Inf")]].concat();
        line(out, &format!("{name}_bucket"), &labels_of_all, values.count);
        line(out, &format!("{name}_sum"), labels, values.sum as f64 * one);
        line(out, &format!("{name}_count"), labels, values.count);
    }
}

/// The parts of an event's name that are the same for all of it.
fn named(event: &Event) -> String {
    let parts = event.name.split('.').filter(|part| !part.starts_with('{'));
    parts.collect::<Vec<_>>().join("_")
}

/// The other parts of a counter's name. An engine is in each process, so there it is said in which.
fn labels<'a>(event: &Event, name: &'a str, process: &'a str) -> Vec<(&'static str, &'a str)> {
    let event_parts = event.name.split('.');
    let label = |(part, value): (&'static str, &'a str)| {
        let label = part.strip_prefix('{')?.strip_suffix('}')?;
        Some((label, value))
    };
    let mut labels: Vec<_> = event_parts.zip(name.split('.')).filter_map(label).collect();
    if !labels.is_empty() {
        labels.push(("process", process));
    }
    labels
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = write!(out, "# HELP keyway_{name} {help}\n# TYPE keyway_{name} {kind}\n");
}

fn line(out: &mut String, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
    let _ = write!(out, "keyway_{name}");
    for (index, (label, value)) in labels.iter().enumerate() {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{}{label}=\"{value}\"", if index == 0 { '{' } else { ',' });
    }
    if !labels.is_empty() {
        out.push('}');
    }
    let _ = writeln!(out, " {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_labels_and_nothing_breaks_out_of_them() {
        let counters = vec![
            ("ldap.bind".to_owned(), 3),
            ("engine.software.aes-128-gcm.bytes".to_owned(), 64),
            ("client.a\"b\\.operations".to_owned(), 5),
            ("of.nobody".to_owned(), 1),
            ("tls.certificate.ends".to_owned(), 40),
            ("store.waiting".to_owned(), 9),
            ("ldap.queue".to_owned(), u64::MAX - 3),
            ("search.filter.sub.(uid=?).searches".to_owned(), 2),
        ];
        let page =
            |counters| Snapshot { pid: 1, started_unix_ms: 1500, counters, histograms: vec![] };
        let again = vec![("engine.software.aes-128-gcm.bytes".to_owned(), 6)];
        let text = render(
            &[("directory", Some(page(counters))), ("cryptod", Some(page(again))), ("third", None)],
            100,
        );
        for expected in [
            "keyway_up{process=\"directory\"} 1",
            "keyway_up{process=\"third\"} 0",
            "keyway_start_time_seconds{process=\"cryptod\"} 1.5",
            "# TYPE keyway_ldap_bind_total counter",
            "keyway_ldap_bind_total 3",
            "keyway_tls_certificate_ends_in_seconds -60",
            "# TYPE keyway_store_waiting gauge",
            "keyway_store_waiting 9",
            "keyway_ldap_queue 0",
            "keyway_search_filter_searches_total{scope=\"sub\",filter=\"(uid=?)\",process=\"directory\"} 2",
            "keyway_engine_bytes_total{driver=\"software\",algorithm=\"aes-128-gcm\",process=\"directory\"} 64",
            "keyway_engine_bytes_total{driver=\"software\",algorithm=\"aes-128-gcm\",process=\"cryptod\"} 6",
            "keyway_client_operations_total{client=\"a\\\"b\\\\\",process=\"directory\"} 5",
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} is not in\n{text}");
        }
        assert!(!text.contains("nobody"));
    }
}
