//! Every bound of this crate, named, with its unit.

use std::time::Duration;

/// Fewest entries of a ring; a power of two.
pub const ENTRIES_MIN: u32 = 2;
/// Most entries of a ring; a power of two. Cookies and slots count in 16 bits.
pub const ENTRIES_MAX: u32 = 1 << 15;
/// Largest region, in bytes: offsets count in 32 bits.
pub const REGION_BYTES_MAX: usize = 1 << 31;
/// Most regions of one client.
pub const REGIONS_MAX: usize = 256;
/// Most sessions of one client that a handle can name.
pub const SESSIONS_MAX: usize = 1 << 16;
/// How long a daemon that listens may take to have room for a connection.
pub const CONNECT: Duration = Duration::from_secs(10);
/// Longest message on the socket, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 32 << 10;
/// Most file descriptors that come with a message.
pub const MESSAGE_FDS_MAX: usize = 8;
/// Most messages that are dropped of a peer that is not listened to.
pub const MESSAGES_DISCARDED_MAX: usize = 1024;
/// Longest key in a message, in bytes.
pub const KEY_BYTES_MAX: usize = 16 << 10;
/// Most steps of a session.
pub const STEPS_MAX: usize = 4;
/// Processes of a virtual machine that may have a connection at a time.
pub const MAILBOX_SLOTS: usize = 64;
/// The first sleep of a process that nothing wakes, and the longest one; each is twice as long as the one before.
pub const STEP_MIN: Duration = Duration::from_micros(20);
/// See [`STEP_MIN`].
pub const STEP_MAX: Duration = Duration::from_millis(2);
