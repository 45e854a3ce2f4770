//! A group of 100,000 members through python-ldap: what changes of it do and refuse, who is in it, and
//! that it is exported and imported as it is.

use keyway_tests::{Finished, PYTHON, Server, available, finish, keyway};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

const MEMBERS: u32 = 100_000;
const PEOPLE: &str = "ou=People,dc=example,dc=com";

#[test]
fn a_group_of_100_000_changes_by_one_member() {
    if !available(&["python:ldap"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (ldif, data) = (folder.path().join("group.ldif"), folder.path().join("data"));
    fs::write(&ldif, entries()).unwrap();
    directory(&["import"], &data, Some(&ldif));
    let server = Server::start(&data, &[]);
    let mut script = Command::new(PYTHON);
    script.arg(format!("{}/python/large_group.py", env!("CARGO_MANIFEST_DIR")));
    script.env("LDAP_URL", server.ldap());
    script.env("LDAP_ADMIN", server.administrator()).env("LDAP_PASSWORD", server.password());
    let done = finish(&mut script, "").expect(0);
    assert!(done.out.ends_with("all well\n"), "{}{}", done.out, done.err);
    assert!(server.stop().success());
    directory(&["check"], &data, None);
    let first = directory(&["export", "-"], &data, None).out;
    // As the script has left it.
    assert_eq!(first.matches("\nmember: ").count(), MEMBERS as usize + 1);
    let (exported, again) = (folder.path().join("exported.ldif"), folder.path().join("again"));
    fs::write(&exported, &first).unwrap();
    directory(&["import"], &again, Some(&exported));
    directory(&["check"], &again, None);
    let second = directory(&["export", "-"], &again, None).out;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<String>>();
    assert!(lines(&first) == lines(&second), "what was imported is exported otherwise");
}

fn directory(arguments: &[&str], data: &Path, file: Option<&Path>) -> Finished {
    let mut command = Command::new(keyway());
    command.arg("directory").args(arguments).arg("--data").arg(data).args(file);
    finish(&mut command, "").expect(0)
}

/// Two people who are there, a small group, and the large one.
fn entries() -> String {
    let mut text = format!(
        "dn: dc=example,dc=com\nobjectClass: domain\ndc: example\n\n\
         dn: {PEOPLE}\nobjectClass: organizationalUnit\nou: People\n\n"
    );
    for uid in ["ann", "user000007"] {
        writeln!(text, "dn: uid={uid},{PEOPLE}\nobjectClass: inetOrgPerson\ncn: x\nsn: x\n")
            .unwrap();
    }
    writeln!(text, "dn: cn=all,dc=example,dc=com\nobjectClass: groupOfNames").unwrap();
    for n in 0..MEMBERS {
        writeln!(text, "member: uid=user{n:06},{PEOPLE}").unwrap();
    }
    text
}
