//! Floods of binds: whoever shows a right password gets in.

use keyway_tests::client::Client;
use keyway_tests::{Server, sample};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Connections that bind again as soon as they are answered.
const FLOODING: usize = 200;
/// Good binds that are made meanwhile.
const GOOD: usize = 20;

fn address(server: &Server) -> SocketAddr {
    server.address().parse().unwrap()
}

fn uid(number: usize) -> String {
    format!("uid=nobody{number},ou=people,dc=example,dc=com")
}

/// Floods with wrong passwords for the names that `name` gives to connection and round, and
/// asserts that good binds succeed.
fn flood(mut server: Server, name: &(dyn Fn(usize, usize) -> String + Sync)) {
    let (address, password) = (address(&server), server.password());
    let over = AtomicBool::new(false);
    let (answered, answers) = mpsc::channel();
    thread::scope(|scope| {
        for connection in 0..FLOODING {
            let (over, answered) = (&over, answered.clone());
            scope.spawn(move || {
                let mut client = Client::connect(address).unwrap();
                for round in 0.. {
                    client.bind(&name(connection, round), "wrong").unwrap_err();
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    let _ = answered.send(());
                }
            });
        }
        // The good ones begin when the flood is there.
        assert_eq!(answers.iter().take(20).count(), 20);
        let good = (0..GOOD).filter(|_| {
            let mut client = Client::connect(address).unwrap();
            client.bind(server.administrator(), &password).is_ok()
        });
        let good = good.count();
        over.store(true, Ordering::Relaxed);
        let up = server.is_up();
        // Those who still wait for an answer need not.
        server.kill();
        assert!(good >= GOOD * 9 / 10, "{good} of {GOOD}");
        assert!(up);
    });
}

#[test]
fn nobody_shuts_nobody_out() {
    let (_folder, server) = sample(1);
    flood(server, &|_, _| uid(1));
}

#[test]
fn neither_do_many_who_are_nobody() {
    let (_folder, server) = sample(1);
    flood(server, &|connection, round| uid(connection * 1_000_000 + round));
}

/// The victim binds from the same address.
#[test]
fn a_victim_gets_in_beside_those_who_guess() {
    let (_folder, server) = sample(1);
    let victim = server.administrator().to_owned();
    flood(server, &|connection, round| match connection % 3 {
        0 => uid(connection * 1_000_000 + round),
        _ => victim.clone(),
    });
}
