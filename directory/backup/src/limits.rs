//! Limits of a repository.

use std::time::Duration;

/// Length of the pieces that files are cut into, in bytes; only the last one of a file is shorter.
pub const PIECE_BYTES: usize = 64 << 10;
/// Length of a chunk's name, in bytes.
pub const NAME_BYTES: usize = 32;
/// How many names a chunk that is a list has; only the last list of a file has fewer.
pub const LIST_NAMES: usize = PIECE_BYTES / NAME_BYTES;
/// How many names of a file are in the manifest itself.
pub const INLINE_NAMES_MAX: usize = 16;
/// How many levels of lists lie between a manifest and the pieces of a file. With all of them a file has
/// 8 PiB.
pub const LEVELS_MAX: u8 = 3;
/// Pieces that are read before they are stored together.
pub const BATCH_PIECES: usize = 128;
/// Threads that store or check a batch: more than a machine has cores, since they wait for the disk. A file
/// system has one sync serve all threads that ask for one meanwhile.
pub const THREADS: usize = 32;
/// Most bytes that a manifest may have before it is compressed.
pub const MANIFEST_BYTES_MAX: usize = 64 << 20;
/// Most bytes of the metadata that a backup's maker adds, as JSON.
pub const META_BYTES_MAX: usize = 1 << 20;
/// Most files in one backup.
pub const FILES_MAX: usize = 100_000;
/// Longest path of a file, in bytes.
pub const PATH_BYTES_MAX: usize = 4096;
/// Most bytes of a piece of the feed before it is compressed.
pub const SEGMENT_BYTES_MAX: usize = 64 << 20;
/// More than a header may have, in bytes.
pub const HEADER_BYTES_MAX: usize = 16 << 10;
/// Longest label of a key that another process holds, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;
/// Longest form that such a key may give the repository's secret, in bytes.
pub const HELD_BYTES_MAX: usize = 4096;
/// Argon2id's memory for a passphrase, in KiB, its passes and its lanes (RFC 9106 § 4).
pub const PASSPHRASE_MEMORY_KIB: u32 = 64 << 10;
/// See [`PASSPHRASE_MEMORY_KIB`].
pub const PASSPHRASE_PASSES: u32 = 3;
/// See [`PASSPHRASE_MEMORY_KIB`].
pub const PASSPHRASE_LANES: u32 = 4;
/// The most of each that a header may ask for.
pub const PASSPHRASE_MEMORY_KIB_MAX: u32 = 1 << 20;
/// See [`PASSPHRASE_MEMORY_KIB_MAX`].
pub const PASSPHRASE_PASSES_MAX: u32 = 16;
/// See [`PASSPHRASE_MEMORY_KIB_MAX`].
pub const PASSPHRASE_LANES_MAX: u32 = 16;
/// How long a writer waits for another one: a process that was killed a moment ago has its lock a little longer.
pub const LOCK_WAIT: Duration = Duration::from_millis(300);
/// How long the lock of a process that was killed and is not gone yet is waited for, and how often it is
/// looked at.
pub const LOCK_OF_THE_DEAD_WAIT: Duration = Duration::from_secs(5);
/// See [`LOCK_OF_THE_DEAD_WAIT`].
pub const LOCK_LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a process that stores a piece of the feed waits for another one that does.
pub const SEGMENT_LOCK_WAIT: Duration = Duration::from_secs(10);
/// zstd's level.
pub const ZSTD_LEVEL: i32 = 3;
