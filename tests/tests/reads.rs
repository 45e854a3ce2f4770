//! What a connection reads, while others write: all that was answered, under names and rights as they are now.

use keyway_tests::client::Client;
use keyway_tests::{Server, available, finish, sample};
use std::fs;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const BASE: &str = "dc=example,dc=com";
const PEOPLE: &str = "ou=People,dc=example,dc=com";
const UNIT: [(&str, &[&str]); 1] = [("objectClass", &["organizationalUnit"])];

fn connect(server: &Server) -> Client {
    let address: SocketAddr = server.address().parse().unwrap();
    let mut client = Client::connect(address).unwrap();
    client.bind(server.administrator(), &server.password()).unwrap();
    client
}

fn add_person(client: &mut Client, uid: &str, above: &str) {
    let values: [(&str, &[&str]); 4] =
        [("objectClass", &["inetOrgPerson"]), ("uid", &[uid]), ("cn", &[uid]), ("sn", &["x"])];
    client.add(&format!("uid={uid},{above}"), &values).unwrap();
}

#[test]
fn an_answered_write_is_seen_by_the_next_search_on_every_connection() {
    const WRITERS: usize = 16;
    const WRITES: usize = 15;
    let (_folder, server) = sample(2);
    let over = AtomicBool::new(false);
    // Connections that read all the time, and some that are asked right after a write.
    let others: Vec<Mutex<Client>> = (0..4).map(|_| Mutex::new(connect(&server))).collect();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = connect(&server);
                let mut seen = 0;
                while !over.load(Ordering::Relaxed) {
                    let now = client.search(BASE, "uid", "w0-0").unwrap();
                    assert!(now >= seen, "it was there and is gone");
                    seen = now;
                }
            });
        }
        let write = |writer: usize| {
            let (mut client, others) = (connect(&server), &others);
            move || {
                for at in 0..WRITES {
                    let uid = format!("w{writer}-{at}");
                    add_person(&mut client, &uid, PEOPLE);
                    assert_eq!(client.search(BASE, "uid", &uid), Ok(1), "{uid}, its own writer");
                    let mut other = others[(writer + at) % others.len()].lock().unwrap();
                    assert_eq!(other.search(PEOPLE, "uid", &uid), Ok(1), "{uid}, another");
                    assert_eq!(other.read(&format!("uid={uid},{PEOPLE}")), Ok(1));
                }
            }
        };
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(write(writer))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        over.store(true, Ordering::Relaxed);
    });
    assert!(server.stop().success());
}

#[test]
fn the_data_file_does_not_grow_for_connections_that_have_read() {
    /// A change writes ten pages and more: were none of them used again, hundreds of changes took many times as much.
    const GROWTH_BYTES_MAX: u64 = 1 << 20;
    let (folder, server) = sample(2);
    let file = folder.path().join("data/store/data.mdb");
    let bytes = || fs::metadata(&file).unwrap().len();
    let mut client = connect(&server);
    add_person(&mut client, "changed", PEOPLE);
    let dn = format!("uid=changed,{PEOPLE}");
    let mut readers: Vec<Client> = (0..16).map(|_| connect(&server)).collect();
    let mut change = |readers: &mut [Client]| {
        for value in ["one", "two"] {
            client.add_value(&dn, "title", value).unwrap();
            readers.iter_mut().for_each(|it| assert_eq!(it.search(BASE, "title", value), Ok(1)));
            client.delete_value(&dn, "title", value).unwrap();
            readers.iter_mut().for_each(|it| assert_eq!(it.search(BASE, "title", value), Ok(0)));
        }
    };
    (0..10).for_each(|_| change(&mut []));
    let before = bytes();
    (0..100).for_each(|_| change(&mut readers));
    let grown = bytes() - before;
    assert!(grown <= GROWTH_BYTES_MAX, "it has grown by {grown} bytes");
    assert!(server.stop().success());
}

#[test]
fn a_connection_sees_names_scopes_definitions_and_rights_as_they_are_now() {
    if !available(&["ldapmodify"]) {
        return;
    }
    let (_folder, server) = sample(2);
    let modify = |ldif: &str| drop(finish(&mut server.admin_tool("ldapmodify"), ldif).expect(0));
    let mut client = connect(&server);
    let (old, new) = (format!("ou=old,{BASE}"), format!("ou=new,{BASE}"));
    client.add(&old, &UNIT).unwrap();
    client.add(&format!("ou=deep,{old}"), &UNIT).unwrap();
    add_person(&mut client, "mover", &format!("ou=deep,{old}"));
    assert_eq!(client.search(&old, "uid", "mover"), Ok(1));
    assert_eq!(client.search(&new, "uid", "mover").ok(), None);

    // A unit is renamed, and what is below it goes with it.
    modify(&format!("dn: {old}\nchangetype: modrdn\nnewrdn: ou=new\ndeleteoldrdn: 1\n"));
    assert_eq!(client.search(&new, "uid", "mover"), Ok(1));
    assert_eq!(client.search(&old, "uid", "mover").ok(), None);
    assert_eq!(client.read(&format!("uid=mover,ou=deep,{new}")), Ok(1));

    // A subtree moves out of it.
    modify(&format!(
        "dn: ou=deep,{new}\nchangetype: modrdn\nnewrdn: ou=deep\ndeleteoldrdn: 1\nnewsuperior: {BASE}\n"
    ));
    assert_eq!(client.search(&new, "uid", "mover"), Ok(0));
    assert_eq!(client.search(&format!("ou=deep,{BASE}"), "uid", "mover"), Ok(1));
    assert_eq!(client.search(BASE, "uid", "mover"), Ok(1));

    // A base whose attribute was not known becomes one that is.
    let shade = format!("shade=red,{BASE}");
    assert_eq!(client.search(&shade, "uid", "x").ok(), None);
    modify(
        "dn: cn=schema\nchangetype: modify\nadd: attributeTypes\n\
         attributeTypes: ( 1.3.6.1.4.1.99999.7 NAME 'shade' EQUALITY caseIgnoreMatch \
         SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )\n",
    );
    let values: [(&str, &[&str]); 2] =
        [("objectClass", &["account", "extensibleObject"]), ("uid", &["x"])];
    client.add(&shade, &values).unwrap();
    assert_eq!(client.search(&shade, "uid", "x"), Ok(1));

    // A user gets a right that none has who is not given it by name, and loses it.
    let (password, hash) = ("a long secret of theirs", "{SSHA}AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let deep = format!("ou=deep,{BASE}");
    add_person(&mut client, "other", &deep);
    for (uid, value) in [("mover", password), ("other", hash)] {
        modify(&format!(
            "dn: uid={uid},{deep}\nchangetype: modify\nreplace: userPassword\nuserPassword: {value}\n"
        ));
    }
    let mut user = Client::connect(server.address().parse().unwrap()).unwrap();
    user.bind(&format!("uid=mover,{deep}"), password).unwrap();
    let mut found = || user.search(&deep, "userPassword", hash).unwrap();
    let rule = |rule: &str| {
        modify(&format!("dn: {deep}\nchangetype: modify\nreplace: keywayAccessRule\n{rule}"));
    };
    assert_eq!(found(), 0);
    rule(
        "keywayAccessRule: who = \"users\", attributes = [\"userPassword\"], \
         rights = [\"read\", \"search\"]\n",
    );
    assert_eq!(found(), 1);
    rule("");
    assert_eq!(found(), 0);
    assert!(server.stop().success());
}
