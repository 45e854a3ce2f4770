//! A security association for packets that go out.

use crate::cause::Cause;
use crate::lifetime::{Counted, Life, Time, Use};
use crate::parameters::{Association, Mode, SaError, SaParameters};
use crate::suite::Suite;
use keyway_engine::Engine;
use keyway_fork::Generation;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A security association for packets that go out. Threads share it: its numbers come from one counter.
///
/// A number is part of a nonce, and none may be used twice under one key. So a caller that keeps a key over a restart
/// keeps the numbers that were used under it as well, allows a stretch of them at a time ([`OutboundSa::extend`]), and
/// notes its end before. In a forked child it seals nothing: the parent goes on with the numbers.
pub struct OutboundSa {
    association: Association,
    counted: Counted,
    /// The number of the next packet.
    next: AtomicU64,
    /// The first number that may not be used yet.
    end: AtomicU64,
    iv_base: u64,
    process: Generation,
}

/// The numbers that were reserved for a batch.
pub(crate) struct Reserved {
    /// The first of them.
    pub first: u64,
    /// How many packets get one, from the front.
    pub packets: usize,
    /// Why the others get none.
    pub otherwise: Cause,
}

impl OutboundSa {
    /// Numbers from the front of `numbers` are used; the first is 1 at least. Those behind the last that the association
    /// can have (2^32 - 1, with extended ones 2^64 - 2) are left out.
    ///
    /// `iv_base` is added to a packet's number, modulo 2^64, for the initialisation vector of an AEAD. It belongs to the
    /// key: the caller keeps it as long.
    ///
    /// # Errors
    /// If the parameters do not fit, or the engine refuses the key.
    pub fn new(
        engine: &Engine,
        parameters: &SaParameters<'_>,
        numbers: Range<u64>,
        iv_base: u64,
        now: Time,
    ) -> Result<OutboundSa, SaError> {
        if numbers.start == 0 || numbers.start >= last_end(parameters.esn) {
            return Err(SaError::Numbers(numbers.start));
        }
        let sa = OutboundSa {
            association: Association::new(engine, parameters)?,
            counted: Counted::new(parameters.lifetime, now),
            next: AtomicU64::new(numbers.start),
            end: AtomicU64::new(numbers.start),
            iv_base,
            process: Generation::current(),
        };
        sa.extend(numbers.end);
        Ok(sa)
    }

    /// From now on numbers below `end` may be used. It never takes back what was allowed.
    pub fn extend(&self, end: u64) {
        self.end.fetch_max(end.min(last_end(self.association.esn)), Ordering::Relaxed);
    }

    /// The number of the next packet.
    pub fn next_number(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The first number that may not be used yet.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// The number that the receiver knows it by.
    pub fn spi(&self) -> u32 {
        self.association.spi
    }

    /// Its algorithms.
    pub fn suite(&self) -> Suite {
        self.association.suite
    }

    /// Tunnel or transport.
    pub fn mode(&self) -> Mode {
        self.association.mode
    }

    /// Whether its numbers have 64 bits.
    pub fn esn(&self) -> bool {
        self.association.esn
    }

    /// Whether its key is used by its name ([`SaKey::Named`](crate::SaKey::Named)): the driver that has it may be slow, or hang.
    pub fn is_named(&self) -> bool {
        self.association.is_named
    }

    /// The packets that were sealed so far.
    pub fn use_(&self) -> Use {
        self.counted.now()
    }

    /// Whether it is time for another one.
    pub fn state(&self, now: Time) -> Life {
        match self.next_number() < last_end(self.association.esn) {
            true => self.counted.life(now),
            false => Life::Ended,
        }
    }

    pub(crate) fn association(&self) -> &Association {
        &self.association
    }

    /// The initialisation vector of the packet of this number, with an AEAD.
    pub(crate) fn iv(&self, number: u64) -> [u8; 8] {
        number.wrapping_add(self.iv_base).to_be_bytes()
    }

    /// Takes numbers for packets of these sizes, in their order, and counts them.
    pub(crate) fn reserve(&self, sizes: &[usize], now: Time) -> Reserved {
        let none = |otherwise| Reserved { first: 0, packets: 0, otherwise };
        if !self.process.is_current() {
            return none(Cause::NumbersUsedUp);
        }
        if self.counted.life(now) == Life::Ended {
            return none(Cause::Lifetime);
        }
        let counted = self.counted.take(sizes).packets;
        let mut taken = 0;
        let take = |first: u64| {
            taken = counted.min(self.end().saturating_sub(first));
            Some(first + taken)
        };
        // It gives a value always, and `taken` is that of the try which succeeded.
        let (Ok(first) | Err(first)) =
            self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let (counted, packets) = (counted as usize, taken as usize);
        if packets < counted {
            self.counted.give_back(sizes.get(packets..counted).unwrap_or_default());
            return Reserved { first, packets, otherwise: Cause::NumbersUsedUp };
        }
        Reserved { first, packets, otherwise: Cause::Lifetime }
    }
}

/// The first number that no packet can have.
fn last_end(esn: bool) -> u64 {
    if esn { u64::MAX } else { 1 << 32 }
}

impl fmt::Debug for OutboundSa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OutboundSa");
        shown.field("spi", &self.spi()).field("suite", &self.suite()).field("mode", &self.mode());
        shown.field("next", &self.next_number()).field("end", &self.end()).finish_non_exhaustive()
    }
}
