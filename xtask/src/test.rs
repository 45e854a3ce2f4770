//! `cargo xtask test`: everything that can fail.

use crate::emulate;
use crate::peers;
use crate::shell::{cargo, end_within, run as sh};

/// The program is built in release form, as users run it; the tests around it in the quick form.
pub fn run() -> Result<(), String> {
    end_within(50);
    peers::install(peers::TEST)?;
    sh(cargo().args(["build", "--release", "--package", "keyway"]))?;
    sh(cargo().args(["test", "--workspace", "--no-fail-fast"]))?;
    emulate::run()?;
    sh(cargo().args(["test", "--manifest-path", "fuzz/Cargo.toml"]))
}
