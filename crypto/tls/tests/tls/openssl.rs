//! OpenSSL as the other side, where it is installed.

use crate::authority::{Authority, Identity, KeyType, server_config};
use keyway_tls::{client_config, provider};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Longer than any of this takes; it only keeps a failure from hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// Settings that OpenSSL is told to talk: a version, a suite, and groups. In TLS 1.2 the groups
/// must contain the certificate's curve too (RFC 8422 § 5.1).
const WAYS: &[&[&str]] = &[
    &["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384", "-groups", "X25519"],
    &["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256", "-groups", "P-256"],
    &["-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", "-groups", "P-384"],
    &["-tls1_2", "-cipher", "ECDHE+AESGCM+AES256", "-groups", "X25519:P-256:P-384"],
    &["-tls1_2", "-cipher", "ECDHE+AESGCM+AES128", "-groups", "P-256:P-384"],
    &["-tls1_2", "-cipher", "ECDHE+CHACHA20", "-groups", "P-384:P-256"],
];

fn installed() -> bool {
    let found =
        Command::new("openssl").arg("version").output().is_ok_and(|out| out.status.success());
    if !found {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but openssl is not installed");
        eprintln!("skipped: openssl is not installed");
    }
    found
}

/// A child process that does not outlive its test.
struct Openssl(Child);

impl Openssl {
    fn spawn(arguments: &[&str]) -> Self {
        let child = Command::new("openssl")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Openssl(child.unwrap())
    }
}

impl Drop for Openssl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An authority and an identity in files, as OpenSSL takes them.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(authority: &Authority, identity: &Identity) -> Self {
        let files = Files { folder: tempfile::tempdir().unwrap() };
        std::fs::write(files.path("ca.pem"), authority.pem()).unwrap();
        std::fs::write(files.path("cert.pem"), &identity.chain_pem).unwrap();
        std::fs::write(files.path("key"), readable(identity.key.secret_der())).unwrap();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_string()
    }
}

/// OpenSSL before 3.2 does not know the second version of PKCS#8 (RFC 5958), in which rcgen writes
/// Ed25519 keys: the seed is repacked as the first.
fn readable(pkcs8: &[u8]) -> Vec<u8> {
    const ED25519: [u8; 11] = [0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
    match pkcs8.get(5..48) {
        Some(rest) if rest.starts_with(&ED25519) => {
            [&[0x30, 0x2e, 0x02, 0x01, 0x00][..], rest].concat()
        }
        _ => pkcs8.to_vec(),
    }
}

/// Says goodbye in TLS and in TCP: OpenSSL waits half a second for the latter.
fn hang_up(tls: &mut StreamOwned<ServerConnection, TcpStream>) {
    tls.conn.send_close_notify();
    tls.flush().unwrap();
    tls.sock.shutdown(Shutdown::Write).unwrap();
}

/// The next connection; an error if OpenSSL does not come.
fn accept(listener: &TcpListener) -> TcpStream {
    set_socket_timeout(listener, Timeout::Recv, Some(PATIENCE)).unwrap();
    patient(listener.accept().expect("OpenSSL did not connect").0)
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn openssl_clients_of_our_server() {
    if !installed() {
        return;
    }
    let engine = keyway_drivers::engine();
    for key_type in KeyType::ALL {
        let authority = Authority::new(key_type);
        let identity = authority.issue(key_type);
        let shown = Files::new(&authority, &authority.issue(key_type));
        let Identity { chain, key, .. } = identity;
        let roots = Some(authority.roots());
        let config = Arc::new(server_config(&engine, chain, key, roots).unwrap());
        for way in WAYS {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let (ca, cert, key) = (shown.text("ca.pem"), shown.text("cert.pem"), shown.text("key"));
            let mut arguments = vec!["s_client", "-quiet", "-connect", &address];
            arguments.extend(["-CAfile", &ca, "-verify_return_error", "-servername", "localhost"]);
            arguments.extend(["-verify_hostname", "localhost", "-cert", &cert, "-key", &key]);
            arguments.extend(*way);
            let mut client = Openssl::spawn(&arguments);
            let stream = accept(&listener);
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut tls = StreamOwned::new(connection, stream);

            client.0.stdin.as_mut().unwrap().write_all(b"question\n").unwrap();
            let mut question = [0; 9];
            tls.read_exact(&mut question).unwrap_or_else(|e| panic!("{key_type:?} {way:?}: {e}"));
            assert_eq!(&question, b"question\n");
            assert!(tls.conn.peer_certificates().is_some());
            tls.write_all(&long_answer()).unwrap();
            hang_up(&mut tls);
            let mut answer = Vec::new();
            client.0.stdout.as_mut().unwrap().read_to_end(&mut answer).unwrap();
            assert!(answer == long_answer(), "{key_type:?} {way:?}: {} bytes", answer.len());
        }
    }
}

#[test]
fn our_client_of_openssl_servers() {
    if !installed() {
        return;
    }
    let engine = keyway_drivers::engine();
    for key_type in KeyType::ALL {
        let authority = Authority::new(key_type);
        let files = Files::new(&authority, &authority.issue(key_type));
        let config = Arc::new(client_config(&provider(&engine), authority.roots()).unwrap());
        for way in WAYS {
            let mut server = openssl_server(&files, way);
            let mut tls = connect(&config, &server);
            tls.write_all(b"question\n").unwrap_or_else(|e| panic!("{key_type:?} {way:?}: {e}"));
            tls.flush().unwrap();
            // With -rev the server sends each line back from its end.
            let mut answer = [0; 9];
            tls.read_exact(&mut answer).unwrap_or_else(|e| panic!("{key_type:?} {way:?}: {e}"));
            assert_eq!(&answer, b"noitseuq\n");
            server.child.0.kill().unwrap();
        }
    }
}

/// OpenSSL's tickets resume with our client, and ours with its.
#[test]
fn resumption_with_openssl() {
    if !installed() {
        return;
    }
    let engine = keyway_drivers::engine();
    let authority = Authority::new(KeyType::P256);
    let files = Files::new(&authority, &authority.issue(KeyType::P256));
    for version in ["-tls1_3", "-tls1_2"] {
        let config = Arc::new(client_config(&provider(&engine), authority.roots()).unwrap());
        let server = openssl_server(&files, &[version]);
        for expected in [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed] {
            let mut tls = connect(&config, &server);
            tls.write_all(b"question\n").unwrap();
            tls.read_exact(&mut [0; 9]).unwrap();
            assert_eq!(tls.conn.handshake_kind(), Some(expected), "{version}");
        }
    }

    let Identity { chain, key, .. } = authority.issue(KeyType::P256);
    let config = Arc::new(server_config(&engine, chain, key, None).unwrap());
    for version in ["-tls1_3", "-tls1_2"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (ca, session) = (files.text("ca.pem"), files.text("session"));
        for (option, expected) in [
            ("-sess_out", rustls::HandshakeKind::Full),
            ("-sess_in", rustls::HandshakeKind::Resumed),
        ] {
            let arguments = [
                "s_client", "-quiet", "-connect", &address, "-CAfile", &ca, version, option,
                &session,
            ];
            let mut client = Openssl::spawn(&arguments);
            let stream = accept(&listener);
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut tls = StreamOwned::new(connection, stream);
            client.0.stdin.as_mut().unwrap().write_all(b"question\n").unwrap();
            tls.read_exact(&mut [0; 9]).unwrap();
            assert_eq!(tls.conn.handshake_kind(), Some(expected), "{version}");
            hang_up(&mut tls);
            client.0.wait().unwrap();
        }
    }
}

/// OpenSSL refuses us where it should, and we it.
#[test]
fn strangers_are_refused_both_ways() {
    if !installed() {
        return;
    }
    let engine = keyway_drivers::engine();
    let (authority, strangers) = (Authority::new(KeyType::P256), Authority::new(KeyType::P256));
    let files = Files::new(&authority, &authority.issue(KeyType::P256));

    let config = Arc::new(client_config(&provider(&engine), strangers.roots()).unwrap());
    let server = openssl_server(&files, &["-tls1_3"]);
    assert!(connect(&config, &server).write_all(b"question\n").is_err());

    let Identity { chain, key, .. } = strangers.issue(KeyType::P256);
    let config = Arc::new(server_config(&engine, chain, key, None).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let ca = files.text("ca.pem");
    let arguments =
        ["s_client", "-quiet", "-connect", &address, "-CAfile", &ca, "-verify_return_error"];
    let _client = Openssl::spawn(&arguments);
    let stream = accept(&listener);
    let connection = ServerConnection::new(config).unwrap();
    let mut tls = StreamOwned::new(connection, stream);
    assert!(tls.read_exact(&mut [0; 1]).is_err());
}

struct Server {
    child: Openssl,
    address: String,
}

fn openssl_server(files: &Files, way: &[&str]) -> Server {
    let (cert, key) = (files.text("cert.pem"), files.text("key"));
    let mut arguments = vec!["s_server", "-accept", "127.0.0.1:0", "-cert", &cert, "-key", &key];
    arguments.push("-rev");
    arguments.extend(way);
    let mut child = Openssl::spawn(&arguments);
    // It says "ACCEPT 127.0.0.1:port" once it listens.
    let mut lines = BufReader::new(child.0.stdout.as_mut().unwrap()).lines();
    let line = lines.find_map(|line| line.unwrap().strip_prefix("ACCEPT ").map(str::to_string));
    Server { child, address: line.unwrap() }
}

fn connect(
    config: &Arc<rustls::ClientConfig>,
    server: &Server,
) -> StreamOwned<ClientConnection, TcpStream> {
    let stream = patient(TcpStream::connect(&server.address).unwrap());
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(config.clone(), name).unwrap();
    StreamOwned::new(connection, stream)
}

/// Some records full.
fn long_answer() -> Vec<u8> {
    (0..100_000).map(|i| b'a' + (i % 26) as u8).collect()
}
