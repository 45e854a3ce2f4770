//! `keyway quic perf`: throughput, requests, connections, and where processor time goes.

use super::arguments::Perf;
use super::host;
use crate::quic::failed::failed;
use clap::ValueEnum;
use keyway_engine::Engine;
use keyway_folder::authority;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::progress::Progress;
use keyway_host::signals::Signals;
use keyway_quic::report::{measured_heading, measured_text, measured_value, packets_text};
use keyway_quic::{Host, Plan, Side, Target, Test};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures what is asked for, and shows each result as it comes.
///
/// # Errors
/// If there is no server to measure with, or the connection is lost.
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
                    output::text(measured_text(&result))?;
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
            // A test that waits for the other side waits no more.
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
                "tests": results.iter().map(measured_value).collect::<Vec<_>>(),
            }))?;
        } else {
            output::text(packets_text(&results))?;
        }
        if interrupted && !arguments.json {
            output::note("interrupted; the last line is of what was done until then");
        }
        Ok(())
    })
}

/// The server that it measures with: the server that is named, or one of its own.
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

fn heading(arguments: &Perf) -> String {
    let with = match &arguments.address {
        Some(address) => format!("with {}, this side only", address.authority()),
        None => "with itself, both ends".to_owned(),
    };
    measured_heading(&name(&arguments.transport.crypto), &with)
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
