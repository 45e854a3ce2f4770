//! Requests side by side that differ in nothing but keys and bytes: their lanes begin and end
//! together, so that nothing is handed from pass to pass.

use super::backend::Backend;
use super::hash::{BLOCK_BYTES, Hash, PADDING_BYTES_MIN, pad};
use super::job::{Cipher, Job, Mac};
use super::lanes::{self, Chains, LANES, Lane, States};
use std::array;
use std::ops::Range;
use zeroize::{Zeroize, optimization_barrier};

/// Most bytes of a message's end: what its last whole block leaves, the part behind it, padding.
const END_BYTES: usize = 2 * BLOCK_BYTES;

/// Fewest steps of cipher and hash together that are worth it: measured, about 400 bytes.
const STEPS_MIN: usize = 5;

/// The content of the lanes, wiped in the end.
#[repr(C, align(64))]
pub(crate) struct Lanes {
    chains: Chains,
    states: States,
    outer: States,
    ends: [[u8; END_BYTES]; LANES],
}

/// The shape that some requests have in common.
pub(crate) struct Uniform {
    rounds: usize,
    hash: Hash,
    cipher: Range<usize>,
    mac: Range<usize>,
    /// Bytes authenticated after the range.
    back: usize,
}

impl Uniform {
    /// The shape of these at most [`LANES`] requests, if they differ in keys and bytes only.
    pub(crate) fn of(jobs: &[Job<'_>]) -> Option<Self> {
        let Job { cipher: Some(cipher), mac: Some(mac), .. } = jobs.first()? else { return None };
        let (rounds, hash, back) = (cipher.key.rounds(), mac.key.hash(), mac.back.len());
        let end = mac.range.len() % BLOCK_BYTES + back + PADDING_BYTES_MIN;
        let uniform =
            Self { rounds, hash, cipher: cipher.range.clone(), mac: mac.range.clone(), back };
        (end <= END_BYTES && jobs.iter().all(|job| uniform.fits(job))).then_some(uniform)
    }

    fn fits(&self, job: &Job<'_>) -> bool {
        let Job { cipher: Some(cipher), mac: Some(mac), .. } = job else { return false };
        cipher.range == self.cipher
            && mac.range == self.mac
            && cipher.key.rounds() == self.rounds
            && mac.key.hash() == self.hash
            && mac.front.is_empty()
            && mac.back.len() == self.back
    }

    /// Seals them.
    pub(crate) fn seal<R: Backend>(&self, backend: R, jobs: &mut [Job<'_>], lanes: &mut Lanes) {
        match self.rounds {
            10 => self.run::<R, 10>(backend, jobs, lanes),
            _ => self.run::<R, 14>(backend, jobs, lanes),
        }
    }

    fn run<R: Backend, const ROUNDS: usize>(
        &self,
        backend: R,
        jobs: &mut [Job<'_>],
        lanes: &mut Lanes,
    ) {
        let Lanes { chains, states, outer, ends } = lanes;
        let mut messages: [&mut [u8]; LANES] = array::from_fn(|_| Default::default());
        let mut macs: [Option<&mut Mac<'_>>; LANES] = [const { None }; LANES];
        for ((at, message), job) in messages.iter_mut().enumerate().zip(jobs) {
            let Job { message: all, cipher: Some(Cipher { key, iv, .. }), mac: Some(mac) } = job
            else {
                continue;
            };
            chains.enter::<ROUNDS>(at, key, iv);
            states.set(at, mac.key.inner());
            outer.set(at, mac.key.outer());
            *message = all;
            macs[at] = Some(mac);
        }
        let (ahead, steps) = self.plan();
        let (first, then) = (self.cipher.start + ahead, self.cipher.start + ahead + steps);
        encrypt::<R, ROUNDS>(backend, chains, &mut messages, self.cipher.start..first);
        if steps > 0 {
            let lane = |message| Lane::new(message, first, self.mac.start);
            let mut lanes = messages.each_mut().map(|message| lane(message));
            backend.stitch::<ROUNDS>(chains, states, &mut lanes, steps / BLOCK_BYTES);
        }
        encrypt::<R, ROUNDS>(backend, chains, &mut messages, then..self.cipher.end);

        let rest = self.mac.len() % BLOCK_BYTES;
        let (hashed, whole) = (self.mac.start + steps, self.mac.end - rest);
        // An idle lane hashes what the first does, and the result is not looked at.
        let idle = messages[0].get(hashed..whole).unwrap_or_default();
        let inputs = messages.each_ref().map(|all| all.get(hashed..whole).unwrap_or(idle));
        backend.compress(self.hash, states, &inputs, (whole - hashed) / BLOCK_BYTES);
        let bytes = rest + self.back;
        let end = (bytes + PADDING_BYTES_MIN).next_multiple_of(BLOCK_BYTES);
        for ((message, mac), lane) in messages.iter().zip(&macs).zip(&mut *ends) {
            let Some(mac) = mac else { continue };
            *lane = [0; END_BYTES];
            lane[..rest].copy_from_slice(&message[whole..self.mac.end]);
            lane[rest..bytes].copy_from_slice(mac.back);
            pad(lane, bytes, (BLOCK_BYTES + self.mac.len() + self.back) as u64);
        }
        let inputs = ends.each_ref().map(|lane| &lane[..end]);
        backend.compress(self.hash, states, &inputs, end / BLOCK_BYTES);
        backend.finish(self.hash, states, outer);
        for (at, mac) in macs.into_iter().enumerate() {
            if let Some(mac) = mac {
                outer.get(at, mac.tag);
            }
        }
    }

    /// Bytes that are encrypted before the first are hashed, and then bytes that go through both at
    /// the same time.
    fn plan(&self) -> (usize, usize) {
        let first = self.mac.start + BLOCK_BYTES;
        let ahead = first.saturating_sub(self.cipher.start).next_multiple_of(BLOCK_BYTES);
        let both = self.cipher.len().saturating_sub(ahead).min(self.mac.len());
        let steps = both / BLOCK_BYTES;
        if self.hash == Hash::Sha1 && steps >= STEPS_MIN {
            (ahead, steps * BLOCK_BYTES)
        } else {
            (0, 0)
        }
    }
}

/// Encrypts this range of every lane.
fn encrypt<R: Backend, const ROUNDS: usize>(
    backend: R,
    chains: &mut Chains,
    messages: &mut [&mut [u8]; LANES],
    range: Range<usize>,
) {
    if !range.is_empty() {
        let blocks = range.len() / lanes::BLOCK_BYTES;
        let mut data =
            messages.each_mut().map(|all| all.get_mut(range.clone()).unwrap_or_default());
        backend.cbc::<ROUNDS>(chains, &mut data, blocks);
    }
}

impl Lanes {
    pub(crate) const EMPTY: Self = Self {
        chains: Chains::EMPTY,
        states: States::EMPTY,
        outer: States::EMPTY,
        ends: [[0; END_BYTES]; LANES],
    };
}

impl Zeroize for Lanes {
    /// In wide stores: byte by byte it would cost as much as a small batch.
    fn zeroize(&mut self) {
        *self = Self::EMPTY;
        optimization_barrier(self);
    }
}
