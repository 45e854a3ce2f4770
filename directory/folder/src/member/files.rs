//! The files that make a data folder a member's.

use super::certificate::member_of;
use crate::data::{self, name};
use crate::folder_keys;
use crate::pem::{certificates, malformed};
use crate::signing::{self, SigningKey};
use keyway_engine::Engine;
use keyway_host::failure::Failure;
use rcgen::PublicKeyData;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use zeroize::Zeroizing;

/// A member, as its data folder has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its number, 16 hexadecimal digits.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Where it began to follow others; none for one that began a cluster.
    pub follow: Vec<String>,
}

impl Member {
    /// Its number.
    pub fn number(&self) -> Option<u64> {
        u64::from_str_radix(&self.id, 16).ok()
    }
}

/// A member's certificate and key, and what issued it.
pub struct Key {
    /// Its number, which the certificate names.
    pub member: u64,
    /// The certificate, and those of the data folder's authority.
    pub chain: Vec<CertificateDer<'static>>,
    /// The authority's.
    pub authority: Vec<CertificateDer<'static>>,
    /// The key.
    pub key: PrivateKeyDer<'static>,
}

/// Whether a data folder is a member's.
pub fn is_member(folder: &Path) -> bool {
    folder.join(name::cluster::MEMBER).exists()
}

/// The member that a data folder is, if it is one.
///
/// # Errors
/// If its file cannot be read.
pub fn read(folder: &Path) -> Result<Option<Member>, Failure> {
    let file = folder.join(name::cluster::MEMBER);
    // A folder of another user's is not taken for one that is no member's.
    if !file.try_exists().map_err(|why| Failure::system("look for", &file, &why))? {
        return Ok(None);
    }
    let member: Member =
        serde_json::from_str(&data::read(&file)?).map_err(|why| malformed(&file, why))?;
    match member.number() {
        Some(number) if format!("{number:016x}") == member.id => Ok(Some(member)),
        _ => Err(malformed(&file, "its id is not 16 hexadecimal digits")),
    }
}

/// The certificate and the key of the member that a data folder is.
///
/// # Errors
/// If one of them is not there, or they are of different members.
pub fn complete(folder: &Path) -> Result<Key, Failure> {
    let not_one = || {
        let shown = folder.display();
        Failure::new(match folder.exists() {
            true => format!("{shown} is no member of a cluster (keyway cluster token begins one)"),
            false => format!("{shown} is not there; name the data folder with --data DIR"),
        })
    };
    let member = read(folder)?.ok_or_else(not_one)?;
    let file = folder.join(name::cluster::CERTIFICATE);
    let mut chain = certificates(&file)?;
    chain.truncate(1);
    let number = chain.first().and_then(|der| member_of(der));
    let Some(number) = number.filter(|number| Some(*number) == member.number()) else {
        return Err(malformed(&file, format!("it is not the certificate of member {}", member.id)));
    };
    let authority = certificates(&folder.join(name::CA_CERTIFICATE))?;
    chain.extend(authority.iter().cloned());
    let key = folder_keys::read(&folder.join(name::cluster::KEY))?;
    Ok(Key { member: number, chain, authority, key })
}

/// Makes the key of a member: its public half as a SubjectPublicKeyInfo in DER, and what is to be kept, PEM.
///
/// # Errors
/// If no driver does that.
pub fn make_key(engine: &Engine) -> Result<(Vec<u8>, Zeroizing<String>), Failure> {
    let cannot = |why| Failure::new(format!("cannot make a key: {why}"));
    let (key, der) = SigningKey::generate(engine).map_err(cannot)?;
    Ok((key.subject_public_key_info(), signing::pem(&Zeroizing::new(der))))
}

/// Keeps in a data folder which member it is, the last of all: before that is written, it is none.
///
/// # Errors
/// If something cannot be written.
pub fn keep(folder: &Path, member: &Member, certificate: &str, key: &str) -> Result<(), Failure> {
    let place = folder.join(name::CLUSTER);
    match DirBuilder::new().mode(0o700).create(&place) {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => {
            return Err(Failure::system("make", &place, &why));
        }
        _ => {}
    }
    data::write_secret(folder, name::cluster::KEY, key.as_bytes())?;
    data::write(folder, name::cluster::CERTIFICATE, certificate.as_bytes())?;
    let text = serde_json::to_string(member).map_err(Failure::new)?;
    data::write(folder, name::cluster::MEMBER, format!("{text}\n").as_bytes())
}
