//! `cargo xtask loom`: the rings that two processes share, in every order in which two processors
//! may see what is written there.

use crate::shell::{cargo, run as sh};

/// In a folder of its own, since the flag has everything built anew.
pub fn run() -> Result<(), String> {
    sh(cargo()
        .env("RUSTFLAGS", "--cfg loom")
        .args(["test", "--release", "--target-dir", "target/loom"])
        .args(["--package", "keyway-ring", "--test", "loom"]))
}
