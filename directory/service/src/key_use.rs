//! Uses of a key that a running cryptod holds: the client names it, and the daemon does the work.

use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{
    Algorithm, Engine, Error, Key, Kind, NONCE_BYTES, OaepParameters, Parameters, Request,
    Selection, Session, SignatureParameters, TAG_BYTES,
};
use keyway_folder::control::{Control, nonsense};
use keyway_host::failure::{Failure, plain};
use keyway_ring::control::{Answer, Ask};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Number of the version, before an encrypted text.
const VERSION_BYTES: usize = 4;

/// As many bytes as the longest modulus has.
const OAEP_BYTES_MAX: usize = 1024;

/// Reads what a key is used on.
pub trait Input: FnOnce() -> Result<Zeroizing<Vec<u8>>, Failure> {}
impl<F: FnOnce() -> Result<Zeroizing<Vec<u8>>, Failure>> Input for F {}

/// How a key is used, as far as its user says.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// With which of the key's algorithms, or of those that an algorithm of the key leaves open.
    pub algorithm: Option<Algorithm>,
    /// The hash, where the algorithm names none.
    pub hash: Option<Algorithm>,
    /// The hash of MGF1, where the algorithm names none.
    pub mgf1_hash: Option<Algorithm>,
    /// The length of the salt of RSASSA-PSS in bytes, where the algorithm names none.
    pub salt_bytes: Option<u16>,
    /// Whether the input is a digest.
    pub prehashed: bool,
    /// The label of RSAES-OAEP.
    pub label: String,
}

impl Manner {
    /// With an algorithm that leaves the hash open and none named, SHA-256.
    fn signature(&self, algorithm: Algorithm) -> SignatureParameters {
        let Manner { hash, mgf1_hash, salt_bytes, prehashed, .. } = *self;
        let usual = SignatureParameters { prehashed, hash, mgf1_hash, salt_bytes };
        let names_none = (algorithm.is_ecdsa() || algorithm.is_rsa())
            && algorithm.signature_hash().is_none()
            && hash.is_none();
        // A digest, too, is of no hash only where that is meant: ECDSA takes any.
        match names_none && !(prehashed && algorithm.is_ecdsa()) {
            true => SignatureParameters { hash: Some(Algorithm::Sha256), ..usual },
            false => usual,
        }
    }

    /// Refuses what would say nothing for a use of this algorithm.
    fn check(&self, algorithm: Algorithm) -> Result<(), Failure> {
        let Manner { hash, mgf1_hash, salt_bytes, prehashed, label, .. } = self;
        let (signs, encrypts) =
            (algorithm.kind() == Kind::Signature, algorithm.kind() == Kind::Encryption);
        for (flag, is_given, fits) in [
            ("--hash", hash.is_some(), signs || encrypts),
            ("--mgf1-hash", mgf1_hash.is_some(), signs || encrypts),
            ("--salt", salt_bytes.is_some(), signs),
            ("--digest", *prehashed, signs),
            ("--label", !label.is_empty(), encrypts),
        ] {
            if is_given && !fits {
                return Err(Failure::usage(format!("{flag} says nothing for {algorithm}")));
            }
        }
        Ok(())
    }

    fn oaep(&self, algorithm: Algorithm) -> OaepParameters {
        let is_open = algorithm == Algorithm::RsaOaep;
        let hash = self.hash.or(is_open.then_some(Algorithm::Sha256));
        OaepParameters { hash, mgf1_hash: self.mgf1_hash }
    }
}

/// The result of a use, and with which algorithm it was made.
pub type Made = (Algorithm, Zeroizing<Vec<u8>>);

/// A key of a running cryptod that this process may use.
pub struct UsableKey {
    name: String,
    control: Control,
    engine: Engine,
    socket: PathBuf,
    _remote: Remote,
    algorithms: Vec<Algorithm>,
    purposes: Vec<String>,
}

impl UsableKey {
    /// Asks the daemon at this socket, as a client of this name, what this process may do with the key.
    ///
    /// # Errors
    /// That there is no daemon, or no such key for this process.
    pub fn open(name: &str, socket: &Path, client: &str) -> Result<UsableKey, Failure> {
        let control = Control::connect(socket, client)?;
        let (algorithms, purposes, _) = ask(&control, name)?;
        let engine = keyway_drivers::engine();
        let options =
            RemoteOptions { selection: Selection::Named, ..RemoteOptions::new(socket, client) };
        let remote = Remote::connect(&engine, options);
        let _remote = remote.map_err(|why| {
            Failure::new(format!("cannot use the cryptod at {}: {}", socket.display(), plain(&why)))
        })?;
        let (name, socket) = (name.to_owned(), socket.to_owned());
        Ok(UsableKey { name, control, engine, socket, _remote, algorithms, purposes })
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
            Some(asked) => {
                let has = |it: &Algorithm| *it == asked || Some(*it) == asked.general();
                Some(asked).filter(|it| self.algorithms.iter().any(has) && fits(&it))
            }
            None => self.algorithms.iter().find(fits).copied(),
        };
        found.ok_or_else(|| {
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

    /// Signs an input, which is read once that is known to be allowed.
    ///
    /// # Errors
    /// If the key is for something else, the daemon refuses, or there is no input.
    pub fn sign(&self, manner: &Manner, input: impl Input) -> Result<Made, Failure> {
        self.may("sign")?;
        let algorithm = self.algorithm(manner.algorithm, &[Kind::Signature], "sign")?;
        manner.check(algorithm)?;
        let (session, message) = (self.session(algorithm, None)?, input()?);
        let mut out = Zeroizing::new(vec![0; session.signature_bytes_max()]);
        let parameters = manner.signature(algorithm);
        let request = &mut Request::Sign { message: &message, parameters, out: &mut out };
        let used = session.run(request).map_err(|why| self.failure("sign", why))?;
        out.truncate(used);
        Ok((algorithm, out))
    }

    /// Makes a message authentication code of an input, which is read once that is known to be allowed.
    ///
    /// # Errors
    /// If the key is for something else, the daemon refuses, or there is no input.
    pub fn mac(&self, manner: &Manner, input: impl Input) -> Result<Made, Failure> {
        self.may("mac")?;
        let algorithm = self.algorithm(manner.algorithm, &[Kind::Mac], "make MACs")?;
        manner.check(algorithm)?;
        Ok((algorithm, Zeroizing::new(self.code(algorithm, &input()?)?)))
    }

    fn code(&self, algorithm: Algorithm, input: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut out = vec![0; algorithm.output_bytes().unwrap_or(0)];
        let session = self.session(algorithm, None)?;
        let made = session.run(&mut Request::Mac { data: &[input], out: &mut out });
        made.map_err(|why| self.failure("make a MAC", why))?;
        Ok(out)
    }

    /// Whether a signature or MAC is right for an input. Both are read once an algorithm fits, the input first.
    ///
    /// # Errors
    /// If the key is for something else, the daemon refuses, or there is no input.
    pub fn verify(
        &self,
        manner: &Manner,
        inputs: impl FnOnce() -> Result<(Zeroizing<Vec<u8>>, Vec<u8>), Failure>,
    ) -> Result<(Algorithm, bool), Failure> {
        let kinds = &[Kind::Signature, Kind::Mac];
        let algorithm = self.algorithm(manner.algorithm, kinds, "verify")?;
        manner.check(algorithm)?;
        let (input, given) = inputs()?;
        if algorithm.kind() == Kind::Mac {
            self.may("mac")?;
            return Ok((algorithm, is_equal(&self.code(algorithm, &input)?, &given)));
        }
        let public = self.session(algorithm, None)?.public_key();
        let public_key = &public.map_err(|why| self.failure("show its public half", why))?[..];
        let (message, parameters) = (&input, manner.signature(algorithm));
        let request = &mut Request::Verify { public_key, message, parameters, signature: &given };
        match self.engine.run(algorithm, request) {
            Ok(_) => Ok((algorithm, true)),
            Err(Error::Authentication) => Ok((algorithm, false)),
            Err(why) => Err(self.failure("verify", why)),
        }
    }

    /// Encrypts an input, which is read once an algorithm fits; a text beside it is authenticated.
    ///
    /// # Errors
    /// If the key is for something else, the daemon refuses, or there is no input.
    pub fn encrypt(
        &self,
        manner: &Manner,
        context: &str,
        input: impl Input,
    ) -> Result<Made, Failure> {
        let kinds = &[Kind::Aead, Kind::Encryption];
        let algorithm = self.algorithm(manner.algorithm, kinds, "encrypt")?;
        manner.check(algorithm)?;
        let input = input()?;
        if algorithm.kind() == Kind::Encryption {
            refuse_context(context)?;
            return Ok((algorithm, self.encrypt_to_public(algorithm, manner, &input)?));
        }
        self.may("encrypt")?;
        loop {
            let before = self.version()?;
            let mut sealed = before.to_le_bytes().to_vec();
            let mut data = Zeroizing::new(input.to_vec());
            let done = self.session(algorithm, None)?.seal_next(context.as_bytes(), &mut data);
            let (nonce, tag) = done.map_err(|why| self.failure("encrypt", why))?;
            sealed.extend([&nonce[..], &data, &tag].concat());
            // A session does not tell its version: it is the one that is the newest before and after.
            if self.version()? == before {
                return Ok((algorithm, Zeroizing::new(sealed)));
            }
        }
    }

    fn encrypt_to_public(
        &self,
        algorithm: Algorithm,
        manner: &Manner,
        message: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let (_, public_key) = self.public()?;
        let mut out = Zeroizing::new(vec![0; OAEP_BYTES_MAX]);
        let request = &mut Request::PublicEncrypt {
            public_key: &public_key,
            message,
            parameters: manner.oaep(algorithm),
            label: manner.label.as_bytes(),
            out: &mut out,
        };
        let used = self.engine.run(algorithm, request);
        out.truncate(used.map_err(|why| {
            let most = "it takes a message as long as a key of another cipher, and no longer";
            Failure::new(format!("the key {} cannot encrypt this: {why}; {most}", self.name))
        })?);
        Ok(out)
    }

    /// Decrypts an input of this name, which is read once that is known to be allowed.
    ///
    /// # Errors
    /// If the key is for something else, the daemon refuses, there is no input, or it was not encrypted with this
    /// key and this text beside it.
    pub fn decrypt(
        &self,
        manner: &Manner,
        context: &str,
        input: impl Input,
        shown: &str,
    ) -> Result<Made, Failure> {
        self.may("decrypt")?;
        let kinds = &[Kind::Aead, Kind::Encryption];
        let algorithm = self.algorithm(manner.algorithm, kinds, "decrypt")?;
        manner.check(algorithm)?;
        let input = input()?;
        let beside = match algorithm.kind() {
            Kind::Encryption => "with this padding, these hashes and this --label",
            _ => "and this --context",
        };
        let wrong = || {
            Failure::new(format!(
                "{shown} was not encrypted with the key {} {beside}, or was changed since",
                self.name
            ))
        };
        if algorithm.kind() == Kind::Encryption {
            refuse_context(context)?;
            let mut out = Zeroizing::new(vec![0; OAEP_BYTES_MAX]);
            let session = self.session(algorithm, None)?;
            let request = &mut Request::PrivateDecrypt {
                ciphertext: &input,
                parameters: manner.oaep(algorithm),
                label: manner.label.as_bytes(),
                out: &mut out,
            };
            let used = session.run(request).map_err(|why| match why {
                Error::Authentication => wrong(),
                why => self.failure("decrypt", why),
            })?;
            out.truncate(used);
            return Ok((algorithm, out));
        }
        let (version, rest) = input.split_first_chunk::<VERSION_BYTES>().ok_or_else(wrong)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or_else(wrong)?;
        if sealed.len() < TAG_BYTES {
            return Err(wrong());
        }
        let version = u32::from_le_bytes(*version);
        // A version that never was is a sign of another file.
        if !(1..=self.version()?).contains(&version) {
            return Err(wrong());
        }
        let mut data = Zeroizing::new(sealed.to_vec());
        let session = self.session(algorithm, Some(version))?;
        match session.open_in_place(nonce, context.as_bytes(), &mut data) {
            Ok(bytes) => data.truncate(bytes),
            Err(Error::Authentication) => return Err(wrong()),
            Err(why) => return Err(self.failure("decrypt", why)),
        }
        Ok((algorithm, data))
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

/// Whether two codes are equal; those of equal length are compared in constant time.
fn is_equal(made: &[u8], given: &[u8]) -> bool {
    made.len() == given.len()
        && made.iter().zip(given).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

fn refuse_context(context: &str) -> Result<(), Failure> {
    match context.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage("--context is for AEADs; RSA-OAEP has a --label")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_equal_if_all_of_them_is() {
        assert!(is_equal(b"code", b"code"));
        assert!(!is_equal(b"code", b"cod") && !is_equal(b"code", b"cods"));
    }

    #[test]
    fn a_context_without_an_aead_is_refused() {
        assert!(refuse_context("").is_ok());
        assert_eq!(refuse_context("mail").unwrap_err().status(), 2);
    }
}
