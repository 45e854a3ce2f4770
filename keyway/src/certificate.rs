//! What a certificate says that decides whether another is needed (RFC 5280 § 4.1).

use crate::moment::Moment;
use keyway_codec::ber::{
    BOOLEAN, INTEGER, OCTET_STRING, Reader, SEQUENCE, context, context_constructed,
};
use std::fmt;
use std::net::IpAddr;
use time::{Date, Month, Time, UtcDateTime};

const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// id-ce-subjectAltName, 2.5.29.17
const SUBJECT_ALTERNATIVE_NAME: [u8; 3] = [0x55, 0x1d, 0x11];

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
    /// When it stops being valid.
    pub not_after: Moment,
    /// What it is for.
    pub names: Vec<Name>,
}

impl<'a> Certificate<'a> {
    /// Reads one in DER; `None` if it is no certificate. Nothing is verified.
    pub fn read(der: &'a [u8]) -> Option<Certificate<'a>> {
        let mut fields = Reader::new(der).nested(SEQUENCE).ok()?.nested(SEQUENCE).ok()?;
        let _version = fields.optional(context_constructed(0)).ok()?;
        let _serial = fields.expect(INTEGER).ok()?;
        let _signature = fields.expect(SEQUENCE).ok()?;
        let issuer = fields.expect(SEQUENCE).ok()?;
        let mut validity = fields.nested(SEQUENCE).ok()?;
        let _not_before = validity.element().ok()?;
        let not_after = moment(validity.element().ok()?)?;
        let subject = fields.expect(SEQUENCE).ok()?;
        let _key = fields.expect(SEQUENCE).ok()?;
        let mut names = Vec::new();
        if let Some(extensions) = fields.optional(context_constructed(3)).ok()? {
            let mut extensions = Reader::new(extensions).nested(SEQUENCE).ok()?;
            while !extensions.is_empty() {
                read_extension(extensions.nested(SEQUENCE).ok()?, &mut names)?;
            }
        }
        Some(Certificate { issuer, subject, not_after, names })
    }
}

/// The parts of a revocation list that we look at (RFC 5280 § 5.1).
#[derive(Debug)]
pub struct RevocationList<'a> {
    /// The issuer's name, encoded.
    pub issuer: &'a [u8],
    /// When the issuer's next one is due, if it says so.
    pub next_update: Option<Moment>,
}

impl<'a> RevocationList<'a> {
    /// Reads one in DER; `None` if it is none. Nothing is verified.
    pub fn read(der: &'a [u8]) -> Option<RevocationList<'a>> {
        let mut fields = Reader::new(der).nested(SEQUENCE).ok()?.nested(SEQUENCE).ok()?;
        let _version = fields.optional(INTEGER).ok()?;
        let _signature = fields.expect(SEQUENCE).ok()?;
        let issuer = fields.expect(SEQUENCE).ok()?;
        let _this_update = moment(fields.element().ok()?)?;
        let next = [UTC_TIME, GENERALIZED_TIME]
            .into_iter()
            .find_map(|tag| Some((tag, fields.optional(tag).ok()??)));
        let next_update = match next {
            None => None,
            Some(time) => Some(moment(time)?),
        };
        Some(RevocationList { issuer, next_update })
    }
}

fn read_extension(mut extension: Reader<'_>, names: &mut Vec<Name>) -> Option<()> {
    let identifier = extension.expect(OBJECT_IDENTIFIER).ok()?;
    let _critical = extension.optional(BOOLEAN).ok()?;
    let value = extension.expect(OCTET_STRING).ok()?;
    if identifier == SUBJECT_ALTERNATIVE_NAME {
        let mut list = Reader::new(value).nested(SEQUENCE).ok()?;
        while !list.is_empty() {
            names.extend(name(list.element().ok()?));
        }
    }
    Some(())
}

fn name((tag, contents): (u8, &[u8])) -> Option<Name> {
    const DNS_NAME: u8 = context(2);
    const IP_ADDRESS: u8 = context(7);
    match tag {
        DNS_NAME => Some(Name::Dns(String::from_utf8(contents.to_vec()).ok()?)),
        IP_ADDRESS => match contents.len() {
            4 => Some(Name::Ip(<[u8; 4]>::try_from(contents).ok()?.into())),
            _ => Some(Name::Ip(<[u8; 16]>::try_from(contents).ok()?.into())),
        },
        _ => None,
    }
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280 § 4.1.2.5).
fn moment((tag, contents): (u8, &[u8])) -> Option<Moment> {
    let text = std::str::from_utf8(contents).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i32 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let pair = |index: usize| rest.get(2 * index..2 * index + 2)?.parse::<u8>().ok();
    let date = Date::from_calendar_date(year, Month::try_from(pair(0)?).ok()?, pair(1)?).ok()?;
    let time = Time::from_hms(pair(2)?, pair(3)?, pair(4)?).ok()?;
    Some(Moment::from_unix_s(UtcDateTime::new(date, time).unix_timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_time() {
        let at = |tag, text: &str| moment((tag, text.as_bytes())).map(|at| at.to_string());
        assert_eq!(at(UTC_TIME, "491231235959Z").unwrap(), "2049-12-31T23:59:59Z");
        assert_eq!(at(UTC_TIME, "500101000000Z").unwrap(), "1950-01-01T00:00:00Z");
        assert_eq!(at(GENERALIZED_TIME, "20500101000000Z").unwrap(), "2050-01-01T00:00:00Z");
        assert_eq!(at(UTC_TIME, "491331235959Z"), None);
        assert_eq!(at(UTC_TIME, "4912"), None);
        assert_eq!(at(0x0c, "491231235959Z"), None);
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

    #[test]
    fn what_is_no_certificate_is_none() {
        for der in [&b""[..], &[0x30, 0x00], &[0x30, 0x80, 0x00], &[0x30, 0x02, 0x30, 0x00]] {
            assert!(Certificate::read(der).is_none() && RevocationList::read(der).is_none());
        }
    }
}
