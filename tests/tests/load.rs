//! `keyway load` as its user sees it, against Keyway and against slapd.

use keyway_tests::{Server, available, finish, keyway};
use serde_json::Value;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const USERS: u32 = 50;

/// Users as MakeLDIF makes them, and a group.
fn people() -> String {
    let mut text = "dn: dc=example,dc=com\nobjectClass: top\nobjectClass: domain\ndc: example\n\n\
                    dn: ou=People,dc=example,dc=com\nobjectClass: top\nobjectClass: organizationalUnit\n\
                    ou: People\n\n"
        .to_owned();
    for user in 0..USERS {
        text.push_str(&format!(
            "dn: uid=user.{user},ou=People,dc=example,dc=com\nobjectClass: top\nobjectClass: person\n\
             objectClass: organizationalPerson\nobjectClass: inetOrgPerson\nuid: user.{user}\n\
             cn: User {user}\nsn: User\nmail: user.{user}@example.com\n\
             userPassword: {{SSHA}}mLoUnWoB6xapRmPO2lAiF0vdaBNhYmNkZWZnaA==\n\n"
        ));
    }
    text
}

/// A server with these people.
fn served() -> (TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let ldif = folder.path().join("people.ldif");
    fs::write(&ldif, people()).unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data, &["--import", ldif.to_str().unwrap()]);
    (folder, server)
}

fn load(arguments: &[&str]) -> Command {
    let mut command = Command::new(keyway());
    command.arg("load").args(arguments);
    command
}

/// What a run came to, as JSON.
fn result(arguments: &[&str], status: i32) -> Value {
    let finished = finish(load(arguments).arg("--json"), "");
    assert_eq!(finished.code, status, "{arguments:?}: {}{}", finished.out, finished.err);
    serde_json::from_str(&finished.out).unwrap()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Each job type of SLAMD runs, and nothing in it goes wrong.
#[test]
fn every_scenario_runs_against_keyway() {
    let (folder, server) = served();
    let names = finish(&mut load(&["init"]), "").expect(0);
    fs::write(folder.path().join("names.txt"), "user.0\tx\nuser.1\ty\n").unwrap();
    let mut seen = 0;
    for line in names.out.lines() {
        let name = line.split_whitespace().next().unwrap();
        let users = format!("0-{}", USERS - 1);
        let init = [
            "init",
            name,
            server.ldaps(),
            "--ca",
            server.text("ca_certificate"),
            "--users",
            &users,
        ];
        let init = finish(&mut load(&init), "").expect(0);
        let text = init
            .out
            .replace("for = \"10s\"", "for = \"300ms\"\nrate = 100")
            .replace("hold = \"10s\"", "hold = \"300ms\"")
            .replace("rate = [100, 100_000]", "rate = [100, 100]")
            .replace("count = 200", "count = 20")
            .replace(
                "password_file = \"admin-password\"",
                &format!("password_file = {:?}", server.text("administrator_password_file")),
            )
            .replace("\"cn=admin,dc=example,dc=com\"", &format!("{:?}", server.administrator()));
        let file = folder.path().join(format!("{name}.toml"));
        fs::write(&file, text).unwrap();
        let result = result(&["run", file.to_str().unwrap()], 0);
        if name == "find" {
            assert_eq!(result["good"], 100.0, "{result}");
        } else {
            assert_eq!(
                (count(&result["due"]), count(&result["errors"])),
                (30, 0),
                "{name}: {}",
                result["jobs"]
            );
            assert_eq!(count(&result["done"]), 30, "{name}");
            assert!(count(&result["connections"]["tls_full"]) > 0);
        }
        seen += 1;
    }
    assert!(seen >= 20, "{seen}");
}

#[test]
fn the_exit_status_is_that_of_the_rules() {
    let (folder, server) = served();
    let output = folder.path().join("a.json");
    let common = [
        "search",
        server.ldap(),
        "--users",
        "0-49",
        "--rate",
        "100",
        "--duration",
        "300ms",
        "--clients",
        "2",
        "--output",
        output.to_str().unwrap(),
    ];
    let with = |more: &[&'static str]| [&common[..], more].concat();
    let good = result(&with(&["--fail-if", "p99 > 1h", "--fail-if", "errors > 0"]), 0);
    assert_eq!(good["good"], true);
    let bad = result(&with(&["--fail-if", "rate > 1"]), 1);
    assert_eq!(bad["thresholds"][0]["kept"], false);
    // Users that are not there: an empty answer is no success.
    let empty = result(
        &["search", server.ldap(), "--users", "900-999", "--rate", "50", "--duration", "200ms"],
        1,
    );
    assert_eq!((count(&empty["done"]), count(&empty["errors"])), (0, 10));
    assert_eq!(empty["jobs"][0]["failed"][0]["what"], "empty answer");

    // In words, and the file made a page, and held against itself.
    let words = finish(&mut load(&with(&[])), "").expect(0);
    assert!(
        words.out.contains("search (service)") && words.out.contains("client"),
        "{}",
        words.out
    );
    assert!(words.err.contains("DUE"), "{}", words.err);
    let page = finish(&mut load(&["report", output.to_str().unwrap()]), "").expect(0);
    assert!(page.out.starts_with("<!doctype html>") && page.out.ends_with("</html>\n"));
    assert!(!page.out.contains("src=") && !page.out.contains("http"), "it needs nothing else");
    let same =
        finish(&mut load(&["compare", output.to_str().unwrap(), output.to_str().unwrap()]), "")
            .expect(0);
    assert_eq!(same.out.matches("within the noise").count(), 8, "{}", same.out);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (folder, server) = served();
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let finished = finish(&mut load(arguments), "");
        assert_eq!(finished.code, code, "{arguments:?}: {}", finished.err);
        assert!(
            finished.err.contains(words) && finished.err.lines().count() == 1,
            "{}",
            finished.err
        );
    };
    let url = server.ldap();
    refused(&["search", "localhost"], 2, "is no URL");
    refused(&["search", url, "--rate", "0"], 2, "--rate");
    refused(&["search", url, "--users", "9-0"], 2, "greater than the last");
    refused(&["search", url, "--fail-if", "p99 > 20"], 2, "--fail-if");
    refused(&["search", url, "--filter", "(uid={usr})"], 2, "did you mean {user}?");
    refused(&["modify", url], 2, "--bind-dn");
    refused(&["bind", url, "--in-flight", "2"], 2, "on = \"second\"");
    refused(&["search", "ldap://127.0.0.1:1"], 1, "Connection refused");
    refused(&["search", server.ldaps(), "--duration", "1s"], 1, "--ca FILE");
    refused(&["search", url, "--output", "/nowhere/at/all.json"], 1, "/nowhere/at/all.json");
    refused(&["init", "serch"], 2, "there are search");
    refused(&["report", folder.path().join("people.ldif").to_str().unwrap()], 1, "people.ldif");
    refused(&["wait", "ldap://127.0.0.1:1", "--at-most", "0s"], 1, "Connection refused");
    finish(&mut load(&["wait", url]), "").expect(0);
    let wrong = folder.path().join("wrong.toml");
    fs::write(&wrong, "[target]\nulrs = []\n").unwrap();
    refused(&["run", wrong.to_str().unwrap()], 2, "wrong.toml, line 2: ");
}

/// slapd, killed when dropped.
struct Slapd(Child);

impl Drop for Slapd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn slapd(folder: &Path) -> (Slapd, String) {
    let (config, store) = (folder.join("slapd.conf"), folder.join("store"));
    fs::create_dir(&store).unwrap();
    let text = format!(
        "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\n\
         include /etc/ldap/schema/inetorgperson.schema\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\n\
         database mdb\nsuffix dc=example,dc=com\nrootdn cn=admin,dc=example,dc=com\nrootpw secret\n\
         directory {}\nindex uid eq\n",
        store.display()
    );
    fs::write(&config, text).unwrap();
    let ldif = folder.join("people.ldif");
    fs::write(&ldif, people()).unwrap();
    let mut add = Command::new("/usr/sbin/slapadd");
    finish(add.arg("-f").arg(&config).arg("-l").arg(&ldif), "").expect(0);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("ldap://127.0.0.1:{port}");
    let mut command = Command::new("/usr/sbin/slapd");
    command.args(["-d", "0", "-h", &url, "-f"]).arg(&config).stderr(Stdio::null());
    let slapd = Slapd(command.spawn().unwrap());
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "slapd does not answer");
        thread::yield_now();
    }
    (slapd, url)
}

#[test]
fn every_kind_of_operation_runs_against_slapd() {
    if !available(&["/usr/sbin/slapd"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_slapd, url) = slapd(folder.path());
    let password = folder.path().join("pw");
    fs::write(&password, "secret\n").unwrap();
    let admin =
        ["--bind-dn", "cn=admin,dc=example,dc=com", "--password-file", password.to_str().unwrap()];
    for name in ["auth", "search", "bind", "modify", "add-delete", "mixed"] {
        let common = [name, &url, "--users", "0-49", "--rate", "100", "--duration", "300ms"];
        let result = result(&[&common[..], &admin[..]].concat(), 0);
        assert_eq!(
            (count(&result["done"]), count(&result["errors"])),
            (30, 0),
            "{name}: {}",
            result["jobs"]
        );
    }
}
