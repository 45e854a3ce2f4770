//! Joins that come to a good end, whatever came before.

use crate::site::{Site, check, cluster, export, store_of};
use keyway_tests::cryptod::eventually;
use keyway_tests::{Server, finish, keyway};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

/// The follower has all that the writer has, and what is its own: a certificate, a name, an address.
#[test]
fn a_follower_begins_with_the_writers_directory_and_certificates_of_its_own() {
    let site = Site::new(200);
    let token = site.token(&["--name", "bee"]);
    let follower = site.follower("b", &token);
    let (a, b) = (site.at("a"), site.at("b"));
    let shown = cluster(&b, &["status", "--all", "--json"]).expect(0);
    assert!(!shown.err.contains("access rules"), "{}", shown.err);
    let shown: Vec<Value> =
        shown.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown.len(), 2);
    assert_eq!((&shown[0]["name"], &shown[0]["role"]), (&"bee".into(), &"follower".into()));
    assert_eq!(shown[0]["url"], follower.ldaps());
    assert_eq!((&shown[1]["role"], &shown[1]["epoch"]), (&"writer".into(), &1.into()));
    assert_eq!(site.members().len(), 2);
    let same = |name: &str| fs::read(a.join(name)).unwrap() == fs::read(b.join(name)).unwrap();
    assert!(same("ca.pem") && !same("server.pem") && !same("cluster/member.pem"));
    assert_eq!(follower.text("ca_key"), "cryptod:tls-ca");
    assert_eq!(follower.ready["entries"], site.writer.ready["entries"]);
    assert!(follower.stop().success());
    // It is a start as any other now, with or without the flags.
    let flags = ["--follow", site.writer.ldaps(), "--join", &token];
    assert!(Server::start(&b, &flags).stop().success());
    // Rules are each server's own, and are to be alike.
    let rule = "\n[[access]]\nwho = \"users\"\nwhat = \"data\"\nrights = [\"read\"]\n";
    let rules = fs::read_to_string(b.join("keyway.toml")).unwrap() + rule;
    fs::write(b.join("keyway.toml"), rules).unwrap();
    let follower = Server::start(&b, &[]);
    let said = cluster(&b, &["status", "--all"]).expect(0).err;
    assert!(said.contains("the members have different access rules"), "{said}");
    assert!(follower.stop().success());
    assert!(site.writer.stop().success());
    assert_eq!(export(&a), export(&b));
    assert_eq!(store_of(&a), store_of(&b));
    check(&b);
}

#[test]
fn of_two_joins_with_one_token_one_is_done() {
    let site = Site::new(20);
    let token = site.token(&[]);
    let start = |name: &str| {
        let mut join = site.join(name, &token, site.writer.ldaps());
        join.args(["--name", name]).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let both = [start("b"), start("c")];
    let done = both.map(|mut join| join.wait().unwrap().success());
    assert!(done[0] != done[1], "{done:?}");
    let there = ["b", "c"].map(|name| site.at(name).join("store").exists());
    assert_eq!(there, done);
    assert_eq!(site.members().len(), 2);
    let again = site.joined("d", &token).expect(1);
    assert!(again.err.contains("the token is not known, was used already"), "{}", again.err);
}

/// What lies between a joiner and the writer: it stops after so many bytes of the writer's.
struct Relay {
    url: String,
    stopped: std::sync::mpsc::Receiver<[TcpStream; 2]>,
}

fn relay(to: &str, bytes: usize) -> Relay {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ldaps://{}", listener.local_addr().unwrap());
    let (stop, stopped) = std::sync::mpsc::channel();
    let to = to.to_owned();
    thread::spawn(move || {
        let (joiner, _) = listener.accept().unwrap();
        let writer = TcpStream::connect(to).unwrap();
        let (mut from, mut onward) = (joiner.try_clone().unwrap(), writer.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut from, &mut onward));
        let mut left = bytes;
        let mut buffer = [0; 4096];
        let (mut reading, mut writing) = (writer.try_clone().unwrap(), joiner.try_clone().unwrap());
        while left > 0 {
            let read = reading.read(&mut buffer).unwrap();
            writing.write_all(&buffer[..read]).unwrap();
            left = left.saturating_sub(read);
        }
        stop.send([joiner, writer]).unwrap();
    });
    Relay { url, stopped }
}

/// A join that is killed while the base comes leaves nothing that a start takes for a directory, and can be done again with
/// the token that it had.
#[test]
fn a_join_that_is_killed_is_done_again_with_its_token() {
    let site = Site::new(2000);
    let token = site.token(&["--name", "b"]);
    let Relay { url, stopped } = relay(site.writer.tls_address(), 200_000);
    let mut join = site.join("b", &token, &url).stderr(Stdio::null()).spawn().unwrap();
    let ends = stopped.recv().unwrap();
    assert_eq!(site.members(), [site.members()[0].as_str(), "b"], "it is being added");
    let second = site.joined("c", &token).expect(1);
    assert!(second.err.contains("the token is not known"), "{}", second.err);
    join.kill().unwrap();
    join.wait().unwrap();
    ends.iter().for_each(|end| end.shutdown(Shutdown::Both).unwrap());
    assert!(!site.at("b").join("store").exists());
    let mut up = Command::new(keyway());
    up.args(["up", "--listen", "off", "--listen-tls", "127.0.0.1:0", "--data"]).arg(site.at("b"));
    let refused = finish(&mut up, "").expect(1);
    assert!(refused.err.contains("something else than Keyway's data"), "{}", refused.err);
    eventually("the writer undoes it", || site.members().len() == 1);
    eventually("the token is good again", || site.joined("b", &token).code == 0);
    assert_eq!(site.members().len(), 2);
    let (a, b) = (site.at("a"), site.at("b"));
    let follower = Server::start(&b, &[]);
    assert_eq!(follower.ready["entries"], site.writer.ready["entries"]);
    assert!(follower.stop().success() && site.writer.stop().success());
    assert_eq!(export(&a), export(&b));
}

/// A configuration of the other host's own wins; the writer's would name the writer.
#[test]
fn a_configuration_that_is_there_stays() {
    let site = Site::new(5);
    let text = "[limits]\nidle_max_s = 77\n";
    fs::create_dir(site.at("b")).unwrap();
    keyway_tests::secret(&site.at("b").join("keyway.toml"), text);
    let mut closed = Command::new("chmod");
    finish(closed.arg("700").arg(site.at("b")), "").expect(0);
    let follower = site.follower("b", &site.token(&[]));
    assert_eq!(fs::read_to_string(site.at("b").join("keyway.toml")).unwrap(), text);
    assert!(follower.stop().success());
}
