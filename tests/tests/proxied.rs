//! Connections of a proxy that says in front of each whose it is (PROXY protocol), by bytes and with HAProxy.

use keyway_tests::{Server, available, finish, port, sample};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// An anonymous bind, and its answer.
const BIND: &[u8] = b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00";
const BOUND: &[u8] = b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00";

/// A server that takes headers from loopback on its plain listener, and writes all down.
fn server(settings: &str) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let text = format!("[log]\naccess = \"everything\"\n[proxy]\n{settings}\n");
    fs::write(data.join("keyway.toml"), text).unwrap();
    let server = Server::start(&data, &["--sample", "2"]);
    (folder, server)
}

const FROM_LOOPBACK: &str = "listeners = [\"listen\"]\nfrom = [\"127.0.0.0/8\"]";

/// The server's whole answer to these bytes.
fn answer(address: &str, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    for piece in pieces {
        // One that was refused is closed meanwhile.
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Waits for a line of the access log that has all of this in it.
fn line(data: &Path, parts: &[&str]) -> String {
    for _ in 0..3_000 {
        let text = fs::read_to_string(data.join("log/access.log")).unwrap_or_default();
        let found = text.lines().find(|line| parts.iter().all(|part| line.contains(part)));
        if let Some(line) = found {
            return line.to_owned();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let text = fs::read_to_string(data.join("log/access.log")).unwrap_or_default();
    panic!("{parts:?} are in no line of {text}");
}

fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = (rest.len() as u16).to_be_bytes();
    [SIGNATURE, &[command, family], &length, rest].concat()
}

#[test]
fn the_client_is_the_one_that_the_proxy_names() {
    let (folder, server) = server(FROM_LOOPBACK);
    let data = folder.path().join("data");
    let four = [192, 0, 2, 7, 192, 0, 2, 2, 0xdc, 4, 1, 0x85, 0x20, 0, 1, 7];
    let mut six = [0; 36];
    (six[0], six[1], six[2], six[3], six[15], six[33]) = (0x20, 1, 0x0d, 0xb8, 9, 80);
    let cases: [(Vec<u8>, &str); 5] = [
        (b"PROXY TCP4 192.0.2.5 192.0.2.2 56324 389\r\n".to_vec(), "192.0.2.5:56324"),
        (b"PROXY TCP6 2001:db8::5 2001:db8::2 7 389\r\n".to_vec(), "[2001:db8::5]:7"),
        (v2(0x21, 0x11, &four), "192.0.2.7:56324"),
        (v2(0x21, 0x21, &six), "[2001:db8::9]:80"),
        // A look whether the server is there.
        (v2(0x20, 0x00, &[]), "127.0.0.1:"),
    ];
    for (header, client) in &cases {
        assert_eq!(answer(server.address(), &[header, BIND]), BOUND, "{client}");
        line(&data, &["bind", &format!("from={client}")]);
        // However it comes in.
        let bytes: Vec<&[u8]> = header.chunks(1).chain([BIND]).collect();
        assert_eq!(answer(server.address(), &bytes), BOUND, "{client}");
    }
    let opened = line(&data, &["open", "from=192.0.2.5:56324"]);
    assert!(opened.contains("via=127.0.0.1:"), "{opened}");
    // A password is not private because the proxy is near, nor because it says that its client is.
    let password = b"\x30\x1b\x02\x01\x01\x60\x16\x02\x01\x03\x04\x0acn=a,o=bcd\x80\x05wrong";
    // Nor because it names none.
    for header in [
        b"PROXY TCP4 192.0.2.5 192.0.2.2 1 389\r\n".to_vec(),
        b"PROXY TCP4 127.0.0.1 192.0.2.2 1 389\r\n".to_vec(),
        b"PROXY UNKNOWN\r\n".to_vec(),
        v2(0x21, 0x00, &[]),
        v2(0x21, 0x31, &[0; 216]),
        v2(0x20, 0x00, &[]),
    ] {
        let refused = answer(server.address(), &[&header, password]);
        assert_eq!(refused.get(9), Some(&13), "confidentialityRequired: {header:?} {refused:?}");
    }
}

#[test]
fn a_proxy_without_a_header_and_a_header_without_a_proxy() {
    let (folder, server) = server(FROM_LOOPBACK);
    let data = folder.path().join("data");
    for wrong in
        [BIND, b"PROXY TCP4 nowhere\r\n      ", &v2(0x21, 0x11, &[1]), &v2(0x21, 0x11, &[0; 9000])]
    {
        assert_eq!(answer(server.address(), &[wrong, BIND, BIND]), b"");
    }
    line(&data, &["proxy-header", "does not begin with a header"]);
    line(&data, &["proxy-header", "version 1 is malformed"]);
    line(&data, &["proxy-header", "too short"]);
    line(&data, &["proxy-header", "too long"]);

    // A listener that does not take them, and one that takes them from others.
    let header = b"PROXY TCP4 192.0.2.5 192.0.2.2 56324 389\r\n";
    assert_eq!(answer(server.tls_address(), &[header, &[0; 8]]).first(), None);
    line(&data, &["tls-handshake", "PROXY protocol", "keyway.toml"]);
    assert!(server.stop().success());
    for settings in ["", "listeners = [\"listen\"]\nfrom = [\"192.0.2.0/24\"]"] {
        let (folder, server) = self::server(settings);
        for header in [&header[..], &v2(0x21, 0x11, &[0; 12])] {
            assert_ne!(answer(server.address(), &[header, BIND]), BOUND);
        }
        line(&folder.path().join("data"), &["proxy-header", "PROXY protocol", "keyway.toml"]);
        assert_eq!(answer(server.address(), &[BIND]), BOUND, "others are what they are");
    }
}

#[test]
fn it_is_switched_on_while_it_runs() {
    let (folder, mut server) = sample(1);
    let header = b"PROXY TCP4 192.0.2.5 192.0.2.2 56324 389\r\n";
    assert_ne!(answer(server.address(), &[header, BIND]), BOUND);
    let file = folder.path().join("data/keyway.toml");
    let text = fs::read_to_string(&file).unwrap();
    let on = text.replacen("listeners = []\nfrom = [] ", FROM_LOOPBACK, 1);
    assert_ne!(text, on);
    fs::write(&file, on).unwrap();
    server.signal(Signal::HUP);
    assert_eq!(server.next_event()["at_next_start"], serde_json::json!([]));
    assert_eq!(answer(server.address(), &[header, BIND]), BOUND);
}

/// HAProxy, with a configuration, until it is dropped.
struct Haproxy(Child);

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn haproxy_in_front() {
    if !available(&["haproxy", "ldapsearch", "ldapwhoami"]) {
        return;
    }
    let both = "listeners = [\"listen\", \"listen_tls\"]\nfrom = [\"127.0.0.1\"]";
    let (folder, server) = server(both);
    let data = folder.path().join("data");
    for (version, send) in [("v1", "send-proxy"), ("v2", "send-proxy-v2")] {
        let (plain, tls) = (port(), port());
        let text = format!(
            "defaults\n mode tcp\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n\
             listen plain\n bind {plain}\n server it {} {send} check inter 200ms\n\
             listen tls\n bind {tls}\n server it {} {send} check inter 200ms\n",
            server.address(),
            server.tls_address()
        );
        let file = folder.path().join(format!("{version}.cfg"));
        fs::write(&file, text).unwrap();
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let _haproxy = Haproxy(command.spawn().unwrap());
        for url in [format!("ldap://{plain}"), format!("ldaps://{tls}")] {
            let mut done = None;
            for _ in 0..500 {
                let mut tool = server.tool("ldapsearch", &url);
                let found =
                    finish(tool.args(["-b", "", "-s", "base", "-LLL", "namingContexts"]), "");
                if found.code == 0 {
                    done = Some(found);
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(done.expect("an answer through HAProxy").out.contains("dc=example"));
        }
        // An administrator's password through StartTLS, over the proxy.
        let mut tool = server.tool("ldapwhoami", &format!("ldap://{plain}"));
        tool.args(["-ZZ", "-D", server.administrator(), "-y"]);
        finish(tool.arg(server.text("administrator_password_file")), "").expect(0);
        line(&data, &["open", "via=127.0.0.1:"]);
    }
}
