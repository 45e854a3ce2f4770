//! Certificates for clients, of the data folder's own authority, whose key may be in cryptod.

use crate::client::{self, Daemon};
use keyway_codec::certificate::Certificate;
use keyway_codec::dn::Dn;
use keyway_engine::{Algorithm, Engine};
use keyway_folder::authority;
use keyway_folder::data::name;
use keyway_folder::folder_keys;
use keyway_folder::pem::certificates;
use keyway_folder::signing::{self, SigningKey};
use keyway_folder::subject::CertificateSubject;
use keyway_folder::user::{self, Half};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A certificate that was issued.
pub struct IssuedCertificate {
    /// Its file, PEM.
    pub certificate: PathBuf,
    /// The file of its private key, PEM.
    pub key: PathBuf,
    /// As `[tls] administrators` has it.
    pub fingerprint: String,
    /// The time until which it is good.
    pub ends: String,
}

/// Issues a certificate for so many days, into the new files `out`.pem and `out`.key; without a name they are called
/// after the first value of the subject. The process becomes the folder's user for good: the authority's key is for that
/// user alone.
///
/// # Errors
/// If the authority or its key is not there, or the files are there already.
pub fn issue(
    folder: &Path,
    subject: &CertificateSubject,
    out: Option<&Path>,
    days: u16,
) -> Result<IssuedCertificate, Failure> {
    let out = out.map_or_else(|| first_value(subject.dn()).into(), Path::to_owned);
    let (certificate, key_file) = (beside(&out, "pem"), beside(&out, "key"));
    let mut files = Files::make(&certificate, &key_file)?;
    let folder = std::path::absolute(folder)
        .map_err(|why| Failure::system("find the data folder", folder, &why))?;
    user::enter(None, &folder, Half::Ldapd)?.keep_nothing()?;
    let engine = keyway_drivers::engine();
    let ca_file = folder.join(name::CA_CERTIFICATE);
    let ca = certificates(&ca_file)?;
    let public = folder_keys::public_key_in(&ca_file)?;
    let daemon = folder_keys::are_held(&folder).then(|| Daemon::of_folder(&folder));
    let remote = client::connect(&engine, daemon.as_ref(), |_| {})?;
    let socket = daemon.as_ref().map(|daemon| daemon.socket.as_path());
    let ca_key = authority_key(&engine, &folder, socket, &public)?;
    let (key, key_der) = SigningKey::generate(&engine).map_err(authority::cannot_issue)?;
    let made = authority::for_client(ca_key, &ca, &key, subject.name(), days, Timestamp::now())?;
    drop(remote);
    let fingerprint = fingerprint(&engine, made.der())?;
    files.write(made.pem().as_bytes(), signing::pem(&key_der).as_bytes())?;
    let ends = Certificate::read(made.der())
        .map(|read| Timestamp::from_unix_s(read.not_after_unix_s).to_string())
        .unwrap_or_default();
    Ok(IssuedCertificate { certificate, key: key_file, fingerprint, ends })
}

fn first_value(dn: &Dn) -> String {
    let value = dn.rdn().and_then(|rdn| rdn.avas.first()).map(|ava| ava.value.clone());
    let name = String::from_utf8_lossy(&value.unwrap_or_default()).replace(['/', '\0'], "-");
    // Not hidden, and not the folder above.
    name.trim_start_matches('.').to_owned()
}

fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut path = out.as_os_str().to_owned();
    path.push(".");
    path.push(ending);
    path.into()
}

/// The key of a data folder's authority, with this public half: in a file, or in the cryptod with that socket, to which
/// the engine is connected.
///
/// # Errors
/// If it is not there or cannot be used.
pub(crate) fn authority_key(
    engine: &Engine,
    folder: &Path,
    cryptod: Option<&Path>,
    public: &[u8],
) -> Result<SigningKey, Failure> {
    let Some(cryptod) = cryptod else {
        let file = folder.join(name::CA_KEY);
        let key = folder_keys::read(&file)?;
        return SigningKey::load(engine, &key)
            .map_err(|why| keyway_folder::pem::malformed(&file, why));
    };
    let held = folder_keys::held(cryptod, folder_keys::Which::Authority, public)?;
    let held = held.ok_or_else(|| {
        Failure::new(format!(
            "the key of {} is not in the cryptod of the folder; put it back for this",
            folder.join(name::CA_CERTIFICATE).display()
        ))
    })?;
    SigningKey::held(engine, &held.0, &held.1)
        .map_err(|why| Failure::new(format!("the key {} of cryptod cannot be used: {why}", held.0)))
}

/// As `[tls] administrators` has it.
fn fingerprint(engine: &Engine, der: &[u8]) -> Result<String, Failure> {
    let mut digest = [0; 32];
    engine.digest(Algorithm::Sha256, &[der], &mut digest).map_err(authority::cannot_issue)?;
    let octets: Vec<_> = digest.iter().map(|octet| format!("{octet:02X}")).collect();
    Ok(format!("sha256:{}", octets.join(":")))
}

/// The two files, which are gone again if nothing comes of them.
struct Files {
    files: [(PathBuf, File); 2],
    is_done: bool,
}

impl Files {
    fn make(pem: &Path, key: &Path) -> Result<Files, Failure> {
        let make = |path: &Path, mode| {
            let mut options = OpenOptions::new();
            let made = options.write(true).create(true).truncate(false).mode(mode).open(path);
            let made = made.and_then(|file| {
                // An empty one is what was left of one that failed.
                if file.metadata()?.len() > 0 {
                    let why = "it is there already; remove it, or name another place with --out";
                    return Err(io::Error::new(ErrorKind::AlreadyExists, why));
                }
                file.set_permissions(Permissions::from_mode(mode))?;
                Ok(file)
            });
            made.map_err(|why: io::Error| Failure::system("make", path, &why))
        };
        let certificate = make(pem, 0o644)?;
        let key = match make(key, 0o600) {
            Ok(file) => (key.to_owned(), file),
            Err(why) => {
                let _ = fs::remove_file(pem);
                return Err(why);
            }
        };
        Ok(Files { files: [(pem.to_owned(), certificate), key], is_done: false })
    }

    fn write(&mut self, pem: &[u8], key: &[u8]) -> Result<(), Failure> {
        for ((path, file), bytes) in self.files.iter_mut().zip([pem, key]) {
            let written = file.write_all(bytes).and_then(|()| file.sync_all());
            written.map_err(|why| Failure::system("write", path, &why))?;
        }
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if !self.is_done {
            self.files.iter().for_each(|(path, _)| drop(fs::remove_file(path)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_never_in_another_folder() {
        let subject: CertificateSubject = "cn=../x,o=y".parse().unwrap();
        assert_eq!(first_value(subject.dn()), "-x");
    }
}
