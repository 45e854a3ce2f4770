//! Passwords that other servers stored, as a client that binds meets them.

use crate::support::{KEYWAY, Running, bind, keyway_with};
use keyway_codec::message::ResultCode;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// `secret password`, by OpenLDAP's slappasswd.
const SSHA: &str = "{SSHA}rXRAgYm9GAhAdEmNcfET0e07O0LT+WHV";

/// A tree with one person for each stored password, named p0, p1, ...
fn people(stored: &[&str]) -> String {
    let mut text = "dn: o=old\nobjectClass: organization\no: old\n\n".to_owned();
    for (index, stored) in stored.iter().enumerate() {
        text += &format!("dn: cn=p{index},o=old\nobjectClass: person\ncn: p{index}\nsn: p\n");
        if !stored.is_empty() {
            text += &format!("userPassword: {stored}\n");
        }
        text += "\n";
    }
    text
}

fn directory(data: &Path, arguments: &[&str], input: &str) -> String {
    let data = ["--data", data.to_str().unwrap()];
    keyway_with(["directory"].iter().chain(arguments).chain(&data), input).well().out
}

/// The values of userPassword in an export.
fn stored(data: &Path) -> Vec<String> {
    let exported = directory(data, &["export"], "").replace("\n ", "");
    let lines = exported.lines().filter_map(|line| line.strip_prefix("userPassword: "));
    lines.map(str::to_owned).collect()
}

/// Changes a line of the configuration.
fn configure(data: &Path, from: &str, to: &str) {
    let file = data.join("keyway.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(&file, text.replace(from, to)).unwrap();
}

/// How many Argon2id derivations the server has done since its start.
fn derivations(data: &Path) -> u64 {
    let mut command = Command::new(KEYWAY);
    command.args(["top", "--json", "--count", "1", "--interval", "0.01", "--data"]).arg(data);
    let line: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let engine = line["engine"].as_array().unwrap();
    let argon2 = engine.iter().filter(|work| work["algorithm"] == "argon2id");
    argon2.map(|work| work["since_start"]["operations"].as_u64().unwrap()).sum()
}

#[test]
fn a_wrong_password_costs_the_same_for_every_entry() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory(&data, &["import", "-"], &people(&[SSHA, ""]));
    configure(&data, "memory_kib = 19456 ", "memory_kib = 64 ");
    configure(&data, "\nupgrade = true\n", "\nupgrade = false\n");
    let running = Running::start(&data, &[]);
    // p0 has a fast hash, p1 none, p9 does not exist.
    for name in ["cn=p0,o=old", "cn=p1,o=old", "cn=p9,o=old", "cn=admin,cn=keyway"] {
        let before = derivations(&data);
        assert_eq!(bind(&running, name, "wrong"), ResultCode::InvalidCredentials, "{name}");
        assert_eq!(derivations(&data) - before, 1, "{name}");
    }
    // A right password has nothing to hide, and stays as it is.
    let before = derivations(&data);
    assert_eq!(bind(&running, "cn=p0,o=old", "secret password"), ResultCode::Success);
    assert_eq!(derivations(&data), before);
    running.stop();
    assert_eq!(stored(&data), [SSHA]);
}

#[test]
fn a_right_password_is_stored_again_under_the_slow_hash() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory(&data, &["import", "-"], &people(&[SSHA, SSHA]));
    configure(&data, "memory_kib = 19456 ", "memory_kib = 64 ");
    let running = Running::start(&data, &[]);
    let before = derivations(&data);
    assert_eq!(bind(&running, "cn=p0,o=old", "wrong"), ResultCode::InvalidCredentials);
    assert_eq!(bind(&running, "cn=p0,o=old", "secret password"), ResultCode::Success);
    // It is done after the answer: from some bind on, the slow hash is what a right one is
    // checked against.
    let end = Instant::now() + Duration::from_secs(60);
    while derivations(&data) < before + 3 {
        assert_eq!(bind(&running, "cn=p0,o=old", "secret password"), ResultCode::Success);
        assert!(Instant::now() < end, "it is never stored again");
    }
    assert_eq!(bind(&running, "cn=p0,o=old", "wrong"), ResultCode::InvalidCredentials);
    running.stop();
    let stored = stored(&data);
    assert!(stored[0].starts_with("{ARGON2}$argon2id$v=19$m=64,t=2,p=1$"), "{stored:?}");
    assert_eq!(stored[1], SSHA, "no client gave this one");
}

#[test]
fn what_was_right_is_remembered_as_long_as_it_is_wanted() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    // `password`, by the reference implementation.
    let argon = "{ARGON2}$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U\
                 1bMCHGi/4";
    directory(&data, &["import", "-"], &people(&[argon]));
    configure(&data, "\nupgrade = true\n", "\nupgrade = false\n");
    let running = Running::start(&data, &[]);
    let right = || assert_eq!(bind(&running, "cn=p0,o=old", "password"), ResultCode::Success);
    let before = derivations(&data);
    right();
    assert_eq!(derivations(&data), before + 1);
    (0..5).for_each(|_| right());
    assert_eq!(derivations(&data), before + 1);
    assert_eq!(bind(&running, "cn=p0,o=old", "wrong"), ResultCode::InvalidCredentials);
    assert_eq!(derivations(&data), before + 2);
    right();
    assert_eq!(derivations(&data), before + 2);
    configure(&data, "\nremember = true\n", "\nremember = false\n");
    running.signal(Signal::HUP);
    // Once it has heeded the signal, each one is derived.
    let end = Instant::now() + Duration::from_secs(60);
    let mut derived = before + 2;
    while derived == before + 2 {
        right();
        derived = derivations(&data);
        assert!(Instant::now() < end, "it goes on remembering");
    }
    for number in 1..=3 {
        right();
        assert_eq!(derivations(&data), derived + number);
    }
    running.stop();
    // A pepper that no key holder has.
    configure(&data, "\npepper = \"\"\n", "\npepper = \"cayenne\"\n");
    let shown = data.to_str().unwrap();
    keyway_with(["up", "--data", shown], "").refused(
        1,
        &["keyway.toml", "[password] pepper: \"cayenne\"", "no driver that is there holds"],
    );
}

#[test]
fn the_way_back_from_a_forgotten_administrators_password() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let shown = data.to_str().unwrap();
    let admin = |more: &[&str], input: &str| {
        keyway_with([&["admin", "password", "--data", shown], more].concat(), input)
    };
    admin(&[], "").refused(1, &["no data", "--data"]);
    assert!(!data.exists());
    let running = Running::start(&data, &["--sample", "1"]);
    let file = running.text("administrator_password_file").to_owned();
    let dn = running.text("administrator").to_owned();
    let first = fs::read_to_string(&file).unwrap();
    admin(&[], "").refused(1, &["in use", &running.pid().to_string(), "stop it first"]);
    running.stop();

    // One that is made, into the file.
    let said = admin(&["--json"], "").well().json();
    assert_eq!(said["administrator"], dn.as_str());
    assert_eq!(said["password_file"], file.as_str());
    assert_eq!(said["administrator_made"], false);
    let second = fs::read_to_string(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let running = Running::start(&data, &[]);
    assert_eq!(bind(&running, &dn, &first), ResultCode::InvalidCredentials);
    assert_eq!(bind(&running, &dn, &second), ResultCode::Success);
    running.stop();

    // One that is given; the file would be stale.
    let mine = place.path().join("mine");
    fs::write(&mine, "my own\nsomething else\n").unwrap();
    let said = admin(&["--from", mine.to_str().unwrap()], "").well().out;
    assert!(said.contains("new password") && said.contains("removed"), "{said}");
    assert!(!said.contains("my own") && !Path::new(&file).exists());
    let said = admin(&["--from", "-", "--json"], "piped\r\n").well().json();
    assert_eq!(said["password_file"], Value::Null);
    let running = Running::start(&data, &[]);
    assert_eq!(bind(&running, &dn, "my own"), ResultCode::InvalidCredentials);
    assert_eq!(bind(&running, &dn, "piped"), ResultCode::Success);
    running.stop();

    let long = "x".repeat(1025);
    for (input, why) in [("", "no password"), ("{SSHA}x", "hashed already"), (&long, "1024 bytes")]
    {
        admin(&["--from", "-"], input).refused(1, &["standard input", why]);
    }
    admin(&["--from", "/nowhere/x"], "").refused(1, &["/nowhere/x", "No such file"]);
    // An import makes no administrator. This does.
    let bare = place.path().join("bare");
    directory(&bare, &["import", "-"], &people(&[]));
    let arguments = ["admin", "password", "--data", bare.to_str().unwrap(), "--json"];
    let said = keyway_with(arguments, "").well().json();
    assert_eq!(said["administrator_made"], true);
    let running = Running::start(&bare, &[]);
    let password = fs::read_to_string(running.text("administrator_password_file")).unwrap();
    assert_eq!(bind(&running, &dn, &password), ResultCode::Success);
    running.stop();
}

#[test]
fn an_import_stops_at_no_stored_password_and_says_what_cannot_be_verified() {
    let place = tempfile::tempdir().unwrap();
    let (data, file) = (place.path().join("data"), place.path().join("old.ldif"));
    let kept = [
        "{CRYPT}!",
        "{CRYPT}*",
        "{CRYPT}!!",
        "{CRYPT}!$6$salt$hash",
        "!{SSHA}rXRAgYm9GAhAdEmNcfET0e07O0LT+WHV",
        "{SASL}user@EXAMPLE.COM",
        "{XYZ}whatever",
        "{XYZ}another",
        "{SHA}0goJVFx6/xSk9ZbduhkpbVj2wQE=",
        "{SSHA}!!!",
        "{CRYPT}ab0123456789.",
        "{PBKDF2-SHA256}4000000000$AAAA$AAAA",
    ];
    fs::write(&file, people(&[&kept[..], &["in clear", ""]].concat())).unwrap();
    let shown = file.to_str().unwrap();
    let import = ["directory", "import", shown, "--json", "--data", data.to_str().unwrap()];
    let done = keyway_with(import, "").well();
    let unverified = serde_json::json!({
        "{SASL}": 1, "{XYZ}": 2, "{SHA} (not accepted)": 1, "{CRYPT}": 1,
        "{PBKDF2-SHA256} (too costly)": 1,
    });
    assert_eq!(done.json()["passwords_unverified"], unverified);
    assert_eq!(done.json()["passwords_hashed"], 1);
    assert!(done.json()["hashing_seconds_expected"].as_f64().unwrap() > 0.0);
    assert!(done.err.contains("old.ldif: 6 passwords are kept") && done.err.contains("2 {XYZ}"));
    let after = stored(&data);
    assert_eq!(after[..kept.len()], kept, "all of them are as they were");
    assert!(after[kept.len()].starts_with("{ARGON2}"));

    // None of them lets a client in, and none is told from another by what a wrong one costs.
    configure(&data, "memory_kib = 19456 ", "memory_kib = 64 ");
    let running = Running::start(&data, &[]);
    for (index, value) in kept.iter().enumerate() {
        for password in ["secret password", value] {
            let before = derivations(&data);
            let name = format!("cn=p{index},o=old");
            assert_eq!(bind(&running, &name, password), ResultCode::InvalidCredentials, "{value}");
            assert_eq!(derivations(&data) - before, 1, "{value}");
        }
    }
    running.stop();
    // Where the configuration allows it, more is verified.
    configure(&data, "\"ssha\"]\n", "\"ssha\", \"sha\"]\n");
    let running = Running::start(&data, &[]);
    assert_eq!(bind(&running, "cn=p8,o=old", "secret password"), ResultCode::Success);
    running.stop();
}

#[test]
fn an_import_says_beforehand_how_long_hashing_will_take() {
    let place = tempfile::tempdir().unwrap();
    let (data, file) = (place.path().join("data"), place.path().join("clear.ldif"));
    directory(&data, &["import", "-"], &people(&[]));
    configure(&data, "memory_kib = 19456 ", "memory_kib = 65536 ");
    configure(&data, "passes = 2\n", "passes = 8\n");
    let text = people(&["in clear"; 12]);
    fs::write(&file, &text).unwrap();
    let import = |file: &str, input: &str| {
        keyway_with(["directory", "import", file, "--data", data.to_str().unwrap()], input).well()
    };
    let said = import(file.to_str().unwrap(), "").err;
    assert!(
        said.contains("12 clear passwords are to be hashed, ")
            && said.contains(" s; for test data"),
        "{said}"
    );
    let piped = text.replace("o=old", "o=new").replace("o: old", "o: new");
    let said = import("-", &piped.replace("p2,", "pp,")).err;
    assert!(said.contains("standard input: there are clear passwords in it"), "{said}");
}

#[test]
fn old_schemes_let_in_where_the_configuration_allows_it() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    // `secret password`, by crypt(3) and OpenSSL.
    let old = [
        "{BCRYPT}$2b$06$abcdefghijklmnopqrstuut3rfpz77WyoqCa6tLzI8yUtmHpAisU.",
        "{CRYPT}$2y$05$abcdefghijklmnopqrstuuCk8jkoqETEiNj.yXXza3UhEkEmCpaNe",
        "{CRYPT}$1$saltsalt$ysiaJOefMBJXicKvul5ww/",
        "{SMD5}BZ9FE5HQV4WBqmKR7B+KI3NhbHQ=",
        "{MD5}pYTvr6j56n/lzxhELzKwew==",
    ];
    let slow = 2;
    directory(&data, &["import", "-"], &people(&old));
    let lets_in = |allowed: usize| {
        let running = Running::start(&data, &[]);
        for (index, value) in old.iter().enumerate() {
            let name = format!("cn=p{index},o=old");
            let expected =
                if index < allowed { ResultCode::Success } else { ResultCode::InvalidCredentials };
            assert_eq!(bind(&running, &name, "secret password"), expected, "{value}");
            let wrong = bind(&running, &name, "secret passwore");
            assert_eq!(wrong, ResultCode::InvalidCredentials, "{value}");
        }
        running.stop();
    };
    configure(&data, "\nupgrade = true\n", "\nupgrade = false\n");
    lets_in(slow);
    configure(&data, "\"ssha\"]\n", "\"ssha\", \"md5-crypt\", \"smd5\", \"md5\"]\n");
    lets_in(old.len());
    assert_eq!(stored(&data), old);
}
