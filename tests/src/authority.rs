//! Certificates by OpenSSL's hand.

use crate::{Finished, finish};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Runs OpenSSL in a folder.
///
/// # Panics
/// If it fails.
pub fn openssl(folder: &Path, arguments: &[&str]) -> Finished {
    finish(Command::new("openssl").current_dir(folder).args(arguments), "").expect(0)
}

/// An authority of OpenSSL's, in a folder of its own.
pub struct Authority {
    folder: TempDir,
}

impl Default for Authority {
    fn default() -> Self {
        Authority::new()
    }
}

impl Authority {
    /// A new one.
    ///
    /// # Panics
    /// If OpenSSL fails.
    pub fn new() -> Authority {
        let authority = Authority { folder: tempfile::tempdir().unwrap() };
        let new =
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        let what = ["-days", "9", "-subj", "/CN=their CA", "-keyout", "ca.key", "-out", "ca.pem"];
        openssl(authority.place(), &[&new[..], &what].concat());
        fs::write(authority.place().join("index"), "").unwrap();
        authority
    }

    /// Where its files are.
    pub fn place(&self) -> &Path {
        self.folder.path()
    }

    /// Where a file of its is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.place().join(name)
    }

    /// `NAME.pem` and `NAME.key`, issued by the authority whose files are given.
    ///
    /// # Panics
    /// If OpenSSL fails.
    pub fn issue(&self, name: &str, subject: &str, extensions: &str, ca: (&str, &str)) {
        let file = |kind: &str| format!("{name}.{kind}");
        let new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        let (key, csr, pem) = (file("key"), file("csr"), file("pem"));
        let rest = ["-subj", subject, "-keyout", &key, "-out", &csr];
        openssl(self.place(), &[&new[..], &rest].concat());
        fs::write(self.path(&file("ext")), format!("[x]\n{extensions}\n")).unwrap();
        let sign = ["x509", "-req", "-days", "2", "-CAcreateserial", "-CAserial", "serial"];
        let extensions = file("ext");
        let files = ["-in", &csr, "-CA", ca.0, "-CAkey", ca.1, "-out", &pem];
        let with = ["-extfile", &extensions, "-extensions", "x"];
        openssl(self.place(), &[&sign[..], &files, &with].concat());
    }

    /// As [`Authority::issue`], by this authority itself.
    ///
    /// # Panics
    /// If OpenSSL fails.
    pub fn issue_own(&self, name: &str, subject: &str, extensions: &str) {
        self.issue(name, subject, extensions, ("ca.pem", "ca.key"));
    }

    /// `crl.pem` with what was revoked before and what is now; `next` says when it is out of date.
    ///
    /// # Panics
    /// If OpenSSL fails.
    pub fn revoke(&self, revoked: &[&str], next: &[&str]) {
        let config = "[ca]\ndefault_ca=a\n[a]\ndatabase=index\ncrlnumber=number\n\
            default_md=sha256\ncrl_extensions=e\n[e]\nauthorityKeyIdentifier=keyid\n";
        fs::write(self.path("conf"), config).unwrap();
        fs::write(self.path("number"), "01").unwrap();
        let ca = ["ca", "-config", "conf", "-cert", "ca.pem", "-keyfile", "ca.key"];
        for name in revoked {
            openssl(self.place(), &[&ca[..], &["-revoke", &format!("{name}.pem")]].concat());
        }
        openssl(self.place(), &[&ca[..], &["-gencrl", "-out", "crl.pem"], next].concat());
    }
}

/// Puts lines into `[tls]` of a data folder's configuration.
///
/// # Panics
/// If it cannot be written.
pub fn configure(data: &Path, lines: &str) {
    fs::create_dir_all(data).unwrap();
    fs::write(data.join("keyway.toml"), format!("[tls]\n{lines}\n")).unwrap();
}
