//! An etcd that loses events.

use crate::site::{Place, SILENCE_MAX, add, connect, until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Says that it is etcd 3.4, whatever it is asked.
fn old(stream: TcpStream) -> Option<()> {
    const STATUS: &str = r#"{"header":{},"version":"3.4.23"}"#;
    let mut input = BufReader::new(stream.try_clone().ok()?);
    let mut output = stream;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            input.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            } else if line == "\r\n" {
                break;
            }
        }
        input.read_exact(&mut vec![0; length]).ok()?;
        let length = STATUS.len();
        write!(output, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{STATUS}").ok()?;
    }
}

#[test]
fn an_etcd_before_3_6_is_refused_and_the_status_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the process.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || old(stream));
        }
    });
    let root = tempfile::tempdir().unwrap();
    let mut place = Place::new(root.path(), "a", &format!("etcd = [\"http://{address}\"]\n"));
    place.start(&["--sample", "5"]);
    // It may become the first member of a cluster.
    place.cluster(&["token"]).expect(0);
    let said = until("its status says so", || {
        let trouble = place.trouble();
        trouble.contains("3.4.23").then_some(trouble)
    });
    assert!(said.contains("upgrade it to 3.6"), "{said}");
    let password = place.server().password();
    let mut client = connect(&place.addresses[0], &password, SILENCE_MAX).unwrap();
    assert_eq!(client.read("dc=example,dc=com").unwrap(), 1);
    // It is alone yet, and depends on no other.
    add(&mut client, "alone").unwrap();
    assert!(place.server.take().unwrap().stop().success());
}
