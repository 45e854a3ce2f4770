//! `cargo xtask fuzz`: the fuzz targets under libFuzzer and AddressSanitizer.

use crate::shell::{cargo, root, run as sh};
use std::fs;

/// The compiler's flags for coverage-guided fuzzing; unstable ones, hence `RUSTC_BOOTSTRAP`.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address \
    --cfg fuzzing -Cdebug-assertions -Ccodegen-units=1";

const HOST: &str = "x86_64-unknown-linux-gnu";

/// `arguments`: seconds for each target, then names of targets (all if none).
pub fn run(arguments: &[&str]) -> Result<(), String> {
    let (seconds, names) = match arguments {
        [first, rest @ ..] => match first.parse::<u32>() {
            Ok(seconds) => (seconds, rest),
            Err(_) => (60, arguments),
        },
        [] => (60, arguments),
    };
    let mut targets: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    if targets.is_empty() {
        targets = all()?;
    }
    // One that finds something leaves the others their time.
    let run = |target: &String| fuzz(target, seconds).err().map(|why| format!("{target}: {why}"));
    let failed: Vec<String> = targets.iter().filter_map(run).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\nxtask: ")) }
}

fn all() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let name = |entry: fs::DirEntry| {
        entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned())
    };
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.sort();
    Ok(names)
}

fn fuzz(target: &str, seconds: u32) -> Result<(), String> {
    let corpus = root().join("fuzz/corpus").join(target);
    let found = root().join("target/fuzz/found").join(target);
    let artifacts = root().join("fuzz/artifacts").join(target);
    for folder in [&found, &artifacts] {
        fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    }
    sh(cargo()
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", FLAGS)
        .args(["run", "--profile", "fuzz", "--package", "keyway-fuzz", "--features", "fuzz"])
        .args(["--target", HOST, "--target-dir", "target/fuzz", "--bin", target, "--"])
        // New inputs go to the first folder; the seeds stay as they are.
        .args([&found, &corpus])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        // Wall-clock time: a machine that stands still for ten seconds is no finding.
        .args(["-timeout=60", "-print_final_stats=1", "-verbosity=0"])
        // The threads of a daemon that close connections outlive an input. Such a thread that starts or ends is a
        // leak in the eyes of a check between two inputs; the check at the end finds them at rest.
        .args((target == "control").then_some("-detect_leaks=0")))
}
