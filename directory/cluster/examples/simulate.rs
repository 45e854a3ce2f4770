//! Runs clusters from seeds, and prints those that fail: `--seeds 10000 [--from 0]`. With `--servers 50 --entries 1000000` it
//! prints how lag and catch-up grow up to that many.

use std::process::ExitCode;

use keyway_cluster::simulator::{Options, growth, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str| -> Option<u64> {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse().ok()
    };
    if let Some(servers) = number("--servers") {
        return grow(servers as usize, number("--entries").unwrap_or(1_000_000));
    }
    let (from, seeds) = (number("--from").unwrap_or(0), number("--seeds").unwrap_or(100));
    let mut failed = 0;
    for seed in from..from.saturating_add(seeds) {
        let options = Options::of(seed);
        match run(seed, &options) {
            Ok(report) if seeds == 1 => println!("{options:?}\n{report:?}"),
            Ok(_) => {}
            Err(failure) => {
                failed += 1;
                println!("{failure}");
            }
        }
    }
    println!("{seeds} seeds from {from}: {failed} failed");
    if failed > 0 {
        println!(
            "Put each of them into directory/cluster/tests/simulator.regressions, with what it was."
        );
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Fewer servers and entries first.
fn grow(servers: usize, entries: u64) -> ExitCode {
    let sizes = [3, 5, 10, 20, 50, 100];
    let sizes = sizes.into_iter().filter(|size| *size < servers).chain([servers]);
    for size in sizes {
        match growth(size, entries) {
            Ok(growth) => println!("{growth}"),
            Err(why) => {
                println!("{size} servers: {why}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
