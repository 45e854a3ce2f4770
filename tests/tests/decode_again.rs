//! `keyway decode` after a capture: requests sent again, scenarios that run, figures that agree with
//! those of the client.

use keyway_tests::proxy::{Proxy, captured};
use keyway_tests::{Finished, Server, available, finish, keyway, secret};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const PEOPLE: &str = "ou=People,dc=example,dc=com";

/// A server with twenty users whose password is "password".
fn served() -> (TempDir, Server) {
    let mut text = format!(
        "dn: dc=example,dc=com\nobjectClass: top\nobjectClass: domain\ndc: example\n\n\
         dn: {PEOPLE}\nobjectClass: top\nobjectClass: organizationalUnit\nou: People\n\n"
    );
    for user in 0..20 {
        text.push_str(&format!(
            "dn: uid=user.{user},{PEOPLE}\nobjectClass: inetOrgPerson\nuid: user.{user}\n\
             cn: User {user}\nsn: User\n\
             userPassword: {{SSHA}}mLoUnWoB6xapRmPO2lAiF0vdaBNhYmNkZWZnaA==\n\n"
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    let ldif = folder.path().join("people.ldif");
    fs::write(&ldif, text).unwrap();
    let server = Server::start(&folder.path().join("data"), &["--import", ldif.to_str().unwrap()]);
    (folder, server)
}

/// One of the ldap-utils as the administrator.
fn tool(server: &Server, program: &str, url: &str, arguments: &[&str], input: &str) -> Finished {
    let mut command = server.tool(program, url);
    command.args(["-D", server.administrator()]);
    command.args(["-y", server.text("administrator_password_file")]);
    finish(command.args(arguments), input)
}

/// Searches, a change, a comparison, two users that log in, and one that fails to.
fn talk(server: &Server, url: &str) {
    for user in 0..5 {
        let filter = format!("(uid=user.{user})");
        tool(server, "ldapsearch", url, &["-b", PEOPLE, &filter, "cn"], "").expect(0);
    }
    let nowhere = ["-b", "ou=nowhere,dc=example,dc=com", "(uid=a)"];
    tool(server, "ldapsearch", url, &nowhere, "").expect(32);
    let change =
        format!("dn: uid=user.1,{PEOPLE}\nchangetype: modify\nreplace: title\ntitle: Engineer\n");
    tool(server, "ldapmodify", url, &[], &change).expect(0);
    tool(server, "ldapcompare", url, &[&format!("uid=user.1,{PEOPLE}"), "title:engineer"], "")
        .expect(6);
    for (user, password, status) in [(1, "password", 0), (2, "password", 0), (3, "wrong", 49)] {
        let mut whoami = server.tool("ldapwhoami", url);
        whoami.args(["-D", &format!("uid=user.{user},{PEOPLE}"), "-w", password]);
        finish(&mut whoami, "").expect(status);
    }
}

fn replay(file: &Path, arguments: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    command.args(["decode", "replay"]).arg(file).args(["--speed", "max"]).args(arguments);
    finish(&mut command, "")
}

/// The last line, which sums up, and the lines before it.
fn lines(finished: &Finished) -> (Value, Vec<Value>) {
    let lines = finished.out.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let mut lines: Vec<Value> = lines.collect();
    (lines.pop().expect("a sum"), lines)
}

#[test]
fn requests_are_sent_again_and_compared() {
    if !available(&["ldapsearch", "ldapmodify", "ldapcompare", "ldapwhoami"]) {
        return;
    }
    let (folder, server) = served();
    let file = folder.path().join("traffic.pcapng");
    captured(server.ldap(), &file, 11, |url| talk(&server, url));
    let to = ["--to", server.ldap(), "--json"];
    let with = |more: &[&str]| replay(&file, &[&to, more].concat());
    // As it was: the change is made again, and comes to the same.
    let (sum, differences) = lines(&with(&["--captured-passwords"]).expect(0));
    assert_eq!((&sum["different"], &sum["same"]), (&0.into(), &21.into()), "{sum}");
    assert_eq!((sum["sent"].as_u64(), differences.len()), (Some(32), 0), "{sum}");
    let search = sum["operations"].as_array().unwrap().iter().find(|one| one["name"] == "search");
    let search = search.unwrap_or_else(|| panic!("{sum}"));
    assert!(search["captured"]["p50_us"].as_f64() > Some(0.0), "{search}");
    assert!(search["now"]["p50_us"].as_f64() > Some(0.0), "{search}");
    // At a speed, with the pauses of then: about as long as it took.
    let mut slowly = Command::new(keyway());
    slowly.args(["decode", "replay"]).arg(&file).args(to).args(["--captured-passwords"]);
    let (sum, _) = lines(&finish(slowly.args(["--speed", "2x"]), "").expect(0));
    assert!(sum["late_max_us"].as_f64() > Some(0.0), "{sum}");
    // The command line did not ask for passwords to be sent.
    let without = with(&[]).expect(1);
    let (sum, differences) = lines(&without);
    assert_eq!(sum["left_out"]["requests with passwords"], 11, "{sum}");
    assert_eq!(differences[0]["now"]["code"], 50, "{}", differences[0]);
    assert!(without.err.contains("--captured-passwords"), "{}", without.err);
    assert!(!without.out.contains("engineer") || !without.out.contains(&server.password()));
    // One identity that binds for all connections; a list of passwords, which has one too few.
    let admin = server.administrator();
    let own = ["--bind-dn", admin, "--password-file", server.text("administrator_password_file")];
    let (sum, _) =
        lines(&with(&[&own[..], &["-f", "(|(op=search)(op=compare))"]].concat()).expect(0));
    assert_eq!(sum["same"], 7, "{sum}");
    let list = folder.path().join("list.tsv");
    let admins = format!("{}\t{}\n", admin.to_uppercase(), server.password());
    secret(&list, &format!("{admins}uid=user.1, {PEOPLE}\tpassword\n"));
    let listed = ["--passwords", list.to_str().unwrap()];
    let (sum, _) = lines(&with(&[&listed[..], &["-f", "(!(op=whoami))"]].concat()).expect(0));
    assert_eq!(sum["left_out"]["binds whose names are not in the list"], 2, "{sum}");
    fs::write(&list, "no tab\n").unwrap();
    let wrong = with(&listed).expect(1);
    assert!(wrong.out.contains("line 1: it should be a name, a tab"), "{}", wrong.out);
    // A name and a password that are not taken end it, after one connection.
    let stale = folder.path().join("stale-password");
    secret(&stale, "no longer\n");
    let refused = with(&["--bind-dn", admin, "--password-file", stale.to_str().unwrap()]).expect(1);
    assert!(refused.out.contains("does not take the account"), "{}", refused.out);
    fs::set_permissions(&stale, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let open = with(&["--bind-dn", admin, "--password-file", stale.to_str().unwrap()]).expect(1);
    assert!(open.out.contains("chmod 600"), "{}", open.out);
    // Something has changed: it is said what.
    let gone = format!("uid=user.4,{PEOPLE}");
    tool(&server, "ldapdelete", server.ldap(), &[&gone], "").expect(0);
    let told = replay(&file, &["--to", server.ldap(), "--captured-passwords"]).expect(1);
    let wanted = "search \"ou=People,dc=example,dc=com\" sub (uid=user.4) [cn]: success (0), \
                  1 found when captured; success (0) now, 0 found\n";
    assert!(told.out.contains(wanted), "{}", told.out);
    assert!(told.out.contains("20 answered as when captured, 1 otherwise"), "{}", told.out);
    over_tls(&server, &file);
    nowhere(&file);
}

fn over_tls(server: &Server, file: &Path) {
    let few = ["--captured-passwords", "-f", "(op=bind)", "--json"];
    let tls = |to: &str, more: &[&str]| {
        let finished = replay(file, &[&["--to", to], &few[..], more].concat());
        (finished.code, lines(&finished).0)
    };
    let ca = ["--ca", server.text("ca_certificate")];
    assert_eq!(tls(server.ldaps(), &ca).0, 0);
    assert_eq!(tls(server.ldap(), &[&ca[..], &["--start-tls"]].concat()).0, 0);
    assert_eq!(tls(server.ldaps(), &["--insecure"]).0, 0);
    // A server that cannot be trusted is sent nothing.
    let (status, said) = tls(server.ldaps(), &[]);
    assert_eq!((status, said["event"].as_str()), (1, Some("failed")), "{said}");
    // A port that speaks TLS is named, with and without an account.
    let clear = format!("ldap://{}", server.tls_address());
    let admin =
        ["--bind-dn", "cn=x", "--password-file", server.text("administrator_password_file")];
    for more in [&["--captured-passwords"][..], &admin] {
        let arguments = [&["--to", &clear], more].concat();
        let refused = replay(file, &arguments).expect(1);
        let said = refused.out + &refused.err;
        assert!(said.contains("speaks TLS on this port; write ldaps://"), "{said}");
    }
}

fn nowhere(file: &Path) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = replay(file, &["--to", &format!("ldap://{free}"), "--captured-passwords"]);
    let refused = refused.expect(1);
    assert!(refused.err.contains("Connection refused"), "{}", refused.err);
    assert!(!refused.out.contains("sent"), "{}", refused.out);
    let proxy =
        ["decode", "proxy", "--tls", "--listen", "127.0.0.1:0", "--to", "ldap://127.0.0.1:1"];
    let refused = finish(Command::new(keyway()).args(proxy), "").expect(2).err;
    assert!(refused.contains("--certificate") && refused.contains("--data"), "{refused}");
    let none = replay(file, &["--captured-passwords"]).expect(2);
    assert!(none.err.contains("--to"), "{}", none.err);
}

#[test]
fn a_scenario_that_was_captured_runs() {
    if !available(&["ldapsearch", "ldapmodify", "ldapcompare", "ldapwhoami"]) {
        return;
    }
    let (folder, server) = served();
    let file = folder.path().join("traffic.pcapng");
    captured(server.ldap(), &file, 11, |url| talk(&server, url));
    let into = folder.path().join("captured");
    let mut decode = Command::new(keyway());
    decode.arg("decode").arg(&file).args(["--as", "scenario", "-f", "(!(code=49))"]);
    // With their passwords, those who bind can do so again.
    decode.args(["--show-secrets", "--into"]);
    finish(decode.arg(&into), "").expect(0);
    let scenario = into.join("scenario.toml");
    let text = fs::read_to_string(&scenario).unwrap();
    let run = |text: &str| {
        fs::write(&scenario, text).unwrap();
        let mut load = Command::new(keyway());
        load.args(["load", "run", "--json", "--url", server.ldap()]).arg(&scenario);
        finish(&mut load, "")
    };
    // The password of who asks is asked for, where it is missing.
    let missing = run(&text).expect(1);
    assert!(missing.out.contains("bind.password"), "{}", missing.out);
    secret(&into.join("bind.password"), &server.password());
    let short = format!("{text}\n[[phase]]\nfor = \"500ms\"\nrate = 200\n");
    let finished = run(&short);
    let result: Value = serde_json::from_str(&finished.out)
        .unwrap_or_else(|_| panic!("{}{}{short}", finished.out, finished.err));
    let counts = ["due", "done", "errors"].map(|key| result[key].as_u64());
    assert_eq!(counts, [Some(100), Some(100), Some(0)], "{}{short}", result["jobs"]);
    assert_eq!(finished.code, 0);
}

/// Passes octets on, the server's after a while: long times are measured alike wherever they are.
fn slow_link(to: &str) -> String {
    const PAUSE: Duration = Duration::from_millis(100);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, to) = (listener.local_addr().unwrap(), to.to_owned());
    let pass = |mut from: TcpStream, mut to: TcpStream, pause: Duration| {
        let mut octets = [0; 16384];
        while let Ok(count @ 1..) = from.read(&mut octets) {
            thread::sleep(pause);
            if to.write_all(&octets[..count]).is_err() {
                return;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Write);
    };
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let server = TcpStream::connect(&to).unwrap();
            let (client2, server2) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pass(client, server, Duration::ZERO));
            thread::spawn(move || pass(server2, client2, PAUSE));
        }
    });
    format!("ldap://{address}")
}

#[test]
fn figures_agree_with_those_of_who_asked() {
    let (_folder, server) = served();
    let proxy = Proxy::start(&["--to", &slow_link(server.address()), "--report"]);
    let mut load = Command::new(keyway());
    load.args(["load", "search", &proxy.url, "--json", "--users", "0-19", "--clients", "4"]);
    load.args(["--rate", "30", "--duration", "2s", "--bind-dn", server.administrator()]);
    load.args(["--base", "dc=example,dc=com"]);
    load.args(["--password-file", server.text("administrator_password_file")]);
    let done = finish(&mut load, "").expect(0);
    let asked: Value = serde_json::from_str(&done.out).expect("JSON");
    let told = proxy.end();
    let report = told.last().expect("a report");
    let searches =
        report["operations"].as_array().unwrap().iter().find(|it| it["name"] == "search");
    let searches = searches.unwrap_or_else(|| panic!("{report}"));
    // One is tried before the start, over a connection of its own.
    let one_more = |count: &Value| count.as_u64().map(|count| count + 1);
    assert_eq!(searches["count"].as_u64(), one_more(&asked["done"]), "{report}");
    assert_eq!(
        searches["entries"].as_u64(),
        one_more(&asked["connections"]["entries"]),
        "{report}"
    );
    assert_eq!(report["binds"][0]["count"], 5, "{report}");
    // The report's buckets are 1/16 wide.
    let service = &asked["jobs"][0]["steps"][0]["service"];
    let (ours, theirs) =
        (searches["p50_us"].as_f64().unwrap(), service["p50_ms"].as_f64().unwrap());
    let ratio = ours / (theirs * 1000.0);
    assert!((15.0 / 16.0..=17.0 / 16.0).contains(&ratio), "{ours} us, {theirs} ms");
}

#[test]
fn a_report_is_told_while_it_is_made() {
    if !available(&["ldapsearch"]) {
        return;
    }
    let (_folder, server) = served();
    let searched = |url: &str| {
        tool(&server, "ldapsearch", url, &["-b", PEOPLE, "(uid=user.1)"], "").expect(0);
    };
    let searches = |report: &Value| {
        let all = report["operations"].as_array().expect("operations");
        let count = all.iter().find(|one| one["name"] == "search").map(|one| &one["count"]);
        count.and_then(Value::as_u64).unwrap_or_default()
    };
    // When it is asked for.
    let mut proxy = Proxy::start(&["--to", server.ldap(), "--report"]);
    searched(&proxy.url);
    // A message on its way to be decoded is there soon.
    let report = loop {
        proxy.signal(Signal::USR1);
        let report = proxy.next_line();
        if searches(&report) == 1 {
            break report;
        }
    };
    assert_eq!(report["filters"][0]["name"], "(uid=?)", "{report}");
    searched(&proxy.url);
    let last = proxy.end();
    assert_eq!(searches(last.last().expect("a report")), 2, "{last:?}");
    // Every so often.
    let mut proxy = Proxy::start(&["--to", server.ldap(), "--report", "--every", "50ms"]);
    searched(&proxy.url);
    while searches(&proxy.next_line()) == 0 {}
    proxy.end();
}

#[test]
fn a_proxy_uses_the_certificate_of_a_directory_whose_keys_are_in_its_cryptod() {
    if !available(&["ldapwhoami"]) {
        return;
    }
    let (folder, server) = served();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    assert!(server.text("ca_key").starts_with("cryptod:"));
    let before = fs::read(folder.path().join("data/server.pem")).unwrap();
    let mut proxy = Proxy::start(&["--to", server.ldap(), "--data", data]);
    tool(&server, "ldapwhoami", &proxy.url, &["-ZZ"], "").expect(0);
    let told = proxy.until_closed(1);
    assert!(told.iter().any(|one| one["op"] == "whoami" && one["tls"] == true), "{told:#?}");
    proxy.end();
    // It is the directory's, and stays as it is.
    assert_eq!(fs::read(folder.path().join("data/server.pem")).unwrap(), before);
    server.stop();
    let mut command = Command::new(keyway());
    command.args(["decode", "proxy", "--listen", "127.0.0.1:0", "--to", "ldap://127.0.0.1:1"]);
    let refused = finish(command.args(["--data", data]), "").expect(1);
    assert!(refused.err.contains("no cryptod listens"), "{}", refused.err);
}
