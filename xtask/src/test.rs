//! `cargo xtask test`: what can fail, in minutes; `cargo xtask nightly`: what takes longer.

use crate::shell::{built, cargo, end_within, run as sh};
use crate::{arm, emulate, etcd, evp, fuzz, linux, loom, package, peers, race, strongswan};

/// Something that can fail.
type Part = fn() -> Result<(), String>;

/// Tests at once, where the processors are fewer: most wait for other processes most of the time.
const TESTS_AT_ONCE: usize = 4;
/// Packets of the long run of ESP.
const ESP_PACKETS: &str = "1000000000";
/// Clusters that are run from seeds.
const CLUSTER_SEEDS: &str = "10000";
/// Seconds for each fuzz target.
const FUZZ_SECONDS: &str = "60";

/// Program and tests are built once, in the quick form.
pub fn run() -> Result<(), String> {
    end_within(50);
    peers::install(peers::TEST)?;
    linux::fetch()?;
    strongswan::fetch()?;
    etcd::build()?;
    let tests = || {
        let mut command = cargo();
        command.args(["test", "--workspace"]);
        command
    };
    sh(tests().arg("--no-run"))?;
    // What was built is on the disk first: the tests' files are synced behind it, and a minute is long there.
    sh(&mut std::process::Command::new("sync"))?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = std::env::var("RUST_TEST_THREADS");
    let at_once = at_once.unwrap_or_else(|_| processors.max(TESTS_AT_ONCE).to_string());
    sh(tests()
        .arg("--no-fail-fast")
        .env("KEYWAY_PROGRAM", built("debug")?.join("keyway"))
        .env("RUST_TEST_THREADS", at_once))?;
    loom::run()?;
    // Elsewhere the tests above were on the processor itself.
    if emulate::native() { Ok(()) } else { emulate::run() }
}

/// All tests at full length, with the program as users run it, and what looks at it with tools.
/// Goes on where one part fails, and fails at the end.
pub fn nightly() -> Result<(), String> {
    peers::install(peers::TEST)?;
    peers::install(peers::NIGHTLY)?;
    linux::fetch()?;
    strongswan::fetch()?;
    etcd::build()?;
    let parts: [(&str, Part); 10] = [
        ("all tests at full length, end to end with the release program", full),
        ("the Debian package, built and tried (package try)", package::nightly),
        ("simd with AVX-512 in software (emulate)", emulate::run),
        ("simd on 64-bit ARM in QEMU (arm)", arm::run),
        ("engine, drivers and client under ThreadSanitizer (race)", race::run),
        ("10^9 ESP packets through a bad channel (endurance of keyway-esp)", endurance),
        ("clusters from ten thousand seeds (example simulate of keyway-cluster)", simulate),
        ("rings in every order of two processors (loom)", loom::run),
        ("OpenSSL's tests with our provider preferred (evp)", evp::run),
        ("every fuzz target for a minute (fuzz)", || fuzz::run(&[FUZZ_SECONDS])),
    ];
    let mut failed = Vec::new();
    for (what, part) in parts {
        eprintln!("xtask: {what}");
        if let Err(why) = part() {
            eprintln!("xtask: {why}");
            failed.push(format!("{what}: {why}"));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\nxtask: ")) }
}

fn full() -> Result<(), String> {
    sh(cargo().args(["build", "--release", "--package", "keyway"]))?;
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--no-fail-fast"]);
    sh(tests.env("KEYWAY_NIGHTLY", "1").env("KEYWAY_PROGRAM", built("release")?.join("keyway")))
}

/// Whole clusters, each from a seed; one that fails is printed.
fn simulate() -> Result<(), String> {
    let mut run = cargo();
    run.args(["run", "--release", "--package", "keyway-cluster", "--example", "simulate"]);
    sh(run.args(["--", "--seeds", CLUSTER_SEEDS]))
}

/// Minutes of two processors, as users run it.
fn endurance() -> Result<(), String> {
    let mut test = cargo();
    test.args(["test", "--release", "--package", "keyway-esp", "--test", "endurance"]);
    sh(test.env("KEYWAY_ESP_PACKETS", ESP_PACKETS).args(["--", "--nocapture"]))
}
