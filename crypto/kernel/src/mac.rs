//! HMACs in lanes: a message is cut into runs of whole blocks, most of them hashed where they lie.

use crate::hmac::{BLOCK_BYTES, Hash, HmacKey, WORDS_MAX, pad};
use crate::kernel::{LANES, Room, States};
use core::ops::Range;
use zeroize::{Zeroize, optimization_barrier};

/// A request on its way into a lane.
pub(crate) struct Message<'j> {
    pub(crate) key: &'j HmacKey,
    /// What the inner hash has come to, and how many bytes of whole blocks it took, the key's
    /// included.
    pub(crate) state: &'j [u32; WORDS_MAX],
    pub(crate) hashed: u64,
    /// Hashed one after another.
    pub(crate) parts: [&'j [u8]; 3],
    /// Not longer than the digest.
    pub(crate) tag: &'j mut [u8],
}

/// Blocks that lie nowhere in one piece, or the last with their padding.
type Scratch = [u8; 2 * BLOCK_BYTES];

/// What the lanes leave behind, wiped in the end.
#[repr(C, align(64))]
struct Work {
    states: States,
    scratch: [Scratch; LANES],
}

/// Computes the HMACs of what `waiting` yields, all of keys with this hash.
pub(crate) fn pass<'j>(room: impl Room, hash: Hash, waiting: impl Iterator<Item = Message<'j>>) {
    let mut waiting = waiting.fuse().peekable();
    if waiting.peek().is_none() {
        return;
    }
    let mut work = Work::EMPTY;
    let mut lanes = [const { None }; LANES];
    loop {
        for (at, lane) in lanes.iter_mut().enumerate() {
            settle(lane, at, &mut work, &mut waiting);
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
        // An idle lane hashes what another does, and nobody looks at the result.
        for input in inputs.iter_mut().filter(|input| input.is_empty()) {
            *input = shortest;
        }
        let blocks = shortest.len() / BLOCK_BYTES;
        room.compress(hash, &mut work.states, &inputs, blocks);
        for lane in lanes.iter_mut().flatten() {
            lane.advance(blocks);
        }
    }
    work.zeroize();
}

/// Brings a lane to its next run: of its message, or of the next one that waits.
#[inline]
fn settle<'j>(
    lane: &mut Option<Lane<'j>>,
    at: usize,
    work: &mut Work,
    waiting: &mut impl Iterator<Item = Message<'j>>,
) {
    loop {
        match lane {
            Some(lane) if !lane.run(&work.scratch[at]).is_empty() => return,
            Some(message) => {
                if message.next(at, work) {
                    *lane = None;
                }
            }
            None => match waiting.next() {
                Some(message) => {
                    work.states.set(at, message.state);
                    *lane = Some(Lane::new(message));
                }
                None => return,
            },
        }
    }
}

/// What a lane's next run is made of.
enum Stage {
    /// The message.
    Text,
    /// Its padding is in the scratch; the outer hash comes next.
    Padded,
    /// The outer hash is in the scratch; the tag comes next.
    Outer,
}

struct Lane<'j> {
    message: Message<'j>,
    stage: Stage,
    /// The part of the scratch that is yet to be hashed, whole blocks.
    pending: Range<usize>,
}

impl<'j> Lane<'j> {
    fn new(message: Message<'j>) -> Self {
        let mut lane = Self { message, stage: Stage::Text, pending: 0..0 };
        lane.skip_empty();
        lane
    }

    /// The whole blocks that can be hashed now; none when [`Lane::next`] must be asked.
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
        self.message.hashed += bytes as u64;
        if self.pending.is_empty() {
            self.message.parts[0] = self.message.parts[0].get(bytes..).unwrap_or_default();
            self.skip_empty();
        } else {
            self.pending.start += bytes;
        }
    }

    /// Makes the next run, or writes the tag and returns true.
    fn next(&mut self, at: usize, work: &mut Work) -> bool {
        let Work { states, scratch } = work;
        let scratch = &mut scratch[at];
        match self.stage {
            Stage::Text => self.gather(scratch),
            Stage::Padded => {
                let digest = self.message.key.hash().digest_bytes();
                *scratch = [0; 2 * BLOCK_BYTES];
                states.get(at, &mut scratch[..digest]);
                self.pending = 0..pad(scratch, digest, (BLOCK_BYTES + digest) as u64);
                states.set(at, self.message.key.outer());
                self.stage = Stage::Outer;
            }
            Stage::Outer => {
                states.get(at, self.message.tag);
                return true;
            }
        }
        false
    }

    /// Puts a block that spans parts into the scratch, or the last bytes with their padding.
    fn gather(&mut self, scratch: &mut Scratch) {
        *scratch = [0; 2 * BLOCK_BYTES];
        let mut filled = 0;
        while filled < BLOCK_BYTES && !self.message.parts[0].is_empty() {
            let part = self.message.parts[0];
            let (head, rest) = part.split_at(part.len().min(BLOCK_BYTES - filled));
            scratch[filled..filled + head.len()].copy_from_slice(head);
            filled += head.len();
            self.message.parts[0] = rest;
            self.skip_empty();
        }
        if filled == BLOCK_BYTES {
            self.pending = 0..BLOCK_BYTES;
        } else {
            self.pending = 0..pad(scratch, filled, self.message.hashed + filled as u64);
            self.stage = Stage::Padded;
        }
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
    const EMPTY: Self = Self { states: States::EMPTY, scratch: [[0; 2 * BLOCK_BYTES]; LANES] };
}

impl Zeroize for Work {
    /// In wide stores: byte by byte it would cost as much as a small batch.
    fn zeroize(&mut self) {
        *self = Self::EMPTY;
        optimization_barrier(self);
    }
}
