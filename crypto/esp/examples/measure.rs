//! Measures how long ESP packets take to seal and to open, one by one and through a queue:
//! `cargo run --release -p keyway-esp --example measure -- [--json FILE] [SUITE...]`.
//!
//! A packet is parsed, pushed, and sealed or opened in batches of 1, 4, 16 and 64, in tunnel mode with extended numbers.
//! The figures are nanoseconds a packet, the median of many short samples; the ways to the engine take turns, so that a
//! disturbance does not hit one side only.

use keyway_engine::Engine;
use keyway_esp::{
    Dispatch, Inbound, InboundSa, InnerPacket, Lifetime, Mode, Opener, OutboundSa, Outer, SaKey,
    SaParameters, Sealer, Selectors, Suite, Time,
};
use serde::Serialize;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const BYTES: [usize; 3] = [64, 512, 1_400];
const BATCHES: [usize; 4] = [1, 4, 16, 64];
/// Packets of a sample.
const PACKETS: usize = 256;
const SAMPLES: usize = 61;
const USAGE: &str = "usage: measure [--json FILE] [SUITE...]";

#[derive(Serialize)]
struct Row {
    suite: &'static str,
    bytes: usize,
    batch: usize,
    dispatch: &'static str,
    seal_ns: f64,
    open_ns: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut json = None;
    let mut suites = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(());
            }
            "--json" => json = Some(arguments.next().ok_or(USAGE)?),
            name => suites.push(Suite::from_name(name).ok_or(USAGE)?),
        }
    }
    if suites.is_empty() {
        suites = Suite::ALL.into();
    }
    let engine = keyway_drivers::engine();
    let mut rows = Vec::new();
    println!("ns a packet                        one by one              queued");
    println!(
        "{:24} {:>5} {:>5} {:>9} {:>9} {:>9} {:>9}",
        "", "bytes", "batch", "seal", "open", "seal", "open"
    );
    for suite in suites {
        for bytes in BYTES {
            for batch in BATCHES {
                let [direct, queued] = measure(&engine, suite, bytes, batch);
                println!(
                    "{:24} {bytes:>5} {batch:>5} {:>9.0} {:>9.0} {:>9.0} {:>9.0}",
                    suite.name(),
                    direct[0],
                    direct[1],
                    queued[0],
                    queued[1],
                );
                let suite = suite.name();
                for (dispatch, [seal_ns, open_ns]) in [("direct", direct), ("queued", queued)] {
                    rows.push(Row { suite, bytes, batch, dispatch, seal_ns, open_ns });
                }
            }
        }
    }
    if let Some(file) = json {
        let text = serde_json::to_string_pretty(&rows)?;
        std::fs::write(&file, text + "\n").map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

/// One way to the engine, and its samples.
struct Side {
    sealer: Sealer,
    opener: Opener,
    times: [Vec<f64>; 2],
}

/// Nanoseconds to seal and to open a packet: one by one, and queued.
fn measure(engine: &Engine, suite: Suite, bytes: usize, batch: usize) -> [[f64; 2]; 2] {
    let key = vec![7; suite.key_bytes() + suite.mac_key_bytes()];
    let parameters = SaParameters {
        spi: 300,
        suite,
        key: SaKey::Secret(&key),
        salt: [1; 4],
        mode: Mode::Tunnel,
        esn: true,
        lifetime: Lifetime::default(),
    };
    let now = Time(0);
    let out = OutboundSa::new(engine, &parameters, 1..u64::MAX, 0, now).expect("it fits");
    let out = Arc::new(out);
    let inside = InboundSa::new(engine, &parameters, 1024, Selectors::any(), now);
    let inbound = Inbound::new([Arc::new(inside.expect("it fits"))]).expect("one");
    let source = [10, 1, 0, 5].into();
    let outer = Outer { source, destination: [10, 2, 0, 7].into(), ecn: 0 };
    let [high, low] = (bytes as u16).to_be_bytes();
    let mut packet =
        vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 5, 10, 2, 0, 7];
    packet.resize(bytes, 0x11);
    let mut sealed: Vec<Vec<u8>> = vec![Vec::new(); PACKETS];
    let mut sides = [Dispatch::Direct, Dispatch::Queued].map(|dispatch| Side {
        sealer: Sealer::new(engine, dispatch),
        opener: Opener::new(engine, dispatch),
        times: [Vec::new(), Vec::new()],
    });
    for _ in 0..SAMPLES {
        for Side { sealer, opener, times } in &mut sides {
            let begun = Instant::now();
            for _ in 0..PACKETS / batch {
                for user in 0..batch {
                    let packet = InnerPacket::parse(black_box(&packet)).expect("a packet");
                    sealer.push(&out, &packet, user as u64).expect("there is room");
                }
                sealer.seal(now, |_, packet| {
                    black_box(packet.expect("it has a number").parts);
                });
            }
            times[0].push(begun.elapsed().as_nanos() as f64 / PACKETS as f64);
            for packets in sealed.chunks_mut(batch) {
                for user in 0..packets.len() {
                    let packet = InnerPacket::parse(&packet).expect("a packet");
                    sealer.push(&out, &packet, user as u64).expect("there is room");
                }
                sealer.seal(now, |user, packet| {
                    let place = &mut packets[user as usize];
                    place.clear();
                    packet.expect("it has a number").write_to(place);
                });
            }
            let begun = Instant::now();
            for packets in sealed.chunks(batch) {
                for packet in packets {
                    opener.push(&inbound, black_box(packet), outer).expect("it fits");
                }
                opener.open(now, |packet, _| {
                    black_box(packet.expect("it is authentic"));
                });
            }
            times[1].push(begun.elapsed().as_nanos() as f64 / PACKETS as f64);
        }
    }
    sides.map(|side| side.times.map(median))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
