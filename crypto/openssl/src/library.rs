//! AES-GCM of AWS-LC in parts: aws-lc-rs has it for whole messages only. Here is unsafe code, for the library's functions
//! and for text that lies where libcrypto says.

use crate::abi::{Input, Output};
use aws_lc_sys::{
    ERR_clear_error, EVP_CIPHER, EVP_CIPHER_CTX, EVP_CIPHER_CTX_copy, EVP_CIPHER_CTX_ctrl,
    EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_new, EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_IVLEN,
    EVP_CTRL_AEAD_SET_TAG, EVP_CipherFinal_ex, EVP_CipherInit_ex, EVP_CipherUpdate,
    EVP_aes_128_gcm, EVP_aes_192_gcm, EVP_aes_256_gcm,
};
use std::ffi::c_int;
use std::ptr::{self, NonNull};

/// Bytes of a whole tag.
pub const TAG_BYTES: usize = 16;
/// Bytes of the initialization vector that a new context expects.
const IV_BYTES: usize = 12;
/// The library counts in `int`. Whole blocks, for speed.
const PART_BYTES_MAX: usize = 1 << 30;

/// A message of AES-GCM (SP 800-38D) under way. The library wipes it when it is dropped.
pub struct AesGcm {
    context: NonNull<EVP_CIPHER_CTX>,
    key_bytes: usize,
    iv_bytes: usize,
}

// SAFETY: a context is memory of its own, bound to no thread.
unsafe impl Send for AesGcm {}

impl Drop for AesGcm {
    fn drop(&mut self) {
        // SAFETY: this is the one owner, and its last use.
        unsafe { EVP_CIPHER_CTX_free(self.context.as_ptr()) }
    }
}

impl AesGcm {
    /// For keys of 16, 24 or 32 bytes; `None` for others, and without memory.
    pub fn new(key_bytes: usize) -> Option<AesGcm> {
        let cipher: unsafe extern "C" fn() -> *const EVP_CIPHER = match key_bytes {
            16 => EVP_aes_128_gcm,
            24 => EVP_aes_192_gcm,
            32 => EVP_aes_256_gcm,
            _ => return None,
        };
        // SAFETY: the functions have no conditions.
        let cipher = unsafe { cipher() };
        // SAFETY: as above.
        let context = NonNull::new(unsafe { EVP_CIPHER_CTX_new() })?;
        let it = AesGcm { context, key_bytes, iv_bytes: IV_BYTES };
        let none = ptr::null();
        // SAFETY: the context is alive, the cipher a constant.
        let done = unsafe { EVP_CipherInit_ex(it.at(), cipher, ptr::null_mut(), none, none, 1) };
        done.eq(&1).then_some(it)
    }

    /// One that goes on apart from this.
    pub fn copy(&self) -> Option<AesGcm> {
        // SAFETY: the function has no conditions.
        let context = NonNull::new(unsafe { EVP_CIPHER_CTX_new() })?;
        let it = AesGcm { context, ..*self };
        // SAFETY: both are alive, and apart.
        let done = unsafe { EVP_CIPHER_CTX_copy(it.at(), self.at()) };
        done.eq(&1).then_some(it)
    }

    fn at(&self) -> *mut EVP_CIPHER_CTX {
        self.context.as_ptr()
    }

    /// Takes a key, which has to have the context's length. An IV has to follow.
    pub fn set_key(&mut self, key: &[u8]) -> bool {
        key.len() == self.key_bytes && self.begin(key.as_ptr(), ptr::null(), -1)
    }

    /// Begins a message under the key, and says which way it goes.
    pub fn set_iv(&mut self, iv: &[u8], encrypts: bool) -> bool {
        if iv.len() != self.iv_bytes {
            let Ok(bytes) = c_int::try_from(iv.len()) else { return false };
            // SAFETY: the context is alive and has a cipher; the command takes a number.
            let done = unsafe {
                EVP_CIPHER_CTX_ctrl(self.at(), EVP_CTRL_AEAD_SET_IVLEN, bytes, ptr::null_mut())
            };
            if done != 1 {
                return false;
            }
            self.iv_bytes = iv.len();
        }
        self.begin(ptr::null(), iv.as_ptr(), encrypts.into())
    }

    /// `key` and `iv` are none, or have as many bytes as the context has been told.
    fn begin(&mut self, key: *const u8, iv: *const u8, direction: c_int) -> bool {
        // SAFETY: the context is alive and has a cipher; the lengths are checked by the callers, which hold the bytes.
        let done = unsafe {
            EVP_CipherInit_ex(self.at(), ptr::null(), ptr::null_mut(), key, iv, direction)
        };
        done == 1
    }

    /// Takes a part of the additional data, all of which comes before the text.
    pub fn authenticate(&mut self, data: &[u8]) -> bool {
        data.chunks(PART_BYTES_MAX)
            .all(|part| self.take(part.as_ptr(), ptr::null_mut(), part.len()))
    }

    /// Takes a part of the text, so many bytes, and puts as many out, there or elsewhere.
    pub fn update(&mut self, input: &Input, out: &Output, bytes: usize) -> bool {
        if input.is_none() || out.is_none() {
            return bytes == 0;
        }
        (0..bytes).step_by(PART_BYTES_MAX).all(|from| {
            let part = PART_BYTES_MAX.min(bytes - from);
            self.take(input.at(from).as_ptr(), out.at(from).as_mut_ptr(), part)
        })
    }

    /// `bytes` is at most [`PART_BYTES_MAX`]. Both places have as many, or `out` is none.
    fn take(&mut self, input: *const u8, out: *mut u8, bytes: usize) -> bool {
        let Ok(length) = c_int::try_from(bytes) else { return false };
        let mut written = 0;
        // SAFETY: the context is alive; libcrypto, or the caller, has passed places of so many bytes, which are the
        // same or apart.
        let done = unsafe { EVP_CipherUpdate(self.at(), out, &mut written, input, length) };
        if done == 1 {
            return true;
        }
        self.forget_error();
        // The library lets no call follow on one that failed; libcrypto's own goes on from where it was.
        self.begin(ptr::null(), ptr::null(), -1);
        false
    }

    /// Ends a message that was encrypted.
    pub fn tag(&mut self) -> Option<[u8; TAG_BYTES]> {
        let mut tag = [0; TAG_BYTES];
        self.end().then_some(())?;
        // SAFETY: the context is alive; the command writes as many bytes as it is told, which are there.
        let done = unsafe {
            let place = tag.as_mut_ptr().cast();
            EVP_CIPHER_CTX_ctrl(self.at(), EVP_CTRL_AEAD_GET_TAG, TAG_BYTES as c_int, place)
        };
        done.eq(&1).then_some(tag)
    }

    /// Ends a message that was decrypted; whether this is its tag. It has 1 to 16 bytes.
    pub fn verify(&mut self, tag: &[u8]) -> bool {
        let Ok(bytes) = c_int::try_from(tag.len()) else { return false };
        // SAFETY: the context is alive; the command reads as many bytes as it is told, which are there.
        let done = unsafe {
            let place = tag.as_ptr().cast_mut().cast();
            EVP_CIPHER_CTX_ctrl(self.at(), EVP_CTRL_AEAD_SET_TAG, bytes, place)
        };
        done == 1 && self.end()
    }

    fn end(&mut self) -> bool {
        let (mut rest, mut written) = ([0; TAG_BYTES], 0);
        // SAFETY: the context is alive; this cipher leaves no text for its end, and a block would have room.
        let done = unsafe { EVP_CipherFinal_ex(self.at(), rest.as_mut_ptr(), &mut written) };
        if done != 1 {
            self.forget_error();
        }
        done == 1
    }

    /// AWS-LC's errors are its own, and pile up in its thread unread.
    fn forget_error(&self) {
        // SAFETY: the function has no conditions.
        unsafe { ERR_clear_error() }
    }
}
