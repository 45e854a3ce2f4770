//! Outputs that would overwrite an input of the same command: refused, and the input stays as it is.

use crate::support::keyway;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const TEMPLATE: &str = "branch: dc=example,dc=com\nsubordinateTemplate: person:2\n\n\
    template: person\nrdnAttr: uid\nobjectClass: account\nuid: <sequential>\nl: <file:towns>\n";

const SCENARIO: &str = "[target]\nurls = [\"ldap://127.0.0.1:1\"]\nca = \"ca.pem\"\n\n\
    [data]\nuser = { file = \"users\" }\n\n[[phase]]\nfor = \"1s\"\n\n\
    [[job]]\nsteps = [{ search = { filter = \"(uid={user})\" } }]\n";

fn put(folder: &Path, name: &str, text: &str) -> String {
    fs::write(folder.join(name), text).unwrap();
    folder.join(name).to_str().unwrap().to_owned()
}

/// Runs it, with `OUT` as each name that leads to this file: its own, others in its folder, and links.
#[track_caller]
fn refused(file: &str, arguments: &[&str]) {
    let path = Path::new(file);
    let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap());
    let (soft, hard) = (folder.join("soft"), folder.join("hard"));
    symlink(path, &soft).unwrap();
    fs::hard_link(path, &hard).unwrap();
    let before = fs::read(path).unwrap();
    let there = || fs::read_dir(folder).unwrap().count();
    let count = there();
    for out in [path, &folder.join(".").join(name), &soft, &hard] {
        let out = out.to_str().unwrap();
        let arguments = arguments.iter().map(|it| if *it == "OUT" { out } else { it });
        keyway(arguments).refused(2, &["would overwrite", "which this command reads"]);
        assert_eq!(fs::read(path).unwrap(), before);
    }
    assert_eq!(there(), count, "nothing was made");
    fs::remove_file(soft).unwrap();
    fs::remove_file(hard).unwrap();
}

#[test]
fn of_entries() {
    let place = tempfile::tempdir().unwrap();
    let template = put(place.path(), "people.template", TEMPLATE);
    let towns = put(place.path(), "towns", "Here\nThere\n");
    let table = put(place.path(), "table.csv", "a,b\n");
    let other = place.path().join("x").to_str().unwrap().to_owned();
    let make = ["data", "make", &template, "-c", &table];
    for file in [&template, &towns, &table] {
        refused(file, &[&make[..], &["-o", "OUT"]].concat());
        for list in ["--dns", "--binds", "--logins", "--filters"] {
            refused(file, &[&make[..], &[list, "OUT", "-o", &other]].concat());
        }
    }
    // The file that is there until the output is whole.
    let draft = put(place.path(), "y.new", TEMPLATE);
    let out = place.path().join("y").to_str().unwrap().to_owned();
    keyway(["data", "make", &draft, "-o", &out]).refused(2, &["would overwrite"]);
    // One file by two names.
    let again = place.path().join("./x").to_str().unwrap().to_owned();
    keyway([&make[..], &["-o", &other, "--dns", &again]].concat()).refused(2, &["two outputs"]);
    assert!(!Path::new(&other).exists());
    keyway([&make[..], &["-o", &other]].concat()).well();
}

#[test]
fn of_load() {
    let place = tempfile::tempdir().unwrap();
    let scenario = put(place.path(), "s.toml", SCENARIO);
    let ca = put(place.path(), "ca.pem", "a certificate");
    let users = put(place.path(), "users", "0\n1\n");
    let key = put(place.path(), "a.key", "a key");
    let run = ["load", "run", &scenario, "--output", "OUT"];
    for file in [&scenario, &ca, &users] {
        refused(file, &run);
    }
    refused(&key, &[&run[..], &["--ca", &key]].concat());
    let serve = ["load", "serve", &scenario, "--agents", "1", "--listen", "127.0.0.1:0"];
    let who = ["--cert", &ca, "--key", &key, "--ca", &ca, "--output", "OUT"];
    for file in [&scenario, &key] {
        refused(file, &[&serve[..], &who].concat());
    }
}

#[test]
fn of_captures_fetches_and_pictures() {
    let place = tempfile::tempdir().unwrap();
    let capture = put(place.path(), "a.pcap", "packets");
    let digits = "0".repeat(64);
    let keys =
        put(place.path(), "keys.log", &format!("CLIENT_RANDOM {digits} {digits}{digits:.32}\n"));
    for file in [&capture, &keys] {
        refused(file, &["decode", &capture, "--keylog", &keys, "-w", "OUT"]);
    }
    let ca = put(place.path(), "ca.pem", "a certificate");
    refused(&ca, &["quic", "get", "https://127.0.0.1:1/x", "--ca", &ca, "-o", "OUT"]);
    // DER begins so.
    let key = put(place.path(), "rsa.der", "0");
    refused(&key, &["crypto", "bench", "--key", &key, "--svg", "OUT"]);
}
