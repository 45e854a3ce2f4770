//! How much goes together.

/// Bytes of a block.
pub(super) const BLOCK: usize = 16;
/// Messages that go together, and blocks of a register.
pub(super) const LANES: usize = 4;
/// Four messages under one key so many times go together: then the latency of the cipher and of the
/// hash's end does not show.
pub(super) const QUADS: usize = 4;
/// Registers that go through the cipher together: so many that its latency does not show.
pub(super) const STRIDE: usize = 8;
/// Registers of a lone message that do: no more than the latency asks for, since nothing is hashed
/// beside the first of them, and nothing encrypted beside the hash of the last.
pub(super) const SHORT_STRIDE: usize = 4;
