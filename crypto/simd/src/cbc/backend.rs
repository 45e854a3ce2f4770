//! The operations that a backend must offer.

use super::hash::Hash;
use super::lanes::{Chains, LANES, Lane, States};

/// A backend does one step for all lanes.
pub(crate) trait Backend: Copy {
    /// Encrypts the next `blocks` blocks of each lane in place with `ROUNDS` rounds (10 or 14).
    /// A lane's data has as many blocks, or it is empty and the lane idle.
    fn cbc<const ROUNDS: usize>(
        self,
        chains: &mut Chains,
        data: &mut [&mut [u8]; LANES],
        blocks: usize,
    );
    /// Takes a block of 64 bytes of each lane through the cipher and another through SHA-1, so many
    /// times.
    fn stitch<const ROUNDS: usize>(
        self,
        chains: &mut Chains,
        states: &mut States,
        lanes: &mut [Lane<'_>; LANES],
        steps: usize,
    );
    /// Takes the first `blocks` blocks of 64 bytes of each lane's input into the lane's state.
    fn compress(self, hash: Hash, states: &mut States, inputs: &[&[u8]; LANES], blocks: usize);
    /// The outer hash of HMAC: takes each lane's inner digest, padded, into the state that the
    /// outer key block left.
    fn finish(self, hash: Hash, digests: &States, outer: &mut States);
}
