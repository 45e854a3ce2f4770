//! Where backups are, and the secret that they are encrypted under.

use crate::key_use::{Manner, UsableKey};
use keyway_backup::{Protection, Repository, Sealer, Secret};
use keyway_engine::Algorithm;
use keyway_folder::data;
use keyway_host::atomic_file::Target;
use keyway_host::failure::Failure;
use keyway_host::output;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Where the secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// A file with 64 hexadecimal digits, which a first backup makes.
    KeyFile(PathBuf),
    /// A file with a passphrase.
    PassphraseFile(PathBuf),
    /// A key for AES-256-GCM that a cryptod holds.
    Cryptod {
        /// The key's name; the one that the repository names if none is given.
        name: Option<String>,
        /// The daemon's socket.
        socket: PathBuf,
    },
}

/// A repository, and the secret of it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The repository's folder.
    pub folder: PathBuf,
    /// Its secret; `None` if the flags name none.
    pub secret: Option<SecretSource>,
}

/// The length of a passphrase for a new repository, in bytes.
const PASSPHRASE_BYTES_MIN: usize = 12;
/// Bytes of the key in a key file.
const KEY_BYTES: usize = 32;
/// What keys of cryptod are told that the sealed secret is for.
const CONTEXT: &str = "keyway backup";
/// As a client of cryptod.
const CLIENT: &str = "keyway backup";

impl Place {
    /// Opens the repository.
    ///
    /// # Errors
    /// If there is none, or the secret is not its own.
    pub fn open(&self) -> Result<Repository, Failure> {
        let needed = Repository::protection(&self.folder).map_err(Failure::new)?;
        let Some(source) = &self.secret else {
            return Err(Failure::usage(format!(
                "the backups in {} are encrypted under {needed}: {}",
                self.folder.display(),
                advice(&needed)
            )));
        };
        let label = match &needed {
            Protection::Held { label } => Some(label.as_str()),
            _ => None,
        };
        source.with(label, |secret| {
            Repository::open(&self.folder, &keyway_drivers::engine(), secret).map_err(Failure::new)
        })
    }

    /// Opens the repository, or makes it if the folder is empty or missing. Returns it with the key file that was
    /// made for it, if one was. It is for backups of this data folder.
    ///
    /// # Errors
    /// As [`Place::open`], and if it cannot be made.
    pub fn open_or_create(&self, data: &Path) -> Result<(Repository, Option<&Path>), Failure> {
        match Repository::protection(&self.folder) {
            Err(keyway_backup::Error::NoRepository(_)) => {}
            _ => return Ok((self.open()?, None)),
        }
        let Some(source) = &self.secret else {
            return Err(Failure::usage(
                "a first backup decides what all of them are encrypted under: --key-file FILE (made if it is not \
                 there), --passphrase-file FILE, or --cryptod-key NAME",
            ));
        };
        let made = match source {
            SecretSource::KeyFile(path) if !path.exists() => {
                make_key_file(path)?;
                output::note(format_args!(
                    "{} was made: without a copy of it elsewhere the backups cannot be read if this machine is lost",
                    path.display()
                ));
                Some(path.as_path())
            }
            SecretSource::PassphraseFile(path)
                if data::read_password(path)?.len() < PASSPHRASE_BYTES_MIN =>
            {
                return Err(Failure::new(format!(
                    "{}: a passphrase for backups, which others may try out for years, has to have {PASSPHRASE_BYTES_MIN} \
                     bytes at least",
                    path.display()
                )));
            }
            SecretSource::Cryptod { socket, .. } if is_below(socket, data) => {
                output::note(format_args!(
                    "warning: the key of the backups is in the folder that they are of ({}): if that is lost, they cannot be \
                     read; use a key elsewhere",
                    data.display()
                ));
                None
            }
            _ => None,
        };
        let made_here = source.with(None, |secret| {
            Repository::create(&self.folder, &keyway_drivers::engine(), secret)
                .map_err(Failure::new)
        });
        match made_here {
            Ok(repository) => Ok((repository, made)),
            // Another process was faster.
            Err(_) if Repository::protection(&self.folder).is_ok() => Ok((self.open()?, made)),
            Err(why) => Err(why),
        }
    }
}

/// Whether a path leads into a folder.
fn is_below(path: &Path, folder: &Path) -> bool {
    match (std::fs::canonicalize(path), std::fs::canonicalize(folder)) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

fn advice(needed: &Protection) -> String {
    match needed {
        Protection::Passphrase => {
            "name the file that has it with --passphrase-file FILE".to_owned()
        }
        Protection::KeyFile => "name that file with --key-file FILE".to_owned(),
        Protection::Held { .. } => {
            "name the data folder or socket of the cryptod that holds it with --cryptod PATH"
                .to_owned()
        }
    }
}

impl SecretSource {
    fn with<R>(
        &self,
        label: Option<&str>,
        take: impl FnOnce(&Secret<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        match self {
            SecretSource::PassphraseFile(path) => {
                let passphrase = data::read_password(path)?;
                if passphrase.is_empty() {
                    return Err(Failure::new(format!(
                        "{} is empty: it is to have a passphrase",
                        path.display()
                    )));
                }
                take(&Secret::Passphrase(passphrase))
            }
            SecretSource::KeyFile(path) => take(&Secret::KeyFile(read_key_file(path)?)),
            SecretSource::Cryptod { name, socket } => {
                let name = name.as_deref().or(label).ok_or_else(|| {
                    Failure::usage("--cryptod-key NAME names the key to encrypt backups under")
                })?;
                let held = Held { name, key: UsableKey::open(name, socket, CLIENT)? };
                take(&Secret::Held(&held))
            }
        }
    }
}

fn read_key_file(path: &Path) -> Result<Zeroizing<[u8; KEY_BYTES]>, Failure> {
    let text = data::read_secret(path)?;
    let bad = || {
        Failure::new(format!(
            "{} is no key file of backups: it has to have {} hexadecimal digits",
            path.display(),
            2 * KEY_BYTES
        ))
    };
    let digits = text.trim_end();
    if digits.len() != 2 * KEY_BYTES || !digits.is_ascii() {
        return Err(bad());
    }
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    for (byte, at) in key.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| bad())?;
    }
    Ok(key)
}

fn make_key_file(path: &Path) -> Result<(), Failure> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    keyway_drivers::engine().random(&mut *key).map_err(Failure::new)?;
    let mut digits = Zeroizing::new(String::with_capacity(2 * KEY_BYTES + 1));
    for byte in key.iter() {
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
        digits.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    digits.push('\n');
    let path = std::path::absolute(path).map_err(|why| Failure::system("find", path, &why))?;
    // Where this is killed, nothing has the name that is no key.
    let target = Target::open(&path, &[])?;
    let mut file = target.writer()?;
    // From here on no other process makes it.
    if path.exists() {
        target.discard();
        let path = path.display();
        return Err(Failure::new(format!("another process has made {path}; repeat the command")));
    }
    file.write_all(digits.as_bytes()).map_err(|why| target.cannot_write(&why))?;
    target.finish().map(|_| ())
}

/// A key that a cryptod holds.
struct Held<'a> {
    name: &'a str,
    key: UsableKey,
}

impl Sealer for Held<'_> {
    fn label(&self) -> &str {
        self.name
    }

    fn seal(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let input = || Ok(Zeroizing::new(bytes.to_vec()));
        let (_, sealed) = self.key.encrypt(&manner(), CONTEXT, input).map_err(failed)?;
        Ok(sealed.to_vec())
    }

    fn unseal(&self, bytes: &[u8]) -> io::Result<Zeroizing<Vec<u8>>> {
        let input = || Ok(Zeroizing::new(bytes.to_vec()));
        let opened = self.key.decrypt(&manner(), CONTEXT, input, "the repository's secret");
        opened.map(|(_, bytes)| bytes).map_err(failed)
    }
}

fn manner() -> Manner {
    Manner { algorithm: Some(Algorithm::Aes256Gcm), ..Manner::default() }
}

fn failed(why: Failure) -> io::Error {
    io::Error::other(why.to_string())
}
