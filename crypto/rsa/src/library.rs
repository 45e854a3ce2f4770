//! AWS-LC's RSA behind safe functions. Each takes slices and numbers, and checks all that C takes on trust; nothing
//! here decides how a message is padded.

use crate::padding::{EncryptionPadding, Failed, SignaturePadding};
use aws_lc_sys::{
    BN_bn2bin_padded, CBS, CBS_init, CBS_len, ERR_clear_error, EVP_MD, EVP_PKEY, EVP_PKEY_CTX,
    EVP_PKEY_CTX_free, EVP_PKEY_CTX_new, EVP_PKEY_CTX_set_rsa_mgf1_md,
    EVP_PKEY_CTX_set_rsa_oaep_md, EVP_PKEY_CTX_set_rsa_padding, EVP_PKEY_CTX_set_rsa_pss_saltlen,
    EVP_PKEY_CTX_set_signature_md, EVP_PKEY_CTX_set0_rsa_oaep_label, EVP_PKEY_RSA,
    EVP_PKEY_assign_RSA, EVP_PKEY_decrypt, EVP_PKEY_decrypt_init, EVP_PKEY_encrypt,
    EVP_PKEY_encrypt_init, EVP_PKEY_free, EVP_PKEY_get0_RSA, EVP_PKEY_id, EVP_PKEY_new,
    EVP_PKEY_sign, EVP_PKEY_sign_init, EVP_PKEY_size, EVP_PKEY_verify, EVP_PKEY_verify_init,
    EVP_md5, EVP_parse_private_key, EVP_sha1, EVP_sha3_256, EVP_sha3_384, EVP_sha3_512, EVP_sha224,
    EVP_sha256, EVP_sha384, EVP_sha512, EVP_sha512_256, OPENSSL_free, OPENSSL_memdup, RSA,
    RSA_NO_PADDING, RSA_PKCS1_OAEP_PADDING, RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING,
    RSA_PSS_SALTLEN_AUTO, RSA_free, RSA_get0_d, RSA_parse_private_key, RSA_parse_public_key,
};
use keyway_engine::Algorithm;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use zeroize::Zeroizing;

/// A key of RSA, private or public.
pub(crate) struct RsaKey(NonNull<EVP_PKEY>);

// SAFETY: the library counts references to a key with atomic operations, and locks what its operations change in it
// (the blinding). Nothing here changes a key after it was made.
unsafe impl Send for RsaKey {}
// SAFETY: as above.
unsafe impl Sync for RsaKey {}

impl Drop for RsaKey {
    fn drop(&mut self) {
        // SAFETY: this is the one reference that `self` owns, and its last use.
        unsafe { EVP_PKEY_free(self.0.as_ptr()) }
    }
}

impl RsaKey {
    pub fn from_pkcs8(der: &[u8]) -> Result<RsaKey, Failed> {
        let key = parse(der, |bytes| {
            // SAFETY: `parse` gives a reader of bytes that live until this returns. The function returns a key
            // that its caller owns, or null.
            let key = unsafe { EVP_parse_private_key(bytes) };
            NonNull::new(key).map(RsaKey).ok_or(Failed)
        })?;
        // SAFETY: the key is alive.
        match unsafe { EVP_PKEY_id(key.0.as_ptr()) } {
            EVP_PKEY_RSA => Ok(key),
            _ => Err(Failed),
        }
    }

    pub fn from_pkcs1(der: &[u8]) -> Result<RsaKey, Failed> {
        // SAFETY: as in `from_pkcs8`.
        parse(der, |bytes| RsaKey::assign(unsafe { RSA_parse_private_key(bytes) }))
    }

    pub fn from_public(der: &[u8]) -> Result<RsaKey, Failed> {
        // SAFETY: as in `from_pkcs8`.
        parse(der, |bytes| RsaKey::assign(unsafe { RSA_parse_public_key(bytes) }))
    }

    /// Takes an RSA key that the caller owns, or null.
    fn assign(rsa: *mut RSA) -> Result<RsaKey, Failed> {
        let rsa = NonNull::new(rsa).ok_or(Failed)?;
        // SAFETY: the function has no conditions.
        let key = NonNull::new(unsafe { EVP_PKEY_new() }).map(RsaKey);
        if let Some(key) = key {
            // SAFETY: both are alive. If it succeeds, the key owns `rsa`.
            if unsafe { EVP_PKEY_assign_RSA(key.0.as_ptr(), rsa.as_ptr()) } == 1 {
                return Ok(key);
            }
        }
        // SAFETY: it is still the caller's, which gave it to this function.
        unsafe { RSA_free(rsa.as_ptr()) };
        Err(Failed)
    }

    pub fn modulus_bytes(&self) -> usize {
        // SAFETY: the key is alive.
        let bytes = unsafe { EVP_PKEY_size(self.0.as_ptr()) };
        usize::try_from(bytes).unwrap_or(0)
    }

    /// As long as the modulus.
    pub fn private_exponent(&self) -> Result<Zeroizing<Vec<u8>>, Failed> {
        let mut bytes = Zeroizing::new(vec![0; self.modulus_bytes()]);
        // SAFETY: the key is alive, and is RSA's, so that it has such a part.
        let rsa = unsafe { EVP_PKEY_get0_RSA(self.0.as_ptr()) };
        // SAFETY: `rsa` lives as long as the key; null is checked next.
        let exponent = if rsa.is_null() { ptr::null() } else { unsafe { RSA_get0_d(rsa) } };
        if exponent.is_null() {
            return Err(Failed);
        }
        // SAFETY: the number lives as long as the key, and the buffer has as many bytes as are said.
        done(unsafe { BN_bn2bin_padded(bytes.as_mut_ptr(), bytes.len(), exponent) })?;
        Ok(bytes)
    }

    pub fn sign(
        &self,
        padding: SignaturePadding,
        digest: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Failed> {
        // The library would take the longest salt.
        if matches!(padding, SignaturePadding::Pss { salt_bytes: None, .. }) {
            return Err(Failed);
        }
        let context = self.context(EVP_PKEY_sign_init)?;
        context.pad_signature(padding, digest)?;
        let mut used = out.len();
        // SAFETY: the context is alive and made to sign; it writes to `out` at most as many bytes as `used` says,
        // or fails; the digest has as many as are said.
        done(unsafe {
            EVP_PKEY_sign(
                context.0.as_ptr(),
                out.as_mut_ptr(),
                &mut used,
                digest.as_ptr(),
                digest.len(),
            )
        })?;
        Ok(used)
    }

    pub fn verify(
        &self,
        padding: SignaturePadding,
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), Failed> {
        let context = self.context(EVP_PKEY_verify_init)?;
        context.pad_signature(padding, digest)?;
        // SAFETY: the context is alive and made to verify; both slices have as many bytes as are said.
        done(unsafe {
            EVP_PKEY_verify(
                context.0.as_ptr(),
                signature.as_ptr(),
                signature.len(),
                digest.as_ptr(),
                digest.len(),
            )
        })
    }

    pub fn encrypt(
        &self,
        padding: EncryptionPadding<'_>,
        message: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Failed> {
        let context = self.context(EVP_PKEY_encrypt_init)?;
        context.pad_message(padding)?;
        let mut used = out.len();
        // SAFETY: the context is alive and made to encrypt; it writes to `out` at most as many bytes as `used`
        // says, or fails; the message has as many as are said.
        done(unsafe {
            EVP_PKEY_encrypt(
                context.0.as_ptr(),
                out.as_mut_ptr(),
                &mut used,
                message.as_ptr(),
                message.len(),
            )
        })?;
        Ok(used)
    }

    /// Decrypts, and takes the padding off, whose faults show: no caller does that with RSAES-PKCS1-v1_5.
    pub fn decrypt(
        &self,
        padding: EncryptionPadding<'_>,
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Failed> {
        let context = self.context(EVP_PKEY_decrypt_init)?;
        context.pad_message(padding)?;
        context.decrypt(ciphertext, out)
    }

    /// Decrypts to the padded message, which is as long as the modulus.
    pub fn decrypt_raw(&self, ciphertext: &[u8], out: &mut [u8]) -> Result<(), Failed> {
        let context = self.context(EVP_PKEY_decrypt_init)?;
        context.pad(RSA_NO_PADDING)?;
        let used = context.decrypt(ciphertext, out)?;
        (used == out.len()).then_some(()).ok_or(Failed)
    }

    /// A context with this key, made ready by `init`.
    fn context(
        &self,
        init: unsafe extern "C" fn(*mut EVP_PKEY_CTX) -> c_int,
    ) -> Result<Context, Failed> {
        // SAFETY: the key is alive, and the context takes a reference of its own; null is checked.
        let context = unsafe { EVP_PKEY_CTX_new(self.0.as_ptr(), ptr::null_mut()) };
        let context = NonNull::new(context).map(Context).ok_or(Failed)?;
        // SAFETY: `init` is one of the library's four functions of this kind, and the context is alive and new.
        done(unsafe { init(context.0.as_ptr()) })?;
        Ok(context)
    }
}

/// One operation with a key.
struct Context(NonNull<EVP_PKEY_CTX>);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: `self` owns the context, and this is its last use.
        unsafe { EVP_PKEY_CTX_free(self.0.as_ptr()) }
    }
}

impl Context {
    fn pad(&self, padding: c_int) -> Result<(), Failed> {
        // SAFETY: the context is alive.
        done(unsafe { EVP_PKEY_CTX_set_rsa_padding(self.0.as_ptr(), padding) })
    }

    fn pad_signature(&self, padding: SignaturePadding, digest: &[u8]) -> Result<(), Failed> {
        match padding {
            SignaturePadding::Pkcs1(hash) => {
                self.pad(RSA_PKCS1_PADDING)?;
                match hash {
                    Some(hash) => self.hash(hash, digest),
                    None => Ok(()),
                }
            }
            SignaturePadding::Pss { hash, mgf1_hash, salt_bytes } => {
                self.pad(RSA_PKCS1_PSS_PADDING)?;
                self.hash(hash, digest)?;
                self.mgf1(mgf1_hash)?;
                let salt_bytes = salt_bytes.map_or(RSA_PSS_SALTLEN_AUTO, c_int::from);
                // SAFETY: the context is alive.
                done(unsafe { EVP_PKEY_CTX_set_rsa_pss_saltlen(self.0.as_ptr(), salt_bytes) })
            }
        }
    }

    /// Names the hash of a digest, which has to be as long as that hash's are.
    fn hash(&self, hash: Algorithm, digest: &[u8]) -> Result<(), Failed> {
        if hash.output_bytes() != Some(digest.len()) {
            return Err(Failed);
        }
        // SAFETY: the context is alive; hashes are static.
        done(unsafe { EVP_PKEY_CTX_set_signature_md(self.0.as_ptr(), named(hash)?.as_ptr()) })
    }

    fn mgf1(&self, hash: Algorithm) -> Result<(), Failed> {
        // SAFETY: the context is alive; hashes are static.
        done(unsafe { EVP_PKEY_CTX_set_rsa_mgf1_md(self.0.as_ptr(), named(hash)?.as_ptr()) })
    }

    fn pad_message(&self, padding: EncryptionPadding<'_>) -> Result<(), Failed> {
        let EncryptionPadding::Oaep { hash, mgf1_hash, label } = padding else {
            return self.pad(RSA_PKCS1_PADDING);
        };
        self.pad(RSA_PKCS1_OAEP_PADDING)?;
        // SAFETY: the context is alive; hashes are static.
        done(unsafe { EVP_PKEY_CTX_set_rsa_oaep_md(self.0.as_ptr(), named(hash)?.as_ptr()) })?;
        self.mgf1(mgf1_hash)?;
        if label.is_empty() {
            return Ok(());
        }
        // SAFETY: the slice has as many bytes as are said; null is checked.
        let copy = unsafe { OPENSSL_memdup(label.as_ptr().cast(), label.len()) };
        let copy = NonNull::new(copy.cast::<u8>()).ok_or(Failed)?;
        // SAFETY: the context is alive, and takes over the copy, which the library's allocator made, if it
        // succeeds.
        let taken = done(unsafe {
            EVP_PKEY_CTX_set0_rsa_oaep_label(self.0.as_ptr(), copy.as_ptr(), label.len())
        });
        if taken.is_err() {
            // SAFETY: it is still this function's.
            unsafe { OPENSSL_free(copy.as_ptr().cast()) };
        }
        taken
    }

    fn decrypt(&self, ciphertext: &[u8], out: &mut [u8]) -> Result<usize, Failed> {
        let mut used = out.len();
        // SAFETY: the context is alive and made to decrypt; it writes to `out` at most as many bytes as `used`
        // says, or fails; the ciphertext has as many as are said.
        done(unsafe {
            EVP_PKEY_decrypt(
                self.0.as_ptr(),
                out.as_mut_ptr(),
                &mut used,
                ciphertext.as_ptr(),
                ciphertext.len(),
            )
        })?;
        Ok(used)
    }
}

/// Reads the whole of `der` with one of the library's readers.
fn parse(
    der: &[u8],
    read: impl FnOnce(*mut CBS) -> Result<RsaKey, Failed>,
) -> Result<RsaKey, Failed> {
    let mut bytes = MaybeUninit::<CBS>::uninit();
    // SAFETY: it writes all fields of the reader, which is to read the slice's bytes.
    unsafe { CBS_init(bytes.as_mut_ptr(), der.as_ptr(), der.len()) };
    let key = read(bytes.as_mut_ptr()).inspect_err(|_| clear());
    // SAFETY: it was initialised above.
    let rest = unsafe { CBS_len(bytes.as_ptr()) };
    if rest > 0 {
        // The key that was read is dropped with `key`, by its owner's type.
        return Err(Failed);
    }
    key
}

fn named(hash: Algorithm) -> Result<NonNull<EVP_MD>, Failed> {
    let named: unsafe extern "C" fn() -> *const EVP_MD = match hash {
        Algorithm::Md5 => EVP_md5,
        Algorithm::Sha1 => EVP_sha1,
        Algorithm::Sha224 => EVP_sha224,
        Algorithm::Sha256 => EVP_sha256,
        Algorithm::Sha384 => EVP_sha384,
        Algorithm::Sha512 => EVP_sha512,
        Algorithm::Sha512_256 => EVP_sha512_256,
        Algorithm::Sha3_256 => EVP_sha3_256,
        Algorithm::Sha3_384 => EVP_sha3_384,
        Algorithm::Sha3_512 => EVP_sha3_512,
        _ => return Err(Failed),
    };
    // SAFETY: the functions have no conditions, and return what is static.
    NonNull::new(unsafe { named() }.cast_mut()).ok_or(Failed)
}

/// The library's answer. Errors that it has queued for this thread are taken out, since no caller reads them.
fn done(answer: c_int) -> Result<(), Failed> {
    if answer == 1 {
        return Ok(());
    }
    clear();
    Err(Failed)
}

fn clear() {
    // SAFETY: the function has no conditions.
    unsafe { ERR_clear_error() }
}
