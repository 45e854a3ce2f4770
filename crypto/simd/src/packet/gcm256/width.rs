//! Registers of one block and of more, so that what is done with them is written once for all
//! processors.
//!
//! All of it is inlined, `always`, into functions that have the features: a call in between would
//! pass registers through memory, instruction by instruction. So there are no closures here.

use crate::packet::detected::{Vector, Width128};

/// A block of the cipher, or an element of GHASH's field in reversed order.
pub(crate) type Block = [u8; 16];

/// Where the bytes of a block come from when they are reversed.
pub(crate) const REVERSED: Block = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];
/// Blocks that meet powers of H side by side.
pub(crate) const EIGHT: usize = 8;
/// Registers that go through the cipher together: so many that its latency does not show.
pub(crate) const STRIDE: usize = 8;

/// Functions of a width that are one expression of the processor's instructions.
macro_rules! instructions {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $do:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        $vis fn $name(self, $($arg: $type),*) -> $result {
            // SAFETY: `detect` has seen the features; references are good for a register, aligned
            // or not.
            unsafe { $do }
        }
    )*};
}
pub(crate) use instructions;

/// Shows that the features of a width are there: code that has one may do all this.
pub(crate) trait Width: Copy {
    /// As many blocks as `Bytes` has.
    type Register: Copy;
    /// The content of a register.
    type Bytes: Default;
    /// Blocks of a register.
    const BLOCKS: usize;
    /// Registers of [`EIGHT`] blocks.
    const REGISTERS: usize = EIGHT / Self::BLOCKS;

    /// For what is done block by block.
    fn w128(self) -> Width128;
    /// Cuts into registers, and what is left.
    fn split(bytes: &mut [u8]) -> (&mut [Self::Bytes], &mut [u8]);
    fn load(self, bytes: &Self::Bytes) -> Self::Register;
    fn store(self, bytes: &mut Self::Bytes, value: Self::Register);
    /// One block in all places.
    fn all(self, block: &Block) -> Self::Register;
    /// As many blocks as a register has.
    fn blocks(self, blocks: &[Block]) -> Self::Register;
    /// A register of eight powers of H.
    fn powers(self, powers: &[Block; EIGHT], at: usize) -> Self::Register;
    /// The cross_terms of a register of powers in the low halves, and those of the one that comes
    /// half of the eight later in the high halves.
    fn cross_terms(self, cross_terms: &[[u64; 2]; EIGHT / 2], at: usize) -> Self::Register;
    /// A block in the lowest place, zeros elsewhere.
    fn lowest(self, block: Vector) -> Self::Register;
    /// Two blocks, if there are so many in a register: else the last of them.
    fn join(self, low: Vector, high: Vector) -> Self::Register;
    /// The block in the lowest place.
    fn low_block(self, value: Self::Register) -> Vector;
    /// The block in the highest place.
    fn high_block(self, value: Self::Register) -> Vector;
    fn xor(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The bytes of each block from the last to the first.
    fn reverse(self, value: Self::Register) -> Self::Register;
    /// The halves of each block, swapped.
    fn swap(self, value: Self::Register) -> Self::Register;
    /// The low halves of each block of both.
    fn low_halves(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The high halves of each block of both.
    fn high_halves(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// A round of AES.
    fn round(self, state: Self::Register, key: Self::Register) -> Self::Register;
    /// The last round of AES.
    fn last_round(self, state: Self::Register, key: Self::Register) -> Self::Register;
    /// The carry-less products of halves of the blocks: those of `a` are high if `HALVES` is odd,
    /// those of `b` if it is 0x10 or more.
    fn multiply<const HALVES: i32>(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The block in the highest place, zeros elsewhere.
    fn high_only(self, value: Self::Register) -> Self::Register;
    /// The value, computed after all such before it and before all such behind it: the compiler
    /// keeps their order.
    fn ordered(self, value: Self::Register) -> Self::Register;
    /// The sum of the blocks.
    fn sum(self, value: Self::Register) -> Vector;
}

impl Width128 {
    #[inline(always)]
    pub(crate) fn bytes(self, block: Vector) -> Block {
        let mut bytes = [0; 16];
        self.store(&mut bytes, block);
        bytes
    }
}
