//! `keyway load` as its user sees it, against Keyway and against slapd.

use keyway_tests::authority::Authority;
use keyway_tests::dirsrv::{self, Dirsrv};
use keyway_tests::{Finished, Server, available, finish, keyway, nightly, sample, secret};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
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

/// The certificate to trust, and the user to bind as: others may not search.
fn known(server: &Server) -> String {
    format!(
        "{} --ca {} --bind-dn {} --password-file {}",
        server.ldaps(),
        server.text("ca_certificate"),
        server.administrator(),
        server.text("administrator_password_file")
    )
}

/// `keyway load` with these words.
fn load(words: &str) -> Finished {
    // A blank inside a word is written as one that does not break.
    let words = words.split_ascii_whitespace().map(|word| word.replace('\u{a0}', " "));
    finish(Command::new(keyway()).arg("load").args(words), "")
}

/// The result of a run, as JSON.
fn result(words: &str, status: i32) -> Value {
    let finished = load(&format!("{words} --json")).expect(status);
    serde_json::from_str(&finished.out).unwrap()
}

/// Sequences due, done and failed.
fn counts(result: &Value) -> [u64; 3] {
    ["due", "done", "errors"].map(|key| result[key].as_u64().unwrap_or_else(|| panic!("{result}")))
}

/// Each job type of SLAMD runs, and nothing in it goes wrong.
fn every_scenario_runs(known: &str, has_tls: bool) {
    let folder = tempfile::tempdir().unwrap();
    let names = load("init").expect(0);
    fs::write(folder.path().join("names.txt"), "user.0\tx\nuser.1\ty\n").unwrap();
    let mut seen = 0;
    for line in names.out.lines() {
        let name = line.split_whitespace().next().unwrap();
        let init = load(&format!("init {name} --users 0-49 {known}")).expect(0);
        let text = init
            .out
            .replace("for = \"10s\"", "for = \"300ms\"\nrate = 100")
            // How long it takes is not asked here.
            .replace("p99 > 20ms or ", "")
            .replace("hold = \"10s\"", "hold = \"300ms\"")
            .replace("rate = [100, 100_000]", "rate = [100, 100]")
            .replace("count = 200", "count = 20");
        let file = folder.path().join(format!("{name}.toml"));
        fs::write(&file, text).unwrap();
        let result = result(&format!("run {}", file.display()), 0);
        if name == "find" {
            assert_eq!(result["good"], 100.0, "{result}");
        } else {
            assert_eq!(counts(&result), [30, 30, 0], "{name}: {}", result["jobs"]);
            assert_eq!(result["connections"]["tls_full"].as_u64() > Some(0), has_tls);
        }
        seen += 1;
    }
    assert!(seen >= 20, "{seen}");
}

#[test]
fn every_scenario_runs_against_keyway() {
    let (_folder, server) = served();
    every_scenario_runs(&known(&server), true);
}

#[test]
fn the_exit_status_is_that_of_the_rules() {
    let (folder, server) = served();
    let output = folder.path().join("a.json").display().to_string();
    let search = format!("search {} --rate 100 --duration 300ms --clients 2", known(&server));
    let with = |more: &str| format!("{search} --users 0-49 --output {output} {more}");
    // Rules have blanks in them.
    let ruled = |rule: &str, status| {
        let mut command = Command::new(keyway());
        let words = with("--json --fail-if");
        let finished = finish(command.arg("load").args(words.split_whitespace()).arg(rule), "");
        serde_json::from_str::<Value>(&finished.expect(status).out).unwrap()
    };
    assert_eq!(ruled("p99 > 1h or errors > 0", 0)["good"], true);
    assert_eq!(ruled("rate > 1", 1)["thresholds"][0]["kept"], false);
    // Users that are not there: an empty answer is no success. It is known before the start; a user who runs
    // a file may know better, and has it counted.
    let none = load(&format!("{search} --users 900-999")).expect(1);
    assert!(none.err.contains("empty answer") && none.err.contains("--users"), "{}", none.err);
    let shown = load(&format!("{search} --users 900-999 --show-scenario")).expect(0).out;
    let file = folder.path().join("absent.toml");
    fs::write(&file, shown).unwrap();
    let empty = result(&format!("run {}", file.display()), 1);
    assert_eq!(counts(&empty), [30, 0, 30]);
    assert_eq!(empty["jobs"][0]["failed"][0]["what"], "empty answer");

    // In words, and the file made a page, and held against itself.
    let words = load(&with("")).expect(0);
    assert!(
        words.out.contains("search (service)") && words.out.contains("client"),
        "{}",
        words.out
    );
    assert!(words.err.contains("DUE"), "{}", words.err);
    // Each second has a row, and the time after the last one has none in which nothing was.
    let is_idle = |line: &&str| {
        let cells: Vec<&str> = line.split_ascii_whitespace().collect();
        cells.first().is_some_and(|time| time.ends_with('s')) && cells.get(1..4) == Some(&["0"; 3])
    };
    let seconds = load(&with("").replace("300ms", "1s")).expect(0).err;
    assert!(seconds.contains("DUE"), "{seconds}");
    assert_eq!(seconds.lines().filter(is_idle).count(), 0, "{seconds}");
    let page = load(&format!("report {output}")).expect(0).out;
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("src=") && !page.contains("http"), "it needs nothing else");
    let same = load(&format!("compare {output} {output}")).expect(0);
    assert_eq!(same.out.matches("within the noise").count(), 8, "{}", same.out);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (folder, server) = served();
    let refused = |words: &str, code: i32, why: &str| {
        let finished = load(words).expect(code);
        let is_a_line = finished.err.lines().count() == 1;
        assert!(finished.err.contains(why) && is_a_line, "{words}: {}", finished.err);
    };
    let (url, folder) = (server.ldap(), folder.path().display());
    refused("search localhost", 2, "is not a URL");
    refused(&format!("search {url} --rate 0"), 2, "--rate");
    refused(&format!("search {url} --users 9-0"), 2, "greater than the last");
    refused(&format!("search {url} --fail-if p99>20"), 2, "--fail-if");
    refused(&format!("search {url} --filter (uid={{usr}})"), 2, "did you mean {user}?");
    refused(&format!("modify {url}"), 2, "--bind-dn");
    refused(&format!("bind {url} --in-flight 2"), 2, "on = \"second\"");
    refused("search ldap://127.0.0.1:1", 1, "Connection refused");
    refused(&format!("search {} --duration 1s", server.ldaps()), 1, "--ca FILE");
    refused(&format!("search {url} --output /nowhere/a.json"), 1, "/nowhere/a.json");
    let fine = format!("{} --users 0-49", known(&server));
    refused(
        &format!("search {fine} --duration 100ms --quiet --output /dev/full"),
        1,
        "is not kept",
    );
    refused(&format!("search {url} --duration 1s"), 1, "--bind-dn");
    refused(&format!("search {fine} --operations 5 --duration 1s"), 2, "--operations");
    refused("init serch", 2, "there are search");
    refused(&format!("find search {url} --from 9 --to 3"), 2, "--from is above --to");
    refused(&format!("find search {url} --until p99>"), 2, "--until");
    let short = "--from 50 --to 50 --hold 100ms --until errors>99999 --quiet --output /dev/full";
    refused(&format!("find search {fine} {short}"), 1, "is not kept");
    refused(&format!("search {url} --template x"), 2, "add-delete and mixed");
    let admin = known(&server);
    refused(&format!("add-delete {admin} --template nowhere"), 2, "no file nowhere");
    refused(&format!("add-delete {admin} --template-from 3"), 2, "--template");
    fs::write(format!("{folder}/wrong.template"), "branch: dc=x\nrdnAttr cn\n").unwrap();
    refused(
        &format!("add-delete {admin} --template {folder}/wrong.template"),
        2,
        "wrong.template, line 2, column",
    );
    refused(&format!("report {folder}/people.ldif"), 1, "people.ldif");
    refused("wait ldap://127.0.0.1:1 --at-most 0s", 1, "Connection refused");
    load(&format!("wait {url}")).expect(0);
    fs::write(format!("{folder}/wrong.toml"), "[target]\nulrs = []\n").unwrap();
    refused(&format!("run {folder}/wrong.toml"), 2, "wrong.toml, line 2: ");
}

/// The first guess at a command works: beside a server that runs here no flag is needed.
#[test]
fn the_first_command_that_one_guesses_works() {
    let (folder, server) = sample(30);
    let here = |words: &str| {
        let mut command = Command::new(keyway());
        let command = command.current_dir(folder.path()).arg("load");
        // keyway-data is the data folder where no flag names one.
        let link = folder.path().join("keyway-data");
        if !link.exists() {
            std::os::unix::fs::symlink(folder.path().join("data"), &link).unwrap();
        }
        finish(command.args(words.split_whitespace()), "")
    };
    for name in ["", "search", "bind", "auth", "modify", "add-delete", "mixed"] {
        let words = match name {
            // As it is, for its ten seconds, only in the night.
            "" if nightly() => String::new(),
            "" => continue,
            name => format!("{name} --operations 40 --json --clients 2"),
        };
        let finished = here(&words).expect(0);
        if name.is_empty() {
            assert!(finished.err.contains("30 users below dc=example,dc=com"), "{}", finished.err);
            continue;
        }
        let result: Value = serde_json::from_str(&finished.out).unwrap();
        assert_eq!(counts(&result), [40, 40, 0], "{name}: {}", result["jobs"]);
    }
    // By its address too, without TLS; how long it took in all is said.
    let timed = here(&format!("search {} --operations 1k", server.ldap())).expect(0);
    assert!(timed.out.contains("total       1,000 operations in "), "{}", timed.out);
    // For a server elsewhere, without a login, the message says which flags to give.
    let elsewhere = load(&format!("search {} --duration 5s", server.ldap())).expect(1);
    for flag in ["--users", "--filter", "--bind-dn"] {
        assert!(elsewhere.err.contains(flag), "{}", elsewhere.err);
    }
    let nowhere = load("search").expect(1);
    assert!(nowhere.err.contains("keyway up") && nowhere.err.contains("--data"), "{}", nowhere.err);
}

/// One bind, and then no more: others would lock the account.
#[test]
fn a_wrong_password_is_tried_once() {
    let (folder, server) = sample(3);
    let wrong = folder.path().join("wrong");
    secret(&wrong, "not it\n");
    let (ca, dn) = (server.text("ca_certificate"), server.administrator());
    let account = format!("--bind-dn {dn} --password-file {} --ca {ca}", wrong.display());
    let refused = load(&format!("search {} {account} --duration 3s", server.ldaps())).expect(1);
    assert!(refused.err.contains("not tried again"), "{}", refused.err);
    assert_eq!(server.refused_binds(&folder.path().join("data")), 1);
    fs::set_permissions(&wrong, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    let open = load(&format!("search {} {account}", server.ldaps())).expect(1);
    assert!(open.err.contains("chmod 600"), "{}", open.err);
}

/// Certificates that are not right, and ports that speak otherwise, by their names.
#[test]
fn what_is_wrong_with_tls_is_said_in_words() {
    if !available(&["openssl"]) {
        return;
    }
    let (folder, server) = sample(3);
    let said = |url: &str, more: &str| {
        let finished = load(&format!("search {url} --duration 1s {more}")).expect(1);
        assert_eq!(finished.err.lines().count(), 1, "{}", finished.err);
        finished.err
    };
    let ca = server.text("ca_certificate");
    let plain = said(&server.ldap().replace("ldap:", "ldaps:"), &format!("--ca {ca}"));
    assert!(plain.contains("ldap://"), "{plain}");
    let port = server.ldaps().replace("ldaps:", "ldap:");
    assert!(said(&port, "").contains("ldaps://"), "{}", said(&port, ""));
    assert!(said(server.ldaps(), "").contains("issuer that is not known"));

    // One that has signed itself, as `openssl req -x509` makes it: an authority's by its own words.
    let file = |name: &str| folder.path().join(name).display().to_string();
    let made = |name: &str, days: &str| {
        let (key, pem) = (file(&format!("{name}.key")), file(&format!("{name}.pem")));
        let arguments = [
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            "/CN=self",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-days",
            days,
            "-keyout",
            &key,
            "-out",
            &pem,
        ];
        finish(Command::new("openssl").args(arguments), "").expect(0);
        (key, pem)
    };
    let (key, pem) = made("self", "9");
    let own = |key: &str, pem: &str| {
        let port = keyway_tests::port();
        let arguments = ["s_server", "-quiet", "-accept", &port, "-cert", pem, "-key", key];
        let mut command = Command::new("openssl");
        let command = command.args(arguments).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(&port).is_err() {
            assert!(Instant::now() < until, "openssl does not listen");
            thread::yield_now();
        }
        (Killed(child), port.rsplit_once(':').unwrap().1.to_owned())
    };
    let (_openssl, port) = own(&key, &pem);
    let at = |host: &str| format!("ldaps://{host}:{port}");
    // Believed: the protocol it lacks is LDAP.
    let believed = load(&format!("wait {} --ca {pem} --at-most 0s", at("localhost"))).expect(1).err;
    assert!(believed.contains("does not answer") || believed.contains("closed"), "{believed}");
    let name = said(&at("127.0.0.1"), &format!("--ca {pem}"));
    assert!(name.contains("for localhost; you connected to 127.0.0.1"), "{name}");
    let stranger = said(&at("localhost"), &format!("--ca {ca}"));
    assert!(
        stranger.contains("none that is known") || stranger.contains("not known"),
        "{stranger}"
    );
    // The same words where other commands connect.
    for command in [
        format!("top {} --ca {ca} --count 1", at("localhost")),
        format!("data check example --to {} --ca {ca}", at("localhost")),
    ] {
        let words = command.split_whitespace();
        let why = finish(Command::new(keyway()).args(words), "").expect(1).err;
        assert!(why.contains("known here"), "{command}: {why}");
    }
}

/// Killed when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Binds by SASL, and extended operations; monitors beside them.
#[test]
fn sasl_extended_operations_and_monitors_against_keyway() {
    if !available(&["openssl", "ldapadd"]) {
        return;
    }
    // Alone it has its authority's key in a file, with which OpenSSL can issue.
    let folder = tempfile::tempdir().unwrap();
    let server = Server::ldapd(&folder.path().join("data"), &["--sample", "5"]);
    let entry = "dn: cn=robot,dc=example,dc=com\nobjectClass: applicationProcess\ncn: robot\n";
    finish(&mut server.admin_tool("ldapadd"), entry).expect(0);
    let files = Authority::new();
    let (ca, ca_key) = (server.text("ca_certificate"), server.text("ca_key"));
    let subject = "/DC=com/DC=example/CN=robot";
    files.issue("robot", subject, "extendedKeyUsage=clientAuth", (ca, ca_key));
    let own = ["pem", "key"].map(|kind| files.path(&format!("robot.{kind}")).display().to_string());
    let [certificate, key] = &own;
    let admin = server.administrator();
    let password = server.text("administrator_password_file");
    let text = format!(
        "[target]\nurls = [\"{}\"]\nca = \"{ca}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n\
         admin = {{ dn = \"{admin}\", password_file = \"{password}\" }}\n\
         [connections]\ncount = 1\n[[phase]]\nfor = \"1100ms\"\nrate = 10\n\
         [[job]]\nname = \"external\"\nconnections = {{ bind = {{ sasl = \"EXTERNAL\" }} }}\n\
         steps = [{{ whoami = {{}} }}, {{ extended = {{ oid = \"1.2.3\", expect = {{ code = 2 }} }} }}]\n\
         [[job]]\nname = \"plain\"\nsteps = [{{ bind = {{ sasl = \"PLAIN\", user = \"dn:{admin}\", \
         password_file = \"{password}\" }} }}, {{ whoami = {{}} }}]\n\
         [[job]]\nname = \"passmod\"\nweight = 0.2\nconnections = {{ bind = \"admin\" }}\nsteps = [{{ passmod = {{ \
         user = \"cn=robot,dc=example,dc=com\", new_password = \"x\", expect = {{ code = [0, 19, 53] }} }} }}]\n\
         [[monitor]]\nkind = \"entry\"\ndn = \"cn=Extended,cn=Operations,cn=monitor\"\n\
         attributes = [\"monitorOpCompleted\"]\nname = \"extended\"\n\
         [[monitor]]\nkind = \"entry\"\ndn = \"cn=absent,cn=monitor\"\nattributes = [\"x\"]\n\
         [[monitor]]\nkind = \"replication\"\nread = \"{}\"\ndn = \"cn=robot,dc=example,dc=com\"\n",
        server.ldaps(),
        server.ldaps(),
    );
    let file = folder.path().join("steps.toml");
    fs::write(&file, text).unwrap();
    let kept = folder.path().join("kept.json").display().to_string();
    let result = result(&format!("run {} --output {kept}", file.display()), 0);
    assert_eq!(result["errors"], 0, "{}", result["jobs"]);
    let seen = &result["seconds"][0]["monitors"];
    assert!(seen["extended"].as_f64() >= Some(0.0), "{result}");
    assert!(seen["replication, ms"].as_f64() > Some(0.0), "{seen}");
    assert!(seen["x"].is_null());
    assert!(result["unseen"][0].as_str().unwrap().starts_with("x: "), "{}", result["unseen"]);
    assert!(!result["scenario"].as_str().unwrap().contains("\"x\", expect"), "a password is kept");
    let page = load(&format!("report {kept}")).expect(0).out;
    assert!(page.contains("aria-label=\"replication, ms\""), "its picture");
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

/// The administrator of a peer, whose password is "secret".
fn administrator(folder: &Path, dn: &str) -> String {
    let password = folder.join("pw");
    secret(&password, "secret\n");
    format!("--bind-dn {dn} --password-file {}", password.display())
}

#[test]
fn every_scenario_runs_against_slapd() {
    if !available(&["/usr/sbin/slapd"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_slapd, url) = slapd(folder.path());
    let admin = administrator(folder.path(), "cn=admin,dc=example,dc=com");
    every_scenario_runs(&format!("{url} {admin}"), false);
    // The short forms.
    let paced = "--users 0-49 --rate 100 --duration 300ms";
    for name in ["auth", "search", "bind", "modify", "add-delete", "mixed"] {
        let result = result(&format!("{name} {url} {admin} {paced}"), 0);
        assert_eq!(counts(&result), [30, 30, 0], "{name}: {}", result["jobs"]);
    }
}

/// It takes half a minute to load and to start; so it is a test of the night.
#[test]
fn every_scenario_runs_against_389_ds() {
    if !nightly() || !available(&["/usr/sbin/ns-slapd"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ldif = folder.path().join("people.ldif");
    fs::write(&ldif, people()).unwrap();
    let server = Dirsrv::start(folder.path(), &ldif, dirsrv::SECRET_STORED).unwrap();
    // Its administrator's name has a blank, and words here have none.
    let admin = administrator(folder.path(), &dirsrv::ADMIN.replace(' ', "\u{a0}"));
    every_scenario_runs(&format!("ldap://{} {admin}", server.address), false);
}

const ADDING: &str = "--rate 100 --duration 300ms";

/// Entries of a template, and those that are left to be found.
fn entries_are_added(known: &str) {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("people.template");
    fs::write(
        &template,
        "define suffix=dc=example,dc=com\n\nbranch: [suffix]\nsubordinateTemplate: person:50\n\n\
         template: person\nrdnAttr: uid\nobjectClass: top\nobjectClass: person\n\
         objectClass: organizationalPerson\nobjectClass: inetOrgPerson\nuid: user.<sequential>\n\
         cn: {uid}\nsn: <last>\nmail: {uid}@example.com\nuserPassword: password\n",
    )
    .unwrap();
    let path = template.display();
    for name in ["add-delete", "mixed"] {
        let result = result(&format!("{name} {known} {ADDING} --users 0-49 --template {path}"), 0);
        assert_eq!(counts(&result), [30, 30, 0], "{name}: {}", result["jobs"]);
    }
    // A new user is found and logs in; the entry stays.
    let init = load(&format!("init search {known}")).expect(0).out;
    let at = init.find("\n[data]").unwrap();
    let text = format!(
        "{}\n[data]\nperson = {{ template = \"people.template\", from = 500 }}\n\
         [connections]\nbind = \"admin\"\ncount = 4\n[[phase]]\nfor = \"300ms\"\nrate = 100\n\
         [[job]]\nname = \"joiner\"\nsteps = [{{ add = {{ entry = \"person\" }} }}, {{ search = {{ filter = \
         \"(mail={{person.mail}})\", attributes = [\"uid\"], expect = {{ entries = 1, value = {{ uid = \
         \"{{person.uid}}\" }} }} }} }}, {{ bind = {{ dn = \"{{person}}\", password = \
         \"{{person.userPassword}}\" }}, on = \"second\" }}]\n",
        &init[..at]
    );
    let file = folder.path().join("joiner.toml");
    fs::write(&file, &text).unwrap();
    let first = result(&format!("run {}", file.display()), 0);
    assert_eq!(counts(&first), [30, 30, 0], "{}", first["jobs"]);
    // The same once more: they are there already, and the server says so.
    let again = result(&format!("run {}", file.display()), 1);
    assert_eq!(counts(&again), [30, 0, 30]);
    let failed = &again["jobs"][0]["failed"][0];
    assert_eq!((&failed["what"], &failed["step"]), (&"entryAlreadyExists (68)".into(), &0.into()));
    // From another number on they are not in the way.
    fs::write(&file, text.replace("from = 500", "from = 600")).unwrap();
    assert_eq!(counts(&result(&format!("run {}", file.display()), 0)), [30, 30, 0]);
}

#[test]
fn entries_of_a_template_are_added_to_keyway() {
    let (_folder, server) = served();
    entries_are_added(&known(&server));
}

#[test]
fn entries_of_a_template_are_added_to_slapd() {
    if !available(&["/usr/sbin/slapd"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_slapd, url) = slapd(folder.path());
    let admin = administrator(folder.path(), "cn=admin,dc=example,dc=com");
    entries_are_added(&format!("{url} {admin}"));
}

/// `keyway load` with these words, under way.
fn begun(words: &str) -> Child {
    let mut command = Command::new(keyway());
    command.arg("load").args(words.split_whitespace());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
    command.spawn().unwrap()
}

fn interrupt(child: &Child) {
    finish(Command::new("kill").args(["-INT", &child.id().to_string()]), "").expect(0);
}

/// The end of a hub: its status, what it printed, what it said.
struct Ended {
    status: Option<i32>,
    words: String,
    said: String,
}

/// A search on two agents; `heard` is told each line that the hub says.
fn searched(
    scenario: &Path,
    who: &str,
    output: &Path,
    heard: &mut dyn FnMut(&str, &Child, &[Child; 2]),
) -> Ended {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (file, output) = (scenario.display(), output.display());
    let mut hub = begun(&format!(
        "serve {file} --agents 2 --listen 127.0.0.1:{port} {who} --output {output}"
    ));
    let folder = scenario.parent().unwrap().display();
    let agent = format!("agent 127.0.0.1:{port} {who} --folder {folder}");
    let mut agents = [begun(&agent), begun(&agent)];
    let mut said = String::new();
    for line in BufReader::new(hub.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        heard(&line, &hub, &agents);
        said += &format!("{line}\n");
    }
    let hub = hub.wait_with_output().unwrap();
    for agent in &mut agents {
        let _ = agent.kill();
        let _ = agent.wait();
    }
    Ended { status: hub.status.code(), words: String::from_utf8(hub.stdout).unwrap(), said }
}

#[test]
fn a_knee_is_searched_for_on_agents() {
    if !available(&["openssl"]) {
        return;
    }
    let (folder, server) = served();
    let files = Authority::new();
    files.issue_own("hub", "/CN=hub", "subjectAltName=IP:127.0.0.1");
    let [ca, certificate, key] =
        ["ca.pem", "hub.pem", "hub.key"].map(|name| files.path(name).display().to_string());
    let who = format!("--cert {certificate} --key {key} --ca {ca}");
    let find = load(&format!(
        "find search {} --filter (objectClass=*) --clients 4 --threads 1 --from 10 --to 20 --hold 300ms \
         --show-scenario --until errors>0",
        server.ldap()
    ));
    // A search that every client may do. At these rates no pause of a busy machine is a rate that was not reached.
    let anonymous = "{ search = { base = \"\", scope = \"base\",";
    let text = find.expect(0).out.replace("{ search = {", anonymous);
    let scenario = folder.path().join("find.toml");
    fs::write(&scenario, &text).unwrap();
    let output = folder.path().join("knee.json");
    let ended = searched(&scenario, &who, &output, &mut |_, _, _| ());
    assert_eq!(ended.status, Some(0), "{} {}", ended.words, ended.said);
    assert!(ended.words.contains("20/s, the highest rate tried, is no limit"), "{}", ended.words);
    let knee = output.display();
    let page = load(&format!("report {knee}")).expect(0).out;
    assert!(page.contains("the highest that was good: 20/s") && !page.contains("src="), "{page}");
    assert!(load(&format!("compare {knee} {knee}")).expect(0).out.contains("20/s p99"));
    // A run is something else.
    let run = folder.path().join("run.json").display().to_string();
    load(&format!("search {} {ADDING} --users 0-49 --output {run}", known(&server))).expect(0);
    let other = load(&format!("compare {knee} {run}")).expect(2);
    assert!(other.err.contains("A is a search for the knee, and B is a run"), "{}", other.err);

    // In the middle of the second rate an agent is told to end, and then the hub.
    fs::write(&scenario, text.replace("hold = \"300ms\"", "hold = \"2s\"")).unwrap();
    let is_first = |line: &str| line.contains("  good");
    let lost = searched(&scenario, &who, &output, &mut |line, _, agents| {
        if is_first(line) {
            interrupt(&agents[1]);
        }
    });
    assert_eq!(lost.status, Some(1), "{} {}", lost.words, lost.said);
    assert!(
        lost.words.contains("10/s was good, and was not tried again; the search ended early"),
        "{}",
        lost.words
    );
    // It may be told while it opens its connections for that rate.
    let ends = ["the agent was ended", "interrupted before a connection was open"];
    assert!(ends.iter().any(|end| lost.words.contains(end)), "{}", lost.words);
    // A rate that had no connection yet leaves nothing to report.
    if lost.words.contains(ends[0]) {
        assert!(load(&format!("report {knee}")).expect(0).out.contains("not held to its end"));
    }
    let cut = searched(&scenario, &who, &output, &mut |line, hub, _| {
        if is_first(line) {
            interrupt(hub);
        }
    });
    assert_eq!(cut.status, Some(1), "{} {}", cut.words, cut.said);
    assert!(
        cut.words.contains("10/s was good, and was not tried again (interrupted)"),
        "{}",
        cut.words
    );
}

/// A server's own figures beside the run's seconds, as `keyway top` calls them; one that is not there.
#[test]
fn a_servers_page_is_a_monitor() {
    let (folder, server) = served();
    let known = known(&server);
    let init = load(&format!("init search {known} --users 0-49")).expect(0).out;
    let text = init.replace("for = \"10s\"", "for = \"3s\"\nrate = 200")
        + "[[monitor]]\nkind = \"keyway\"\ndata = \"data\"\n\
           [[monitor]]\nkind = \"keyway\"\nname = \"other\"\ndata = \"nowhere\"\nfigures = [\"total\"]\n";
    let file = folder.path().join("monitored.toml");
    fs::write(&file, &text).unwrap();
    let output = folder.path().join("monitored.json").display().to_string();
    let run = load(&format!("run {} --output {output}", file.display())).expect(0);
    assert!(run.err.contains("monitor other: not reached: "), "{}", run.err);
    let result: Value = serde_json::from_str(&fs::read_to_string(&output).unwrap()).unwrap();
    let seconds = result["seconds"].as_array().unwrap();
    let of = |name: &str| {
        seconds.iter().filter_map(|it| it["monitors"][name].as_f64()).fold(0.0, f64::max)
    };
    assert!(of("total") > 100.0 && of("p99_us") > 0.0 && of("errors") == 0.0, "{result}");
    let names: Vec<&String> = seconds[0]["monitors"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["commits", "errors", "other", "p99_us", "queue", "sync_p99_us", "total"]);
    // As the other tool calls them.
    let top = ["top", "--json", "--count", "1", "--data"];
    let data = folder.path().join("data");
    let top = finish(Command::new(keyway()).args(top).arg(&data), "").expect(0);
    let top: Value = serde_json::from_str(top.out.lines().next().unwrap()).unwrap();
    let figures = top["figures"].as_object().unwrap();
    assert!(names.iter().all(|name| *name == "other" || figures.contains_key(*name)), "{top}");
    assert!(load(&format!("report {output}")).expect(0).out.contains("aria-label=\"p99_us\""));
    let strict = text.replace("data = \"nowhere\"", "data = \"nowhere\"\nrequired = true");
    fs::write(&file, strict).unwrap();
    let refused = load(&format!("run {}", file.display())).expect(1);
    assert!(refused.err.contains("monitor other: not reached: "), "{}", refused.err);
}
