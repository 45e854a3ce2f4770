//! Other people's LDIF goes in, comes out, and goes in again the same.

use keyway_tests::{Finished, PYTHON, available, finish, keyway, nightly};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

fn directory(data: &Path, arguments: &[&str]) -> Finished {
    finish(Command::new(keyway()).arg("directory").args(arguments).arg("--data").arg(data), "")
}

/// Imports, exports, imports the export into a second folder, exports that: both are equal.
fn there_and_back(ldif: &Path) -> (String, usize) {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let exported = folder.path().join("exported.ldif");
    directory(&first, &["import", &ldif.to_string_lossy()]).expect(0);
    directory(&first, &["export", &exported.to_string_lossy()]).expect(0);
    directory(&second, &["import", &exported.to_string_lossy()]).expect(0);
    let once = std::fs::read_to_string(&exported).unwrap();
    let twice = directory(&second, &["export", "-"]).expect(0).out;
    assert!(entries(&once) == entries(&twice), "the second export differs from the first");
    directory(&second, &["check"]).expect(0);
    let count = once.lines().filter(|line| line.starts_with("dn:")).count();
    (once, count)
}

/// A record's lines, sorted, by its DN line.
fn entries(ldif: &str) -> BTreeMap<String, Vec<String>> {
    let unfolded = ldif.replace("\n ", "");
    let mut all = BTreeMap::new();
    for record in unfolded.split("\n\n") {
        let mut lines: Vec<String> = record.lines().map(str::to_owned).collect();
        if let Some(at) = lines.iter().position(|line| line.starts_with("dn:")) {
            let dn = lines.remove(at);
            lines.sort();
            all.insert(dn, lines);
        }
    }
    all
}

/// The sample trees that 389 Directory Server publishes, out of its Debian package.
#[test]
fn the_sample_trees_of_389_directory_server() {
    let Some(folder) = unpacked("389-ds-base") else { return };
    let trees = [
        ("Example.ldif", 160),
        ("European.ldif", 614),
        ("Ace.ldif", 157),
        ("Example-roles.ldif", 161),
        ("Example-views.ldif", 183),
    ];
    for (name, count) in trees {
        let ldif = folder.join("usr/share/dirsrv/data").join(name);
        let (_, found) = there_and_back(&ldif);
        assert_eq!(found, count, "{name}");
    }
}

/// Unpacks a Debian package below the target folder without installing it.
fn unpacked(package: &str) -> Option<std::path::PathBuf> {
    if !available(&["apt-get", "dpkg-deb"]) {
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/packages").join(package);
    if root.join("usr").exists() {
        return Some(root);
    }
    std::fs::create_dir_all(&root).unwrap();
    let script = format!(
        "cd '{}' && {{ apt-get -q download {package} || \
         {{ apt-get -q update && apt-get -q download {package}; }}; }} && \
         dpkg-deb -x {package}_*.deb .",
        root.display()
    );
    let done = finish(Command::new("sh").args(["-c", &script]), "");
    if done.code == 0 {
        return Some(root);
    }
    assert!(std::env::var("CI").is_err(), "the package {package} cannot be had: {}", done.err);
    eprintln!("skipped: the Debian package {package} cannot be had");
    None
}

/// A hundred thousand, or what takes a moment.
#[test]
fn many_people() {
    let people = if nightly() { 100_000 } else { 5_000 };
    let folder = tempfile::tempdir().unwrap();
    let ldif = folder.path().join("people.ldif");
    let mut text = String::from(
        "version: 1\n\ndn: o=big\nobjectClass: organization\no: big\n\n\
         dn: ou=people,o=big\nobjectClass: organizationalUnit\nou: people\n\n",
    );
    let hash = "{SSHA}W6ph5Mm5Pz8GgiULbPgzG37mj9hzYWx0c2FsdA==";
    for n in 0..people {
        let _ = write!(
            text,
            "dn: uid=u{n},ou=people,o=big\nobjectClass: inetOrgPerson\nuid: u{n}\ncn: Person {n}\n\
             sn: Name{}\nmail: u{n}@example.com\ntelephoneNumber: +1 555 {n}\n\
             userPassword: {hash}\n\n",
            n % 5000
        );
    }
    std::fs::write(&ldif, text).unwrap();
    assert_eq!(there_and_back(&ldif).1, people + 2);
}

/// ldap3's and python-ldap's own LDIF readers agree with our writer.
#[test]
fn an_export_is_read_by_another_ldif_reader() {
    if !available(&["python:ldif"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ldif = folder.path().join("odd.ldif");
    let text = "dn: dc=odd\nobjectClass: domain\ndc: odd\n\n\
        dn:: Y249w5ZkZMO2LGRjPW9kZA==\nobjectClass: person\ncn:: w5ZkZMO2\nsn:  spaces \n\
        description: a very long line that has to be folded because it is longer than seventy-six \n \
         characters wide\ndescription:: AAEC/w==\n";
    let text = text.replace("sn:  spaces ", "sn:: IHNwYWNlcyA=").replace("AAEC/w==", "OmNvbG9u");
    std::fs::write(&ldif, text).unwrap();
    let data = folder.path().join("data");
    directory(&data, &["import", &ldif.to_string_lossy()]).expect(0);
    let exported = directory(&data, &["export", "-"]).expect(0).out;
    let script = "import ldif, sys\n\
        class P(ldif.LDIFRecordList): pass\n\
        p = P(sys.stdin.buffer); p.parse()\n\
        d = dict(p.all_records)\n\
        e = d['cn=Öddö,dc=odd']\n\
        assert e['cn'] == ['Öddö'.encode()] and e['sn'] == [b' spaces '], e\n\
        assert b':colon' in e['description'] and len(e['description']) == 2, e\n\
        print('all well')\n";
    let mut python = Command::new(PYTHON);
    let done = finish(python.args(["-c", script]), &exported).expect(0);
    assert_eq!(done.out, "all well\n");
}

#[test]
fn an_error_names_line_and_dn_and_continue_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let ldif = folder.path().join("bad.ldif");
    let text = "dn: dc=bad\nobjectClass: domain\ndc: bad\n\n\
        dn: cn=one,dc=bad\nobjectClass: person\ncn: one\n\n\
        dn: cn=two,dc=bad\nobjectClass: person\ncn: two\nsn: two\n";
    std::fs::write(&ldif, text).unwrap();
    let ldif = ldif.to_string_lossy();
    let strict = directory(&folder.path().join("strict"), &["import", &ldif]);
    assert_ne!(strict.code, 0);
    assert!(
        strict.err.contains("line 5") && strict.err.contains("cn=one,dc=bad"),
        "{}",
        strict.err
    );
    let data = folder.path().join("lenient");
    let lenient = directory(&data, &["import", "--continue", &ldif]);
    assert!(lenient.err.contains("line 5"), "{}", lenient.err);
    let out = directory(&data, &["export", "-"]).expect(0).out;
    assert!(out.contains("cn=two,dc=bad") && !out.contains("cn=one,dc=bad"), "{out}");
}
