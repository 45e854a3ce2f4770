//! AES keys as all rooms of x86-64 want them. Whatever a packet needs of its key lies side by side,
//! and is as little as can be: among many connections, bringing keys into the cache is what packets
//! wait for.

use crate::aes::Schedule;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Powers of H that [`GcmKey`] has in whole registers: so many blocks of a message are multiplied
/// between one reduction and the next.
pub(crate) const POWERS: usize = 32;

/// An AES-GCM key (SP 800-38D). Wiped when it is dropped.
///
/// H = E(0) and its powers are elements of POLYVAL's field (RFC 8452 § 3 and appendix A): H⁽¹⁾ is H
/// with its bytes reversed, times x; H⁽ⁿ⁺¹⁾ = dot(H⁽ⁿ⁾, H⁽¹⁾); little-endian. So GHASH of byte-reversed
/// blocks X is the sum of dot(Xᵢ, H⁽ⁿ⁻ⁱ⁾), byte-reversed, and needs no shift.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
#[repr(C, align(64))]
pub(crate) struct GcmKey {
    /// H⁽³³⁾ to H⁽²⁾, falling: a message's last block times the last of them leaves a place for
    /// the block of lengths, which is multiplied by `first`.
    pub(crate) powers: [[u8; 16]; POWERS],
    /// For Karatsuba's middle product: the halves of each power, xored. Eight powers p₀ to p₇ have
    /// four pairs here, (p₀, p₄), (p₁, p₅), (p₂, p₆), (p₃, p₇): the low halves belong to one register of
    /// four powers, the high halves to the next.
    pub(crate) middles: [[u64; 2]; POWERS / 2],
    /// H⁽¹⁾.
    pub(crate) first: [u8; 16],
    /// The xored halves of `first`, twice.
    pub(crate) first_middle: [u64; 2],
    /// For the key stream.
    pub(crate) aes: Schedule,
}

/// A key for header masks by AES (RFC 9001 § 5.4.3). Wiped when it is dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
#[repr(C, align(64))]
pub(crate) struct MaskKey {
    pub(crate) aes: Schedule,
}
