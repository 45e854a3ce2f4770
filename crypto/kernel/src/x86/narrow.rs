//! AES-GCM and header masks in registers of one or two blocks, message by message.
//!
//! Four registers of key stream are made at a time, while GHASH goes over what was encrypted
//! before, or will be decrypted now. Its products are summed over up to 32 blocks and then reduced.

use super::width::{Aesni, Avx2, Block, Width};
use crate::aes::{Rounds, Schedule};
use crate::chacha::{self, Lanes};
use crate::packet::{
    AeadForm, GcmKey, HeaderForm, HeaderKey, Mask, MaskKey, Message, Open, POWERS, Parts, Protect,
    Room, SAMPLE_BYTES, Seal, Unprotect, mask,
};
use crate::portable::Library;
use core::slice;
use zeroize::optimization_barrier;

/// Registers of key stream that are made together: with GHASH between their rounds they keep the
/// processor busy, and more would not fit beside its sums.
const AT_ONCE: usize = 4;
/// Most registers that the end of a message needs: less than a lot, and a place for the tag.
const END: usize = AT_ONCE + 1;
/// Packets whose numbers are written, then whose payloads are sealed, then whose headers are masked: so
/// many that no step waits for what the one before it has just stored in smaller pieces, so few that they
/// are still in the cache.
const PACKETS: usize = 16;

/// A room, its features on in everything that is inlined into these functions.
macro_rules! room {
    ($width:ty, $features:literal) => {
        impl Room for $width {
            fn seal(self, messages: &mut [Seal<'_>]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, messages: &mut [Seal<'_>]) {
                    all::<_, _, true>(width, messages);
                }
                // SAFETY: `detect` has seen the features.
                unsafe { run(self, messages) }
            }

            fn open(self, messages: &mut [Open<'_>]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, messages: &mut [Open<'_>]) {
                    all::<_, _, false>(width, messages);
                }
                // SAFETY: `detect` has seen the features.
                unsafe { run(self, messages) }
            }

            fn protect(self, packets: &mut [Protect<'_>]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, packets: &mut [Protect<'_>]) -> bool {
                    protect(width, packets)
                }
                // SAFETY: `detect` has seen the features.
                if !unsafe { run(self, packets) } {
                    mask(self, packets, |packet| mask_key(packet.header_key).is_none());
                }
            }

            fn open_packets(self, packets: &mut [Unprotect<'_>]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, packets: &mut [Unprotect<'_>]) {
                    all::<_, _, false>(width, packets);
                }
                // SAFETY: `detect` has seen the features.
                unsafe { run(self, packets) }
            }

            fn masks(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
                #[target_feature(enable = $features)]
                fn run(width: $width, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
                    masks(width, samples);
                }
                // SAFETY: `detect` has seen the features.
                unsafe { run(self, samples) }
            }
        }
    };
}

room!(Aesni, "aes,pclmulqdq,ssse3,sse4.1");
room!(Avx2, "avx2,vaes,vpclmulqdq,aes,pclmulqdq");

/// Seals or opens one message after the other.
#[inline(always)]
fn all<'k, W: Width, M: Message<'k>, const SEAL: bool>(width: W, messages: &mut [M]) {
    for message in messages {
        let AeadForm::Gcm(key) = &message.key().0 else {
            message.library();
            continue;
        };
        let nonce = message.nonce();
        let Parts { aad, data, .. } = message.parts();
        let tag = match key.aes.rounds {
            Rounds::Ten => run::<W, 10, SEAL>(width, key, nonce, aad, data),
            Rounds::Fourteen => run::<W, 14, SEAL>(width, key, nonce, aad, data),
        };
        message.finish(&tag);
    }
}

/// Seals packets, and masks those headers whose keys are for this room. Says whether all are.
#[inline(always)]
fn protect<W: Width>(width: W, packets: &mut [Protect<'_>]) -> bool {
    let mut all_masked = true;
    for packets in packets.chunks_mut(PACKETS) {
        for packet in &mut *packets {
            packet.put_number();
        }
        all::<_, _, true>(width, packets);
        for packet in packets {
            if let Some(key) = mask_key(packet.header_key) {
                let mask = encrypt(width.narrow(), &key.aes, packet.sample());
                packet.mask(Mask::new(&mask));
            } else {
                all_masked = false;
            }
        }
    }
    all_masked
}

/// The key, if it is for this room.
#[inline(always)]
fn mask_key(key: &HeaderKey) -> Option<&MaskKey> {
    match &key.0 {
        HeaderForm::Aes(key) => Some(key),
        _ => None,
    }
}

/// A message in place, to its tag.
#[inline(always)]
fn run<W: Width, const ROUNDS: usize, const SEAL: bool>(
    width: W,
    key: &GcmKey,
    nonce: u128,
    aad: &[u8],
    data: &mut [u8],
) -> Block {
    let lengths = [data.len(), aad.len()].map(|bytes| 8 * bytes as u64);
    let mut ghash = Ghash::new(width, key, aad.len().div_ceil(16), data.len().div_ceil(16));
    let (blocks, rest) = aad.as_chunks();
    for block in blocks {
        ghash.block(block);
    }
    if !rest.is_empty() {
        ghash.block(&padded(rest));
    }
    // The tag's counter. The message has those after it, which are counted with their bytes from the last
    // to the first.
    let tag_counter = nonce | 1 << 120;
    let first = tag_counter.swap_bytes().to_le_bytes();
    let mut counter = width.add(width.all(&first), width.ordinals());
    let tag_counter = tag_counter.to_le_bytes();

    let (registers, rest) = W::split(data);
    let (lots, registers) = registers.as_chunks_mut::<AT_ONCE>();
    let mut before = None;
    for lot in lots {
        let hashed = if SEAL { before } else { Some(&*lot) };
        let mut state = counters(width, &mut counter);
        stream::<W, ROUNDS, AT_ONCE>(width, &mut state, &mut ghash, hashed);
        for at in 0..AT_ONCE {
            let text = width.load(&lot[at]);
            width.store(&mut lot[at], width.xor(text, state[at]));
        }
        before = Some(&*lot);
    }
    if !SEAL {
        before = None;
    }
    // One place more than there are blocks, for the tag.
    let places = registers.len() * W::BLOCKS + rest.len().div_ceil(16) + 1;
    let mut end = End { width, counter, tag_counter: &tag_counter, registers, rest };
    let mask = match places.div_ceil(W::BLOCKS) {
        0 | 1 => end.run::<ROUNDS, SEAL, 1>(&mut ghash, before),
        2 => end.run::<ROUNDS, SEAL, 2>(&mut ghash, before),
        3 | AT_ONCE => end.run::<ROUNDS, SEAL, AT_ONCE>(&mut ghash, before),
        _ => end.run::<ROUNDS, SEAL, END>(&mut ghash, before),
    };
    let hash = ghash.finish(lengths);
    (u128::from_be_bytes(hash) ^ u128::from_le_bytes(mask)).to_le_bytes()
}

/// The next counters as the cipher takes them.
#[inline(always)]
fn counters<W: Width, const N: usize>(width: W, counter: &mut W::Register) -> [W::Register; N] {
    let mut step = [0; 16];
    step[0] = W::BLOCKS as u8;
    let step = width.all(&step);
    let mut state = [*counter; N];
    for state in &mut state {
        *state = width.reverse(*counter);
        *counter = width.add(*counter, step);
    }
    state
}

/// Takes counters through the cipher, and GHASH over a lot between its rounds.
#[inline(always)]
fn stream<W: Width, const ROUNDS: usize, const N: usize>(
    width: W,
    state: &mut [W::Register; N],
    ghash: &mut Ghash<'_, W>,
    hashed: Option<&[W::Bytes; AT_ONCE]>,
) {
    let keys = &ghash.key.aes.round_keys;
    let key = width.all(&keys[0]);
    for state in &mut *state {
        *state = width.xor(*state, key);
    }
    if let Some(hashed) = hashed {
        ghash.make_room();
        for round in 1..ROUNDS {
            let key = width.all(&keys[round]);
            for state in &mut *state {
                *state = width.round(*state, key);
            }
            if round <= AT_ONCE {
                ghash.register(width.load(&hashed[round - 1]));
            }
        }
    } else {
        for key in &keys[1..ROUNDS] {
            let key = width.all(key);
            for state in &mut *state {
                *state = width.round(*state, key);
            }
        }
    }
    let key = width.all(&keys[ROUNDS]);
    for state in &mut *state {
        *state = width.last_round(*state, key);
    }
}

/// What is left of a message behind its last lot.
struct End<'a, W: Width> {
    width: W,
    counter: W::Register,
    tag_counter: &'a Block,
    registers: &'a mut [W::Bytes],
    /// Less than a register.
    rest: &'a mut [u8],
}

impl<W: Width> End<'_, W> {
    /// Its last blocks with `N` registers of key stream; what the tag is masked with comes last.
    #[inline(always)]
    fn run<const ROUNDS: usize, const SEAL: bool, const N: usize>(
        &mut self,
        ghash: &mut Ghash<'_, W>,
        hashed: Option<&[W::Bytes; AT_ONCE]>,
    ) -> Block {
        let Self { width, counter, tag_counter, registers, rest } = self;
        let mut state = counters::<W, N>(*width, counter);
        state[N - 1] = width.with_last(state[N - 1], tag_counter);
        stream::<W, ROUNDS, N>(*width, &mut state, ghash, hashed);
        let mut bytes = [[0; 16]; 2 * END];
        let (places, rest_places) = W::split(bytes.as_flattened_mut());
        debug_assert!(rest_places.is_empty());
        for (place, state) in places.iter_mut().zip(state) {
            width.store(place, state);
        }
        ghash.make_room();
        for (text, place) in registers.iter_mut().zip(&*places) {
            let old = width.load(text);
            let new = width.xor(old, width.load(place));
            width.store(text, new);
            ghash.register(if SEAL { new } else { old });
        }
        let at = registers.len() * W::BLOCKS;
        let (blocks, part) = rest.as_chunks_mut::<16>();
        let places = &bytes[at..];
        for (text, place) in blocks.iter_mut().zip(places) {
            let old = *text;
            *text = (u128::from_le_bytes(old) ^ u128::from_le_bytes(*place)).to_le_bytes();
            ghash.block(if SEAL { text } else { &old });
        }
        if let Some(place) = places.get(blocks.len()).filter(|_| !part.is_empty()) {
            let old = padded(part);
            let mut new = (u128::from_le_bytes(old) ^ u128::from_le_bytes(*place)).to_le_bytes();
            put(&new, part);
            new[part.len()..].fill(0);
            ghash.block(if SEAL { &new } else { &old });
        }
        let mask = bytes[N * W::BLOCKS - 1];
        bytes = [[0; 16]; 2 * END];
        optimization_barrier(&bytes);
        mask
    }
}

/// GHASH as [`GcmKey`] wants it.
struct Ghash<'a, W: Width> {
    width: W,
    key: &'a GcmKey,
    /// Products of low halves, of xored halves and of high halves.
    sums: [W::Register; 3],
    /// Which power is next; [`POWERS`]: the sums want to be reduced.
    power: usize,
    /// Blocks of AAD that are not yet placed.
    aad: usize,
    /// Blocks of data that are not yet placed.
    data: usize,
}

impl<'a, W: Width> Ghash<'a, W> {
    #[inline(always)]
    fn new(width: W, key: &'a GcmKey, aad: usize, data: usize) -> Self {
        let mut new = Self { width, key, sums: [width.one(&[0; 16]); 3], power: POWERS, aad, data };
        new.place();
        new
    }

    /// Decides how many blocks come before the next reduction: as many as there are, or those that
    /// end with a lot.
    #[inline(always)]
    fn place(&mut self) -> usize {
        let lot = AT_ONCE * W::BLOCKS;
        let aad = self.aad.min(POWERS);
        let data = if aad + self.data <= POWERS {
            if aad == self.aad { self.data } else { 0 }
        } else {
            (POWERS - aad) / lot * lot
        };
        (self.aad, self.data) = (self.aad - aad, self.data - data);
        self.power = POWERS - aad - data;
        aad + data
    }

    /// Reduces where there is no power for what comes next.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.power < POWERS || self.aad + self.data == 0 {
            return;
        }
        let sum = self.width.reduce(self.sums);
        self.sums = [self.width.one(&[0; 16]); 3];
        let blocks = self.place();
        // The first of these blocks gets H⁽ⁿ⁺¹⁾; what was summed before has one H already.
        let power = self.key.powers.all().get(POWERS + 1 - blocks).unwrap_or(&self.key.first);
        self.multiply(self.width.one(&sum), self.width.one(power));
    }

    #[inline(always)]
    fn multiply(&mut self, value: W::Register, power: W::Register) {
        let width = self.width;
        let middle =
            width.low(width.xor(value, width.swap(value)), width.xor(power, width.swap(power)));
        let products = [width.low(value, power), middle, width.high(value, power)];
        for (sum, product) in self.sums.iter_mut().zip(products) {
            *sum = width.xor(*sum, product);
        }
    }

    /// As many blocks as a register has.
    #[inline(always)]
    fn register(&mut self, value: W::Register) {
        let power = self.width.powers(self.key.powers.all(), self.power);
        self.power += W::BLOCKS;
        self.multiply(self.width.reverse(value), power);
    }

    #[inline(always)]
    fn block(&mut self, block: &Block) {
        self.make_room();
        let power = self.key.powers.all().get(self.power).unwrap_or(&self.key.first);
        let power = self.width.one(power);
        self.power += 1;
        self.multiply(self.width.reverse(self.width.one(block)), power);
    }

    /// The hash, its bytes from the last to the first.
    #[inline(always)]
    fn finish(mut self, [data_bits, aad_bits]: [u64; 2]) -> Block {
        let lengths = (u128::from(aad_bits) << 64 | u128::from(data_bits)).to_le_bytes();
        self.multiply(self.width.one(&lengths), self.width.one(&self.key.first));
        self.width.reduce(self.sums)
    }
}

/// One after the other: the processor takes up the next while it waits for a round.
#[inline(always)]
fn masks<W: Width + Lanes>(width: W, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
    let mut chacha = false;
    for sample in &mut *samples {
        match &sample.0.0 {
            HeaderForm::Aes(key) => sample.1 = encrypt(width.narrow(), &key.aes, &sample.1),
            HeaderForm::ChaCha(_) => chacha = true,
            HeaderForm::Library(_) => Library.masks(slice::from_mut(sample)),
        }
    }
    if chacha {
        chacha::masks(width, samples);
    }
}

/// A sample through the cipher.
#[inline(always)]
fn encrypt<W: Width<Bytes = Block>>(width: W, aes: &Schedule, sample: &Block) -> Block {
    match aes.rounds {
        Rounds::Ten => encrypt_by::<W, 10>(width, aes, sample),
        Rounds::Fourteen => encrypt_by::<W, 14>(width, aes, sample),
    }
}

#[inline(always)]
fn encrypt_by<W: Width<Bytes = Block>, const ROUNDS: usize>(
    width: W,
    aes: &Schedule,
    sample: &Block,
) -> Block {
    let keys = &aes.round_keys;
    let mut state = width.xor(width.load(sample), width.load(&keys[0]));
    for key in &keys[1..ROUNDS] {
        state = width.round(state, width.load(key));
    }
    let mut mask = [0; 16];
    width.store(&mut mask, width.last_round(state, width.load(&keys[ROUNDS])));
    mask
}

/// Less than a block, and zeros behind it. As two numbers that may overlap, since copies of odd
/// lengths cost more than the cipher.
#[inline(always)]
fn padded(bytes: &[u8]) -> Block {
    let end = bytes.len().wrapping_sub(8);
    if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (low, high) = (u64::from_le_bytes(*low), u64::from_le_bytes(*high));
        return (u128::from(low) | u128::from(high) << (8 * end)).to_le_bytes();
    }
    let end = bytes.len().wrapping_sub(4);
    if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (low, high) = (u32::from_le_bytes(*low), u32::from_le_bytes(*high));
        return (u128::from(low) | u128::from(high) << (8 * end)).to_le_bytes();
    }
    let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte));
    number.to_le_bytes()
}

/// The start of a block.
#[inline(always)]
fn put(block: &Block, bytes: &mut [u8]) {
    let number = u128::from_le_bytes(*block);
    let end = bytes.len().wrapping_sub(8);
    if let Some(low) = bytes.first_chunk_mut() {
        *low = (number as u64).to_le_bytes();
        if let Some(high) = bytes.last_chunk_mut() {
            *high = ((number >> (8 * end)) as u64).to_le_bytes();
        }
        return;
    }
    let end = bytes.len().wrapping_sub(4);
    if let Some(low) = bytes.first_chunk_mut() {
        *low = (number as u32).to_le_bytes();
        if let Some(high) = bytes.last_chunk_mut() {
            *high = ((number >> (8 * end)) as u32).to_le_bytes();
        }
        return;
    }
    for (to, from) in bytes.iter_mut().zip(block) {
        *to = *from;
    }
}
