//! Keys for header masks, as all backends of our own want them.

use crate::aes::Schedule;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A key for header masks by AES (RFC 9001 § 5.4.3). Wiped when it is dropped.
#[derive(ZeroizeOnDrop)]
#[repr(C, align(64))]
pub(crate) struct MaskKey {
    pub(crate) aes: Schedule,
}

/// A key for header masks by ChaCha20 (RFC 9001 § 5.4.4). Wiped when it is dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct ChaChaKey(pub(crate) [u8; 32]);
