//! Several certificates by the host that a client asks for, and what becomes of them while the server
//! runs: with OpenSSL's client and authority.

use keyway_tests::authority::{Authority, configure, openssl};
use keyway_tests::{Finished, Server, available, finish, keyway};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

const NEEDS: &[&str] = &["openssl"];
/// More than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn s_client(server: &Server, arguments: &[&str]) -> Finished {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", server.tls_address()]);
    finish(command.args(arguments), "Q\n")
}

/// The subject of the certificate that a client gets for this host.
fn shown(server: &Server, host: &str) -> String {
    let out = s_client(server, &["-servername", host]).expect(0).out;
    let subject = out.lines().find_map(|line| line.strip_prefix("subject=")).expect(&out);
    subject.trim().trim_start_matches("CN").trim_start_matches([' ', '=']).to_owned()
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < LONG, "{what}");
        sleep(Duration::from_millis(100));
    }
}

fn log(data: &Path) -> String {
    fs::read_to_string(data.join("log/error.log")).unwrap_or_default()
}

#[test]
fn each_host_has_its_own() {
    if !available(NEEDS) {
        return;
    }
    let files = Authority::new();
    let san = |host: &str| format!("subjectAltName=DNS:{host}");
    files.issue_own("one", "/CN=one", &san("one.example.com"));
    files.issue_own("two", "/CN=two", &san("two.example.com,DNS:*.two.example.com"));
    files.issue_own("held", "/CN=held", &san("held.example.com"));
    let new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=rsa"];
    let names = ["-addext", "subjectAltName=DNS:one.example.com"];
    let out = ["-keyout", "rsa.key", "-out", "rsa.pem"];
    openssl(files.place(), &[&new[..], &names, &out].concat());
    let data = files.path("data");
    let at = |name: &str| files.path(name).display().to_string();
    // A key of cryptod's, given to it before.
    Server::start(&data, &["--sample", "0"]).stop();
    let mut cryptod = Command::new(keyway());
    cryptod.args(["cryptod", "--json", "--data"]).arg(&data);
    let cryptod = Server::spawn(&mut cryptod);
    let mut import = Command::new(keyway());
    import.args([
        "key",
        "import",
        "host-key",
        &at("held.key"),
        "--algorithm",
        "ecdsa-p256-sha-256",
    ]);
    let user = format!("user:{}", rustix::process::getuid().as_raw());
    finish(import.args(["--purpose", "sign", "--for", &user, "--data"]).arg(&data), "").expect(0);
    cryptod.stop();
    let pair = |pem: &str, key: &str| {
        format!("[[tls.additional]]\ncertificate = \"{}\"\nkey = \"{key}\"\n", at(pem))
    };
    let more = [
        "versions = [\"1.3\"]\nciphers = [\"TLS_CHACHA20_POLY1305_SHA256\"]".to_owned(),
        pair("two.pem", &at("two.key")),
        pair("one.pem", &at("one.key")),
        pair("rsa.pem", &at("rsa.key")),
        pair("held.pem", "cryptod:host-key"),
    ];
    configure(&data, &more.join("\n"));
    let server = Server::start(&data, &[]);
    for (host, expected) in [
        ("one.example.com", "one"),
        ("ONE.example.com", "one"),
        ("two.example.com", "two"),
        ("a.two.example.com", "two"),
        ("held.example.com", "held"),
    ] {
        assert_eq!(shown(&server, host), expected, "{host}");
    }
    // A client without ECDSA gets the other one of its host.
    let rsa = ["-servername", "one.example.com", "-sigalgs", "rsa_pss_rsae_sha256"];
    let shown_rsa = s_client(&server, &rsa).out;
    assert!(shown_rsa.contains("subject=CN = rsa") || shown_rsa.contains("subject=CN=rsa"));
    // A client that asks for another name gets the folder's own.
    for other in ["a.b.two.example.com", "example.com"] {
        assert!(!["one", "two", "held"].contains(&shown(&server, other).as_str()), "{other}");
    }
    let refused = |arguments: &[&str]| {
        let done = s_client(&server, arguments);
        assert!(done.code != 0 && done.err.contains(" alert "), "{arguments:?}: {}", done.err);
    };
    refused(&["-tls1_2"]);
    refused(&["-ciphersuites", "TLS_AES_128_GCM_SHA256"]);
    server.stop();
    for (line, expected) in [
        ("versions = [\"1.1\"]", "line 2: versions: \"1.1\" is not one of 1.3, 1.2"),
        ("ciphers = [\"RC4\"]", "line 2: ciphers: \"RC4\" is none of TLS_AES_256_GCM_SHA384, "),
        ("ciphers = [\"TLS_AES_128_GCM_SHA256\"]", "none of them is of TLS 1.2"),
    ] {
        configure(&data, line);
        let mut command = Command::new(keyway());
        let done = finish(command.args(["up", "--listen", "off", "--data"]).arg(&data), "");
        assert!(done.expect(1).err.contains(expected), "{line}");
    }
}

#[test]
fn a_certificate_that_changes_is_taken_when_its_key_is_there() {
    if !available(NEEDS) {
        return;
    }
    let files = Authority::new();
    for (name, subject) in [("server", "/CN=old"), ("next", "/CN=new")] {
        files.issue_own(name, subject, "subjectAltName=DNS:ldap.example.com");
    }
    let data = files.path("data");
    let at = |name: &str| files.path(name).display().to_string();
    let pair = [at("server.pem"), at("server.key")];
    configure(&data, &format!("certificate = \"{}\"\nkey = \"{}\"", pair[0], pair[1]));
    let server = Server::start(&data, &["--sample", "0", "--listen-unix", "ldapi"]);
    assert_eq!(shown(&server, "ldap.example.com"), "old");
    let socket = format!("{}/ldapi", server.text("data")).replace('/', "%2F");
    assert_eq!(server.text("ldapi"), format!("ldapi://{socket}"));

    // They are valid for two days, less what has passed: that is said at once, and counted.
    let warning = server.ready["warnings"][0].as_str().unwrap().to_owned();
    let in_words = ["in a day", "in 2 days"].iter().any(|days| warning.contains(days));
    assert!(warning.contains("server.pem ends at") && in_words, "{warning}");
    until("the warning is in the log", || log(&data).contains("server.pem ends at"));
    let mut metrics = Command::new(keyway());
    let metrics = finish(metrics.args(["metrics", "--data"]).arg(&data), "").expect(0).out;
    let left = metrics
        .lines()
        .find_map(|line| line.strip_prefix("keyway_tls_certificate_ends_in_seconds "));
    let left: i64 = left.expect(&metrics).parse().unwrap();
    assert!((86_400..=2 * 86_400).contains(&left), "{left}");

    // Half of a pair.
    let half = fs::read(files.path("next.pem")).unwrap();
    fs::write(files.path("server.pem"), &half[..half.len() / 2]).unwrap();
    until("what is cut short is refused", || log(&data).contains("all certificates stay"));
    assert_eq!(shown(&server, "ldap.example.com"), "old");
    fs::rename(files.path("next.pem"), files.path("server.pem")).unwrap();
    until("a key that does not fit is refused", || log(&data).contains("it is not the key of"));
    assert_eq!(shown(&server, "ldap.example.com"), "old");
    fs::rename(files.path("next.key"), files.path("server.key")).unwrap();
    until("the new one is shown", || shown(&server, "ldap.example.com") == "new");
    fs::remove_file(files.path("server.pem")).unwrap();
    until("what is gone is missed", || log(&data).contains("server.pem is gone"));
    assert_eq!(shown(&server, "ldap.example.com"), "new");

    // Into the folder of a server that has its own.
    server.stop();
    configure(&data, "");
    // The rest of the file is left out on purpose.
    let mut accept = Command::new(keyway());
    finish(accept.args(["config", "accept", "--data"]).arg(&data), "").expect(0);
    files.issue_own("mine", "/CN=mine", "subjectAltName=DNS:ldap.example.com");
    let server = Server::start(&data, &[]);
    assert_eq!(server.ready["warnings"], serde_json::json!([]));
    fs::copy(files.path("mine.key"), data.join("server.key")).unwrap();
    fs::copy(files.path("mine.pem"), data.join("server.pem")).unwrap();
    until("it is shown", || shown(&server, "ldap.example.com") == "mine");
    assert!(!data.join("server.key").exists(), "cryptod has it");
    let subject = openssl(files.place(), &["x509", "-in", "data/server.pem", "-noout", "-subject"]);
    assert!(subject.out.contains("mine"));
}
