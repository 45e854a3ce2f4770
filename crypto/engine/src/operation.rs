//! A request that owns its bytes, for work that outlives the call it is submitted with.

use crate::{
    Algorithm, Class, Cost, Direction, IV_BYTES_MAX, MASK_BYTES, NONCE_BYTES, Opened, Part,
    Request, SAMPLE_BYTES, TAG_BYTES,
};
use zeroize::Zeroizing;

/// One operation with its buffers; each variant is [`Request`]'s of the same name, which says what
/// the fields mean. The buffers come back with the result, to be used again.
// Its tag is a byte of its own: a queue asks for it often, and would have to work it out otherwise.
#[derive(Clone)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Operation {
    Seal { nonce: [u8; NONCE_BYTES], aad: Vec<u8>, data: Vec<u8>, tag: [u8; TAG_BYTES] },
    Open { nonce: [u8; NONCE_BYTES], aad: Vec<u8>, data: Vec<u8> },
    Protect { number: u64, header_bytes: usize, packet: Vec<u8> },
    Unprotect { largest: Option<u64>, number_at: usize, packet: Vec<u8>, opened: Opened },
    Mask { sample: [u8; SAMPLE_BYTES], out: [u8; MASK_BYTES] },
    Encrypt { iv: [u8; IV_BYTES_MAX], data: Vec<u8> },
    Decrypt { iv: [u8; IV_BYTES_MAX], data: Vec<u8> },
    Compress { data: Vec<u8>, out: Vec<u8> },
    Decompress { data: Vec<u8>, out: Vec<u8> },
    Chain { direction: Direction, data: Vec<u8>, length: usize, parts: Vec<Part> },
    Digest { data: Vec<u8>, out: Vec<u8> },
    Mac { data: Vec<u8>, out: Vec<u8> },
    Expand { info: Vec<u8>, out: Zeroizing<Vec<u8>> },
    PublicKey { out: Vec<u8> },
    Agree { peer: Vec<u8>, out: Zeroizing<Vec<u8>> },
    Encapsulate { peer: Vec<u8>, ciphertext: Vec<u8>, secret: Zeroizing<Vec<u8>> },
    Decapsulate { ciphertext: Vec<u8>, secret: Zeroizing<Vec<u8>> },
    Sign { message: Vec<u8>, out: Vec<u8> },
    Verify { public_key: Vec<u8>, message: Vec<u8>, signature: Vec<u8> },
    PublicEncrypt { public_key: Vec<u8>, message: Vec<u8>, out: Vec<u8> },
    PrivateDecrypt { ciphertext: Vec<u8>, out: Zeroizing<Vec<u8>> },
    Random { out: Zeroizing<Vec<u8>> },
    Derive { cost: Cost, password: Zeroizing<Vec<u8>>, salt: Vec<u8>, out: Zeroizing<Vec<u8>> },
}

impl Operation {
    /// Calls `f` with the request that this is.
    #[inline]
    pub fn with<R>(&mut self, f: impl FnOnce(&mut Request<'_>) -> R) -> R {
        match self {
            Operation::Seal { nonce, aad, data, tag } => {
                f(&mut Request::Seal { nonce, aad, data, tag })
            }
            Operation::Open { nonce, aad, data } => f(&mut Request::Open { nonce, aad, data }),
            Operation::Protect { number, header_bytes, packet } => {
                f(&mut Request::Protect { number: *number, header_bytes: *header_bytes, packet })
            }
            Operation::Unprotect { largest, number_at, packet, opened } => {
                let (largest, number_at) = (*largest, *number_at);
                f(&mut Request::Unprotect { largest, number_at, packet, opened })
            }
            Operation::Mask { sample, out } => f(&mut Request::Mask { sample, out }),
            Operation::Encrypt { iv, data } => f(&mut Request::Encrypt { iv, data }),
            Operation::Decrypt { iv, data } => f(&mut Request::Decrypt { iv, data }),
            Operation::Compress { data, out } => f(&mut Request::Compress { data, out }),
            Operation::Decompress { data, out } => f(&mut Request::Decompress { data, out }),
            Operation::Chain { direction, data, length, parts } => {
                f(&mut Request::Chain { direction: *direction, data, length: *length, parts })
            }
            Operation::Digest { data, out } => f(&mut Request::Digest { data: &[data], out }),
            Operation::Mac { data, out } => f(&mut Request::Mac { data: &[data], out }),
            Operation::Expand { info, out } => f(&mut Request::Expand { info: &[info], out }),
            Operation::PublicKey { out } => f(&mut Request::PublicKey { out }),
            Operation::Agree { peer, out } => f(&mut Request::Agree { peer, out }),
            Operation::Encapsulate { peer, ciphertext, secret } => {
                f(&mut Request::Encapsulate { peer, ciphertext, secret })
            }
            Operation::Decapsulate { ciphertext, secret } => {
                f(&mut Request::Decapsulate { ciphertext, secret })
            }
            Operation::Sign { message, out } => f(&mut Request::Sign { message, out }),
            Operation::Verify { public_key, message, signature } => {
                f(&mut Request::Verify { public_key, message, signature })
            }
            Operation::PublicEncrypt { public_key, message, out } => {
                f(&mut Request::PublicEncrypt { public_key, message, out })
            }
            Operation::PrivateDecrypt { ciphertext, out } => {
                f(&mut Request::PrivateDecrypt { ciphertext, out })
            }
            Operation::Random { out } => f(&mut Request::Random { out }),
            Operation::Derive { cost, password, salt, out } => {
                f(&mut Request::Derive { cost: *cost, password, salt, out })
            }
        }
    }

    /// Bytes worked on, for meters and costs; see [`Request::bytes`].
    #[inline]
    pub fn bytes(&self) -> usize {
        match self {
            Operation::Seal { data, .. }
            | Operation::Encrypt { data, .. }
            | Operation::Decrypt { data, .. }
            | Operation::Compress { data, .. }
            | Operation::Decompress { data, .. }
            | Operation::Digest { data, .. }
            | Operation::Mac { data, .. } => data.len(),
            Operation::Open { data, .. } => data.len().saturating_sub(TAG_BYTES),
            Operation::Protect { packet, .. } | Operation::Unprotect { packet, .. } => packet.len(),
            Operation::Mask { .. } => MASK_BYTES,
            Operation::Chain { data, length, .. } => data.len().min(*length),
            Operation::Sign { message, .. }
            | Operation::Verify { message, .. }
            | Operation::PublicEncrypt { message, .. } => message.len(),
            Operation::PrivateDecrypt { ciphertext, .. } => ciphertext.len(),
            Operation::Expand { out, .. }
            | Operation::Random { out }
            | Operation::Derive { out, .. } => out.len(),
            Operation::PublicKey { .. }
            | Operation::Agree { .. }
            | Operation::Encapsulate { .. }
            | Operation::Decapsulate { .. } => 0,
        }
    }

    /// Which class it runs in; see [`Request::class`].
    #[inline]
    pub fn class(&mut self, algorithm: Algorithm) -> Class {
        match self {
            Operation::Derive { .. }
            | Operation::PrivateDecrypt { .. }
            | Operation::Sign { .. }
            | Operation::Agree { .. } => self.with(|request| request.class(algorithm)),
            _ => Class::Fast,
        }
    }
}
