//! The developer's commands: `cargo xtask` lists them.
//!
//! Nothing of the product lives here. It installs what tests and benchmarks need beside a Rust
//! toolchain and a C compiler, and runs them the same way on every machine.
#![forbid(unsafe_code)]

mod arm;
mod arrows;
mod check;
mod circles;
mod emulate;
mod etcd;
mod evp;
mod fuzz;
mod linux;
mod loom;
mod package;
mod peers;
mod processes;
mod race;
mod shell;
mod strongswan;
mod test;
mod tool;

use std::process::ExitCode;

const HELP: &str = "\
The developer's commands.

Usage: cargo xtask COMMAND

Commands:
  test             what can fail, in minutes: unit, property and documentation tests, the fuzz
                   corpus, and the end-to-end tests with foreign clients (installed if possible,
                   else the tests that need them say that they were skipped), `loom`; `emulate`
                   where the processor has no AVX-512
  nightly          what takes longer and rarely fails, to be run before something large is called
                   done: the same tests at full length (imports of 100,000 people, stores spoilt at
                   hundreds of places, disks full at every point, more power cuts, more damages of
                   backups and kills of what makes them, 100 kills of a cluster's writer, btrfs,
                   quic-go, sssd, nslcd, httpd, Postfix, PostgreSQL and Java as clients, sssd and
                   Keycloak while a cluster's writer is changed) with the
                   release program, the Debian package and an image built and tried on a copy of this
                   system, then `emulate`, `arm`, `race`, `loom`, `evp` and `fuzz`; an hour and a half
  check            formatting, spelling, `structure`, clippy without warnings, each feature alone, the
                   oldest supported compiler, documentation, dependencies
  structure        which crates use which, as ARCHITECTURE.md says, and no circles of imports between
                   files
  settings         write docs/guide/settings.md anew, of the default keyway.toml
  fuzz [SECONDS] [TARGET...]
                   run the fuzz targets, SECONDS each (default 60); needs a C++ compiler
  loom             the rings of two processes, in every order in which two processors may see them
  emulate          simd's tests with its AVX-512 backends, whose instructions are done in software
  arm              simd's tests on 64-bit ARM, in QEMU; needs rustup
  race             the tests of the engine, its drivers and the client of other programs' modules under
                   ThreadSanitizer; needs rustup
  evp              OpenSSL's tests of algorithms give the same counts with our provider preferred;
                   fetches Debian's source of OpenSSL
  package          the Debian package of the release program, target/debian/keyway_*.deb; with `try`
                   also what `nightly` does with it
  etcd             build the etcd that tests of the cluster start, as `test` does; needs Go
  peers            install or build what the benchmarks are measured against

Each step prints its seconds. With CI=true in the environment nothing may be skipped, and a step
that takes more than 30 minutes (`test` more than 50 in all, `check` 25) is killed.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => test::run(),
        ["nightly"] => test::nightly(),
        ["check"] => check::run(),
        ["structure"] => check::structure(),
        ["settings"] => settings(),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["arm"] => arm::run(),
        ["emulate"] => emulate::run(),
        ["loom"] => loom::run(),
        ["race"] => race::run(),
        ["evp"] => evp::run(),
        ["package"] => package::run(),
        ["package", "try"] => package::nightly(),
        ["etcd"] => etcd::build(),
        ["peers"] => peers::bench(),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        [] => Err(format!("a command is missing\n\n{HELP}")),
        [other, ..] => Err(format!("there is no command '{other}' like this\n\n{HELP}")),
    };
    shell::report();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The guide's page of settings; a test of its crate says when it is not up to date.
fn settings() -> Result<(), String> {
    let mut make = shell::cargo();
    make.args(["run", "--quiet", "--package", "keyway-config", "--example", "settings_page"]);
    let made = make.stderr(std::process::Stdio::inherit()).output();
    let made = made.map_err(|why| format!("cargo: {why}"))?;
    if !made.status.success() {
        return Err("the page of settings cannot be made".to_owned());
    }
    let page = shell::root().join("docs/guide/settings.md");
    std::fs::write(&page, made.stdout).map_err(|why| format!("{}: {why}", page.display()))
}
