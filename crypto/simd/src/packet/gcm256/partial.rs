//! Blocks that are not whole: zeros stand behind their bytes.

use super::width::{Block, Width};
use crate::packet::detected::{Vector, Width128};

/// Orders that move a block's bytes: from its middle on, as they are; from further on, down; from
/// before, up.
const MOVED: [u8; 48] = {
    let mut order = [0x80; 48];
    let mut at = 0;
    while at < 16 {
        order[16 + at] = at as u8;
        at += 1;
    }
    order
};
/// Bytes to keep, and to clear.
const KEPT: [u8; 32] = {
    let mut mask = [0; 32];
    let mut at = 0;
    while at < 16 {
        mask[at] = 0xff;
        at += 1;
    }
    mask
};

/// So many bytes of a table's, from a public place on.
#[inline(always)]
fn window<const N: usize>(table: &[u8; N], at: usize) -> &Block {
    table[at..].first_chunk().expect("a table is longer")
}

/// The last register of data, of whose blocks the last has 1 to 16 bytes when all before it is
/// whole, and the first is at `at` if it has `two`.
#[inline(always)]
pub(super) fn load_last<W: Width>(width: W, data: &[u8], at: usize, two: bool) -> W::Register {
    let w128 = width.w128();
    let last = last_block(w128, data);
    match data[at..].first_chunk() {
        Some(low) if two => width.join(w128.load(low), last),
        _ => width.join(w128.load(&[0; 16]), last),
    }
}

/// Puts it in its place, `before` being the block before it. Returns it with zeros where it has no
/// bytes.
#[inline(always)]
pub(super) fn store_last<W: Width>(
    width: W,
    data: &mut [u8],
    at: usize,
    two: bool,
    mut before: Vector,
    register: W::Register,
) -> W::Register {
    let w128 = width.w128();
    if two && let Some(low) = data[at..].first_chunk_mut() {
        before = width.low_block(register);
        w128.store(low, before);
    }
    width.join(before, put_last(w128, data, before, width.high_block(register)))
}

/// The last block of data, of 1 to 16 bytes, when all before it is whole.
#[inline(always)]
fn last_block(w128: Width128, data: &[u8]) -> Vector {
    let bytes = (data.len() - 1) % 16 + 1;
    match data.last_chunk() {
        // Behind the end there may be nothing.
        Some(last) => w128.shuffle(w128.load(last), window(&MOVED, 32 - bytes)),
        None => w128.number(padded(data)),
    }
}

/// Puts the last block of data in its place, `before` being the one before it.
/// Returns it with zeros where it has no bytes.
#[inline(always)]
fn put_last(w128: Width128, data: &mut [u8], before: Vector, block: Vector) -> Vector {
    let bytes = (data.len() - 1) % 16 + 1;
    match data.last_chunk_mut() {
        // The bytes before it are written again.
        Some(last) => {
            let before = w128.shuffle(before, window(&MOVED, 16 + bytes));
            let moved = w128.shuffle(block, window(&MOVED, bytes));
            w128.store(last, w128.xor(before, moved));
        }
        None => put(&w128.bytes(block), data),
    }
    w128.and(block, window(&KEPT, 16 - bytes))
}

/// A block's worth of bytes, from `at` bytes (up to 4) behind a block's start to as many behind the
/// block. Loaded at once, they would wait where the block and the bytes behind it were just written
/// one after the other.
#[inline(always)]
pub(super) fn across(w128: Width128, block: &Block, behind: &[u8; 4], at: usize) -> Vector {
    let behind = w128.number(u32::from_le_bytes(*behind).into());
    let start = w128.shuffle(w128.load(block), window(&MOVED, 16 + at));
    w128.xor(start, w128.shuffle(behind, window(&MOVED, at)))
}

/// The four bytes of a block from this place on.
#[inline(always)]
pub(super) fn four(w128: Width128, block: Vector, at: usize) -> [u8; 4] {
    let [a, b, c, d, ..] = w128.bytes(w128.shuffle(block, window(&MOVED, 16 + at)));
    [a, b, c, d]
}

/// Less than a block. As two numbers that may overlap, since copies of odd lengths cost more than
/// the cipher.
#[inline(always)]
pub(super) fn padded(bytes: &[u8]) -> u128 {
    let end = bytes.len().wrapping_sub(8);
    if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (low, high) = (u64::from_le_bytes(*low), u64::from_le_bytes(*high));
        // Half by half: a shift across both comes from microcode.
        return u128::from(low) | u128::from((high >> 8) >> (8 * (7 - end))) << 64;
    }
    let end = bytes.len().wrapping_sub(4);
    if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (low, high) = (u32::from_le_bytes(*low), u32::from_le_bytes(*high));
        return u128::from(u64::from(low) | u64::from(high) << (8 * end));
    }
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// The start of a block.
#[inline(always)]
fn put(block: &Block, bytes: &mut [u8]) {
    let number = u128::from_le_bytes(*block);
    let (front, back) = (number as u64, (number >> 64) as u64);
    let end = bytes.len().wrapping_sub(8);
    if let Some(low) = bytes.first_chunk_mut() {
        *low = front.to_le_bytes();
        if let Some(high) = bytes.last_chunk_mut() {
            // As in `padded`.
            *high = (front >> (8 * end) | (back << 8) << (8 * (7 - end))).to_le_bytes();
        }
        return;
    }
    let end = bytes.len().wrapping_sub(4);
    if let Some(low) = bytes.first_chunk_mut() {
        *low = (front as u32).to_le_bytes();
        if let Some(high) = bytes.last_chunk_mut() {
            *high = ((front >> (8 * end)) as u32).to_le_bytes();
        }
        return;
    }
    // The first, the middle and the last are all. A loop would become a call, for which registers
    // are saved on the way of every message.
    for at in [0, bytes.len() / 2, bytes.len().wrapping_sub(1)] {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = (front >> (8 * at)) as u8;
        }
    }
}
