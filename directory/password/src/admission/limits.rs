//! How many passwords may be tried, how fast, and what is remembered of it, with units.
//!
//! A failure is forgotten after a while, so that a client that stops is free again; the memory of it
//! has a fixed size. `docs/design/004-passwords.md` has the argument.

/// How delays grow with failures.
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    /// Failures before the first delay.
    pub free: u8,
    /// The first delay, in milliseconds; each further failure doubles it.
    pub first_ms: u64,
    /// The longest delay, in milliseconds.
    pub most_ms: u64,
    /// After how long one failure is forgotten, in milliseconds.
    pub forget_ms: u64,
}

/// One name from one source.
pub const PAIR: Curve = Curve { free: 5, first_ms: 100, most_ms: 8_000, forget_ms: 60_000 };
/// One name from a source that has shown its right password lately, as long as it is only compared with
/// what is remembered: a client at an owner's address keeps him waiting no longer than this.
pub const RECOGNISED: Curve = Curve { free: 20, first_ms: 25, most_ms: 100, forget_ms: 60_000 };
/// One name from all sources.
pub const NAME: Curve = Curve { free: 50, first_ms: 10, most_ms: 200, forget_ms: 10_000 };
/// One address (IPv6: a /64), for all names.
pub const SOURCE: Curve = Curve { free: 50, first_ms: 5, most_ms: 50, forget_ms: 1_000 };
/// A /48 of IPv6, for all names.
pub const WIDE_SOURCE: Curve = Curve { free: 100, first_ms: 5, most_ms: 20, forget_ms: 1_000 };
/// Failures that are counted beyond the free ones.
pub const FAILURES_COUNTED_MAX: u8 = 16;
/// How long a right password is remembered of a source, in milliseconds: an hour.
pub const PROVEN_MS: u64 = 3_600_000;
/// Sets of records of failures, a power of two. Each holds [`WAYS`]; with all it is 1 MiB.
pub const FAILURE_SETS: usize = 4_096;
/// Sets of records of right passwords, a power of two. Each holds [`WAYS`]; with all it is 1 MiB.
pub const PROVEN_SETS: usize = 4_096;
/// Records of one set; a new one takes the place of that which says least.
pub const WAYS: usize = 8;
/// Most new passwords that wait to be hashed.
pub const HASHES_WAITING_MAX: usize = 256;
/// How long an attempt waits before it is told that the server is busy, in milliseconds.
pub const WAIT_MAX_MS: u64 = 10_000;
/// One turn in so many is for a connection that has not shown a right password, while others wait.
pub const TURNS_PER_STRANGER: u64 = 4;
/// Failures of a connection that set it behind others; further ones make no difference.
pub const CONNECTION_FAILURES_MAX: u8 = 3;
/// Marks of who had a turn when, a power of two. Some share one, which does no harm.
pub const TURN_MARKS: usize = 4_096;
/// How often those who wait are looked at, in milliseconds.
pub const TICK_MS: u64 = 10;
