//! HMAC keys (RFC 2104), kept as the hash's state after the inner and the outer key block.

use crate::portable;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes a hash takes at a time.
pub(crate) const BLOCK_BYTES: usize = 64;
/// Fewest bytes that padding takes: a set bit, and the length.
pub(crate) const PADDING_BYTES_MIN: usize = 9;
/// Words of the largest hash's state.
pub(crate) const WORDS_MAX: usize = 8;

/// A hash for HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// SHA-1 (FIPS 180-4 § 6.1), 20 bytes. Broken for signatures, sound within HMAC.
    Sha1,
    /// SHA-256 (FIPS 180-4 § 6.2), 32 bytes.
    Sha256,
}

impl Hash {
    /// The digest's length in bytes, which is also the longest tag's.
    pub const fn digest_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// The state before the first block; SHA-1 has five words.
    const fn start(self) -> [u32; WORDS_MAX] {
        match self {
            Self::Sha1 => {
                [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0, 0, 0, 0]
            }
            Self::Sha256 => [
                0x6a09_e667,
                0xbb67_ae85,
                0x3c6e_f372,
                0xa54f_f53a,
                0x510e_527f,
                0x9b05_688c,
                0x1f83_d9ab,
                0x5be0_cd19,
            ],
        }
    }
}

/// An HMAC key. Wiped when it is dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct HmacKey {
    #[zeroize(skip)]
    hash: Hash,
    inner: [u32; WORDS_MAX],
    outer: [u32; WORDS_MAX],
}

impl HmacKey {
    /// A key of any length; one longer than the hash's block of 64 bytes is hashed first, as the
    /// RFC has it.
    pub fn new(hash: Hash, key: &[u8]) -> Self {
        let mut block = Zeroizing::new([0; BLOCK_BYTES]);
        if let Some(start) = block.get_mut(..key.len()) {
            start.copy_from_slice(key);
        } else {
            digest(hash, key, &mut block);
        }
        let after = |pad: u8| {
            let mut padded = Zeroizing::new(*block);
            padded.iter_mut().for_each(|byte| *byte ^= pad);
            let mut state = hash.start();
            compress(hash, &mut state, padded.as_slice());
            state
        };
        Self { hash, inner: after(0x36), outer: after(0x5c) }
    }

    /// The key's hash.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    pub(crate) fn inner(&self) -> &[u32; WORDS_MAX] {
        &self.inner
    }

    pub(crate) fn outer(&self) -> &[u32; WORDS_MAX] {
        &self.outer
    }
}

impl fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HmacKey").field("hash", &self.hash).finish_non_exhaustive()
    }
}

/// Writes the digest of `message` to the start of `out`.
fn digest(hash: Hash, message: &[u8], out: &mut [u8; BLOCK_BYTES]) {
    let mut state = hash.start();
    let (blocks, rest) = message.as_chunks::<BLOCK_BYTES>();
    compress(hash, &mut state, blocks.as_flattened());
    let mut end = Zeroizing::new([0; 2 * BLOCK_BYTES]);
    end[..rest.len()].copy_from_slice(rest);
    let padded = pad(end.as_mut_slice(), rest.len(), message.len() as u64);
    compress(hash, &mut state, &end[..padded]);
    let bytes = hash.digest_bytes();
    for (bytes, word) in out[..bytes].as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    state.zeroize();
}

/// Pads `filled` bytes at the start of `end`, the last of a message of `bytes` bytes (FIPS 180-4
/// § 5.1.1); the rest is zero and at least [`PADDING_BYTES_MIN`]. Returns the padded length in
/// bytes, whole blocks.
pub(crate) fn pad(end: &mut [u8], filled: usize, bytes: u64) -> usize {
    let padded = (filled + PADDING_BYTES_MIN).next_multiple_of(BLOCK_BYTES);
    end[filled] = 0x80;
    end[padded - 8..padded].copy_from_slice(&(bytes * 8).to_be_bytes());
    padded
}

/// One lane of the portable backend: keys are made one at a time.
fn compress(hash: Hash, state: &mut [u32; WORDS_MAX], blocks: &[u8]) {
    let mut lane = state.map(|word| [word]);
    portable::compress(hash, &mut lane, &[blocks], blocks.len() / BLOCK_BYTES);
    *state = lane.map(|[word]| word);
    lane.zeroize();
}
