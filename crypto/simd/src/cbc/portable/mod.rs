//! The plain backend: what is right, in a form that can be read against the standards.
//! Constant-time, since it has no tables. The compiler may use what vectors the processor has.

mod aes;
mod sha;

pub(crate) use aes::substitute;
#[cfg(target_arch = "x86_64")]
pub(crate) use sha::SHA256_CONSTANTS;
pub(crate) use sha::compress;

use super::backend::Backend;
use super::hash::{BLOCK_BYTES, Hash, pad};
use super::lanes::{self, Chains, LANES, Lane, States};
use zeroize::Zeroizing;

/// The plain backend.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Backend for Portable {
    fn cbc<const ROUNDS: usize>(
        self,
        chains: &mut Chains,
        data: &mut [&mut [u8]; LANES],
        _blocks: usize,
    ) {
        for (at, data) in data.iter_mut().enumerate() {
            let keys = chains.round_keys.each_ref().map(|keys| keys[at]);
            for block in data.as_chunks_mut().0 {
                let last = &mut chains.last[at];
                *last = aes::encrypt(&keys[..=ROUNDS], aes::xor(*last, *block));
                *block = *last;
            }
        }
    }

    fn stitch<const ROUNDS: usize>(
        self,
        chains: &mut Chains,
        states: &mut States,
        lanes: &mut [Lane<'_>; LANES],
        steps: usize,
    ) {
        for step in 0..steps {
            let mut data = lanes.each_mut().map(|lane| match lane.encrypted(step) {
                Some(bytes) => bytes.as_mut_slice(),
                None => &mut [],
            });
            self.cbc::<ROUNDS>(chains, &mut data, BLOCK_BYTES / lanes::BLOCK_BYTES);
            let inputs = lanes.each_ref().map(|lane| match lane.hashed(step) {
                Some(bytes) => bytes.as_slice(),
                None => &[0; BLOCK_BYTES],
            });
            self.compress(Hash::Sha1, states, &inputs, 1);
        }
    }

    fn compress(self, hash: Hash, states: &mut States, inputs: &[&[u8]; LANES], blocks: usize) {
        compress(hash, &mut states.0, inputs, blocks);
    }

    fn finish(self, hash: Hash, digests: &States, outer: &mut States) {
        let bytes = hash.digest_bytes();
        let mut blocks = Zeroizing::new([[0; BLOCK_BYTES]; LANES]);
        for (at, block) in blocks.iter_mut().enumerate() {
            digests.get(at, &mut block[..bytes]);
            pad(block, bytes, (BLOCK_BYTES + bytes) as u64);
        }
        let inputs = blocks.each_ref().map(|block| block.as_slice());
        self.compress(hash, outer, &inputs, 1);
    }
}
