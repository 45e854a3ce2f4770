//! Which backends there are, and a batch's way through one.

pub(crate) mod chains;
pub(crate) mod hmac;
mod mac;
pub(crate) mod uniform;

use crate::job::{Cipher, Fault, Job, Mac};
use crate::limits::MIXED_JOBS_MAX;
use crate::portable::Portable;
pub(crate) use chains::{BLOCK_BYTES, Chains};
use hmac::{Hash, WORDS_MAX};
use uniform::Uniform;
use zeroize::{Zeroize, optimization_barrier};

/// Requests that are worked on at the same time. A batch may be of any size; one of fewer leaves
/// lanes idle, which a lone request pays for in full.
pub const LANES: usize = 16;

/// States of a hash in all lanes: word by word, lanes side by side.
#[repr(C, align(64))]
pub(crate) struct States(pub(crate) [[u32; LANES]; WORDS_MAX]);

/// What a backend must offer: one step for all lanes.
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
        lanes: &mut [uniform::Lane<'_>; LANES],
        steps: usize,
    );
    /// Takes the first `blocks` blocks of 64 bytes of each lane's input into the lane's state.
    fn compress(self, hash: Hash, states: &mut States, inputs: &[&[u8]; LANES], blocks: usize);
    /// The outer hash of HMAC: takes each lane's inner digest, padded, into the state that the
    /// outer key block left.
    fn finish(self, hash: Hash, digests: &States, outer: &mut States);
}

/// A way to seal batches. Cheap to copy, and as good in any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CbcBackend(Which);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx512(crate::x86::Avx512),
}

impl CbcBackend {
    /// The fastest backend of this processor that beats sealing one request after another with a
    /// good library, or `None`: then that is what to do. Asks the processor only.
    pub fn detect() -> Option<Self> {
        Self::avx512()
    }

    /// The plain backend, for comparison: right everywhere, and far slower than a good library.
    pub const fn portable() -> Self {
        Self(Which::Portable)
    }

    /// The backend for x86-64 with AVX-512 (F, BW) and VAES, if this is such a processor.
    pub fn avx512() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return crate::x86::Avx512::detect().map(|backend| Self(Which::Avx512(backend)));
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// Every backend that can run here.
    pub fn available() -> impl Iterator<Item = Self> {
        [Some(Self::portable()), Self::avx512()].into_iter().flatten()
    }

    /// A short name for tables and logs.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Which::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Which::Avx512(_) => "avx512",
        }
    }

    /// Encrypts and authenticates every request of the batch; any number of them, best a multiple
    /// of [`LANES`]. Runs in the caller's thread until all are done, without allocation.
    ///
    /// # Errors
    /// The first request whose ranges do not fit; then nothing was touched.
    pub fn seal(self, jobs: &mut [Job<'_>]) -> Result<(), Fault> {
        for (job, request) in jobs.iter().enumerate() {
            request.check().map_err(|why| Fault { job, why })?;
        }
        match self.0 {
            Which::Portable => seal_all(Portable, jobs),
            #[cfg(target_arch = "x86_64")]
            Which::Avx512(backend) => seal_all(backend, jobs),
        }
        Ok(())
    }
}

/// Requests that differ in keys and bytes only go from end to end together. Where the next are not
/// like that, up to [`MIXED_JOBS_MAX`] of them go through cipher and hash one pass after the other.
fn seal_all<R: Backend>(backend: R, mut jobs: &mut [Job<'_>]) {
    let mut lanes = uniform::Lanes::EMPTY;
    while !jobs.is_empty() {
        let uniform = Uniform::of(&jobs[..jobs.len().min(LANES)]);
        let number = if uniform.is_some() { LANES } else { MIXED_JOBS_MAX };
        let (requests, others) = jobs.split_at_mut(number.min(jobs.len()));
        match uniform {
            Some(uniform) => uniform.seal(backend, requests, &mut lanes),
            None => seal_mixed(backend, requests),
        }
        jobs = others;
    }
    lanes.zeroize();
}

/// One pass per cipher and per hash, since lanes do the same step at the same time.
fn seal_mixed<R: Backend>(backend: R, jobs: &mut [Job<'_>]) {
    chains::pass::<R, 10>(backend, jobs.iter_mut().filter_map(|job| ciphering(job, 10)));
    chains::pass::<R, 14>(backend, jobs.iter_mut().filter_map(|job| ciphering(job, 14)));
    for hash in [Hash::Sha1, Hash::Sha256] {
        mac::pass(backend, hash, jobs.iter_mut().filter_map(|job| authenticating(job, hash)));
    }
}

/// What a request has for the pass of so many rounds.
fn ciphering<'j>(job: &'j mut Job<'_>, rounds: usize) -> Option<chains::Lane<'j>> {
    let Cipher { key, iv, range } = job.cipher.as_ref()?;
    let data = job.message.get_mut(range.clone())?;
    (key.rounds() == rounds && !data.is_empty()).then_some(chains::Lane { key, iv: *iv, data })
}

/// What a request has for the pass of this hash.
fn authenticating<'j>(job: &'j mut Job<'_>, hash: Hash) -> Option<mac::Message<'j>> {
    let Mac { key, range, front, back, tag } = job.mac.as_mut()?;
    let parts = [front, job.message.get(range.clone())?, back];
    (key.hash() == hash).then_some(mac::Message { key, parts, tag })
}

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
