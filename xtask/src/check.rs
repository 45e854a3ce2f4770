//! `cargo xtask check`: what a reviewer should not have to say.

use crate::arrows;
use crate::emulate::EMULATED;
use crate::shell::{cargo, end_within, root, run as sh, succeeds};
use std::process::Command;

/// Kept at one version so that a new release of the tool does not change the verdict unseen.
const DENY_VERSION: &str = "0.20.2";

pub fn run() -> Result<(), String> {
    end_within(25);
    sh(cargo().args(["fmt", "--all", "--check"]))?;
    sh(cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))?;
    sh(Command::new("rustfmt")
        .current_dir(root())
        .args(["--check", "--edition", "2024"])
        .arg(EMULATED))?;
    arrows::check()?;

    sh(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    // The drivers without what one may leave out.
    sh(cargo().args(["check", "--package", "keyway-drivers", "--no-default-features"]))?;
    sh(cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    deny()
}

/// Licences, sources, duplicates and bans by `deny.toml`. Advisories need a network that not every
/// machine has; `cargo deny check advisories` asks for them.
fn deny() -> Result<(), String> {
    let tools = root().join("target/tools");
    let own = tools.join("bin/cargo-deny");
    let program = if succeeds("cargo-deny", &["--version"]) {
        "cargo-deny".into()
    } else {
        if !own.exists() {
            sh(cargo()
                .args(["install", "cargo-deny", "--locked", "--version", DENY_VERSION, "--root"])
                .arg(&tools))?;
        }
        own
    };
    sh(Command::new(program).current_dir(root()).args([
        "--all-features",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
}
