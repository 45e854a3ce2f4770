//! Limits of a data folder, and of the waiting for one.

use std::time::Duration;

/// How long a start waits for the lock of a process that was killed and is not gone yet, and how often it
/// looks.
pub const LOCK_OF_THE_DEAD_WAIT: Duration = Duration::from_secs(5);
/// See [`LOCK_OF_THE_DEAD_WAIT`].
pub const LOCK_LOOK_EVERY: Duration = Duration::from_millis(2);
/// Bytes that one of them may have.
pub const SCHEMA_FILE_BYTES_MAX: u64 = 16 << 20;
/// How many names a certificate of ours is made for.
pub const CERTIFICATE_NAMES_MAX: usize = 100;
/// More than a file of revocation lists may have, in bytes.
pub const REVOCATION_LIST_BYTES_MAX: u64 = 64 << 20;
/// How much of what was done with a data folder is kept.
pub const HISTORY_LINES_MAX: usize = 1_000;
/// That, in bytes.
pub const HISTORY_BYTES_MAX: usize = 512 << 10;
/// How much of a file's name, and of what was wrong.
pub const HISTORY_TEXT_CHARS_MAX: usize = 1_000;
/// From which age on an export of everything, and a check, are said to be old.
pub const EXPORT_OLD: Duration = Duration::from_secs(7 * 86_400);
/// See [`EXPORT_OLD`].
pub const CHECK_OLD: Duration = Duration::from_secs(30 * 86_400);
