//! Objects of the token: a key is a private key, its public key, and its certificates.

use crate::abi::{self, Rv, Ulong};
use crate::key::{self, ED25519_OID, TokenKey, X25519_OID};
use crate::scheme::{decryption_mechanisms, signing_mechanisms};
use keyway_client::{Hash, KeyAndChain, PublicKey};
use keyway_wire::CertificateFields;
use keyway_wire::der::element;
use std::collections::HashSet;
use std::sync::Arc;

const OCTET_STRING: u8 = 0x04;
const YES: &[u8] = &[1];
const NO: &[u8] = &[0];
/// CKC_X_509.
const X_509: Ulong = 0;
/// CK_CERTIFICATE_CATEGORY: the token's own, and an authority's.
const OWN: Ulong = 1;
const AUTHORITY: Ulong = 2;

/// An attribute: its type and its value, numbers as CK_ULONG.
pub type Attribute = (Ulong, Vec<u8>);

/// Attributes that a private key has and does not show.
const SENSITIVE: [Ulong; 7] = [
    abi::ATTRIBUTE_VALUE,
    abi::ATTRIBUTE_PRIVATE_EXPONENT,
    abi::ATTRIBUTE_PRIME_1,
    abi::ATTRIBUTE_PRIME_2,
    abi::ATTRIBUTE_EXPONENT_1,
    abi::ATTRIBUTE_EXPONENT_2,
    abi::ATTRIBUTE_COEFFICIENT,
];

/// An object.
#[derive(Debug, PartialEq, Eq)]
pub struct Object {
    /// CKO_...
    pub class: Ulong,
    /// The key that it is a half of; a certificate is of none.
    pub key: Option<Arc<TokenKey>>,
    attributes: Vec<Attribute>,
}

impl Object {
    /// An attribute's value.
    ///
    /// # Errors
    /// If it is a secret of a private key, or the object has none of that type.
    pub fn value(&self, kind: Ulong) -> Result<&[u8], Rv> {
        if self.class == abi::CLASS_PRIVATE_KEY && SENSITIVE.contains(&kind) {
            return Err(abi::ATTRIBUTE_IS_SENSITIVE);
        }
        let found = self.attributes.iter().find(|(it, _)| *it == kind);
        found.map(|(_, value)| &**value).ok_or(abi::ATTRIBUTE_TYPE_INVALID)
    }

    /// Whether it has all of these values.
    pub fn matches(&self, template: &[Attribute]) -> bool {
        template.iter().all(|(kind, value)| self.value(*kind) == Ok(value))
    }

    /// About how many bytes it has.
    pub fn bytes(&self) -> usize {
        self.attributes.iter().map(|(_, value)| value.len()).sum()
    }
}

/// The objects of keys with their certificates: those of a key, and then the certificates of issuers, each once. None
/// for kinds of keys that are not offered here.
pub fn objects(keys: Vec<KeyAndChain>) -> Vec<Object> {
    let (mut all, mut issuers, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for (key, certificates) in keys {
        let Some(key) = TokenKey::new(key).map(Arc::new) else { continue };
        let own = certificates.first().and_then(|der| Some((der, CertificateFields::read(der)?)));
        let subject = own.as_ref().map_or(&[][..], |(_, fields)| fields.subject);
        all.extend([private_key(&key, subject), public_key(&key, subject)]);
        if let Some((der, fields)) = own {
            all.push(certificate(&key.name, &key::id(&key.public), OWN, der, &fields));
            seen.insert(der.clone());
        }
        let chain = certificates.into_iter().enumerate().skip(1);
        issuers.extend(chain.map(|(at, der)| (format!("{} issuer {at}", key.name), der)));
    }
    for (label, der) in issuers {
        let Some(fields) = CertificateFields::read(&der) else { continue };
        if seen.insert(der.clone()) {
            let public = PublicKey::read(fields.key);
            let id =
                public.map_or_else(|| Hash::Sha1.digest(fields.key), |public| key::id(&public));
            all.push(certificate(&label, &id, AUTHORITY, &der, &fields));
        }
    }
    all
}

/// A number as an attribute has it.
pub fn number(number: Ulong) -> Vec<u8> {
    number.to_ne_bytes().to_vec()
}

/// A flag as an attribute has it.
pub fn flag(flag: bool) -> Vec<u8> {
    if flag { YES } else { NO }.to_vec()
}

/// Attributes of every object.
fn common(class: Ulong, label: &str, id: &[u8]) -> Vec<Attribute> {
    vec![
        (abi::ATTRIBUTE_CLASS, number(class)),
        (abi::ATTRIBUTE_TOKEN, YES.to_vec()),
        // No login is needed to see it.
        (abi::ATTRIBUTE_PRIVATE, NO.to_vec()),
        (abi::ATTRIBUTE_MODIFIABLE, NO.to_vec()),
        (abi::ATTRIBUTE_COPYABLE, NO.to_vec()),
        (abi::ATTRIBUTE_DESTROYABLE, NO.to_vec()),
        (abi::ATTRIBUTE_LABEL, label.as_bytes().to_vec()),
        (abi::ATTRIBUTE_ID, id.to_vec()),
        (abi::ATTRIBUTE_START_DATE, Vec::new()),
        (abi::ATTRIBUTE_END_DATE, Vec::new()),
    ]
}

/// Attributes of both halves of a key.
fn of_key(class: Ulong, key: &TokenKey, subject: &[u8]) -> Vec<Attribute> {
    let mut all = common(class, &key.name, &key::id(&key.public));
    let kind = match &key.public {
        PublicKey::Rsa { n, e } => {
            all.push((abi::ATTRIBUTE_MODULUS, n.clone()));
            all.push((abi::ATTRIBUTE_PUBLIC_EXPONENT, e.clone()));
            abi::TYPE_RSA
        }
        PublicKey::Ec { curve, point } => {
            all.push((abi::ATTRIBUTE_EC_PARAMS, key::oid(*curve).to_vec()));
            all.push((abi::ATTRIBUTE_EC_POINT, element(OCTET_STRING, &[point])));
            abi::TYPE_EC
        }
        PublicKey::Ed25519(point) => {
            all.push((abi::ATTRIBUTE_EC_PARAMS, ED25519_OID.to_vec()));
            all.push((abi::ATTRIBUTE_EC_POINT, element(OCTET_STRING, &[point])));
            abi::TYPE_EC_EDWARDS
        }
        PublicKey::X25519(key) => {
            all.push((abi::ATTRIBUTE_EC_PARAMS, X25519_OID.to_vec()));
            all.push((abi::ATTRIBUTE_EC_POINT, element(OCTET_STRING, &[key])));
            abi::TYPE_EC_MONTGOMERY
        }
        // `TokenKey::new` makes none of these.
        PublicKey::MlDsa { .. } => abi::UNAVAILABLE,
    };
    all.extend([
        (abi::ATTRIBUTE_KEY_TYPE, number(kind)),
        (abi::ATTRIBUTE_SUBJECT, subject.to_vec()),
        (abi::ATTRIBUTE_PUBLIC_KEY_INFO, key.info.clone()),
        (abi::ATTRIBUTE_LOCAL, NO.to_vec()),
        (abi::ATTRIBUTE_KEY_GEN_MECHANISM, number(abi::UNAVAILABLE)),
    ]);
    all
}

fn private_key(key: &Arc<TokenKey>, subject: &[u8]) -> Object {
    let (signing, decryption) = (signing_mechanisms(key), decryption_mechanisms(key));
    let mut attributes = of_key(abi::CLASS_PRIVATE_KEY, key, subject);
    attributes.extend([
        (abi::ATTRIBUTE_SENSITIVE, YES.to_vec()),
        (abi::ATTRIBUTE_ALWAYS_SENSITIVE, YES.to_vec()),
        (abi::ATTRIBUTE_EXTRACTABLE, NO.to_vec()),
        (abi::ATTRIBUTE_NEVER_EXTRACTABLE, YES.to_vec()),
        (abi::ATTRIBUTE_ALWAYS_AUTHENTICATE, NO.to_vec()),
        (abi::ATTRIBUTE_WRAP_WITH_TRUSTED, NO.to_vec()),
        (abi::ATTRIBUTE_SIGN, flag(!signing.is_empty())),
        (abi::ATTRIBUTE_SIGN_RECOVER, NO.to_vec()),
        (abi::ATTRIBUTE_DECRYPT, flag(!decryption.is_empty())),
        (abi::ATTRIBUTE_UNWRAP, NO.to_vec()),
        (abi::ATTRIBUTE_DERIVE, flag(key.agreement().is_some())),
    ]);
    let derivation = key.agreement().map(|_| abi::ECDH1_DERIVE);
    let mut mechanisms = [signing, decryption].concat();
    mechanisms.extend(derivation);
    mechanisms.sort_unstable();
    mechanisms.dedup();
    let mechanisms = mechanisms.into_iter().flat_map(Ulong::to_ne_bytes).collect();
    attributes.push((abi::ATTRIBUTE_ALLOWED_MECHANISMS, mechanisms));
    Object { class: abi::CLASS_PRIVATE_KEY, key: Some(key.clone()), attributes }
}

fn public_key(key: &Arc<TokenKey>, subject: &[u8]) -> Object {
    let mut attributes = of_key(abi::CLASS_PUBLIC_KEY, key, subject);
    if let PublicKey::Rsa { .. } = &key.public {
        attributes.push((abi::ATTRIBUTE_MODULUS_BITS, number(key.public.bits() as Ulong)));
    }
    attributes.extend([
        (abi::ATTRIBUTE_VERIFY, flag(!signing_mechanisms(key).is_empty())),
        (abi::ATTRIBUTE_VERIFY_RECOVER, NO.to_vec()),
        (abi::ATTRIBUTE_ENCRYPT, flag(!decryption_mechanisms(key).is_empty())),
        (abi::ATTRIBUTE_WRAP, NO.to_vec()),
        (abi::ATTRIBUTE_DERIVE, flag(key.agreement().is_some())),
        (abi::ATTRIBUTE_TRUSTED, NO.to_vec()),
    ]);
    Object { class: abi::CLASS_PUBLIC_KEY, key: Some(key.clone()), attributes }
}

fn certificate(
    label: &str,
    id: &[u8],
    category: Ulong,
    der: &[u8],
    fields: &CertificateFields<'_>,
) -> Object {
    let mut attributes = common(abi::CLASS_CERTIFICATE, label, id);
    attributes.extend([
        (abi::ATTRIBUTE_CERTIFICATE_TYPE, number(X_509)),
        (abi::ATTRIBUTE_CERTIFICATE_CATEGORY, number(category)),
        (abi::ATTRIBUTE_TRUSTED, NO.to_vec()),
        (abi::ATTRIBUTE_SUBJECT, fields.subject.to_vec()),
        (abi::ATTRIBUTE_ISSUER, fields.issuer.to_vec()),
        (abi::ATTRIBUTE_SERIAL_NUMBER, fields.serial.to_vec()),
        (abi::ATTRIBUTE_PUBLIC_KEY_INFO, fields.key.to_vec()),
        (abi::ATTRIBUTE_VALUE, der.to_vec()),
    ]);
    Object { class: abi::CLASS_CERTIFICATE, key: None, attributes }
}
