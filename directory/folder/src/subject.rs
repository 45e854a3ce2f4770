//! Whose a certificate is.

use keyway_codec::dn::{Ava, Dn};
use rcgen::{DistinguishedName, DnType};
use std::str::FromStr;

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

/// The subject of a certificate: a DN whose attributes an authority has names for.
#[derive(Clone, Debug)]
pub struct CertificateSubject {
    dn: Dn,
    name: DistinguishedName,
}

impl FromStr for CertificateSubject {
    /// A sentence that says what is wrong.
    type Err = String;

    fn from_str(text: &str) -> Result<CertificateSubject, String> {
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
            let value = value.map_err(|_| format!("the value of {} is no text", ava.attribute))?;
            name.push(kind, value);
        }
        Ok(CertificateSubject { dn, name })
    }
}

impl CertificateSubject {
    /// It as a DN.
    pub fn dn(&self) -> &Dn {
        &self.dn
    }

    /// It in the order of X.509.
    pub fn name(&self) -> &DistinguishedName {
        &self.name
    }
}

fn kind(ava: &Ava) -> Result<DnType, String> {
    let is_it = |name: &str| name.eq_ignore_ascii_case(&ava.attribute);
    let known = TYPES.iter().find(|(name, _)| is_it(name)).map(|(_, kind)| kind.clone());
    let numbered = NUMBERED.iter().find(|(name, _)| is_it(name));
    let kind = known.or_else(|| numbered.map(|(_, oid)| DnType::CustomDnType(oid.to_vec())));
    kind.ok_or_else(|| format!("{} is not one of cn, uid, ou, o, l, st, c, dc", ava.attribute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_read() {
        let subject: CertificateSubject = "uid=ann, ou=People,o=Example".parse().unwrap();
        assert_eq!(subject.name.iter().count(), 3);
        for wrong in ["", "cn=a,cn=b", "dc=a,dc=b", "mail=a@b", "cn"] {
            assert!(wrong.parse::<CertificateSubject>().is_err(), "{wrong}");
        }
    }
}
