//! The certificate authority of a data folder, and the certificate it gives to the server.
//!
//! The authority's name is made from its key, so that its key alone is enough to issue again. Its
//! key may be taken away to a safe place: it is needed only when a certificate is to be issued.
//! rcgen writes certificates; keys, signatures and random numbers are the engine's (`signing`), and
//! where the keys are, `folder_keys` knows.

use crate::data::{Folder, name};
use crate::folder_keys::{self, OwnKeys, PrivateKey, Which};
use crate::host_names::Names;
use crate::pem::{certificates, malformed};
use crate::signing::SigningKey;
use keyway_codec::certificate::{Certificate, Name};
use keyway_engine::Engine;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::timestamp::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt::{Display, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

const CA_DAYS: i64 = 3650;
/// Some clients take no certificate that is valid for longer than 825 days.
const SERVER_DAYS: i64 = 800;
/// A server that is started once a year always has a valid certificate.
const SERVER_DAYS_LEFT_MIN: i64 = 400;
/// A member's certificate is as old as its data folder's authority may be.
const MEMBER_DAYS: i64 = CA_DAYS;
/// For clients whose clock is late.
const BACKDATED_DAYS: i64 = 1;

/// The certificate and key that TLS needs.
pub struct Identity {
    /// The server's certificate, and those of its issuers.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its key.
    pub key: PrivateKey,
    /// The file that makes a client trust it; `None` if we have none, so that the client needs its
    /// own.
    pub trust: Option<PathBuf>,
    /// Where the key of our own authority is, if it is here: a file, or `cryptod:NAME`.
    pub ca_key: Option<String>,
}

/// Makes what is missing or about to expire, and reads the rest. Keys are in files, or in the cryptod whose
/// socket is given.
///
/// A server's certificate of another issuer is taken as it is, and no authority is made
/// beside it: it would have no use.
///
/// # Errors
/// If a file is not what it should be, or cannot be written.
pub fn identity(
    engine: &Engine,
    folder: &Folder,
    cryptod: Option<&Path>,
    names: &Names,
    now: Timestamp,
) -> Result<Identity, Failure> {
    let mut keys = OwnKeys::open(engine, folder, cryptod)?;
    if !folder.has(name::CA_CERTIFICATE) {
        if !folder.has(name::SERVER_CERTIFICATE) {
            make_authority(&mut keys, folder, now)?;
        } else if let Some(key) = keys.load(Which::Authority, None)? {
            restore_authority(&key, folder, now)?;
        }
    }
    let ca_file = folder.file(name::CA_CERTIFICATE);
    let mut ca = match folder.has(name::CA_CERTIFICATE) {
        true => certificates(&ca_file)?,
        false => Vec::new(),
    };
    if let Some(again) = authority_again(&keys, folder, &ca, now)? {
        ca = again;
    }
    let own = ca.first().and_then(|der| Certificate::read(der).ok()).map(|read| read.public_key);
    let can_issue = keys.has(Which::Authority, own.as_deref());
    match certificate_status(folder, &keys, &ca, names, now)? {
        CertificateStatus::Good => {}
        CertificateStatus::Lacking(_) | CertificateStatus::Useless(_) if can_issue => {
            issue(&mut keys, folder, &ca, names, now)?;
        }
        CertificateStatus::Lacking(why) => output::note(needs_key(folder, &keys, &why)),
        CertificateStatus::Useless(why) => {
            return Err(Failure::new(needs_key(folder, &keys, &why)));
        }
    }
    let file = folder.file(name::SERVER_CERTIFICATE);
    let (chain, mut trust) = chain(&file)?;
    let key = keys.private_key(Which::Server, &folder_keys::public_key_in(&file)?)?;
    if chain
        .first()
        .and_then(|der| Certificate::read(der).ok())
        .is_some_and(|certificate| is_issued_by(&certificate, &ca))
    {
        trust = Some(ca_file.clone());
    }
    let own = folder.has(name::CA_CERTIFICATE).then(|| folder_keys::public_key_in(&ca_file));
    let ca_key = keys.place(Which::Authority, own.transpose()?.as_deref());
    Ok(Identity { chain, key, trust, ca_key })
}

/// Reads a server's certificate and its key, of any issuer.
///
/// # Errors
/// If one of them cannot be read or is not what it should be.
pub fn read(certificate: &Path, key: &Path) -> Result<Identity, Failure> {
    let (chain, trust) = chain(certificate)?;
    let key = PrivateKey::File(folder_keys::read(key)?, key.to_owned());
    Ok(Identity { chain, key, trust, ca_key: None })
}

/// Reads a server's certificate and those of its issuers, and says whether the file makes a client
/// trust it.
///
/// # Errors
/// If it cannot be read or has none.
pub fn chain(
    certificate: &Path,
) -> Result<(Vec<CertificateDer<'static>>, Option<PathBuf>), Failure> {
    let chain = certificates(certificate)?;
    let own = |der: &CertificateDer<'_>| {
        Certificate::read(der).is_ok_and(|read| read.issuer == read.subject)
    };
    // A chain up to its root can be trusted by that.
    let trust = chain.last().is_some_and(own).then(|| certificate.to_owned());
    Ok((chain, trust))
}

fn make_authority(keys: &mut OwnKeys<'_>, folder: &Folder, now: Timestamp) -> Result<(), Failure> {
    // A first start that was cut short may have left the key.
    let key = match keys.load(Which::Authority, None)? {
        Some(key) => key,
        None => keys.make(Which::Authority)?,
    };
    let certificate = authority(&key, now)?.self_signed(&key).map_err(cannot_issue)?;
    folder.write(name::CA_CERTIFICATE, certificate.pem().as_bytes())
}

/// The authority of a key.
fn authority(key: &SigningKey, now: Timestamp) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::default();
    params.not_before = now.after_days(-BACKDATED_DAYS).date_time();
    params.not_after = now.after_days(CA_DAYS).date_time();
    params.distinguished_name = DistinguishedName::new();
    let mut common_name = "Keyway CA ".to_owned();
    let identifier = key.identifier().map_err(cannot_issue)?;
    for byte in identifier.iter().take(6) {
        // Writing to a String cannot fail.
        let _ = write!(common_name, "{byte:02x}");
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.key_identifier_method = KeyIdMethod::PreSpecified(identifier.to_vec());
    params.serial_number = Some(key.serial().map_err(cannot_issue)?.to_vec().into());
    Ok(params)
}

/// Makes the authority's certificate again if it is not valid now, because of a wrong clock or its age: name
/// and key stay, so that a client that trusts an earlier one trusts what it issues. Without its key a note says so.
fn authority_again(
    keys: &OwnKeys<'_>,
    folder: &Folder,
    ca: &[CertificateDer<'static>],
    now: Timestamp,
) -> Result<Option<Vec<CertificateDer<'static>>>, Failure> {
    let Some(old) = ca.first().and_then(|der| Certificate::read(der).ok()) else { return Ok(None) };
    let Some(why) = invalid_now(&old, now) else { return Ok(None) };
    let file = folder.file(name::CA_CERTIFICATE).display().to_string();
    let Some(key) = keys.load(Which::Authority, Some(&old.public_key))? else {
        output::note(format_args!(
            "{file} {why}, so that clients refuse what it issued; to have it made again {}",
            keys.place_of_authority()
        ));
        return Ok(None);
    };
    let again = authority(&key, now)?.self_signed(&key).map_err(cannot_issue)?;
    if !Certificate::read(again.der()).is_ok_and(|again| again.subject == old.subject) {
        output::note(format_args!("{file} {why}, and is not Keyway's to make again"));
        return Ok(None);
    }
    folder.write(name::CA_CERTIFICATE, again.pem().as_bytes())?;
    output::note(format_args!(
        "{file} {why}, and was made again with the same key: give it to clients that have the old one"
    ));
    Ok(Some(vec![again.der().clone()]))
}

/// Why a certificate is not valid at a time, in words that follow its name.
pub fn invalid_now(certificate: &Certificate<'_>, now: Timestamp) -> Option<String> {
    let (from, to) = (certificate.not_before_unix_s, certificate.not_after_unix_s);
    let shown = Timestamp::from_unix_s;
    if now.unix_s() < from {
        return Some(format!("is not valid before {} (it is {now} now)", shown(from)));
    }
    (to < now.unix_s()).then(|| format!("has expired at {}", shown(to)))
}

/// Makes the authority's certificate again, if its key is there and it issued the server's.
fn restore_authority(key: &SigningKey, folder: &Folder, now: Timestamp) -> Result<(), Failure> {
    let again = authority(key, now)?.self_signed(key).map_err(cannot_issue)?;
    let server = certificates(&folder.file(name::SERVER_CERTIFICATE))?;
    let server = server.first().and_then(|der| Certificate::read(der).ok());
    if server.is_some_and(|server| is_issued_by(&server, &[again.der().clone()])) {
        folder.write(name::CA_CERTIFICATE, again.pem().as_bytes())?;
    }
    Ok(())
}

/// Whether the server's certificate will do; if not, why.
enum CertificateStatus {
    Good,
    /// It can be used, and another would be better.
    Lacking(String),
    /// There is none that could be used, and ours to issue.
    Useless(String),
}

fn certificate_status(
    folder: &Folder,
    keys: &OwnKeys<'_>,
    ca: &[CertificateDer<'_>],
    names: &Names,
    now: Timestamp,
) -> Result<CertificateStatus, Failure> {
    let (file, key) = (folder.file(name::SERVER_CERTIFICATE), folder.file(name::SERVER_KEY));
    if !folder.has(name::SERVER_CERTIFICATE) {
        return Ok(CertificateStatus::Useless("is not there".to_owned()));
    }
    let chain = certificates(&file)?;
    let unreadable = || malformed(&file, "it is not a certificate");
    let certificate =
        chain.first().and_then(|der| Certificate::read(der).ok()).ok_or_else(unreadable)?;
    let has_key = keys.has(Which::Server, Some(&certificate.public_key));
    let not_after = Timestamp::from_unix_s(certificate.not_after_unix_s);
    if !is_issued_by(&certificate, ca) {
        if !has_key {
            let (file, key) = (file.display(), key.display());
            return Err(Failure::new(format!(
                "{file} is there, and its key is not; put that at {key} (chmod 600)"
            )));
        }
        return Ok(CertificateStatus::Good);
    }
    let lacks = |names: &[Name]| {
        names.iter().find(|name| !certificate.names.contains(name)).map(ToString::to_string)
    };
    Ok(if !has_key {
        CertificateStatus::Useless("has lost its key".to_owned())
    } else if let Some(why) = invalid_now(&certificate, now) {
        CertificateStatus::Useless(why)
    } else if let Some(name) = lacks(&names.asked) {
        CertificateStatus::Useless(format!("does not name {name}"))
    } else if not_after < now.after_days(SERVER_DAYS_LEFT_MIN) {
        CertificateStatus::Lacking(format!("expires at {not_after}"))
    } else if let Some(name) = lacks(&names.usual) {
        CertificateStatus::Lacking(format!("does not name {name}"))
    } else {
        CertificateStatus::Good
    })
}

fn needs_key(folder: &Folder, keys: &OwnKeys<'_>, why: &str) -> String {
    format!(
        "{} {why}, and the key of the authority that would issue another is not here; {}",
        folder.file(name::SERVER_CERTIFICATE).display(),
        keys.place_of_authority()
    )
}

fn is_issued_by(certificate: &Certificate<'_>, ca: &[CertificateDer<'_>]) -> bool {
    ca.iter()
        .filter_map(|der| Certificate::read(der).ok())
        .any(|ca| ca.subject == certificate.issuer)
}

fn issue(
    keys: &mut OwnKeys<'_>,
    folder: &Folder,
    ca: &[CertificateDer<'_>],
    names: &Names,
    now: Timestamp,
) -> Result<(), Failure> {
    let ca_certificate = folder.file(name::CA_CERTIFICATE);
    let own = folder_keys::public_key_in(&ca_certificate)?;
    let ca_key = keys.load(Which::Authority, Some(&own))?;
    let ca_key = ca_key.ok_or_else(|| malformed(&ca_certificate, "its key is gone"))?;
    // The key stays when the certificate is renewed: then one file changes, and they always fit.
    let file = folder.file(name::SERVER_CERTIFICATE);
    let is_there = folder.has(name::SERVER_CERTIFICATE);
    let current = is_there.then(|| folder_keys::public_key_in(&file));
    // What cryptod holds in a member's folder may have been copied, and is the other server's.
    let is_others = !is_there && keys.are_held() && folder.has(name::cluster::MEMBER);
    let current = match is_others {
        true => None,
        false => keys.load(Which::Server, current.transpose()?.as_deref())?,
    };
    let server_key = match current {
        Some(key) => key,
        None => keys.make(Which::Server)?,
    };
    let issuer = Issuer::new(authority(&ca_key, now)?, ca_key);
    let params = server(&server_key, names, now)?;
    let certificate = params.signed_by(&server_key, &issuer).map_err(cannot_issue)?;
    if !Certificate::read(certificate.der()).is_ok_and(|read| is_issued_by(&read, ca)) {
        let why = format!(
            "{} is not the key of the authority that Keyway made there; with an authority of your \
             own, put a certificate of its in {} and the key in {}",
            folder.file(name::CA_KEY).display(),
            name::SERVER_CERTIFICATE,
            name::SERVER_KEY
        );
        return Err(malformed(&folder.file(name::CA_CERTIFICATE), why));
    }
    folder.write(name::SERVER_CERTIFICATE, certificate.pem().as_bytes())
}

fn server(key: &SigningKey, names: &Names, now: Timestamp) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::default();
    params.not_before = now.after_days(-BACKDATED_DAYS).date_time();
    params.not_after = now.after_days(SERVER_DAYS).date_time();
    params.distinguished_name = DistinguishedName::new();
    for name in names.all() {
        params.subject_alt_names.push(match name {
            Name::Ip(address) => SanType::IpAddress(*address),
            Name::Dns(host) => SanType::DnsName(host.as_str().try_into().map_err(cannot_issue)?),
        });
    }
    // Clients look at the names above; this one is for people.
    let host = names.all().find_map(|name| match name {
        Name::Dns(host) if host != "localhost" => Some(host.as_str()),
        _ => None,
    });
    params.distinguished_name.push(DnType::CommonName, host.unwrap_or("localhost"));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.serial_number = Some(serial(key, now)?);
    Ok(params)
}

/// A certificate for a client's key, of the authority with this key and these certificates.
///
/// # Errors
/// If it is not the authority's key, or there is no driver.
pub fn for_client(
    ca_key: SigningKey,
    ca: &[CertificateDer<'_>],
    key: &SigningKey,
    subject: &DistinguishedName,
    days: u16,
    now: Timestamp,
) -> Result<rcgen::Certificate, Failure> {
    let mut params = CertificateParams::default();
    params.not_before = now.after_days(-BACKDATED_DAYS).date_time();
    params.not_after = now.after_days(days.into()).date_time();
    params.distinguished_name = subject.clone();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    params.serial_number = Some(serial(key, now)?);
    issue_by(ca_key, ca, &params, key, now)
}

/// A certificate for another server of a cluster: for that key, by this URI.
///
/// # Errors
/// As [`for_client`].
pub(crate) fn for_member(
    ca_key: SigningKey,
    ca: &[CertificateDer<'_>],
    key: &impl PublicKeyData,
    (uri, serial): (&str, SerialNumber),
    now: Timestamp,
) -> Result<rcgen::Certificate, Failure> {
    let mut params = CertificateParams::default();
    params.not_before = now.after_days(-BACKDATED_DAYS).date_time();
    params.not_after = now.after_days(MEMBER_DAYS).date_time();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, uri);
    params.subject_alt_names.push(SanType::URI(uri.try_into().map_err(cannot_issue)?));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    params.serial_number = Some(serial);
    issue_by(ca_key, ca, &params, key, now)
}

fn issue_by(
    ca_key: SigningKey,
    ca: &[CertificateDer<'_>],
    params: &CertificateParams,
    key: &impl PublicKeyData,
    now: Timestamp,
) -> Result<rcgen::Certificate, Failure> {
    let issuer = Issuer::new(authority(&ca_key, now)?, ca_key);
    let certificate = params.signed_by(key, &issuer).map_err(cannot_issue)?;
    if Certificate::read(certificate.der()).is_ok_and(|read| is_issued_by(&read, ca)) {
        return Ok(certificate);
    }
    Err(cannot_issue(
        "the data folder's authority is not one that Keyway made; have yours issue it",
    ))
}

/// A self-signed certificate for 127.0.0.1, and its key, that are not kept.
///
/// # Errors
/// If the engine has no driver for it.
pub fn for_loopback(
    engine: &Engine,
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), Failure> {
    let (key, der) = SigningKey::generate(engine).map_err(cannot_issue)?;
    let mut params = CertificateParams::default();
    params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
    params.serial_number = Some(key.serial().map_err(cannot_issue)?.to_vec().into());
    let certificate = params.self_signed(&key).map_err(cannot_issue)?;
    Ok((certificate.der().clone(), der))
}

/// Another each time: some clients take it ill if an issuer uses one twice.
fn serial(key: &SigningKey, now: Timestamp) -> Result<SerialNumber, Failure> {
    let mut serial = vec![1];
    serial.extend(key.identifier().map_err(cannot_issue)?.iter().take(7));
    serial.extend(now.date_time().unix_timestamp().to_be_bytes());
    Ok(SerialNumber::from(serial))
}

/// Why no certificate was made.
pub fn cannot_issue(why: impl Display) -> Failure {
    Failure::new(format!("cannot make a certificate: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const NOW: Timestamp = Timestamp::from_unix_s(1_800_000_000);

    fn identity(folder: &Folder, names: &Names, now: Timestamp) -> Result<Identity, Failure> {
        super::identity(&keyway_drivers::engine(), folder, None, names, now)
    }

    fn key(identity: &Identity) -> &PrivateKeyDer<'static> {
        match &identity.key {
            PrivateKey::File(key, _) => key,
            PrivateKey::Held(name) => panic!("{name} is not in a file"),
        }
    }

    fn folder(place: &tempfile::TempDir) -> Folder {
        Folder::open(place.path(), NOW).unwrap()
    }

    fn names() -> Names {
        Names::new(&[], &["192.0.2.7:389".parse().unwrap(), "127.0.0.1:636".parse().unwrap()])
    }

    fn asked(host: &str) -> Names {
        Names { asked: vec![Name::Dns(host.to_owned())], usual: Vec::new() }
    }

    #[test]
    fn what_is_there_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        let first = identity(&folder, &names(), NOW).unwrap();
        let second =
            identity(&folder, &names(), NOW.after_days(SERVER_DAYS - SERVER_DAYS_LEFT_MIN))
                .unwrap();
        assert_eq!(first.chain, second.chain);
        let certificate = Certificate::read(&first.chain[0]).unwrap();
        assert_eq!(certificate.names, names().usual);
        assert_eq!(first.trust, Some(folder.file(name::CA_CERTIFICATE)));
        let not_after = Timestamp::from_unix_s(certificate.not_after_unix_s);
        assert_eq!(not_after, NOW.after_days(SERVER_DAYS));
    }

    #[test]
    fn a_certificate_is_renewed_before_it_expires_and_when_a_name_is_new() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        let first = identity(&folder, &asked("localhost"), NOW).unwrap();
        let wider = identity(&folder, &names(), NOW).unwrap();
        assert_ne!(first.chain, wider.chain);
        let later = NOW.after_days(SERVER_DAYS - SERVER_DAYS_LEFT_MIN + 1);
        let renewed = identity(&folder, &names(), later).unwrap();
        assert_ne!(wider.chain, renewed.chain);
        assert!(key(&first) == key(&renewed));
        let ca = certificates(&folder.file(name::CA_CERTIFICATE)).unwrap();
        let (ca, server) =
            (Certificate::read(&ca[0]).unwrap(), Certificate::read(&renewed.chain[0]).unwrap());
        assert_eq!(ca.subject, server.issuer);
    }

    /// A clock that is wrong for one start, by years and in either direction.
    #[test]
    fn certificates_of_a_wrong_clock_are_made_again() {
        for wrong in [NOW.after_days(5000), NOW.after_days(-15_000)] {
            let place = tempfile::tempdir().unwrap();
            let folder = folder(&place);
            let good = identity(&folder, &names(), NOW).unwrap();
            identity(&folder, &names(), wrong).unwrap();
            let again = identity(&folder, &names(), NOW).unwrap();
            assert!(key(&good) == key(&again));
            let ca = certificates(&folder.file(name::CA_CERTIFICATE)).unwrap();
            for der in [&again.chain[0], &ca[0]] {
                let read = Certificate::read(der).unwrap();
                assert_eq!(invalid_now(&read, NOW), None);
                assert!(read.not_after_unix_s <= NOW.after_days(CA_DAYS).unix_s());
                assert_eq!(read.issuer, Certificate::read(&good.chain[0]).unwrap().issuer);
            }
        }
    }

    #[test]
    fn a_certificate_that_is_not_valid_yet_is_not_served_without_the_authoritys_key() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        identity(&folder, &names(), NOW.after_days(700)).unwrap();
        fs::remove_file(folder.file(name::CA_KEY)).unwrap();
        let failure = identity(&folder, &names(), NOW).err().unwrap().to_string();
        assert!(
            failure.contains("is not valid before 2028") && failure.contains("ca.key"),
            "{failure}"
        );
    }

    #[test]
    fn the_authoritys_key_is_needed_to_issue_only() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        identity(&folder, &names(), NOW).unwrap();
        fs::remove_file(folder.file(name::CA_KEY)).unwrap();
        let kept = identity(&folder, &names(), NOW).unwrap();
        // A certificate that can be used is used, whatever it lacks, until it cannot be or was asked for.
        let more = Names::new(&[], &["192.0.2.8:389".parse().unwrap()]);
        let day = NOW.after_days(SERVER_DAYS);
        for (names, now) in [(&more, NOW), (&names(), day)] {
            assert_eq!(identity(&folder, names, now).unwrap().chain, kept.chain);
        }
        for (names, now, why) in [
            (&asked("ldap.example.com"), NOW, "does not name ldap.example.com"),
            (&names(), day.after_days(1), "has expired"),
        ] {
            let failure = identity(&folder, names, now).err().unwrap().to_string();
            assert!(failure.contains("ca.key") && failure.contains(why), "{failure}");
        }
        fs::remove_file(folder.file(name::SERVER_CERTIFICATE)).unwrap();
        let failure = identity(&folder, &names(), NOW).err().unwrap();
        assert!(failure.to_string().contains("ca.key"), "{failure}");
    }

    /// Puts the certificate of another maker in place.
    fn put_theirs(folder: &Folder) -> CertificateDer<'static> {
        let theirs = rcgen::generate_simple_self_signed(["ldap.example.com".to_owned()]).unwrap();
        let key = theirs.signing_key.serialize_pem();
        folder.write(name::SERVER_CERTIFICATE, theirs.cert.pem().as_bytes()).unwrap();
        folder.write_secret(name::SERVER_KEY, key.as_bytes()).unwrap();
        theirs.cert.der().clone()
    }

    #[test]
    fn no_authority_is_made_beside_a_foreign_certificate() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        let theirs = put_theirs(&folder);
        let identity = identity(&folder, &asked("else.example.com"), NOW).unwrap();
        assert_eq!(identity.chain, [theirs]);
        assert_eq!(identity.trust, Some(folder.file(name::SERVER_CERTIFICATE)));
        assert!(!folder.has(name::CA_CERTIFICATE) && !folder.has(name::CA_KEY));
        fs::remove_file(folder.file(name::SERVER_KEY)).unwrap();
        let failure = super::tests::identity(&folder, &names(), NOW).err().unwrap().to_string();
        assert!(failure.contains("its key is not; put that at"), "{failure}");
    }

    #[test]
    fn an_authority_whose_certificate_was_lost_is_made_again_from_its_key() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        let first = identity(&folder, &names(), NOW).unwrap();
        fs::remove_file(folder.file(name::CA_CERTIFICATE)).unwrap();
        let second = identity(&folder, &names(), NOW).unwrap();
        assert_eq!((first.chain, first.trust), (second.chain, second.trust));
        // Without the key there is nothing to be made, and nothing that would not fit.
        fs::remove_file(folder.file(name::CA_CERTIFICATE)).unwrap();
        fs::remove_file(folder.file(name::CA_KEY)).unwrap();
        assert_eq!(identity(&folder, &names(), NOW).unwrap().trust, None);
        assert!(!folder.has(name::CA_CERTIFICATE));
    }

    #[test]
    fn a_foreign_certificate_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        identity(&folder, &names(), NOW).unwrap();
        let theirs = put_theirs(&folder);
        let identity = identity(&folder, &names(), NOW).unwrap();
        assert_eq!(identity.chain, [theirs]);
    }

    #[test]
    fn an_authority_that_is_not_ours_issues_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        identity(&folder, &names(), NOW).unwrap();
        let theirs = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap();
        folder.write(name::CA_CERTIFICATE, theirs.cert.pem().as_bytes()).unwrap();
        fs::remove_file(folder.file(name::SERVER_CERTIFICATE)).unwrap();
        let failure = identity(&folder, &names(), NOW).err().unwrap();
        assert!(failure.to_string().contains("ca.pem cannot be used"), "{failure}");
        assert!(!folder.has(name::SERVER_CERTIFICATE));
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        identity(&folder, &names(), NOW).unwrap();
        fs::set_permissions(folder.file(name::SERVER_KEY), fs::Permissions::from_mode(0o644))
            .unwrap();
        let failure = identity(&folder, &names(), NOW).err().unwrap();
        assert!(failure.to_string().contains("chmod 600"), "{failure}");
    }
}
