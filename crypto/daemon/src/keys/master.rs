//! The master key, and where it comes from.

use super::error::Error;
use super::{disk, tpm};
use crate::limits::MASTER_KEY_BYTES;
use keyway_engine::Engine;
use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use zeroize::Zeroizing;

/// The key that a store is sealed under: 32 bytes, wiped when it is dropped.
///
/// It is needed to create or open a store, and no longer.
pub struct MasterKey {
    /// In a box, so that a move leaves none of it behind.
    bytes: Box<Zeroizing<[u8; MASTER_KEY_BYTES]>>,
}

/// The master key, or what it is made from.
#[derive(Clone, Copy, Debug)]
pub enum Master<'a> {
    /// The key itself, from a file, a credential or the TPM.
    Key(&'a MasterKey),
    /// A passphrase. Salt and cost (Argon2id) are in the store's header.
    Passphrase(Passphrase<'a>),
}

/// A passphrase, 1 to [`PASSWORD_BYTES_MAX`](keyway_engine::limits::PASSWORD_BYTES_MAX) bytes.
#[derive(Clone, Copy)]
pub struct Passphrase<'a>(pub &'a [u8]);

impl fmt::Debug for Passphrase<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

impl MasterKey {
    /// Reads it from a file of exactly 32 bytes, which only its owner, this user, may be able to
    /// read.
    ///
    /// # Errors
    /// [`Error::System`] if there is none, [`Error::Exposed`], or [`Error::Damaged`] if it is
    /// longer or shorter.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        Self::read(path, disk::read(path, MASTER_KEY_BYTES)?)
    }

    /// As [`MasterKey::from_file`], of a file that is open, from its beginning: only its owner, who is this
    /// user or root, may be able to read it. `path` is its name in errors.
    ///
    /// # Errors
    /// As [`MasterKey::from_file`].
    pub fn from_open(file: &File, path: &Path) -> Result<Self, Error> {
        Self::read(path, Some(disk::read_open(file, path, MASTER_KEY_BYTES)?))
    }

    /// Makes one at random and puts it into a new file (0600).
    ///
    /// # Errors
    /// [`Error::System`] if there is a file already, or none can be written; [`Error::Engine`].
    pub fn create_file(path: &Path, engine: &Engine) -> Result<Self, Error> {
        let key = Self::random(engine)?;
        disk::put_new(path, key.bytes())?;
        Ok(key)
    }

    /// Reads it from a credential of systemd (`LoadCredentialEncrypted=`): a file of exactly 32
    /// bytes in the folder that `$CREDENTIALS_DIRECTORY` names. systemd sees to who may read it.
    ///
    /// # Errors
    /// As [`MasterKey::from_file`], but for its rights.
    pub fn from_credential(path: &Path) -> Result<Self, Error> {
        Self::read(path, disk::read_any(path, MASTER_KEY_BYTES)?)
    }

    /// Has the machine's TPM unseal it. See [`MasterKey::create_in_tpm`].
    ///
    /// # Errors
    /// [`Error::System`] if there is no such file, [`Error::Damaged`] if it is another one,
    /// [`Error::Tpm`] if a tool is not there or refuses: it was another TPM, or this one was
    /// cleared.
    pub fn from_tpm(blob: &Path) -> Result<Self, Error> {
        let secret = tpm::unseal(blob)?;
        Self::of(&secret).ok_or_else(|| Error::damaged(blob, WRONG_LENGTH))
    }

    /// Makes one at random, has the TPM seal it under its storage hierarchy, and puts the sealed
    /// blob into a new file. Only this TPM can unseal it, for any process that may talk to it and
    /// read the file; no state of the machine (PCR) is asked for.
    ///
    /// It runs tpm2-tools (Debian: `tpm2-tools`), which look at `TPM2TOOLS_TCTI` for where the TPM
    /// is. They are waited for without a limit of time. The file's name with `.work` behind it is a
    /// folder that is there meanwhile.
    ///
    /// # Errors
    /// [`Error::Tpm`] if a tool is not there or refuses, [`Error::System`] if there is a file
    /// already or none can be written, [`Error::Engine`].
    pub fn create_in_tpm(blob: &Path, engine: &Engine) -> Result<Self, Error> {
        let key = Self::random(engine)?;
        tpm::seal(blob, key.bytes())?;
        Ok(key)
    }

    pub(super) fn random(engine: &Engine) -> Result<Self, Error> {
        Self::filled(|bytes| Ok(engine.random(bytes)?))
    }

    /// A new one, in the place where it stays.
    pub(super) fn filled(fill: impl FnOnce(&mut [u8]) -> Result<(), Error>) -> Result<Self, Error> {
        let mut key = MasterKey { bytes: Box::new(Zeroizing::new([0; MASTER_KEY_BYTES])) };
        fill(&mut key.bytes[..])?;
        Ok(key)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..]
    }

    fn read(path: &Path, bytes: Option<Zeroizing<Vec<u8>>>) -> Result<Self, Error> {
        let none = || Error::system("read", path)(ErrorKind::NotFound.into());
        Self::of(&bytes.ok_or_else(none)?).ok_or_else(|| Error::damaged(path, WRONG_LENGTH))
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let mut key = MasterKey { bytes: Box::new(Zeroizing::new([0; MASTER_KEY_BYTES])) };
        (bytes.len() == MASTER_KEY_BYTES).then(|| key.bytes.copy_from_slice(bytes))?;
        Some(key)
    }
}

const WRONG_LENGTH: &str = "a master key has exactly 32 bytes";
