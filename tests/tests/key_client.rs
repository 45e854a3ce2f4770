//! The client that modules in other programs use: keys by name, with a daemon that ends and comes back, and with
//! many threads.

use keyway_client::{Fault, KeyClient, KeyReference, NamedKey};
use keyway_engine::{Algorithm, Request};
use keyway_ring::control::{self, Answer, Ask, VERSION};
use keyway_ring::descriptor::{RegionHandle, SessionHandle};
use keyway_ring::{Doorbell, RingMemory, SharedMemory, Socket};
use keyway_tests::cryptod::{Cryptod, as_user, eventually};
use keyway_tests::{ALL_CALLERS, UNPRIVILEGED, finish, keyway, nightly};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, accept, bind, listen, socket};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SIGNS: Algorithm = Algorithm::EcdsaP256Sha256;

fn key(cryptod: &Cryptod, arguments: &[&str]) {
    let mut command = Command::new(keyway());
    command.arg("key").args(arguments).arg("--socket").arg(cryptod.socket());
    finish(&mut command, "").expect(0);
}

fn generate(cryptod: &Cryptod, name: &str, algorithm: &str, who: &str) {
    key(cryptod, &["generate", name, "--algorithm", algorithm, "--for", who]);
}

/// Signs a text and verifies that.
fn signs(client: &KeyClient, key: &NamedKey, text: &[u8]) -> Result<(), String> {
    let mut signature = [0; 128];
    let mut sign =
        Request::Sign { message: text, parameters: Default::default(), out: &mut signature };
    let used = client.run(&key.name, &key.public_key, SIGNS, &mut sign);
    let used = used.map_err(|why| why.to_string())?;
    let (_, public_key) = keyway_wire::read_subject_public_key_info(&key.public_key).unwrap();
    let mut verify = Request::Verify {
        public_key,
        message: text,
        parameters: Default::default(),
        signature: &signature[..used],
    };
    match client.run_without_key(SIGNS, &mut verify) {
        Err(why) if why.fault == Fault::Caller => Err(format!("WRONG SIGNATURE: {why}")),
        verified => verified.map(|_| ()).map_err(|why| why.to_string()),
    }
}

#[test]
fn a_key_is_found_and_signs() {
    let cryptod = Cryptod::start(&[]);
    generate(&cryptod, "web", SIGNS.name(), ALL_CALLERS);
    let client = KeyClient::new(cryptod.socket().to_owned(), "test");
    let found = client.find("web").unwrap();
    assert_eq!(client.keys().unwrap(), std::slice::from_ref(&found));
    assert_eq!((&found.algorithms[..], &found.purposes[..]), (&[SIGNS][..], &["sign".into()][..]));
    signs(&client, &found, b"text").unwrap();
    // Far larger than a channel's region.
    signs(&client, &found, &vec![7; 3 << 20]).unwrap();
    signs(&client, &found, b"text").unwrap();
    let missing = client.find("none").unwrap_err();
    assert_eq!(missing.fault, Fault::Refused);
    assert!(missing.to_string().contains("no key none that user 0 may use"), "{missing}");
    key(&cryptod, &["rotate", "web"]);
    let rotated = signs(&client, &found, b"text").unwrap_err();
    assert!(rotated.contains("load it again"), "{rotated}");
    signs(&client, &client.find("web").unwrap(), b"text").unwrap();
    let reference = KeyReference { name: "web".to_owned(), public_key: Some(found.public_key) };
    assert_eq!(KeyReference::from_der(&reference.to_der()), Some(reference));
    assert!(cryptod.stop().success());
}

#[test]
fn a_daemon_that_ends_is_an_error_at_once_and_its_successor_is_used() {
    let cryptod = Cryptod::start(&[]);
    generate(&cryptod, "web", SIGNS.name(), ALL_CALLERS);
    let folder = cryptod.folder().clone();
    let client = KeyClient::new(cryptod.socket().to_owned(), "test");
    let found = client.find("web").unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut failed = 0;
                    while !over.load(Ordering::Relaxed) {
                        let begun = Instant::now();
                        if let Err(why) = signs(&client, &found, b"text") {
                            assert!(!why.contains("WRONG"), "{why}");
                            assert!(begun.elapsed() < Duration::from_secs(30), "{why}");
                            failed += 1;
                            thread::sleep(Duration::from_millis(1));
                        }
                    }
                    // The daemon is back.
                    signs(&client, &found, b"text").unwrap();
                    failed
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(200));
        cryptod.signal(rustix::process::Signal::KILL);
        drop(cryptod);
        let begun = Instant::now();
        signs(&client, &found, b"text").unwrap_err();
        eprintln!("an error after {:?}", begun.elapsed());
        let again = Cryptod::start_on(&folder, &[]);
        signs(&client, &found, b"text").unwrap();
        over.store(true, Ordering::Relaxed);
        for thread in threads {
            eprintln!("{} failed", thread.join().unwrap());
        }
        assert!(again.stop().success());
    });
}

/// Threads share a client, and one gives up its connection now and then.
#[test]
fn threads_share_a_client() {
    let cryptod = Cryptod::start(&[]);
    generate(&cryptod, "web", SIGNS.name(), ALL_CALLERS);
    let client = KeyClient::new(cryptod.socket().to_owned(), "test");
    let found = client.find("web").unwrap();
    let rounds = if nightly() { 10_000 } else { 1_000 };
    thread::scope(|scope| {
        for thread in 0..8 {
            let (client, found) = (&client, &found);
            scope.spawn(move || {
                for round in (thread..rounds).step_by(8) {
                    signs(client, found, format!("text {round}").as_bytes()).unwrap();
                    if round % 100 == 99 {
                        client.disconnect();
                    }
                }
            });
        }
    });
    assert!(cryptod.stop().success());
}

/// A process that is stopped between its connection and its name is sent away by the daemon, and comes again.
#[test]
fn a_client_that_was_sent_away_before_it_said_its_name_comes_again() {
    let cryptod = Cryptod::start(&[]);
    generate(&cryptod, "web", SIGNS.name(), ALL_CALLERS);
    let found = KeyClient::new(cryptod.socket().to_owned(), "test").find("web").unwrap();
    let path = cryptod.folder().path().join("impatient");
    let link = cryptod.folder().path().join("link");
    for is_to_sign in [false, true] {
        let impatient = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&impatient, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&impatient, 1).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let first = accept(&impatient).unwrap();
                // The way to the daemon is there before the client is sent away.
                symlink(cryptod.socket(), &link).unwrap();
                fs::rename(&link, &path).unwrap();
                drop(first);
            });
            let client = KeyClient::new(path.clone(), "test");
            match is_to_sign {
                true => signs(&client, &found, b"text").unwrap(),
                false => assert_eq!(client.find("web").unwrap(), found),
            }
        });
        fs::remove_file(&path).unwrap();
    }
    assert!(cryptod.stop().success());
}

/// A program that loads its keys as root and goes on as another user is that user for the daemon.
#[test]
fn a_change_of_user_counts() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root becomes other users");
        return;
    }
    let cryptod = Cryptod::for_every_user(&[]);
    generate(&cryptod, "web", SIGNS.name(), &format!("user:{UNPRIVILEGED}"));
    let client = KeyClient::new(cryptod.socket().to_owned(), "test");
    // Root looks after the keys, and may not use this one.
    let found = client.find("web").unwrap();
    assert_eq!(found.purposes, [""; 0]);
    let refused = signs(&client, &found, b"text").unwrap_err();
    assert!(refused.contains("user 0"), "{refused}");
    as_user(UNPRIVILEGED, || signs(&client, &found, b"text")).unwrap();
    signs(&client, &found, b"text").unwrap_err();
    assert!(cryptod.stop().success());
}

/// One that is stopped is an error that says so; for a while it is asked nothing more, and then it is used again.
#[test]
fn a_daemon_that_is_stopped_holds_up_no_program() {
    let cryptod = Cryptod::start(&[]);
    generate(&cryptod, "web", SIGNS.name(), ALL_CALLERS);
    let client = KeyClient::new(cryptod.socket().to_owned(), "test");
    let found = client.find("web").unwrap();
    signs(&client, &found, b"text").unwrap();
    cryptod.signal(rustix::process::Signal::STOP);
    // It stops a moment after the signal.
    eventually("it is stopped", || signs(&client, &found, b"text").is_err());
    for _ in 0..1_000 {
        let silent = signs(&client, &found, b"text").unwrap_err();
        assert!(silent.contains("does not answer"), "{silent}");
    }
    let other = KeyClient::new(cryptod.socket().to_owned(), "test");
    assert_eq!(other.find("web").unwrap_err().fault, Fault::Silent);
    cryptod.signal(rustix::process::Signal::CONT);
    eventually("it is used again", || signs(&client, &found, b"text").is_ok());
    assert!(cryptod.stop().success());
}

/// A daemon whose thread for messages lives, and whose rings do not.
#[test]
fn a_request_that_is_never_done_ends() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::bind(&listener, &rustix::net::SocketAddrUnix::new(&path).unwrap()).unwrap();
    rustix::net::listen(&listener, 8).unwrap();
    thread::spawn(move || {
        while let Ok(accepted) = rustix::net::accept(&listener) {
            thread::spawn(move || answer_messages(&Socket::from_fd(accepted)));
        }
    });
    let client = KeyClient::new(path.clone(), "test");
    let text = keyway_engine::Algorithm::Sha256;
    let mut out = [0; 32];
    let mut request = Request::Digest { data: &[b"text"], out: &mut out };
    let silent = client.run_without_key(text, &mut request).unwrap_err();
    assert_eq!(silent.fault, Fault::Silent, "{silent}");
    assert!(Path::new(&path).exists());
}

fn answer_messages(socket: &Socket) {
    while let Ok(Some(received)) = socket.receive() {
        let (ring, bell) = (RingMemory::create(2).unwrap(), Doorbell::new().unwrap());
        let memory = SharedMemory::create(1 << 16).unwrap();
        let answer = |answer: Answer, files: &[std::os::fd::BorrowedFd<'_>]| {
            let _ = socket.send(&control::encode(&answer).unwrap(), files);
        };
        match control::decode_ask(&received.bytes).unwrap() {
            Ask::Hello { .. } => {
                answer(Answer::Hello { version: VERSION, algorithms: Vec::new(), process: 1 }, &[])
            }
            Ask::Queue { .. } => {
                let files = [ring.memory().file().unwrap(), bell.as_fd()];
                answer(Answer::Queue { queue: 1, entries: ring.entries() }, &files);
            }
            Ask::Region { .. } => {
                let region = RegionHandle { index: 0, generation: 1 };
                answer(Answer::Region { region }, &[memory.file().unwrap()]);
            }
            Ask::Open { .. } => {
                let session = SessionHandle { index: 0, generation: 1 };
                answer(
                    Answer::Session { session, signature_bytes_max: 0, makes_nonces: false },
                    &[],
                );
            }
            Ask::Ping => answer(Answer::Done, &[]),
            _ => {}
        }
    }
}
