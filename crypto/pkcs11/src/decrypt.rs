//! Decryption with keys of cryptod, and encryption to their public halves.

use crate::abi::{self, Rv};
use crate::key::{TokenKey, signature_bytes};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::module::Module;
use crate::scheme::Decryption;
use keyway_client::PublicKey;
use keyway_engine::Request;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A decryption under way, or an encryption.
#[derive(Clone)]
pub struct Crypting {
    key: Arc<TokenKey>,
    how: Decryption,
    text: Vec<u8>,
}

impl Crypting {
    /// Begins one with a key.
    ///
    /// # Errors
    /// If the key is of another kind.
    pub fn new(key: &Arc<TokenKey>, how: Decryption) -> Result<Crypting, Rv> {
        match &key.public {
            PublicKey::Rsa { .. } => Ok(Crypting { key: key.clone(), how, text: Vec::new() }),
            _ => Err(abi::KEY_TYPE_INCONSISTENT),
        }
    }

    /// Whether its key may decrypt so.
    pub fn is_permitted(&self) -> bool {
        self.key.can_decrypt && self.how.of_key(&self.key).is_some()
    }

    /// Bytes of the modulus: the length of an encrypted text, and more than that of any other.
    pub fn bytes(&self) -> usize {
        signature_bytes(&self.key.public)
    }

    /// Takes a part of the text.
    pub fn update(&mut self, part: &[u8]) -> Result<(), Rv> {
        if self.text.len() + part.len() > MESSAGE_BYTES_MAX {
            return Err(abi::DATA_LEN_RANGE);
        }
        self.text.extend_from_slice(part);
        Ok(())
    }

    /// Decrypts.
    pub fn decrypt(&self, module: &Module) -> Result<Zeroizing<Vec<u8>>, Rv> {
        if self.text.len() != self.bytes() {
            return Err(abi::ENCRYPTED_DATA_LEN_RANGE);
        }
        let (algorithm, parameters) =
            self.how.of_key(&self.key).ok_or(abi::KEY_FUNCTION_NOT_PERMITTED)?;
        let (mut out, label) = (Zeroizing::new(vec![0; self.bytes()]), self.how.label());
        let ciphertext = &self.text;
        let mut request = Request::PrivateDecrypt { ciphertext, parameters, label, out: &mut out };
        let used = module.client.run(&self.key.name, &self.key.info, algorithm, &mut request);
        out.truncate(used.map_err(|why| module.failed(&why, abi::ENCRYPTED_DATA_INVALID))?);
        Ok(out)
    }

    /// Encrypts.
    pub fn encrypt(&self, module: &Module) -> Result<Vec<u8>, Rv> {
        let (algorithm, parameters) = self.how.general();
        let (mut out, label) = (vec![0; self.bytes()], self.how.label());
        let (public_key, message) = (self.key.public_bits(), &*self.text);
        let mut request =
            Request::PublicEncrypt { public_key, message, parameters, label, out: &mut out };
        let used = module.client.run_without_key(algorithm, &mut request);
        out.truncate(used.map_err(|why| module.failed(&why, abi::DATA_LEN_RANGE))?);
        Ok(out)
    }
}
