//! `keyway decode`: its proxy beside UnboundID's ldap-debugger, and how fast it reads a capture.
//!
//! Both proxies stand between `keyway load` and the same Keyway server and discard their reports, first
//! with one request in flight on each connection, then with many. Their processor time is divided by the
//! messages that passed: a search that finds one person has three. The capture is our proxy's record of
//! such searches, many times over; each time its connections begin anew.

use super::load::Site;
use super::measured::{self, Run};
use super::{Arguments, maven};
use crate::ldap::{free_address, wait_for};
use crate::process::{Process, children_time};
use crate::report::{Claim, Findings, Table, median};
use keyway_tests::proxy::captured;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The program that it is compared with.
pub const PEER: &str = "UnboundID ldap-debugger 7.0.3";
const ARTIFACT: &str = "com.unboundid:unboundid-ldapsdk:7.0.3";
const CLASS: &str = "com.unboundid.ldap.sdk.examples.LDAPDebugger";
/// Seconds until Java has compiled what it does often.
const WARM_UP: usize = 5;
/// In flight on a connection where there are many.
const MANY: u64 = 16;
/// Messages of one search: the request, an entry, the result.
const MESSAGES: f64 = 3.0;
/// Most microseconds a message, and of the peer's.
const MOST_US: f64 = 5.0;
const OF_PEER: f64 = 0.1;
/// Messages in the capture, and how many a second of processor time are demanded.
const IN_CAPTURE: u64 = 1_000_000;
const LEAST: f64 = 1e6;

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let class_path = maven::class_path(ARTIFACT)?;
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let site = Site::new(folder.path(), class_path.clone())?;
    let seconds = arguments.seconds as usize;
    let mut one = (Vec::new(), Vec::new());
    let mut many = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        for (in_flight, runs) in [(1, &mut one), (MANY, &mut many)] {
            runs.0.push(through(&site, ours, in_flight, seconds)?);
            let debugger = |to: &str, own| debugger(&class_path, to, own);
            runs.1.push(through(&site, debugger, in_flight, seconds)?);
        }
    }
    let capture = capture(&site, folder.path())?;
    let mut read = Vec::new();
    for _ in 0..arguments.rounds {
        read.push(capture.messages as f64 / reading_s(&capture)?);
    }
    let cost = |runs: &[Run]| runs.iter().map(|run| run.cost_us).collect::<Vec<_>>();
    let (first, second) = ("decode proxy, one in flight", "decode proxy, 16 in flight");
    let least = vec![LEAST; read.len()];
    let (unit, reads) = ("messages/s of CPU", "decode, a capture");
    let claims = vec![
        Claim::at_most(first, "us CPU a message", &cost(&one.0), MOST_US),
        Claim::cost(first, "us CPU a message", &cost(&one.0), PEER, &cost(&one.1))
            .demand(1.0 / OF_PEER),
        Claim::at_most(second, "us CPU a message", &cost(&many.0), MOST_US),
        Claim::cost(second, "us CPU a message", &cost(&many.0), PEER, &cost(&many.1))
            .demand(1.0 / OF_PEER),
        Claim::rate(reads, unit, &read, "the least it may be", &least).demand(1.0),
    ];
    let mut table = Table::new("the same runs, messages a second", &["", "Keyway", "peer"]);
    let rate = |runs: &[Run]| {
        format!("{:.0}", median(&runs.iter().map(|run| run.rate).collect::<Vec<_>>()))
    };
    table.rows.push(vec!["one in flight".into(), rate(&one.0), rate(&one.1)]);
    table.rows.push(vec!["16 in flight".into(), rate(&many.0), rate(&many.1)]);
    Ok(Findings { claims, tables: vec![table] })
}

fn ours(to: &str, own: SocketAddr) -> Command {
    let mut command = Command::new(keyway_tests::keyway());
    command.args(["decode", "proxy", "--to", &format!("ldap://{to}")]);
    command.args(["--listen", &own.to_string()]);
    command
}

fn debugger(class_path: &str, to: &str, own: SocketAddr) -> Command {
    let mut command = Command::new("java");
    let (host, port) = to.rsplit_once(':').unwrap_or_default();
    command.args(["-cp", class_path, CLASS, "--hostname", host, "--port", port]);
    command.args(["--listenAddress", &own.ip().to_string()]);
    command.args(["--listenPort", &own.port().to_string()]);
    command
}

/// Sends searches through a proxy, until it is warm and then for so many seconds.
fn through(
    site: &Site<'_>,
    proxy: impl Fn(&str, SocketAddr) -> Command,
    in_flight: u64,
    seconds: usize,
) -> Result<Run, String> {
    let own = free_address()?;
    let mut command = proxy(site.address(), own);
    let proxy = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))?;
    wait_for(own, Duration::from_secs(30))?;
    let mut load = Process::start(&mut site.load_through(&format!("ldap://{own}"), in_flight)?)?;
    let lines = load.child().stderr.take().ok_or("it has no output")?;
    let messages = |line: &str| super::load::done(line).map(|searches| searches * MESSAGES);
    measured::run(lines, proxy.id(), (WARM_UP, seconds), messages)
        .map_err(|why| format!("{command:?}: the load: {why}"))
}

/// A capture, and how many messages are in it.
struct Capture {
    file: PathBuf,
    messages: u64,
}

fn capture(site: &Site<'_>, folder: &Path) -> Result<Capture, String> {
    let once = folder.join("once.pcapng");
    let mut said = Ok(());
    captured(&format!("ldap://{}", site.address()), &once, 0, |url| {
        said = site.load_through(url, 1).and_then(|mut load| {
            let mut load = Process::start(&mut load)?;
            let lines = load.child().stderr.take().ok_or("it has no output")?;
            // A second of it is enough.
            let mut lines = BufReader::new(lines).lines().map_while(Result::ok);
            lines.find(|line| super::load::done(line).is_some()).map(|_| ()).ok_or("no load".into())
        });
    });
    said?;
    let in_one = messages(&once)?;
    let octets = fs::read(&once).map_err(|why| why.to_string())?;
    let file = folder.join("many.pcapng");
    let mut many = File::create(&file).map_err(|why| why.to_string())?;
    let times = IN_CAPTURE.div_ceil(in_one.max(1));
    for _ in 0..times {
        // A file of several sections is one of pcapng.
        many.write_all(&octets).map_err(|why| why.to_string())?;
    }
    Ok(Capture { file, messages: in_one * times })
}

/// How many messages are in a capture.
fn messages(file: &Path) -> Result<u64, String> {
    let mut command = Command::new(keyway_tests::keyway());
    command.args(["decode", "report", "--json"]).arg(file).stdin(Stdio::null());
    let done = command.output().map_err(|why| why.to_string())?;
    let report: Value = serde_json::from_slice(&done.stdout).map_err(|why| why.to_string())?;
    let rows = report["operations"].as_array().cloned().unwrap_or_default();
    let of = |row: &Value| {
        let answered = if row["name"] == "unbind" { 1 } else { 2 };
        row["count"].as_u64().unwrap_or_default() * answered
            + row["entries"].as_u64().unwrap_or_default()
    };
    Ok(rows.iter().map(of).sum())
}

/// Processor time of one reading, in seconds.
fn reading_s(capture: &Capture) -> Result<f64, String> {
    let before = children_time();
    let mut command = Command::new(keyway_tests::keyway());
    command.arg("decode").arg(&capture.file).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().map_err(|why| format!("{command:?}: {why}"))?;
    match status.success() {
        true => Ok(children_time().saturating_sub(before).as_secs_f64().max(1e-3)),
        false => Err(format!("{command:?} fails")),
    }
}
