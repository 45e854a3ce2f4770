//! Every bound of the store, with its unit last in the name.

/// Longest key that LMDB takes, less the entry identifier behind it in an index.
pub const KEY_BYTES_MAX: usize = 511 - 8;

/// A tree component longer than this is stored as its head and a hash.
pub const COMPONENT_BYTES_MAX: usize = 200;

/// The bytes that are kept of a component, or of a posting key, in front of its hash.
pub const COMPONENT_HEAD_BYTES: usize = 160;

/// Length of the hash behind a cut component or key (SHA-256).
pub const HASH_BYTES: usize = 32;

/// Longest name of a row written with `meta_put`.
pub const META_NAME_BYTES_MAX: usize = 256;

/// Largest encoded entry.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// How many levels below the root an entry may lie.
pub const DEPTH_LEVELS_MAX: usize = 256;

/// Read transactions open at one time; one more is refused with `Error::TooManyReaders`.
pub const READERS_MAX: u32 = 2048;

/// Read transactions that are kept to be used again.
pub const IDLE_READS_MAX: usize = 64;

/// Address space asked for the data file; halved for as long as the system refuses it.
pub const MAP_BYTES_DEFAULT: usize = 256 << 30;

/// Address space below which opening is given up.
pub const MAP_BYTES_MIN: usize = 64 << 20;

/// Jobs that may wait for the committer; one more is refused with `Error::Busy`.
pub const QUEUE_JOBS_MAX: usize = 4096;

/// Jobs taken into one commit.
pub const GROUP_JOBS_MAX: usize = 512;

/// Bytes put by a group after which it takes no further job.
pub const GROUP_BYTES_MAX: usize = 32 << 20;

/// As [`GROUP_BYTES_MAX`], where an [`Append`](crate::Append) takes the group first.
pub const APPENDED_BYTES_MAX: usize = 128 << 10;

/// Names of inner entries that a [`crate::Names`] keeps before it starts anew.
pub const NAMES_ENTRIES_MAX: usize = 4096;

/// Gaps in one chunk of a posting list; `posting.rs` says why so few.
pub const CHUNK_BYTES_MAX: usize = 256;

/// Values of a large attribute in one row, with their keys: four rows fit on a page of 4 KiB.
pub const VALUES_BYTES_MAX: usize = 976;

/// Keys that a bulk load puts aside before it sorts and writes them.
pub const DEFERRED_BYTES_MAX: usize = 64 << 20;

/// Room kept on the disk so that entries can be deleted when it is full.
pub const RESERVE_BYTES: u64 = 4 << 20;

/// Pages in the data file up to which opening looks at every one that is in use; of a larger file
/// it looks at all but the leaves.
pub const LOOK_PAGES_MAX: u64 = 1 << 18;

/// How often a snapshot is begun anew because a commit came between its steps.
pub const SNAPSHOT_TRIES_MAX: u32 = 1_000;
