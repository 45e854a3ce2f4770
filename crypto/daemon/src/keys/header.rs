//! The file `store`: whose the folder is, and what its master key is made from. Nothing in it is
//! secret.
//!
//! `KWYSTORE`, version of the format (2 bytes, little-endian), what [`Saved`] has in postcard's
//! form, CRC-32 of all that (4 bytes, little-endian). The checksum tells a spoilt file from a wrong
//! master key; an attacker who changes the file only makes the master key wrong.

use super::error::Error;
use crate::limits;
use keyway_engine::{Cost, Engine};
use serde::{Deserialize, Serialize};

/// The bytes that every header begins with.
const MAGIC: &[u8; 8] = b"KWYSTORE";
/// The only version of the format.
const VERSION: u16 = 1;
/// Length of a store's identity, in bytes.
pub(crate) const ID_BYTES: usize = 16;
/// Length of the salt of a passphrase, in bytes (RFC 9106 § 3.1).
pub(crate) const SALT_BYTES: usize = 16;
/// Length of what says whether a master key is the right one, in bytes.
pub(crate) const CHECK_BYTES: usize = 32;

const CHECKSUM_BYTES: usize = 4;

/// The contents of the file `store`, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Random: no other store has it.
    pub id: [u8; ID_BYTES],
    /// How a passphrase becomes the master key; `None` where the master key is given itself.
    pub passphrase: Option<PassphraseHeader>,
    /// The value that the right master key, and no other, gives.
    pub check: [u8; CHECK_BYTES],
}

/// The parameters that a passphrase is hashed with (Argon2id, RFC 9106 § 3.1), in the bounds of
/// [`limits`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassphraseHeader {
    /// Random.
    pub salt: [u8; SALT_BYTES],
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

/// The saved form.
#[derive(Serialize, Deserialize)]
struct Saved {
    id: [u8; ID_BYTES],
    passphrase: Option<PassphraseHeader>,
    check: [u8; CHECK_BYTES],
}

impl Header {
    /// That of a new store, with what is random in it; the part that its master key gives is still
    /// missing.
    ///
    /// # Errors
    /// [`Error::Engine`].
    pub(crate) fn new(engine: &Engine, has_passphrase: bool) -> Result<Self, Error> {
        let mut header = Header { id: [0; _], passphrase: None, check: [0; _] };
        engine.random(&mut header.id)?;
        if has_passphrase {
            let mut salt = [0; _];
            engine.random(&mut salt)?;
            header.passphrase = Some(PassphraseHeader {
                salt,
                memory_kib: limits::PASSPHRASE_MEMORY_KIB,
                passes: limits::PASSPHRASE_PASSES,
                lanes: limits::PASSPHRASE_LANES,
            });
        }
        Ok(header)
    }

    /// Reads the bytes of the file.
    ///
    /// # Errors
    /// The fault of these bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("it is not the header of a key store")?;
        let (version, rest) = rest.split_first_chunk().ok_or(SPOILT)?;
        if u16::from_le_bytes(*version) != VERSION {
            return Err("a later version of this program wrote it, or it is spoilt");
        }
        let (_, checksum) = rest.split_last_chunk::<CHECKSUM_BYTES>().ok_or(SPOILT)?;
        let covered = bytes.len() - CHECKSUM_BYTES;
        let sum = crc32fast::hash(bytes.get(..covered).ok_or(SPOILT)?);
        if u32::from_le_bytes(*checksum) != sum {
            return Err(SPOILT);
        }
        let body = rest.len() - CHECKSUM_BYTES;
        let (saved, rest) = postcard::take_from_bytes::<Saved>(rest.get(..body).ok_or(SPOILT)?)
            .map_err(|_| SPOILT)?;
        if !rest.is_empty() {
            return Err(SPOILT);
        }
        let Saved { id, passphrase, check } = saved;
        if !passphrase.as_ref().is_none_or(PassphraseHeader::is_bearable) {
            return Err("the cost that it gives for the passphrase is out of bounds");
        }
        Ok(Header { id, passphrase, check })
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// [`Error::Unwritten`], which does not happen.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let Header { id, passphrase, check } = self.clone();
        let saved = Saved { id, passphrase, check };
        let bytes = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
        let mut bytes = postcard::to_extend(&saved, bytes).map_err(|_| Error::Unwritten)?;
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        Ok(bytes)
    }
}

impl PassphraseHeader {
    pub(crate) const fn cost(&self) -> Cost {
        let PassphraseHeader { memory_kib, passes, lanes, .. } = *self;
        Cost::Argon2 { memory_kib, passes, lanes }
    }

    /// A cost that no operator would choose would keep the daemon from starting.
    fn is_bearable(&self) -> bool {
        self.memory_kib <= limits::PASSPHRASE_MEMORY_KIB_MAX
            && (1..=limits::PASSPHRASE_PASSES_MAX).contains(&self.passes)
            && (1..=limits::PASSPHRASE_LANES_MAX).contains(&self.lanes)
            && self.memory_kib / 8 >= self.lanes
    }
}

const SPOILT: &str = "it is spoilt";
