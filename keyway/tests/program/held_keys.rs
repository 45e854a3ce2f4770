//! A directory whose keys cryptod holds: two processes, as a system starts them.

use crate::support::{
    Finished, KEYWAY, Running, bind, finish, hold_of_memory, installed, keyway, keyway_with,
    nightly, until,
};
use keyway_codec::message::ResultCode;
use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use tempfile::TempDir;

const PEPPER: [u8; 32] = *b"32 bytes of pepper, black, fresh";
const ADMIN: &str = "cn=admin,cn=keyway";

/// A data folder that cryptod and the directory have together.
struct Place {
    place: TempDir,
    data: PathBuf,
}

impl Place {
    fn new() -> Place {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        Place { place, data }
    }

    fn shown(&self) -> &str {
        self.data.to_str().unwrap()
    }

    fn cryptod(&self) -> Running {
        let mut command = Command::new(KEYWAY);
        Running::spawn(command.args(["cryptod", "--json", "--data"]).arg(&self.data))
    }

    fn key(&self, arguments: &[&str]) -> Finished {
        keyway(["key"].iter().chain(arguments).chain(&["--data", self.shown()]))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Makes a certificate for 127.0.0.1; gives back its key.
    fn certificate(&self, name: &str, algorithm: &'static SignatureAlgorithm) -> KeyPair {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(self.file(&format!("{name}.pem")), certificate.pem()).unwrap();
        key
    }

    /// Makes a certificate, and puts its key into cryptod alone.
    fn hold(&self, name: &str, algorithm: &'static SignatureAlgorithm, uses: &[&str]) -> KeyPair {
        let key = self.certificate(name, algorithm);
        let file = self.file("key");
        fs::write(&file, key.serialize_pem()).unwrap();
        let mut arguments = vec!["import", name, file.to_str().unwrap(), "--for", "everybody"];
        arguments.extend(uses.iter().flat_map(|it| ["--algorithm", *it]));
        self.key(&arguments).well();
        fs::remove_file(file).unwrap();
        key
    }

    fn hold_pepper(&self) {
        let file = self.file("pepper");
        fs::write(&file, PEPPER).unwrap();
        let file = file.to_str().unwrap();
        let uses = ["--algorithm", "argon2id", "--for", "everybody"];
        self.key(&[&["import", "pepper", file], &uses[..]].concat()).well();
        fs::remove_file(file).unwrap();
    }

    /// The keys that the directory is to take from cryptod; "" for none.
    fn configure(&self, key: &str, certificate: &str, pepper: &str) {
        fs::create_dir_all(&self.data).unwrap();
        let certificate = self.file(&format!("{certificate}.pem"));
        let text = format!(
            "[cryptod]\nsocket = \"cryptod/socket\"\n\
             [tls]\ncertificate = {certificate:?}\nkey = \"cryptod:{key}\"\n\
             [password]\nmemory_kib = 64\npepper = \"{pepper}\"\n"
        );
        fs::write(self.data.join("keyway.toml"), text).unwrap();
    }

    fn up(&self) -> Running {
        Running::start(&self.data, &[])
    }

    /// How it refuses to serve.
    fn refused(&self, parts: &[&str]) {
        let ports = ["--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"];
        let arguments = ["up", "--sample", "0", "--data", self.shown()];
        keyway_with(arguments.iter().chain(&ports), "").refused(1, parts);
    }

    /// A handshake of OpenSSL's with the certificate verified.
    fn handshake(&self, running: &Running, name: &str, arguments: &[&str]) -> Finished {
        let mut command = Command::new("openssl");
        let address = running.text("ldaps").trim_start_matches("ldaps://").to_owned();
        command.args(["s_client", "-connect", &address, "-verify_return_error", "-CAfile"]);
        command.arg(self.file(&format!("{name}.pem"))).args(["-verify_ip", "127.0.0.1"]);
        finish(command.args(arguments), "Q\n")
    }

    fn error_log(&self) -> String {
        fs::read_to_string(self.data.join("log/error.log")).unwrap_or_default()
    }

    /// Argon2id derivations that the directory has asked for since its start.
    fn derivations(&self) -> u64 {
        let arguments = ["top", "--json", "--count", "1", "--interval", "0.01", "--data"];
        let line = keyway(arguments.iter().chain(&[self.shown()])).well().json();
        let engine = line["engine"].as_array().unwrap();
        let argon2 = engine.iter().filter(|work| work["algorithm"] == "argon2id");
        let operations = |work: &Value| work["since_start"]["operations"].as_u64().unwrap();
        let (cryptods, others): (Vec<_>, Vec<_>) =
            argon2.partition(|work| work["driver"] == "cryptod");
        assert!(others.into_iter().all(|work| operations(work) == 0), "{line}");
        cryptods.into_iter().map(operations).sum()
    }
}

#[test]
fn the_servers_key_and_the_pepper_never_are_in_its_memory() {
    if !installed("openssl") {
        return;
    }
    let place = Place::new();
    let cryptod = place.cryptod();
    let key = place.hold("web", &rcgen::PKCS_ECDSA_P256_SHA256, &["ecdsa-p256-sha-256"]);
    place.hold_pepper();
    place.configure("web", "web", "pepper");
    let up = place.up();
    assert!(place.handshake(&up, "web", &[]).well().out.contains("Verify return code: 0 (ok)"));
    let stored = |argument| bind(&up, ADMIN, argument);
    let password = fs::read_to_string(up.text("administrator_password_file")).unwrap();
    // The start has checked it, so that cryptod remembers it.
    let before = place.derivations();
    assert_eq!(stored("wrong"), ResultCode::InvalidCredentials);
    assert_eq!(place.derivations(), before + 1);
    (0..5).for_each(|_| assert_eq!(stored(&password), ResultCode::Success));
    assert!(place.derivations() <= before + 2);
    assert_eq!(stored("wrong"), ResultCode::InvalidCredentials);

    // The private key is an octet string of 32 bytes (RFC 5915 § 3); libraries may turn it round.
    let der = key.serialized_der();
    let at = der.windows(2).position(|window| window == [4, 32]).unwrap() + 2;
    let secret: [u8; 32] = der[at..at + 32].try_into().unwrap();
    let mut turned = secret;
    turned.reverse();
    let secrets = [secret, turned, PEPPER];
    let Some(held) = hold_of_memory(cryptod.pid(), &secrets) else { return };
    assert!(held[0] + held[1] > 0 && held[2] > 0, "{held:?}");
    assert_eq!(hold_of_memory(up.server(), &secrets).unwrap(), [0; 3]);
    up.stop();
    cryptod.stop();
}

#[test]
fn every_type_of_key_can_be_held() {
    if !installed("openssl") {
        return;
    }
    let place = Place::new();
    let cryptod = place.cryptod();
    place.hold("p-384", &rcgen::PKCS_ECDSA_P384_SHA384, &["ecdsa-p384-sha-384"]);
    place.hold("ed", &rcgen::PKCS_ED25519, &["ed25519"]);
    let rsa = ["rsa-pss-sha-256", "rsa-pss-sha-384", "rsa-pss-sha-512", "rsa-pkcs1-sha-256"];
    place.hold("rsa", &rcgen::PKCS_RSA_SHA256, &rsa);
    place.configure("p-384", "p-384", "");
    let up = place.up();
    for name in ["p-384", "ed", "rsa"] {
        place.configure(name, name, "");
        up.signal(Signal::HUP);
        for version in ["-tls1_3", "-tls1_2"] {
            let is_it = || place.handshake(&up, name, &[version]).code == Some(0);
            until(is_it, &format!("{name} {version}"));
        }
    }
    for scheme in ["rsa_pss_rsae_sha256", "rsa_pss_rsae_sha512", "rsa_pkcs1_sha256"] {
        let arguments = ["-tls1_2", "-sigalgs", scheme];
        place.handshake(&up, "rsa", &arguments).well();
    }
    // One that it may not be used for.
    let refused = place.handshake(&up, "rsa", &["-tls1_2", "-sigalgs", "rsa_pkcs1_sha512"]);
    assert_ne!(refused.code, Some(0));
    up.stop();
    cryptod.stop();
}

#[test]
fn what_is_missing_is_said() {
    let place = Place::new();
    place.certificate("web", &rcgen::PKCS_ED25519);
    place.configure("web", "web", "");
    place.refused(&["keyway.toml: [cryptod] socket: no cryptod listens at ", "keyway cryptod"]);
    let cryptod = place.cryptod();
    place.refused(&["web.pem", "the key web for ed25519", "keyway key import web FILE"]);
    place.hold("other", &rcgen::PKCS_ED25519, &["ed25519"]);
    place.configure("other", "web", "");
    place.refused(&["web.pem", "other of cryptod is not its key", "keyway key import"]);
    place.configure("other", "other", "cayenne");
    place.refused(&["[password] pepper: \"cayenne\"", "no driver that is there holds"]);
    cryptod.stop();
}

/// Sets it when it ends, however that is: else those who look at it would go on for ever.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A request while it is gone is refused as unavailable, never as wrong.
#[test]
fn a_killed_cryptod_takes_nothing_with_it() {
    if !installed("openssl") {
        return;
    }
    let place = Place::new();
    let mut cryptod = place.cryptod();
    place.hold("web", &rcgen::PKCS_ECDSA_P256_SHA256, &["ecdsa-p256-sha-256"]);
    place.hold_pepper();
    place.configure("web", "web", "pepper");
    let up = place.up();
    let rounds = if nightly() { 3 } else { 1 };
    let password = fs::read_to_string(up.text("administrator_password_file")).unwrap();
    let (stop, bound) = (AtomicBool::new(false), AtomicUsize::new(0));
    let cryptod = thread::scope(|scope| {
        let binds = || {
            while !stop.load(Ordering::Relaxed) {
                match bind(&up, ADMIN, &password) {
                    ResultCode::Success => {
                        bound.fetch_add(1, Ordering::Relaxed);
                    }
                    ResultCode::Unavailable | ResultCode::Busy => {}
                    other => panic!("{other:?}"),
                }
            }
        };
        let handshakes = || {
            while !stop.load(Ordering::Relaxed) {
                place.handshake(&up, "web", &[]);
            }
        };
        let at_end = AtEnd(&stop);
        let load = [scope.spawn(binds), scope.spawn(binds)];
        let handshakes = scope.spawn(handshakes);
        let bound = || bound.load(Ordering::Relaxed);
        for round in 1..=rounds {
            let before = bound();
            until(|| bound() > before || load.iter().any(|it| it.is_finished()), "no bind");
            cryptod.kill();
            let lost = || place.error_log().matches(" error cryptod ").count() == round;
            until(lost, "no line says that it is gone");
            for password in [&*password, "wrong"] {
                let refused = bind(&up, ADMIN, password);
                assert!(
                    matches!(refused, ResultCode::Unavailable | ResultCode::Busy),
                    "{refused:?}"
                );
            }
            assert_ne!(place.handshake(&up, "web", &[]).code, Some(0));
            cryptod = place.cryptod();
            let back = || place.error_log().matches(" info cryptod ").count() == round;
            until(back, "no line says that it is back");
            for (password, expected) in
                [(&*password, ResultCode::Success), ("wrong", ResultCode::InvalidCredentials)]
            {
                // Others wait for their turn, too.
                until(
                    || match bind(&up, ADMIN, password) {
                        ResultCode::Busy => false,
                        other => other == expected || panic!("{password}: {other:?}"),
                    },
                    "it stays busy",
                );
            }
            place.handshake(&up, "web", &[]).well();
        }
        drop(at_end);
        load.into_iter().for_each(|it| it.join().unwrap());
        handshakes.join().unwrap();
        cryptod
    });
    up.stop();
    cryptod.stop();
}

/// The authority's key is in cryptod, and a client gets a certificate of it all the same.
#[test]
fn clients_get_certificates_of_an_authority_whose_key_is_held() {
    if !installed("openssl") || !installed("ldapwhoami") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = Running::start(&data, &["--sample", "0"]);
    let issue = |subject: &str, more: &[&str]| {
        let arguments = ["admin", "certificate", subject, "--json", "--data"];
        let mut command = Command::new(KEYWAY);
        command.args(arguments).arg(&data).args(more).current_dir(place.path());
        finish(&mut command, "")
    };
    let made = issue("cn=Ada,o=Example", &["--days", "7"]).well().json();
    let (pem, key) = (place.path().join("Ada.pem"), place.path().join("Ada.key"));
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let mut verify = Command::new("openssl");
    verify.args(["verify", "-purpose", "sslclient", "-CAfile"]).arg(data.join("ca.pem")).arg(&pem);
    finish(&mut verify, "").well();
    let whoami = || {
        let mut client = Command::new("ldapwhoami");
        client
            .args(["-Q", "-Y", "EXTERNAL", "-H", running.text("ldaps")])
            .env("LDAPCONF", "/dev/null");
        client.env("LDAPTLS_CACERT", data.join("ca.pem"));
        finish(client.env("LDAPTLS_CERT", &pem).env("LDAPTLS_KEY", &key), "")
    };
    assert_eq!(whoami().code, Some(49));
    for administrator in [made["fingerprint"].as_str().unwrap(), "cn=ada, o=example"] {
        let set = ["config", "set", "tls.administrators", administrator, "--data"];
        keyway(set.iter().chain(&[data.to_str().unwrap()])).well();
        assert_eq!(whoami().well().out.trim(), "dn:cn=admin,cn=keyway");
    }
    // Nothing is written over, and nothing is left of what could not be.
    let refused = issue("cn=Ada", &[]);
    assert!(refused.code == Some(1) && refused.out.contains("Ada.pem"), "{}", refused.out);
    running.stop();
    let refused = issue("cn=Bob", &[]);
    assert!(
        refused.code == Some(1) && refused.out.contains("no cryptod listens"),
        "{}",
        refused.out
    );
    assert!(!place.path().join("Bob.pem").exists() && !place.path().join("Bob.key").exists());
    let refused = issue("dc=a,dc=b", &[]);
    assert!(refused.code == Some(2) && refused.out.contains("twice"), "{}", refused.out);
}
