//! Every bound of this crate, named, with its unit.

use std::time::Duration;

/// Most clients at a time.
pub const CLIENTS_MAX: usize = 1024;
/// Most connections that have not said who they are. Others are not accepted meanwhile.
pub const STRANGERS_MAX: usize = 64;
/// How long a connection may take to say who it is.
pub const HELLO: Duration = Duration::from_secs(5);
/// Most threads that close what clients have a hand in.
pub const CLOSERS_MAX: usize = 64;
/// Most of these that one user's files keep waiting.
pub const CLOSERS_USER_MAX: usize = 4;
/// How long one of them waits for more to close before it ends.
pub const CLOSER_IDLE: Duration = Duration::from_secs(10);
/// Most connections that wait to be closed; past that nobody is let in.
pub const CLOSING_MAX: usize = 256;
/// How long a pump may take to finish what it has taken, but for slow requests, and another daemon to take
/// all that is handed over.
pub const FREEZE: Duration = Duration::from_secs(10);
/// How long the helper that looks at clients' processes may take for one; it takes microseconds.
pub const WITNESS: Duration = Duration::from_secs(1);
/// How long another daemon may give no sign of life while clients wait for it.
pub const SUCCESSOR_SILENCE: Duration = Duration::from_secs(2);
/// How often it gives one.
pub const ALIVE_EVERY: Duration = Duration::from_millis(100);
/// How long it asks for what cannot be handed over yet, and how often: keys are being changed.
pub const TAKE_OVER_WAIT: Duration = Duration::from_secs(60);
/// See [`TAKE_OVER_WAIT`].
pub const TAKE_OVER_AGAIN: Duration = Duration::from_millis(50);
/// Requests of the fast class that a pump hands to the engine at a time.
pub const BATCH_MAX: usize = 64;
/// Most requests that a pump has taken and not answered: those of the slow class, mostly.
pub const PUMP_DEPTH: usize = 8192;
/// How many times the time of others a client gets; all get the same.
pub const CLIENT_WEIGHT: u32 = 1;
/// What a client of weight 1 may have done for each turn that others wait, in nanoseconds by
/// [`cost`](crate::fair::cost).
pub const QUANTUM_NS: u32 = 8_000;
/// Bytes that a task's buffers may keep when it is done; longer ones are freed.
pub const SPARE_BYTES_MAX: usize = 64 << 10;
/// Tasks that a session keeps for its next requests.
pub const SPARE_TASKS_MAX: usize = 64;
/// Longest name that a client gives itself, in bytes.
pub const CLIENT_NAME_BYTES_MAX: usize = 64;
/// Clients that one message about them tells of.
pub const STATUS_CLIENTS_MAX: usize = 128;

/// What one client may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Queue pairs.
    pub queues: usize,
    /// Entries of each ring of a pair; a power of two.
    pub queue_entries: u32,
    /// Sessions.
    pub sessions: usize,
    /// Regions.
    pub regions: usize,
    /// Bytes of all its regions.
    pub region_bytes: usize,
    /// Bytes of one request.
    pub request_bytes: usize,
    /// Bytes of the requests that were taken and not answered.
    pub bytes_in_flight: usize,
    /// Slow requests that were taken and not answered.
    pub slow_in_flight: usize,
    /// Doorbells a second. Who rings more often waits for the next second.
    pub doorbells: u32,
}

impl Default for ClientLimits {
    fn default() -> Self {
        ClientLimits {
            queues: 64,
            queue_entries: 1024,
            sessions: 16_384,
            regions: 128,
            region_bytes: 512 << 20,
            request_bytes: 64 << 20,
            bytes_in_flight: 256 << 20,
            slow_in_flight: 64,
            doorbells: 100_000,
        }
    }
}

/// Length of a master key, in bytes.
pub const MASTER_KEY_BYTES: usize = 32;
/// What a passphrase costs to turn into a master key, in KiB of memory: 64 MiB, with three passes
/// and four lanes the second choice of RFC 9106 § 4. A few tenths of a second, once a start.
pub const PASSPHRASE_MEMORY_KIB: u32 = 64 << 10;
/// The same, in passes over the memory.
pub const PASSPHRASE_PASSES: u32 = 3;
/// The same, in lanes.
pub const PASSPHRASE_LANES: u32 = 4;
/// Most memory that the header of a store may ask for to take a passphrase, in KiB: 1 GiB.
pub const PASSPHRASE_MEMORY_KIB_MAX: u32 = 1 << 20;
/// Most passes that the header of a store may ask for.
pub const PASSPHRASE_PASSES_MAX: u32 = 16;
/// Most lanes that the header of a store may ask for.
pub const PASSPHRASE_LANES_MAX: u32 = 16;

/// Most keys of one store.
pub const KEYS_MAX: usize = 4_096;
/// Most versions of one key: one a month for twenty years.
pub const VERSIONS_MAX: usize = 256;
/// Most grants of one key.
pub const GRANTS_MAX: usize = 64;
/// Most algorithms of one key: those of RSA, and room for more.
pub const ALGORITHMS_MAX: usize = 16;
/// Longest private key or secret, in bytes. The longest of those that there are is one of RSA with
/// 8,192 bits: about 4,700.
pub const MATERIAL_BYTES_MAX: usize = 16 << 10;
/// Longest text of PEM that holds one, in bytes.
pub const PEM_BYTES_MAX: usize = 64 << 10;
/// Longest path of an executable, in bytes: Linux' `PATH_MAX`.
pub const EXECUTABLE_BYTES_MAX: usize = 4_096;
/// Longest file of a store, in bytes: a key with as much of everything as it may have.
pub const FILE_BYTES_MAX: usize = 8 << 20;
/// Size of the generated RSA key of one who has no wish, in bits: good beyond 2030 (SP 800-57).
pub const RSA_BITS: u32 = 3_072;

/// Most bytes that are wrapped at a time: 1 MiB.
pub const WRAPPED_BYTES_MAX: usize = 1 << 20;
/// How often usage counts should be saved
/// ([`KeyStore::save_usage`](crate::keys::KeyStore::save_usage)), in seconds. It bounds what a
/// crash forgets.
pub const USAGE_SAVE_S: u64 = 60;
/// Past this length of the audit log, in bytes, refusals are not written any more, so that nobody
/// fills the disk by asking: 64 MiB, about 300,000 lines. What managers do is always written.
pub const AUDIT_REFUSALS_BYTES_MAX: u64 = 64 << 20;
/// Refusals of one user that the audit log tells of one by one; then of one in [`AUDIT_REFUSALS_S`].
pub const AUDIT_REFUSALS: u32 = 32;
/// After how many seconds it tells of another refusal of a user of whom there were many, and how often at most it
/// says how many it has not told of: a third of a megabyte a day.
pub const AUDIT_REFUSALS_S: u64 = 60;
/// Refusals of all users together that it tells of one by one; then of one in [`AUDIT_REFUSALS_ALL_S`].
pub const AUDIT_REFUSALS_ALL: u32 = 512;
/// After how many seconds it tells of another, if there were many of all users: four megabytes a day.
pub const AUDIT_REFUSALS_ALL_S: u64 = 6;
/// Users whose refusals are counted apart.
pub const AUDIT_USERS_MAX: usize = 1_024;
/// Longest sealed blob of a TPM, in bytes.
pub const TPM_BLOB_BYTES_MAX: usize = 4_096;

/// Changes of keys that wait for the one before them.
pub const KEY_CHANGES_WAITING_MAX: usize = 64;
