//! Which backends there are, and a batch's way through one.

use super::backend::Backend;
use super::hash::Hash;
use super::job::{Cipher, Job, Mac};
use super::lanes::LANES;
use super::portable::Portable;
use super::uniform::{self, Uniform};
use super::{chains, mac};
use crate::fault::Fault;
use crate::limits::MIXED_JOBS_MAX;
use zeroize::Zeroize;

/// A way to seal batches. Cheap to copy, and as good in any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CbcBackend(Which);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx512(super::avx512::Avx512),
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
        return super::avx512::Avx512::detect().map(|backend| Self(Which::Avx512(backend)));
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
            request.check().map_err(|kind| Fault { job, kind })?;
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

/// A request's part in the pass of so many rounds.
fn ciphering<'j>(job: &'j mut Job<'_>, rounds: usize) -> Option<chains::Lane<'j>> {
    let Cipher { key, iv, range } = job.cipher.as_ref()?;
    let data = job.message.get_mut(range.clone())?;
    (key.rounds() == rounds && !data.is_empty()).then_some(chains::Lane { key, iv: *iv, data })
}

/// A request's part in the pass of this hash.
fn authenticating<'j>(job: &'j mut Job<'_>, hash: Hash) -> Option<mac::Message<'j>> {
    let Mac { key, range, front, back, tag } = job.mac.as_mut()?;
    let parts = [front, job.message.get(range.clone())?, back];
    (key.hash() == hash).then_some(mac::Message { key, parts, tag })
}
