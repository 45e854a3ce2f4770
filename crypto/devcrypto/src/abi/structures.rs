//! Structures of `crypto/cryptodev.h`, with the names of their fields there.

use super::pointers::{Bytes, Raw};

/// `struct session_op`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SessionOp {
    pub cipher: u32,
    pub mac: u32,
    pub keylen: u32,
    pub key: Bytes,
    pub mackeylen: u32,
    pub mackey: Bytes,
    pub ses: u32,
}

/// `struct crypt_op`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CryptOp {
    pub ses: u32,
    pub op: u16,
    pub flags: u16,
    pub len: u32,
    pub src: Bytes,
    pub dst: Bytes,
    pub mac: Bytes,
    pub iv: Bytes,
}

/// `struct crypt_auth_op`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AuthOp {
    pub ses: u32,
    pub op: u16,
    pub flags: u16,
    pub len: u32,
    pub auth_len: u32,
    pub auth_src: Bytes,
    pub src: Bytes,
    pub dst: Bytes,
    pub tag: Bytes,
    pub tag_len: u32,
    pub iv: Bytes,
    pub iv_len: u32,
}

/// `struct session_info_op`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SessionInfo {
    pub ses: u32,
    pub cipher_info: AlgorithmName,
    pub hash_info: AlgorithmName,
    pub alignmask: u16,
    pub flags: u32,
}

/// `struct alg_info`: text that ends with a zero byte.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AlgorithmName {
    pub cra_name: [u8; 64],
    pub cra_driver_name: [u8; 64],
}

/// `struct cphash_op`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CopyHashOp {
    pub dst_ses: u32,
    pub src_ses: u32,
}

// SAFETY: numbers and addresses, which any bytes are.
unsafe impl Raw for u32 {}
// SAFETY: as above.
unsafe impl Raw for SessionOp {}
// SAFETY: as above.
unsafe impl Raw for CryptOp {}
// SAFETY: as above.
unsafe impl Raw for AuthOp {}
// SAFETY: as above.
unsafe impl Raw for SessionInfo {}
// SAFETY: as above.
unsafe impl Raw for CopyHashOp {}
