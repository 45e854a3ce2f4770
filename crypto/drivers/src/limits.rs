//! Bounds on what drivers keep, with their units.

use std::time::Duration;

/// Most right passwords that a verifier may be told to remember. With all it is about 2 GB.
pub const REMEMBERED_MAX: usize = 10_000_000;
/// Wrong passwords of one entry that a verifier has derived before it says busy; those under way
/// count.
pub const WRONG_MAX: u32 = 200;
/// After how long it forgets one of them.
pub const WRONG_FORGET: Duration = Duration::from_millis(50);
/// Most entries whose wrong passwords it counts; then the one with the fewest gives way.
pub const WRONG_ENTRIES_MAX: usize = 16_384;
/// Entries of each ring that a client of the daemon asks for, and so requests of one queue under
/// way.
pub const RING_ENTRIES: u32 = 64;
/// The most that a request in a ring's own region may take, in bytes; a larger one gets a region of
/// its own.
pub const SLOT_BYTES: usize = 32 << 10;
/// Most queue pairs of one connection: as many queues and single requests at a time.
pub const CHANNELS_MAX: usize = 64;
/// Most bytes of regions that are kept for large requests when these are done.
pub const LARGE_BYTES_MAX: usize = 64 << 20;
/// Most regions that one connection's buffers are taken from.
pub const LENT_REGIONS_MAX: usize = 32;
/// A region that buffers are taken from has at least so many bytes, as far as one buffer allows.
pub const LENT_REGION_BYTES: usize = 2 << 20;
/// How long requests may wait at the daemon without one being answered, before it is asked whether
/// it is alive. Slow ones may take longer: it only has to say so, within [`ANSWER`].
pub const SILENCE: Duration = Duration::from_secs(1);
/// How long the daemon may take to answer a message; then the connection counts as dead.
pub const ANSWER: Duration = Duration::from_secs(10);
/// How often a virtual machine's device is looked at, whether its daemon still serves it.
pub const LOOK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long a request is offered to a daemon that is busy and takes nothing else either.
pub const BUSY: Duration = Duration::from_secs(2);
/// The first and the last pause between two attempts to connect; each is twice as long as the one
/// before.
pub const RECONNECT_MIN: Duration = Duration::from_millis(5);
/// See [`RECONNECT_MIN`].
pub const RECONNECT_MAX: Duration = Duration::from_secs(1);
