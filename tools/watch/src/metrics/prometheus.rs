//! Prometheus' text format (version 0.0.4).

use super::model::{Data, Labels, Metric, Number, Spread};
use std::fmt::Write;

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics as text.
pub fn render(metrics: &[Metric]) -> String {
    let mut out = String::new();
    for metric in metrics {
        let Metric { name, help, data, .. } = metric;
        let (kind, points) = match data {
            Data::Gauge(points) => ("gauge", points.as_slice()),
            Data::Sum(points) => ("counter", points.as_slice()),
            Data::Histogram(_) => ("histogram", [].as_slice()),
        };
        // Writing to a String cannot fail.
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for point in points {
            match point.value {
                Number::Whole(value) => line(&mut out, name, &point.labels, value),
                Number::Real(value) => line(&mut out, name, &point.labels, value),
            }
        }
        if let Data::Histogram(spreads) = data {
            spreads.iter().for_each(|spread| histogram(&mut out, name, spread));
        }
    }
    out
}

fn histogram(out: &mut String, name: &str, spread: &Spread) {
    let mut bucket = |bound: String, count: u64| {
        let labels = [spread.labels.as_slice(), &[("le", bound)]].concat();
        line(out, &format!("{name}_bucket"), &labels, count);
    };
    for (bound, count) in &spread.buckets {
        bucket(bound.to_string(), *count);
    }
    bucket("+Inf".to_owned(), spread.count);
    line(out, &format!("{name}_sum"), &spread.labels, spread.sum);
    line(out, &format!("{name}_count"), &spread.labels, spread.count);
}

fn line(out: &mut String, name: &str, labels: &Labels, value: impl std::fmt::Display) {
    let _ = write!(out, "{name}");
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
    use super::super::model::metrics;
    use super::*;
    use keyway_meter::Snapshot;

    #[test]
    fn families_have_labels_and_nothing_breaks_out_of_them() {
        let counters = vec![
            ("ldap.bind".to_owned(), 3),
            ("engine.software.aes-128-gcm.bytes".to_owned(), 64),
            ("client.a\"b\\.operations".to_owned(), 5),
            ("of.unlisted".to_owned(), 1),
            ("tls.certificate.ends".to_owned(), 40),
            ("store.waiting".to_owned(), 9),
            ("ldap.queue".to_owned(), u64::MAX - 3),
            ("search.filter.sub.(uid=?).searches".to_owned(), 2),
        ];
        let page =
            |counters| Snapshot { pid: 1, started_unix_ms: 1500, counters, histograms: vec![] };
        let again = vec![("engine.software.aes-128-gcm.bytes".to_owned(), 6)];
        let pages =
            [("directory", Some(page(counters))), ("cryptod", Some(page(again))), ("third", None)];
        let text = render(&metrics(&pages, 100));
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
        assert!(!text.contains("unlisted"));
    }
}
