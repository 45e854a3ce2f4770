//! The contents of a certificate and a revocation list (RFC 5280). `x509-parser` reads them; this module
//! picks the fields that the directory and its server use. Nothing is verified here.

use crate::error::DecodeError;
use std::fmt::{self, Write};
use std::net::IpAddr;
use x509_parser::asn1_rs::Any;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;
use x509_parser::x509::{RelativeDistinguishedName, X509Name};

const UTF8_STRING: u32 = 0x0c;
const PRINTABLE_STRING: u32 = 0x13;
const TELETEX_STRING: u32 = 0x14;
const IA5_STRING: u32 = 0x16;
const UNIVERSAL_STRING: u32 = 0x1c;
const BMP_STRING: u32 = 0x1e;

/// A name that a server's certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A host's name.
    Dns(String),
    /// An address.
    Ip(IpAddr),
}

impl Name {
    /// Whether a certificate with this name is for a host of the other one (RFC 9525 § 6.3).
    pub fn covers(&self, wanted: &Name) -> bool {
        match (self, wanted) {
            (Name::Dns(own), Name::Dns(wanted)) => {
                let below = || wanted.split_once('.').map(|(_, below)| below);
                own.eq_ignore_ascii_case(wanted)
                    || own.strip_prefix("*.").is_some_and(|own| below() == Some(own))
            }
            _ => self == wanted,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Dns(host) => f.write_str(host),
            Name::Ip(address) => address.fmt(f),
        }
    }
}

/// The parts of a certificate that we look at.
#[derive(Debug)]
pub struct Certificate<'a> {
    /// The issuer's name, encoded.
    pub issuer: &'a [u8],
    /// The subject's name, encoded.
    pub subject: &'a [u8],
    /// The public key, as the bits of its subjectPublicKey.
    pub public_key: Vec<u8>,
    /// When it begins to be valid, in seconds since 1970 (UTC).
    pub not_before_unix_s: i64,
    /// When it stops being valid, in seconds since 1970 (UTC).
    pub not_after_unix_s: i64,
    /// The names that it is for.
    pub names: Vec<Name>,
    /// The URIs that it is for.
    pub uris: Vec<String>,
}

impl<'a> Certificate<'a> {
    /// Reads one in DER. Octets after it are not looked at.
    ///
    /// # Errors
    /// If it is no certificate.
    pub fn read(der: &'a [u8]) -> Result<Certificate<'a>, DecodeError> {
        let (_, read) = X509Certificate::from_der(der).map_err(|_| NO_CERTIFICATE)?;
        let (mut names, mut uris) = (Vec::new(), Vec::new());
        let alternative = read.subject_alternative_name().map_err(|_| NO_CERTIFICATE)?;
        for name in alternative.iter().flat_map(|extension| &extension.value.general_names) {
            names.extend(host_name(name));
            if let GeneralName::URI(uri) = name {
                uris.push((*uri).to_owned());
            }
        }
        let validity = &read.tbs_certificate.validity;
        Ok(Certificate {
            issuer: read.tbs_certificate.issuer.as_raw(),
            subject: read.tbs_certificate.subject.as_raw(),
            public_key: read.tbs_certificate.subject_pki.subject_public_key.data.to_vec(),
            not_before_unix_s: validity.not_before.timestamp(),
            not_after_unix_s: validity.not_after.timestamp(),
            names,
            uris,
        })
    }
}

/// The subject of a certificate in DER as an RFC 4514 string with attribute types as OIDs; empty if
/// it has none.
///
/// # Errors
/// If it is no certificate, or a name in it is no text.
pub fn subject_dn(der: &[u8]) -> Result<String, DecodeError> {
    let (_, read) = X509Certificate::from_der(der).map_err(|_| NO_CERTIFICATE)?;
    dn(&read.tbs_certificate.subject)
}

/// The parts of a revocation list that we look at (RFC 5280 § 5.1).
#[derive(Debug)]
pub struct RevocationList<'a> {
    /// The issuer's name, encoded.
    pub issuer: &'a [u8],
    /// When the issuer's next one is due, in seconds since 1970 (UTC), if it says so.
    pub next_update_unix_s: Option<i64>,
}

impl<'a> RevocationList<'a> {
    /// Reads one in DER. Octets after it are not looked at.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(der: &'a [u8]) -> Result<RevocationList<'a>, DecodeError> {
        let (_, read) = CertificateRevocationList::from_der(der).map_err(|_| NO_LIST)?;
        Ok(RevocationList {
            issuer: read.tbs_cert_list.issuer.as_raw(),
            next_update_unix_s: read.next_update().map(|due| due.timestamp()),
        })
    }
}

const NO_CERTIFICATE: DecodeError = DecodeError::Malformed { what: "not an X.509 certificate" };
const NO_LIST: DecodeError = DecodeError::Malformed { what: "not a certificate revocation list" };

/// A name of the subject, if it is a host's. A malformed name is no name.
fn host_name(name: &GeneralName<'_>) -> Option<Name> {
    match name {
        GeneralName::DNSName(host) => Some(Name::Dns((*host).to_owned())),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(Name::Ip)
        }
        _ => None,
    }
}

fn dn(name: &X509Name<'_>) -> Result<String, DecodeError> {
    let mut rdns = name.iter_rdn().map(rdn).collect::<Result<Vec<_>, _>>()?;
    // X.500 names begin at the root, LDAP's at the entry.
    rdns.reverse();
    Ok(rdns.join(","))
}

fn rdn(set: &RelativeDistinguishedName<'_>) -> Result<String, DecodeError> {
    let mut text = String::new();
    for pair in set.iter() {
        if !text.is_empty() {
            text.push('+');
        }
        object_identifier(pair.attr_type().as_bytes(), &mut text)?;
        text.push('=');
        escape(&string(pair.attr_value())?, &mut text);
    }
    Ok(text)
}

const NOT_TEXT: DecodeError =
    DecodeError::Malformed { what: "a name in a certificate is not text" };
const NOT_OID: DecodeError =
    DecodeError::Malformed { what: "a type in a certificate is not an OID" };

/// The text of the string types that RFC 5280 allows in names.
fn string(value: &Any<'_>) -> Result<String, DecodeError> {
    let contents = value.data;
    let wide = |units: usize| {
        if !contents.len().is_multiple_of(units) {
            return Err(NOT_TEXT);
        }
        let number = |unit: &[u8]| unit.iter().fold(0, |high, low| high << 8 | u32::from(*low));
        contents
            .chunks(units)
            .map(|unit| char::from_u32(number(unit)).ok_or(NOT_TEXT))
            .collect::<Result<String, _>>()
    };
    match value.tag().0 {
        UTF8_STRING | PRINTABLE_STRING | IA5_STRING => {
            String::from_utf8(contents.to_vec()).map_err(|_| NOT_TEXT)
        }
        // T.61 in theory, Latin-1 in every certificate that exists.
        TELETEX_STRING => Ok(contents.iter().map(|byte| char::from(*byte)).collect()),
        BMP_STRING => wide(2),
        UNIVERSAL_STRING => wide(4),
        _ => Err(NOT_TEXT),
    }
}

/// Escapes by hexadecimal pairs whatever could mean something in a DN.
fn escape(value: &str, out: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'@') {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\{byte:02x}");
        }
    }
}

/// The dotted form of an OBJECT IDENTIFIER's contents (X.690 § 8.19).
fn object_identifier(contents: &[u8], out: &mut String) -> Result<(), DecodeError> {
    let mut arc = 0_u64;
    let mut first = true;
    let mut complete = false;
    for byte in contents {
        if arc >> 57 != 0 {
            return Err(NOT_OID);
        }
        arc = arc << 7 | u64::from(byte & 0x7f);
        complete = byte & 0x80 == 0;
        if complete {
            let _ = if first {
                let root = (arc / 40).min(2);
                write!(out, "{root}.{}", arc - root * 40)
            } else {
                write!(out, ".{arc}")
            };
            (arc, first) = (0, false);
        }
    }
    if complete { Ok(()) } else { Err(NOT_OID) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    /// `/DC=com/DC=example/OU=Größe, "/UID=ada+CN=Ada ` by OpenSSL, in UTF-8.
    const UTF8: &str = "\
        MIICIjCCAcegAwIBAgIURXp67/JcQbq7S6OxwEeamsRQHoAwCgYIKoZIzj0EAwIwZTETMBEGCgmSJomT8ixkARkWA2\
        NvbTEXMBUGCgmSJomT8ixkARkWB2V4YW1wbGUxEzARBgNVBAsMCkdyw7bDn2UsICIxIDALBgNVBAMMBEFkYSAwEQYK\
        CZImiZPyLGQBAQwDYWRhMCAXDTI2MTEyMTExMDQwMVoYDzIxMjYxMDI4MTEwNDAxWjBlMRMwEQYKCZImiZPyLGQBGR\
        YDY29tMRcwFQYKCZImiZPyLGQBGRYHZXhhbXBsZTETMBEGA1UECwwKR3LDtsOfZSwgIjEgMAsGA1UEAwwEQWRhIDAR\
        BgoJkiaJk/IsZAEBDANhZGEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR/XRduUjeRExEUbiJbSxK0hcx4eu1EzG\
        OkDBmhl6t7eZ0G6xXTfVKT/4SW7K9OXXLY81D8tVaANjOpLUSzpsWqo1MwUTAdBgNVHQ4EFgQUcXjtH8hIpdYbO5cw\
        oi+XIvlW7eUwHwYDVR0jBBgwFoAUcXjtH8hIpdYbO5cwoi+XIvlW7eUwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQ\
        QDAgNJADBGAiEA1/n5Romq33lHg4zBi9n4xmL1OZtQkxsugrpJ0IL+ackCIQDCgD8ujNq82r5/+3nC3Op+BI3t/NKw\
        +1QjJcX27TmqKg==";

    /// `/CN=Zoë/emailAddress=zoe@example.com` by OpenSSL, version 1, in BMPString and IA5String.
    const BMP: &str = "\
        MIIBXzCCAQUCFFnbYUUecPpQfBe/lwzh2+7GhIqMMAoGCCqGSM49BAMCMDExDzANBgNVBAMeBgBaAG8A6zEeMBwGCS\
        qGSIb3DQEJARYPem9lQGV4YW1wbGUuY29tMCAXDTI2MTEyMTExMDQwMVoYDzIxMjYxMDI4MTEwNDAxWjAxMQ8wDQYD\
        VQQDHgYAWgBvAOsxHjAcBgkqhkiG9w0BCQEWD3pvZUBleGFtcGxlLmNvbTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0\
        IABH9dF25SN5ETERRuIltLErSFzHh67UTMY6QMGaGXq3t5nQbrFdN9UpP/hJbsr05dctjzUPy1VoA2M6ktRLOmxaow\
        CgYIKoZIzj0EAwIDSAAwRQIhAPZ/h/IQI+MyAE694IDCvuaG9f82VMH3cgiFLrqWMU5XAiBSbhuLkz4larW1i9erl/\
        YjYhdjjLw1TebJVneSPAXwcQ==";

    fn subject_of(base64: &str) -> String {
        subject_dn(&STANDARD.decode(base64).unwrap()).unwrap()
    }

    #[test]
    fn subjects_are_dns_from_the_entry_upwards() {
        let expected = concat!(
            r"2.5.4.3=Ada\20+0.9.2342.19200300.100.1.1=ada,",
            r"2.5.4.11=Gr\c3\b6\c3\9fe\2c\20\22,",
            "0.9.2342.19200300.100.1.25=example,0.9.2342.19200300.100.1.25=com",
        );
        assert_eq!(subject_of(UTF8), expected);
        assert_eq!(subject_of(BMP), r"1.2.840.113549.1.9.1=zoe@example.com,2.5.4.3=Zo\c3\ab");
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        for der in [&b""[..], &[0x30, 0x00], &[0x30, 0x80, 0x00], &[0x30, 0x02, 0x30, 0x00]] {
            assert!(Certificate::read(der).is_err() && RevocationList::read(der).is_err());
        }
    }

    #[test]
    fn both_forms_of_time() {
        let der = STANDARD.decode(UTF8).unwrap();
        let end = |der: &[u8]| Certificate::read(der).map(|read| read.not_after_unix_s);
        // 2126-10-28T11:04:01Z
        assert_eq!(end(&der), Ok(4_948_859_041));
        // Begin and end of the validity, which have forms of different length, change places.
        const BEGIN_BYTES: usize = 15;
        const VALIDITY_BYTES: usize = 32;
        let at = der.windows(4).position(|bytes| bytes == [0x30, 0x20, 0x17, 0x0d]).unwrap() + 2;
        let utc = |text: &str| {
            let mut der = der.clone();
            der[at + 2..at + BEGIN_BYTES].copy_from_slice(text.as_bytes());
            der[at..at + VALIDITY_BYTES].rotate_left(BEGIN_BYTES);
            end(&der)
        };
        // 2049-12-31T23:59:59Z and 1950-01-01T00:00:00Z
        assert_eq!(utc("491231235959Z"), Ok(2_524_607_999));
        assert_eq!(utc("500101000000Z"), Ok(-631_152_000));
        assert!(utc("491331235959Z").is_err());
    }

    #[test]
    fn wildcards_stand_for_one_label() {
        let dns = |name: &str| Name::Dns(name.to_owned());
        assert!(dns("*.example.com").covers(&dns("ldap.example.com")));
        assert!(dns("Ldap.example.com").covers(&dns("ldap.example.com")));
        for other in ["a.ldap.example.com", "example.com", "ldap.example.org"] {
            assert!(!dns("*.example.com").covers(&dns(other)), "{other}");
        }
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_are_survived(at in 0..400_usize, with: u8) {
            let mut der = STANDARD.decode(UTF8).unwrap();
            der[at] = with;
            let _ = subject_dn(&der);
            let _ = subject_dn(&der[..at]);
        }
    }
}
