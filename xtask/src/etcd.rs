//! etcd, which the tests of the cluster start: built of its Go module, at the version that `tests/etcd/go.mod` names.

use crate::shell::{root, run as sh, strict, succeeds};
use std::fs;
use std::process::Command;

const MODULE: &str = include_str!("../../tests/etcd/go.mod");

/// Leaves the program below the target folder, once; a minute and a half of a processor. That it cannot is an error only
/// where nothing may be skipped.
pub fn build() -> Result<(), String> {
    match built() {
        Err(why) if !strict() => {
            eprintln!("xtask: tests with etcd are skipped: {why}");
            Ok(())
        }
        result => result,
    }
}

fn built() -> Result<(), String> {
    let required =
        MODULE.lines().find_map(|line| line.strip_prefix("require go.etcd.io/etcd/server/v3 v"));
    let version = required.ok_or("tests/etcd/go.mod names no version")?;
    let folder = root().join(format!("target/tools/etcd-{version}"));
    let program = folder.join("etcd");
    if program.exists() {
        return Ok(());
    }
    let usual = "/usr/local/go/bin/go";
    let go = [usual, "go"].into_iter().find(|go| succeeds(go, &["version"]));
    let go = go.ok_or("there is no Go to build it")?;
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    // Last, and at once: it says that all is there.
    let draft = folder.join("etcd.new");
    let mut build = Command::new(go);
    build.args(["build", "-buildvcs=false", "-o"]).arg(&draft).arg(".");
    sh(build.current_dir(root().join("tests/etcd")))?;
    fs::rename(&draft, &program).map_err(|why| format!("{}: {why}", program.display()))
}
