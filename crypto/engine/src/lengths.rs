//! Which lengths of text an AEAD or a cipher takes.

use crate::{Algorithm, ExpectedLength, Kind, limits};
use std::ops::RangeInclusive;

impl Algorithm {
    /// The lengths that it seals or encrypts.
    pub(crate) const fn length_limits(self) -> LengthLimits {
        let (kind, whole) = (self.kind(), self.block_bytes() - 1);
        let (least, most) = match self {
            Algorithm::Aes128Gmac | Algorithm::Aes256Gmac => (0, 0),
            Algorithm::Aes128Xts | Algorithm::Aes256Xts => (16, limits::REQUEST_BYTES_MAX),
            _ => (0, limits::REQUEST_BYTES_MAX),
        };
        LengthLimits { kind, least, most, whole }
    }
}

/// Lengths that fit an AEAD or a cipher, in bytes, ready to be compared with.
#[derive(Clone, Copy)]
pub(crate) struct LengthLimits {
    kind: Kind,
    least: usize,
    most: usize,
    /// The bits of the length that are 0 for whole blocks.
    whole: usize,
}

impl LengthLimits {
    /// The kind of algorithm they belong to.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The length that was expected in place of one outside them.
    pub fn expected(&self, bytes: usize) -> ExpectedLength {
        match bytes {
            _ if self.least == self.most => ExpectedLength::Exactly(self.least),
            less if less < self.least => ExpectedLength::AtLeast(self.least),
            more if more > self.most => ExpectedLength::AtMost(self.most),
            _ => ExpectedLength::MultipleOf(self.whole + 1),
        }
    }

    /// These limits, narrowed to lengths of this range.
    pub fn within(self, bytes: RangeInclusive<usize>) -> Self {
        let (least, most) = (self.least.max(*bytes.start()), self.most.min(*bytes.end()));
        LengthLimits { least, most, ..self }
    }

    /// Whether a text of this length fits, whatever kind of algorithm it is for.
    #[inline]
    pub fn fit(&self, bytes: usize) -> bool {
        // One comparison where two would do: a queue asks this of every task.
        bytes.wrapping_sub(self.least) <= self.most - self.least && bytes & self.whole == 0
    }

    /// Whether they are for this kind of algorithm and a text of this length fits.
    #[inline]
    pub fn fit_kind(&self, kind: Kind, bytes: usize) -> bool {
        self.kind == kind && self.fit(bytes)
    }
}
