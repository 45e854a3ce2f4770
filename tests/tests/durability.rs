//! kill -9 in the middle of a stream of adds: acknowledged adds are there, and the store is sound.

use keyway_tests::client::Client;
use keyway_tests::{Server, finish, keyway};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

const PEOPLE: &str = "ou=People,dc=example,dc=com";
/// So many members that they lie apart from the group's record.
const GROUP: &str = "cn=everyone,ou=People,dc=example,dc=com";
const MEMBERS: u32 = 2_000;
const KILLS: u32 = 10;
const WRITERS: u32 = 4;

#[test]
fn every_acknowledged_add_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut acknowledged = BTreeSet::new();
    let server = Server::start(&data, &["--sample", "5"]);
    add_group(&mut connect(&server));
    assert!(server.stop().success());
    for round in 0..KILLS {
        let mut server = Server::start(&data, &[]);
        check_all(&server, &acknowledged);
        // A different moment each time: after so many acknowledgements.
        acknowledged.extend(add_until_killed(&mut server, round, 20 + 37 * round));
        check_store(&data);
    }
    let server = Server::start(&data, &[]);
    check_all(&server, &acknowledged);
    assert!(acknowledged.len() as u32 >= KILLS * 20);
}

fn connect(server: &Server) -> Client {
    let address: SocketAddr = server.address().parse().unwrap();
    let mut client = Client::connect(address).unwrap();
    client.bind(server.administrator(), &server.password()).unwrap();
    client
}

/// Adds from several connections; after `kill_after` acknowledgements the server is killed while
/// the others are still writing. Returns what was acknowledged.
fn add_until_killed(server: &mut Server, round: u32, kill_after: u32) -> BTreeSet<String> {
    let acknowledged = Mutex::new(BTreeSet::new());
    let count = AtomicU32::new(0);
    let clients: Vec<Client> = (0..WRITERS).map(|_| connect(server)).collect();
    let (enough, killer) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for (writer, mut client) in clients.into_iter().enumerate() {
            let (acknowledged, count, enough) = (&acknowledged, &count, enough.clone());
            scope.spawn(move || {
                for number in 0.. {
                    let uid = format!("r{round}w{writer}n{number}");
                    if add(&mut client, &uid).is_err() || join(&mut client, &uid).is_err() {
                        return; // the server is gone
                    }
                    acknowledged.lock().unwrap().insert(uid);
                    if count.fetch_add(1, Ordering::Relaxed) + 1 == kill_after {
                        enough.send(()).unwrap();
                    }
                }
            });
        }
        killer.recv().unwrap();
        server.kill();
    });
    acknowledged.into_inner().unwrap()
}

fn add(client: &mut Client, uid: &str) -> Result<(), String> {
    let attributes: [(&str, &[&str]); 4] = [
        ("objectClass", &["inetOrgPerson"]),
        ("uid", &[uid]),
        ("cn", &["Some One"]),
        ("sn", &["One"]),
    ];
    client.add(&format!("uid={uid},{PEOPLE}"), &attributes)
}

fn add_group(client: &mut Client) {
    let members: Vec<String> = (0..MEMBERS).map(|n| format!("uid=m{n},{PEOPLE}")).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    let class: (&str, &[&str]) = ("objectClass", &["groupOfNames"]);
    client.add(GROUP, &[class, ("cn", &["everyone"]), ("member", &members)]).unwrap();
}

/// A user becomes a member, and another one leaves and comes back.
fn join(client: &mut Client, uid: &str) -> Result<(), String> {
    let member = format!("uid={uid},{PEOPLE}");
    client.add_value(GROUP, "member", &member)?;
    client.delete_value(GROUP, "member", &member.to_uppercase())?;
    client.add_value(GROUP, "member", &member)
}

fn check_all(server: &Server, acknowledged: &BTreeSet<String>) {
    let mut client = connect(server);
    for uid in acknowledged {
        let found = client.search("dc=example,dc=com", "uid", uid).unwrap();
        assert_eq!(found, 1, "{uid} was acknowledged and is gone");
        let found = client.search(GROUP, "member", &format!("uid={uid},{PEOPLE}")).unwrap();
        assert_eq!(found, 1, "{uid} was made a member and is none");
    }
}

/// The program's own check of everything that must fit together, and an export.
fn check_store(data: &Path) {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(keyway());
        finish(command.args(["directory"]).args(arguments).arg("--data").arg(data), "").expect(0)
    };
    run(&["check"]);
    assert!(run(&["export", "-"]).out.contains("dn: dc=example,dc=com"));
}
