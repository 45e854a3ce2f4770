//! RSA (RFC 8017) with the paddings that aws-lc-rs does not offer, by AWS-LC's own functions: RSASSA-PKCS1-v1_5
//! over a digest of any hash or over bytes as they are, RSASSA-PSS with any salt and any hash of MGF1, RSAES-OAEP
//! with any hashes and a label, and RSAES-PKCS1-v1_5 that tells nothing of the padding.
//!
//! [`PrivateKey`] and [`PublicKey`] are what callers use; `padding` says how; `library` has all unsafe code;
//! `rejection` has the message that stands for a ciphertext whose padding is wrong.
//!
//! These may not enter: the choice of a padding, and which keys are sound (aws-lc-rs checks a key when it is read).
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod library;
mod padding;
mod rejection;

use library::RsaKey;
pub use padding::{EncryptionPadding, Failed, SignaturePadding};
use rejection::Rejection;
use zeroize::Zeroizing;

/// A private key, ready for use by all threads at once.
pub struct PrivateKey {
    key: RsaKey,
    rejection: Rejection,
}

impl PrivateKey {
    /// Reads PKCS#8 (RFC 5208), DER.
    ///
    /// # Errors
    /// [`Failed`] if it is no RSA key.
    pub fn from_pkcs8(der: &[u8]) -> Result<PrivateKey, Failed> {
        PrivateKey::new(RsaKey::from_pkcs8(der)?)
    }

    /// Reads PKCS#1 (RFC 8017 § A.1.2), DER.
    ///
    /// # Errors
    /// [`Failed`] if it is no RSA key.
    pub fn from_pkcs1(der: &[u8]) -> Result<PrivateKey, Failed> {
        PrivateKey::new(RsaKey::from_pkcs1(der)?)
    }

    fn new(key: RsaKey) -> Result<PrivateKey, Failed> {
        let rejection = Rejection::new(&key.private_exponent()?);
        Ok(PrivateKey { key, rejection })
    }

    /// Length of the modulus, and so of signatures and ciphertexts, in bytes.
    pub fn modulus_bytes(&self) -> usize {
        self.key.modulus_bytes()
    }

    /// Signs a digest into the front of `out`, and returns how many bytes that is.
    ///
    /// # Errors
    /// [`Failed`], also for too little room.
    pub fn sign(
        &self,
        padding: SignaturePadding,
        digest: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Failed> {
        self.key.sign(padding, digest, out)
    }

    /// Decrypts into the front of `out`, which has as many bytes as the modulus, and returns how many the message
    /// has. With RSAES-PKCS1-v1_5, a wrong padding is no failure: the message is then one that key and ciphertext
    /// decide, of a length that they decide (draft-irtf-cfrg-rsa-guidance, "implicit rejection"), in the same time.
    ///
    /// # Errors
    /// [`Failed`], also if the ciphertext is not as long as the modulus or not lower.
    pub fn decrypt(
        &self,
        padding: EncryptionPadding<'_>,
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Failed> {
        let out = out.get_mut(..self.modulus_bytes()).ok_or(Failed)?;
        match padding {
            EncryptionPadding::Oaep { .. } => self.key.decrypt(padding, ciphertext, out),
            EncryptionPadding::Pkcs1 => {
                let mut padded = Zeroizing::new(vec![0; self.modulus_bytes()]);
                self.key.decrypt_raw(ciphertext, &mut padded)?;
                Ok(self.rejection.unpad(ciphertext, &padded, out))
            }
        }
    }
}

/// A public key.
pub struct PublicKey(RsaKey);

impl PublicKey {
    /// Reads an RSAPublicKey (RFC 8017 § A.1.1), DER.
    ///
    /// # Errors
    /// [`Failed`] if it is none, or not of 2,048 to 8,192 bits.
    pub fn from_der(der: &[u8]) -> Result<PublicKey, Failed> {
        let key = RsaKey::from_public(der)?;
        (256..=1024).contains(&key.modulus_bytes()).then_some(PublicKey(key)).ok_or(Failed)
    }

    /// Length of the modulus, in bytes.
    pub fn modulus_bytes(&self) -> usize {
        self.0.modulus_bytes()
    }

    /// Checks a signature over a digest.
    ///
    /// # Errors
    /// [`Failed`] if it is not right.
    pub fn verify(
        &self,
        padding: SignaturePadding,
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), Failed> {
        self.0.verify(padding, digest, signature)
    }

    /// Encrypts into the front of `out`, and returns how many bytes that is: those of the modulus.
    ///
    /// # Errors
    /// [`Failed`] if the message is too long, or the room too little.
    pub fn encrypt(
        &self,
        padding: EncryptionPadding<'_>,
        message: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Failed> {
        self.0.encrypt(padding, message, out)
    }
}
