//! Which certificate authorities a client of ours believes.

use crate::data::name;
use crate::failure::Failure;
use crate::output;
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::{Path, PathBuf};

/// Where Debian, Fedora and their kin keep the authorities that the system trusts.
const SYSTEM_AUTHORITIES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// What is said where any certificate is taken.
const INSECURE: &str = "--insecure: any certificate is taken, so whoever is on the way can read and change \
                        everything, passwords too";

/// Says so, if that is so.
pub fn warn(is_insecure: bool) {
    if is_insecure {
        output::note(INSECURE);
    }
}

/// The authority of the usual data folder, which may not be there.
pub fn usual_authority() -> PathBuf {
    Path::new(name::DEFAULT).join(name::CA_CERTIFICATE)
}

/// The authorities of a file, or without one the system's and those of a file of ours that may be
/// there.
///
/// # Errors
/// If there is none, or the file is not what it should be.
pub fn authorities(ca: Option<&Path>, own: Option<&Path>) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca {
        let pem = std::fs::read(path).map_err(|why| Failure::system("read", path, &why))?;
        add(&mut roots, &pem);
        if roots.is_empty() {
            let path = path.display();
            return Err(Failure::new(format!(
                "there is no certificate of an authority in {path}; it should be a PEM file"
            )));
        }
        return Ok(roots);
    }
    let usual = SYSTEM_AUTHORITIES.iter().map(Path::new);
    for path in usual.chain(own) {
        // One that is not there is not trusted.
        add(&mut roots, &std::fs::read(path).unwrap_or_default());
    }
    if roots.is_empty() {
        return Err(Failure::usage(
            "no certificate authority is known on this machine; name one with --ca FILE",
        ));
    }
    Ok(roots)
}

/// Adds those that can be used: systems also trust some that cannot.
fn add(roots: &mut RootCertStore, pem: &[u8]) {
    for certificate in CertificateDer::pem_slice_iter(pem).flatten() {
        let _ = roots.add(certificate);
    }
}
