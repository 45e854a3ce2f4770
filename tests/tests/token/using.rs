//! Keys in tokens are used as any others: by many threads, after a restart, by SSH, and not without a grant.

use super::{Site, Tokens, start};
use keyway_drivers::remote::Remote;
use keyway_engine::{Algorithm, Engine, Key, Parameters, Request, Session};
use keyway_tests::cryptod::{as_user, eventually};
use keyway_tests::{ALL_CALLERS, ALLOW_ALL, UNPRIVILEGED, finish, keyway, nightly};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const THREADS: usize = 32;
pub const SIGNS: Algorithm = Algorithm::EcdsaP256Sha256;

/// Signs so often, and looks at each signature.
pub fn sign(local: &Engine, session: &Session, rounds: usize) {
    let public_key = &session.public_key().unwrap()[..];
    for round in 0..rounds {
        let message = &format!("{:?} {round}", thread::current().id()).into_bytes()[..];
        let signature = &session.sign(message).unwrap()[..];
        let parameters = Default::default();
        let mut verify = Request::Verify { public_key, message, parameters, signature };
        local.run(session.algorithm(), &mut verify).unwrap();
    }
}

/// A connection to the daemon, the engine that has it as a driver, and a session with the daemon's key `web`.
pub fn client(site: &Site) -> (Remote, Engine, Session) {
    let (engine, connection) = site.cryptod.engine("tokens");
    let session = engine.session(Parameters::new(SIGNS, Key::Named("web"))).unwrap();
    (connection, engine, session)
}

#[test]
fn many_threads_sign_before_and_after_a_restart() {
    let Some(tokens) = Tokens::new(&["office"], &[]) else { return };
    let mut site = tokens.site(&["office"]);
    let made = ["generate", "web", "--algorithm", "ec-p256", "--in", "office"];
    site.key(&[&made[..], &["--for", ALL_CALLERS]].concat());
    for _ in 0..2 {
        let (connection, _engine, session) = client(&site);
        let local = keyway_drivers::engine();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| sign(&local, &session, if nightly() { 500 } else { 20 }));
            }
        });
        drop(connection);
        site = site.restart();
    }
    assert_eq!(site.said(), "");
    assert!(site.cryptod.stop().success());
}

#[test]
fn another_daemon_takes_over_while_keys_in_tokens_are_used() {
    let Some(tokens) = Tokens::new(&["office"], &[]) else { return };
    let site = tokens.site(&["office"]);
    let made = ["generate", "web", "--algorithm", "ec-p256", "--in", "office"];
    site.key(&[&made[..], &["--for", ALL_CALLERS]].concat());
    let (connection, _engine, session) = client(&site);
    let local = keyway_drivers::engine();
    let Site { tokens, folder, mut flags, mut cryptod } = site;
    flags.push("--take-over".to_owned());
    let over = AtomicBool::new(false);
    let next = thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    sign(&local, &session, 1);
                }
            });
        }
        let next = start(&tokens, &folder, &flags);
        eventually("the first daemon ends", || !cryptod.is_up());
        sign(&local, &session, 10);
        over.store(true, Ordering::Relaxed);
        next
    });
    drop((session, connection));
    assert!(next.stop().success());
}

#[test]
fn a_key_in_a_token_agrees_on_secrets() {
    let Some(tokens) = Tokens::new(&["office"], &[]) else { return };
    let site = tokens.site(&["office"]);
    let kinds = [
        ("ec-p256", Algorithm::EcdhP256),
        ("ec-p384", Algorithm::EcdhP384),
        ("ec-p521", Algorithm::EcdhP521),
    ];
    let (engine, _connection) = site.cryptod.engine("tokens");
    for (kind, algorithm) in kinds {
        let made = ["generate", kind, "--algorithm", kind, "--in", "office", "--for", ALL_CALLERS];
        site.key(&[&made[..], &["--purpose", "agree", "--purpose", "sign"]].concat());
        let own =
            keyway_drivers::engine().session(Parameters::new(algorithm, Key::Generate)).unwrap();
        let its = engine.session(Parameters::new(algorithm, Key::Named(kind))).unwrap();
        let agree = |session: &Session, peer: &[u8]| {
            let mut out = vec![0; algorithm.output_bytes().unwrap()];
            session.run(&mut Request::Agree { peer, out: &mut out }).map(|_| out)
        };
        let peer = own.public_key().unwrap();
        assert_eq!(agree(&its, &peer), agree(&own, &its.public_key().unwrap()));
        let mut off_the_curve = peer.clone();
        off_the_curve[20] ^= 1;
        assert_eq!(agree(&its, &off_the_curve), Err(keyway_engine::Error::Authentication));
    }
    drop(engine);
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_user_without_a_grant_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root becomes other users");
        return;
    }
    let Some(tokens) = Tokens::new(&["office"], &[]) else { return };
    let mut flags = tokens.flags(&[("office", &tokens.module)]);
    let socket = tempfile::tempdir().unwrap();
    fs::set_permissions(socket.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let path = socket.path().join("socket").display().to_string();
    flags.extend([ALLOW_ALL, "--socket", &path].map(str::to_owned));
    let site = Site::start(tokens, flags);
    let manage = |arguments: &[&str]| {
        let mut command = Command::new(keyway());
        finish(command.arg("key").args(arguments).args(["--socket", &path]), "").expect(0);
    };
    manage(&["generate", "web", "--algorithm", "ec-p256", "--in", "office", "--for", "user:root"]);
    let open = || {
        let (engine, _connection) = site.cryptod.engine("tokens");
        let session = engine.session(Parameters::new(SIGNS, Key::Named("web")));
        session.and_then(|session| session.sign(b"text")).map(drop)
    };
    assert_eq!(open(), Ok(()));
    assert!(as_user(UNPRIVILEGED, open).is_err());
    manage(&["allow", "web", "--for", &format!("user:{UNPRIVILEGED}")]);
    assert_eq!(as_user(UNPRIVILEGED, open), Ok(()));
    assert!(site.cryptod.stop().success());
}

#[test]
fn ssh_and_openssl_sign_with_keys_in_tokens() {
    let Some(tokens) = Tokens::new(&["office"], &["ssh-keygen", "ssh-add"]) else { return };
    let site = tokens.site(&["office"]);
    for (name, algorithm) in [("login", "ed25519"), ("web", "ec-p256"), ("ca", "rsa")] {
        let made = ["generate", name, "--algorithm", algorithm, "--for", ALL_CALLERS];
        site.key(&[&made[..], &["--in", "office"]].concat());
    }
    let agent = |script: &str| {
        let mut command = Command::new(keyway());
        command.args(["ssh-agent", "--cryptod"]).arg(site.cryptod.socket());
        command.args(["--", "sh", "-ec", script]).current_dir(site.folder.path());
        finish(&mut command, "").expect(0)
    };
    agent(
        "echo text > text
        ssh-add -L > all.pub
        test $(wc -l < all.pub) = 3
        while read line; do
            echo \"$line\" > key.pub
            rm -f text.sig
            ssh-keygen -Y sign -n file -f key.pub text
            echo \"me $line\" > allowed
            ssh-keygen -Y verify -n file -f allowed -I me -s text.sig < text
        done < all.pub",
    );
    let provider = keyway_tests::openssl_provider();
    for key in ["web", "ca"] {
        let mut request = Command::new("openssl");
        request.args(["req", "-new", "-subj", "/CN=x", "-provider-path"]);
        request.arg(provider.parent().unwrap()).arg("-provider");
        request.arg(provider.file_stem().unwrap()).args(["-provider", "default"]);
        request.args(["-key", &format!("keyway:{key}"), "-out"]).arg(site.path("request"));
        finish(request.env("KEYWAY_SOCKET", site.cryptod.socket()), "").expect(0);
        site.openssl(&["req", "-in", "request", "-verify", "-noout"]);
    }
    assert!(site.cryptod.stop().success());
}
