//! How many messages a second are decoded from a capture, made in memory: searches for one entry each,
//! over 64 connections, a message a packet; in processor time, the best of five. `cargo run --release -p keyway-decode --example speed`.

#[path = "../tests/wire/mod.rs"]
mod wire;

use keyway_decode::view::{Line, Printer};
use keyway_decode::{Capture, Decoder, Options, Query};
use wire::{Link, searches};

fn main() {
    let mut segments = Vec::new();
    for connection in 0..64_u16 {
        let mut conversation = searches(false, 1000);
        conversation.client.set_port(20_000 + connection);
        segments.push(conversation.segments(1460));
    }
    let longest = segments.iter().map(Vec::len).max().unwrap_or_default();
    // One packet of each connection after the other, as on a busy server.
    let mixed: Vec<_> = (0..longest)
        .flat_map(|index| segments.iter().filter_map(move |one| one.get(index)).cloned())
        .collect();
    let messages = 64 * (1000 * 3 + 3);
    let packets = wire::packets(Link::Ethernet, &mixed);
    let file = wire::file(wire::FORMATS[0], 1, &packets);
    for filter in [None, Some("(&(op=search)(latency>=10s))")] {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let query = filter.map(|text| Query::parse(text).expect("a filter"));
            let mut printer = Printer::new(Line, query, std::io::sink());
            let mut capture = Capture::open(file.as_slice()).expect("a capture");
            let mut decoder = Decoder::new(&[], Options::default());
            let start = cpu_ns();
            decoder.run(&mut capture, &mut printer, &|| true).expect("decoded");
            decoder.finish(&mut printer).expect("decoded");
            best = best.min(cpu_ns() - start);
            assert_eq!(printer.seen, 64 * 1002);
        }
        let ns = best / f64::from(messages);
        let all = filter.unwrap_or("every line");
        println!("{messages} messages, {all}: {ns:.0} ns a message, {:.2} M/s", 1000.0 / ns);
    }
}

/// How long this thread has run, in nanoseconds: what else the machine does is not counted.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or_default()
}
