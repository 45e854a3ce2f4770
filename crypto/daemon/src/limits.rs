//! Every bound of this crate, named, with its unit.

use std::time::Duration;

/// Most clients at a time.
pub const CLIENTS_MAX: usize = 1024;
/// Most connections that have not said who they are. Others are not accepted meanwhile.
pub const STRANGERS_MAX: usize = 64;
/// How long a connection may take to say who it is.
pub const HELLO: Duration = Duration::from_secs(5);
/// Requests of the fast class that a pump hands to the engine at a time.
pub const BATCH_MAX: usize = 64;
/// Most requests that a pump has taken and not answered: those of the slow class, mostly.
pub const PUMP_DEPTH: usize = 8192;
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
