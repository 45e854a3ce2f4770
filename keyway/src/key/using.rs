//! Uses of a key from a shell.

use super::arguments::{At, Manner, Use, Verify};
use crate::limits::KEY_INPUT_BYTES_MAX;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_folder::data::name;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::same_file::is_no_input;
use keyway_service::key_files::Format;
use keyway_service::key_use::{self, Made, UsableKey};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use zeroize::Zeroizing;

/// A key that this process may use.
///
/// # Errors
/// That there is no daemon, or no such key for this process.
pub fn open(name: &str, at: &At) -> Result<UsableKey, Failure> {
    let socket = at.socket.clone().unwrap_or_else(|| name::socket_at(&at.folder));
    UsableKey::open(name, &socket, "keyway key")
}

/// Signs the input.
pub fn sign(use_: &Use) -> Result<(), Failure> {
    no_context(use_)?;
    let made = open(&use_.name, &use_.at)?.sign(&use_.manner.read(), || read(&use_.file))?;
    put(use_, "signature", &made)
}

fn no_context(use_: &Use) -> Result<(), Failure> {
    match use_.context.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage("--context is for AEADs")),
    }
}

/// Makes a message authentication code of the input.
pub fn mac(use_: &Use) -> Result<(), Failure> {
    no_context(use_)?;
    let made = open(&use_.name, &use_.at)?.mac(&use_.manner.read(), || read(&use_.file))?;
    put(use_, "mac", &made)
}

/// Looks whether a signature or MAC is right. Says so.
pub fn verify(verify: &Verify) -> Result<bool, Failure> {
    let key = open(&verify.name, &verify.at)?;
    let (algorithm, is_right) = key.verify(&verify.manner.read(), || {
        if verify.file.as_os_str() == "-" && verify.signature.as_os_str() == "-" {
            return Err(Failure::usage("only one of FILE and --signature can be standard input"));
        }
        let (input, given) = (read(&verify.file)?, read(&verify.signature)?);
        let given = Format::from(verify.format).read(&given).ok_or_else(|| {
            let file = verify.signature.display();
            Failure::new(format!("{file} is not what --format says"))
        })?;
        Ok((input, given))
    })?;
    let name = &verify.name;
    match (verify.at.json, is_right) {
        (true, _) => output::json(
            &json!({ "key": name, "algorithm": algorithm.name(), "verified": is_right }),
        )?,
        (false, true) => output::text(format_args!("{name}: verified"))?,
        (false, false) => output::text(format_args!("{name}: NOT verified"))?,
    }
    Ok(is_right)
}

/// Encrypts the input.
pub fn encrypt(use_: &Use) -> Result<(), Failure> {
    let key = open(&use_.name, &use_.at)?;
    let made = key.encrypt(&use_.manner.read(), &use_.context, || read(&use_.file))?;
    put(use_, "data", &made)
}

/// Decrypts the input.
pub fn decrypt(use_: &Use) -> Result<(), Failure> {
    let key = open(&use_.name, &use_.at)?;
    let (file, shown) = (&use_.file, shown(&use_.file));
    let made = key.decrypt(&use_.manner.read(), &use_.context, || read(file), &shown)?;
    put(use_, "data", &made)
}

fn shown(file: &Path) -> String {
    match file.as_os_str() == "-" {
        true => "the input".to_owned(),
        false => file.display().to_string(),
    }
}

fn read(file: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut bytes = Zeroizing::new(Vec::new());
    let most = KEY_INPUT_BYTES_MAX as u64 + 1;
    let read = match file.as_os_str() == "-" {
        true => io::stdin().lock().take(most).read_to_end(&mut bytes),
        false => File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    read.map_err(|why| Failure::system("read", file, &why))?;
    if bytes.len() > KEY_INPUT_BYTES_MAX {
        return Err(Failure::new(format!(
            "{} is longer than {} MiB, which is the most at a time; sign or authenticate its digest, encrypt \
             it in pieces",
            shown(file),
            KEY_INPUT_BYTES_MAX >> 20
        )));
    }
    Ok(bytes)
}

/// Puts a result where it is to go.
fn put(use_: &Use, what: &str, (algorithm, bytes): &Made) -> Result<(), Failure> {
    let Use { name, output, format, at, .. } = use_;
    let mut said = json!({ "key": name, "algorithm": algorithm.name() });
    if let Some(file) = output {
        is_no_input(file, [&use_.file])?;
        let text = format.map_or(Format::Raw, Format::from).write(bytes);
        fs::write(file, &*text).map_err(|why| Failure::system("write", file, &why))?;
        said["file"] = Value::from(file.display().to_string());
    } else if at.json {
        said[what] = Value::from(BASE64_STANDARD.encode(bytes));
    } else {
        let terminal = io::stdout().is_terminal();
        let usual = if terminal && what != "data" { Format::Base64 } else { Format::Raw };
        let mut text = format.map_or(usual, Format::from).write(bytes);
        if terminal && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(&text).and_then(|()| out.flush());
        return written.map_err(|why| Failure::output(&why));
    }
    if at.json { output::json(&said) } else { Ok(()) }
}

impl Manner {
    fn read(&self) -> key_use::Manner {
        let Manner { algorithm, hash, mgf1_hash, salt, digest, label } = self;
        key_use::Manner {
            algorithm: *algorithm,
            hash: *hash,
            mgf1_hash: *mgf1_hash,
            salt_bytes: *salt,
            prehashed: *digest,
            label: label.clone(),
        }
    }
}
