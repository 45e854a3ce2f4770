//! Runs clusters from seeds until one fails: `--seeds N [--from N]`.

use keyway_cluster::simulator::{Options, run};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str| -> Option<u64> {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse().ok()
    };
    let from = number("--from").unwrap_or(0);
    let mut failed = 0;
    for seed in from..from + number("--seeds").unwrap_or(100) {
        match run(seed, &Options::of(seed)) {
            Ok(report) if number("--seeds") == Some(1) => {
                println!("{report:?} {:?}", Options::of(seed))
            }
            Ok(_) => {}
            Err(failure) => {
                failed += 1;
                println!("{failure}");
            }
        }
    }
    println!("{failed} failed");
}
