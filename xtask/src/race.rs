//! `cargo xtask race`: the tests of the engine, its drivers, and the client of modules in other programs, under
//! ThreadSanitizer.

use crate::shell::{built, cargo, run as sh};
use std::process::Command;

const HOST: &str = "x86_64-unknown-linux-gnu";

/// Tests with more than one thread, or with drivers that come and go.
const TESTS: [(&str, &[&str]); 4] = [
    ("keyway-engine", &["engine", "queue"]),
    ("keyway-drivers", &["pool"]),
    ("keyway-test-drivers", &["churn", "fault", "queued2003", "simulated"]),
    // With the daemon as it is.
    ("keyway-tests", &["key_client"]),
];

/// The standard library is built anew, for its own atomics have to be seen too: that needs its
/// source and unstable flags, hence `RUSTC_BOOTSTRAP`.
pub fn run() -> Result<(), String> {
    sh(Command::new("rustup").args(["component", "add", "rust-src"]))?;
    sh(cargo().args(["build", "--package", "keyway"]))?;
    for (package, tests) in TESTS {
        let names = tests.iter().flat_map(|test| ["--test", test]);
        sh(cargo()
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .env("KEYWAY_PROGRAM", built("debug")?.join("keyway"))
            .args(["test", "-Zbuild-std", "--target", HOST, "--target-dir", "target/race"])
            .args(["-p", package])
            .args(names))?;
    }
    Ok(())
}
