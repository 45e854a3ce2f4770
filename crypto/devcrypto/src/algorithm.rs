//! The algorithms of the device, as cryptodev-linux numbers them and the kernel names them.

use crate::abi::*;
use keyway_engine::Algorithm;
use rustix::io::Errno;

/// A cipher.
#[derive(Clone, Copy, Debug)]
pub struct Cipher {
    /// The kernel's name.
    pub name: &'static str,
    /// `None` for the cipher that changes nothing.
    pub algorithm: Option<Algorithm>,
    /// Bytes that a text is a multiple of.
    pub block_bytes: usize,
}

/// A hash, or a MAC by one.
#[derive(Clone, Copy, Debug)]
pub struct Hash {
    /// The kernel's name.
    pub name: &'static str,
    pub algorithm: Algorithm,
}

/// Ciphers: their number, the bytes of their key, and what they are.
const CIPHERS: [(u32, usize, &str, Algorithm); 10] = [
    (CRYPTO_3DES_CBC, 24, "cbc(des3_ede)", Algorithm::TripleDesCbc),
    (CRYPTO_AES_CBC, 16, "cbc(aes)", Algorithm::Aes128Cbc),
    (CRYPTO_AES_CBC, 24, "cbc(aes)", Algorithm::Aes192Cbc),
    (CRYPTO_AES_CBC, 32, "cbc(aes)", Algorithm::Aes256Cbc),
    (CRYPTO_AES_CTR, 16, "ctr(aes)", Algorithm::Aes128Ctr),
    (CRYPTO_AES_CTR, 32, "ctr(aes)", Algorithm::Aes256Ctr),
    (CRYPTO_AES_XTS, 32, "xts(aes)", Algorithm::Aes128Xts),
    (CRYPTO_AES_XTS, 64, "xts(aes)", Algorithm::Aes256Xts),
    (CRYPTO_AES_GCM, 16, "gcm(aes)", Algorithm::Aes128Gcm),
    (CRYPTO_AES_GCM, 32, "gcm(aes)", Algorithm::Aes256Gcm),
];

/// Hashes and MACs.
const HASHES: [(u32, &str, Algorithm); 10] = [
    (CRYPTO_MD5, "md5", Algorithm::Md5),
    (CRYPTO_SHA1, "sha1", Algorithm::Sha1),
    (CRYPTO_SHA2_224, "sha224", Algorithm::Sha224),
    (CRYPTO_SHA2_256, "sha256", Algorithm::Sha256),
    (CRYPTO_SHA2_384, "sha384", Algorithm::Sha384),
    (CRYPTO_SHA2_512, "sha512", Algorithm::Sha512),
    (CRYPTO_SHA1_HMAC, "hmac(sha1)", Algorithm::HmacSha1),
    (CRYPTO_SHA2_256_HMAC, "hmac(sha256)", Algorithm::HmacSha256),
    (CRYPTO_SHA2_384_HMAC, "hmac(sha384)", Algorithm::HmacSha384),
    (CRYPTO_SHA2_512_HMAC, "hmac(sha512)", Algorithm::HmacSha512),
];

/// The cipher of a number, under a key of so many bytes.
pub fn cipher(number: u32, key_bytes: usize) -> Result<Cipher, Errno> {
    if number == CRYPTO_NULL {
        return Ok(Cipher { name: "ecb(cipher_null)", algorithm: None, block_bytes: 1 });
    }
    let mut all = CIPHERS.iter();
    let found = all.find(|cipher| (cipher.0, cipher.1) == (number, key_bytes));
    let &(_, _, name, algorithm) = found.ok_or(Errno::INVAL)?;
    // The engine steals the last block of XTS; the kernel's device takes whole ones.
    let block_bytes = if number == CRYPTO_AES_XTS { 16 } else { algorithm.block_bytes() };
    Ok(Cipher { name, algorithm: Some(algorithm), block_bytes })
}

/// The hash or MAC of a number.
pub fn hash(number: u32) -> Result<Hash, Errno> {
    let found = HASHES.iter().find(|hash| hash.0 == number);
    let &(_, name, algorithm) = found.ok_or(Errno::INVAL)?;
    Ok(Hash { name, algorithm })
}
