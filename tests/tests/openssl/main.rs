//! The provider for OpenSSL, with programs that know nothing of it: they get a configuration, and a URI or a PEM file
//! that names a key.

mod ciphers;
mod commands;
mod descriptors;
mod end;
mod haproxy;
mod httpd;
mod memory;
mod newer;
mod postgresql;
mod python;
mod servers;
mod tls;

use keyway_client::{KeyClient, KeyReference};
use keyway_tests::cryptod::{Cryptod, eventually};
use keyway_tests::{ALL_CALLERS, ALLOW_ALL, Finished, available, finish, keyway, openssl_provider};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The keys of a site: the name, the kind, the digest that `openssl req` signs with, and the signature's type
/// in TLS 1.3.
const KEYS: [(&str, &str, &str, &str); 5] = [
    ("rsa", "rsa", "-sha256", "RSA-PSS"),
    ("ec", "ec-p256", "-sha256", "ECDSA"),
    ("ec384", "ec-p384", "-sha384", "ECDSA"),
    ("ec521", "ec-p521", "-sha512", "ECDSA"),
    ("ed", "ed25519", "-sha256", "ed25519"),
];

/// A cryptod with keys, and a folder with OpenSSL's configuration, the keys' PEM files and certificates.
struct Site {
    cryptod: Cryptod,
}

impl Site {
    /// `None` if the machine lacks one of these programs, or this process is not root's.
    fn new(needs: &[&str]) -> Option<Site> {
        if !available(&[&["openssl"], needs].concat()) {
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            eprintln!("left out: only root becomes other users");
            return None;
        }
        let site = Site { cryptod: Cryptod::for_every_user(&[]) };
        fs::write(site.file("openssl.cnf"), site.configuration()).unwrap();
        fs::write(site.file("stock.cnf"), "[req]\ndistinguished_name = dn\n[dn]\n").unwrap();
        fs::write(site.file("text"), "a text").unwrap();
        Some(site)
    }

    /// One with keys that every user may use, and certificates of them.
    fn with_keys(needs: &[&str]) -> Option<Site> {
        let site = Site::new(needs)?;
        for (name, kind, digest, _) in KEYS {
            site.generate(name, kind, ALL_CALLERS);
            let (pem, certificate) = (format!("{name}.pem"), format!("{name}.crt"));
            let made = ["req", "-x509", "-new", "-key", &pem, "-subj", &format!("/CN={name}")];
            let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
            let names = ["-addext", names, "-addext", "basicConstraints=CA:TRUE"];
            let rest = ["-days", "30", digest, "-out", &certificate];
            site.openssl(&[&made[..], &names, &rest].concat()).expect(0);
        }
        Some(site)
    }

    /// As the guide has it.
    fn configuration(&self) -> String {
        self.configured(["default", "keyway"])
    }

    /// With the providers in that order.
    fn configured(&self, [first, second]: [&str; 2]) -> String {
        format!(
            "openssl_conf = init\n\n[init]\nproviders = providers\nalg_section = algorithms\n\n\
             [algorithms]\ndefault_properties = ?keyway.key!=yes\n\n[providers]\n{first} = {first}_provider\n\
             {second} = {second}_provider\n\n[default_provider]\nactivate = 1\n\n[keyway_provider]\n\
             module = {}\nsocket = {}\nactivate = 1\n\n[req]\ndistinguished_name = dn\n[dn]\n",
            openssl_provider().display(),
            self.cryptod.socket().display()
        )
    }

    fn place(&self) -> &Path {
        self.cryptod.folder().path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place().join(name)
    }

    fn key(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(keyway());
        command.arg("key").args(arguments).arg("--socket").arg(self.cryptod.socket());
        finish(command.current_dir(self.place()), "").expect(0).out
    }

    /// Makes a key, a PEM file that names it, and one of its public half.
    fn generate(&self, name: &str, kind: &str, who: &str) {
        self.key(&["generate", name, "--for", who, "--algorithm", kind]);
        self.write_files(name);
    }

    fn write_files(&self, name: &str) {
        let reference = KeyReference { name: name.to_owned(), public_key: None };
        fs::write(self.file(&format!("{name}.pem")), reference.to_pem()).unwrap();
        let public = self.key(&["public", name, "--pem"]);
        fs::write(self.file(&format!("{name}.pub")), public).unwrap();
    }

    /// Issues a certificate of a key that root may not use, by the key `rsa`.
    fn certify(&self, name: &str) {
        let (public, certificate) = (format!("{name}.pub"), format!("{name}.crt"));
        let request = ["req", "-new", "-key", "rsa.pem", "-subj", "/CN=localhost", "-out", "csr"];
        self.openssl(&request).expect(0);
        let issue = ["x509", "-req", "-in", "csr", "-CA", "rsa.crt", "-CAkey", "rsa.pem"];
        let rest = ["-force_pubkey", &public, "-out", &certificate];
        self.openssl(&[&issue[..], &rest[..]].concat()).expect(0);
    }

    /// A program with the provider.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("OPENSSL_CONF", self.file("openssl.cnf")).current_dir(self.place());
        command
    }

    fn openssl(&self, arguments: &[&str]) -> Finished {
        finish(self.command("openssl").args(arguments), "")
    }

    /// A program without it.
    fn stock(&self, program: &str) -> Command {
        let mut command = self.command(program);
        command.env("OPENSSL_CONF", self.file("stock.cnf"));
        command
    }

    fn stock_openssl(&self, arguments: &[&str]) -> Finished {
        finish(self.stock("openssl").args(arguments), "")
    }

    /// Kills the daemon in the middle of something that works, which fails then; afterwards, with another daemon in
    /// its place, it works again.
    fn survives_the_daemon(mut self, works: impl Fn(&Site) -> bool + Sync) -> Site {
        let rounds = AtomicUsize::new(0);
        thread::scope(|scope| {
            let client = scope.spawn(|| {
                while works(&self) {
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
            eventually("it works", || rounds.load(Ordering::Relaxed) > 3 || client.is_finished());
            assert!(!client.is_finished());
            self.cryptod.signal(Signal::KILL);
            client.join().unwrap();
        });
        eventually("the daemon has gone", || !self.cryptod.is_up());
        assert!(!works(&self));
        let Site { cryptod } = self;
        let (folder, socket) = (cryptod.folder().clone(), cryptod.socket().display().to_string());
        drop(cryptod);
        let beside = [ALLOW_ALL, "--socket", &socket];
        let site = Site { cryptod: Cryptod::start_on(&folder, &beside) };
        assert!(works(&site));
        site
    }

    fn client(&self) -> KeyClient {
        KeyClient::new(self.cryptod.socket().to_owned(), "test")
    }
}
