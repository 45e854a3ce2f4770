//! The file `keyway-backup`: what the repository's secret is sealed under. Nothing in it is secret.
//!
//! `KWYBACKP`, version of the format (2 bytes, little-endian), what [`Saved`] has in postcard's form, CRC-32 of
//! all that (4 bytes, little-endian). The checksum tells a damaged header from a wrong secret. A second file
//! repeats it, since without a header no backup can be read.
//!
//! All keys of the repository are derived from its secret, 32 random bytes. A passphrase (by Argon2id) or a key
//! file (by HKDF-SHA-256) becomes a key of AES-256-GCM that the secret is sealed under, with the repository's
//! identity as authenticated data. A key that another process holds seals identity and secret together.

use crate::error::{Error, Fault};
use crate::limits;
use crate::protection::Protection;
use keyway_engine::{
    Algorithm, Cost, Engine, Key, NONCE_BYTES, Parameters, Request, Session, TAG_BYTES,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use zeroize::Zeroizing;

/// The bytes that every header begins with.
const MAGIC: &[u8; 8] = b"KWYBACKP";
/// The only version of the format.
const VERSION: u16 = 1;
const CHECKSUM_BYTES: usize = 4;
/// Length of a repository's identity, in bytes.
pub(crate) const ID_BYTES: usize = 16;
/// Length of its secret, in bytes.
pub(crate) const SECRET_BYTES: usize = 32;
/// Length of the salt of a passphrase, in bytes (RFC 9106 § 3.1).
const SALT_BYTES: usize = 16;
const SEALED_BYTES: usize = NONCE_BYTES + SECRET_BYTES + TAG_BYTES;

/// A key that another process holds: it can be used and not be had.
pub trait Sealer {
    /// The name by which it is found again, at most [`LABEL_BYTES_MAX`](limits::LABEL_BYTES_MAX) bytes.
    fn label(&self) -> &str;

    /// Seals bytes, into at most [`HELD_BYTES_MAX`](limits::HELD_BYTES_MAX).
    ///
    /// # Errors
    /// The holder's.
    fn seal(&self, bytes: &[u8]) -> io::Result<Vec<u8>>;

    /// The reverse of [`Sealer::seal`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if these bytes were not sealed under this key, else the holder's.
    fn unseal(&self, bytes: &[u8]) -> io::Result<Zeroizing<Vec<u8>>>;
}

/// The secret that a repository is opened with.
pub enum Secret<'a> {
    /// A passphrase, 1 to [`PASSWORD_BYTES_MAX`](keyway_engine::limits::PASSWORD_BYTES_MAX) bytes.
    Passphrase(Zeroizing<Vec<u8>>),
    /// The content of a key file.
    KeyFile(Zeroizing<[u8; 32]>),
    /// A key that another process holds.
    Held(&'a dyn Sealer),
}

impl Secret<'_> {
    /// The kind that it is.
    pub fn protection(&self) -> Protection {
        match self {
            Secret::Passphrase(_) => Protection::Passphrase,
            Secret::KeyFile(_) => Protection::KeyFile,
            Secret::Held(sealer) => Protection::Held { label: sealer.label().to_owned() },
        }
    }
}

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.protection())
    }
}

/// The contents of the header, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Random: no other repository has it.
    pub(crate) id: [u8; ID_BYTES],
    keeper: Keeper,
    /// The repository's secret.
    sealed: Vec<u8>,
}

/// The thing that the secret is sealed under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Keeper {
    Passphrase { salt: [u8; SALT_BYTES], memory_kib: u32, passes: u32, lanes: u32 },
    KeyFile,
    Held { label: String },
}

/// The saved form.
#[derive(Serialize, Deserialize)]
struct Saved {
    id: [u8; ID_BYTES],
    keeper: Keeper,
    sealed: Vec<u8>,
}

/// A repository's secret.
pub(crate) type RootSecret = Zeroizing<[u8; SECRET_BYTES]>;

impl Header {
    /// That of a new repository, and the repository's secret.
    pub(crate) fn new(engine: &Engine, secret: &Secret<'_>) -> Result<(Header, RootSecret), Error> {
        let mut id = [0; ID_BYTES];
        engine.random(&mut id)?;
        let mut root = Zeroizing::new([0; SECRET_BYTES]);
        engine.random(&mut *root)?;
        let keeper = match secret {
            Secret::Passphrase(_) => {
                let mut salt = [0; SALT_BYTES];
                engine.random(&mut salt)?;
                Keeper::Passphrase {
                    salt,
                    memory_kib: limits::PASSPHRASE_MEMORY_KIB,
                    passes: limits::PASSPHRASE_PASSES,
                    lanes: limits::PASSPHRASE_LANES,
                }
            }
            Secret::KeyFile(_) => Keeper::KeyFile,
            Secret::Held(sealer) => Keeper::Held { label: sealer.label().to_owned() },
        };
        let sealed = match secret {
            Secret::Held(sealer) => {
                let label = sealer.label();
                if label.len() > limits::LABEL_BYTES_MAX {
                    return Err(Error::Limit {
                        of: "bytes in the label of its key",
                        most: limits::LABEL_BYTES_MAX,
                    });
                }
                let text = Zeroizing::new([&id[..], &root[..]].concat());
                let held = |why| Error::Held { label: label.to_owned(), why };
                let sealed = sealer.seal(&text).map_err(held)?;
                // A key that may only encrypt would close the repository for ever.
                if *sealer.unseal(&sealed).map_err(held)? != *text {
                    let why = io::Error::other("it does not open what it has sealed");
                    return Err(held(why));
                }
                if sealed.len() > limits::HELD_BYTES_MAX {
                    return Err(Error::Limit {
                        of: "bytes in its sealed secret",
                        most: limits::HELD_BYTES_MAX,
                    });
                }
                sealed
            }
            Secret::Passphrase(_) | Secret::KeyFile(_) => {
                let session = keeper.session(engine, &id, secret)?;
                let mut nonce = [0; NONCE_BYTES];
                engine.random(&mut nonce)?;
                let mut text = root.clone();
                let tag = session.seal(&nonce, &aad(&id), &mut *text)?;
                [&nonce[..], &text[..], &tag[..]].concat()
            }
        };
        Ok((Header { id, keeper, sealed }, root))
    }

    /// The kind of secret that it asks for.
    pub fn protection(&self) -> Protection {
        match &self.keeper {
            Keeper::Passphrase { .. } => Protection::Passphrase,
            Keeper::KeyFile => Protection::KeyFile,
            Keeper::Held { label } => Protection::Held { label: label.clone() },
        }
    }

    /// The repository's secret. `folder` is for errors.
    pub(crate) fn unseal(
        &self,
        engine: &Engine,
        secret: &Secret<'_>,
        folder: &Path,
    ) -> Result<RootSecret, Error> {
        let needed = self.protection();
        if needed != secret.protection() {
            return Err(Error::OtherSecret { folder: folder.to_owned(), needed });
        }
        let wrong = || Error::WrongSecret { folder: folder.to_owned(), needed: needed.clone() };
        let text = match secret {
            Secret::Held(sealer) => {
                let text = sealer.unseal(&self.sealed).map_err(|why| match why.kind() {
                    ErrorKind::InvalidData => wrong(),
                    _ => Error::Held { label: sealer.label().to_owned(), why },
                })?;
                Zeroizing::new(text.strip_prefix(&self.id).ok_or_else(wrong)?.to_vec())
            }
            Secret::Passphrase(_) | Secret::KeyFile(_) => {
                let session = self.keeper.session(engine, &self.id, secret)?;
                let (nonce, sealed) = self.sealed.split_first_chunk().ok_or_else(wrong)?;
                let mut text = Zeroizing::new(sealed.to_vec());
                match session.open_in_place(nonce, &aad(&self.id), &mut text) {
                    Ok(bytes) => text.truncate(bytes),
                    Err(keyway_engine::Error::Authentication) => return Err(wrong()),
                    Err(why) => return Err(why.into()),
                }
                text
            }
        };
        let mut root = Zeroizing::new([0; SECRET_BYTES]);
        if text.len() != SECRET_BYTES {
            return Err(wrong());
        }
        root.copy_from_slice(&text);
        Ok(root)
    }

    /// Reads the bytes of the file.
    ///
    /// # Errors
    /// The fault of these bytes.
    pub fn parse(bytes: &[u8]) -> Result<Header, Fault> {
        let fixed = MAGIC.len() + 2 + CHECKSUM_BYTES;
        if bytes.len() < fixed {
            return Err(Fault::Truncated);
        }
        let (covered, checksum) = bytes.split_last_chunk().ok_or(Fault::Truncated)?;
        if u32::from_le_bytes(*checksum) != crc32fast::hash(covered) {
            return Err(Fault::Altered);
        }
        let rest = covered.strip_prefix(MAGIC).ok_or(Fault::Unfit("it is no header of backups"))?;
        let (version, rest) = rest.split_first_chunk().ok_or(Fault::Truncated)?;
        if u16::from_le_bytes(*version) != VERSION {
            return Err(Fault::Unfit("a later version of this program wrote it; use that one"));
        }
        let (saved, rest) = postcard::take_from_bytes::<Saved>(rest).map_err(|_| Fault::Altered)?;
        let Saved { id, keeper, sealed } = saved;
        if !rest.is_empty() || !keeper.is_bearable(sealed.len()) {
            return Err(Fault::Unfit("what it asks for is out of bounds"));
        }
        Ok(Header { id, keeper, sealed })
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// [`Error::Unfit`], which does not happen.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let Header { id, keeper, sealed } = self.clone();
        let bytes = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
        let mut bytes = postcard::to_extend(&Saved { id, keeper, sealed }, bytes)
            .map_err(|why| Error::Unfit(format!("the header cannot be written: {why}")))?;
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        Ok(bytes)
    }
}

impl Keeper {
    /// A cost that no operator would choose would keep backups from being opened.
    fn is_bearable(&self, sealed_bytes: usize) -> bool {
        match self {
            Keeper::Passphrase { memory_kib, passes, lanes, .. } => {
                sealed_bytes == SEALED_BYTES
                    && *memory_kib <= limits::PASSPHRASE_MEMORY_KIB_MAX
                    && (1..=limits::PASSPHRASE_PASSES_MAX).contains(passes)
                    && (1..=limits::PASSPHRASE_LANES_MAX).contains(lanes)
                    && memory_kib / 8 >= *lanes
            }
            Keeper::KeyFile => sealed_bytes == SEALED_BYTES,
            Keeper::Held { label } => {
                label.len() <= limits::LABEL_BYTES_MAX && sealed_bytes <= limits::HELD_BYTES_MAX
            }
        }
    }

    /// The key that the secret is sealed under.
    fn session(
        &self,
        engine: &Engine,
        id: &[u8; ID_BYTES],
        secret: &Secret<'_>,
    ) -> Result<Session, Error> {
        let mut key = Zeroizing::new([0; 32]);
        match (self, secret) {
            (Keeper::Passphrase { salt, memory_kib, passes, lanes }, Secret::Passphrase(text)) => {
                if text.is_empty() {
                    return Err(Error::Unfit("the passphrase is empty; give one".to_owned()));
                }
                let (memory_kib, passes, lanes) = (*memory_kib, *passes, *lanes);
                let cost = Cost::Argon2 { memory_kib, passes, lanes };
                let mut request = Request::Derive { cost, password: text, salt, out: &mut *key };
                engine.run(Algorithm::Argon2id, &mut request)?;
            }
            (Keeper::KeyFile, Secret::KeyFile(bytes)) => {
                let extract = Key::Extract { salt: id, secret: &bytes[..] };
                let root = engine.session(Parameters::new(Algorithm::HkdfSha256, extract))?;
                let info = &[b"keyway backup key file".as_slice()];
                root.run(&mut Request::Expand { info, out: &mut *key })?;
            }
            // The kinds were compared before.
            _ => return Err(Error::Unfit("the secret is of another kind".to_owned())),
        }
        Ok(engine.session(Parameters::new(Algorithm::Aes256Gcm, Key::Secret(&*key)))?)
    }
}

/// The authenticated data of the repository's secret.
fn aad(id: &[u8; ID_BYTES]) -> Vec<u8> {
    [b"keyway backup secret".as_slice(), id].concat()
}
