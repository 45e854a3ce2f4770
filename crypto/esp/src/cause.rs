//! Why a packet is dropped.

use keyway_engine::Error;
use std::fmt;

/// Why a packet is dropped. Each is one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Its number was received before, is left of the window, or is none that there can be (0).
    Replay,
    /// It is not authentic: the integrity check value does not check.
    Icv,
    /// There is no security association of its SPI.
    Spi,
    /// It is authentic, and the selectors of its security association do not let it through.
    Selectors,
    /// It is no ESP packet, or an authentic one with no IP packet in it: lengths, padding, next header.
    Malformed,
    /// It is longer than one ESP packet takes ([`SEALED_BYTES_MAX`](crate::limits::SEALED_BYTES_MAX)).
    TooLong,
    /// The batch or the engine has no room.
    QueueFull,
    /// The numbers that may be used are used up: those allowed so far ([`OutboundSa::extend`]), or all of 32 bits
    /// without extended ones. In a forked child, where they are the parent's.
    ///
    /// [`OutboundSa::extend`]: crate::OutboundSa::extend
    NumbersUsedUp,
    /// A hard limit of its security association is reached.
    Lifetime,
    /// It is a dummy (RFC 4303 § 2.6). No error: the sender hides how much it sends.
    Dummy,
    /// Congestion was met on a way on which the inner packet cannot say so (RFC 6040 § 4.2).
    Ecn,
    /// Transport mode cannot carry it: a fragment, or a header with options that routers look at (RFC 4303 § 3.1.1).
    Transport,
    /// The engine failed.
    Engine,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 13] = [
        Cause::Replay,
        Cause::Icv,
        Cause::Spi,
        Cause::Selectors,
        Cause::Malformed,
        Cause::TooLong,
        Cause::QueueFull,
        Cause::NumbersUsedUp,
        Cause::Lifetime,
        Cause::Dummy,
        Cause::Ecn,
        Cause::Transport,
        Cause::Engine,
    ];

    /// Its name in the meters.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Replay => "replay",
            Cause::Icv => "icv",
            Cause::Spi => "spi",
            Cause::Selectors => "selectors",
            Cause::Malformed => "malformed",
            Cause::TooLong => "too_long",
            Cause::QueueFull => "queue_full",
            Cause::NumbersUsedUp => "numbers_used_up",
            Cause::Lifetime => "lifetime",
            Cause::Dummy => "dummy",
            Cause::Ecn => "ecn",
            Cause::Transport => "transport",
            Cause::Engine => "engine",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Replay => "its number was received before or is too old",
            Cause::Icv => "it is not authentic",
            Cause::Spi => "no security association has its SPI",
            Cause::Selectors => "the selectors of its security association forbid it",
            Cause::Malformed => "it is malformed",
            Cause::TooLong => "it is too long",
            Cause::QueueFull => "the queue is full",
            Cause::NumbersUsedUp => "the sequence numbers are used up",
            Cause::Lifetime => "the lifetime of its security association is over",
            Cause::Dummy => "it is a dummy",
            Cause::Ecn => "it met congestion and cannot say so",
            Cause::Transport => "transport mode cannot carry it",
            Cause::Engine => "the engine failed",
        })
    }
}

impl std::error::Error for Cause {}

impl From<Error> for Cause {
    /// The meaning of the engine's error for the packet.
    fn from(error: Error) -> Self {
        match error {
            Error::Authentication => Cause::Icv,
            Error::Busy => Cause::QueueFull,
            Error::Exhausted(_) => Cause::Lifetime,
            _ => Cause::Engine,
        }
    }
}
