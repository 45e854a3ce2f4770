//! Numbers of `crypto/cryptodev.h`.

use super::structures::{AuthOp, CopyHashOp, CryptOp, SessionInfo, SessionOp};

/// The letter of the device's requests: the second byte of each.
pub const LETTER: u32 = b'c' as u32;

const WRITES: u32 = 1;
const READS: u32 = 2;

/// A request, as `<asm-generic/ioctl.h>` makes it of direction, size, letter and number.
const fn request(direction: u32, number: u32, bytes: usize) -> u32 {
    direction << 30 | (bytes as u32) << 16 | LETTER << 8 | number
}

/// Another descriptor of what was opened.
pub const CRIOGET: u32 = request(READS | WRITES, 101, 4);
/// Opens a session.
pub const CIOCGSESSION: u32 = request(READS | WRITES, 102, size_of::<SessionOp>());
/// Closes one.
pub const CIOCFSESSION: u32 = request(WRITES, 103, 4);
/// Encrypts or decrypts, hashes or authenticates.
pub const CIOCCRYPT: u32 = request(READS | WRITES, 104, size_of::<CryptOp>());
/// Which operations with numbers the device does.
pub const CIOCASYMFEAT: u32 = request(READS, 106, 4);
/// What a session is done by.
pub const CIOCGSESSINFO: u32 = request(READS | WRITES, 107, size_of::<SessionInfo>());
/// Seals or opens.
pub const CIOCAUTHCRYPT: u32 = request(READS | WRITES, 109, size_of::<AuthOp>());
/// Copies the state of a hash.
pub const CIOCCPHASH: u32 = request(WRITES, 112, size_of::<CopyHashOp>());

/// `op` of a request that encrypts.
pub const COP_ENCRYPT: u16 = 0;
/// `op` of one that decrypts.
pub const COP_DECRYPT: u16 = 1;

/// The message goes on in the next request.
pub const COP_FLAG_UPDATE: u16 = 1 << 0;
/// The message ends with this one.
pub const COP_FLAG_FINAL: u16 = 1 << 1;
/// The initialisation vector of the request that follows is written over this one's.
pub const COP_FLAG_WRITE_IV: u16 = 1 << 2;
/// Seals by the rules of TLS.
pub const COP_FLAG_AEAD_TLS_TYPE: u16 = 1 << 4;
/// Seals by the rules of SRTP.
pub const COP_FLAG_AEAD_SRTP_TYPE: u16 = 1 << 5;
/// A new message begins.
pub const COP_FLAG_RESET: u16 = 1 << 6;

/// The work is done by a driver that the program cannot reach but through the device. OpenSSL's engine for the device
/// leaves others alone.
pub const SIOP_FLAG_KERNEL_DRIVER_ONLY: u32 = 1;

pub const CRYPTO_3DES_CBC: u32 = 2;
pub const CRYPTO_SHA1_HMAC: u32 = 7;
pub const CRYPTO_AES_CBC: u32 = 11;
pub const CRYPTO_MD5: u32 = 13;
pub const CRYPTO_SHA1: u32 = 14;
pub const CRYPTO_NULL: u32 = 16;
pub const CRYPTO_SHA2_256_HMAC: u32 = 18;
pub const CRYPTO_SHA2_384_HMAC: u32 = 19;
pub const CRYPTO_SHA2_512_HMAC: u32 = 20;
pub const CRYPTO_AES_CTR: u32 = 21;
pub const CRYPTO_AES_XTS: u32 = 22;
pub const CRYPTO_AES_GCM: u32 = 50;
pub const CRYPTO_SHA2_224: u32 = 103;
pub const CRYPTO_SHA2_256: u32 = 104;
pub const CRYPTO_SHA2_384: u32 = 105;
pub const CRYPTO_SHA2_512: u32 = 106;

// As programs have them that a compiler has made of the header.
const _: () = assert!(CRIOGET == 0xc004_6365);
const _: () = assert!(CIOCGSESSION == 0xc030_6366);
const _: () = assert!(CIOCFSESSION == 0x4004_6367);
const _: () = assert!(CIOCCRYPT == 0xc030_6368);
const _: () = assert!(CIOCASYMFEAT == 0x8004_636a);
const _: () = assert!(CIOCGSESSINFO == 0xc10c_636b);
const _: () = assert!(CIOCAUTHCRYPT == 0xc048_636d);
const _: () = assert!(CIOCCPHASH == 0x4008_6370);
