//! The key of a direction: in the file, in a file of its own, or by name in a daemon.

use super::raw::Side;
use super::wrong::{Text, Wrong};
use keyway_esp::Suite;
use toml::Spanned;
use zeroize::Zeroizing;

/// Where the key of an SA is.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    /// Here: the cipher's key and, for suites that are no AEAD, the MAC's behind it.
    Secret(Zeroizing<Vec<u8>>),
    /// In the daemon of `[cryptod]`, under this name.
    Named(String),
}

/// The key and salt of a direction.
#[derive(Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The SPI.
    pub spi: u32,
    /// The key.
    pub key: Key,
    /// The salt; zeros for suites that have none.
    pub salt: [u8; 4],
}

/// Least SPI that is not reserved (RFC 4303 § 2.1).
const SPI_MIN: u32 = 256;
/// Longest name of a key in a daemon, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Has the bytes of the file of a key; an error is a sentence without the file's name.
pub type ReadFile<'r> = dyn FnMut(&str) -> Result<Zeroizing<Vec<u8>>, String> + 'r;

/// Reads one. `has_cryptod`: whether keys may be named.
pub(super) fn keyed(
    text: Text<'_>,
    side: &Spanned<Side>,
    suite: Suite,
    has_cryptod: bool,
    read_file: &mut ReadFile<'_>,
) -> Result<Keyed, Wrong> {
    let raw = side.get_ref();
    let spi = spi(text, &raw.spi)?;
    let salt = raw.salt.as_ref().map(|salt| salt_of(text, salt, suite)).transpose()?;
    let (at, bytes) = match (&raw.key, &raw.key_file, &raw.key_name) {
        (Some(key), None, None) => {
            let bytes = hex(key.get_ref()).ok_or_else(|| {
                text.wrong(key, "key is not hexadecimal; write it as pairs of 0-9 and a-f")
            })?;
            (key, bytes)
        }
        (None, Some(file), None) => {
            let bytes = read_file(file.get_ref());
            let bytes = bytes
                .map_err(|why| text.wrong(file, format!("key_file {:?}: {why}", file.get_ref())))?;
            (file, of_file(bytes, suite))
        }
        (None, None, Some(name)) => {
            let key = named(text, name, suite, has_cryptod)?;
            let salt = salt.ok_or_else(|| {
                text.wrong(
                    name,
                    "a key in cryptod needs its salt here: salt = \"01020304\", 4 \
                                  bytes that both sides have",
                )
            })?;
            return Ok(Keyed { spi, key, salt });
        }
        _ => {
            let why = "name the key once: key = \"hex\", key_file = \"FILE\" or key_name = \
                       \"NAME\" (in cryptod)";
            return Err(text.at(side.span(), why));
        }
    };
    let (key_bytes, salt_bytes) = (suite.key_bytes() + suite.mac_key_bytes(), suite.salt_bytes());
    if bytes.len() == key_bytes && (salt_bytes == 0 || salt.is_some()) {
        return Ok(Keyed { spi, key: Key::Secret(bytes), salt: salt.unwrap_or_default() });
    }
    // RFC 4106 § 8.1: the salt behind the key.
    let behind = bytes.split_at_checked(key_bytes).filter(|_| salt_bytes > 0 && salt.is_none());
    if let Some((key, salt)) = behind
        && let Ok(salt) = salt.try_into()
    {
        return Ok(Keyed { spi, key: Key::Secret(Zeroizing::new(key.to_vec())), salt });
    }
    let (name, found) = (suite.name(), bytes.len());
    let wanted = match (salt_bytes, salt, suite.mac_key_bytes()) {
        (0, _, mac) => {
            format!(
                "{key_bytes} bytes, {} for the cipher and then {mac} for the MAC",
                suite.key_bytes()
            )
        }
        (_, Some(_), _) => format!("{key_bytes} bytes, since the salt is named"),
        _ => format!(
            "{} bytes, the last 4 the salt, or {key_bytes} and a salt of its own",
            key_bytes + 4
        ),
    };
    Err(text.wrong(at, format!("the key has {found} bytes; {name} takes {wanted}")))
}

fn spi(text: Text<'_>, at: &Spanned<String>) -> Result<u32, Wrong> {
    let written = at.get_ref();
    let number = match written.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => written.parse(),
    };
    number.ok().filter(|spi| *spi >= SPI_MIN).ok_or_else(|| {
        text.wrong(
            at,
            format!(
                "spi {written:?} is no number from \"0x100\" to \"0xffffffff\"; \
                                those below are reserved"
            ),
        )
    })
}

fn salt_of(text: Text<'_>, at: &Spanned<String>, suite: Suite) -> Result<[u8; 4], Wrong> {
    if suite.salt_bytes() == 0 {
        return Err(text.wrong(at, format!("{} has no salt; remove it", suite.name())));
    }
    let salt = hex(at.get_ref()).and_then(|bytes| bytes.as_slice().try_into().ok());
    salt.ok_or_else(|| text.wrong(at, "salt is not 4 bytes in hexadecimal, like \"01020304\""))
}

fn named(
    text: Text<'_>,
    at: &Spanned<String>,
    suite: Suite,
    has_cryptod: bool,
) -> Result<Key, Wrong> {
    let name = at.get_ref();
    let is_name = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte)
        });
    if !is_name {
        let why = format!(
            "key_name {name:?}: a key's name has lower-case letters, digits, dashes, dots and \
             underscores, {NAME_BYTES_MAX} at most"
        );
        return Err(text.wrong(at, why));
    }
    if !suite.is_aead() {
        let why = format!(
            "a key in cryptod is for an AEAD, and {} is none; use key or key_file",
            suite.name()
        );
        return Err(text.wrong(at, why));
    }
    if !has_cryptod {
        let why =
            "key_name needs the daemon: [cryptod] with socket = \"/run/keyway/cryptod.socket\"";
        return Err(text.wrong(at, why));
    }
    Ok(Key::Named(name.clone()))
}

/// The key of a file: as it is or, if it has another length, hexadecimal.
fn of_file(bytes: Zeroizing<Vec<u8>>, suite: Suite) -> Zeroizing<Vec<u8>> {
    let key_bytes = suite.key_bytes() + suite.mac_key_bytes();
    if bytes.len() == key_bytes || bytes.len() == key_bytes + suite.salt_bytes() {
        return bytes;
    }
    std::str::from_utf8(&bytes).ok().and_then(hex).unwrap_or(bytes)
}

/// Bytes of pairs of digits; blanks and line ends between them do not count, nor does a `0x` before them.
fn hex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let text = text.trim();
    let digits =
        text.strip_prefix("0x").unwrap_or(text).chars().filter(|c| !c.is_ascii_whitespace());
    // At its full length: a growing one would leave parts of itself behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len() / 2 + 1));
    let mut high = None;
    for digit in digits {
        let digit = u8::try_from(digit.to_digit(16)?).ok()?;
        match high.take() {
            None => high = Some(digit << 4),
            Some(high) => bytes.push(high | digit),
        }
    }
    high.is_none().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_whole_bytes() {
        let read = |text| hex(text).map(|it| it.to_vec());
        assert_eq!(read("0x01 fF\n"), Some(vec![1, 255]));
        assert_eq!(read(""), Some(vec![]));
        assert_eq!((read("0"), read("0g"), read("é0")), (None, None, None));
    }
}
