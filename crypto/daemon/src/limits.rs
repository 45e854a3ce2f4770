//! Every bound of this crate, named, with its unit.

use std::time::Duration;

/// Most connections that have not said who they are. For another one, one that came earlier gives way.
pub const STRANGERS_MAX: usize = 64;
/// Connections that are let in before those who are there have their turn.
pub const ACCEPTED_AT_ONCE: usize = 32;
/// Connections that only root and those who look after the keys may have.
pub const ADMINISTRATORS_CONNECTIONS: usize = 16;
/// Open files that only they may have.
pub const ADMINISTRATORS_FILES: usize = 64;
/// Files of the daemon that a queue pair takes: its memory, and the doorbell twice.
pub const FILES_OF_QUEUE: usize = 3;
/// Files that the daemon has open beside its clients': keys, log, counters, buffers of large requests, connections
/// that are being closed, and room to spare.
pub const FILES_BESIDE_CLIENTS: usize = 80 + CLOSING_MAX;
/// How long a connection may take to say who it is.
pub const HELLO: Duration = Duration::from_secs(5);
/// Most threads that close what clients have a hand in.
pub const CLOSERS_MAX: usize = 64;
/// Most of these that one user's files keep waiting.
pub const CLOSERS_USER_MAX: usize = 4;
/// How long one of them waits for more to close before it ends.
pub const CLOSER_IDLE: Duration = Duration::from_secs(10);
/// Most connections that wait to be closed; past that no client is let in.
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
/// Most requests that a pump has handed to the engine and not answered.
pub const PUMP_DEPTH: usize = 8192;
/// The work of a pump in one turn, for all clients together, in nanoseconds by
/// [`cost`](crate::fair::cost); one request may exceed it.
pub const TURN_NS_MAX: u32 = 1_000_000;
/// Most that one request may cost a pump, in nanoseconds. The slow class does a request that costs
/// more.
pub const REQUEST_NS_MAX: u32 = 200_000;
/// Most bytes of one request that a pump copies in and out. The slow class does a request that has
/// more.
pub const REQUEST_COPIED_BYTES_MAX: usize = 256 << 10;
/// From so many bytes on a buffer of the slow class is mapped for its request and unmapped after it.
pub const ROOM_BYTES_MIN: usize = 64 << 10;
/// A slow request that is expected to take no more than this, in nanoseconds, is short: private keys,
/// and what is large but quick.
pub const SLOW_SHORT_NS_MAX: u64 = 20_000_000;
/// Slow requests that wait, of all clients together.
pub const SLOW_WAITING_MAX: usize = 16_384;
/// Slow requests that wait, of all clients of one user.
pub const SLOW_WAITING_OF_USER_MAX: usize = 2_048;
/// Most times the time of others that a client may be given.
pub const WEIGHT_MAX: u32 = 100;
/// The work that a client of weight 1 may have done for each turn that others wait, in nanoseconds
/// by [`cost`](crate::fair::cost).
pub const QUANTUM_NS: u32 = 8_000;
/// Bytes that a task may have, with its buffers, when it is done; larger ones are freed.
pub const SPARE_BYTES_MAX: usize = 64 << 10;
/// Bytes of all tasks, with their buffers, that a client's sessions keep for its next requests.
pub const SPARE_BYTES_OF_CLIENT_MAX: usize = 1 << 20;
/// Tasks that a session keeps for its next requests.
pub const SPARE_TASKS_MAX: usize = 64;
/// Longest name that a client gives itself, in bytes.
pub const CLIENT_NAME_BYTES_MAX: usize = 64;
/// Clients that one message about them tells of.
pub const STATUS_CLIENTS_MAX: usize = 128;

/// The limits of one client.
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
    /// How long a slow request may take by what is [expected](crate::fair::slow_cost) of it.
    pub slow_cost_max: Duration,
    /// How much memory a slow request may ask for to be worked on (Argon2, scrypt), in bytes.
    pub slow_memory_bytes: u64,
    /// Doorbells a second. A client that rings more often waits for the next second.
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
            slow_cost_max: Duration::from_secs(5),
            slow_memory_bytes: 256 << 20,
            doorbells: 100_000,
        }
    }
}

/// Files that one client may take: all its queue pairs and regions, and its connection.
const FILES_OF_CLIENT: usize = 64 * FILES_OF_QUEUE + 128 + 1;

/// Limits of all clients together, and of all clients of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedLimits {
    /// Connections.
    pub clients: usize,
    /// Connections of one user. Root may have all.
    pub clients_of_user: usize,
    /// Files that the daemon has open for clients.
    pub files: usize,
    /// Files of one user.
    pub files_of_user: usize,
    /// Bytes of all regions. The daemon may have all of them locked.
    pub region_bytes: usize,
    /// Bytes in regions of one user.
    pub region_bytes_of_user: usize,
    /// Sessions. Each takes some kilobytes.
    pub sessions: usize,
    /// Sessions of one user.
    pub sessions_of_user: usize,
}

impl SharedLimits {
    /// Limits for a machine with so much memory, in bytes, on which this process may have so many files open:
    /// half of the memory, and all files.
    pub fn of_machine(memory_bytes: usize, open_files: usize) -> Self {
        // Where there are few, clients have half: connections that are closed seldom wait.
        let files = open_files.saturating_sub(FILES_BESIDE_CLIENTS).max(open_files / 2);
        let clients = 1_024.min(files / 2).max(ADMINISTRATORS_CONNECTIONS + 1);
        Self::shared_out(clients, files, memory_bytes / 2, 65_536)
    }

    /// So much for all, and for one user a quarter of everything, as long as that is enough for one client.
    pub fn shared_out(clients: usize, files: usize, region_bytes: usize, sessions: usize) -> Self {
        let client = ClientLimits::default();
        SharedLimits {
            clients,
            clients_of_user: (clients / 4).max(1),
            files,
            files_of_user: (files / 4).max(FILES_OF_CLIENT.min(files / 2)),
            region_bytes,
            region_bytes_of_user: (region_bytes / 4).max(client.region_bytes.min(region_bytes / 2)),
            sessions,
            sessions_of_user: (sessions / 4).max(1),
        }
    }

    /// Limits for this machine and this process, as they are now.
    pub fn of_this_machine() -> Self {
        let system = rustix::system::sysinfo();
        let unit = (system.mem_unit as usize).max(1);
        let memory = usize::try_from(system.totalram).unwrap_or(usize::MAX).saturating_mul(unit);
        // Without a limit there is no number.
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(1 << 20);
        Self::of_machine(memory, files)
    }
}

/// Length of a master key, in bytes.
pub const MASTER_KEY_BYTES: usize = 32;
/// The cost of turning a passphrase into a master key, in KiB of memory: 64 MiB, with three passes
/// and four lanes the second choice of RFC 9106 § 4. A few tenths of a second, once a start.
pub const PASSPHRASE_MEMORY_KIB: u32 = 64 << 10;
/// That cost, in passes over the memory.
pub const PASSPHRASE_PASSES: u32 = 3;
/// That cost, in lanes.
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
/// Most certificates that are kept with a key.
pub const CERTIFICATES_MAX: usize = 8;
/// Most bytes of all of a key's certificates: they go into one message.
pub const CHAIN_BYTES_MAX: usize = 24 << 10;
/// Longest text of PEM that holds one, in bytes.
pub const PEM_BYTES_MAX: usize = 64 << 10;
/// Longest path of an executable, in bytes: Linux' `PATH_MAX`.
pub const EXECUTABLE_BYTES_MAX: usize = 4_096;
/// Longest file of a store, in bytes: a key with as much of everything as it may have.
pub const FILE_BYTES_MAX: usize = 8 << 20;
/// Size of the generated RSA key of one who has no wish, in bits: good beyond 2030 (SP 800-57).
pub const RSA_BITS: u32 = 3_072;
/// Sizes of RSA keys that are made, in bits.
pub const RSA_SIZES: [u32; 4] = [2_048, 3_072, 4_096, 8_192];

/// Most bytes that are wrapped at a time: 1 MiB.
pub const WRAPPED_BYTES_MAX: usize = 1 << 20;
/// How often usage counts should be saved
/// ([`KeyStore::save_usage`](crate::keys::KeyStore::save_usage)), in seconds. It bounds what a
/// crash forgets.
pub const USAGE_SAVE_S: u64 = 60;
/// Past this length of the audit log, in bytes, refusals are not written any more, and clients change nothing in their
/// name spaces, so that none fills the disk by asking: 64 MiB, about 300,000 lines. Changes by managers are always
/// written.
pub const AUDIT_REFUSALS_BYTES_MAX: u64 = 64 << 20;
/// Refusals of one user that the audit log tells of one by one; then of one in [`AUDIT_REFUSALS_S`].
pub const AUDIT_REFUSALS: u32 = 32;
/// Seconds until the audit log tells of another refusal of a user who has had many. It says no more
/// often how many refusals it has left out: a third of a megabyte a day.
pub const AUDIT_REFUSALS_S: u64 = 60;
/// Refusals of all users together that it tells of one by one; then of one in [`AUDIT_REFUSALS_ALL_S`].
pub const AUDIT_REFUSALS_ALL: u32 = 512;
/// After how many seconds it tells of another, if there were many of all users: four megabytes a day.
pub const AUDIT_REFUSALS_ALL_S: u64 = 6;
/// Users whose refusals are counted apart.
pub const AUDIT_USERS_MAX: usize = 1_024;
/// Longest sealed blob of a TPM, in bytes.
pub const TPM_BLOB_BYTES_MAX: usize = 4_096;

/// Keys that one message tells a client of that may use them: as many as surely go into it.
pub const GRANTED_KEYS_MAX: usize = 16;
/// Most keys in a client's name space.
pub const NAME_SPACE_KEYS_MAX: usize = 256;
/// Changes in name spaces that wait, of one user and of all.
pub const NAME_SPACE_CHANGES_MAX: Waiting = Waiting { of_user: 2, of_all: 8 };
/// Changes of keys that wait for the one before them.
pub const KEY_CHANGES_WAITING_MAX: usize = 64;

/// How many may wait.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Of one user.
    pub of_user: usize,
    /// Of all users.
    pub of_all: usize,
}

/// Bytes of the memory that a virtual machine shares with the daemon, of which the system has only what is used: as much
/// as a client's regions may have, but for few large requests.
pub const MACHINE_BYTES: usize = 256 << 20;
/// Bells of a virtual machine, one for each queue pair: as many as a client may have of these.
pub const MACHINE_BELLS: usize = 64;
/// Files that a virtual machine takes beside its queue pairs: its bells, its memory, and its connections.
pub const FILES_OF_MACHINE: usize = MACHINE_BELLS + 6;
/// Most virtual machines.
pub const MACHINES_MAX: usize = 64;
/// The user that the first virtual machine is, in the place of a number that a process could have.
pub const MACHINE_UID: u32 = 0xffff_ff00;
/// The least time between two looks at the messages of a virtual machine's processes.
pub const MACHINE_PAUSE: Duration = Duration::from_micros(50);
/// How long a virtual machine's hypervisor waits to be let in where the daemon has too many files open.
pub const MACHINE_ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// How often something is said of one virtual machine at most.
pub const MACHINE_SAID: Duration = Duration::from_secs(10);
/// Most bytes of a key that is exported: it goes into one message.
pub const EXPORTED_BYTES_MAX: usize = 31 << 10;
