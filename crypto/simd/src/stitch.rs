//! Cipher and hash through the same messages at the same time, the hash a block behind: for requests
//! of one kind side by side, as far as all of them go. The passes take over from there.

use crate::backend::{LANES, Room, States};
use crate::cbc::{self, Chains};
use crate::hmac::{BLOCK_BYTES, Hash, WORDS_MAX};
use crate::job::{Cipher, Job, Mac};
use core::array;
use zeroize::{Zeroize, optimization_barrier};

/// Fewest steps that are worth the way here: measured, about 400 bytes.
pub(crate) const STEPS_MIN: usize = 5;

/// How far a request has come.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    /// Bytes encrypted, from the start of the cipher's range.
    pub(crate) encrypted: usize,
    /// Bytes hashed, from the start of the MAC's.
    pub(crate) hashed: usize,
    /// The hash's state then, if there are any.
    pub(crate) state: [u32; WORDS_MAX],
}

impl Progress {
    pub(crate) const NONE: Self = Self { encrypted: 0, hashed: 0, state: [0; WORDS_MAX] };

    /// In wide stores.
    pub(crate) fn wipe(all: &mut [Self]) {
        all.fill(Self::NONE);
        optimization_barrier(all);
    }
}

/// A message in a lane. What is hashed in a step lies before what is encrypted in it.
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

    /// What the cipher takes in this step, as far as an idle lane has anything.
    pub(crate) fn encrypted(&mut self, step: usize) -> Option<&mut [u8; BLOCK_BYTES]> {
        let from = self.encrypt + step * BLOCK_BYTES;
        self.message.get_mut(from..)?.first_chunk_mut()
    }

    /// The message, and where in it the hash and the cipher begin, if there are so many steps in it
    /// for both.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn places(&mut self, steps: usize) -> Option<(&mut [u8], usize, usize)> {
        let from = self.hash.max(self.encrypt);
        let bytes = self.message.len().checked_sub(from)?;
        (bytes / BLOCK_BYTES >= steps).then_some((self.message, self.hash, self.encrypt))
    }

    /// What the hash takes in this step.
    pub(crate) fn hashed(&self, step: usize) -> Option<&[u8; BLOCK_BYTES]> {
        let from = self.hash + step * BLOCK_BYTES;
        self.message.get(from..)?.first_chunk()
    }
}

/// Brings at most [`LANES`] requests forward together, if they are of one kind.
pub(crate) fn run<R: Room>(room: R, jobs: &mut [Job<'_>], progress: &mut [Progress]) {
    let Some(plan) = Plan::of(jobs) else { return };
    match plan.rounds {
        10 => plan.run::<R, 10>(room, jobs, progress),
        _ => plan.run::<R, 14>(room, jobs, progress),
    }
}

/// What some requests have in common.
struct Plan {
    rounds: usize,
    /// Steps the cipher makes alone, so that the hash never overtakes it.
    ahead: usize,
    /// Steps both make.
    steps: usize,
}

impl Plan {
    fn of(jobs: &[Job<'_>]) -> Option<Self> {
        let rounds = jobs.first()?.cipher.as_ref()?.key.rounds();
        let mut ahead = 0;
        for Job { cipher, mac, .. } in jobs {
            let (cipher, mac) = (cipher.as_ref()?, mac.as_ref()?);
            let alike = cipher.key.rounds() == rounds && mac.key.hash() == Hash::Sha1;
            if !alike || !mac.front.is_empty() {
                return None;
            }
            let first = mac.range.start + BLOCK_BYTES;
            ahead = ahead.max(first.saturating_sub(cipher.range.start).div_ceil(BLOCK_BYTES));
        }
        let steps = jobs.iter().map(|Job { cipher, mac, .. }| {
            let encrypt = cipher.as_ref().map_or(0, |cipher| cipher.range.len() / BLOCK_BYTES);
            let hash = mac.as_ref().map_or(0, |mac| mac.range.len() / BLOCK_BYTES);
            encrypt.saturating_sub(ahead).min(hash)
        });
        let steps = steps.min().filter(|steps| *steps >= STEPS_MIN)?;
        Some(Self { rounds, ahead, steps })
    }

    fn run<R: Room, const ROUNDS: usize>(
        &self,
        room: R,
        jobs: &mut [Job<'_>],
        progress: &mut [Progress],
    ) {
        let mut chains = Chains::EMPTY;
        let mut states = States::EMPTY;
        let mut lanes: [Lane<'_>; LANES] = array::from_fn(|_| Lane::default());
        for ((at, lane), job) in lanes.iter_mut().enumerate().zip(jobs) {
            let Job { message, cipher: Some(cipher), mac: Some(mac) } = job else { continue };
            let (Cipher { key, iv, range }, Mac { key: mac, range: hashed, .. }) = (cipher, mac);
            chains.enter::<ROUNDS>(at, key, iv);
            states.set(at, mac.inner());
            *lane = Lane::new(message, range.start, hashed.start);
        }
        let ahead = self.ahead * BLOCK_BYTES;
        let mut data: [&mut [u8]; LANES] = array::from_fn(|_| Default::default());
        for (data, lane) in data.iter_mut().zip(&mut lanes) {
            let range = lane.encrypt..lane.encrypt + ahead;
            *data = lane.message.get_mut(range).unwrap_or_default();
            lane.encrypt += ahead;
        }
        room.cbc::<ROUNDS>(&mut chains, &mut data, ahead / cbc::BLOCK_BYTES);
        room.stitch::<ROUNDS>(&mut chains, &mut states, &mut lanes, self.steps);
        for (at, progress) in progress.iter_mut().enumerate() {
            let hashed = self.steps * BLOCK_BYTES;
            *progress = Progress { encrypted: ahead + hashed, hashed, state: states.words(at) };
        }
        chains.zeroize();
        states.zeroize();
    }
}
