//! `keyway metrics` beside a running server, and where none runs.

use crate::support::{KEYWAY, Running, bind, keyway};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// The value of the line that begins so.
fn value(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok())
}

#[test]
fn they_are_printed_with_what_the_server_has_done() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = Running::start(&data, &["--sample", "1"]);
    let shown = data.to_str().unwrap();
    let look = || keyway(["metrics", "--data", shown]).well().out;
    let before = look();
    assert_eq!(value(&before, "keyway_up{process=\"directory\"}"), Some(1.0), "{before}");
    bind(&running, "cn=absent", "wrong");
    let after = look();
    let binds = |text| value(text, "keyway_ldap_bind_total").unwrap();
    assert_eq!(binds(&after), binds(&before) + 1.0, "{after}");
    running.stop();
    let stopped = look();
    assert_eq!(value(&stopped, "keyway_up{process=\"directory\"}"), Some(0.0), "{stopped}");
    assert_eq!(value(&stopped, "keyway_ldap_bind_total"), None, "{stopped}");
}

#[test]
fn who_asks_is_answered_until_the_end() {
    let place = tempfile::tempdir().unwrap();
    let mut child = Command::new(KEYWAY)
        .args(["metrics", "--listen", "127.0.0.1:0", "--data"])
        .arg(place.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let get = |path| ask(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    let answer = get("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("text/plain; version=0.0.4"), "{answer}");
    assert!(answer.contains("keyway_up{process=\"directory\"} 0"), "{answer}");
    assert!(get("/").starts_with("HTTP/1.1 404"));
    assert!(ask("rubbish\r\n\r\n").starts_with("HTTP/1.1 400"));
    let taken = keyway(["metrics", "--listen", address]);
    assert_eq!(taken.code, Some(1));
    assert!(taken.err.contains("is in use by another program"), "{}", taken.err);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}
