//! A message: its data goes in lots of registers, counted from its end, so that a block's place in them says
//! which power of H it meets, whatever the length. Only the first lot may have less. The hash of one lot goes between
//! the rounds of the next, instruction by instruction; the compiler's order, and its products, would come in blocks.

use super::super::width::{Block, EIGHT, LOT, Width};
use super::ends::{last_block, padded, put_last};
use super::hash::{Eight, Sums, add_pair};
use crate::packet::{GcmKey, Powers};
use core::arch::x86_64::__m128i;

/// Encrypts or decrypts a message in place. Its additional data is in `header` if that is at most a block.
/// Returns its tag.
#[inline(always)]
pub(super) fn run<W: Width, const ROUNDS: usize, const SEAL: bool, const EIGHTS: usize>(
    width: W,
    key: &GcmKey,
    powers: &Powers<EIGHTS>,
    nonce: u128,
    header: Option<__m128i>,
    aad: &[u8],
    data: &mut [u8],
) -> Block {
    let narrow = width.narrow();
    let blocks = data.len().div_ceil(16);
    let first = narrow.load(&key.first);
    let lengths = narrow.number(8 * (u128::from(aad.len() as u64) << 64 | data.len() as u128));
    // Of the block before the data. Where it would be one more than there are, it meets H⁽²⁾, and is
    // reduced before the data comes.
    let before = narrow.load(&powers.all()[EIGHT * EIGHTS - 1 - blocks % (EIGHT * EIGHTS)]);
    let one_reduction = blocks < EIGHT * EIGHTS;
    let header = last_of_aad(width, first, header, aad);
    let sums = if one_reduction {
        ends(width, [header, lengths], [before, first])
    } else {
        Sums::none(width).add(width, width.lowest(header), width.lowest(before))
    };
    let mut run = Run::<W, ROUNDS, EIGHTS> {
        width,
        key,
        powers,
        base: narrow.reverse(narrow.number(nonce)),
        counters: width.all(&[0; 16]),
        sums,
        eight: EIGHTS - blocks.div_ceil(EIGHT) % EIGHTS,
    };
    let stream = run.data::<SEAL>(data, blocks);
    let mut sums = run.sums;
    if !one_reduction {
        sums = sums.add(width, width.lowest(lengths), width.lowest(first));
    }
    narrow.bytes(narrow.xor(narrow.reverse(sums.reduce(width)), stream))
}

/// The products of two blocks.
#[inline(always)]
fn ends<W: Width>(width: W, [a, b]: [__m128i; 2], [power_a, power_b]: [__m128i; 2]) -> Sums<W> {
    let sums = Sums::none(width).add(width, width.join(a, b), width.join(power_a, power_b));
    if W::BLOCKS == 1 { sums.add(width, width.lowest(a), width.lowest(power_a)) } else { sums }
}

/// The last block of additional data, and all before it taken in.
#[inline(always)]
fn last_of_aad<W: Width>(
    width: W,
    first: __m128i,
    header: Option<__m128i>,
    mut aad: &[u8],
) -> __m128i {
    let narrow = width.narrow();
    if let Some(header) = header {
        return narrow.reverse(header);
    }
    let mut before = narrow.load(&[0; 16]);
    while aad.len() > 16
        && let Some((block, rest)) = aad.split_first_chunk()
    {
        let block = narrow.xor(before, narrow.reverse(narrow.load(block)));
        before = Sums::none(narrow).add(narrow, block, first).reduce(narrow);
        aad = rest;
    }
    let last = match aad.as_array() {
        Some(whole) => narrow.load(whole),
        None => narrow.number(padded(aad)),
    };
    narrow.xor(before, narrow.reverse(last))
}

/// A message on its way.
struct Run<'k, W: Width, const ROUNDS: usize, const EIGHTS: usize> {
    width: W,
    key: &'k GcmKey,
    powers: &'k Powers<EIGHTS>,
    /// The counter block with counter 0, reversed.
    base: __m128i,
    /// The next counters, reversed.
    counters: W::Register,
    sums: Sums<W>,
    /// The next eight powers.
    eight: usize,
}

/// Registers of a lot: whatever is short is short at its start.
type Registers<W> = [<W as Width>::Register; LOT];

impl<'k, W: Width, const ROUNDS: usize, const EIGHTS: usize> Run<'k, W, ROUNDS, EIGHTS> {
    /// All data. Returns the tag's key stream.
    #[inline(always)]
    fn data<const SEAL: bool>(&mut self, data: &mut [u8], blocks: usize) -> __m128i {
        let lot = LOT * W::BLOCKS;
        let bytes = (16 * (blocks.wrapping_sub(1) % lot + 1)).min(data.len());
        let (first, rest) = data.split_at_mut(bytes);
        // Registers of one block have no more than eight at once.
        let two = W::BLOCKS > 1;
        let stream = match bytes.div_ceil(16) {
            0 => self.stream_only(),
            1 => self.first::<SEAL, 1>(first),
            2 => self.first::<SEAL, 2>(first),
            3 => self.first::<SEAL, 3>(first),
            4 => self.first::<SEAL, 4>(first),
            5 => self.first::<SEAL, 5>(first),
            6 => self.first::<SEAL, 6>(first),
            7 => self.first::<SEAL, 7>(first),
            9 if two => self.first::<SEAL, 9>(first),
            10 if two => self.first::<SEAL, 10>(first),
            11 if two => self.first::<SEAL, 11>(first),
            12 if two => self.first::<SEAL, 12>(first),
            13 if two => self.first::<SEAL, 13>(first),
            14 if two => self.first::<SEAL, 14>(first),
            15 if two => self.first::<SEAL, 15>(first),
            16 if two => self.first::<SEAL, 16>(first),
            _ => self.first::<SEAL, { LOT }>(first),
        };
        let mut waiting = None;
        for bytes in rest.chunks_mut(16 * lot) {
            let registers = self.next::<SEAL>(bytes, waiting);
            waiting = SEAL.then_some(registers);
        }
        if let Some(waiting) = waiting {
            self.hash_lot(&waiting);
        }
        stream
    }

    #[inline(always)]
    fn stream_only(&self) -> __m128i {
        let narrow = self.width.narrow();
        let keys = &self.key.aes.round_keys;
        let mut state = narrow.xor(self.tag_counter(), narrow.load(&keys[0]));
        for key in &keys[1..ROUNDS] {
            state = narrow.round(state, narrow.load(key));
        }
        narrow.last_round(state, narrow.load(&keys[ROUNDS]))
    }

    #[inline(always)]
    fn tag_counter(&self) -> __m128i {
        let narrow = self.width.narrow();
        narrow.reverse(narrow.add(self.base, narrow.ordinals(1)))
    }

    /// The first `K` blocks, the last of which may be short. Returns the tag's key stream, which is made beside
    /// them.
    #[inline(always)]
    fn first<const SEAL: bool, const K: usize>(&mut self, bytes: &mut [u8]) -> __m128i {
        let (width, narrow) = (self.width, self.width.narrow());
        let from = LOT - K.div_ceil(W::BLOCKS);
        // The tag's counter is the one before the first: there may be room for it.
        let pad = !K.is_multiple_of(W::BLOCKS);
        let base = width.join(self.base, self.base);
        self.counters = width.add(base, width.ordinals(2 - i32::from(pad)));
        let mut states = self.begin(from);
        let keys = &self.key.aes.round_keys;
        let mut tag = narrow.xor(self.tag_counter(), narrow.load(&keys[0]));
        for key in &keys[1..ROUNDS] {
            let key = width.all(key);
            for state in &mut states[from..] {
                *state = width.here(width.round(*state, key));
            }
            if !pad {
                tag = narrow.here(narrow.round(tag, width.low_block(key)));
            }
        }
        let last_key = width.all(&keys[ROUNDS]);
        if pad {
            tag = width.low_block(width.last_round(states[from], last_key));
        } else {
            tag = narrow.last_round(tag, width.low_block(last_key));
        }
        self.apply::<SEAL, K>(&mut states, last_key, bytes);
        if K == LOT * W::BLOCKS {
            self.hash_lot(&states);
        } else {
            self.hash::<K>(&states);
        }
        tag
    }

    /// The next lot, whose last block may be short. What was sealed before is taken into the hash between the
    /// rounds, or what is opened now. Returns what was sealed now.
    #[inline(always)]
    fn next<const SEAL: bool>(
        &mut self,
        bytes: &mut [u8],
        mut waiting: Option<Registers<W>>,
    ) -> Registers<W> {
        let width = self.width;
        if !SEAL && bytes.len() == 16 * LOT * W::BLOCKS {
            let mut registers = [width.all(&[0; 16]); LOT];
            for (register, bytes) in registers.iter_mut().zip(W::split(bytes).0) {
                *register = width.load(bytes);
            }
            waiting = Some(registers);
        }
        let late = !SEAL && waiting.is_none();
        let mut states = self.begin(0);
        let keys = &self.key.aes.round_keys;
        if let Some(mut waiting) = waiting {
            self.start_lot(&mut waiting);
            // Registers in turn, round by round.
            macro_rules! round {
                ($done:expr) => {
                    let (at, round) = ($done % LOT, $done / LOT + 1);
                    states[at] = width.here(width.round(states[at], width.all(&keys[round])));
                };
            }
            macro_rules! pair {
                ($pair:expr) => {
                    let mut done = $pair * 2 * (ROUNDS - 1);
                    macro_rules! next {
                        () => {
                            round!(done);
                            done += 1;
                        };
                    }
                    let half = W::REGISTERS / 2;
                    let (eight, at) = ($pair / half, $pair % half);
                    let first = eight * W::REGISTERS + at;
                    let pair = [waiting[first], waiting[first + half]];
                    let eight = self.eight(eight);
                    self.sums = add_pair!(width, self.sums, eight, at, pair, next);
                    for done in done..($pair + 1) * 2 * (ROUNDS - 1) {
                        round!(done);
                    }
                };
            }
            pair!(0);
            pair!(1);
            pair!(2);
            pair!(3);
            self.eight += W::BLOCKS;
        } else {
            for key in &keys[1..ROUNDS] {
                let key = width.all(key);
                for state in &mut states {
                    *state = width.here(width.round(*state, key));
                }
            }
        }
        // A whole lot, in blocks.
        if W::BLOCKS == 1 {
            self.apply::<SEAL, LOT>(&mut states, width.all(&keys[ROUNDS]), bytes);
        } else {
            self.apply::<SEAL, { 2 * LOT }>(&mut states, width.all(&keys[ROUNDS]), bytes);
        }
        if late {
            self.hash_lot(&states);
        }
        states
    }

    /// The next counters, with the first round key.
    #[inline(always)]
    fn begin(&mut self, from: usize) -> Registers<W> {
        let width = self.width;
        let key = width.all(&self.key.aes.round_keys[0]);
        let mut step = [0; 16];
        step[0] = W::BLOCKS as u8;
        let step = width.all(&step);
        let mut states = [key; LOT];
        for state in &mut states[from..] {
            *state = width.xor(width.reverse(self.counters), key);
            self.counters = width.add(self.counters, step);
        }
        states
    }

    /// The last round of `K` blocks, and the data. Leaves what belongs into the hash, as it is sent.
    #[inline(always)]
    fn apply<const SEAL: bool, const K: usize>(
        &self,
        states: &mut Registers<W>,
        last_key: W::Register,
        bytes: &mut [u8],
    ) {
        let (width, narrow) = (self.width, self.width.narrow());
        let zero = narrow.load(&[0; 16]);
        let mut at = LOT - K.div_ceil(W::BLOCKS);
        // Data that is not at a register's start.
        let mut head = 0;
        if !K.is_multiple_of(W::BLOCKS)
            && K > 1
            && let Some(block) = bytes.first_chunk_mut()
        {
            let input = width.join(zero, narrow.load(block));
            let output = width.last_round(states[at], width.xor(last_key, input));
            narrow.store(block, width.high_block(output));
            states[at] = if SEAL { width.high_only(output) } else { input };
            (at, head) = (at + 1, block.len());
        }
        let last = head + 16 * W::BLOCKS * (LOT - 1 - at);
        // Before what is in front of it is stored.
        let short = (bytes.len() < last + 16 * W::BLOCKS).then(|| last_block(narrow, bytes));
        let mut before = zero;
        let (whole, _) = W::split(&mut bytes[head..last]);
        for (state, bytes) in states[at..LOT - 1].iter_mut().zip(whole) {
            let input = width.load(bytes);
            let output = width.last_round(*state, width.xor(last_key, input));
            width.store(bytes, output);
            before = width.high_block(output);
            *state = if SEAL { output } else { input };
        }
        at = LOT - 1;
        let Some(short) = short else {
            if let ([bytes], _) = W::split(&mut bytes[last..]) {
                let input = width.load(bytes);
                let output = width.last_round(states[at], width.xor(last_key, input));
                width.store(bytes, output);
                states[at] = if SEAL { output } else { input };
            }
            return;
        };
        let mut low = None;
        if W::BLOCKS > 1 && K > 1 {
            low = bytes[last..].first_chunk_mut();
        }
        let input = width.join(low.as_ref().map_or(zero, |low| narrow.load(low)), short);
        let output = width.last_round(states[at], width.xor(last_key, input));
        if let Some(low) = low {
            before = width.low_block(output);
            narrow.store(low, before);
        }
        let short = put_last(narrow, bytes, before, width.high_block(output));
        states[at] = if SEAL { width.join(before, short) } else { input };
    }

    /// Takes a lot into the hash, as it is sent.
    #[inline(always)]
    fn hash_lot(&mut self, registers: &Registers<W>) {
        let mut registers = *registers;
        self.start_lot(&mut registers);
        if W::BLOCKS == 1 {
            self.hash::<LOT>(&registers);
        } else {
            self.hash::<{ 2 * LOT }>(&registers);
        }
    }

    /// Takes the last `K` blocks of a lot into the hash, as they are sent.
    #[inline(always)]
    fn hash<const K: usize>(&mut self, registers: &Registers<W>) {
        macro_rules! nothing {
            () => {};
        }
        let width = self.width;
        let (from, half) = (LOT - K.div_ceil(W::BLOCKS), W::REGISTERS / 2);
        let eights = K.div_ceil(EIGHT);
        macro_rules! pair {
            ($pair:literal) => {
                let (eight, at) = ($pair / half, $pair % half);
                let first = eight * W::REGISTERS + at;
                let pair = [registers[first], registers[first + half]];
                let eight = (eight + eights).wrapping_sub(W::BLOCKS);
                if first >= from {
                    let eight = self.eight(eight);
                    self.sums = add_pair!(width, self.sums, eight, at, pair, nothing);
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
        let Powers { powers, middles } = self.powers;
        let at = (self.eight + later) % EIGHTS;
        (&powers[at], &middles[at])
    }

    /// Where a whole lot meets the first of all powers, what came before is reduced and belongs to its second
    /// block.
    #[inline(always)]
    fn start_lot(&mut self, registers: &mut Registers<W>) {
        let (width, narrow) = (self.width, self.width.narrow());
        if self.eight.is_multiple_of(EIGHTS) {
            let carry = narrow.reverse(self.sums.reduce(width));
            let place = &mut registers[1 / W::BLOCKS];
            *place = width.xor(*place, width.join(narrow.load(&[0; 16]), carry));
            self.sums = Sums::none(width);
        }
    }
}
