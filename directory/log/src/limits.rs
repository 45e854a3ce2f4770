//! Limits of the logs' use of the system.

use std::time::Duration;

/// Lines of the logs that wait to be written, all together, in bytes.
pub const LOG_QUEUE_BYTES_MAX: usize = 4 << 20;
/// How many bytes of them are written without waiting for more: as many as stay in a processor's cache.
pub const LOG_BATCH_BYTES_MAX: usize = 128 << 10;
/// One value in a line of a log, in bytes; the rest of it is left out.
pub const LOG_TEXT_BYTES_MAX: usize = 1_024;
/// How long a line of the access log may wait for others to be written with.
pub const LOG_GATHER_MAX: Duration = Duration::from_millis(50);
/// How much at the end of the audit log is looked at for lines that a cut of power may have taken, in bytes: more
/// than those of the changes that the store keeps lines of.
pub const LOG_LOOK_BACK_BYTES: u64 = 64 << 20;
/// How often the access log says how many lines were left out of it.
pub const LOG_LEFT_OUT_SAY_EVERY: Duration = Duration::from_secs(60);
/// Most operations that one line of the access log may stand for.
pub const LOG_ONE_IN_MAX: u32 = 1_000_000;
/// How long an end or a reload waits for lines to be written.
pub const LOG_FLUSH_MAX: Duration = Duration::from_secs(5);
/// Room that is kept for the error log when the disk is full, in bytes: some hundred lines.
pub const LOG_RESERVE_BYTES: u64 = 64 << 10;
/// Smallest size at which a log's file is put aside, in bytes.
pub const LOG_FILE_BYTES_MIN: u64 = 4 << 10;
/// Most files that are kept of each log.
pub const LOG_FILES_KEPT_MAX: u32 = 1_000;
/// Longest line that is read out of a log, in bytes. Those that are written are far shorter.
pub const LOG_LINE_BYTES_MAX: u64 = 1 << 20;
/// How many groups of lines a summary of the logs holds.
pub const LOG_GROUPS_MAX: usize = 100_000;
