//! `keyway admin certificate`: certificates for clients, of the data folder's own authority, whose key may be
//! in cryptod.

use crate::data_flag::Data;
use crate::value::small_within;
use clap::Args;
use keyway_codec::certificate::Certificate;
use keyway_codec::dn::{Ava, Dn};
use keyway_engine::{Algorithm, Engine};
use keyway_folder::authority;
use keyway_folder::data::name;
use keyway_folder::folder_keys;
use keyway_folder::pem::certificates;
use keyway_folder::signing::{self, SigningKey};
use keyway_folder::user::{self, Half};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::timestamp::Timestamp;
use keyway_service::client::{self, Daemon};
use rcgen::{DistinguishedName, DnType};
use serde_json::json;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Issue a certificate to a client, with which it binds by SASL EXTERNAL
///
/// The authority of the data folder issues it, also while a server runs: its key is where it is, in cryptod
/// (which then has to run) or in DIR/ca.key. The client's key is made here and kept in FILE.key alone.
///
/// A client that shows it is the entry that its subject names, or the administrator if `[tls]`
/// administrators of DIR/keyway.toml has the subject or the fingerprint, which is printed. A subject has
/// each type of attribute once: for entries below two of dc, name an authority of your own in client_ca.
/// There is no revocation list of this authority: give short times, or use one of your own.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway admin certificate cn=Ada
      ./Ada.pem and ./Ada.key, for a year
  keyway admin certificate uid=backup,o=Example --out /etc/backup/ldap --days 30
      /etc/backup/ldap.pem and ldap.key, for the entry of that name
  LDAPTLS_CACERT=keyway-data/ca.pem LDAPTLS_CERT=Ada.pem LDAPTLS_KEY=Ada.key \\
      ldapwhoami -Y EXTERNAL -H ldaps://localhost:1636
      what the server takes it for")]
pub struct ClientCertificate {
    #[command(flatten)]
    pub data: Data,
    /// Whose it is: a DN of cn, uid, ou, o, l, st, c and dc
    #[arg(value_name = "SUBJECT", value_parser = subject)]
    pub subject: Subject,
    /// Where it goes: FILE.pem, and its key FILE.key [default: the first value of the subject]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// For how many days it is good
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = small_within::<1, 3650>)]
    pub days: u16,
    /// Say what was made as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The types that a subject may have, and their OIDs where rcgen has no name for them.
const TYPES: [(&str, DnType); 6] = [
    ("cn", DnType::CommonName),
    ("ou", DnType::OrganizationalUnitName),
    ("o", DnType::OrganizationName),
    ("l", DnType::LocalityName),
    ("st", DnType::StateOrProvinceName),
    ("c", DnType::CountryName),
];
const NUMBERED: [(&str, [u64; 7]); 2] =
    [("uid", [0, 9, 2342, 19_200_300, 100, 1, 1]), ("dc", [0, 9, 2342, 19_200_300, 100, 1, 25])];

/// The subject of a certificate.
#[derive(Clone, Debug)]
pub struct Subject {
    dn: Dn,
    name: DistinguishedName,
}

/// Reads a subject.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn subject(text: &str) -> Result<Subject, String> {
    let dn = Dn::parse(text).map_err(|why| why.to_string())?;
    if dn.is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut name = DistinguishedName::new();
    // X.509 begins where a DN ends.
    for ava in dn.rdns.iter().rev().flat_map(|rdn| &rdn.avas) {
        let (kind, value) = (kind(ava)?, std::str::from_utf8(&ava.value));
        if name.get(&kind).is_some() {
            return Err(format!("{} is there twice, and may be there once", ava.attribute));
        }
        name.push(kind, value.map_err(|_| format!("the value of {} is no text", ava.attribute))?);
    }
    Ok(Subject { dn, name })
}

fn kind(ava: &Ava) -> Result<DnType, String> {
    let is_it = |name: &str| name.eq_ignore_ascii_case(&ava.attribute);
    let known = TYPES.iter().find(|(name, _)| is_it(name)).map(|(_, kind)| kind.clone());
    let numbered = NUMBERED.iter().find(|(name, _)| is_it(name));
    let kind = known.or_else(|| numbered.map(|(_, oid)| DnType::CustomDnType(oid.to_vec())));
    kind.ok_or_else(|| format!("{} is not one of cn, uid, ou, o, l, st, c, dc", ava.attribute))
}

/// Issues it.
///
/// # Errors
/// If the authority or its key is not there, or the files are there already.
pub fn run(arguments: &ClientCertificate) -> Result<(), Failure> {
    let ClientCertificate { subject: Subject { dn, name: subject }, days, .. } = arguments;
    let out = arguments.out.clone().unwrap_or_else(|| first_value(dn).into());
    let (pem, key_file) = (beside(&out, "pem"), beside(&out, "key"));
    let mut files = Files::make(&pem, &key_file)?;
    // The key of the authority is for the user of the folder, not for root.
    let folder = std::path::absolute(&arguments.data.folder)
        .map_err(|why| Failure::system("find the data folder", &arguments.data.folder, &why))?;
    user::enter(None, &folder, Half::Ldapd)?.keep_nothing()?;
    let engine = keyway_drivers::engine();
    let ca_file = folder.join(name::CA_CERTIFICATE);
    let ca = certificates(&ca_file)?;
    let public = folder_keys::public_key_in(&ca_file)?;
    let daemon = folder_keys::are_held(&folder).then(|| Daemon::of_folder(&folder));
    let remote = client::connect(&engine, daemon.as_ref(), |_| {})?;
    let ca_key = authority_key(&engine, &folder, daemon.as_ref(), &public)?;
    let (key, key_der) = SigningKey::generate(&engine).map_err(authority::cannot_issue)?;
    let made = authority::for_client(ca_key, &ca, &key, subject, *days, Timestamp::now())?;
    drop(remote);
    let fingerprint = fingerprint(&engine, made.der())?;
    files.write(made.pem().as_bytes(), signing::pem(&key_der).as_bytes())?;
    let ends = Certificate::read(made.der())
        .map(|read| Timestamp::from_unix_s(read.not_after_unix_s).to_string())
        .unwrap_or_default();
    if arguments.json {
        return output::json(&json!({
            "event": "certificate_issued",
            "subject": dn.to_string(),
            "certificate": pem.display().to_string(),
            "key": key_file.display().to_string(),
            "fingerprint": fingerprint,
            "ends": ends,
        }));
    }
    output::text(format_args!(
        "{dn}: {} and {}, until {ends}\n{fingerprint}",
        pem.display(),
        key_file.display()
    ))
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

fn authority_key(
    engine: &Engine,
    folder: &Path,
    daemon: Option<&Daemon>,
    public: &[u8],
) -> Result<SigningKey, Failure> {
    let Some(daemon) = daemon else {
        let file = folder.join(name::CA_KEY);
        let key = folder_keys::read(&file)?;
        return SigningKey::load(engine, &key)
            .map_err(|why| keyway_folder::pem::malformed(&file, why));
    };
    let held = folder_keys::held(&daemon.socket, folder_keys::Which::Authority, public)?;
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
    fn subjects_are_read() {
        assert_eq!(subject("uid=ann, ou=People,o=Example").unwrap().name.iter().count(), 3);
        assert_eq!(first_value(&subject("cn=../x,o=y").unwrap().dn), "-x");
        for wrong in ["", "cn=a,cn=b", "dc=a,dc=b", "mail=a@b", "cn"] {
            assert!(subject(wrong).is_err(), "{wrong}");
        }
    }
}
