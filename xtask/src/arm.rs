//! `cargo xtask arm`: simd's tests on 64-bit ARM, in QEMU.
//!
//! That shows what is right, not how fast it is. No ARM processor has measured this backend yet, so
//! `detect` does not choose it: `KEYWAY_SIMD=neon` does.

use crate::peers::{self, Peer, peer};
use crate::shell::{cargo, run as sh};
use std::process::Command;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The programs that build for that processor and run the result.
const NEEDED: &[Peer] = &[
    peer("gcc-aarch64-linux-gnu", &["aarch64-linux-gnu-gcc", "--version"]),
    peer("libc6-dev-arm64-cross", &["test", "-f", "/usr/aarch64-linux-gnu/include/stdio.h"]),
    peer("qemu-user", &["qemu-aarch64", "--version"]),
];

/// All but the test that steps through a program, which is for x86-64.
pub fn run() -> Result<(), String> {
    peers::install(NEEDED)?;
    sh(Command::new("rustup").args(["target", "add", TARGET]))?;
    sh(cargo()
        .env("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
        .env(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
            "qemu-aarch64 -L /usr/aarch64-linux-gnu",
        )
        .args(["test", "--target", TARGET, "--package", "keyway-simd", "--no-fail-fast"]))
}
