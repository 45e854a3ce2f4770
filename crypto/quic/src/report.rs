//! Measurements as text for people and as JSON for programs.

use crate::perf::{Measured, Test};
use crate::stages::Stage;
use keyway_host::output::grouped;
use serde_json::{Value, json};

/// The heading of a table of measurements, with this cryptography and this other side.
#[must_use]
pub fn measured_heading(crypto: &str, with: &str) -> String {
    format!(
        "QUIC with {crypto}'s cryptography, {with}\n{:<11} {:>15} {:>8} {:>15}  {:>8}  {:>8}  {:>8}  \
         {:>8}  {:>8}",
        "TEST", "RATE", "CPU-S", "PER CPU-S", "UDP-SEND", "UDP-RECV", "PACKET", "HEADER", "OTHER"
    )
}

/// A row of a table of measurements.
#[must_use]
pub fn measured_text(measured: &Measured) -> String {
    let used = &measured.took;
    let per = |amount: f64, seconds: f64| grouped((amount / seconds.max(1e-9)).round() as u64);
    let (name, cpu) = (measured.test.name(), used.cpu_seconds);
    let (rate, per_cpu) = match measured.test {
        Test::Upload | Test::Download => {
            (per(measured.mbit(), used.seconds) + " Mbit/s", per(measured.mbit(), cpu) + " Mbit")
        }
        Test::Requests | Test::Connections => {
            let operations = measured.operations as f64;
            (per(operations, used.seconds) + "/s", per(operations, cpu))
        }
    };
    let shares = used.shares().map(|share| format!("{:>7.1}%", share * 100.0)).join("  ");
    format!("{name:<11} {rate:>15} {:>8.2} {per_cpu:>15}  {shares}", cpu)
}

/// The size and the costs of a packet, by test: a table.
#[must_use]
pub fn packets_text(results: &[Measured]) -> String {
    let heading = ["PACKETS/S", "BYTES", "NS/PACKET", "SEAL", "OPEN", "HEADER", "OVERHEAD"];
    let heading = heading.map(|one| format!("{one:>10}")).join(" ");
    let mut text = format!("\n{:<11} {heading}", "");
    for Measured { test, took, .. } in results {
        let number = |number: Option<f64>| match number {
            Some(number) => grouped(number.round() as u64),
            None => "\u{2013}".to_owned(),
        };
        let cells = [
            number(Some(took.packets() as f64 / took.seconds.max(1e-9))),
            number(took.packet_bytes()),
            number(took.packet_nanoseconds()),
            number(took.nanoseconds(Stage::Seal)),
            number(took.nanoseconds(Stage::Open)),
            number(took.nanoseconds(Stage::Mask)),
            format!("{:.1}%", took.overhead() * 100.0),
        ];
        let cells = cells.map(|cell| format!("{cell:>10}")).join(" ");
        text.push_str(&format!("\n{:<11} {cells}", test.name()));
    }
    text
}

/// A measurement for programs.
#[must_use]
pub fn measured_value(measured: &Measured) -> Value {
    let used = &measured.took;
    let [send, receive, packets, headers, other] = used.shares();
    let cpu = used.cpu_seconds.max(1e-9);
    json!({
        "test": measured.test.name(),
        "seconds": used.seconds,
        "bytes": measured.bytes,
        "operations": measured.operations,
        "mbit_per_second": measured.mbit() / used.seconds.max(1e-9),
        "operations_per_second": measured.operations as f64 / used.seconds.max(1e-9),
        "cpu_seconds": used.cpu_seconds,
        "mbit_per_cpu_second": measured.mbit() / cpu,
        "operations_per_cpu_second": measured.operations as f64 / cpu,
        "cpu_share": {
            "udp_send": send,
            "udp_receive": receive,
            "packet_protection": packets,
            "header_protection": headers,
            "other": other,
        },
        "packets": {
            "sealed": used.stage(Stage::Seal).calls,
            "opened": used.stage(Stage::Open).calls,
            "per_second": used.packets() as f64 / used.seconds.max(1e-9),
            "mean_bytes": used.packet_bytes(),
        },
        "overhead": used.overhead(),
        "nanoseconds": {
            "packet": used.packet_nanoseconds(),
            "udp_send": used.nanoseconds(Stage::Send),
            "udp_receive": used.nanoseconds(Stage::Receive),
            "seal": used.nanoseconds(Stage::Seal),
            "open": used.nanoseconds(Stage::Open),
            "mask": used.nanoseconds(Stage::Mask),
        },
    })
}
