//! Which clients' certificates are taken.

use super::settings::{Clients, Settings};
use crate::data::{self, Folder, name};
use crate::limits::REVOCATION_LIST_BYTES_MAX;
use crate::pem::{malformed, words};
use keyway_codec::certificate::{Certificate, RevocationList};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_tls::{ClientVerifier, ConfigError, ServerOptions};
use rustls::RootCertStore;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The settings that decide which clients are accepted.
#[derive(PartialEq)]
pub struct Trusted {
    required: bool,
    authorities: Vec<CertificateDer<'static>>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    /// Which file each of the lists is from.
    list_files: Vec<PathBuf>,
}

impl Trusted {
    pub fn verifier(&self, options: &ServerOptions) -> Result<ClientVerifier, Failure> {
        let mut roots = RootCertStore::empty();
        for certificate in &self.authorities {
            roots.add(certificate.clone()).map_err(|why| {
                Failure::new(format!("an authority for clients cannot be used: {why}"))
            })?;
        }
        ClientVerifier::new(&options.provider, roots, &self.lists, self.required).map_err(|why| {
            match why {
                ConfigError::RevocationList(index, why) => match self.list_files.get(index) {
                    Some(file) => malformed(file, why),
                    None => Failure::new(why),
                },
                why => Failure::new(why),
            }
        })
    }
}

/// The authorities that are trusted to issue to clients; `None` if no client is asked.
pub fn trusted(
    folder: &Folder,
    settings: &Settings,
    now: Timestamp,
) -> Result<Option<Trusted>, Failure> {
    let required = match settings.clients {
        Clients::Off => return Ok(None),
        Clients::Optional => false,
        Clients::Required => true,
    };
    let own = folder.file(name::CA_CERTIFICATE);
    let files = match &settings.client_ca[..] {
        [] if !own.exists() && required => {
            return Err(Failure::new(format!(
                "client certificates are required, and there is no authority to check them \
                 against: name its file as client_ca in {}",
                folder.file(name::CONFIGURATION).display()
            )));
        }
        [] if !own.exists() => return Ok(None),
        [] => vec![own],
        files => files.iter().map(|file| folder.file_at(file)).collect(),
    };
    let mut authorities = Vec::new();
    for file in &files {
        authorities.extend(crate::pem::certificates(file)?);
    }
    let (mut lists, mut list_files) = (Vec::new(), Vec::new());
    for file in settings.client_crls.iter().map(|file| folder.file_at(file)) {
        let all = revocation_lists(&file, now)?;
        list_files.extend(all.iter().map(|_| file.clone()));
        lists.extend(all);
    }
    if !lists.is_empty() {
        every_authority_has_one(&authorities, &lists)?;
    }
    Ok(Some(Trusted { required, authorities, lists, list_files }))
}

/// The lists in a file, PEM or DER; at least one, and none out of date.
fn revocation_lists(
    file: &Path,
    now: Timestamp,
) -> Result<Vec<CertificateRevocationListDer<'static>>, Failure> {
    let system = |why| Failure::system("read", file, &why);
    let mut bytes = Vec::new();
    data::plain_file(file)?;
    let opened = File::open(file).map_err(system)?;
    opened.take(REVOCATION_LIST_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(system)?;
    if bytes.len() as u64 > REVOCATION_LIST_BYTES_MAX {
        let why = format!("it is longer than {REVOCATION_LIST_BYTES_MAX} bytes");
        return Err(malformed(file, why));
    }
    let lists = if bytes.starts_with(&[DER_SEQUENCE]) {
        vec![CertificateRevocationListDer::from(bytes)]
    } else {
        let all: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&bytes).collect();
        all.map_err(|why| malformed(file, words(&why)))?
    };
    if lists.is_empty() {
        return Err(malformed(file, "there is no certificate revocation list in it"));
    }
    for list in &lists {
        let Ok(list) = RevocationList::read(list) else {
            return Err(malformed(file, "it is no certificate revocation list"));
        };
        let due = list.next_update_unix_s.map(Timestamp::from_unix_s);
        if let Some(due) = due.filter(|due| *due < now) {
            let why = format!(
                "a newer one was due at {due}; fetch it from the authority: a server that runs takes \
                 it by itself"
            );
            return Err(malformed(file, why));
        }
    }
    Ok(lists)
}

/// How DER begins, and PEM does not.
const DER_SEQUENCE: u8 = 0x30;

/// One without would have all of its clients refused, without a visible reason.
fn every_authority_has_one(
    authorities: &[CertificateDer<'_>],
    lists: &[CertificateRevocationListDer<'_>],
) -> Result<(), Failure> {
    let issuers: Vec<_> =
        lists.iter().filter_map(|list| Some(RevocationList::read(list).ok()?.issuer)).collect();
    let without = authorities
        .iter()
        .filter_map(|der| Certificate::read(der).ok())
        .position(|authority| !issuers.contains(&authority.subject));
    match without {
        None => Ok(()),
        Some(index) => Err(Failure::new(format!(
            "client_crls has no list of authority {} of client_ca, so that all its clients would \
             be refused; name its list too, or take the authority out",
            index + 1
        ))),
    }
}
