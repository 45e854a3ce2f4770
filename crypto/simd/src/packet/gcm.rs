//! AES keys as all backends of our own want them. Whatever a packet needs of its key lies side by
//! side, and is as little as can be: among many connections, bringing keys into the cache is what
//! packets wait for.

use crate::aes::Schedule;
use once_cell::race::OnceBox;
use zeroize::{ZeroizeOnDrop, optimization_barrier};

/// Powers of H that lie beside the rest of a key: so many blocks are multiplied between one
/// reduction and the next.
pub(crate) const POWERS: usize = 32;
/// Powers of H elsewhere: with these a packet of the internet has one reduction.
pub(crate) const MANY: usize = 96;

/// The top half of POLYVAL's polynomial, x¹²⁸ + x¹²⁷ + x¹²⁶ + x¹²¹ + 1 (RFC 8452 § 3).
pub(crate) const POLYNOMIAL: u64 = 0xc2 << 56;

/// An AES-GCM key (SP 800-38D). Wiped when it is dropped.
///
/// H = E(0) and its powers are elements of POLYVAL's field (RFC 8452 § 3 and appendix A): H⁽¹⁾ is H
/// with its bytes reversed, times x; H⁽ⁿ⁺¹⁾ = dot(H⁽ⁿ⁾, H⁽¹⁾); little-endian. So GHASH of
/// byte-reversed blocks X is the sum of dot(Xᵢ, H⁽ⁿ⁻ⁱ⁾), byte-reversed, and needs no shift.
#[derive(ZeroizeOnDrop)]
#[repr(C, align(64))]
pub(crate) struct GcmKey {
    pub(crate) powers: Powers<{ POWERS / 8 }>,
    /// H⁽¹⁾.
    pub(crate) first: [u8; 16],
    /// The xored halves of `first`, twice.
    pub(crate) first_cross_term: [u64; 2],
    /// For the key stream.
    pub(crate) aes: Schedule,
    /// The powers again, and more, for messages side by side under one key, and for long ones: made
    /// when the first of them comes, as few keys of handshakes see one. Among many connections each
    /// byte less beside the next key counts.
    #[zeroize(skip)]
    pub(crate) many: OnceBox<Powers<{ MANY / 8 }>>,
}

/// H⁽ⁿ⁺¹⁾ to H⁽²⁾, falling, eight at a time: a message's last block times the last of them leaves a
/// place for the block of lengths, which is multiplied by H⁽¹⁾. Wiped when they are dropped.
#[repr(C, align(64))]
pub(crate) struct Powers<const EIGHTS: usize> {
    pub(crate) powers: [[[u8; 16]; 8]; EIGHTS],
    /// For Karatsuba's cross term: the halves of each power, xored. Eight powers p₀ to p₇ have
    /// four pairs here, (p₀, p₄), (p₁, p₅), (p₂, p₆), (p₃, p₇): the low halves belong to one
    /// register of four powers, the high halves to the next.
    pub(crate) cross_terms: [[[u64; 2]; 4]; EIGHTS],
}

impl<const EIGHTS: usize> Powers<EIGHTS> {
    /// None yet.
    pub(crate) const fn none() -> Self {
        Self { powers: [[[0; 16]; 8]; EIGHTS], cross_terms: [[[0; 2]; 4]; EIGHTS] }
    }

    /// One after the other.
    #[inline(always)]
    pub(crate) const fn all(&self) -> &[[u8; 16]] {
        self.powers.as_flattened()
    }
}

impl<const EIGHTS: usize> Drop for Powers<EIGHTS> {
    // Not byte by byte, as for round keys.
    fn drop(&mut self) {
        self.powers = [[[0; 16]; 8]; EIGHTS];
        self.cross_terms = [[[0; 2]; 4]; EIGHTS];
        optimization_barrier(self);
    }
}

impl<const EIGHTS: usize> ZeroizeOnDrop for Powers<EIGHTS> {}
