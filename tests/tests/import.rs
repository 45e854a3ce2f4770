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
    // All its definitions at once do no harm.
    let data = tempfile::tempdir().unwrap();
    let tree = folder.join("usr/share/dirsrv/data/European.ldif");
    let mut import = Command::new(keyway());
    import.args(["directory", "import"]).arg(&tree).arg("--data").arg(data.path().join("data"));
    let definitions = std::fs::read_dir(folder.join("usr/share/dirsrv/schema")).unwrap();
    for file in definitions.map(|file| file.unwrap().path()) {
        import.arg("--schema").arg(file);
    }
    import.arg("--schema").arg(folder.join("etc/dirsrv/schema/99user.ldif"));
    assert!(finish(&mut import, "").expect(0).out.contains("614 records"));
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

/// Attributes that slapcat and db2ldif write beside the entries' own, as far as they mean something
/// to their servers only or are kept without effect.
#[test]
fn what_other_servers_note_of_entries_is_no_reason_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let ldif = folder.path().join("tree.ldif");
    let tree = "\
dn: dc=moved,dc=test
objectClass: domain
dc: moved
aci: (targetattr=\"*\")(version 3.0; acl \"all\"; allow(read) userdn=\"ldap:///all\";)
OpenLDAPaci: 0#entry#grant;r;[all]#public#
contextCSN: 20200101000000.000000Z#000000#000#000000
tombstoneNumSubordinates: 3

dn: uid=ann,dc=moved,dc=test
objectClass: inetOrgPerson
uid: ann
cn: ann
sn: Test
authzTo: {0}ldap:///dc=moved,dc=test??sub?(uid=*)
saslAuthzFrom: dn.exact:uid=bob,dc=moved,dc=test
authTimestamp: 20200101000000Z
pwdAccountTmpLockoutEnd: 20200101000000Z
entryCSN: 20200101000000.000000Z#000000#000#000000
namingCSN: 20200101000000.000000Z#000000#000#000000
superiorUUID: 597ae2f6-16a6-1027-98f4-abcdefabcdef

dn: uid=bob,dc=moved,dc=test
objectClass: inetOrgPerson
uid: bob
cn: bob
sn: Test
lastLoginTime: 20200101000000Z
acctPolicySubentry: cn=Policy,dc=moved,dc=test
accountUnlockTime: 19700101000000Z
passwordRetryCount: 3
pwdUpdateTime: 20200101000000Z
nsPagedSizeLimit: 10
employeeType:
mail: büb@moved.test
manager: Ann

dn: nsuniqueid=66446001-1dd211b2-bd3f8c1f-a2a9a0f0+uid=bob,dc=moved,dc=test
objectClass: inetOrgPerson
objectClass: ldapSubEntry
uid: bob
cn: bob
sn: Other
nsUniqueId: 66446001-1dd211b2-bd3f8c1f-a2a9a0f0
nsds5ReplConflict: namingConflict (ADD) uid=bob,dc=moved,dc=test
ConflictCSN: 58ea3d53000000010000

dn: cn=both,dc=moved,dc=test
objectClass: groupOfNames
cn: both
member: uid=ann;dc=moved;dc=test
member: UID=bob, dc=moved; dc=test
";
    std::fs::write(&ldif, tree).unwrap();
    let (exported, count) = there_and_back(&ldif);
    assert_eq!(count, 5, "{exported}");
    for kept in [
        "aci: (targetattr",
        "OpenLDAPaci: 0#entry",
        "authzTo: {0}ldap:///",
        "authzFrom: dn.exact:",
        "authTimestamp: 20200101000000Z",
        "lastLoginTime: 20200101000000Z",
        "acctPolicySubentry: cn=Policy",
        "nsds5ReplConflict: namingConflict",
        "nsUniqueId: 66446001",
        "employeeType:",
        "mail:: YsO8YkBtb3ZlZC50ZXN0",
        "manager: Ann",
        "member: uid=ann;dc=moved;dc=test",
    ] {
        assert!(exported.contains(kept), "{kept}: {exported}");
    }
    // A group is found by its members, however their names are written.
    let data = folder.path().join("data");
    let said = directory(&data, &["import", &ldif.to_string_lossy()]).expect(0);
    for line in [
        "values of authzTo, kept",
        "accountUnlockTime, left out",
        "nsPagedSizeLimit, kept",
        "3 values that are not of",
    ] {
        assert!(
            said.out.contains(line) || said.err.contains(line),
            "{line}: {}{}",
            said.out,
            said.err
        );
    }
}

/// LDIF as tools on other systems write it, and by hand.
#[test]
fn ldif_in_unusual_clothes() {
    let folder = tempfile::tempdir().unwrap();
    let ldif = folder.path().join("odd.ldif");
    let long = "x".repeat(100_000);
    let lines = [
        "# first a comment",
        "  that goes on",
        "dn: dc=odd,dc=test",
        "objectClass: domain",
        "dc: odd",
        "",
        "",
        // ou=Ünits,dc=odd,dc=test
        "dn:: b3U9w5xuaXRzLGRjPW9kZCxkYz10ZXN0",
        "changetype: add",
        "objectClass: organizationalUnit",
        "ou:: w5xuaXRz",
        "description;lang-de: Einheiten",
        "description;lang-en;x-hand: units",
        "description;lang-ja;phonetic: yunitto",
        "# between",
        &format!("description: {long}"),
        "",
        "dn: uid=child,ou=Later,dc=odd;dc=test",
        "changeType: add",
        "objectclass: INETORGPERSON",
        "UID: child",
        "uid: child",
        "cn: Folded",
        "  value",
        "# a comment",
        " in two lines",
        "sn:no blank",
        "userCertificate;binary:: MAA=",
        "jpegPhoto;binary:: /9j/",
        "userPassword: {CRYPT}!",
        "userPassword: {X-UNHEARD}zzz",
        "userPassword:: e1NTSEF9",
        "",
        "dn: ou=Later,dc=odd,dc=test",
        "objectClass: organizationalUnit",
        "ou: later",
        "street: the last line has no end",
    ];
    std::fs::write(&ldif, format!("\u{feff}{}", lines.join("\r\n"))).unwrap();
    let (exported, count) = there_and_back(&ldif);
    assert_eq!(count, 4, "{exported}");
    let exported = exported.replace("\n ", "");
    for kept in [
        "description;lang-de: Einheiten",
        "description;lang-en;x-hand: units",
        &format!("description: {long}"),
        "cn: Folded value",
        "sn: no blank",
        "userCertificate;binary:: MAA=",
        "jpegPhoto:: /9j/",
        "street: the last line has no end",
    ] {
        assert!(exported.contains(kept), "{kept}");
    }
    assert_eq!(exported.matches("\nuserPassword:").count(), 3, "{exported}");
}
