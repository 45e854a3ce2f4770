//! A stored `userPassword` value, understood: its scheme, its salt, its cost, the expected bytes.
//!
//! Schemes as OpenLDAP (slapd-pw-sha2, pw-pbkdf2, pw-argon2), 389-ds and passlib write them;
//! names are matched without regard to case (RFC 2307 § 5.3 gives the `{scheme}` form).

use crate::cost::Argon2Cost;
use crate::error::StoredError;
use crate::limits::*;
use crate::scheme::Scheme;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use keyway_engine::{Algorithm, Cost, is_key_name};

/// Base64 as various writers left it: padded or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_encode_padding(false)
        .with_decode_allow_trailing_bits(true),
);

/// bcrypt's own alphabet.
const BCRYPT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::BCRYPT,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// The shortest hash of crypt(3), in characters: DES with two of salt.
const DES_CRYPT_CHARACTERS: usize = 13;

/// A stored value, understood.
#[cfg_attr(test, derive(Debug))]
#[derive(PartialEq, Eq)]
pub(crate) enum Stored<'a> {
    /// The password itself.
    Clear(&'a [u8]),
    /// A value that no password matches: the account is locked.
    Locked,
    /// A digest of password and salt.
    Digest { algorithm: Algorithm, digest: Vec<u8>, salt: Vec<u8> },
    /// The output of a slow derivation.
    Derived {
        algorithm: Algorithm,
        cost: Cost,
        /// The name of the key that the password was peppered with.
        pepper: Option<String>,
        salt: Vec<u8>,
        expected: Vec<u8>,
    },
}

impl Stored<'_> {
    /// Which scheme it is of, if it is one that may or may not be accepted.
    pub fn scheme(&self) -> Option<Scheme> {
        use Algorithm::*;
        match self {
            Stored::Clear(_) | Stored::Locked => None,
            Stored::Digest { algorithm, salt, .. } => {
                Some(match (*algorithm == Md5, salt.is_empty()) {
                    (true, true) => Scheme::Md5,
                    (true, false) => Scheme::Smd5,
                    (false, true) => Scheme::Sha,
                    (false, false) => Scheme::Ssha,
                })
            }
            Stored::Derived { algorithm: Argon2id | Argon2i, .. } => None,
            Stored::Derived { algorithm: Sha256Crypt | Sha512Crypt, .. } => Some(Scheme::ShaCrypt),
            Stored::Derived { algorithm: Bcrypt, .. } => Some(Scheme::Bcrypt),
            Stored::Derived { algorithm: Md5Crypt, .. } => Some(Scheme::Md5Crypt),
            Stored::Derived { .. } => Some(Scheme::Pbkdf2),
        }
    }
}

/// Splits `{SCHEME}rest`; `None` if the value does not begin with a scheme.
fn split_scheme(value: &[u8]) -> Option<(&str, &[u8])> {
    let rest = value.strip_prefix(b"{")?;
    let end = rest.iter().position(|byte| *byte == b'}')?;
    let (name, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
    let name = std::str::from_utf8(name).ok()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    (!name.is_empty() && name.chars().all(fits)).then_some((name, rest))
}

pub(crate) fn parse(value: &[u8]) -> Result<Stored<'_>, StoredError> {
    use Algorithm::*;
    if is_lock(value) {
        return Ok(Stored::Locked);
    }
    let Some((name, rest)) = split_scheme(value) else {
        return Ok(Stored::Clear(value));
    };
    let name = name.to_ascii_uppercase();
    if matches!(name.as_str(), "CLEARTEXT" | "CLEAR") {
        return Ok(Stored::Clear(rest));
    }
    if value.len() > STORED_BYTES_MAX {
        return Err(StoredError::Malformed("it is too long"));
    }
    // No hash begins so, and what stands behind it is kept for the day when it is unlocked.
    if KNOWN.contains(&name.as_str()) && matches!(rest.first(), Some(b'!' | b'*')) {
        return Ok(Stored::Locked);
    }
    let digest = |algorithm, salted| digest(rest, algorithm, salted);
    match name.as_str() {
        "MD5" => digest(Md5, false),
        "SMD5" => digest(Md5, true),
        "SHA" => digest(Sha1, false),
        "SSHA" => digest(Sha1, true),
        "SHA256" => digest(Sha256, false),
        "SSHA256" => digest(Sha256, true),
        "SHA384" => digest(Sha384, false),
        "SSHA384" => digest(Sha384, true),
        "SHA512" => digest(Sha512, false),
        "SSHA512" => digest(Sha512, true),
        "PBKDF2" | "PBKDF2-SHA1" => pbkdf2(text(rest)?, Pbkdf2Sha1, 20),
        "PBKDF2-SHA256" => pbkdf2(text(rest)?, Pbkdf2Sha256, 32),
        "PBKDF2-SHA512" => pbkdf2(text(rest)?, Pbkdf2Sha512, 64),
        "PBKDF2_SHA256" => pbkdf2_packed(rest),
        "BCRYPT" => bcrypt(text(rest)?),
        "CRYPT" => crypt(text(rest)?),
        "ARGON2" | "ARGON2I" | "ARGON2ID" => argon2(text(rest)?),
        _ => Err(StoredError::UnknownScheme),
    }
}

/// The schemes that are understood, apart from those of passwords as they are.
const KNOWN: [&str; 20] = [
    "MD5",
    "SMD5",
    "SHA",
    "SSHA",
    "SHA256",
    "SSHA256",
    "SHA384",
    "SSHA384",
    "SHA512",
    "SSHA512",
    "PBKDF2",
    "PBKDF2-SHA1",
    "PBKDF2-SHA256",
    "PBKDF2-SHA512",
    "PBKDF2_SHA256",
    "BCRYPT",
    "CRYPT",
    "ARGON2",
    "ARGON2I",
    "ARGON2ID",
];

/// Whether a value is a lock and nothing else, as in shadow(5), or one in front of a whole value.
fn is_lock(value: &[u8]) -> bool {
    let locked = value.strip_prefix(b"!").map(|rest| rest.strip_prefix(b"!").unwrap_or(rest));
    let whole = locked.is_some_and(|rest| rest.is_empty() || split_scheme(rest).is_some());
    whole || matches!(value, b"*" | b"!*" | b"*LK*")
}

/// The label for the scheme of a value that cannot be verified, in a report.
pub(crate) fn label(value: &[u8], why: StoredError) -> String {
    let name = split_scheme(value).map_or("", |(name, _)| name);
    // Text that is no scheme at all may be as long as it likes, and a secret.
    let name = name.get(..SCHEME_NAME_BYTES_MAX).unwrap_or(name).to_ascii_uppercase();
    let why = match why {
        StoredError::UnknownScheme => "",
        StoredError::Malformed(_) => " (malformed)",
        StoredError::TooCostly => " (too costly)",
        StoredError::NotAccepted(_) => " (not accepted)",
    };
    format!("{{{name}}}{why}")
}

fn text(bytes: &[u8]) -> Result<&str, StoredError> {
    std::str::from_utf8(bytes).map_err(|_| StoredError::Malformed("it is not text"))
}

fn base64(text: impl AsRef<[u8]>) -> Result<Vec<u8>, StoredError> {
    BASE64.decode(text).map_err(|_| StoredError::Malformed("its base64 does not decode"))
}

/// passlib's "adapted base64" has `.` for `+` and no padding; plain base64 is taken as well.
fn adapted_base64(text: &str) -> Result<Vec<u8>, StoredError> {
    base64(text.replace('.', "+"))
}

fn number(text: &str) -> Result<u32, StoredError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(StoredError::Malformed("a number was expected"));
    }
    text.parse().map_err(|_| StoredError::TooCostly)
}

/// base64(digest) or base64(digest || salt).
fn digest(rest: &[u8], algorithm: Algorithm, salted: bool) -> Result<Stored<'static>, StoredError> {
    let mut digest = base64(rest)?;
    let length = algorithm.output_bytes().unwrap_or(usize::MAX);
    if digest.len() < length || (!salted && digest.len() != length) {
        return Err(StoredError::Malformed("its digest has the wrong length"));
    }
    let salt = digest.split_off(length);
    Ok(Stored::Digest { algorithm, digest, salt })
}

/// `iterations$salt$hash`, as passlib, OpenLDAP's pw-pbkdf2 and 389-ds write it.
fn pbkdf2(
    rest: &str,
    algorithm: Algorithm,
    block_bytes: usize,
) -> Result<Stored<'static>, StoredError> {
    let mut parts = rest.split('$');
    let (Some(iterations), Some(salt), Some(hash), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(StoredError::Malformed("iterations$salt$hash was expected"));
    };
    let (iterations, salt) = (number(iterations)?, adapted_base64(salt)?);
    pbkdf2_stored(algorithm, iterations, salt, adapted_base64(hash)?, block_bytes)
}

/// 389-ds before its second pluggable format: base64 of iterations (4 bytes, big-endian), a salt
/// of 64 bytes and 256 derived bytes.
fn pbkdf2_packed(rest: &[u8]) -> Result<Stored<'static>, StoredError> {
    let bytes = base64(rest)?;
    let wrong = StoredError::Malformed("its packed form has the wrong length");
    let (iterations, bytes) = bytes.split_first_chunk::<4>().ok_or(wrong)?;
    let (salt, hash) = bytes.split_first_chunk::<64>().ok_or(wrong)?;
    let iterations = u32::from_be_bytes(*iterations);
    pbkdf2_stored(Algorithm::Pbkdf2Sha256, iterations, salt.to_vec(), hash.to_vec(), 32)
}

/// PBKDF2's blocks do not depend on each other and an attacker needs only the first, so that is
/// all we derive and compare: a longer stored hash costs its writer time and gains nothing.
fn pbkdf2_stored(
    algorithm: Algorithm,
    iterations: u32,
    salt: Vec<u8>,
    mut expected: Vec<u8>,
    block_bytes: usize,
) -> Result<Stored<'static>, StoredError> {
    if iterations == 0 {
        return Err(StoredError::Malformed("it has no iterations"));
    }
    if iterations > PBKDF2_ITERATIONS_MAX {
        return Err(StoredError::TooCostly);
    }
    expected.truncate(block_bytes);
    derived(algorithm, Cost::Pbkdf2 { iterations }, salt, expected)
}

/// A value that passes here is one that the engine takes: a stored value must never make a check fail.
fn derived(
    algorithm: Algorithm,
    cost: Cost,
    salt: Vec<u8>,
    expected: Vec<u8>,
) -> Result<Stored<'static>, StoredError> {
    if expected.len() < DIGEST_BYTES_MIN {
        return Err(StoredError::Malformed("its hash is too short"));
    }
    if expected.len() > DERIVED_BYTES_MAX {
        return Err(StoredError::Malformed("its hash is too long"));
    }
    if salt.len() > SALT_BYTES_MAX {
        return Err(StoredError::Malformed("its salt is too long"));
    }
    Ok(Stored::Derived { algorithm, cost, pepper: None, salt, expected })
}

/// `$2b$NN$` with 22 characters of salt and 31 of hash; `$2a$` and `$2y$` are the same but for what
/// old programs did wrong.
fn bcrypt(rest: &str) -> Result<Stored<'static>, StoredError> {
    let wrong = StoredError::Malformed("$2b$NN$ with 53 characters was expected");
    let Some(rest) = ["$2a$", "$2b$", "$2y$"].iter().find_map(|form| rest.strip_prefix(form))
    else {
        return Err(StoredError::UnknownScheme);
    };
    let (rounds, rest) = rest.split_once('$').ok_or(wrong)?;
    let log_rounds = number(rounds)?;
    if rounds.len() != 2 || log_rounds < BCRYPT_LOG_ROUNDS_MIN {
        return Err(wrong);
    }
    if log_rounds > BCRYPT_LOG_ROUNDS_MAX {
        return Err(StoredError::TooCostly);
    }
    let (salt, hash) = rest.split_at_checked(22).ok_or(wrong)?;
    let decode = |text| BCRYPT_BASE64.decode(text).map_err(|_| wrong);
    let (salt, expected) = (decode(salt)?, decode(hash)?);
    if Some(expected.len()) != Algorithm::Bcrypt.output_bytes() {
        return Err(wrong);
    }
    derived(Algorithm::Bcrypt, Cost::Bcrypt { log_rounds }, salt, expected)
}

/// `$1$salt$hash`.
fn md5_crypt(rest: &str) -> Result<Stored<'static>, StoredError> {
    let (salt, hash) =
        rest.split_once('$').ok_or(StoredError::Malformed("salt$hash was expected"))?;
    if Some(hash.len()) != Algorithm::Md5Crypt.output_bytes() {
        return Err(StoredError::Malformed("its hash has the wrong length"));
    }
    // crypt(3) looks at 8 characters of salt at most.
    let salt = salt.as_bytes().iter().copied().take(8).collect();
    derived(Algorithm::Md5Crypt, Cost::Md5Crypt, salt, hash.as_bytes().to_vec())
}

/// `$5$[rounds=N$]salt$hash` and `$6$...` of crypt(3), and the older ones. A value that is too short for a
/// hash of any kind (`x`, `NP`, nothing) locks an account. DES is not done.
fn crypt(rest: &str) -> Result<Stored<'static>, StoredError> {
    let (algorithm, rest) = if let Some(rest) = rest.strip_prefix("$5$") {
        (Algorithm::Sha256Crypt, rest)
    } else if let Some(rest) = rest.strip_prefix("$6$") {
        (Algorithm::Sha512Crypt, rest)
    } else if let Some(rest) = rest.strip_prefix("$1$") {
        return md5_crypt(rest);
    } else if rest.starts_with("$2") {
        return bcrypt(rest);
    } else if rest.len() < DES_CRYPT_CHARACTERS && !rest.starts_with(['$', '_']) {
        return Ok(Stored::Locked);
    } else {
        return Err(StoredError::UnknownScheme);
    };
    let (rounds, rest) = match rest.strip_prefix("rounds=").and_then(|rest| rest.split_once('$')) {
        Some((rounds, rest)) => (number(rounds)?.max(SHA_CRYPT_ROUNDS_MIN), rest),
        None => (SHA_CRYPT_ROUNDS_DEFAULT, rest),
    };
    if rounds > SHA_CRYPT_ROUNDS_MAX {
        return Err(StoredError::TooCostly);
    }
    let (salt, hash) =
        rest.split_once('$').ok_or(StoredError::Malformed("salt$hash was expected"))?;
    if Some(hash.len()) != algorithm.output_bytes() {
        return Err(StoredError::Malformed("its hash has the wrong length"));
    }
    // crypt(3) looks at 16 characters of salt at most.
    let salt = salt.as_bytes().iter().copied().take(16).collect();
    derived(algorithm, Cost::ShaCrypt { rounds }, salt, hash.as_bytes().to_vec())
}

/// `$argon2id$v=19$m=..,t=..,p=..[,keyid=..]$salt$hash`: the PHC string format. The keyid is the
/// pepper's name, in base64.
fn argon2(rest: &str) -> Result<Stored<'static>, StoredError> {
    let wrong = StoredError::Malformed("$argon2id$v=19$m=..,t=..,p=..$salt$hash was expected");
    let mut parts = rest.split('$');
    let (Some(""), Some(variant), Some(version), Some(cost), Some(salt), Some(hash), None) = (
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
    ) else {
        return Err(wrong);
    };
    let algorithm = match variant {
        "argon2id" => Algorithm::Argon2id,
        "argon2i" => Algorithm::Argon2i,
        _ => return Err(StoredError::UnknownScheme),
    };
    if version != "v=19" {
        return Err(StoredError::Malformed("only version 1.3 (v=19) of Argon2 is done"));
    }
    let mut cost = cost.split(',');
    let mut field =
        |prefix| number(cost.next().and_then(|field| field.strip_prefix(prefix)).ok_or(wrong)?);
    let (memory_kib, passes, lanes) = (field("m=")?, field("t=")?, field("p=")?);
    let pepper = match cost.next() {
        None => None,
        Some(field) => Some(key_name(field.strip_prefix("keyid=").ok_or(wrong)?)?),
    };
    if cost.next().is_some() || passes == 0 || lanes == 0 {
        return Err(wrong);
    }
    let costly = memory_kib > ARGON2_MEMORY_KIB_MAX
        || passes > ARGON2_PASSES_MAX
        || lanes > ARGON2_LANES_MAX
        || u64::from(memory_kib) * u64::from(passes) > ARGON2_WORK_KIB_MAX;
    if costly {
        return Err(StoredError::TooCostly);
    }
    // The algorithm itself works with at least eight blocks a lane.
    if memory_kib < 8 * lanes {
        return Err(wrong);
    }
    let (salt, expected) = (base64(salt)?, base64(hash)?);
    if salt.len() < ARGON2_SALT_BYTES_MIN {
        return Err(StoredError::Malformed("its salt is too short"));
    }
    let cost = Cost::Argon2 { memory_kib, passes, lanes };
    let mut stored = derived(algorithm, cost, salt, expected)?;
    if let Stored::Derived { pepper: its, .. } = &mut stored {
        *its = pepper;
    }
    Ok(stored)
}

/// The name of a key that a driver of the engine may hold.
fn key_name(keyid: &str) -> Result<String, StoredError> {
    let name = String::from_utf8(base64(keyid)?).ok().filter(|name| is_key_name(name));
    name.ok_or(StoredError::Malformed("its keyid is not the name of a key"))
}

/// Our own stored form.
pub(crate) fn argon2id(
    cost: Argon2Cost,
    pepper: Option<&str>,
    salt: &[u8],
    hash: &[u8],
) -> Vec<u8> {
    let Argon2Cost { memory_kib, passes, lanes } = cost;
    let keyid = pepper.map(|name| format!(",keyid={}", BASE64.encode(name))).unwrap_or_default();
    let (salt, hash) = (BASE64.encode(salt), BASE64.encode(hash));
    format!("{{ARGON2}}$argon2id$v=19$m={memory_kib},t={passes},p={lanes}{keyid}${salt}${hash}")
        .into_bytes()
}

/// `{SSHA512}` of a digest and its salt.
pub(crate) fn salted_sha512(digest: &[u8], salt: &[u8]) -> Vec<u8> {
    format!("{{SSHA512}}{}", BASE64.encode([digest, salt].concat())).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_scheme_is_clear_text() {
        for value in [&b"secret"[..], b"", b"{", b"{}x", b"{SSHA", b"{a b}c", b"x{SSHA}"] {
            assert_eq!(parse(value), Ok(Stored::Clear(value)));
        }
        assert_eq!(parse(b"{cleartext}secret"), Ok(Stored::Clear(b"secret")));
    }

    #[test]
    fn what_does_not_fit_its_scheme_is_named() {
        use StoredError::*;
        let cases: &[(&[u8], StoredError)] = &[
            (b"{NTLM}X03MO1qnZdYdgyfeuILPmQ==", UnknownScheme),
            (b"{CRYPT}ab0123456789.", UnknownScheme),
            (b"{CRYPT}$y$j9T$saltsalt$hash", UnknownScheme),
            (b"{CRYPT}$2x$05$abcdefghijklmnopqrstuu", UnknownScheme),
            (
                b"{CRYPT}$2y$10$abcdefghijklmnopqrstuv",
                Malformed("$2b$NN$ with 53 characters was expected"),
            ),
            (b"{BCRYPT}$2b$16$abcdefghijklmnopqrstuu", TooCostly),
            (b"{CRYPT}$1$saltsalt$short", Malformed("its hash has the wrong length")),
            (b"{SMD5}c2hvcnQ=", Malformed("its digest has the wrong length")),
            (b"{SSHA}???", Malformed("its base64 does not decode")),
            (b"{SSHA}c2hvcnQ=", Malformed("its digest has the wrong length")),
            (
                b"{SHA}0goJVFx6/xSk9ZbduhkpbVj2wQEAAA==",
                Malformed("its digest has the wrong length"),
            ),
            (b"{PBKDF2-SHA256}1000$AAAA", Malformed("iterations$salt$hash was expected")),
            (b"{PBKDF2-SHA256}0$AAAA$AAAAAAAAAAAAAAAAAAAAAAAA", Malformed("it has no iterations")),
            (b"{PBKDF2-SHA256}1$AAAA$AAAA", Malformed("its hash is too short")),
            (b"{PBKDF2-SHA256}4000000000$AAAA$AAAA", TooCostly),
            (b"{PBKDF2-SHA256}40000000000$AAAA$AAAA", TooCostly),
            (b"{PBKDF2_SHA256}AAAA", Malformed("its packed form has the wrong length")),
            (b"{CRYPT}$6$rounds=999999999$salt$hash", TooCostly),
            (b"{ARGON2}$argon2id$v=19$m=4194304,t=1,p=1$AAAAAAAAAAA$AAAA", TooCostly),
            (b"{ARGON2}$argon2id$v=19$m=262144,t=4000,p=1$AAAAAAAAAAA$AAAA", TooCostly),
            (
                b"{ARGON2}$argon2id$v=19$m=64,t=1,p=1,keyid=Q2F5ZW5uZQ$AAAAAAAAAAA$AAAA",
                Malformed("its keyid is not the name of a key"),
            ),
            (
                b"{ARGON2}$argon2id$v=19$m=64,t=1,p=1,keyid=$AAAAAAAAAAA$AAAA",
                Malformed("its keyid is not the name of a key"),
            ),
            (
                b"{ARGON2}$argon2id$v=19$m=64,t=1,p=1,data=AAAA$AAAAAAAAAAA$AAAA",
                Malformed("$argon2id$v=19$m=..,t=..,p=..$salt$hash was expected"),
            ),
            (b"{ARGON2}$argon2id$v=19$m=262144,t=1,p=4000$AAAAAAAAAAA$AAAA", TooCostly),
        ];
        for (value, error) in cases {
            assert_eq!(parse(value), Err(*error), "{}", String::from_utf8_lossy(value));
        }
    }

    proptest! {
        #[test]
        fn hostile_values_never_panic_or_cost_more(rest in "[$=,a-z0-9./+]{0,80}", scheme in 0..8usize) {
            let scheme = ["SSHA", "PBKDF2-SHA512", "PBKDF2_SHA256", "CRYPT", "ARGON2", "X", "SHA", ""][scheme];
            for rest in [rest.clone(), format!("$argon2id$v=19$m={rest}"), format!("$6$rounds={rest}")] {
                if let Ok(Stored::Derived { cost: Cost::ShaCrypt { rounds }, .. }) =
                    parse(format!("{{{scheme}}}{rest}").as_bytes())
                {
                    prop_assert!(rounds <= SHA_CRYPT_ROUNDS_MAX);
                }
            }
        }
    }
}
