//! Servers that are no etcd of ours: too old, cut off, endless, without sense.

use crate::{A, CLUSTER, LEASE, runtime};
use keyway_cluster_etcd::{Error, Etcd, Followed, Options, Point};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const STATUS: &str = r#"{"header":{"revision":"1"},"version":"3.6.16"}"#;
const MIB: usize = 1 << 20;

/// The answer to a path that is not the status: a body, and how long it says to be.
type Answers = fn(&str) -> (Vec<u8>, usize);

/// Serves connections until the process ends.
fn serve(status: &'static str, answers: Answers) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || talk(stream, status, answers));
        }
    });
    address
}

fn talk(stream: TcpStream, status: &str, answers: Answers) -> Option<()> {
    let mut input = BufReader::new(stream.try_clone().ok()?);
    let mut output = stream;
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            input.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if path.is_empty() {
                path = line.split(' ').nth(1)?.to_owned();
            } else if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            } else if line == "\r\n" {
                break;
            }
        }
        input.read_exact(&mut vec![0; length]).ok()?;
        let (body, length) = match path.as_str() {
            "/v3/maintenance/status" => whole(status),
            path => answers(path),
        };
        write!(output, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").ok()?;
        output.write_all(&body).ok()?;
        if body.len() < length {
            return None;
        }
    }
}

fn whole(text: &str) -> (Vec<u8>, usize) {
    (text.as_bytes().to_vec(), text.len())
}

fn client(address: SocketAddr, runtime: &tokio::runtime::Runtime) -> Etcd {
    let url = format!("http://{address}").parse().unwrap();
    let call_limit = Duration::from_secs(2);
    let options = Options { call_limit, ..Options::new(vec![url], CLUSTER) };
    Etcd::new(options, runtime.handle().clone()).unwrap()
}

#[test]
fn an_etcd_before_3_6_is_refused() {
    let runtime = runtime();
    let address = serve(r#"{"header":{},"version":"3.4.23"}"#, |_| whole("{}"));
    let etcd = client(address, &runtime);
    let refused = etcd.head().unwrap_err();
    assert!(matches!(&refused, Error::TooOld { version, .. } if version == "3.4.23"));
    let text = refused.to_string();
    assert!(text.contains("3.4.23") && text.contains("upgrade it to 3.6"), "{text}");
    assert!(matches!(etcd.take(A, LEASE), Err(Error::TooOld { .. })));
    assert!(matches!(etcd.follow(Point::START).next(Duration::ZERO), Err(Error::TooOld { .. })));
}

#[test]
fn answers_without_sense_are_errors() {
    let runtime = runtime();
    // What each says to a transaction, after a sound status.
    let hostile: [Answers; 8] = [
        |_| whole("{"),
        |_| whole("[]"),
        |_| {
            whole(
                r#"{"header":{"revision":"1"},"responses":[{"response_range":{"kvs":[{"key":"!"}]}}]}"#,
            )
        },
        |_| {
            whole(
                r#"{"header":{"revision":"1"},"responses":[{"response_range":{"kvs":[{"value":"AAA"}]}}]}"#,
            )
        },
        |_| whole(r#"{"header":{"revision":"99999999999999999999"}}"#),
        |_| whole(r#"{"result":{}}"#),
        // Cut off, and endless.
        |_| (b"{\"header\":".to_vec(), 1000),
        |_| (vec![b' '; 40 * MIB], 1000 * MIB),
    ];
    for (number, answers) in hostile.into_iter().enumerate() {
        let address = serve(STATUS, answers);
        let refused = client(address, &runtime).head().unwrap_err();
        let is_told = matches!(refused, Error::Answer(_) | Error::Unavailable(_));
        assert!(is_told, "{number}: {refused}");
        let mut follower = client(address, &runtime).follow(Point::START);
        assert!(follower.next(Duration::ZERO).is_err(), "{number}");
    }
}

#[test]
fn a_watch_without_sense_ends_in_time() {
    /// An empty feed that begins at 0, and its watch.
    fn feed(path: &str, watch: (Vec<u8>, usize)) -> (Vec<u8>, usize) {
        let none = "A".repeat(54) + "==";
        let head = format!(r#"{{"response_range":{{"kvs":[{{"value":"{none}"}}]}}}}"#);
        match path {
            "/v3/watch" => watch,
            _ => whole(&format!(
                r#"{{"header":{{"revision":"1"}},"responses":[{{"response_range":{{}}}},{head}]}}"#
            )),
        }
    }
    let runtime = runtime();
    let hostile: [Answers; 7] = [
        |path| feed(path, whole("")),
        |path| feed(path, whole("{}\n")),
        |path| feed(path, whole("no JSON\n")),
        |path| feed(path, whole("{\"error\":{\"code\":14}}\n")),
        |path| feed(path, whole("{\"result\":{\"events\":[{\"kv\":{\"key\":\"AAAA\"}}]}}\n")),
        |path| feed(path, (b"{\"result\":".to_vec(), 1000)),
        |path| feed(path, (vec![b' '; 20 * MIB], 1000 * MIB)),
    ];
    for (number, answers) in hostile.into_iter().enumerate() {
        let mut follower = client(serve(STATUS, answers), &runtime).follow(Point::START);
        for _ in 0..3 {
            let learnt = follower.next(Duration::from_millis(200));
            assert!(matches!(learnt, Ok(Followed::Idle) | Err(_)), "{number}: {learnt:?}");
        }
    }
}
