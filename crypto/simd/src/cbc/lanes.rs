//! The content of all backends' lanes: the states of ciphers and hashes, side by side.

use super::hash::{self, WORDS_MAX};
use super::key::CbcKey;
use crate::aes::ROUND_KEYS_MAX;
use zeroize::{Zeroize, optimization_barrier};

/// Requests that are worked on at the same time. A batch may be of any size; one of fewer leaves
/// lanes idle, which a lone request pays for in full.
pub const LANES: usize = 16;

/// Bytes of an AES block.
pub(crate) const BLOCK_BYTES: usize = 16;

/// The state that the lanes carry from one step to the next: lanes side by side, so that a wide
/// register takes those of several lanes at once.
#[repr(C, align(64))]
pub(crate) struct Chains {
    /// By round, then by lane.
    pub(crate) round_keys: [[[u8; BLOCK_BYTES]; LANES]; ROUND_KEYS_MAX],
    /// The last block of ciphertext, at first the IV.
    pub(crate) last: [[u8; BLOCK_BYTES]; LANES],
}

impl Chains {
    pub(crate) const EMPTY: Self = Self {
        round_keys: [[[0; BLOCK_BYTES]; LANES]; ROUND_KEYS_MAX],
        last: [[0; BLOCK_BYTES]; LANES],
    };

    pub(crate) fn enter<const ROUNDS: usize>(
        &mut self,
        at: usize,
        key: &CbcKey,
        iv: &[u8; BLOCK_BYTES],
    ) {
        for (keys, key) in self.round_keys.iter_mut().zip(&key.round_keys()[..=ROUNDS]) {
            keys[at] = *key;
        }
        self.last[at] = *iv;
    }
}

impl Zeroize for Chains {
    /// In wide stores: byte by byte it would cost as much as a small batch.
    fn zeroize(&mut self) {
        *self = Self::EMPTY;
        optimization_barrier(self);
    }
}

/// States of a hash in all lanes: word by word, lanes side by side.
#[repr(C, align(64))]
pub(crate) struct States(pub(crate) [[u32; LANES]; WORDS_MAX]);

impl States {
    pub(crate) const EMPTY: Self = Self([[0; LANES]; WORDS_MAX]);

    pub(crate) fn set(&mut self, at: usize, words: &[u32; WORDS_MAX]) {
        for (lanes, word) in self.0.iter_mut().zip(words) {
            lanes[at] = *word;
        }
    }

    pub(crate) fn words(&self, at: usize) -> [u32; WORDS_MAX] {
        self.0.each_ref().map(|lanes| lanes[at])
    }

    /// The first bytes of a lane's digest.
    pub(crate) fn get(&self, at: usize, out: &mut [u8]) {
        let (whole, rest) = out.as_chunks_mut();
        for (bytes, lanes) in whole.iter_mut().zip(&self.0) {
            *bytes = lanes[at].to_be_bytes();
        }
        if let Some(lanes) = self.0.get(whole.len()) {
            let bytes = lanes[at].to_be_bytes();
            rest.copy_from_slice(&bytes[..rest.len()]);
        }
    }
}

impl Zeroize for States {
    /// In wide stores.
    fn zeroize(&mut self) {
        *self = Self::EMPTY;
        optimization_barrier(self);
    }
}

/// A message in a lane. The bytes hashed in a step lie before those encrypted in it.
#[derive(Default)]
pub(crate) struct Lane<'j> {
    message: &'j mut [u8],
    encrypt: usize,
    hash: usize,
}

impl<'j> Lane<'j> {
    /// Places count from the start of the message.
    pub(crate) fn new(message: &'j mut [u8], encrypt: usize, hash: usize) -> Self {
        Self { message, encrypt, hash }
    }

    /// The block that the cipher takes in this step, as far as an idle lane has anything.
    pub(crate) fn encrypted(&mut self, step: usize) -> Option<&mut [u8; hash::BLOCK_BYTES]> {
        let from = self.encrypt + step * hash::BLOCK_BYTES;
        self.message.get_mut(from..)?.first_chunk_mut()
    }

    /// The message, and where in it the hash and the cipher begin, if there are so many steps in it
    /// for both.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn places(&mut self, steps: usize) -> Option<(&mut [u8], usize, usize)> {
        let from = self.hash.max(self.encrypt);
        let bytes = self.message.len().checked_sub(from)?;
        (bytes / hash::BLOCK_BYTES >= steps).then_some((self.message, self.hash, self.encrypt))
    }

    /// The block that the hash takes in this step.
    pub(crate) fn hashed(&self, step: usize) -> Option<&[u8; hash::BLOCK_BYTES]> {
        let from = self.hash + step * hash::BLOCK_BYTES;
        self.message.get(from..)?.first_chunk()
    }
}
