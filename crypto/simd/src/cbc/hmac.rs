//! HMAC keys (RFC 2104), kept as the hash's state after the inner and the outer key block.

use super::hash::{BLOCK_BYTES, Hash, WORDS_MAX, pad};
use super::portable;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

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

/// One lane of the portable backend: keys are made one at a time.
fn compress(hash: Hash, state: &mut [u32; WORDS_MAX], blocks: &[u8]) {
    let mut lane = state.map(|word| [word]);
    portable::compress(hash, &mut lane, &[blocks], blocks.len() / BLOCK_BYTES);
    *state = lane.map(|[word]| word);
    lane.zeroize();
}
