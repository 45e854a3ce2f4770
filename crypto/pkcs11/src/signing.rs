//! Signatures that are made and verified: the parts of a message come together here, and cryptod does the rest.

use crate::abi::{self, Rv};
use crate::key::{TokenKey, signature_bytes};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::module::Module;
use crate::scheme::Scheme;
use keyway_client::{Hasher, PublicKey, integer, without_zeros};
use keyway_engine::Request;
use keyway_wire::der::{INTEGER, SEQUENCE, element, split};
use std::sync::Arc;

/// A signature under way, or a verification.
#[derive(Clone)]
pub struct Signing {
    key: Arc<TokenKey>,
    scheme: Scheme,
    message: Message,
}

#[derive(Clone)]
enum Message {
    Hashed(Hasher),
    Whole(Vec<u8>),
}

impl Signing {
    /// Begins one with a key.
    ///
    /// # Errors
    /// If the key is of another kind.
    pub fn new(key: &Arc<TokenKey>, scheme: Scheme) -> Result<Signing, Rv> {
        if !scheme.fits(&key.public) {
            return Err(abi::KEY_TYPE_INCONSISTENT);
        }
        let hash = scheme.message_hash();
        let message = match hash {
            Some(hash) => Message::Hashed(Hasher::new(hash)),
            None => Message::Whole(Vec::new()),
        };
        Ok(Signing { key: key.clone(), scheme, message })
    }

    /// Whether its key may do it.
    pub fn is_permitted(&self) -> bool {
        self.key.can_sign && self.scheme.of_key(&self.key).is_some()
    }

    /// Length of the signature, in bytes.
    pub fn signature_bytes(&self) -> usize {
        signature_bytes(&self.key.public)
    }

    /// Takes a part of the message.
    pub fn update(&mut self, part: &[u8]) -> Result<(), Rv> {
        match &mut self.message {
            Message::Hashed(hasher) => hasher.update(part),
            Message::Whole(message) if message.len() + part.len() > MESSAGE_BYTES_MAX => {
                return Err(abi::DATA_LEN_RANGE);
            }
            Message::Whole(message) => message.extend_from_slice(part),
        }
        Ok(())
    }

    /// The data that is signed: a digest, or the whole message.
    fn data(message: Message, scheme: Scheme, key: &TokenKey) -> Result<Vec<u8>, Rv> {
        let data = match message {
            Message::Hashed(hasher) => hasher.finish(),
            Message::Whole(message) => message,
        };
        scheme.check(&key.public, data.len())?;
        Ok(data)
    }

    /// Signs.
    pub fn sign(self, module: &Module) -> Result<Vec<u8>, Rv> {
        let Signing { key, scheme, message } = self;
        let data = Signing::data(message, scheme, &key)?;
        let (algorithm, parameters) = scheme.of_key(&key).ok_or(abi::KEY_FUNCTION_NOT_PERMITTED)?;
        let mut out = vec![0; room(&key.public)];
        let mut request = Request::Sign { message: &data, parameters, out: &mut out };
        let used = module.client.run(&key.name, &key.info, algorithm, &mut request);
        out.truncate(used.map_err(|why| module.failed(&why, abi::DATA_INVALID))?);
        match &key.public {
            PublicKey::Ec { curve, .. } => fixed(&out, curve.bytes()).ok_or(abi::GENERAL_ERROR),
            _ => Ok(out),
        }
    }

    /// Verifies.
    pub fn verify(self, module: &Module, signature: &[u8]) -> Result<(), Rv> {
        if signature.len() != self.signature_bytes() {
            return Err(abi::SIGNATURE_LEN_RANGE);
        }
        let Signing { key, scheme, message } = self;
        let data = Signing::data(message, scheme, &key)?;
        let (algorithm, parameters) =
            scheme.general(&key.public).ok_or(abi::KEY_TYPE_INCONSISTENT)?;
        let in_der = matches!(key.public, PublicKey::Ec { .. }).then(|| der(signature));
        let signature = in_der.as_deref().unwrap_or(signature);
        let public_key = key.public_bits();
        let mut request = Request::Verify { public_key, message: &data, parameters, signature };
        let done = module.client.run_without_key(algorithm, &mut request);
        done.map(drop).map_err(|why| module.failed(&why, abi::SIGNATURE_INVALID))
    }
}

/// Room for the longest signature as cryptod makes it, in bytes.
fn room(public: &PublicKey) -> usize {
    match public {
        // A SEQUENCE of two INTEGERs, each with a zero before it.
        PublicKey::Ec { curve, .. } => 2 * (curve.bytes() + 3) + 3,
        _ => signature_bytes(public),
    }
}

/// A signature of ECDSA as PKCS #11 has it, two numbers of fixed length, of one in DER (RFC 3279 § 2.2.3).
fn fixed(der: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let (content, []) = split(SEQUENCE, der)? else { return None };
    let (r, rest) = split(INTEGER, content)?;
    let (s, []) = split(INTEGER, rest)? else { return None };
    let mut out = Vec::with_capacity(2 * bytes);
    for number in [r, s].map(without_zeros) {
        out.resize(out.len() + bytes.checked_sub(number.len())?, 0);
        out.extend_from_slice(number);
    }
    Some(out)
}

/// A signature of ECDSA in DER, of one as PKCS #11 has it.
fn der(fixed: &[u8]) -> Vec<u8> {
    let (r, s) = fixed.split_at(fixed.len() / 2);
    element(SEQUENCE, &[&integer(r), &integer(s)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_signature_are_the_other() {
        for bytes in [32, 48, 66] {
            for (first, rest) in [(0xff, 7), (0, 0x80), (0, 0), (0x7f, 1)] {
                let mut number = vec![rest; bytes];
                number[0] = first;
                let signature = [&number[..], &number].concat();
                assert_eq!(fixed(&der(&signature), bytes), Some(signature.clone()));
                assert!(der(&signature).len() <= 2 * (bytes + 3) + 3);
            }
        }
        assert_eq!(fixed(&der(&[1; 66]), 32), None);
    }
}
