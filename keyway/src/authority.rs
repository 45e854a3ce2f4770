//! The certificate authority of a data folder, and the certificate it gives to the server.
//!
//! The authority's name is made from its key, so that its key alone is enough to issue again. Its
//! key may be taken away to a safe place: it is needed only when a certificate is to be issued.

use crate::certificate::{Certificate, Name};
use crate::data::{Folder, name};
use crate::failure::Failure;
use crate::moment::Moment;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use rustls::RootCertStore;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt::{Display, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use zeroize::Zeroizing;

const CA_DAYS: i64 = 3650;
/// Some clients take no certificate that is valid for longer than 825 days.
const SERVER_DAYS: i64 = 800;
/// A server that is started once a year always has a valid certificate.
const SERVER_DAYS_LEFT_MIN: i64 = 400;
/// For clients whose clock is late.
const BACKDATED_DAYS: i64 = 1;

/// What TLS needs.
pub struct Identity {
    /// The server's certificate.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its key.
    pub key: PrivateKeyDer<'static>,
    /// Who issues certificates to clients.
    pub authorities: RootCertStore,
}

/// Makes what is missing or about to expire, and reads the rest.
///
/// A server's certificate that somebody else issued is taken as it is.
///
/// # Errors
/// If a file is not what it should be, or cannot be written.
pub fn identity(folder: &Folder, names: &[Name], now: Moment) -> Result<Identity, Failure> {
    if !folder.has(name::CA_CERTIFICATE) {
        make_authority(folder, now)?;
    }
    let ca_text = folder.read(name::CA_CERTIFICATE)?;
    let ca = certificates(folder, name::CA_CERTIFICATE, &ca_text)?;
    if must_issue(folder, &ca, names, now)? {
        issue(folder, &ca, names, now)?;
    }
    let chain_text = folder.read(name::SERVER_CERTIFICATE)?;
    let mut authorities = RootCertStore::empty();
    for certificate in ca {
        let bad = |why| malformed(folder, name::CA_CERTIFICATE, why);
        authorities.add(certificate).map_err(bad)?;
    }
    let key = folder.read_secret(name::SERVER_KEY)?;
    Ok(Identity {
        chain: certificates(folder, name::SERVER_CERTIFICATE, &chain_text)?,
        key: PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|why| malformed(folder, name::SERVER_KEY, why))?,
        authorities,
    })
}

/// What a server's certificate has to be for: this host, and where it listens.
pub fn names_of_this_host(listen: &[SocketAddr]) -> Vec<Name> {
    let mut names = vec![
        Name::Dns("localhost".to_owned()),
        Name::Ip(Ipv4Addr::LOCALHOST.into()),
        Name::Ip(Ipv6Addr::LOCALHOST.into()),
    ];
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy().to_ascii_lowercase();
    let addresses = listen.iter().map(SocketAddr::ip).filter(|ip: &IpAddr| !ip.is_unspecified());
    let more = is_host_name(&host).then_some(Name::Dns(host));
    for name in more.into_iter().chain(addresses.map(Name::Ip)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// RFC 1123 § 2.1, with the underscore that some systems use.
fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=63).contains(&label.len()) && label.chars().all(inner) && !label.starts_with('-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

fn make_authority(folder: &Folder, now: Moment) -> Result<(), Failure> {
    // A first start that was cut short may have left the key.
    let key = if folder.has(name::CA_KEY) {
        key(folder, name::CA_KEY)?
    } else {
        make_key(folder, name::CA_KEY)?
    };
    let certificate = authority(&key, now).self_signed(&key).map_err(cannot_issue)?;
    folder.write(name::CA_CERTIFICATE, certificate.pem().as_bytes())
}

/// The authority of a key.
fn authority(key: &KeyPair, now: Moment) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = now.after_days(-BACKDATED_DAYS).date_time();
    params.not_after = now.after_days(CA_DAYS).date_time();
    params.distinguished_name = DistinguishedName::new();
    let mut common_name = "Keyway CA ".to_owned();
    for byte in params.key_identifier(key).iter().take(6) {
        // Writing to a String cannot fail.
        let _ = write!(common_name, "{byte:02x}");
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn must_issue(
    folder: &Folder,
    ca: &[CertificateDer<'_>],
    names: &[Name],
    now: Moment,
) -> Result<bool, Failure> {
    if !folder.has(name::SERVER_CERTIFICATE) || !folder.has(name::SERVER_KEY) {
        return Ok(true);
    }
    let text = folder.read(name::SERVER_CERTIFICATE)?;
    let chain = certificates(folder, name::SERVER_CERTIFICATE, &text)?;
    let unreadable = || malformed(folder, name::SERVER_CERTIFICATE, "it is not a certificate");
    let certificate =
        chain.first().and_then(|der| Certificate::read(der)).ok_or_else(unreadable)?;
    let ours = is_issued_by(&certificate, ca);
    let expires = certificate.not_after < now.after_days(SERVER_DAYS_LEFT_MIN);
    let lacks_a_name = names.iter().any(|name| !certificate.names.contains(name));
    Ok(ours && (expires || lacks_a_name))
}

fn is_issued_by(certificate: &Certificate<'_>, ca: &[CertificateDer<'_>]) -> bool {
    ca.iter().filter_map(|der| Certificate::read(der)).any(|ca| ca.subject == certificate.issuer)
}

fn issue(
    folder: &Folder,
    ca: &[CertificateDer<'_>],
    names: &[Name],
    now: Moment,
) -> Result<(), Failure> {
    if !folder.has(name::CA_KEY) {
        let (key, pem) = (folder.file(name::CA_KEY), folder.file(name::SERVER_CERTIFICATE));
        return Err(Failure::new(format!(
            "{} has to be issued (it is missing, expires soon or lacks a name of this host), and \
             the authority's key is not there: put it back at {} for this start",
            pem.display(),
            key.display()
        )));
    }
    let ca_key = key(folder, name::CA_KEY)?;
    // The key stays when the certificate is renewed: then one file changes, and they always fit.
    let server_key = if folder.has(name::SERVER_KEY) {
        key(folder, name::SERVER_KEY)?
    } else {
        make_key(folder, name::SERVER_KEY)?
    };
    let issuer = Issuer::new(authority(&ca_key, now), ca_key);
    let params = server(&server_key, names, now)?;
    let certificate = params.signed_by(&server_key, &issuer).map_err(cannot_issue)?;
    if !Certificate::read(certificate.der()).is_some_and(|read| is_issued_by(&read, ca)) {
        let why = format!(
            "{} is not the key of the authority that Keyway made there; with an authority of your \
             own, put a certificate of its in {} and the key in {}",
            folder.file(name::CA_KEY).display(),
            name::SERVER_CERTIFICATE,
            name::SERVER_KEY
        );
        return Err(malformed(folder, name::CA_CERTIFICATE, why));
    }
    folder.write(name::SERVER_CERTIFICATE, certificate.pem().as_bytes())
}

fn server(key: &KeyPair, names: &[Name], now: Moment) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::default();
    params.not_before = now.after_days(-BACKDATED_DAYS).date_time();
    params.not_after = now.after_days(SERVER_DAYS).date_time();
    params.distinguished_name = DistinguishedName::new();
    for name in names {
        params.subject_alt_names.push(match name {
            Name::Ip(address) => SanType::IpAddress(*address),
            Name::Dns(host) => SanType::DnsName(host.as_str().try_into().map_err(cannot_issue)?),
        });
    }
    let host = names.iter().rev().find_map(|name| match name {
        Name::Dns(host) => Some(host.as_str()),
        Name::Ip(_) => None,
    });
    params.distinguished_name.push(DnType::CommonName, host.unwrap_or("localhost"));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.serial_number = Some(serial(&params, key, now));
    Ok(params)
}

/// Another each time: some clients take it ill if an issuer uses one twice.
fn serial(params: &CertificateParams, key: &impl PublicKeyData, now: Moment) -> SerialNumber {
    let mut serial = vec![1];
    serial.extend(params.key_identifier(key).iter().take(7));
    serial.extend(now.date_time().unix_timestamp().to_be_bytes());
    SerialNumber::from(serial)
}

fn make_key(folder: &Folder, file: &str) -> Result<KeyPair, Failure> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(cannot_issue)?;
    let pem = Zeroizing::new(key.serialize_pem());
    folder.write_secret(file, pem.as_bytes())?;
    Ok(key)
}

fn key(folder: &Folder, file: &str) -> Result<KeyPair, Failure> {
    let pem = folder.read_secret(file)?;
    KeyPair::from_pem(&pem).map_err(|why| malformed(folder, file, why))
}

fn certificates(
    folder: &Folder,
    file: &str,
    pem: &str,
) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(malformed(folder, file, "there is no certificate in it")),
        Err(why) => Err(malformed(folder, file, why)),
    }
}

fn malformed(folder: &Folder, file: &str, why: impl Display) -> Failure {
    let path = folder.file(file);
    Failure::new(format!("{} cannot be used: {why}", path.display()))
}

fn cannot_issue(why: rcgen::Error) -> Failure {
    Failure::new(format!("cannot make a certificate: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const NOW: Moment = Moment::from_unix_s(1_800_000_000);

    fn folder(place: &tempfile::TempDir) -> Folder {
        Folder::open(place.path(), NOW).unwrap()
    }

    fn names() -> Vec<Name> {
        names_of_this_host(&["192.0.2.7:389".parse().unwrap(), "0.0.0.0:636".parse().unwrap()])
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
        assert_eq!(certificate.names, names());
        assert_eq!(certificate.not_after, NOW.after_days(SERVER_DAYS));
    }

    #[test]
    fn a_certificate_is_renewed_before_it_expires_and_when_a_name_is_new() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        let few = vec![Name::Dns("localhost".to_owned())];
        let first = identity(&folder, &few, NOW).unwrap();
        let wider = identity(&folder, &names(), NOW).unwrap();
        assert_ne!(first.chain, wider.chain);
        let later = NOW.after_days(SERVER_DAYS - SERVER_DAYS_LEFT_MIN + 1);
        let renewed = identity(&folder, &names(), later).unwrap();
        assert_ne!(wider.chain, renewed.chain);
        assert_eq!(first.key, renewed.key);
        let ca = folder.read(name::CA_CERTIFICATE).unwrap();
        let ca = CertificateDer::from_pem_slice(ca.as_bytes()).unwrap();
        let (ca, server) =
            (Certificate::read(&ca).unwrap(), Certificate::read(&renewed.chain[0]).unwrap());
        assert_eq!(ca.subject, server.issuer);
    }

    #[test]
    fn the_authoritys_key_is_needed_to_issue_only() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        identity(&folder, &names(), NOW).unwrap();
        fs::remove_file(folder.file(name::CA_KEY)).unwrap();
        assert!(identity(&folder, &names(), NOW).is_ok());
        fs::remove_file(folder.file(name::SERVER_CERTIFICATE)).unwrap();
        let failure = identity(&folder, &names(), NOW).err().unwrap();
        assert!(failure.to_string().contains("ca.key"), "{failure}");
    }

    #[test]
    fn somebody_elses_certificate_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        identity(&folder, &names(), NOW).unwrap();
        let theirs = rcgen::generate_simple_self_signed(["ldap.example.com".to_owned()]).unwrap();
        folder.write(name::SERVER_CERTIFICATE, theirs.cert.pem().as_bytes()).unwrap();
        folder
            .write_secret(name::SERVER_KEY, theirs.signing_key.serialize_pem().as_bytes())
            .unwrap();
        let identity = identity(&folder, &names(), NOW).unwrap();
        assert_eq!(identity.chain[0], *theirs.cert.der());
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

    #[test]
    fn host_names() {
        for good in ["a", "host-1.example.com", "my_box"] {
            assert!(is_host_name(good), "{good}");
        }
        for bad in ["", "a b", "-a", "a..b", "ä", "(none)"] {
            assert!(!is_host_name(bad), "{bad:?}");
        }
    }
}
