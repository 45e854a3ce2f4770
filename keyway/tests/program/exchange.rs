//! LDIF in and out.

use crate::support::{Finished, KEYWAY, Running, keyway_with};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const GOOD: &str = "version: 1\n\n\
    # a comment\n\
    dn: o=good\nobjectClass: organization\no: good\n\n\
    dn: cn=One,o=good\nobjectClass: person\ncn: One\nsn:: w5ZuZQ==\ndescription: a long\n  er line\n\
    userPassword: secret\n\n\
    dn: cn=Two,o=good\nobjectClass: person\ncn: Two\nsn: Two\n\n";

const BAD: &str = "dn: o=bad\nobjectClass: organization\no: bad\n\n\
    dn: cn=one,o=bad\nobjectClass: person\ncn: one\n\n\
    dn: cn=two,o=bad\nobjectClass: person\ncn: two\nsn: two\n\n\
    dn: cn=three,ou=none,o=bad\nobjectClass: person\ncn: three\nsn: three\n";

const MORE: &str = "dn: o=more\nobjectClass: organization\no: more\n";

fn directory(data: &Path, arguments: &[&str]) -> Finished {
    directory_with(data, arguments, "")
}

fn directory_with(data: &Path, arguments: &[&str], input: &str) -> Finished {
    let data = ["--data", data.to_str().unwrap()];
    keyway_with(["directory"].iter().chain(arguments).chain(&data), input)
}

#[test]
fn out_comes_what_went_in() {
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    let done = directory_with(&first, &["import", "-"], GOOD).well();
    assert!(done.out.starts_with("imported 3 records from standard input"), "{}", done.out);
    let exported = directory(&first, &["export"]).well();
    assert!(exported.out.contains("dn: cn=One,o=good\n") && exported.out.contains("sn:: w5ZuZQ=="));
    assert!(exported.out.contains("description: a long er line\n"), "{}", exported.out);
    assert!(!exported.out.contains("secret") && exported.out.contains("userPassword"));
    assert!(!exported.out.contains("dn: cn=keyway"), "the server's own entries stay here");
    // Into a file, with a base; and in again.
    let file = place.path().join("out.ldif");
    let shown = file.to_str().unwrap();
    directory(&first, &["export", shown]).well();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&file).unwrap(), exported.out);
    directory(&second, &["import", shown]).well();
    assert_eq!(directory(&second, &["export"]).well().out, exported.out);
    let one = directory(&second, &["export", "--base", "CN=one,O=good"]).well().out;
    assert!(one.contains("cn=One,o=good") && !one.contains("cn=Two"), "{one}");
    directory(&second, &["check"]).well();
    directory(&second, &["export", "--base", "cn=none,o=good"]).refused(1, &["cn=none,o=good"]);
    directory(&second, &["export", "--base", "not a dn"]).refused(1, &["not a dn"]);
}

#[test]
fn summaries_for_programs() {
    let place = tempfile::tempdir().unwrap();
    let (data, file) = (place.path().join("data"), place.path().join("out.ldif"));
    let json = directory_with(&data, &["import", "-", "--json"], GOOD).well().json();
    assert_eq!(json["event"], "imported");
    assert_eq!((&json["records"], &json["refused"]), (&3.into(), &0.into()));
    assert_eq!(json["skipped"], 0);
    assert_eq!(json["bytes"], GOOD.len());
    assert!(json["seconds"].is_number());
    let json = directory(&data, &["export", "--json", file.to_str().unwrap()]).well().json();
    assert_eq!((&json["event"], &json["entries"]), (&"exported".into(), &3.into()));
    assert_eq!(json["bytes"], fs::metadata(&file).unwrap().len());
    // The LDIF has standard output to itself.
    let done = directory(&data, &["export", "--json"]).well();
    assert!(
        done.out.starts_with("# keyway: export 1\n") && done.err.contains("\"event\":\"exported\"")
    );
    let json = directory(&data, &["check", "--json"]).well().json();
    assert_eq!((&json["event"], &json["sound"]), (&"checked".into(), &true.into()));
}

#[test]
fn an_error_names_file_line_and_dn_and_the_rest_can_follow() {
    let place = tempfile::tempdir().unwrap();
    let (data, file) = (place.path().join("data"), place.path().join("bad.ldif"));
    fs::write(&file, BAD).unwrap();
    let shown = file.to_str().unwrap();
    let import = |more: &[&str]| directory(&data, &[&["import", shown], more].concat());
    import(&[]).refused(1, &["bad.ldif", "line 5", "cn=one,o=bad", "sn", "--resume"]);
    // The entries before it are in. A user who calls it again is told that.
    assert!(directory(&data, &["export"]).well().out.contains("dn: o=bad"));
    import(&[])
        .refused(1, &["bad.ldif", "not finished", "1 of its records", "--resume", "--restart"]);
    let good = BAD.replace("cn: one\n", "cn: one\nsn: one\n").replace("ou=none,", "");
    fs::write(&file, good).unwrap();
    let json = import(&["--resume", "--json"]).well().json();
    assert_eq!((&json["records"], &json["skipped"]), (&3.into(), &1.into()));
    import(&["--resume"]).refused(1, &["no unfinished import"]);
    assert_eq!(directory(&data, &["export"]).well().out.matches("dn: ").count(), 4);
}

#[test]
fn with_continue_it_goes_on_and_says_what_it_left_out() {
    let place = tempfile::tempdir().unwrap();
    let (data, file) = (place.path().join("data"), place.path().join("bad.ldif"));
    fs::write(&file, BAD).unwrap();
    let done = directory(&data, &["import", "--continue", "--json", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(1), "not everything is in");
    let json = done.json();
    assert_eq!((&json["records"], &json["refused"]), (&2.into(), &2.into()));
    assert!(done.err.contains("line 5") && done.err.contains("cn=one,o=bad"), "{}", done.err);
    assert!(done.err.contains("line 14") && done.err.contains("cn=three"), "{}", done.err);
    assert!(done.err.lines().all(|line| line.starts_with("keyway: ")), "{}", done.err);
    let out = directory(&data, &["export"]).well().out;
    assert!(out.contains("cn=two,o=bad") && !out.contains("cn=one") && !out.contains("cn=three"));
    // Again: an entry that is there in the same form is no reason to stop; one in another form is.
    let again = directory(&data, &["import", file.to_str().unwrap()]);
    again.refused(1, &["line 5", "cn=one,o=bad"]);
    let other = "dn: o=bad\nobjectClass: organization\no: bad\no: other\n";
    let again = directory_with(&data, &["import", "-", "--restart"], other);
    again.refused(1, &["line 1", "o=bad", "there already"]);
}

#[test]
fn changes_are_imported_too() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory_with(&data, &["import", "-"], GOOD).well();
    let changes = "dn: cn=Two,o=good\nchangetype: modify\nreplace: sn\nsn: Zwei\n-\n\n\
        dn: cn=One,o=good\nchangetype: delete\n\n\
        dn: cn=Two,o=good\nchangetype: modrdn\nnewrdn: cn=Drei\ndeleteoldrdn: 1\n\n\
        dn: cn=New,o=good\nchangetype: add\nobjectClass: person\ncn: New\nsn: New\n";
    let json = directory_with(&data, &["import", "-", "--json"], changes).well().json();
    assert_eq!((&json["records"], &json["refused"]), (&4.into(), &0.into()));
    let out = directory(&data, &["export"]).well().out;
    assert!(out.contains("dn: cn=Drei,o=good") && out.contains("sn: Zwei"), "{out}");
    assert!(out.contains("dn: cn=New,o=good") && !out.contains("cn=One"), "{out}");
}

#[test]
fn what_cannot_be_read() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let import = |text: &str| directory_with(&data, &["import", "-"], text);
    directory(&data, &["import", "/nowhere/x.ldif"])
        .refused(1, &["/nowhere/x.ldif", "No such file"]);
    assert!(!data.exists(), "nothing was made for a file that is not there");
    directory(&data, &["import", "/"]).refused(1, &["/", "directory"]);
    import("this is no LDIF\n").refused(1, &["line 1"]);
    import("dn: o=x\nobjectClass: organization\no:< file:///etc/passwd\n")
        .refused(1, &["line 3", "URL"]);
    import("dn: o=x\nobjectClass: organization\no:: !!!\n").refused(1, &["line 3"]);
    let made = place.path().join("made");
    fs::create_dir(&made).unwrap();
    directory(&made, &["export"]).refused(1, &["made", "no data"]);
    let none = place.path().join("none");
    directory(&none, &["export"]).refused(1, &["none"]);
    assert!(!none.exists());
}

/// As many records as one commit has, and some more.
fn many(count: u32) -> String {
    let mut text = GOOD.to_owned();
    for n in 0..count {
        text += &format!("dn: cn=p{n},o=good\nobjectClass: person\ncn: p{n}\nsn: n\n\n");
    }
    text
}

#[test]
fn an_import_that_was_killed_is_noticed_and_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let shown = data.to_str().unwrap();
    // A pipe that stays open: the import has committed some of it and waits for more.
    let mut child = Command::new(KEYWAY)
        .args(["directory", "import", "-", "--data", shown])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // Several times what may wait for its commit.
    let text = many(20_000);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    // All but a pipe's worth has been taken by now, and so the first commits are done.
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    let import = |more: &[&str]| directory_with(&data, &[&["import", "-"], more].concat(), &text);
    import(&[]).refused(1, &["was not finished", "--resume", "--restart", shown]);
    // A start serves what is there, and says that it is not all.
    let running = Running::start(&data, &[]);
    let entries = running.ready["entries"].as_u64().unwrap();
    assert!((1_000..20_003).contains(&entries), "{entries}");
    running.stop();
    let json = import(&["--resume", "--json"]).well().json();
    assert_eq!(json["skipped"], entries);
    assert_eq!(json["records"], 20_003 - entries);
    directory(&data, &["check"]).well();
    assert_eq!(directory(&data, &["export"]).well().out.matches("dn: ").count(), 20_003);
    // Nothing is unfinished any more.
    directory_with(&data, &["import", "-"], MORE).well();
}

#[test]
fn an_unfinished_import_can_be_left_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory_with(&data, &["import", "-"], BAD).refused(1, &["line 5"]);
    directory_with(&data, &["import", "-", "--restart"], MORE).well();
    directory_with(&data, &["import", "-"], MORE).well();
    directory_with(&data, &["import", "-", "--restart", "--resume"], "").refused(2, &["--resume"]);
}

/// The administrator of a directory that began with an import.
#[test]
fn an_imported_directory_is_served() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory_with(&data, &["import", "-"], GOOD).well();
    assert!(!data.join("sample-password").exists());
    let running = Running::start(&data, &[]);
    assert_eq!(running.ready["naming_contexts"], serde_json::json!(["o=good"]));
    assert!(Path::new(running.text("administrator_password_file")).exists());
    running.stop();
    assert!(!directory(&data, &["export"]).well().out.contains("dc=example"));
}

#[test]
fn an_export_whose_reader_goes_away_or_whose_disk_is_full() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory_with(&data, &["import", "-"], GOOD).well();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(KEYWAY);
    command.args(["directory", "export", "--data"]).arg(&data).stdout(full);
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.starts_with("keyway: ") && said.lines().count() == 1, "{said}");
    let nowhere = place.path().join("no/such/folder/x.ldif");
    directory(&data, &["export", nowhere.to_str().unwrap()]).refused(1, &["x.ldif"]);
}
