//! The PKCS#11 module, with programs that know nothing of it: they get the library's file and, in their environment,
//! the daemon's socket.

mod java;
mod nss;
mod openssh;
mod program;
mod tools;

use keyway_tests::cryptod::Cryptod;
use keyway_tests::{ALL_CALLERS, Finished, available, finish, keyway, pkcs11_module};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The keys of a site, and what they are for. "one" is for one algorithm.
const KEYS: [(&str, &[&str]); 7] = [
    ("agreeing", &["--algorithm", "ec-p384", "--purpose", "agree"]),
    ("ec", &["--algorithm", "ec-p256"]),
    ("ec384", &["--algorithm", "ec-p384"]),
    ("ec521", &["--algorithm", "ec-p521"]),
    ("ed", &["--algorithm", "ed25519"]),
    ("one", &["--algorithm", "rsa-pkcs1-sha-256"]),
    ("rsa", &RSA),
];
const RSA: [&str; 8] = [
    "--algorithm",
    "rsa",
    "--algorithm",
    "rsaes-pkcs1",
    "--purpose",
    "sign",
    "--purpose",
    "decrypt",
];

/// A cryptod with keys, and the files of their public halves.
struct Site {
    cryptod: Cryptod,
}

impl Site {
    /// `None` if the machine lacks one of these programs.
    fn new(needs: &[&str]) -> Option<Site> {
        Site::on(needs, &[])
    }

    /// On a daemon that is started in such a way.
    fn on(needs: &[&str], arguments: &[&str]) -> Option<Site> {
        if !available(&[&["openssl"], needs].concat()) {
            return None;
        }
        let site = Site { cryptod: Cryptod::for_every_user(arguments) };
        for (name, options) in KEYS {
            site.key(&[&["generate", name, "--for", ALL_CALLERS], options].concat());
            fs::write(site.file(&format!("{name}.pub")), site.key(&["public", name, "--pem"]))
                .unwrap();
        }
        fs::write(site.file("text"), "a text").unwrap();
        Some(site)
    }

    /// One whose keys have certificates, made with the module: that of "rsa" is an authority's, which has issued the
    /// others.
    fn with_certificates(needs: &[&str]) -> Option<Site> {
        let site = Site::new(&[&["certtool"], needs].concat())?;
        let authority = "cn = authority\nca\ncert_signing_key\nsigning_key\nexpiration_days = 30\n";
        fs::write(site.file("authority.cfg"), authority).unwrap();
        let leaf = "cn = localhost\ndns_name = localhost\nsigning_key\nexpiration_days = 30\n";
        fs::write(site.file("leaf.cfg"), leaf).unwrap();
        let url = |key| format!("pkcs11:token=Keyway;object={key};type=private");
        let make = |how: &[&str]| site.with_module("certtool", "--provider", how).expect(0);
        let signed = ["--template", "authority.cfg", "--outfile", "rsa.crt"];
        make(&[&["--generate-self-signed", "--load-privkey", &url("rsa")], &signed[..]].concat());
        for name in ["ec", "ec384", "ec521", "ed"] {
            let (certificate, chain) = (format!("{name}.crt"), format!("{name}.chain"));
            let issued = ["--generate-certificate", "--load-privkey", &url(name)];
            let issuer = ["--load-ca-certificate", "rsa.crt", "--load-ca-privkey", &url("rsa")];
            let rest = ["--template", "leaf.cfg", "--outfile", &certificate];
            make(&[&issued[..], &issuer, &rest].concat());
            site.run("openssl", &["verify", "-CAfile", "rsa.crt", &certificate]).expect(0);
            let both = [&certificate, "rsa.crt"].map(|file| fs::read(site.file(file)).unwrap());
            fs::write(site.file(&chain), both.concat()).unwrap();
            site.key(&["certificate", name, &chain]);
        }
        site.key(&["certificate", "rsa", "rsa.crt"]);
        Some(site)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.cryptod.folder().path().join(name)
    }

    fn key(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(keyway());
        command.arg("key").args(arguments).arg("--socket").arg(self.cryptod.socket());
        finish(command.current_dir(self.cryptod.folder().path()), "").expect(0).out
    }

    /// A program that finds the daemon.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env("KEYWAY_SOCKET", self.cryptod.socket());
        command.current_dir(self.cryptod.folder().path());
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Finished {
        finish(self.command(program).args(arguments), "")
    }

    /// A program that is told by a flag which module to load.
    fn with_module(&self, program: &str, flag: &str, arguments: &[&str]) -> Finished {
        let mut command = self.command(program);
        finish(command.arg(flag).arg(pkcs11_module()).args(arguments), "")
    }
}
