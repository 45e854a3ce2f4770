//! Uses of a key from a shell: its client names it, and the daemon does the work.

use super::arguments::{Format, Use, Verify};
use crate::limits::KEY_INPUT_BYTES_MAX;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{
    Algorithm, Engine, Error, Key, Kind, NONCE_BYTES, Parameters, Request, Selection, Session,
    TAG_BYTES,
};
use keyway_folder::control::{Control, nonsense};
use keyway_folder::data::name;
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use keyway_ring::control::{Answer, Ask};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const CLIENT: &str = "keyway key";
/// Number of the version, before what is encrypted.
const VERSION_BYTES: usize = 4;

/// A key that this process may use.
pub struct Usable {
    name: String,
    control: Control,
    engine: Engine,
    socket: PathBuf,
    _remote: Remote,
    algorithms: Vec<Algorithm>,
    purposes: Vec<String>,
}

impl Usable {
    /// Asks the daemon what this process may do with it.
    ///
    /// # Errors
    /// That there is no daemon, or no such key for this process.
    pub fn open(name: &str, at: &super::arguments::At) -> Result<Usable, Failure> {
        let socket = at.socket.clone().unwrap_or_else(|| name::socket_at(&at.folder));
        let control = Control::connect(&socket, CLIENT)?;
        let (algorithms, purposes, _) = ask(&control, name)?;
        let engine = keyway_drivers::engine();
        let options =
            RemoteOptions { selection: Selection::Named, ..RemoteOptions::new(&socket, CLIENT) };
        let remote = Remote::connect(&engine, options);
        let _remote = remote.map_err(|why| {
            Failure::new(format!("cannot use the cryptod at {}: {}", socket.display(), plain(&why)))
        })?;
        let name = name.to_owned();
        Ok(Usable { name, control, engine, socket, _remote, algorithms, purposes })
    }

    fn version(&self) -> Result<u32, Failure> {
        ask(&self.control, &self.name).map(|(_, _, version)| version)
    }

    /// The algorithm to use it with: the one that is asked for, or its first that is of these kinds.
    fn algorithm(
        &self,
        asked: Option<Algorithm>,
        kinds: &[Kind],
        what: &str,
    ) -> Result<Algorithm, Failure> {
        let names = || self.algorithms.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
        let fits = |algorithm: &&Algorithm| kinds.contains(&algorithm.kind());
        let found = match asked {
            Some(asked) => self.algorithms.iter().find(|it| **it == asked).filter(fits),
            None => self.algorithms.iter().find(fits),
        };
        found.copied().ok_or_else(|| {
            Failure::new(format!(
                "the key {} cannot be used to {what}: it is for {}",
                self.name,
                names()
            ))
        })
    }

    fn may(&self, purpose: &str) -> Result<(), Failure> {
        match self.purposes.iter().any(|it| it == purpose) {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "this user and program may use the key {} to {}, and not to {purpose}; keyway key allow changes \
                 that",
                self.name,
                self.purposes.join(", ")
            ))),
        }
    }

    /// A session with its newest version, or with the one that is given.
    fn session(&self, algorithm: Algorithm, version: Option<u32>) -> Result<Session, Failure> {
        let named = version.map_or_else(|| self.name.clone(), |it| format!("{}@{it}", self.name));
        let opened = self.engine.session(Parameters::new(algorithm, Key::Named(&named)));
        opened.map_err(|why| self.failure("be used", why))
    }

    /// The public half of its newest version, as the engine has it, and its algorithm.
    ///
    /// # Errors
    /// If it has none, or the daemon refuses.
    pub fn public(&self) -> Result<(Algorithm, Vec<u8>), Failure> {
        let kinds = [Kind::Signature, Kind::Encryption, Kind::Exchange, Kind::Kem];
        let algorithm = self.algorithm(None, &kinds, "show a public half")?;
        let public = self.session(algorithm, None)?.public_key();
        Ok((algorithm, public.map_err(|why| self.failure("show its public half", why))?))
    }

    fn failure(&self, what: &str, why: Error) -> Failure {
        let socket = self.socket.display();
        Failure::new(format!(
            "the key {} of the cryptod at {socket} cannot {what}: {why}",
            self.name
        ))
    }
}

fn ask(control: &Control, name: &str) -> Result<(Vec<Algorithm>, Vec<String>, u32), Failure> {
    let answer = control.ask(&Ask::Usable { name: name.to_owned() })?;
    let Answer::Usable { algorithms, purposes, version } = answer else { return Err(nonsense()) };
    let algorithms = algorithms.iter().filter_map(|name| name.parse().ok()).collect();
    Ok((algorithms, purposes, version))
}

/// Signs the input.
pub fn sign(use_: &Use) -> Result<(), Failure> {
    let key = Usable::open(&use_.name, &use_.at)?;
    key.may("sign")?;
    let algorithm = key.algorithm(use_.algorithm, &[Kind::Signature], "sign")?;
    let input = read(&use_.file)?;
    let signed = key.session(algorithm, None)?.sign(&input);
    let signature = signed.map_err(|why| key.failure("sign", why))?;
    put(use_, algorithm, "signature", &signature)
}

/// Makes a message authentication code of the input.
pub fn mac(use_: &Use) -> Result<(), Failure> {
    let key = Usable::open(&use_.name, &use_.at)?;
    key.may("mac")?;
    let algorithm = key.algorithm(use_.algorithm, &[Kind::Mac], "make MACs")?;
    let code = code(&key, algorithm, &read(&use_.file)?)?;
    put(use_, algorithm, "mac", &code)
}

fn code(key: &Usable, algorithm: Algorithm, input: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut out = vec![0; algorithm.output_bytes().unwrap_or(0)];
    let session = key.session(algorithm, None)?;
    let made = session.run(&mut Request::Mac { data: &[input], out: &mut out });
    made.map_err(|why| key.failure("make a MAC", why))?;
    Ok(out)
}

/// Looks whether a signature or MAC is right. Says so.
pub fn verify(verify: &Verify) -> Result<bool, Failure> {
    let key = Usable::open(&verify.name, &verify.at)?;
    let algorithm = key.algorithm(verify.algorithm, &[Kind::Signature, Kind::Mac], "verify")?;
    if verify.file.as_os_str() == "-" && verify.signature.as_os_str() == "-" {
        return Err(Failure::usage("only one of FILE and --signature can be standard input"));
    }
    let (input, given) = (read(&verify.file)?, read(&verify.signature)?);
    let given = verify.format.read(&given).ok_or_else(|| {
        let file = verify.signature.display();
        Failure::new(format!("{file} is not what --format says"))
    })?;
    let is_right = if algorithm.kind() == Kind::Mac {
        key.may("mac")?;
        let made = code(&key, algorithm, &input)?;
        // Codes of equal length are compared in constant time.
        made.len() == given.len()
            && made.iter().zip(&given).fold(0, |all, (one, other)| all | (one ^ other)) == 0
    } else {
        let public = key.session(algorithm, None)?.public_key();
        let public_key = &public.map_err(|why| key.failure("show its public half", why))?[..];
        let request = &mut Request::Verify { public_key, message: &input, signature: &given };
        match key.engine.run(algorithm, request) {
            Ok(_) => true,
            Err(Error::Authentication) => false,
            Err(why) => return Err(key.failure("verify", why)),
        }
    };
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
    let key = Usable::open(&use_.name, &use_.at)?;
    let algorithm = key.algorithm(use_.algorithm, &[Kind::Aead, Kind::Encryption], "encrypt")?;
    let input = read(&use_.file)?;
    if algorithm.kind() == Kind::Encryption {
        refuse_context(use_)?;
        let (_, public_key) = key.public()?;
        let mut out = vec![0; OAEP_BYTES_MAX];
        let request =
            &mut Request::PublicEncrypt { public_key: &public_key, message: &input, out: &mut out };
        let used = key.engine.run(algorithm, request);
        out.truncate(used.map_err(|why| {
            let most = "it takes a message as long as a key of another cipher, and no longer";
            Failure::new(format!("the key {} cannot encrypt this: {why}; {most}", key.name))
        })?);
        return put(use_, algorithm, "data", &out);
    }
    key.may("encrypt")?;
    let mut sealed;
    loop {
        let before = key.version()?;
        sealed = before.to_le_bytes().to_vec();
        let mut data = Zeroizing::new(input.to_vec());
        let done = key.session(algorithm, None)?.seal_next(use_.context.as_bytes(), &mut data);
        let (nonce, tag) = done.map_err(|why| key.failure("encrypt", why))?;
        sealed.extend([&nonce[..], &data, &tag].concat());
        // A session does not tell its version: it is the one that is the newest before and after.
        if key.version()? == before {
            break;
        }
    }
    put(use_, algorithm, "data", &sealed)
}

/// Decrypts the input.
pub fn decrypt(use_: &Use) -> Result<(), Failure> {
    let key = Usable::open(&use_.name, &use_.at)?;
    key.may("decrypt")?;
    let algorithm = key.algorithm(use_.algorithm, &[Kind::Aead, Kind::Encryption], "decrypt")?;
    let input = read(&use_.file)?;
    let wrong = || {
        Failure::new(format!(
            "{} was not encrypted with the key {} and this --context, or was changed since",
            shown(&use_.file),
            key.name
        ))
    };
    if algorithm.kind() == Kind::Encryption {
        refuse_context(use_)?;
        let mut out = Zeroizing::new(vec![0; OAEP_BYTES_MAX]);
        let session = key.session(algorithm, None)?;
        let used = session.run(&mut Request::PrivateDecrypt { ciphertext: &input, out: &mut out });
        let used = used.map_err(|_| wrong())?;
        return put(use_, algorithm, "data", &out[..used]);
    }
    let (version, rest) = input.split_first_chunk::<VERSION_BYTES>().ok_or_else(wrong)?;
    let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or_else(wrong)?;
    if sealed.len() < TAG_BYTES {
        return Err(wrong());
    }
    let version = u32::from_le_bytes(*version);
    // A version that never was is a sign of another file.
    if !(1..=key.version()?).contains(&version) {
        return Err(wrong());
    }
    let mut data = Zeroizing::new(sealed.to_vec());
    let session = key.session(algorithm, Some(version))?;
    match session.open_in_place(nonce, use_.context.as_bytes(), &mut data) {
        Ok(bytes) => put(use_, algorithm, "data", &data[..bytes]),
        Err(Error::Authentication) => Err(wrong()),
        Err(why) => Err(key.failure("decrypt", why)),
    }
}

/// As many bytes as the longest modulus has.
const OAEP_BYTES_MAX: usize = 1024;

fn refuse_context(use_: &Use) -> Result<(), Failure> {
    match use_.context.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage("--context is for AEADs: RSA-OAEP has none here")),
    }
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
fn put(use_: &Use, algorithm: Algorithm, what: &str, bytes: &[u8]) -> Result<(), Failure> {
    let Use { name, output, format, at, .. } = use_;
    let mut said = json!({ "key": name, "algorithm": algorithm.name() });
    if let Some(file) = output {
        let text = format.unwrap_or(Format::Raw).write(bytes);
        fs::write(file, &*text).map_err(|why| Failure::system("write", file, &why))?;
        said["file"] = Value::from(file.display().to_string());
    } else if at.json {
        said[what] = Value::from(BASE64_STANDARD.encode(bytes));
    } else {
        let terminal = io::stdout().is_terminal();
        let usual = if terminal && what != "data" { Format::Base64 } else { Format::Raw };
        let mut text = format.unwrap_or(usual).write(bytes);
        if terminal && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(&text).and_then(|()| out.flush());
        return written.map_err(|why| Failure::output(&why));
    }
    if at.json { output::json(&said) } else { Ok(()) }
}

impl Format {
    fn write(self, bytes: &[u8]) -> Zeroizing<Vec<u8>> {
        let mut text = match self {
            Format::Raw => return Zeroizing::new(bytes.to_vec()),
            Format::Base64 => BASE64_STANDARD.encode(bytes),
            Format::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        text.push('\n');
        Zeroizing::new(text.into_bytes())
    }

    fn read(self, text: &[u8]) -> Option<Vec<u8>> {
        let trimmed = text.trim_ascii();
        match self {
            Format::Raw => Some(text.to_vec()),
            Format::Base64 => BASE64_STANDARD.decode(trimmed).ok(),
            Format::Hex => {
                let digits = std::str::from_utf8(trimmed).ok()?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                let pair = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
                (0..digits.len()).step_by(2).map(pair).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for format in [Format::Raw, Format::Base64, Format::Hex] {
            assert_eq!(
                format.read(&format.write(b"\x00\xffbytes")),
                Some(b"\x00\xffbytes".to_vec())
            );
        }
        for wrong in ["0", "0g", "é", "+1"] {
            assert_eq!(Format::Hex.read(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
