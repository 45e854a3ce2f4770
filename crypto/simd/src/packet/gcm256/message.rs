//! A message: its data goes in strides of registers, counted from its end, so that a block's place
//! in them says which power of H it meets, whatever the length. Only the first stride may have
//! less.

use super::hash::{Eight, Sums};
use super::partial::{load_last, padded, store_last};
use super::stride::{Most, Stride, Strides, align_stack};
use super::width::{Block, EIGHT, STRIDE, Width};
use crate::packet::detected::{Vector, Width128};
use crate::packet::gcm::{GcmKey, Powers};

/// Counters below 256, in a block's last byte: a counter block, with the first round key, is one
/// xor with one of these.
static COUNTERS: Counters = {
    let mut blocks = [[0; 16]; 256];
    let mut counter = 0;
    while counter < 256 {
        blocks[counter] = counter_block(counter as u32);
        counter += 1;
    }
    Counters(blocks)
};

/// Not across lines of the cache.
#[repr(align(64))]
struct Counters([Block; 256]);

/// Does the same for whatever number of bytes up to a stride, their blocks as a constant.
macro_rules! for_blocks {
    ($width:ident, $bytes:expr, $blocks:ident => $do:expr) => {{
        macro_rules! with {
            ($number:literal) => {{
                const $blocks: usize = $number;
                $do
            }};
        }
        // Registers of one block have no more than eight at once.
        let two = $width::BLOCKS > 1;
        match $bytes.div_ceil(16) {
            0 => with!(0),
            1 => with!(1),
            2 => with!(2),
            3 => with!(3),
            4 => with!(4),
            5 => with!(5),
            6 => with!(6),
            7 => with!(7),
            9 if two => with!(9),
            10 if two => with!(10),
            11 if two => with!(11),
            12 if two => with!(12),
            13 if two => with!(13),
            14 if two => with!(14),
            15 if two => with!(15),
            16 if two => with!(16),
            _ => with!(8),
        }
    }};
}

/// The context of a message, whose data are encrypted or decrypted in place.
#[derive(Clone, Copy)]
pub(super) struct Context {
    pub(super) nonce: Vector,
    /// The last block of its additional data, reversed, all before taken in.
    pub(super) aad: Vector,
    /// The length of these, in bytes.
    pub(super) aad_bytes: usize,
}

/// Encrypts or decrypts a message of more than one stride. Returns its tag.
#[inline(always)]
pub(super) fn long<W: Strides, const ROUNDS: usize, const SEAL: bool, const EIGHTS: usize>(
    width: W,
    key: &GcmKey,
    powers: &Powers<EIGHTS>,
    context: Context,
    data: &mut [u8],
) -> Vector {
    align_stack();
    let blocks = data.len().div_ceil(16);
    let lengths = context.lengths(width.w128(), data);
    let mut run = Run::<W, ROUNDS, EIGHTS>::start(width, key, powers, context, lengths, blocks);
    let stream = run.data::<SEAL>(data, blocks);
    run.finish(lengths, blocks, stream)
}

/// Encrypts or decrypts a message of so many blocks, at most one stride. Returns its tag.
#[inline(always)]
pub(super) fn short<W: Strides, const ROUNDS: usize, const SEAL: bool, const BLOCKS: usize>(
    width: W,
    key: &GcmKey,
    context: Context,
    data: &mut [u8],
) -> Vector {
    let lengths = context.lengths(width.w128(), data);
    let mut run = Run::<W, ROUNDS, _>::start(width, key, &key.powers, context, lengths, BLOCKS);
    let stream = run.first::<SEAL, BLOCKS>(data);
    run.finish(lengths, BLOCKS, stream)
}

impl Context {
    /// The block of lengths (SP 800-38D § 7.1), reversed.
    #[inline(always)]
    fn lengths(self, w128: Width128, data: &[u8]) -> Vector {
        // Each by itself: a shift across both comes from microcode.
        let [aad, data] = [self.aad_bytes, data.len()].map(|bytes| u128::from(8 * bytes as u64));
        w128.number(aad << 64 | data)
    }
}

/// The products of two blocks.
#[inline(always)]
fn aad_and_lengths<W: Width>(
    width: W,
    [a, b]: [Vector; 2],
    [power_a, power_b]: [Vector; 2],
) -> Sums<W> {
    let sums = Sums::none(width).add(width, width.join(a, b), width.join(power_a, power_b));
    if W::BLOCKS == 1 { sums.add(width, width.lowest(a), width.lowest(power_a)) } else { sums }
}

/// The last block of additional data, reversed, and all before it taken in.
#[inline(always)]
pub(super) fn last_of_aad(w128: Width128, key: &GcmKey, mut aad: &[u8]) -> Vector {
    let first = w128.load(&key.first);
    let mut before = w128.load(&[0; 16]);
    while aad.len() > 16
        && let Some((block, rest)) = aad.split_first_chunk()
    {
        let block = w128.xor(before, w128.reverse(w128.load(block)));
        before = Sums::none(w128).add(w128, block, first).reduce(w128);
        aad = rest;
    }
    let last = match aad.as_array() {
        Some(whole) => w128.load(whole),
        None => w128.number(padded(aad)),
    };
    w128.xor(before, w128.reverse(last))
}

/// A message on its way.
struct Run<'k, W: Width, const ROUNDS: usize, const EIGHTS: usize> {
    width: W,
    key: &'k GcmKey,
    powers: &'k Powers<EIGHTS>,
    /// The next counter block with zero in its last byte, and the first round key, xored.
    base: W::Register,
    /// The next counter.
    counter: u32,
    sums: Sums<W>,
    /// The next eight powers.
    eight: usize,
}

/// A counter in the last four bytes of a block.
const fn counter_block(counter: u32) -> Block {
    (counter as u128).to_be_bytes()
}

/// The counters of a stride from this one on, among which the last byte goes round: what differs
/// from its block with zero in that byte.
#[cold]
fn counters_from(counter: u32) -> [Block; 2 * STRIDE] {
    let mut blocks = [[0; 16]; 2 * STRIDE];
    for (block, number) in blocks.iter_mut().zip(counter..) {
        *block = counter_block(number ^ (counter & !0xff));
    }
    blocks
}

/// Registers of a stride: whatever is short is short at its start.
type Registers<W> = [<W as Width>::Register; STRIDE];

impl<'k, W: Strides, const ROUNDS: usize, const EIGHTS: usize> Run<'k, W, ROUNDS, EIGHTS> {
    /// A message of so many blocks.
    #[inline(always)]
    fn start(
        width: W,
        key: &'k GcmKey,
        powers: &'k Powers<EIGHTS>,
        context: Context,
        lengths: Vector,
        blocks: usize,
    ) -> Self {
        let w128 = width.w128();
        // The power for the block before the data. Where it would be one more than there are, that
        // block meets H⁽²⁾, and is reduced before the data comes.
        let before = w128.load(&powers.all()[EIGHT * EIGHTS - 1 - blocks % (EIGHT * EIGHTS)]);
        let sums = if blocks < EIGHT * EIGHTS {
            aad_and_lengths(width, [context.aad, lengths], [before, w128.load(&key.first)])
        } else {
            Sums::none(width).add(width, width.lowest(context.aad), width.lowest(before))
        };
        let base = w128.xor(context.nonce, w128.load(&key.aes.round_keys[0]));
        Self {
            width,
            key,
            powers,
            base: width.join(base, base),
            counter: 2,
            sums,
            eight: EIGHTS - blocks.div_ceil(EIGHT) % EIGHTS,
        }
    }

    /// The tag.
    #[inline(always)]
    fn finish(self, lengths: Vector, blocks: usize, stream: Vector) -> Vector {
        let (width, w128) = (self.width, self.width.w128());
        let mut sums = self.sums;
        if blocks >= EIGHT * EIGHTS {
            let first = width.lowest(w128.load(&self.key.first));
            sums = sums.add(width, width.lowest(lengths), first);
        }
        w128.xor(w128.reverse(sums.reduce(width)), stream)
    }

    /// All data. Returns the tag's key stream.
    #[inline(always)]
    fn data<const SEAL: bool>(&mut self, data: &mut [u8], blocks: usize) -> Vector {
        let stride = STRIDE * W::BLOCKS;
        let bytes = (16 * (blocks.wrapping_sub(1) % stride + 1)).min(data.len());
        let (first, rest) = data.split_at_mut(bytes);
        let stream = for_blocks!(W, bytes, BLOCKS => self.first::<SEAL, BLOCKS>(first));
        self.strides::<SEAL>(rest);
        stream
    }

    /// All data but for the first stride.
    #[inline(always)]
    fn strides<const SEAL: bool>(&mut self, data: &mut [u8]) {
        let (width, w128) = (self.width, self.width.w128());
        let stride_bytes = 16 * STRIDE * W::BLOCKS;
        let (whole, short) = data.split_at_mut(data.len() - data.len() % stride_bytes);
        // A stride that was sealed is taken into the hash beside the next one; a stride that is
        // opened, beside itself.
        let mut sealed = None;
        for stride in whole.chunks_exact_mut(stride_bytes) {
            let (registers, _) = W::split(stride);
            if let Some((most, [last])) = registers.split_first_chunk_mut() {
                self.stride::<SEAL>(sealed, (most, last));
                sealed = SEAL.then_some((&*most, &*last));
            }
        }
        if short.is_empty() {
            if let Some((most, last)) = sealed {
                self.hash_stride(&self.registers(most, width.load(last)));
            }
            return;
        }
        let at = stride_bytes - 16 * W::BLOCKS;
        let mut last = W::Bytes::default();
        // In one piece, as it will be read.
        width.store(&mut last, width.ordered(load_last(width, short, at, W::BLOCKS > 1)));
        if let Some((most, _)) = W::split(short).0.split_first_chunk_mut() {
            self.stride::<SEAL>(sealed, (most, &mut last));
        }
        let before = short[..at].last_chunk().map_or(w128.load(&[0; 16]), |block| w128.load(block));
        let last = store_last(width, short, at, W::BLOCKS > 1, before, width.load(&last));
        if SEAL && let Some((most, _)) = W::split(short).0.split_first_chunk_mut() {
            self.hash_stride(&self.registers(most, last));
        }
    }

    #[inline(always)]
    fn registers(&self, most: &Most<W>, last: W::Register) -> Registers<W> {
        let mut registers = [last; STRIDE];
        for (register, bytes) in registers.iter_mut().zip(most) {
            *register = self.width.load(bytes);
        }
        registers
    }

    /// A whole stride, and the hash of the one that was sealed before or of the one that is opened.
    #[inline(always)]
    fn stride<const SEAL: bool>(
        &mut self,
        sealed: Option<(&Most<W>, &W::Bytes)>,
        data: (&mut Most<W>, &mut W::Bytes),
    ) {
        let width = self.width;
        let blocks = STRIDE * W::BLOCKS;
        let (base, counter) = (self.base, self.counter);
        self.counter += blocks as u32;
        let (place, across);
        let counters = if counter as usize % 256 + blocks < 256 {
            place = counter as usize % 256;
            &COUNTERS.0[place..place + blocks]
        } else {
            across = counters_from(counter);
            let changed = counter_block((counter ^ self.counter) & !0xff);
            self.base = width.xor(base, width.all(&changed));
            &across[..blocks]
        };
        if SEAL && sealed.is_none() {
            return self.unhashed(base, counters, data);
        }
        let mut carry = width.all(&[0; 16]);
        if self.eight.is_multiple_of(EIGHTS) {
            let sum = self.sums.reduce(width);
            carry = width.join(width.low_block(carry), sum);
            self.sums = Sums::none(width);
        }
        let eights = self.eight % EIGHTS;
        self.eight += W::BLOCKS;
        let stride = Stride {
            round_keys: &self.key.aes.round_keys,
            base,
            counters,
            data,
            hashed: sealed,
            powers: &self.powers.powers[eights..],
            cross_terms: &self.powers.cross_terms[eights..],
            carry,
        };
        self.sums = width.stride::<ROUNDS>(stride, self.sums);
    }

    /// A stride whose turn in the hash comes later, when there is none before it.
    #[inline(always)]
    fn unhashed(
        &self,
        base: W::Register,
        counters: &[Block],
        (most, last): (&mut Most<W>, &mut W::Bytes),
    ) {
        let width = self.width;
        let mut states = [base; STRIDE];
        for (state, counters) in states.iter_mut().zip(counters.chunks_exact(W::BLOCKS)) {
            *state = width.xor(base, width.blocks(counters));
        }
        let keys = &self.key.aes.round_keys;
        for key in &keys[1..ROUNDS] {
            let key = width.all(key);
            for state in &mut states {
                *state = width.ordered(width.round(*state, key));
            }
        }
        let key = width.all(&keys[ROUNDS]);
        for (state, bytes) in states.into_iter().zip(most.iter_mut().chain([last])) {
            let output = width.last_round(state, width.xor(key, width.load(bytes)));
            width.store(bytes, output);
        }
    }

    #[inline(always)]
    fn stream_only(&self) -> Vector {
        let w128 = self.width.w128();
        let keys = &self.key.aes.round_keys;
        let mut state = self.tag_counter();
        for key in &keys[1..ROUNDS] {
            state = w128.round(state, w128.load(key));
        }
        w128.last_round(state, w128.load(&keys[ROUNDS]))
    }

    /// The tag's counter block, and the first round key.
    #[inline(always)]
    fn tag_counter(&self) -> Vector {
        let w128 = self.width.w128();
        w128.xor(self.width.low_block(self.base), w128.load(&COUNTERS.0[1]))
    }

    /// The first `K` blocks, the last of which may be short. Returns the tag's key stream, which is
    /// made beside them.
    #[inline(always)]
    fn first<const SEAL: bool, const K: usize>(&mut self, bytes: &mut [u8]) -> Vector {
        if K == 0 {
            return self.stream_only();
        }
        let (width, w128) = (self.width, self.width.w128());
        let from = STRIDE - K.div_ceil(W::BLOCKS);
        // The tag's counter is the one before the first: there may be space for it.
        let pad = !K.is_multiple_of(W::BLOCKS);
        let (_, counters) = COUNTERS.0.split_at(2 - usize::from(pad));
        let mut states = [self.base; STRIDE];
        for (state, counters) in states[from..].iter_mut().zip(counters.chunks_exact(W::BLOCKS)) {
            *state = width.xor(self.base, width.blocks(counters));
        }
        self.counter = 2 + K as u32;
        let keys = &self.key.aes.round_keys;
        let mut tag = self.tag_counter();
        for key in &keys[1..ROUNDS] {
            let key = width.all(key);
            for state in &mut states[from..] {
                *state = width.ordered(width.round(*state, key));
            }
            if !pad {
                tag = w128.ordered(w128.round(tag, width.low_block(key)));
            }
        }
        let last_key = width.all(&keys[ROUNDS]);
        if pad {
            tag = width.low_block(width.last_round(states[from], last_key));
        } else {
            tag = w128.last_round(tag, width.low_block(last_key));
        }
        self.apply::<SEAL, K>(&mut states, last_key, bytes);
        if K == STRIDE * W::BLOCKS {
            self.hash_stride(&states);
        } else {
            self.hash::<K>(&states);
        }
        tag
    }

    /// The last round of `K` blocks, and the data. Leaves what belongs into the hash, as it is
    /// sent.
    #[inline(always)]
    fn apply<const SEAL: bool, const K: usize>(
        &self,
        states: &mut Registers<W>,
        last_key: W::Register,
        bytes: &mut [u8],
    ) {
        let (width, w128) = (self.width, self.width.w128());
        let zero = w128.load(&[0; 16]);
        let mut at = STRIDE - K.div_ceil(W::BLOCKS);
        // Data that is not at a register's start.
        let mut head = 0;
        if !K.is_multiple_of(W::BLOCKS)
            && let Some(block) = bytes.first_chunk_mut()
        {
            let input = width.join(zero, w128.load(block));
            let output = width.last_round(states[at], width.xor(last_key, input));
            w128.store(block, width.high_block(output));
            states[at] = if SEAL { width.high_only(output) } else { input };
            if K == 1 {
                return;
            }
            (at, head) = (at + 1, block.len());
        }
        let last = head + 16 * W::BLOCKS * (STRIDE - 1 - at);
        // Before what is in front of it is stored.
        let short = (bytes.len() < last + 16 * W::BLOCKS)
            .then(|| load_last(width, bytes, last, W::BLOCKS > 1 && K > 1));
        let mut before = zero;
        let (whole, _) = W::split(&mut bytes[head..last]);
        for i in 0..STRIDE - 1 {
            if i >= at {
                let bytes = &mut whole[i - at];
                let input = width.load(bytes);
                let output = width.last_round(states[i], width.xor(last_key, input));
                width.store(bytes, output);
                before = width.high_block(output);
                states[i] = if SEAL { output } else { input };
            }
        }
        at = STRIDE - 1;
        let Some(input) = short else {
            if let ([bytes], _) = W::split(&mut bytes[last..]) {
                let input = width.load(bytes);
                let output = width.last_round(states[at], width.xor(last_key, input));
                width.store(bytes, output);
                states[at] = if SEAL { output } else { input };
            }
            return;
        };
        let output = width.last_round(states[at], width.xor(last_key, input));
        let output = store_last(width, bytes, last, W::BLOCKS > 1 && K > 1, before, output);
        states[at] = if SEAL { output } else { input };
    }

    /// Takes a stride into the hash, as it is sent.
    #[inline(always)]
    fn hash_stride(&mut self, registers: &Registers<W>) {
        let mut registers = *registers;
        self.start_stride(&mut registers);
        if W::BLOCKS == 1 {
            self.hash::<STRIDE>(&registers);
        } else {
            self.hash::<{ 2 * STRIDE }>(&registers);
        }
    }

    /// Takes the last `K` blocks of a stride into the hash, as they are sent.
    #[inline(always)]
    fn hash<const K: usize>(&mut self, registers: &Registers<W>) {
        let width = self.width;
        let (from, half) = (STRIDE - K.div_ceil(W::BLOCKS), W::REGISTERS / 2);
        let eights = K.div_ceil(EIGHT);
        macro_rules! pair {
            ($pair:literal) => {
                let (eight, at) = ($pair / half, $pair % half);
                let first = eight * W::REGISTERS + at;
                let pair = [registers[first], registers[first + half]];
                let eight = (eight + eights).wrapping_sub(W::BLOCKS);
                if first >= from {
                    let eight = self.eight(eight);
                    self.sums = self.sums.add_pair(width, eight, at, pair);
                } else if first + half >= from {
                    let eight = self.eight(eight);
                    self.sums = self.sums.add_register(width, eight, at + half, pair[1]);
                }
            };
        }
        pair!(0);
        pair!(1);
        pair!(2);
        pair!(3);
        self.eight += eights;
    }

    /// The powers of the next eights.
    #[inline(always)]
    fn eight(&self, later: usize) -> Eight<'k> {
        let Powers { powers, cross_terms } = self.powers;
        let at = (self.eight + later) % EIGHTS;
        (&powers[at], &cross_terms[at])
    }

    /// Where a whole stride meets the first of all powers, what came before is reduced and belongs
    /// to its second block.
    #[inline(always)]
    fn start_stride(&mut self, registers: &mut Registers<W>) {
        let (width, w128) = (self.width, self.width.w128());
        if self.eight.is_multiple_of(EIGHTS) {
            let carry = w128.reverse(self.sums.reduce(width));
            let place = &mut registers[1 / W::BLOCKS];
            *place = width.xor(*place, width.join(w128.load(&[0; 16]), carry));
            self.sums = Sums::none(width);
        }
    }
}
