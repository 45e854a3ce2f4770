//! The parameters of a security association, and the engine's session that they make.

use crate::lifetime::Lifetime;
use crate::limits::{SPI_MIN, WINDOW_PACKETS};
use crate::selector::Selector;
use crate::suite::Suite;
use keyway_engine::{Engine, Error, Key, Parameters, Session, Step, Zeroizing};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the key of a security association is.
#[derive(Clone, Copy)]
pub enum SaKey<'a> {
    /// Here: [`Suite::key_bytes`], and behind them [`Suite::mac_key_bytes`]; without a salt.
    Secret(&'a [u8]),
    /// In a driver of the engine, under this name. AEADs only.
    Named(&'a str),
}

impl fmt::Debug for SaKey<'_> {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SaKey::Secret(_) => f.write_str("Secret(..)"),
            SaKey::Named(name) => write!(f, "Named({name:?})"),
        }
    }
}

/// How much of a packet is sealed (RFC 4303 § 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Whole IP packets.
    Tunnel,
    /// The payload behind an IP packet's header.
    Transport,
}

/// The parameters of a security association. Both sides have equal ones.
#[derive(Clone, Copy)]
pub struct SaParameters<'a> {
    /// The number that the receiver knows it by, at least [`SPI_MIN`].
    pub spi: u32,
    /// The algorithms.
    pub suite: Suite,
    /// The key.
    pub key: SaKey<'a>,
    /// The first bytes of each nonce, which come with the key of an AEAD. Else not looked at.
    pub salt: [u8; 4],
    /// Tunnel or transport.
    pub mode: Mode,
    /// Whether sequence numbers have 64 bits (RFC 4303 § 2.2.1).
    pub esn: bool,
    /// The limits of its use.
    pub lifetime: Lifetime,
}

impl fmt::Debug for SaParameters<'_> {
    /// Without key and salt.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SaParameters { spi, suite, key, mode, esn, lifetime, .. } = self;
        let mut shown = f.debug_struct("SaParameters");
        shown.field("spi", spi).field("suite", suite).field("key", key).field("mode", mode);
        shown.field("esn", esn).field("lifetime", lifetime).finish_non_exhaustive()
    }
}

/// Why there can be no such security association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaError {
    /// SPIs below [`SPI_MIN`] are reserved.
    Spi(u32),
    /// The key has another length.
    KeyBytes {
        /// As many as it has.
        given: usize,
        /// As many as the suite wants.
        expected: usize,
    },
    /// Only an AEAD can have its key elsewhere.
    NamedKey(Suite),
    /// The window is outside of [`WINDOW_PACKETS`].
    Window(u32),
    /// The numbers begin at 0, or where none are left.
    Numbers(u64),
    /// A selector's prefixes are of two families.
    Families(Box<Selector>),
    /// The engine has refused the key.
    Engine(Error),
}

impl fmt::Display for SaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SaError::Spi(spi) => {
                write!(f, "the SPI {spi} is reserved; choose {SPI_MIN} or a higher one")
            }
            SaError::KeyBytes { given, expected } => {
                write!(f, "the key has {given} bytes, where {expected} are wanted")
            }
            SaError::NamedKey(suite) => write!(
                f,
                "a key that is used by its name cannot be for {suite}; take aes-128-gcm, aes-256-gcm or \
                 chacha20-poly1305"
            ),
            SaError::Window(width) => write!(
                f,
                "a window of {width} packets; it has {} to {}",
                WINDOW_PACKETS.start(),
                WINDOW_PACKETS.end()
            ),
            SaError::Numbers(first) => write!(
                f,
                "no sequence number can be used from {first} on: they begin at 1, and without extended ones they end \
                 at 4294967295"
            ),
            SaError::Families(selector) => write!(
                f,
                "the selector's prefixes {} and {} are of two families of addresses",
                selector.local, selector.remote
            ),
            SaError::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SaError::Engine(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for SaError {
    fn from(error: Error) -> Self {
        SaError::Engine(error)
    }
}

/// The part that both directions have in common.
pub(crate) struct Association {
    /// Tells it from all others of this process, also those that are gone.
    pub id: u64,
    pub spi: u32,
    pub suite: Suite,
    pub mode: Mode,
    pub esn: bool,
    /// Its key is one that a driver has, by its name.
    pub is_named: bool,
    pub session: Session,
    pub salt: Box<Zeroizing<[u8; 4]>>,
}

/// The id of the association that is made next.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Association {
    pub fn new(engine: &Engine, parameters: &SaParameters<'_>) -> Result<Self, SaError> {
        let SaParameters { spi, suite, key, mode, esn, .. } = *parameters;
        if spi < SPI_MIN {
            return Err(SaError::Spi(spi));
        }
        let is_named = matches!(key, SaKey::Named(_));
        let session = open(engine, suite, key)?;
        // Filled in place, so that no copy of it stays on the stack.
        let mut salt = Box::new(Zeroizing::new([0; 4]));
        salt.copy_from_slice(&parameters.salt);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Association { id, spi, suite, mode, esn, is_named, session, salt })
    }
}

fn open(engine: &Engine, suite: Suite, key: SaKey<'_>) -> Result<Session, SaError> {
    let (cipher, mac) = suite.algorithms();
    let key = match (key, mac) {
        (SaKey::Secret(key), _) => key,
        (SaKey::Named(name), None) => {
            return Ok(engine.session(Parameters::new(cipher, Key::Named(name)))?);
        }
        (SaKey::Named(_), Some(_)) => return Err(SaError::NamedKey(suite)),
    };
    let expected = suite.key_bytes() + suite.mac_key_bytes();
    let (front, back) = match key.split_at_checked(suite.key_bytes()) {
        Some(both) if key.len() == expected => both,
        _ => return Err(SaError::KeyBytes { given: key.len(), expected }),
    };
    let cipher = Step { algorithm: cipher, key: Key::Secret(front) };
    Ok(match mac {
        None => engine.session(Parameters::new(cipher.algorithm, cipher.key))?,
        Some(algorithm) => {
            let mac = Step { algorithm, key: Key::Secret(back) };
            engine.session(Parameters::chain(&[cipher, mac]))?
        }
    })
}
