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
    keyway(["data", "make", "-o", "/dev/full"])
        .refused(1, &["disk is full; make room and repeat the command"]);
    keyway(["data", "make", "--to", "http://x"]).refused(2, &["ldaps://HOST"]);
    keyway(["data", "make", "--changes", "modify"]).refused(2, &["--generation 1"]);
    keyway(["data", "tags", "frist"]).refused(2, &["first"]);
    fs::write(&template, "branch: dc=x\ndescription: <exec:touch,/tmp/never>\n").unwrap();
    keyway(["data", "make", shown]).refused(1, &["--allow-exec"]);
    let tags = keyway(["data", "tags"]).well().out;
    assert!(tags.contains("<ref:TEMPLATE:MIN:MAX>") && tags.lines().count() > 90);
    assert!(keyway(["data", "template"]).well().out.contains("template: person"));
}

/// A template with one thing wrong in each of most lines.
const WRONG: &str = "branch: dc=example,dc=com\n\nbranch: ou=Made,dc=example,dc=com\n\
    subordinateTemplate: person:300\nsubordinateTemplate: odd:2\n\n\
    template: person\nrdnAttr: uid\nobjectClass: inetOrgPerson\nuid: user.<sequential>\n\
    cn: {uid}\nemployeeNumber: 1\nemployeeNumber: 2\ngidNumber: 7\nshoeSize: 42\n\
    mail: c\u{f6}ln<sequential>\ndescription: same\ndescription: SAME\nseeAlso;lang-de: cn=x\n\
    telephoneNumber;binary: 1\n\n\
    template: odd\nrdnAttr: cn\nobjectClass: inetOrgPersn\ncn: odd <sequential>\n";

#[test]
fn a_check_says_each_thing_once_with_its_line() {
    let place = tempfile::tempdir().unwrap();
    let good = write(place.path());
    let well = keyway(["data", "check", &good]).well().out;
    assert!(well.starts_with("checked 305 entries against the definitions that are built in: "));
    keyway(["data", "check", "people_and_groups", "--each", "50"]).well();
    let template = place.path().join("wrong.template");
    fs::write(&template, WRONG).unwrap();
    let shown = template.to_str().unwrap();
    let done = keyway(["data", "check", shown]);
    assert_eq!((done.code, done.err.as_str()), (Some(1), ""), "{}", done.out);
    let lines: Vec<&str> = done.out.lines().collect();
    let first = "(uid=user.0,ou=Made,dc=example,dc=com and 299 more entries)";
    for (line, (number, words)) in lines.iter().zip([
        (7, "object class inetOrgPerson demands attribute sn"),
        (12, "attribute employeeNumber may have one value only"),
        (14, "no object class of the entry allows attribute gidNumber"),
        (15, "attribute shoeSize is not known"),
        (16, "value \"c\u{f6}ln0\" of attribute mail is not valid: "),
        (17, "value \"SAME\" of attribute description is not valid: it is there twice"),
        (20, "attribute telephoneNumber;binary has an unknown option"),
        (24, "object class inetOrgPersn is not known; did you mean inetorgperson?"),
    ]) {
        let begin = format!("{shown}, line {number}: {words}");
        assert!(line.starts_with(&begin), "{line}\n{begin}");
        assert!(number == 24 || line.ends_with(first), "{line}");
    }
    let last = "built in: 302 are wrong, for 8 reasons";
    assert!(lines.len() == 9 && lines[8].ends_with(last), "{}", done.out);
    assert!(lines[7].ends_with("(cn=odd 0,ou=Made,dc=example,dc=com and another entry)"));
    // A file of definitions beside those; some entries only.
    let schema = place.path().join("shoes.schema");
    let shoes = "attributetype ( 1.3.6.1.4.1.99999.1 NAME 'shoeSize' SUP name )\n\
        objectclass ( 1.3.6.1.4.1.99999.2 NAME 'inetOrgPersn' SUP person MAY ( shoeSize $ gidNumber ) )\n";
    fs::write(&schema, shoes).unwrap();
    let json = keyway([
        "data",
        "check",
        shown,
        "--schema",
        schema.to_str().unwrap(),
        "--json",
        "--each",
        "3",
    ]);
    let json = json.json();
    assert_eq!((&json["entries"], &json["faulty"]), (&7.into(), &5.into()), "{json}");
    let faults = json["faults"].as_array().unwrap();
    let of = |line: u64| faults.iter().find(|fault| fault["line"] == line).unwrap();
    assert_eq!(of(15)["why"], "no object class of the entry allows attribute shoeSize");
    assert_eq!((&of(16)["value"], &of(16)["entries"]), (&"c\u{f6}ln0".into(), &3.into()));
    assert_eq!(of(22)["why"], "object class inetOrgPersn demands attribute sn");
}

#[test]
fn a_check_that_is_asked_wrongly_says_so() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let check = |arguments: &[&str]| keyway(["data", "check"].iter().chain(arguments));
    check(&["/no/such.template"]).refused(1, &["/no/such.template"]);
    check(&["--schema", "/no/such.schema"]).refused(1, &["/no/such.schema"]);
    let bad = file("bad.schema", "attributetype ( 1.2.3 NAME 'x' SUP nowhere )\n");
    check(&["--schema", &bad]).refused(1, &["bad.schema", "line 1", "nowhere"]);
    check(&["--each", "0"]).refused(2, &["without an entry"]);
    check(&["--count", "0"]).refused(2, &["without an entry"]);
    check(&["--each", "1", "--count", "1"]).refused(2, &["--each", "--count"]);
    check(&["--to", "http://x"]).refused(2, &["ldaps://HOST"]);
    check(&["--to", "ldap://127.0.0.1:1"]).refused(1, &["127.0.0.1", "refused"]);
    check(&["--bind-dn", "cn=x"]).refused(2, &["--to"]);
    check(&["--to", "ldap://x", "--schema", &bad]).refused(2, &["--schema"]);
    let endless = file(
        "endless",
        "branch: dc=x\nsubordinateTemplate: t\n\ntemplate: t\n\
        rdnAttr: uid\nobjectClass: account\nuid: u<sequential>\n",
    );
    check(&[&endless]).refused(2, &["--count N"]);
    let some = check(&[&endless, "--each", "5"]).well().out;
    assert!(some.starts_with("checked 6 entries"), "{some}");
}

/// A user who does not want to wait: no half of a file is left.
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
        kept.into_iter()
            .filter(|it| !it.contains("sName:") && !it.starts_with('#'))
            .collect::<Vec<_>>()
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

#[test]
fn a_file_that_is_called_csv_is_csv() {
    let place = tempfile::tempdir().unwrap();
    let template = write(place.path());
    let file = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let head = |path: &str| fs::read_to_string(path).unwrap().lines().next().unwrap().to_owned();
    let make = |out: &str, more: &[&str]| {
        keyway([&["data", "make", &template, "--count", "5", "-o", out], more].concat())
    };
    let csv = file("people.csv");
    make(&csv, &["--columns", "uid,cn"]).well();
    assert_eq!(head(&csv), "dn,uid,cn");
    make(&csv, &["--format", "ldif"]).well();
    assert_eq!(head(&csv), "dn: dc=example,dc=com");
    let packed = file("People.CSV.gz");
    make(&packed, &[]).well();
    assert!(fs::read(&packed).unwrap().starts_with(&[0x1F, 0x8B]));
    make(&csv, &["--changes", "add"]).refused(2, &["--format ldif for a file that is called .csv"]);
    let refused = keyway(["data", "make", &template, "--define", "m=1", "-o", &csv]);
    refused.refused(1, &["no constant m; ", "it has n, suffix"]);
}

/// Hashing thousands of passwords takes long: that is said with how long, and so is what does not.
#[test]
fn clear_passwords_need_not_take_long() {
    let place = tempfile::tempdir().unwrap();
    let (data, slow) = (place.path().join("data"), place.path().join("slow"));
    let make = |data: &Path, more: &[&str]| {
        let data = data.to_str().unwrap();
        keyway(
            [&["data", "make", "example", "--define", "numusers=600", "--into", data], more]
                .concat(),
        )
    };
    let done = make(&data, &["--fast-passwords", "--json"]).well();
    assert_eq!((&done.json()["passwords_hashed"], done.err.as_str()), (&600.into(), ""));
    let data = data.to_str().unwrap();
    let exported = keyway(["directory", "export", "--data", data]).well().out;
    assert_eq!(exported.matches("userPassword: {SSHA512}").count(), 600);
    let said = make(&slow, &["--count", "300"]).well().err;
    assert!(said.contains("--fast-passwords stores {SSHA512} instead"), "{said}");
}

/// Without the suffix's entry no other entry has one above it.
#[test]
fn a_template_without_its_suffix_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let template = place.path().join("people.template");
    fs::write(
        &template,
        TEMPLATE.replace("branch: [suffix]\n\n", "").replace("l: <file:towns>\n", ""),
    )
    .unwrap();
    let (template, data) = (template.to_str().unwrap(), place.path().join("data"));
    let data = data.to_str().unwrap();
    let words = ["the entry above it, \"dc=example,dc=com\", is neither"];
    keyway(["data", "make", template, "--into", data]).refused(1, &words);
    // The other way to put them in.
    let ldif = place.path().join("people.ldif");
    keyway(["data", "make", template, "-o", ldif.to_str().unwrap()]).well();
    let other = place.path().join("other");
    let arguments =
        ["directory", "import", ldif.to_str().unwrap(), "--data", other.to_str().unwrap()];
    let done = keyway(arguments).well();
    assert!(
        done.out.contains("begin a tree of their own")
            || done.err.contains("begin a tree of their own")
    );
}
