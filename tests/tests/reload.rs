//! SIGHUP: the settings that can change are read again, and no connected client notices.

use keyway_tests::{Server, available, finish, sample};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An anonymous bind, and its answer.
const BIND: [u8; 14] = [0x30, 12, 2, 1, 1, 0x60, 7, 2, 1, 3, 4, 0, 0x80, 0];
const BOUND: [u8; 14] = [0x30, 12, 2, 1, 1, 0x61, 7, 10, 1, 0, 4, 0, 4, 0];

fn reload(server: &mut Server) -> Value {
    server.signal(Signal::HUP);
    server.next_event()
}

fn file(server: &Server, name: &str) -> PathBuf {
    Path::new(server.text("data")).join(name)
}

/// The certificate that the server shows now.
fn certificate(server: &Server) -> String {
    let mut openssl = Command::new("openssl");
    openssl.args(["s_client", "-connect", server.tls_address()]);
    let shown = finish(&mut openssl, "Q\n").out;
    let start = shown.find("-----BEGIN CERTIFICATE-----").expect(&shown);
    let end = shown.find("-----END CERTIFICATE-----").expect(&shown);
    shown[start..end].to_owned()
}

/// A TLS connection that a foreign client holds open.
struct Held(Child);

impl Held {
    fn open(server: &Server) -> Held {
        let mut openssl = Command::new("openssl");
        openssl.args(["s_client", "-quiet", "-connect", server.tls_address()]);
        openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut held = Held(openssl.spawn().unwrap());
        held.answers();
        held
    }

    fn answers(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(&BIND).unwrap();
        let mut answer = [0; BOUND.len()];
        self.0.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
        assert_eq!(answer, BOUND);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn certificates_and_configuration_change_under_open_connections() {
    if !available(&["openssl", "ldapsearch"]) {
        return;
    }
    let (_folder, mut server) = sample(3);
    let sample_password = fs::read_to_string(server.text("sample_password_file")).unwrap();
    let found = |server: &Server| {
        let mut search = server.admin_tool("ldapsearch");
        let people = finish(search.args(["-LLL", "-b", "dc=example,dc=com", "(uid=*)", "1.1"]), "");
        let people = people.expect(0).out;
        let person = people.lines().find_map(|line| line.strip_prefix("dn: ")).unwrap();
        let mut search = server.tool("ldapsearch", server.ldaps());
        search.args(["-D", person, "-w", &sample_password, "-b", "dc=example,dc=com", "1.1"]);
        finish(&mut search, "").code
    };
    let first = certificate(&server);
    assert_eq!(certificate(&server), first);
    assert_eq!(found(&server), 0);
    let mut held = Held::open(&server);

    let configuration = file(&server, "keyway.toml");
    let text = fs::read_to_string(&configuration).unwrap();
    let limited = text
        .replace("search_entries_max = 0 ", "search_entries_max = 1 ")
        .replace("listen = \"127.0.0.1:1389\"", "listen = \"127.0.0.1:1390\"")
        .replace("store_bytes_max = 274877906944", "store_bytes_max = 374877906944");
    fs::write(&configuration, &limited).unwrap();
    fs::remove_file(file(&server, "server.pem")).unwrap();
    // The address is the flag's, whatever the file says.
    let reloaded = json!({ "event": "reloaded", "at_next_start": ["limits.store_bytes_max"] });
    assert_eq!(reload(&mut server), reloaded);
    let second = certificate(&server);
    assert_ne!(second, first);
    assert_eq!(found(&server), 4, "sizeLimitExceeded");
    held.answers();

    // A wrong setting changes nothing, not even a right one beside it.
    let broken = [
        ("keyway.toml", text.replace("idle_max_s = 3600", "idle_max_s = \"long\"")),
        ("server.pem", "not a certificate\n".to_owned()),
    ];
    for (name, wrong) in broken {
        let right = fs::read(file(&server, name)).unwrap();
        fs::write(file(&server, name), wrong).unwrap();
        let refused = reload(&mut server);
        assert_eq!(refused["event"], "not-reloaded");
        assert!(refused["error"].as_str().unwrap().contains(name), "{refused}");
        fs::write(file(&server, name), right).unwrap();
        assert_eq!(certificate(&server), second);
        assert_eq!(found(&server), 4);
        held.answers();
    }
    fs::write(&configuration, text).unwrap();
    assert_eq!(reload(&mut server), json!({ "event": "reloaded", "at_next_start": [] }));
    assert_eq!(found(&server), 0);
    held.answers();
    let log = file(&server, "log/error.log");
    assert!(server.stop().success());
    let log = fs::read_to_string(log).unwrap();
    let lines = [
        " warning reload text=\"limits.store_bytes_max takes effect at the next start\"",
        " error reload text=\"not reloaded, all stays as it was: ",
        " info reload",
        " info stop",
    ];
    for line in lines {
        assert!(log.contains(line), "{line:?} is not in\n{log}");
    }
}
