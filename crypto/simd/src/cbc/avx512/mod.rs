//! The backend of x86-64 with AVX-512. The unsafe parts: calls of code that needs features, which only
//! a caller can make that has seen that they are there; loads and stores, which take references; and
//! the cursors of `stitched`, two into each message.

mod cbc;
mod registers;
mod sha;
mod stitched;

use super::backend::Backend;
use super::hash::Hash;
use super::lanes::{Chains, LANES, Lane, States};

/// Shows that the features are there: code that has one may call what needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        let there = std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("vaes");
        there.then_some(Self(()))
    }
}

impl Backend for Avx512 {
    fn cbc<const ROUNDS: usize>(
        self,
        chains: &mut Chains,
        data: &mut [&mut [u8]; LANES],
        blocks: usize,
    ) {
        // SAFETY: `detect` has seen the features.
        unsafe { cbc::run::<ROUNDS>(chains, data, blocks) }
    }

    fn stitch<const ROUNDS: usize>(
        self,
        chains: &mut Chains,
        states: &mut States,
        lanes: &mut [Lane<'_>; LANES],
        steps: usize,
    ) {
        // SAFETY: `detect` has seen the features.
        unsafe { stitched::run::<ROUNDS>(chains, states, lanes, steps) }
    }

    fn compress(self, hash: Hash, states: &mut States, inputs: &[&[u8]; LANES], blocks: usize) {
        match hash {
            // SAFETY: `detect` has seen the features.
            Hash::Sha1 => unsafe { sha::sha1(states, inputs, blocks) },
            // SAFETY: `detect` has seen the features.
            Hash::Sha256 => unsafe { sha::sha256(states, inputs, blocks) },
        }
    }

    fn finish(self, hash: Hash, digests: &States, outer: &mut States) {
        match hash {
            // SAFETY: `detect` has seen the features.
            Hash::Sha1 => unsafe { sha::finish_sha1(digests, outer) },
            // SAFETY: `detect` has seen the features.
            Hash::Sha256 => unsafe { sha::finish_sha256(digests, outer) },
        }
    }
}
