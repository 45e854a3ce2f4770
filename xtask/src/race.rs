//! `cargo xtask race`: the tests of the engine and its drivers under ThreadSanitizer.

use crate::shell::{cargo, run as sh};
use std::process::Command;

const HOST: &str = "x86_64-unknown-linux-gnu";

/// Tests with more than one thread, or with drivers that come and go.
const TESTS: [(&str, &[&str]); 3] = [
    ("keyway-engine", &["engine", "queue"]),
    ("keyway-drivers", &["pool"]),
    ("keyway-test-drivers", &["churn", "fault", "queued2003", "simulated"]),
];

/// The standard library is built anew, for its own atomics have to be seen too: that needs its
/// source and unstable flags, hence `RUSTC_BOOTSTRAP`.
pub fn run() -> Result<(), String> {
    sh(Command::new("rustup").args(["component", "add", "rust-src"]))?;
    for (package, tests) in TESTS {
        let names = tests.iter().flat_map(|test| ["--test", test]);
        sh(cargo()
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .args(["test", "-Zbuild-std", "--target", HOST, "--target-dir", "target/race"])
            .args(["-p", package])
            .args(names))?;
    }
    Ok(())
}
