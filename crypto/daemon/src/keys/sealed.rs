//! Bytes sealed under keys that are derived from the master key.
//!
//! The file of a key: `KWYKEY` and two zeros, version of the format (2 bytes), the store's identity
//! (16), the file's number (8), nonce (12), ciphertext, tag (16); numbers are
//! little-endian. It is sealed with AES-256-GCM under a key of its own, HKDF-SHA-256 of the master
//! key (salted with the store's identity) and of the key's name. Everything before the nonce, and
//! the name, are authenticated with it. The nonce is random each time: SP 800-38D § 8.3 allows that
//! for 2^32 writes of one name, a thousand years of one in ten seconds.
//!
//! So a file that is spoilt, renamed, or of another store is noticed; an older file of the same key, put
//! back in its place, by the store's [index](super::index).

use super::error::Error;
use super::header::{CHECK_BYTES, ID_BYTES};
use super::master::MasterKey;
use keyway_engine::{
    Algorithm, Engine, Key, NONCE_BYTES, Nonces, Parameters, Request, Session, TAG_BYTES, Usage,
};
use std::path::Path;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"KWYKEY\0\0";
/// The version of the format that is written: since it, a store has an index. Those before it had none, and
/// count how often a key was written where now the store's generation is.
pub(super) const INDEXED: u16 = 2;
/// The first version of the format.
const FIRST: u16 = 1;
const REVISION_BYTES: usize = 8;
/// The part that is authenticated but not sealed, in bytes.
const HEAD_BYTES: usize = MAGIC.len() + 2 + ID_BYTES + REVISION_BYTES;

/// The file of a key, still sealed.
#[derive(Debug, PartialEq, Eq)]
pub struct SealedFile<'a> {
    /// The store's identity.
    pub store: [u8; ID_BYTES],
    /// Version of the format.
    pub version: u16,
    /// Its number: higher than that of every file of this key before it.
    pub revision: u64,
    head: &'a [u8],
    nonce: &'a [u8; NONCE_BYTES],
    /// Ciphertext and tag.
    sealed: &'a [u8],
}

impl<'a> SealedFile<'a> {
    /// Takes the bytes of the file apart.
    ///
    /// # Errors
    /// The fault of these bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or(FOREIGN)?;
        let fields = head.strip_prefix(MAGIC).ok_or(FOREIGN)?;
        let (version, fields) = fields.split_first_chunk().ok_or(FOREIGN)?;
        let version = u16::from_le_bytes(*version);
        if !(FIRST..=INDEXED).contains(&version) {
            return Err("a later version of this program wrote it, or it is spoilt");
        }
        let (store, fields) = fields.split_first_chunk().ok_or(FOREIGN)?;
        let revision = fields.first_chunk().ok_or(FOREIGN)?;
        let (nonce, sealed) = rest.split_first_chunk().ok_or(CUT)?;
        if sealed.len() < TAG_BYTES {
            return Err(CUT);
        }
        let revision = u64::from_le_bytes(*revision);
        Ok(SealedFile { store: *store, version, revision, head, nonce, sealed })
    }
}

const FOREIGN: &str = "it is no file of a key store";
const CUT: &str = "it is cut off";

/// The content of a sealed file.
pub(crate) struct Unsealed {
    /// Version of its format.
    pub version: u16,
    /// Its number.
    pub revision: u64,
    pub bytes: Zeroizing<Vec<u8>>,
}

/// The keys that are derived from the master key.
pub(crate) struct Vault {
    engine: Engine,
    store: [u8; ID_BYTES],
    root: Session,
}

impl Vault {
    pub fn new(engine: &Engine, store: [u8; ID_BYTES], master: &MasterKey) -> Result<Self, Error> {
        let key = Key::Extract { salt: &store, secret: master.bytes() };
        let root = engine.session(Parameters::new(Algorithm::HkdfSha256, key))?;
        Ok(Vault { engine: engine.clone(), store, root })
    }

    /// The value that only this master key gives.
    pub fn check(&self) -> Result<Zeroizing<[u8; CHECK_BYTES]>, Error> {
        let mut check = Zeroizing::new([0; CHECK_BYTES]);
        self.root.run(&mut Request::Expand { info: &[b"keyway keys check"], out: &mut *check })?;
        Ok(check)
    }

    /// The key of a key's file.
    fn file_key(&self, name: &str) -> Result<Session, Error> {
        let mut key = Zeroizing::new([0; 32]);
        let info = [b"keyway keys file ".as_slice(), name.as_bytes()];
        self.root.run(&mut Request::Expand { info: &info, out: &mut *key })?;
        Ok(self.engine.session(Parameters::new(Algorithm::Aes256Gcm, Key::Secret(&*key)))?)
    }

    /// The bytes of a key's file.
    pub fn seal(&self, name: &str, revision: u64, record: &[u8]) -> Result<Vec<u8>, Error> {
        let mut nonce = [0; NONCE_BYTES];
        self.engine.random(&mut nonce)?;
        let mut file =
            Zeroizing::new(Vec::with_capacity(HEAD_BYTES + NONCE_BYTES + record.len() + TAG_BYTES));
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&INDEXED.to_le_bytes());
        file.extend_from_slice(&self.store);
        file.extend_from_slice(&revision.to_le_bytes());
        let aad = [&file[..], name.as_bytes()].concat();
        file.extend_from_slice(&nonce);
        let text = file.len();
        file.extend_from_slice(record);
        let tag = self.file_key(name)?.seal(&nonce, &aad, &mut file[text..])?;
        file.extend_from_slice(&tag);
        // It is sealed: nothing of it has to be wiped.
        Ok(std::mem::take(&mut *file))
    }

    /// Opens a sealed file.
    ///
    /// # Errors
    /// [`Error::Damaged`] for the file at `path`, or the engine's.
    pub fn open(&self, path: &Path, name: &str, file: &[u8]) -> Result<Unsealed, Error> {
        let damaged = |what| Error::damaged(path, what);
        let file = SealedFile::parse(file).map_err(damaged)?;
        if file.store != self.store {
            return Err(damaged("it is a key of another store, or it is spoilt"));
        }
        let aad = [file.head, name.as_bytes()].concat();
        let mut data = Zeroizing::new(file.sealed.to_vec());
        match self.file_key(name)?.open_in_place(file.nonce, &aad, &mut data) {
            Ok(bytes) => {
                data.truncate(bytes);
                Ok(Unsealed { version: file.version, revision: file.revision, bytes: data })
            }
            Err(keyway_engine::Error::Authentication) => {
                Err(damaged("it is spoilt, or it was the file of another key"))
            }
            Err(why) => Err(why.into()),
        }
    }
}

/// Number of a version, nonce and tag: what is added to what is wrapped, in bytes.
pub(crate) const WRAPPING_BYTES: usize = 4 + NONCE_BYTES + TAG_BYTES;

/// Seals bytes under a version of a key, as number of the version (4 bytes, little-endian), nonce,
/// ciphertext and tag.
pub(crate) fn wrap(
    engine: &Engine,
    (version, key): (u32, Key<'_>),
    context: [&[u8]; 2],
    bytes: &[u8],
) -> Result<Vec<u8>, Error> {
    let parameters = Parameters::new(Algorithm::Aes256Gcm, key).nonces(Nonces::Salted);
    let session = engine.session(parameters.usage(Usage::RANDOM_NONCES))?;
    let aad = wrapping_aad(version, context);
    let mut wrapped = Zeroizing::new(Vec::with_capacity(bytes.len() + WRAPPING_BYTES));
    wrapped.extend_from_slice(&version.to_le_bytes());
    wrapped.extend_from_slice(&[0; NONCE_BYTES]);
    wrapped.extend_from_slice(bytes);
    let (head, text) = wrapped.split_at_mut(4 + NONCE_BYTES);
    let (nonce, tag) = session.seal_next(&aad, text)?;
    head[4..].copy_from_slice(&nonce);
    wrapped.extend_from_slice(&tag);
    Ok(std::mem::take(&mut *wrapped))
}

/// Under which version something was wrapped.
pub(crate) fn wrapped_version(wrapped: &[u8]) -> Result<u32, Error> {
    wrapped.first_chunk().map(|number| u32::from_le_bytes(*number)).ok_or(Error::Unwrap)
}

/// The reverse of [`wrap`].
pub(crate) fn unwrap(
    engine: &Engine,
    (version, key): (u32, Key<'_>),
    context: [&[u8]; 2],
    wrapped: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let session = engine.session(Parameters::new(Algorithm::Aes256Gcm, key))?;
    let rest = wrapped.get(4..).ok_or(Error::Unwrap)?;
    let (nonce, sealed) = rest.split_first_chunk().ok_or(Error::Unwrap)?;
    if sealed.len() < TAG_BYTES {
        return Err(Error::Unwrap);
    }
    let mut data = Zeroizing::new(sealed.to_vec());
    match session.open_in_place(nonce, &wrapping_aad(version, context), &mut data) {
        Ok(bytes) => {
            data.truncate(bytes);
            Ok(data)
        }
        Err(keyway_engine::Error::Authentication) => Err(Error::Unwrap),
        Err(why) => Err(why.into()),
    }
}

/// Key and context, each with its length before it, so that no two pairs look the same.
fn wrapping_aad(version: u32, context: [&[u8]; 2]) -> Vec<u8> {
    let mut aad = b"keyway keys wrap".to_vec();
    aad.extend_from_slice(&version.to_le_bytes());
    for part in context {
        aad.extend_from_slice(&(part.len() as u64).to_le_bytes());
        aad.extend_from_slice(part);
    }
    aad
}
