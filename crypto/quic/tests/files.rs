//! A server and a client of one process: files, and measurements.

use keyway_quic::{
    Error, HQ, Host, Options, Plan, Server, Side, Target, Test, Wanted, close, fetch,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

const CONTENT: &[u8] = &[7; 100_000];

fn host() -> Host {
    let provider = (*keyway_tls::provider(&keyway_drivers::engine())).clone();
    Host::new(Options { provider, cipher: None, group: None, mtu: None }).unwrap()
}

fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    (made.cert.der().clone(), key)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

/// A stream that can be looked into.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn files_come_whole_or_not_at_all() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap().join("root");
    let here = |name: &str| -> PathBuf { place.path().join(name) };
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), CONTENT).unwrap();
    let (certificate, key) = certificate();
    let mut authorities = RootCertStore::empty();
    authorities.add(certificate.clone()).unwrap();
    runtime().block_on(async {
        let (serving, getting) = (host(), host());
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let listening = serving.server(vec![certificate], key, &Server::PROTOCOLS, socket).unwrap();
        let server = Server::new(root, |file, why| panic!("{}: {why}", file.display()));
        let (all, endpoint) = (server.clone(), listening.clone());
        tokio::spawn(async move { all.serve(&endpoint).await });

        let file =
            |path: &str| Target { host: "127.0.0.1".to_owned(), port, path: path.to_owned() };
        let client = getting.client().unwrap();
        let config = getting.client_config(getting.verifier(authorities).unwrap(), HQ).unwrap();
        let stream = Kept::default();
        let wanted = vec![
            Wanted::file(file("/file"), here("whole")).unwrap(),
            Wanted::file(file("/none"), here("none")).unwrap(),
            Wanted::stream(file("/file"), stream.clone()),
        ];
        let last = Arc::new(Mutex::new(0));
        let heard = last.clone();
        let progress = move |bytes, _: &Target| *heard.lock().unwrap() = bytes;
        let fetched = fetch(&client, &config, wanted, progress).await;
        for one in &fetched {
            match (&*one.from.path, &one.result) {
                ("/file", Ok((bytes, _))) => assert_eq!(*bytes, CONTENT.len() as u64),
                ("/none", Err(why)) => {
                    assert_eq!(why.to_string(), format!("127.0.0.1:{port} has no file /none"));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(fetched.len(), 3);
        assert!(*last.lock().unwrap() > 0);
        assert_eq!(fs::read(here("whole")).unwrap(), CONTENT);
        assert_eq!(*stream.0.lock().unwrap(), CONTENT);
        for missing in ["none", "none.part", "whole.part"] {
            assert!(!here(missing).exists(), "{missing}");
        }
        close(&client).await;
        close(&listening).await;
        let served = server.served();
        assert_eq!((served.connections, served.files), (1, 2));
        assert_eq!(served.bytes, 2 * CONTENT.len() as u64);
    });
}

#[test]
fn a_server_without_a_trusted_issuer_is_not_believed() {
    let (certificate, key) = certificate();
    runtime().block_on(async {
        let (serving, getting) = (host(), host());
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let listening = serving.server(vec![certificate], key, &[HQ], socket).unwrap();
        let accepting = listening.clone();
        tokio::spawn(async move { accepting.accept().await.unwrap().await });
        let mut others = RootCertStore::empty();
        others.add(self::certificate().0).unwrap();
        let client = getting.client().unwrap();
        let config = getting.client_config(getting.verifier(others).unwrap(), HQ).unwrap();
        let target = Target { host: "127.0.0.1".to_owned(), port, path: "/".to_owned() };
        let why = keyway_quic::connect(&client, &config, &target).await.unwrap_err();
        assert!(why.is_distrust(), "{why}");
        assert!(matches!(why, Error::Connection { .. }));
    });
}

#[test]
fn measurements_move_what_they_are_told_to() {
    let (certificate, key) = certificate();
    runtime().block_on(async {
        let host = host();
        let side = Side::with_itself(&host, certificate, key).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let plan = Plan { seconds: 0.1, bytes: Some(300_000), connections: 2, streams: 2 };
        for test in Test::ALL {
            let measured = side.measure(test, &plan, &stop, |_| ()).await.unwrap();
            assert!(measured.operations > 0, "{}", test.name());
            if test.moves_bytes() {
                assert_eq!(measured.bytes, 300_000, "{}", test.name());
            }
        }
        side.close().await;
    });
}
