//! The feed in words: what clients have changed is shown as they changed it, beside the server and without it; a
//! follower sees each change once; an entry's history goes through its names.

use keyway_tests::{Finished, Server, available, finish, keyway, sample};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const BASE: &str = "dc=example,dc=com";
const PEOPLE: &str = "ou=People,dc=example,dc=com";
const TOOLS: [&str; 4] = ["ldapadd", "ldapmodify", "ldapmodrdn", "ldapdelete"];

fn command(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(keyway());
    command.args(arguments).arg("--data").arg(data);
    command
}

fn ask(data: &Path, arguments: &[&str]) -> Finished {
    finish(&mut command(data, arguments), "")
}

fn changes(data: &Path, arguments: &[&str]) -> Finished {
    ask(data, &[&["directory", "changes"], arguments].concat())
}

fn lines(text: &str) -> Vec<Value> {
    let line =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}"));
    text.lines().map(line).collect()
}

/// The lines of `changes --json` behind the first, which says what feed it is.
fn told(text: &str) -> Vec<Value> {
    let mut lines = lines(text);
    let feed = lines.remove(0);
    assert_eq!((&feed["event"], feed["store"].as_str().unwrap().len()), (&"feed".into(), 32));
    lines
}

fn done(server: &Server, tool: &str, arguments: &[&str], input: &str) {
    finish(server.admin_tool(tool).args(arguments), input).expect(0);
}

fn add(server: &Server, dn: &str, more: &str) {
    let uid = dn.split_once('=').and_then(|(_, rest)| rest.split_once(',')).expect("a name").0;
    let entry =
        format!("dn: {dn}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {uid}\nsn: Test\n{more}\n");
    done(server, "ldapadd", &[], &entry);
}

/// The last position that there is.
fn last(data: &Path) -> u64 {
    let shown = told(&changes(data, &["--json"]).expect(0).out);
    shown.last().and_then(|change| change["position"].as_u64()).unwrap_or(1)
}

/// Adds an entry, changes it, gives it another name and deletes it.
fn live(server: &Server) {
    let ann = format!("uid=ann,{PEOPLE}");
    add(server, &ann, "mail: ann@example.com\nuserPassword: a secret of ann\n");
    let change = format!(
        "dn: {ann}\nchangetype: modify\nadd: mail\nmail: ann@example.org\n-\ndelete: mail\n\
         mail: ann@example.com\n-\nreplace: userPassword\nuserPassword: another of ann\n-\n"
    );
    done(server, "ldapmodify", &[], &change);
    done(server, "ldapmodrdn", &["-r", &ann, "uid=anna"], "");
    let groups = format!("ou=Groups,{BASE}");
    done(server, "ldapmodrdn", &["-s", &groups, &format!("uid=anna,{PEOPLE}"), "uid=anna"], "");
    done(server, "ldapdelete", &[&format!("uid=anna,{groups}")], "");
}

#[test]
fn changes_are_shown_as_clients_made_them() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server) = sample(3);
    let data = &folder.path().join("data");
    add(&server, &format!("uid=before,{PEOPLE}"), "");
    let from = (last(data) + 1).to_string();
    live(&server);
    let from = ["--from", &from];
    let with = |more: &[&str]| changes(data, &[&from[..], more].concat()).expect(0).out;
    let json = with(&["--json"]);
    let shown = told(&json);
    let kinds: Vec<&str> = shown.iter().filter_map(|one| one["kind"].as_str()).collect();
    assert_eq!(kinds, ["add", "modify", "modrdn", "modrdn", "delete"], "{json}");
    assert!(shown.iter().all(|one| one["author"] == "cn=admin,cn=keyway"), "{json}");
    assert!(shown.iter().all(|one| one["entry_uuid"] == shown[0]["entry_uuid"]), "{json}");
    assert!(!json.contains("{ARGON2") && json.contains("\"secret\":true"), "{json}");
    assert_eq!(shown[2]["new_dn"], format!("uid=anna,{PEOPLE}"));
    assert_eq!(
        (&shown[2]["delete_old_rdn"], &shown[2]["new_superior"]),
        (&true.into(), &Value::Null)
    );
    assert_eq!(shown[3]["new_superior"], format!("ou=Groups,{BASE}"));
    let mail = shown[1]["attributes"].as_array().unwrap().iter().find(|one| one["name"] == "mail");
    assert_eq!(mail.unwrap()["added"], serde_json::json!(["ann@example.org"]));

    let text = with(&[]);
    let begin = format!("  add  uid=ann,{PEOPLE}\n    by cn=admin,cn=keyway, connection ");
    assert!(text.contains(&begin), "{text}");
    assert!(
        text.contains("mail: added \"ann@example.org\"; deleted \"ann@example.com\""),
        "{text}"
    );
    assert!(!text.contains("ARGON2") && text.contains("userPassword: "), "{text}");

    let ldif = with(&["--ldif"]);
    let rename =
        format!("dn: uid=ann,{PEOPLE}\nchangetype: modrdn\nnewrdn: uid=anna\ndeleteoldrdn: 1\n");
    assert!(ldif.contains(&rename), "{ldif}");
    assert!(ldif.contains("# userPassword: 1 value, not shown\ndn: "), "{ldif}");
    assert!(!with(&["--ldif"]).contains("userPassword:: "), "{ldif}");
    let secret = with(&["--ldif", "--with-passwords"]);
    assert!(secret.contains("\nuserPassword: {ARGON2"), "{secret}");

    let below = with(&["--json", "--subtree", "OU=groups, dc=example,DC=com"]);
    let kinds: Vec<Value> = told(&below).into_iter().map(|one| one["kind"].clone()).collect();
    assert_eq!(kinds, ["modrdn", "delete"], "it was moved there: {below}");
    let to = told(&with(&["--json", "--to", &(last(data) - 1).to_string()]));
    assert_eq!(to.len(), 4);
    assert!(server.stop().success());
    assert_eq!(with(&["--json"]), json, "it is there without the server too");
}

#[test]
fn the_notes_of_binds_are_shown_to_who_asks_for_them() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server) = sample(1);
    let data = &folder.path().join("data");
    let eve = format!("uid=eve,{PEOPLE}");
    let policy = format!(
        "dn: cn=default,{BASE}\nobjectClass: organizationalRole\nobjectClass: pwdPolicy\ncn: default\n\
         pwdAttribute: userPassword\npwdLockout: TRUE\npwdMaxFailure: 5\n"
    );
    done(&server, "ldapadd", &[], &policy);
    let more = format!("userPassword: a secret of eve\npwdPolicySubentry: cn=default,{BASE}\n");
    add(&server, &eve, &more);
    let mut bind = server.tool("ldapwhoami", server.ldaps());
    finish(bind.args(["-D", &eve, "-w", "wrong"]), "").expect(49);
    assert!(server.stop().success());
    let of = |arguments: &[&str]| told(&changes(data, arguments).expect(0).out);
    let (without, with) = (of(&["--json"]), of(&["--json", "--binds"]));
    assert!(without.iter().all(|one| one["reason"] != "bind"), "{without:?}");
    let noted: Vec<&Value> = with.iter().filter(|one| one["reason"] == "bind").collect();
    assert_eq!(noted.len(), 1, "{with:?}");
    assert_eq!((&noted[0]["dn"], &noted[0]["author"]), (&eve.as_str().into(), &"".into()));
}

/// `keyway directory changes --follow`.
struct Follower {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Follower {
    fn begin(data: &Path, arguments: &[&str]) -> Follower {
        let mut command = command(data, &["directory", "changes", "--follow", "--json"]);
        let command = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("keyway starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut follower = Follower { child, output };
        assert_eq!(follower.next()["event"], "feed");
        follower
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_follower_sees_each_change_once_and_holds_no_page_of_the_store() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server) = sample(1);
    let data = &folder.path().join("data");
    add(&server, &format!("uid=first,{PEOPLE}"), "");
    let mut follower = Follower::begin(data, &[]);
    let first = follower.next();
    assert_eq!(first["dn"], format!("uid=first,{PEOPLE}"));
    let mut numbers = vec![first["number"].as_u64().unwrap()];
    for round in 0..3 {
        let entries: String = (0..40)
            .map(|n| {
                let uid = format!("f{round}-{n}");
                format!(
                    "dn: uid={uid},{PEOPLE}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {uid}\nsn: F\n\n"
                )
            })
            .collect();
        done(&server, "ldapadd", &[], &entries);
        for n in 0..40 {
            let seen = follower.next();
            assert_eq!(seen["dn"], format!("uid=f{round}-{n},{PEOPLE}"));
            numbers.push(seen["number"].as_u64().unwrap());
        }
    }
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    assert!(
        reader_lag(data, last(data)) < 20,
        "a reader holds a state that is as old as the first change"
    );
    // One that goes on where it was, in the middle of what there is; then it goes on itself.
    let middle = last(data) - 5;
    let mut again = Follower::begin(data, &["--from", &middle.to_string(), "--subtree", PEOPLE]);
    (0..6).for_each(|n| assert_eq!(again.next()["position"], middle + n));
    // The server is another process by now, and the store is the same.
    assert!(server.stop().success());
    let server = Server::start(data, &[]);
    add(&server, &format!("uid=last,{PEOPLE}"), "");
    for follower in [&mut follower, &mut again] {
        assert_eq!(follower.next()["dn"], format!("uid=last,{PEOPLE}"));
    }
    let to = last(data);
    let until = changes(data, &["--follow", "--json", "--to", &to.to_string()]).expect(0);
    assert_eq!(lines(&until.out).last().unwrap()["position"], to, "it ends there");
    // Another file does not follow what it has seen.
    assert!(server.stop().success());
    let (file, aside) = (data.join("store/data.mdb"), folder.path().join("aside"));
    fs::rename(&file, &aside).unwrap();
    fs::copy(&aside, &file).unwrap();
    let ended = follower.next();
    assert!(ended["error"].as_str().is_some_and(|why| why.contains("replaced")), "{ended}");
    assert_eq!(follower.child.wait().unwrap().code(), Some(1));
}

/// How many commits the oldest reader of the store lags behind, once the server has looked at it after a position.
fn reader_lag(data: &Path, position: u64) -> u64 {
    let begun = Instant::now();
    loop {
        let metrics = ask(data, &["metrics"]).expect(0).out;
        let value = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse::<u64>().ok())
        };
        if value("keyway_feed_position") == Some(position) {
            return value("keyway_store_reader_lag").expect("the lag");
        }
        assert!(begun.elapsed().as_secs() < 60, "it has not looked: {metrics}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn positions_that_are_not_there_are_errors_that_say_what_to_do() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server) = sample(1);
    let data = &folder.path().join("data");
    add(&server, &format!("uid=one,{PEOPLE}"), "");
    let first = told(&changes(data, &["--json"]).expect(0).out)[0]["position"].as_u64().unwrap();
    // The changes that made the sample are not kept.
    let refused = changes(data, &["--from", "1"]).expect(1);
    let begins = format!("it begins with position {first}");
    assert!(refused.err.contains(&begins) && refused.err.contains("--from"), "{}", refused.err);
    let told = self::told(&changes(data, &["--from", "1", "--json"]).expect(1).out);
    assert_eq!(told[0], serde_json::json!({ "event": "trimmed", "position": 1, "first": first }));
    assert_eq!((&told[1]["event"], &told[1]["status"]), (&"failed".into(), &1.into()));
    let last = last(data);
    let beyond = (last + 2).to_string();
    for follow in [&[][..], &["--follow"]] {
        let arguments = [&["--from", &beyond, "--json"], follow].concat();
        let told = self::told(&changes(data, &arguments).expect(1).out);
        assert_eq!(
            told[0],
            serde_json::json!({ "event": "ahead", "position": last + 2, "last": last })
        );
    }
    // The next one is there as soon as it is made.
    assert_eq!(changes(data, &["--from", &(last + 1).to_string()]).expect(0).out, "");
    changes(data, &["--from", "3", "--to", "2"]).expect(2);
    changes(data, &["--subtree", "no name"]).expect(2);
    // Changes that are too many go.
    let set = ["config", "set", "feed.bytes_max=4096"];
    ask(data, &set).expect(0);
    let mut n = 0;
    let trimmed = loop {
        add(
            &server,
            &format!("uid=more{n},{PEOPLE}"),
            &format!("description: {}\n", "x".repeat(900)),
        );
        n += 1;
        assert!(n < 1000, "no change is ever removed");
        let done = changes(data, &["--from", &first.to_string()]);
        if done.code != 0 {
            break done;
        }
    };
    assert!(
        trimmed.err.contains(&format!("does not have position {first} any more")),
        "{}",
        trimmed.err
    );
}

#[test]
fn a_history_goes_through_the_names_of_an_entry() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server) = sample(1);
    let data = &folder.path().join("data");
    let staff = format!("ou=Staff,{BASE}");
    done(
        &server,
        "ldapadd",
        &[],
        &format!("dn: {staff}\nobjectClass: organizationalUnit\nou: Staff\n\n"),
    );
    live(&server);
    // Another one of that name, which goes with the entry above it.
    let (anna, other) = (format!("uid=anna,{staff}"), format!("uid=other,{staff}"));
    add(&server, &anna, "");
    add(&server, &other, "");
    done(&server, "ldapmodrdn", &["-r", &staff, "ou=Crew"], "");
    let history = |dn: &str| {
        let all = lines(&ask(data, &["history", dn, "--json"]).expect(0).out);
        let word = |one: &Value| one["kind"].as_str().or(one["event"].as_str()).map(str::to_owned);
        (all.iter().filter_map(word).collect::<Vec<_>>(), all)
    };
    // By any name that it had, also one that another client would spell otherwise.
    let wanted = ["feed", "entry", "add", "modify", "modrdn", "modrdn", "delete"];
    for name in ["uid=ann", "UID=Anna"] {
        assert_eq!(history(&format!("{name}, {PEOPLE}")).0, wanted, "{name}");
    }
    assert_eq!(history(&format!("uid=anna,ou=Groups,{BASE}")).0, wanted);
    for name in [&anna, &format!("uid=anna,ou=Crew,{BASE}")] {
        let (words, all) = history(name);
        assert_eq!(words, ["feed", "entry", "add", "modrdn"], "{all:?}");
        assert_eq!(all[3]["dn"], staff);
    }
    // A subtree that is taken elsewhere.
    let shown = told(&changes(data, &["--json", "--subtree", &anna]).expect(0).out);
    let kinds: Vec<&Value> = shown.iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["add", "modrdn"], "{shown:?}");
    // One more of a name that one had.
    let ann = format!("uid=ann,{PEOPLE}");
    add(&server, &ann, "");
    let (words, all) = history(&ann);
    assert_eq!(words, [&wanted[..], &["entry", "add"]].concat());
    assert_ne!(all[1]["entry_uuid"], all[7]["entry_uuid"]);
    // One that is deleted and comes back is not introduced again, as one that was spoken of before is not.
    done(&server, "ldapdelete", &[&ann], "");
    ask(data, &["undo", &last(data).to_string()]).expect(0);
    assert_eq!(history(&ann).0, [&wanted[..], &["entry", "add", "delete", "add"]].concat());
    let text = ask(data, &["history", &ann]).expect(0).out;
    assert!(text.starts_with("changes are kept since position "), "{text}");
    assert!(text.contains("\nanother entry of that name: "), "{text}");
    let ldif = ask(data, &["history", &ann, "--ldif"]).expect(0).out;
    assert!(
        ldif.starts_with("# changes are kept since") && ldif.contains("changetype: delete"),
        "{ldif}"
    );
    // One that was there before the first change that is kept, and was never changed.
    let (words, _) = history(PEOPLE);
    assert_eq!(words, ["feed", "unchanged"]);
    let unknown = ask(data, &["history", &format!("uid=nobody,{PEOPLE}")]).expect(1);
    assert!(unknown.err.contains("there is no entry"), "{}", unknown.err);
    ask(data, &["history", "no name"]).expect(2);
}

#[test]
fn a_store_without_a_feed_says_so() {
    if !available(&TOOLS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("keyway.toml"), "[feed]\nenabled = false\n").unwrap();
    let server = Server::start(&data, &["--sample", "1"]);
    for arguments in [&["directory", "changes"][..], &["history", PEOPLE]] {
        let refused = ask(&data, arguments).expect(1);
        assert!(refused.err.contains("has no feed of changes"), "{}", refused.err);
    }
    assert!(server.stop().success());

    // It was on, and is off since: what there was is gone with the first change.
    let data = folder.path().join("other");
    let server = Server::start(&data, &["--sample", "1"]);
    assert!(server.stop().success());
    let toml = fs::read_to_string(data.join("keyway.toml")).unwrap();
    let (before, feed) = toml.split_once("[feed]").expect("the section");
    let off = format!("{before}[feed]{}", feed.replacen("enabled = true", "enabled = false", 1));
    fs::write(data.join("keyway.toml"), off).unwrap();
    let server = Server::start(&data, &[]);
    add(&server, &format!("uid=x,{PEOPLE}"), "");
    for arguments in [&["directory", "changes", "--from", "1"][..], &["undo", "1"]] {
        let refused = ask(&data, arguments).expect(1);
        assert!(refused.err.contains("is off (feed.enabled = false"), "{}", refused.err);
    }
    assert!(server.stop().success());
}

/// Each check has a store of its own to compare with, and leaves nothing.
#[test]
fn several_checks_of_the_feed_at_once_come_to_the_same_verdict() {
    if !available(&TOOLS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let contexts = format!("naming_contexts = [\"{BASE}\"]\n");
    fs::write(data.join("keyway.toml"), contexts).unwrap();
    let server = Server::start(&data, &["--empty"]);
    let units = ["People", "Groups"].map(|unit| {
        format!("\ndn: ou={unit},{BASE}\nobjectClass: organizationalUnit\nou: {unit}\n")
    });
    let top = format!("dn: {BASE}\nobjectClass: domain\ndc: example\n");
    done(&server, "ldapadd", &[], &(top + &units.concat()));
    live(&server);
    let check = ["directory", "check", "--feed", "--json"];
    let begin = || {
        let mut check = command(&data, &check);
        check.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let checks: Vec<Child> = (0..4).map(|_| begin()).collect();
    for check in checks {
        let checked = check.wait_with_output().unwrap();
        let [out, err] = [&checked.stdout, &checked.stderr].map(|it| String::from_utf8_lossy(it));
        assert!(checked.status.success(), "{out}{err}");
        assert_eq!(lines(&out).last().unwrap()["feed"]["replayed"], true, "{out}");
    }
    assert!(!data.join("feed-check").exists());
    assert!(server.stop().success());
}
