//! The hashes under HMAC: their sizes, where they begin, how messages are padded.

/// Bytes a hash takes at a time.
pub(crate) const BLOCK_BYTES: usize = 64;
/// Fewest bytes that padding takes: a set bit, and the length.
pub(crate) const PADDING_BYTES_MIN: usize = 9;
/// Words of the largest hash's state.
pub(crate) const WORDS_MAX: usize = 8;

/// A hash for HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// SHA-1 (FIPS 180-4 § 6.1), 20 bytes. Broken for signatures, sound within HMAC.
    Sha1,
    /// SHA-256 (FIPS 180-4 § 6.2), 32 bytes.
    Sha256,
}

impl Hash {
    /// The digest's length in bytes, which is also the longest tag's.
    pub const fn digest_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// The state before the first block; SHA-1 has five words.
    pub(super) const fn start(self) -> [u32; WORDS_MAX] {
        match self {
            Self::Sha1 => {
                [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0, 0, 0, 0]
            }
            Self::Sha256 => [
                0x6a09_e667,
                0xbb67_ae85,
                0x3c6e_f372,
                0xa54f_f53a,
                0x510e_527f,
                0x9b05_688c,
                0x1f83_d9ab,
                0x5be0_cd19,
            ],
        }
    }
}

/// Pads `filled` bytes at the start of `end`, the last of a message of `bytes` bytes (FIPS 180-4
/// § 5.1.1); the rest is zero and at least [`PADDING_BYTES_MIN`]. Returns the padded length in
/// bytes, whole blocks.
pub(crate) fn pad(end: &mut [u8], filled: usize, bytes: u64) -> usize {
    let padded = (filled + PADDING_BYTES_MIN).next_multiple_of(BLOCK_BYTES);
    end[filled] = 0x80;
    end[padded - 8..padded].copy_from_slice(&(bytes * 8).to_be_bytes());
    padded
}
