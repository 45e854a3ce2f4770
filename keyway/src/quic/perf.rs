//! `keyway quic perf`: throughput, requests, connections, and where processor time goes.

use super::arguments::Perf;
use super::host;
use crate::quic::failed::failed;
use clap::ValueEnum;
use keyway_engine::Engine;
use keyway_folder::authority;
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress;
use keyway_host::signals::Signals;
use keyway_quic::{Host, Measured, Plan, Side, Stage, Target, Test};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures what is asked for, and shows each result as it comes.
///
/// # Errors
/// If there is nobody to measure with, or the connection is lost.
pub fn run(arguments: &Perf) -> Result<(), Failure> {
    let named: Vec<Test> = arguments.tests.iter().map(|test| Test::from(*test)).collect();
    let tests = if named.is_empty() { &Test::ALL[..] } else { &named };
    let engine = keyway_drivers::engine();
    let plan = Plan {
        seconds: arguments.seconds,
        bytes: arguments.bytes,
        connections: arguments.connections,
        streams: arguments.streams,
    };
    host::runtime(&arguments.transport)?.block_on(async {
        let mut signals = Signals::catch()?;
        let host = host::host(&engine, &arguments.transport, arguments.cipher, arguments.group)?;
        let side = side(&engine, &host, arguments)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut results = Vec::new();
        let measuring = async {
            for test in tests {
                let bar = Progress::steps(test.name(), 1_000);
                let shown = |so_far| show(&bar, *test, so_far);
                let result = side.measure(*test, &plan, &stop, shown).await;
                drop(bar);
                let result = result.map_err(|why| failed(&why))?;
                if !arguments.json {
                    if results.is_empty() {
                        output::text(heading(arguments))?;
                    }
                    output::text(line(&result))?;
                }
                results.push(result);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok::<_, Failure>(())
        };
        let interrupted = async {
            signals.next().await;
            stop.store(true, Ordering::Relaxed);
            // What waits for the other side waits no more.
            side.interrupt();
            signals.end_at_next().await
        };
        let measured = tokio::select! {
            measured = measuring => measured,
            never = interrupted => never,
        };
        side.close().await;
        measured?;
        let interrupted = stop.load(Ordering::Relaxed);
        if arguments.json {
            output::json(&json!({
                "crypto": name(&arguments.transport.crypto),
                "server": arguments.address.as_ref().map(Target::authority),
                "both_ends": arguments.address.is_none(),
                "connections": arguments.connections,
                "streams": arguments.streams,
                "interrupted": interrupted,
                "tests": results.iter().map(as_json).collect::<Vec<_>>(),
            }))?;
        } else {
            output::text(packets(&results))?;
        }
        if interrupted && !arguments.json {
            output::note("interrupted; the last line is of what was done until then");
        }
        Ok(())
    })
}

/// Whom it measures with: the server that is named, or one of its own.
fn side(engine: &Engine, host: &Host, arguments: &Perf) -> Result<Side, Failure> {
    if let Some(address) = &arguments.address {
        return Side::with(host, address.clone(), host::verifier(engine, &arguments.trust)?)
            .map_err(|why| failed(&why));
    }
    let (certificate, key) = authority::for_loopback(engine)?;
    Side::with_itself(host, certificate, key).map_err(|why| failed(&why))
}

fn show(bar: &Progress, test: Test, so_far: keyway_quic::Progress) {
    let keyway_quic::Progress { part, seconds, bytes, operations } = so_far;
    let rate = match test.moves_bytes() {
        true => format!("{:.0} Mbit/s", bytes as f64 * 8.0 / 1e6 / seconds),
        false => format!("{:.0}/s", operations as f64 / seconds),
    };
    bar.step((part * 1_000.0) as u64, rate);
}

fn line(measured: &Measured) -> String {
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

/// The size and the costs of a packet, by test.
fn packets(results: &[Measured]) -> String {
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

fn as_json(measured: &Measured) -> Value {
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

fn heading(arguments: &Perf) -> String {
    let with = match &arguments.address {
        Some(address) => format!("with {}, this side only", address.authority()),
        None => "with itself, both ends".to_owned(),
    };
    format!(
        "QUIC with {}'s cryptography, {with}\n{:<11} {:>15} {:>8} {:>15}  {:>8}  {:>8}  {:>8}  \
         {:>8}  {:>8}",
        name(&arguments.transport.crypto),
        "TEST",
        "RATE",
        "CPU-S",
        "PER CPU-S",
        "UDP-SEND",
        "UDP-RECV",
        "PACKET",
        "HEADER",
        "OTHER"
    )
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
