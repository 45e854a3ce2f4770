//! C_GenerateKeyPair: a key in a name space that cryptod has for the program.

use crate::abi::*;
use crate::key::{self, ED25519_OID, X25519_OID};
use crate::object::{Attribute, number, objects};
use crate::{module, registry, sessions};
use keyway_client::{Curve, KeyPolicy};
use keyway_engine::is_key_name;

/// An attribute that both templates may have; that of the private key counts.
struct Wanted {
    public: Vec<Attribute>,
    private: Vec<Attribute>,
}

impl Wanted {
    fn private(&self, kind: Ulong) -> Option<&[u8]> {
        find(&self.private, kind)
    }

    fn any(&self, kind: Ulong) -> Option<&[u8]> {
        self.private(kind).or_else(|| find(&self.public, kind))
    }

    fn is(&self, kind: Ulong, otherwise: bool) -> bool {
        self.private(kind).map_or(otherwise, |value| value != [0])
    }
}

fn find(template: &[Attribute], kind: Ulong) -> Option<&[u8]> {
    template.iter().find(|(it, _)| *it == kind).map(|(_, value)| &**value)
}

pub extern "C" fn generate_key_pair(
    session: Ulong,
    mechanism: MechanismArgument,
    public: Template,
    public_count: Ulong,
    private: Template,
    private_count: Ulong,
    mut public_handle: Place<Ulong>,
    mut private_handle: Place<Ulong>,
) -> Rv {
    guard(|| {
        let module = module::current()?;
        sessions::with(session, |_| Ok(()))?;
        if public_handle.is_none() || private_handle.is_none() {
            return Err(ARGUMENTS_BAD);
        }
        let (mechanism, _) = mechanism.read()?;
        let wanted =
            Wanted { public: public.read(public_count)?, private: private.read(private_count)? };
        let kind = kind(mechanism, &wanted)?;
        check(&wanted)?;
        let failed = |why| module.failed(&why, TEMPLATE_INCONSISTENT);
        let prefixes = module.client.name_spaces().map_err(failed)?;
        let name = name(&wanted, prefixes.first().ok_or(TOKEN_WRITE_PROTECTED)?, &prefixes)?;
        let (algorithms, callers) = (vec![kind], Vec::new());
        let policy = KeyPolicy { algorithms, purposes: purposes(mechanism, &wanted), callers };
        let key = module.client.generate(&name, policy).map_err(failed)?;
        let handle = |object| registry::handle(object).ok_or(HOST_MEMORY);
        let [private, public] =
            <[_; 2]>::try_from(objects(vec![(key, Vec::new())])).map_err(|_| GENERAL_ERROR)?;
        private_handle.put(handle(private)?)?;
        public_handle.put(handle(public)?)
    })
}

/// The kind of key, as cryptod calls it.
fn kind(mechanism: Ulong, wanted: &Wanted) -> Result<String, Rv> {
    let parameters = wanted.any(ATTRIBUTE_EC_PARAMS);
    match mechanism {
        RSA_PKCS_KEY_PAIR_GEN => {
            let bits = wanted.any(ATTRIBUTE_MODULUS_BITS).ok_or(TEMPLATE_INCOMPLETE)?;
            let bits = bits.try_into().map(Ulong::from_ne_bytes);
            let exponent = wanted.any(ATTRIBUTE_PUBLIC_EXPONENT).unwrap_or(&[1, 0, 1]);
            if keyway_client::without_zeros(exponent) != [1, 0, 1] {
                return Err(ATTRIBUTE_VALUE_INVALID);
            }
            match bits.map_err(|_| ATTRIBUTE_VALUE_INVALID)? {
                bits @ (2048 | 3072 | 4096 | 8192) => Ok(format!("rsa-{bits}")),
                _ => Err(KEY_SIZE_RANGE),
            }
        }
        EC_KEY_PAIR_GEN => {
            let parameters = parameters.ok_or(TEMPLATE_INCOMPLETE)?;
            let curve = Curve::ALL.into_iter().find(|curve| key::oid(*curve) == parameters);
            Ok(match curve.ok_or(CURVE_NOT_SUPPORTED)? {
                Curve::P256 => "ec-p256",
                Curve::P384 => "ec-p384",
                Curve::P521 => "ec-p521",
            }
            .to_owned())
        }
        EC_EDWARDS_KEY_PAIR_GEN => match parameters.ok_or(TEMPLATE_INCOMPLETE)? {
            // By its object identifier, or by a name as a PrintableString (PKCS #11 3.0 § 2.3.10).
            b"\x13\x0cedwards25519" => Ok("ed25519".to_owned()),
            oid if oid == ED25519_OID => Ok("ed25519".to_owned()),
            _ => Err(CURVE_NOT_SUPPORTED),
        },
        EC_MONTGOMERY_KEY_PAIR_GEN => match parameters.ok_or(TEMPLATE_INCOMPLETE)? {
            // OpenSC's has one byte too few for its length.
            b"\x13\x0acurve25519" | b"\x13\x0bcurve25519" => Ok("x25519".to_owned()),
            oid if oid == X25519_OID => Ok("x25519".to_owned()),
            _ => Err(CURVE_NOT_SUPPORTED),
        },
        _ => Err(MECHANISM_INVALID),
    }
}

/// Refuses a key that could be taken out, one of a session, and one with another identifier than its own.
fn check(wanted: &Wanted) -> Result<(), Rv> {
    let class = wanted.private(ATTRIBUTE_CLASS);
    if class.is_some_and(|class| class != number(CLASS_PRIVATE_KEY))
        || !wanted.is(ATTRIBUTE_TOKEN, false)
        || wanted.is(ATTRIBUTE_EXTRACTABLE, false)
        || !wanted.is(ATTRIBUTE_SENSITIVE, true)
        || wanted.any(ATTRIBUTE_ID).is_some_and(|id| !id.is_empty())
    {
        return Err(TEMPLATE_INCONSISTENT);
    }
    Ok(())
}

/// Its label with the name space before it, or a name at random.
fn name(wanted: &Wanted, first: &str, prefixes: &[String]) -> Result<String, Rv> {
    let label = wanted.any(ATTRIBUTE_LABEL).filter(|label| !label.is_empty());
    let Some(label) = label else {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| FUNCTION_FAILED)?;
        return Ok(format!("{first}{:016x}", u64::from_ne_bytes(random)));
    };
    let label = str::from_utf8(label).map_err(|_| ATTRIBUTE_VALUE_INVALID)?;
    let is_whole = prefixes.iter().any(|prefix| label.starts_with(prefix));
    let name = if is_whole { label.to_owned() } else { format!("{first}{label}") };
    if is_key_name(&name) { Ok(name) } else { Err(ATTRIBUTE_VALUE_INVALID) }
}

/// The purposes that the template of the private key names and such a key has; to sign, if it names none. Programs name
/// purposes that keys of other kinds have.
fn purposes(mechanism: Ulong, wanted: &Wanted) -> Vec<String> {
    let has: &[(Ulong, &str)] = match mechanism {
        RSA_PKCS_KEY_PAIR_GEN => &[(ATTRIBUTE_SIGN, "sign"), (ATTRIBUTE_DECRYPT, "decrypt")],
        EC_KEY_PAIR_GEN => &[(ATTRIBUTE_SIGN, "sign"), (ATTRIBUTE_DERIVE, "agree")],
        EC_MONTGOMERY_KEY_PAIR_GEN => &[(ATTRIBUTE_DERIVE, "agree")],
        _ => &[(ATTRIBUTE_SIGN, "sign")],
    };
    let named = has.iter().filter(|(kind, _)| wanted.is(*kind, false));
    named.map(|(_, purpose)| (*purpose).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(private: &[(Ulong, &[u8])]) -> Wanted {
        let private = private.iter().map(|(kind, value)| (*kind, value.to_vec())).collect();
        Wanted { public: Vec::new(), private }
    }

    #[test]
    fn a_key_that_could_be_taken_out_is_refused() {
        let token: (Ulong, &[u8]) = (ATTRIBUTE_TOKEN, &[1]);
        assert!(check(&wanted(&[token])).is_ok());
        for refused in [
            &[][..],
            &[token, (ATTRIBUTE_EXTRACTABLE, &[1])],
            &[token, (ATTRIBUTE_SENSITIVE, &[0])],
            &[token, (ATTRIBUTE_ID, &[7])],
        ] {
            assert_eq!(check(&wanted(refused)), Err(TEMPLATE_INCONSISTENT));
        }
    }

    #[test]
    fn a_label_becomes_a_name_in_the_name_space() {
        let prefixes = ["app.".to_owned(), "other.".to_owned()];
        let named = |label: &[u8]| name(&wanted(&[(ATTRIBUTE_LABEL, label)]), "app.", &prefixes);
        assert_eq!(named(b"one"), Ok("app.one".to_owned()));
        assert_eq!(named(b"other.one"), Ok("other.one".to_owned()));
        assert_eq!(named(b"No Name"), Err(ATTRIBUTE_VALUE_INVALID));
        assert!(named(b"").unwrap().starts_with("app."));
    }
}
