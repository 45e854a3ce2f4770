//! `[tls]`, checked.

use keyway_codec::certificate::Name;
use rustls::CipherSuite;
use std::path::{Path, PathBuf};

/// `[tls]`, checked. Paths that are relative begin at the data folder.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's certificate and its key, if they are not the data folder's own.
    pub files: Option<Pair>,
    /// More of them, for clients that ask for other hosts.
    pub additional: Vec<Pair>,
    /// Which versions are spoken.
    pub versions: Versions,
    /// Which cipher suites, if not all.
    pub ciphers: Vec<CipherSuite>,
    /// Further names of the certificate.
    pub names: Vec<Name>,
    /// Whether clients are asked for a certificate.
    pub clients: Clients,
    /// Files of the authorities that issue to clients; none: the data folder's own.
    pub client_ca: Vec<PathBuf>,
    /// Files of what these have revoked.
    pub client_crls: Vec<PathBuf>,
}

/// A certificate's file, and where its key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The certificate's file, PEM, with those that lead to its authority's.
    pub certificate: PathBuf,
    /// Its key.
    pub key: ServerKey,
}

/// Where a server's key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerKey {
    /// In a file.
    File(PathBuf),
    /// In cryptod, under this name.
    Held(String),
}

/// Versions of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// 1.3 and 1.2.
    Both,
    /// 1.3.
    Tls13,
    /// 1.2.
    Tls12,
}

/// Whether clients are asked for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// No.
    Off,
    /// They may have one.
    Optional,
    /// They must have one.
    Required,
}

impl Settings {
    /// The files that they name.
    pub fn named(&self) -> impl Iterator<Item = &Path> {
        let pairs = self.files.iter().chain(&self.additional);
        let of_pairs = pairs.flat_map(|pair| {
            let key = match &pair.key {
                ServerKey::File(key) => Some(key),
                ServerKey::Held(_) => None,
            };
            [Some(&pair.certificate), key].into_iter().flatten()
        });
        of_pairs.chain(&self.client_ca).chain(&self.client_crls).map(PathBuf::as_path)
    }
}
