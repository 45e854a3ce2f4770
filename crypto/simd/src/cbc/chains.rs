//! CBC chains in lanes: who sits in which, how far all can go together, who is next.

use crate::aes::{CbcKey, ROUND_KEYS_MAX};
use crate::cbc::{Backend, LANES};
use std::array;
use zeroize::{Zeroize, optimization_barrier};

/// Bytes of an AES block.
pub(crate) const BLOCK_BYTES: usize = 16;

/// What the lanes carry from one step to the next: lanes side by side, so that a wide register
/// takes those of several lanes at once.
#[repr(C, align(64))]
pub(crate) struct Chains {
    /// By round, then by lane.
    pub(crate) round_keys: [[[u8; BLOCK_BYTES]; LANES]; ROUND_KEYS_MAX],
    /// The last block of ciphertext, at first the IV.
    pub(crate) last: [[u8; BLOCK_BYTES]; LANES],
}

/// A request on its way into a lane: its data are not empty and whole blocks.
pub(crate) struct Lane<'j> {
    pub(crate) key: &'j CbcKey,
    pub(crate) iv: [u8; BLOCK_BYTES],
    pub(crate) data: &'j mut [u8],
}

/// Encrypts what `waiting` yields, all of keys with `ROUNDS` rounds.
pub(crate) fn pass<'j, R: Backend, const ROUNDS: usize>(
    backend: R,
    waiting: impl Iterator<Item = Lane<'j>>,
) {
    let mut waiting = waiting.fuse().peekable();
    if waiting.peek().is_none() {
        return;
    }
    let mut chains = Chains::EMPTY;
    let mut lanes: [&'j mut [u8]; LANES] = array::from_fn(|_| Default::default());
    loop {
        for (at, lane) in lanes.iter_mut().enumerate() {
            if lane.is_empty()
                && let Some(next) = waiting.next()
            {
                chains.enter::<ROUNDS>(at, next.key, &next.iv);
                *lane = next.data;
            }
        }
        let bytes = lanes.iter().map(|lane| lane.len()).filter(|bytes| *bytes > 0).min();
        let Some(bytes) = bytes else { break };
        let mut data: [&mut [u8]; LANES] = array::from_fn(|_| Default::default());
        for (data, lane) in data.iter_mut().zip(&mut lanes) {
            *data = lane.split_off_mut(..bytes).unwrap_or_default();
        }
        backend.cbc::<ROUNDS>(&mut chains, &mut data, bytes / BLOCK_BYTES);
    }
    chains.zeroize();
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
