//! The master key of the daemon's key store, from where the arguments say.

use crate::ldif_source::say_waiting;
use keyway_daemon::keys::{self, KeyStore, Master, MasterKey, Passphrase};
use keyway_engine::Engine;
use keyway_engine::limits::PASSWORD_BYTES_MAX;
use keyway_folder::data::name;
use keyway_host::failure::{Failure, plain};
use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The master key's file, in the daemon's folder.
const FILE: &str = "master.key";

/// Where the master key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file of 32 bytes, which is made if there is none.
    File(PathBuf),
    /// A passphrase, in the first line of a file or of standard input.
    Passphrase(PathBuf),
    /// A credential of systemd, by its name.
    Credential(String),
    /// The TPM, which unseals what is in this file; that is made if there is none.
    Tpm(PathBuf),
}

impl fmt::Display for Source {
    /// As it is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => write!(f, "file:{}", path.display()),
            Source::Passphrase(path) => write!(f, "passphrase:{}", path.display()),
            Source::Credential(name) => write!(f, "credential:{name}"),
            Source::Tpm(path) => write!(f, "tpm:{}", path.display()),
        }
    }
}

/// Reads a source.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn source(text: &str) -> Result<Source, String> {
    match text.split_once(':') {
        Some(("file", path)) if !path.is_empty() => Ok(Source::File(path.into())),
        Some(("passphrase", path)) if !path.is_empty() => Ok(Source::Passphrase(path.into())),
        Some(("credential", name)) if !name.is_empty() && !name.contains('/') => {
            Ok(Source::Credential(name.to_owned()))
        }
        Some(("tpm", path)) if !path.is_empty() => Ok(Source::Tpm(path.into())),
        _ => Err("it is not file:PATH, passphrase:PATH, credential:NAME or tpm:PATH".to_owned()),
    }
}

/// A source for a daemon that may have to be started again.
///
/// # Errors
/// As [`source`], and if it can be read only once.
pub fn file_source(text: &str) -> Result<Source, String> {
    match source(text)? {
        Source::Passphrase(path) if path.as_os_str() == "-" => {
            Err("cryptod may have to be started again: name a file instead of '-'".to_owned())
        }
        source => Ok(source),
    }
}

/// A master key, or a passphrase that one is made from.
pub enum Got {
    /// The key itself.
    Key(MasterKey),
    /// The passphrase.
    Passphrase(Zeroizing<Vec<u8>>),
}

/// Opens the file that a source is, if it is one and is there: for a process that may not read it later.
///
/// # Errors
/// The system's.
pub fn open(source: &Source) -> Result<Option<File>, Failure> {
    let (Source::File(path) | Source::Passphrase(path)) = source else { return Ok(None) };
    if !path.is_file() {
        return Ok(None);
    }
    File::open(path).map(Some).map_err(|why| Failure::system("read", path, &why))
}

/// [`open()`] for a daemon that may have to be started again.
///
/// # Errors
/// As there, and if it can be read only once.
pub fn open_again(source: &Source) -> Result<Option<File>, Failure> {
    if let Source::Passphrase(path) = source
        && path.exists()
        && !path.is_file()
    {
        return Err(Failure::usage(format!(
            "--master passphrase:{}: this is no plain file, and cryptod may have to be started again and read it \
             then; put the passphrase into a file of mode 600",
            path.display()
        )));
    }
    open(source)
}

/// Gets it, from a file that is [open](open()) already if there is one, or makes it at the first start.
///
/// # Errors
/// Errors of its source.
pub fn get(
    source: &Option<Source>,
    open: Option<File>,
    folder: &Path,
    engine: &Engine,
) -> Result<Got, Failure> {
    let at_home = Source::File(folder.join(FILE));
    let source = source.as_ref().unwrap_or(&at_home);
    if let Source::File(path) | Source::Tpm(path) = source
        && !path.exists()
        && open.is_none()
    {
        may_be_made(path, &folder.join(name::cryptod::KEYS))?;
    }
    let key = match source {
        Source::File(path) => match &open {
            Some(file) => MasterKey::from_open(file, path),
            None if path.exists() => MasterKey::from_file(path),
            None => MasterKey::create_file(path, engine),
        },
        Source::Tpm(path) if path.exists() => MasterKey::from_tpm(path),
        Source::Tpm(path) => MasterKey::create_in_tpm(path, engine),
        Source::Credential(name) => {
            let Some(place) = env::var_os("CREDENTIALS_DIRECTORY") else {
                return Err(Failure::new(
                    "there are no credentials: systemd sets CREDENTIALS_DIRECTORY for a unit with \
                     LoadCredential= or LoadCredentialEncrypted=",
                ));
            };
            MasterKey::from_credential(&Path::new(&place).join(name))
        }
        Source::Passphrase(path) => return passphrase(path, open).map(Got::Passphrase),
    };
    key.map(Got::Key).map_err(|why| Failure::new(format!("no master key: {why}")))
}

/// That no keys are sealed under another one already, which a new one would not open.
fn may_be_made(path: &Path, keys: &Path) -> Result<(), Failure> {
    if !KeyStore::exists(keys) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "no master key: {} is not there, and the keys in {} are sealed under one already; say with \
         --master where that comes from (file:PATH, passphrase:PATH, credential:NAME or tpm:PATH), as \
         when they were made, or put the file back",
        path.display(),
        keys.display()
    )))
}

/// The first line of a file.
fn passphrase(path: &Path, open: Option<File>) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let most = PASSWORD_BYTES_MAX + 2;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most + 1));
    let is_standard_input = path.as_os_str() == "-";
    let file = match (open, is_standard_input) {
        (Some(file), _) => Ok(file),
        (None, true) => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        (None, false) => {
            say_waiting(path);
            File::open(path)
        }
    };
    let read = file.and_then(|mut file| {
        if let Err(why) = keys::is_private(&file, path) {
            return Ok(Err(Failure::new(format!("no passphrase: {why}"))));
        }
        // Who had it open before has read it; a pipe has no beginning, and standard input begins where it is.
        if !is_standard_input {
            let _ = file.rewind();
        }
        file.take(most as u64).read_to_end(&mut bytes).map(Ok)
    });
    read.map_err(|why| {
        Failure::new(format!("no passphrase: cannot read {}: {}", path.display(), plain(&why)))
    })??;
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    bytes.truncate(end);
    if bytes.is_empty() || bytes.len() > PASSWORD_BYTES_MAX {
        return Err(Failure::new(format!(
            "no passphrase: the first line of {} is empty or longer than {PASSWORD_BYTES_MAX} bytes",
            path.display()
        )));
    }
    Ok(bytes)
}

impl Got {
    /// Opens the key store, or makes one where there is none.
    ///
    /// # Errors
    /// The error.
    pub fn open(&self, folder: &Path, engine: &Engine) -> Result<KeyStore, Failure> {
        let master = match self {
            Got::Key(key) => Master::Key(key),
            Got::Passphrase(passphrase) => Master::Passphrase(Passphrase(passphrase)),
        };
        let report = |what: &str| keyway_host::output::note(what);
        let store = match KeyStore::exists(folder) {
            true => KeyStore::open(folder, master, engine, report),
            false => KeyStore::create(folder, master, engine, report),
        };
        store.map_err(|why| refused(&why))
    }
}

fn refused(why: &keys::Error) -> Failure {
    Failure::new(format!("cannot open the key store: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources() {
        assert_eq!(source("file:/x"), Ok(Source::File("/x".into())));
        assert_eq!(source("passphrase:-"), Ok(Source::Passphrase("-".into())));
        assert_eq!(source("credential:m"), Ok(Source::Credential("m".to_owned())));
        for wrong in ["", "file:", "/x", "credential:../x", "pass:x"] {
            assert!(source(wrong).is_err(), "{wrong}");
        }
    }
}
