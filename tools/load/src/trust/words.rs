//! Why TLS does not come about, in words.

use rustls::{AlertDescription, CertificateError, Error};
use rustls_pki_types::UnixTime;
use std::io;

/// Advice on a certificate whose issuer we do not know.
const NAME_ITS_ISSUER: &str =
    "name the authority that issued it (--ca FILE; of Keyway it is ca.pem in its data folder)";

/// Whether a server's first octets are a record of TLS, where LDAP was to come: an alert or a handshake
/// (RFC 8446 § 5.1). No message of LDAP begins so.
#[must_use]
pub fn is_of_tls(octets: &[u8]) -> bool {
    matches!(octets, [0x15 | 0x16, 0x03, ..])
}

/// Why TLS with a host did not come about, and what to do.
#[must_use]
pub fn tls_words(why: &io::Error, host: &str) -> String {
    let inner = why.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match (inner, why.kind()) {
        (Some(why), _) => words(why, host),
        (None, io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => closed(),
        (None, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            "the server does not answer the beginning of TLS; if its port speaks LDAP without TLS, write \
             ldap:// (with StartTLS, --start-tls)"
                .to_owned()
        }
        _ => why.to_string(),
    }
}

pub(crate) fn closed() -> String {
    "the server closed the connection when TLS began; if its port speaks LDAP without TLS, write ldap:// \
     (with StartTLS, --start-tls)"
        .to_owned()
}

fn words(why: &Error, host: &str) -> String {
    match why {
        Error::InvalidCertificate(why) => certificate(why, host),
        Error::InvalidMessage(_) => {
            "the server does not speak TLS on this port; write ldap:// (with StartTLS, --start-tls)"
                .to_owned()
        }
        Error::AlertReceived(alert) => alert_words(*alert),
        Error::PeerIncompatible(why) => {
            format!(
                "no version or cipher of TLS is common to both sides ({why:?}); TLS 1.2 and 1.3 are spoken here"
            )
        }
        why => why.to_string(),
    }
}

fn alert_words(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure => {
            "the server finds no version or cipher of TLS that is common to both sides; TLS 1.2 and 1.3 are \
             spoken here"
                .to_owned()
        }
        AlertDescription::CertificateRequired => {
            "the server wants a certificate of ours (--cert FILE --key FILE, where the command has them)"
                .to_owned()
        }
        AlertDescription::UnknownCA | AlertDescription::BadCertificate => {
            "the server does not take our certificate".to_owned()
        }
        alert => format!("the server ended it: {alert:?}"),
    }
}

fn certificate(why: &CertificateError, host: &str) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            format!("the certificate is of an issuer that is not known here; {NAME_ITS_ISSUER}")
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<String> = presented.iter().map(|name| plain(name)).collect();
            match names.is_empty() {
                true => format!(
                    "the certificate names no host (subjectAltName); you connected to {host}"
                ),
                false => format!(
                    "the certificate is for {}; you connected to {host}: use a name that it has",
                    names.join(", ")
                ),
            }
        }
        CertificateError::NotValidForName => {
            format!("the certificate is for another host; you connected to {host}")
        }
        CertificateError::ExpiredContext { not_after, time } => format!(
            "the certificate ended on {}, and this machine's clock says {}",
            day(*not_after),
            day(*time)
        ),
        CertificateError::Expired => "the certificate has ended".to_owned(),
        CertificateError::NotValidYetContext { not_before, time } => format!(
            "the certificate begins on {}, and this machine's clock says {}",
            day(*not_before),
            day(*time)
        ),
        CertificateError::NotValidYet => "the certificate has not begun yet".to_owned(),
        CertificateError::Revoked => "the certificate is revoked".to_owned(),
        CertificateError::BadEncoding => "the certificate is malformed".to_owned(),
        CertificateError::BadSignature => {
            format!("the certificate has a signature that is not its issuer's; {NAME_ITS_ISSUER}")
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the certificate is not one for servers (extended key usage)".to_owned()
        }
        // webpki has no word of its own for this.
        CertificateError::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => format!(
            "the certificate is that of an authority, and of none that is known here; {NAME_ITS_ISSUER}"
        ),
        other => format!("the certificate is not taken: {other}"),
    }
}

/// A name as rustls shows it: `DnsName("a")`, `IpAddress(127.0.0.1)`.
fn plain(shown: &str) -> String {
    let inside = shown.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(shown).trim_matches('"').to_owned()
}

/// The day of a moment (UTC), by the calendar of Gregory (H. Hinnant, chrono-compatible date algorithms).
fn day(at: UnixTime) -> String {
    let days = at.as_secs() / 86_400 + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + 400 * era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn days() {
        let day = |s| day(UnixTime::since_unix_epoch(Duration::from_secs(s)));
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_795_539_076), "2026-11-24");
    }

    #[test]
    fn names_are_shown_as_they_are() {
        assert_eq!(plain("DnsName(\"a.example\")"), "a.example");
        assert_eq!(plain("IpAddress(127.0.0.1)"), "127.0.0.1");
        assert!(is_of_tls(&[0x15, 3, 3, 0, 2]) && !is_of_tls(b"0\x0c\x02"));
    }
}
