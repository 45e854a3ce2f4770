//! CBC chains in lanes: who sits in which, how far all can go together, who is next.

use super::backend::Backend;
use super::key::CbcKey;
use super::lanes::{BLOCK_BYTES, Chains, LANES};
use std::array;
use zeroize::Zeroize;

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
