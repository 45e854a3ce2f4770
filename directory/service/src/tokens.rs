//! The tokens of a daemon, as its flags name them.

use keyway_daemon::keys;
use keyway_drivers::software;
use keyway_engine::{Algorithm, Key, Request, Step};
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use keyway_host::sandbox::Places;
use keyway_token::limits::{LABEL_BYTES_MAX, LAST_CALLS, LOOK, PIN_BYTES_MAX};
use keyway_token::{Error, Pin, TokenOptions, Tokens};
use rustix::fs::OFlags;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Instant;
use zeroize::Zeroizing;

/// A label, and a file: a module's library, or one with a PIN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The token's label.
    pub label: String,
    /// The file.
    pub file: PathBuf,
}

/// Reads LABEL=FILE.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn labelled(text: &str) -> Result<Labelled, String> {
    let is_label =
        |label: &str| (1..=LABEL_BYTES_MAX).contains(&label.len()) && !label.contains([',', '\n']);
    match text.split_once('=') {
        Some((label, file)) if is_label(label) && !file.is_empty() => {
            Ok(Labelled { label: label.to_owned(), file: file.into() })
        }
        _ => Err(format!(
            "it is not LABEL=FILE, with the label of a token: {LABEL_BYTES_MAX} bytes at most, without a comma or `=`"
        )),
    }
}

/// The flags, read while the process may still open all files.
pub struct TokenFlags {
    tokens: Vec<Labelled>,
    pins: Vec<(Labelled, File)>,
    files: Vec<PathBuf>,
}

/// Reads the flags, and opens the files with PINs, which only root may be able to read.
///
/// # Errors
/// If a file is not there, or a PIN is for no token that was named.
pub fn open(
    named: &[Labelled],
    named_pins: &[Labelled],
    files: &[PathBuf],
) -> Result<TokenFlags, Failure> {
    let mut tokens = Vec::new();
    for Labelled { label, file } in named {
        let flag = format!("--token {label}={}", file.display());
        let file = fs::canonicalize(file).map_err(|why| {
            Failure::usage(format!(
                "{flag}: {}; name the library of the token's PKCS#11 module",
                plain(&why)
            ))
        })?;
        tokens.push(Labelled { label: label.clone(), file });
    }
    let mut pins: Vec<(Labelled, File)> = Vec::new();
    for pin in named_pins {
        let Labelled { label, file } = pin;
        if tokens.iter().all(|token| token.label != *label) {
            let usage = format!("--token-pin {label}: no --token names a token {label}");
            return Err(Failure::usage(usage));
        }
        if pins.iter().any(|(before, _)| before.label == *label) {
            return Err(Failure::usage(format!("--token-pin {label}: there are two PINs")));
        }
        // To open a FIFO would wait until another process opens its other end.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let system = |why| Failure::system("read the PIN in", file, &why);
        let opened = options.open(file).map_err(system)?;
        if !opened.metadata().map_err(system)?.is_file() {
            return Err(Failure::new(format!(
                "--token-pin {label}: {} is no plain file",
                file.display()
            )));
        }
        pins.push((pin.clone(), opened));
    }
    let files = files.iter().map(|path| {
        fs::canonicalize(path).map_err(|why| Failure::system("let modules reach", path, &why))
    });
    Ok(TokenFlags { tokens, pins, files: files.collect::<Result<_, _>>()? })
}

impl TokenFlags {
    /// Files and folders that the modules need.
    pub fn places(&self) -> Option<Places> {
        let modules = self.tokens.iter().filter_map(|token| token.file.parent());
        let read = modules.map(Path::to_owned).collect();
        let write = self.files.clone();
        (!self.tokens.is_empty()).then_some(Places { write, read, sockets: Vec::new() })
    }

    /// The tokens, none of which is asked for anything; `None` if no flag names any. In `folder` it is noted which PINs
    /// were refused.
    ///
    /// # Errors
    /// If a PIN cannot be relied on: others may read it, or there is none in its file.
    pub fn tokens(self, folder: &Path) -> Result<Option<Arc<Tokens>>, Failure> {
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let mut pins = self.pins;
        let mut all = Vec::new();
        for Labelled { label, file: module } in self.tokens {
            let at = pins.iter().position(|(pin, _)| pin.label == label);
            let pin = at.map(|at| pins.swap_remove(at));
            let pin = pin.map(|(pin, open)| read(&pin, open, folder)).transpose()?;
            all.push(TokenOptions { label, module, pin });
        }
        let report = Arc::new(|what: &str| output::note(what));
        let tokens = Tokens::new(all, software(), report);
        tokens.map(|tokens| Some(Arc::new(tokens))).map_err(|why| Failure::usage(why.to_string()))
    }
}

/// The PIN in a file: its first line.
fn read(
    Labelled { label, file }: &Labelled,
    mut open: File,
    folder: &Path,
) -> Result<Pin, Failure> {
    keys::is_private(&open, file)
        .map_err(|why| Failure::new(format!("no PIN of token {label}: {why}")))?;
    let system = |why| Failure::system("read the PIN in", file, &why);
    let mut secret = Zeroizing::new(Vec::with_capacity(PIN_BYTES_MAX + 3));
    let _ = open.rewind();
    open.take(PIN_BYTES_MAX as u64 + 2).read_to_end(&mut secret).map_err(system)?;
    let end = secret.iter().position(|byte| *byte == b'\n').unwrap_or(secret.len());
    secret.truncate(end);
    if secret.last() == Some(&b'\r') {
        secret.pop();
    }
    if secret.is_empty() || secret.len() > PIN_BYTES_MAX {
        return Err(Failure::new(format!(
            "no PIN of token {label}: the first line of {} is empty or longer than {PIN_BYTES_MAX} bytes",
            file.display()
        )));
    }
    let identity = identity(&secret, label, folder)?;
    let note = folder.join(format!("{}.refused", hex(label.as_bytes())));
    Ok(Pin::new(&secret, file.clone(), identity, note))
}

/// The file in the folder with the key of the PINs' identities, and its length in bytes.
const IDENTITIES: &str = "identities.key";
const IDENTITIES_BYTES: usize = 32;

/// A PIN's identity: HMAC-SHA-256 of the label and the PIN. A digest without a key would give a PIN of few digits away.
fn identity(secret: &[u8], label: &str, folder: &Path) -> Result<String, Failure> {
    let path = folder.join(IDENTITIES);
    let failed = |why| Failure::new(format!("no PIN of token {label} can be noted: {why}"));
    let system = |why| Failure::system("write", &path, &why);
    let software = software();
    let mut key = Zeroizing::new(fs::read(&path).unwrap_or_default());
    if key.len() != IDENTITIES_BYTES {
        *key = vec![0; IDENTITIES_BYTES];
        let random = software.open(&[Step { algorithm: Algorithm::Random, key: Key::None }]);
        random.and_then(|it| it.run(&mut Request::Random { out: &mut key })).map_err(failed)?;
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let mut options = OpenOptions::new();
        let made = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        let written = made.and_then(|mut made| made.write_all(&key).and_then(|()| made.sync_all()));
        written.map_err(system)?;
    }
    let mut mac = [0; 32];
    let step = Step { algorithm: Algorithm::HmacSha256, key: Key::Secret(&key) };
    let mut request = Request::Mac { data: &[label.as_bytes(), &[0], secret], out: &mut mac };
    software.open(&[step]).and_then(|it| it.run(&mut request)).map_err(failed)?;
    Ok(hex(&mac))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Looks for the tokens, all at the same time. One that is not there, or has refused its PIN, keeps no key but its own
/// from being used: an operator is told of it, and it is looked for again with each use. One that does not answer at
/// once is not waited for.
///
/// # Errors
/// If a module is none.
pub fn look(tokens: &Arc<Tokens>) -> Result<(), Failure> {
    let (tell, told) = mpsc::channel();
    for label in tokens.labels() {
        let (tokens, tell) = (tokens.clone(), tell.clone());
        thread::spawn(move || {
            // The start may be over.
            let _ = tell.send(tokens.look(&label));
        });
    }
    drop(tell);
    let until = Instant::now() + LOOK;
    while let Ok(looked) = told.recv_timeout(until.saturating_duration_since(Instant::now())) {
        // The tokens have reported what else may be wrong.
        if let Err(why @ Error::Module { .. }) = looked {
            return Err(Failure::new(why.to_string()));
        }
    }
    Ok(())
}

/// Lets the daemon end. Requests that tokens do not answer hold that up for a while, and no longer.
pub fn end(tokens: Option<Arc<Tokens>>, daemon: impl FnOnce()) {
    let Some(tokens) = tokens else { return daemon() };
    let (ended, is_ended) = mpsc::channel::<()>();
    let silent = tokens.clone();
    thread::spawn(move || {
        if is_ended.recv_timeout(LAST_CALLS) == Err(RecvTimeoutError::Timeout) {
            silent.close();
        }
    });
    daemon();
    drop(ended);
    tokens.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_ends_at_the_first_equals_sign() {
        let read = labelled("my token=/lib/a=b.so").unwrap();
        assert_eq!((&*read.label, read.file), ("my token", PathBuf::from("/lib/a=b.so")));
        for wrong in ["", "x", "=y", "x=", "a,b=c", "a label that has far more than 32 bytes=c"] {
            assert!(labelled(wrong).is_err(), "{wrong}");
        }
    }
}
