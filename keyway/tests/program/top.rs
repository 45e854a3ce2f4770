//! `keyway top` beside a running server.

use crate::support::{KEYWAY, Running, keyway};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn spawn(data: &Path, arguments: &[&str]) -> Child {
    Command::new(KEYWAY)
        .args(["top", "--data"])
        .arg(data)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// An unbind is an operation that needs no answer.
fn unbind(running: &Running) {
    let address: SocketAddr = running.text("ldap").trim_start_matches("ldap://").parse().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&[0x30, 5, 0x02, 1, 1, 0x42, 0]).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
}

#[test]
fn a_line_of_json_each_and_a_count() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = Running::start(&data, &["--sample", "1"]);
    let mut child = spawn(&data, &["--json", "--interval", "0.02"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    for name in ["total", "bind", "search", "compare", "add", "delete", "modify", "moddn", "unbind"]
    {
        assert!(first["per_second"][name].is_number(), "{name} in {first}");
        assert!(first["since_start"][name].is_u64(), "{name} in {first}");
    }
    assert!(first["per_second"]["extended"].is_number() && first["connections"].is_u64());
    assert!(first["interval_s"].as_f64().unwrap() > 0.0);
    let engine = first["engine"].as_array().unwrap();
    let operations = |work: &Value| work["since_start"]["operations"].as_u64().unwrap();
    assert!(engine.iter().any(|work| work["driver"] == "software" && operations(work) > 0));
    let before = first["since_start"]["unbind"].as_u64().unwrap();
    unbind(&running);
    let mut seen = next();
    while seen["since_start"]["unbind"] != before + 1 {
        seen = next();
    }
    // Its end is the server's.
    running.stop();
    // Lines without a reader fill the pipe, and it would wait for one for ever.
    lines.for_each(|line| drop(line.unwrap()));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stderr).unwrap().contains("the server has stopped"));
}

#[test]
fn lines_for_people_with_a_header_every_twenty() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = Running::start(&data, &["--sample", "1"]);
    let shown = data.to_str().unwrap();
    let done = keyway(["top", "--data", shown, "--interval", "0.01", "--count", "25"]).well();
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines[0].contains("search"), "{}", lines[0]);
    let headers: Vec<usize> = (0..lines.len()).filter(|at| lines[*at] == lines[0]).collect();
    assert!(headers.windows(2).all(|pair| pair[1] - pair[0] <= 21), "{headers:?}");
    // The engine's work, if there is any meanwhile, stands in between.
    let width = |line: &str| line.split_whitespace().count();
    let numbers =
        |line: &&&str| line.trim_start().starts_with(|first: char| first.is_ascii_digit());
    let shown: Vec<_> = lines.iter().filter(numbers).collect();
    assert_eq!(shown.iter().filter(|line| width(line) == width(lines[0])).count(), 25);
    running.stop();
}

#[test]
fn it_ends_quietly_without_a_reader_or_when_one_has_seen_enough() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = Running::start(&data, &["--sample", "1"]);
    let mut child = spawn(&data, &["--interval", "0.01"]);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    drop(output);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
    let mut child = spawn(&data, &["--interval", "0.01"]);
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
    running.stop();
}

#[test]
fn nothing_to_look_at() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let shown = data.to_str().unwrap();
    keyway(["top", "--data", shown]).refused(1, &[shown, "no server runs"]);
    Running::start(&data, &["--sample", "0"]).stop();
    keyway(["top", "--data", shown]).refused(1, &[shown, "no server runs"]);
    std::fs::write(data.join("meter"), "not a page").unwrap();
    keyway(["top", "--data", shown]).refused(1, &["meter", "not a page"]);
}
