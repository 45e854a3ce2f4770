//! `keyway data` beside OpenDJ's makeldif: the processor time of an entry, on one thread.
//!
//! Both make the people of OpenDJ's own example template and discard them. A small number of entries
//! first, then many: the difference is the entries' cost alone, without the start of Java.

use super::{Arguments, maven};
use crate::process::children_time;
use crate::report::{Claim, Findings};
use std::path::Path;
use std::process::{Command, Stdio};

/// The program that it is compared with.
pub const PEER: &str = "OpenDJ makeldif 5.0.3";
const ARTIFACT: &str = "org.openidentityplatform.opendj:opendj-ldap-toolkit:5.0.3";
const CLASS: &str = "com.forgerock.opendj.ldap.tools.MakeLDIF";
/// Entries before it counts.
const FEW: u64 = 50_000;
/// Entries that count, ours and theirs: some seconds of each.
const OURS: u64 = 4_000_000;
const THEIRS: u64 = 500_000;
/// Entries a second a core that are demanded, and how many times the peer's.
const LEAST: f64 = 1e6;
const TIMES: f64 = 10.0;

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let class_path = maven::class_path(ARTIFACT)?;
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let template = folder.path().join("example.template");
    let mut made = Command::new(keyway_tests::keyway());
    made.args(["data", "template"]).stderr(Stdio::inherit());
    let made = made.output().map_err(|why| why.to_string())?;
    std::fs::write(&template, made.stdout).map_err(|why| why.to_string())?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        ours.push(rate(OURS, |entries| keyway(&template, entries))?);
        theirs.push(rate(THEIRS, |entries| makeldif(&class_path, &template, entries))?);
    }
    let unit = "entries/s of CPU";
    let least = vec![LEAST; ours.len()];
    let claims = vec![
        Claim::rate("data, an entry", unit, &ours, PEER, &theirs).demand(TIMES),
        Claim::rate("data, an entry", unit, &ours, "the least it may be", &least).demand(1.0),
    ];
    Ok(Findings { claims, tables: Vec::new() })
}

/// Entries a second of processor time, of so many beyond the first few.
fn rate(entries: u64, command: impl Fn(u64) -> Command) -> Result<f64, String> {
    let few = cpu_s(&mut command(FEW))?;
    let many = cpu_s(&mut command(FEW + entries))?;
    Ok(entries as f64 / (many - few).max(1e-3))
}

fn keyway(template: &Path, entries: u64) -> Command {
    let mut command = Command::new(keyway_tests::keyway());
    command.args(["data", "make"]).arg(template).args(["--threads", "1", "-o", "-", "--define"]);
    command.arg(format!("numusers={entries}"));
    command
}

fn makeldif(class_path: &str, template: &Path, entries: u64) -> Command {
    let mut command = Command::new("java");
    command.args(["-cp", class_path, CLASS, "-c"]).arg(format!("numusers={entries}"));
    command.args(["-s", "1"]).arg(template);
    command
}

/// Processor time of a command, in seconds.
fn cpu_s(command: &mut Command) -> Result<f64, String> {
    let before = children_time();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().map_err(|why| format!("{command:?}: {why}"))?;
    match status.success() {
        true => Ok(children_time().saturating_sub(before).as_secs_f64()),
        false => Err(format!("{command:?} fails")),
    }
}
