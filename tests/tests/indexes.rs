//! Indexes that are added, dropped and made anew while a server runs, and what is said of them.

use keyway_tests::client::Client;
use keyway_tests::{Finished, Server, available, finish, keyway, sample};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const BASE: &str = "dc=example,dc=com";
const PEOPLE: &str = "ou=People,dc=example,dc=com";

/// `keyway directory`, as JSON.
fn asked(data: &str, arguments: &[&str]) -> Value {
    let mut command = Command::new(keyway());
    let out = finish(command.arg("directory").args(arguments).args(["--json", "--data", data]), "");
    serde_json::from_str(&out.out).unwrap_or_else(|why| panic!("{why}: {}{}", out.out, out.err))
}

/// Waits until all indexes are whole; those of an attribute then.
fn settled(data: &str, attribute: &str) -> Vec<String> {
    loop {
        let all = asked(data, &["indexes"]);
        let all = all["indexes"].as_array().unwrap();
        if all.iter().any(|one| one["state"] != "whole") {
            continue;
        }
        let own = all.iter().filter(|one| one["attribute"] == attribute);
        return own.map(|one| one["kind"].as_str().unwrap().to_owned()).collect();
    }
}

/// Writes other lines into `[indexes]`, and has the server take them.
fn want(server: &mut Server, lines: &[(&str, &str)]) {
    let file = Path::new(server.text("data")).join("keyway.toml");
    let mut text = fs::read_to_string(&file).unwrap();
    for (attribute, kinds) in lines {
        let is_own = |line: &&str| !line.starts_with(&format!("{attribute} = ["));
        let mut kept = text.lines().filter(is_own).collect::<Vec<_>>().join("\n") + "\n";
        if !kinds.is_empty() {
            kept = kept.replace("[indexes]\n", &format!("[indexes]\n{attribute} = [{kinds}]\n"));
        }
        text = kept;
    }
    fs::write(&file, text).unwrap();
    server.signal(Signal::HUP);
    assert_eq!(server.next_event(), json!({ "event": "reloaded", "at_next_start": [] }));
}

fn connect(server: &Server) -> Client {
    let address: SocketAddr = server.address().parse().unwrap();
    let mut client = Client::connect(address).unwrap();
    client.bind(server.administrator(), &server.password()).unwrap();
    client
}

fn add(client: &mut Client, uid: &str, sn: &str) -> Result<(), String> {
    let attributes: [(&str, &[&str]); 5] = [
        ("objectClass", &["inetOrgPerson"]),
        ("uid", &[uid]),
        ("cn", &["Some One"]),
        ("sn", &[sn]),
        ("description", &["made while indexes were"]),
    ];
    client.add(&format!("uid={uid},{PEOPLE}"), &attributes)
}

/// How many entries `ldapsearch` finds.
fn found(server: &Server, filter: &str) -> usize {
    let mut search = server.admin_tool("ldapsearch");
    let out = finish(search.args(["-LLL", "-b", BASE, filter, "1.1"]), "").expect(0).out;
    out.lines().filter(|line| line.starts_with("dn: ")).count()
}

fn check(data: &str) -> Finished {
    finish(Command::new(keyway()).args(["directory", "check", "--data", data]), "").expect(0)
}

#[test]
fn indexes_come_and_go_while_others_write() {
    if !available(&["ldapsearch", "ldapmodify"]) {
        return;
    }
    let (_folder, mut server) = sample(1_500);
    let data = server.text("data").to_owned();
    let filter = "(&(sn~=webber)(description=*while*))";
    let before = asked(&data, &["explain", filter]);
    assert_eq!((&before["indexed"], &before["walks_scope"]), (&json!(false), &json!(true)));
    assert_eq!(before["missing"], json!({ "attribute": "sn", "kind": "approximate" }));
    let (all, ended) = (before["scope_entries"].as_u64().unwrap(), AtomicBool::new(false));
    assert_eq!(before["read_entries"], all);
    let mut writer = connect(&server);
    let made = std::thread::scope(|scope| {
        let ended = &ended;
        let writing = scope.spawn(move || {
            let mut made = 0;
            while !ended.load(Ordering::Relaxed) || made < 20 {
                // All are answered, whatever happens to the indexes meanwhile.
                add(&mut writer, &format!("w{made}"), "Weber").unwrap();
                made += 1;
            }
            made
        });
        let (sn, description) = ("\"equality\", \"approximate\"", "\"substring\"");
        want(&mut server, &[("sn", sn), ("description", description), ("mail", "")]);
        assert_eq!(settled(&data, "sn"), ["equality", "approximate"]);
        assert_eq!(settled(&data, "mail"), [""; 0]);
        ended.store(true, Ordering::Relaxed);
        writing.join().unwrap()
    });
    assert_eq!(found(&server, filter), made);
    let after = asked(&data, &["explain", filter]);
    assert_eq!((&after["indexed"], &after["walks_scope"]), (&json!(true), &json!(false)));
    assert_eq!(after["read_entries"], made, "{after}");
    // With a foreign client, and a deleted entry is not found any more.
    let deleted = format!("dn: uid=w0,{PEOPLE}\nchangetype: delete\n");
    finish(&mut server.admin_tool("ldapmodify"), &deleted).expect(0);
    assert_eq!(found(&server, filter), made - 1);
    let log = fs::read_to_string(Path::new(&data).join("log/error.log")).unwrap();
    for line in ["dropping mail for ", "building description for substring", "the indexes are"] {
        assert!(log.contains(line), "{line:?} is not in\n{log}");
    }
    // Made anew by the server; and then, when it has gone, by the command itself.
    let anew = asked(&data, &["reindex", "sn"]);
    assert_eq!((&anew["event"], &anew["attributes"]), (&json!("reindexed"), &json!(["sn"])));
    assert_eq!(server.next_event()["event"], "reloaded");
    let refused = asked(&data, &["reindex", "member"]);
    assert_eq!(refused["event"], "failed", "{refused}");
    assert_eq!(found(&server, filter), made - 1);
    assert!(server.stop().success());
    assert_eq!(asked(&data, &["reindex", "member", "sn"])["event"], "reindexed");
    check(&data);
}

#[test]
fn what_no_index_helps_is_refused_counted_and_advised_on() {
    if !available(&["ldapsearch"]) {
        return;
    }
    let (_folder, mut server) = sample(50);
    let data = server.text("data").to_owned();
    assert_eq!(asked(&data, &["advise"])["lacking"], json!([]));
    let file = Path::new(&data).join("keyway.toml");
    let text = fs::read_to_string(&file).unwrap();
    let text = text
        .replace("search_unindexed_max = 1000000 ", "search_unindexed_max = 20 ")
        .replace("access = \"refused\"", "access = \"everything\"");
    fs::write(&file, text).unwrap();
    server.signal(Signal::HUP);
    assert_eq!(server.next_event()["event"], "reloaded");
    // The administrator may, another user may not and is told why.
    assert_eq!(found(&server, "(title=*nginee*)"), found(&server, "(title=*nginee*)"));
    let password = fs::read_to_string(server.text("sample_password_file")).unwrap();
    let people = finish(
        server.admin_tool("ldapsearch").args(["-LLL", "-b", PEOPLE, "-s", "one", "(uid=*)", "1.1"]),
        "",
    );
    let other = people.out.lines().find_map(|line| line.strip_prefix("dn: ")).unwrap().to_owned();
    let mut search = server.tool("ldapsearch", server.ldaps());
    search.args(["-D", &other, "-w", &password, "-b", BASE, "(title=*nginee*)", "1.1"]);
    let refused = finish(&mut search, "").expect(11);
    let why = "attribute title has no index for substring";
    assert!((refused.out + &refused.err).contains(why));
    let advised = asked(&data, &["advise"]);
    let first = &advised["lacking"][0];
    assert_eq!((&first["attribute"], &first["kind"]), (&json!("title"), &json!("substring")));
    assert_eq!(
        (&first["searches"], &first["line"]),
        (&json!(2), &json!("title = [\"substring\"]"))
    );
    assert!(first["percent"].as_u64().unwrap() > 0, "{advised}");
    want(&mut server, &[("title", "\"substring\"")]);
    assert_eq!(settled(&data, "title"), ["substring"]);
    finish(&mut search, "").expect(0);
    let log = fs::read_to_string(Path::new(&data).join("log/access.log")).unwrap();
    assert!(log.contains("unindexed=\"title substring\""), "{log}");
    assert!(server.stop().success());
    let gone = asked(&data, &["advise"]);
    assert!(gone["error"].as_str().unwrap().contains("no server runs on"), "{gone}");
}

#[test]
fn a_build_that_is_killed_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    assert!(Server::start(&data, &["--sample", "1500"]).stop().success());
    let name = data.to_str().unwrap().to_owned();
    let mut made = 0;
    for round in 0..4_usize {
        let mut server = Server::start(&data, &[]);
        let mut client = connect(&server);
        let kinds = ["\"substring\", \"approximate\"", "\"presence\"", "", "\"approximate\""];
        let kinds = kinds[round];
        want(&mut server, &[("description", kinds), ("title", kinds), ("sn", "\"equality\"")]);
        // Another moment each time: after so many changes of others.
        for _ in 0..1 + 7 * round {
            add(&mut client, &format!("k{made}"), "Killed").unwrap();
            made += 1;
        }
        server.kill();
        let report = asked(&name, &["indexes"]);
        assert!(!report["indexes"].as_array().unwrap().is_empty());
    }
    let server = Server::start(&data, &[]);
    assert_eq!(settled(&name, "title"), ["approximate"]);
    let mut client = connect(&server);
    assert_eq!(client.search(BASE, "sn", "killed"), Ok(made));
    let explained = asked(&name, &["explain", "(description~=wile indexis)"]);
    assert_eq!(explained["read_entries"], made, "{explained}");
    assert!(server.stop().success());
    check(&name);
}
