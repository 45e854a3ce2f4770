//! Bounds on what a client keeps and how long it waits, with their units.

use std::time::Duration;

/// Entries of each ring: one request is under way on a channel.
pub const RING_ENTRIES: u32 = 2;
/// The region of a channel, in bytes; it grows for a request that is larger.
pub const REGION_BYTES: usize = 16 << 10;
/// The most that a channel keeps of a region that has grown, in bytes.
pub const REGION_KEPT_BYTES: usize = 1 << 20;
/// Most channels of one process, and so requests under way at a time; further threads wait for one.
pub const CHANNELS_MAX: usize = 8;
/// How long a thread waits for a channel.
pub const CHANNEL_WAIT: Duration = Duration::from_secs(10);
/// Most sessions that a connection keeps, one for each key and algorithm.
pub const SESSIONS_MAX: usize = 256;
/// How long the daemon may take to answer a message; then it counts as silent.
pub const ANSWER: Duration = Duration::from_secs(5);
/// How long it may take to make a key: a large RSA key takes seconds.
pub const CHANGE: Duration = Duration::from_secs(60);
/// How long it may take to do a request: the one that answers messages may be another thread of it.
pub const REQUEST: Duration = Duration::from_secs(10);
/// How long a silent daemon is asked nothing more, so that a program which serves others is not held up by each of
/// them.
pub const QUIET: Duration = Duration::from_secs(10);
/// How long a thread polls for the end of its request before it sleeps.
pub const POLL: Duration = Duration::from_micros(30);
/// Longest sleep without a look at whether the daemon is alive: one that was killed wakes no thread.
pub const SLICE: Duration = Duration::from_millis(20);
/// How long a request may wait for a daemon before that is asked whether it is alive.
pub const SILENCE: Duration = Duration::from_secs(1);
/// How long a request is offered to a daemon that is busy.
pub const BUSY: Duration = Duration::from_secs(2);
/// Between two attempts on a daemon that is busy, at first and at most.
pub const PAUSE_MIN: Duration = Duration::from_micros(50);
/// See [`PAUSE_MIN`].
pub const PAUSE_MAX: Duration = Duration::from_millis(2);
/// Longest name that a reference may have, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 16 << 10;
