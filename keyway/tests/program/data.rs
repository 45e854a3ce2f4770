//! `keyway data`: entries of templates into files, a server and a store.

use crate::support::{KEYWAY, Running, keyway};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// People without passwords, which would take long to hash.
const TEMPLATE: &str = "define suffix=dc=example,dc=com\ndefine n=300\n\nbranch: [suffix]\n\n\
    branch: ou=Made,[suffix]\nsubordinateTemplate: person:[n]\nsubordinateTemplate: group:3\n\n\
    template: person\nrdnAttr: uid\nobjectClass: inetOrgPerson\ngivenName: <first>\nsn: <last>\n\
    cn: {givenName} {sn}\nuid: user.<sequential>\nl: <file:towns>\n\
    description: <random:alpha:9>\n\n\
    template: group\nrdnAttr: cn\nobjectClass: groupOfNames\ncn: group <sequential>\n\
    member: <ref:person:1:20>\n";

fn write(folder: &Path) -> String {
    let template = folder.join("people.template");
    fs::write(&template, TEMPLATE).unwrap();
    fs::write(folder.join("towns"), "Here\nThere\n").unwrap();
    template.to_str().unwrap().to_owned()
}

#[test]
fn a_file_is_whole_private_and_always_the_same() {
    let place = tempfile::tempdir().unwrap();
    let template = write(place.path());
    let out = place.path().join("out.ldif");
    let shown = out.to_str().unwrap();
    let done = keyway(["data", "make", &template, "-o", shown, "--threads", "3"]).well();
    assert!(done.out.starts_with("made 305 entries in "), "{}", done.out);
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    let whole = fs::read_to_string(&out).unwrap();
    assert_eq!(keyway(["data", "make", &template, "--threads", "1"]).well().out, whole);
    let part = keyway(["data", "make", &template, "--from", "2", "--count", "1"]).well().out;
    assert!(
        part.starts_with("dn: uid=user.0,ou=Made,dc=example,dc=com\n") && whole.contains(&part)
    );
    assert!(part.contains("\nl: Here\n") || part.contains("\nl: There\n"));
    assert_ne!(keyway(["data", "make", &template, "--seed", "1"]).well().out, whole);
    let json =
        keyway(["data", "make", &template, "-o", shown, "--json", "--define", "n=1k"]).well();
    let json = json.json();
    assert_eq!((&json["event"], &json["entries"]), (&"made".into(), &1_005.into()));
    let done = keyway(["data", "make", &template, "--json"]).well();
    assert!(done.out == whole && done.err.contains("\"event\":\"made\""), "{}", done.err);
}

#[test]
fn lists_and_filters_beside_the_entries() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (dns, binds, logins, filters) = (file("d"), file("b"), file("l"), file("f"));
    keyway([
        "data",
        "make",
        "example",
        "--define",
        "numusers=20",
        "-o",
        "/dev/null",
        "-d",
        &dns,
        "-b",
        &binds,
        "-L",
        &logins,
        "-F",
        &filters,
        "-T",
        "uid",
        "--matches",
        "1",
    ])
    .well();
    let lines = |path: &str| fs::read_to_string(path).unwrap().lines().count();
    assert_eq!((lines(&dns), lines(&binds), lines(&logins), lines(&filters)), (22, 20, 20, 20));
    assert!(fs::read_to_string(&filters).unwrap().starts_with("(uid=user.0)\n"));
    assert!(fs::read_to_string(&logins).unwrap().starts_with("user.0\tpassword\n"));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let place = tempfile::tempdir().unwrap();
    let template = place.path().join("bad.template");
    fs::write(&template, "branch: dc=x\ncn: <frist>\n").unwrap();
    let shown = template.to_str().unwrap();
    let refused = keyway(["data", "make", shown]);
    refused.refused(1, &["bad.template, line 2, column 5", "did you mean <first>?"]);
    keyway(["data", "make", "/no/such.template"]).refused(1, &["/no/such.template", "example"]);
    keyway(["data", "make", "--from", "99999999"]).refused(2, &["10,002 entries"]);
    keyway(["data", "make", "-o", "/no/folder/x.ldif"]).refused(1, &["/no/folder/x.ldif"]);
    keyway(["data", "make", "-o", "/dev/full"]).refused(1, &["/dev/full", "disk is full"]);
    keyway(["data", "make", "--to", "http://x"]).refused(2, &["ldaps://HOST"]);
    keyway(["data", "make", "--changes", "modify"]).refused(2, &["--generation 1"]);
    keyway(["data", "tags", "frist"]).refused(2, &["first"]);
    fs::write(&template, "branch: dc=x\ndescription: <exec:touch,/tmp/never>\n").unwrap();
    keyway(["data", "make", shown]).refused(1, &["--allow-exec"]);
    let tags = keyway(["data", "tags"]).well().out;
    assert!(tags.contains("<ref:TEMPLATE:MIN:MAX>") && tags.lines().count() > 90);
    assert!(keyway(["data", "template"]).well().out.contains("template: person"));
}

/// Somebody who does not want to wait: no half of a file is left.
#[test]
fn a_signal_leaves_nothing_half_done() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out.ldif");
    let child = Command::new(KEYWAY)
        .args(["data", "make", "--define", "numusers=500M", "-o"])
        .arg(&out)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let draft = place.path().join("out.ldif.new");
    crate::support::until(|| draft.exists(), "it begins to write");
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    let words = String::from_utf8(done.stderr).unwrap();
    assert!(words.contains("stopped after") && words.contains("was not written"), "{words}");
    assert!(!draft.exists() && !out.exists());
}

#[test]
fn into_a_store_and_to_a_server_come_the_same_entries() {
    let place = tempfile::tempdir().unwrap();
    let template = write(place.path());
    let (store, served) = (place.path().join("store"), place.path().join("served"));
    let into = store.to_str().unwrap();
    let done = keyway(["data", "make", &template, "--into", into]).well();
    assert!(done.out.starts_with("imported 305 records from"), "{}", done.out);
    keyway(["directory", "check", "--data", into]).well();
    let export = |data: &str| {
        let base = "ou=Made,dc=example,dc=com";
        let done = keyway(["directory", "export", "--data", data, "--base", base]).well();
        let is_own = |line: &&str| !line.starts_with("entryUUID") && !line.contains("Timestamp:");
        let kept: Vec<_> = done.out.lines().filter(is_own).map(str::to_owned).collect();
        kept.into_iter().filter(|it| !it.contains("sName:")).collect::<Vec<_>>()
    };
    // A server has the suffix already.
    let up = Running::start(&served, &["--sample", "1"]);
    let password = up.text("administrator_password_file").to_owned();
    let ca = up.text("ca_certificate").to_owned();
    let arguments = |url: &str| -> Vec<String> {
        let administrator = up.text("administrator");
        ["data", "make", &template, "--to", url, "--bind-dn", administrator, "--password-file"]
            .into_iter()
            .chain([password.as_str(), "--ca", &ca, "--json"])
            .map(str::to_owned)
            .collect()
    };
    let json = keyway(arguments(up.text("ldaps"))).well().json();
    assert_eq!((&json["added"], &json["present"]), (&304.into(), &1.into()), "{json}");
    let plain = up.text("ldap").to_owned();
    let again = keyway(arguments(&plain).into_iter().chain(["--start-tls".to_owned()])).well();
    assert_eq!(again.json()["present"], 305);
    // A class that the server does not know is refused, and said.
    let bad = place.path().join("bad.template");
    fs::write(&bad, "branch: ou=x,dc=example,dc=com\nobjectClass: nonsense\n").unwrap();
    let mut refused = arguments(&plain);
    refused[2] = bad.to_str().unwrap().to_owned();
    let refused = keyway(refused);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert_eq!(refused.json()["refused"], 1);
    assert!(refused.err.contains("ou=x,dc=example,dc=com: "), "{}", refused.err);
    up.stop();
    assert_eq!(export(served.to_str().unwrap()), export(into));
}
