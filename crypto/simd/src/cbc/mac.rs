//! HMACs in lanes: a message is cut into runs of whole blocks, most of them hashed where they lie.
//! The outer hashes, a block each, wait until there is one for every lane.

use super::backend::Backend;
use super::hash::{BLOCK_BYTES, Hash, PADDING_BYTES_MIN, pad};
use super::hmac::HmacKey;
use super::lanes::{LANES, States};
use std::ops::Range;
use std::{array, mem};
use zeroize::{Zeroize, optimization_barrier};

/// A request on its way into a lane.
pub(crate) struct Message<'j> {
    pub(crate) key: &'j HmacKey,
    /// Hashed one after another.
    pub(crate) parts: [&'j [u8]; 3],
    /// Not longer than the digest.
    pub(crate) tag: &'j mut [u8],
}

/// Blocks that lie nowhere in one piece, or the last with their padding.
type Scratch = [u8; 4 * BLOCK_BYTES];

/// The data that the lanes leave behind, wiped in the end.
#[repr(C, align(64))]
struct Work {
    states: States,
    scratch: [Scratch; LANES],
    /// The inner digests of the messages that ended, and the states that the outer key blocks left.
    digests: States,
    outer: States,
}

/// Computes the HMACs of what `waiting` yields, all of keys with this hash.
pub(crate) fn pass<'j>(
    backend: impl Backend,
    hash: Hash,
    waiting: impl Iterator<Item = Message<'j>>,
) {
    let mut waiting = waiting.fuse().peekable();
    if waiting.peek().is_none() {
        return;
    }
    let mut work = Work::EMPTY;
    let mut lanes = [const { None }; LANES];
    let mut tags: [&mut [u8]; LANES] = array::from_fn(|_| Default::default());
    let mut ended = 0;
    loop {
        for (at, lane) in lanes.iter_mut().enumerate() {
            while let Some(message) = settle(lane, at, &mut work, &mut waiting) {
                work.digests.set(ended, &work.states.words(at));
                work.outer.set(ended, message.key.outer());
                tags[ended] = message.tag;
                ended += 1;
                if ended == LANES {
                    finish(backend, hash, &mut work, &mut tags);
                    ended = 0;
                }
            }
        }
        let mut inputs: [&[u8]; LANES] = [&[]; LANES];
        let mut shortest: &[u8] = &[];
        for ((input, lane), scratch) in inputs.iter_mut().zip(&lanes).zip(&work.scratch) {
            if let Some(lane) = lane {
                *input = lane.run(scratch);
                if shortest.is_empty() || input.len() < shortest.len() {
                    shortest = input;
                }
            }
        }
        if shortest.is_empty() {
            break;
        }
        // An idle lane hashes what another does, and the result is not looked at.
        for input in inputs.iter_mut().filter(|input| input.is_empty()) {
            *input = shortest;
        }
        let blocks = shortest.len() / BLOCK_BYTES;
        backend.compress(hash, &mut work.states, &inputs, blocks);
        for lane in lanes.iter_mut().flatten() {
            lane.advance(blocks);
        }
    }
    if ended > 0 {
        finish(backend, hash, &mut work, &mut tags);
    }
    work.zeroize();
}

/// The outer hashes: writes the tags that wait, and leaves none.
fn finish(backend: impl Backend, hash: Hash, work: &mut Work, tags: &mut [&mut [u8]; LANES]) {
    backend.finish(hash, &work.digests, &mut work.outer);
    for (at, tag) in tags.iter_mut().enumerate() {
        work.outer.get(at, mem::take(tag));
    }
}

/// Brings a lane to its next run: of its message, or of the next one that waits. Returns the
/// message whose inner hash has ended; the lane is then free.
#[inline]
fn settle<'j>(
    lane: &mut Option<Lane<'j>>,
    at: usize,
    work: &mut Work,
    waiting: &mut impl Iterator<Item = Message<'j>>,
) -> Option<Message<'j>> {
    loop {
        match lane {
            Some(lane) if !lane.run(&work.scratch[at]).is_empty() => return None,
            Some(Lane { ended: true, .. }) => return lane.take().map(|lane| lane.message),
            Some(lane) => lane.gather(&mut work.scratch[at]),
            None => {
                let message = waiting.next()?;
                work.states.set(at, message.key.inner());
                let new = lane.insert(Lane::new(message));
                if new.is_short() {
                    new.gather(&mut work.scratch[at]);
                }
            }
        }
    }
}

struct Lane<'j> {
    message: Message<'j>,
    /// Bytes of whole blocks that the inner hash took, the key's included.
    hashed: u64,
    /// The part of the scratch that is yet to be hashed, whole blocks.
    pending: Range<usize>,
    /// Nothing comes after that.
    ended: bool,
}

impl<'j> Lane<'j> {
    fn new(message: Message<'j>) -> Self {
        let mut lane = Self { message, hashed: BLOCK_BYTES as u64, pending: 0..0, ended: false };
        lane.skip_empty();
        lane
    }

    /// Whether all that is left fits the scratch.
    fn is_short(&self) -> bool {
        let left: usize = self.message.parts.iter().map(|part| part.len()).sum();
        left + PADDING_BYTES_MIN <= size_of::<Scratch>()
    }

    /// The whole blocks that can be hashed now; none when [`Lane::gather`] must be asked.
    fn run<'s>(&self, scratch: &'s Scratch) -> &'s [u8]
    where
        'j: 's,
    {
        if self.pending.is_empty() {
            let part = self.message.parts[0];
            part.get(..part.len() / BLOCK_BYTES * BLOCK_BYTES).unwrap_or_default()
        } else {
            scratch.get(self.pending.clone()).unwrap_or_default()
        }
    }

    /// So many blocks of the run are hashed.
    fn advance(&mut self, blocks: usize) {
        let bytes = blocks * BLOCK_BYTES;
        self.hashed += bytes as u64;
        if self.pending.is_empty() {
            self.message.parts[0] = self.message.parts[0].get(bytes..).unwrap_or_default();
            self.skip_empty();
        } else {
            self.pending.start += bytes;
        }
    }

    /// Puts all that is left into the scratch with its padding, or a block that spans parts.
    fn gather(&mut self, scratch: &mut Scratch) {
        *scratch = [0; size_of::<Scratch>()];
        self.ended = self.is_short();
        let most = if self.ended { scratch.len() } else { BLOCK_BYTES };
        let mut filled = 0;
        while filled < most && !self.message.parts[0].is_empty() {
            let part = self.message.parts[0];
            let (head, rest) = part.split_at(part.len().min(most - filled));
            scratch[filled..filled + head.len()].copy_from_slice(head);
            filled += head.len();
            self.message.parts[0] = rest;
            self.skip_empty();
        }
        self.pending =
            0..if self.ended { pad(scratch, filled, self.hashed + filled as u64) } else { filled };
    }

    /// Keeps the first part one that has bytes, as long as any has.
    fn skip_empty(&mut self) {
        let parts = &mut self.message.parts;
        for _ in 0..2 {
            if parts[0].is_empty() {
                *parts = [parts[1], parts[2], &[]];
            }
        }
    }
}

impl Work {
    const EMPTY: Self = Self {
        states: States::EMPTY,
        scratch: [[0; size_of::<Scratch>()]; LANES],
        digests: States::EMPTY,
        outer: States::EMPTY,
    };
}

impl Zeroize for Work {
    /// In wide stores: byte by byte it would cost as much as a small batch.
    fn zeroize(&mut self) {
        *self = Self::EMPTY;
        optimization_barrier(self);
    }
}
