//! Lengths that are the same for all AEADs.

/// Length of every nonce, in bytes.
pub const NONCE_BYTES: usize = 12;
/// Length of every tag, in bytes.
pub const TAG_BYTES: usize = 16;
/// Length of what a header mask is computed from, in bytes (RFC 9001 § 5.4.2).
pub const SAMPLE_BYTES: usize = 16;
/// Bytes of a header mask that count (RFC 9001 § 5.4.1).
pub const MASK_BYTES: usize = 5;
