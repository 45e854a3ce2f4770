//! An etcd that loses events, and members that do not have one etcd.

use crate::site::{Place, SILENCE_MAX, Site, add, add_in_time, connect, until};
use keyway_tests::etcd::{self, Etcd};
use keyway_tests::port;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
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

fn restart(place: &mut Place, old: &str, new: &str) {
    place.set(old, new);
    place.start(&[]);
}

#[test]
fn members_without_the_writers_etcd_do_not_write_and_say_so() {
    if !etcd::available() {
        return;
    }
    let (mut site, other) = (Site::new(3, 1, 2), Etcd::start(1));
    let writer = site.writer();
    let strayed: Vec<_> = (0..3).filter(|place| *place != writer).collect();
    let setting = |etcd: &Etcd| format!("etcd = [\"http://{}\"]\n", etcd.addresses()[0]);
    let (own, others) = (setting(&site.etcd), setting(&other));
    let says = |site: &Site, place: usize, text: &str| {
        let status = until(text, || {
            let status = site.places[place].status()?;
            status["last_error"].as_str()?.contains(text).then_some(status)
        });
        assert_ne!(status["role"], "writer", "{status}");
        assert_eq!(status["is_connected"], false, "{status}");
    };
    for place in &strayed {
        restart(&mut site.places[*place], &own, &others);
    }
    for (place, uid) in strayed.iter().zip(["one", "two"]) {
        says(&site, *place, "not by this server's etcd");
        add_in_time(uid, || site.client(writer));
    }
    assert_eq!(site.writer(), writer);
    // The writer's contents come over a connection to it then, and that is no failure.
    let one = strayed[0];
    restart(&mut site.places[one], &others, "");
    let without = "cluster.etcd is not set here";
    until(without, || site.places[one].trouble().contains(without).then_some(()));
    let refused = site.places[one].cluster(&["promote"]).expect(1).err;
    assert!(refused.contains("may hold it still"), "{refused}");
    add_in_time("three", || site.client(writer));
    restart(&mut site.places[one], "[cluster]\n", &format!("[cluster]\n{own}"));
    restart(&mut site.places[strayed[1]], &others, &own);
    assert_eq!(site.writer(), writer);
    site.settle();
}

/// A copy of a member's folder that runs beside it: two of one name would hold the lease in turns.
#[test]
fn a_copy_of_a_folder_takes_no_lease_and_says_so() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(2, 1, 2);
    let writer = site.writer();
    let follower = 1 - writer;
    site.settle();
    let first = &mut site.places[follower];
    assert!(first.server.take().unwrap().stop().success());
    let folder = first.folder.with_file_name("twin");
    assert!(
        Command::new("cp").arg("-a").args([&first.folder, &folder]).status().unwrap().success()
    );
    first.start(&[]);
    let mut twin = Place { folder, addresses: [port(), port()], server: None };
    let [old, new] = [&first.addresses[1], &twin.addresses[1]].map(|at| format!("ldaps://{at}"));
    twin.set(&old, &new);
    twin.start(&[]);
    let said = until("its status says so", || {
        let trouble = twin.trouble();
        trouble.contains("another process with this member's identifier").then_some(trouble)
    });
    assert!(said.contains("end one of them"), "{said}");
    until("the first is well", || site.places[follower].trouble().is_empty().then_some(()));
    site.kill(writer);
    let log = twin.folder.join("log/error.log");
    add_in_time("by-the-first", || site.client(follower));
    let twins = twin.status().unwrap();
    assert!(twins["role"] != "writer" && twins["is_connected"] == false, "{twins}");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("this server holds the writer's lease"), "{log}");
    // It is the only one when the first is gone.
    site.kill(follower);
    until("it writes", || (twin.status()?["role"] == "writer").then_some(()));
    assert!(twin.server.take().unwrap().stop().success());
}

#[test]
fn a_writer_whose_etcd_was_taken_from_it_writes_when_a_person_says_so() {
    if !etcd::available() {
        return;
    }
    let mut site = Site::new(2, 1, 4);
    let writer = site.writer();
    site.settle();
    let setting = format!("etcd = [\"http://{}\"]\n", site.etcd.addresses()[0]);
    // First the writer alone: the other one takes the lease.
    restart(&mut site.places[writer], &setting, "");
    let refused = add(&mut site.client(writer), "early").unwrap_err();
    assert!(refused.contains("unwillingToPerform"), "{refused}");
    let status = site.places[writer].status().unwrap();
    assert_eq!(status["role"], "fenced");
    add_in_time("by-the-other", || site.client(1 - writer));
    // By force it writes, until the holder of the lease hears of it, and begins a later epoch.
    site.places[writer].cluster(&["promote", "--force"]).expect(0);
    until("the holder of the lease writes", || {
        let role = site.places[1 - writer].status()?["role"] == "writer";
        (role && site.places[writer].status()?["role"] == "fenced").then_some(())
    });
    add_in_time("after-force", || site.client(1 - writer));
    restart(&mut site.places[writer], "[cluster]\n", &format!("[cluster]\n{setting}"));
    until("its status says so", || {
        site.places[writer].trouble().contains("keyway cluster rejoin").then_some(())
    });
    assert!(site.places[writer].server.take().unwrap().stop().success());
    site.places[writer].cluster(&["rejoin"]).expect(0);
    site.places[writer].start(&[]);
    site.settle();
    // Then all.
    let writer = site.writer();
    site.places.iter_mut().for_each(|place| place.set(&setting, ""));
    site.places.iter_mut().for_each(|place| place.start(&[]));
    for place in [writer, 1 - writer] {
        let said = until("its status says so", || {
            let trouble = site.places[place].trouble();
            trouble.contains("promote --force").then_some(trouble)
        });
        assert!(said.contains("had a lease in etcd"), "{said}");
        let refused = site.places[place].cluster(&["promote"]).expect(1).err;
        assert!(refused.contains("add --force"), "{refused}");
    }
    site.places[writer].cluster(&["promote", "--force"]).expect(0);
    add(&mut site.client(writer), "alone").unwrap();
    let export = site.end();
    for uid in ["by-the-other", "after-force", "alone"] {
        assert!(export.contains(&format!("\ndn: uid={uid},")), "{uid}");
    }
    assert!(!export.contains("uid=early,"));
}
