//! Bounds on what one peer may take from the others, with their units.

use std::time::Duration;

/// The memory that a connection may hold and how long things may take. The defaults suit a small server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most connections at once. For one more the oldest that has not said who it is makes room,
    /// first those of the address that has the most; then the user with the most; else it is told
    /// so and closed.
    pub connections_max: usize,
    /// Places beyond these: for the administrator, over whichever listener, and for processes of this
    /// machine's administrators. A newcomer finds half of them, to say who it is.
    pub connections_reserved: usize,
    /// Longest request, in bytes. Of the requests of one connection that wait for something
    /// (writes, password checks), those that are held together are no longer than this either.
    pub message_bytes_max: usize,
    /// Longest request of a client that has not bound, in bytes.
    pub message_bytes_before_bind_max: usize,
    /// Most requests of one connection that are being worked on, at least 1; further ones stay
    /// unread.
    pub requests_in_flight_max: usize,
    /// Most answers that are held for a connection that does not read them, in bytes, at least 1.
    /// A search stops here and goes on when there is room, also within a large entry; an entry of less
    /// than 64 KiB may overshoot. Answers to searches that are refused have as much room again.
    pub unread_answer_bytes_max: usize,
    /// Most memory that all requests together take which are still coming in or wait for something,
    /// in bytes. A client that has not bound finds a quarter of it. The first
    /// `UNFINISHED_FREE_BYTES` of each connection (4 KiB) do not count, so that small requests
    /// always go on.
    pub unfinished_bytes_max: usize,
    /// Most password checks that wait for their turn; beyond that the source with the most of them
    /// is told that the server is busy. At least 1.
    pub password_checks_waiting_max: usize,
    /// How long a bound connection may be without traffic: at least this, at most twice this.
    pub idle_max: Duration,
    /// How long one that has not bound may be without traffic, likewise.
    pub idle_before_bind_max: Duration,
    /// How long a TLS handshake may take.
    pub handshake_max: Duration,
    /// How long a shutdown waits for what was accepted.
    pub drain_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 10_000,
            connections_reserved: 32,
            message_bytes_max: 8 << 20,
            message_bytes_before_bind_max: 64 << 10,
            requests_in_flight_max: 64,
            unread_answer_bytes_max: 256 << 10,
            unfinished_bytes_max: 128 << 20,
            password_checks_waiting_max: keyway_password::limits::CHECKS_WAITING_MAX,
            idle_max: Duration::from_secs(3600),
            idle_before_bind_max: Duration::from_secs(300),
            handshake_max: Duration::from_secs(10),
            drain_max: Duration::from_secs(10),
        }
    }
}

/// Requests that are on their way to the server that writes at one time.
pub(crate) const FORWARDED_MAX: usize = 1_024;
/// The answers to one of them that are held, in bytes: of a search that has to be made there.
pub(crate) const FORWARDED_ANSWER_BYTES_MAX: usize = 16 << 20;
/// Addresses of which it is known how far they have written.
pub(crate) const WRITTEN_ADDRESSES_MAX: usize = 4_096;
/// How long the connection of another member of the cluster may be without traffic.
pub(crate) const MEMBER_IDLE_MAX: Duration = Duration::from_secs(24 * 3600);

/// The memory that a connection may hold for unfinished requests without a share of
/// [`Limits::unfinished_bytes_max`], in bytes.
pub(crate) const UNFINISHED_FREE_BYTES: usize = 4 << 10;
/// How long a request that has such a share may take to come in.
pub(crate) const UNFINISHED_MAX: Duration = Duration::from_secs(60);
/// Work that one connection does before others get a turn. A request and a round of reading and
/// writing each count as one.
pub(crate) const TURN_WORK_MAX: usize = 128;
/// Bytes of a request that count as one more piece of work.
pub(crate) const WORK_BYTES: usize = 16 << 10;
/// Longest request that is understood between others, in bytes: bringing values into their normal
/// forms may take a microsecond for each of them.
pub(crate) const REQUEST_BESIDE_OTHERS_BYTES_MAX: usize = 64 << 10;
/// The work that a step of a search counts as if it does not end the search: it may have looked at
/// thousands of entries.
pub(crate) const SEARCH_STEP_WORK: usize = 16;
/// Most bytes of answers one search adds before the connection's next search gets a turn.
pub(crate) const SEARCH_STEP_BYTES: usize = 32 << 10;
/// Size of the buffer that each thread reads into, in bytes.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// Room that an idle connection's buffers keep, in bytes.
pub(crate) const KEPT_BUFFER_BYTES_MAX: usize = 4 << 10;
/// How long a shutdown goes on with a connection that is in the middle of something: of a handshake, of its login, or of
/// requests that came before.
pub(crate) const GRACE_MAX: Duration = Duration::from_secs(1);
/// How long a client that had asked for something has to be quiet before the shutdown says goodbye: it may ask for the next
/// thing as soon as it has an answer, and what it has sent then is lost.
pub(crate) const QUIET: Duration = Duration::from_millis(50);
/// How old a connection is at most that may be in the middle of its login.
pub(crate) const LOGIN_AGE_MAX: Duration = Duration::from_secs(5);
/// How many connections are accepted at most that wait when a listener ends.
pub(crate) const LAST_ACCEPTED_MAX: usize = 4096;
/// Descriptors that a server has beside its connections and that may come after them.
pub(crate) const OTHER_DESCRIPTORS: usize = 512;
/// How long the last answers and a proper close may take.
pub(crate) const CLOSE_MAX: Duration = Duration::from_secs(5);
/// How long what a peer still sends is read and dropped, so that it sees the last answer.
pub(crate) const LINGER_MAX: Duration = Duration::from_secs(1);
/// How much of what a peer still sends is read and dropped, so that it sees the last answer.
pub(crate) const LINGER_BYTES_MAX: usize = 1 << 20;
/// How much is read and dropped besides of a request that is too long: many clients send all of it before they
/// read its answer. In bytes.
pub(crate) const LEFT_BYTES_MAX: usize = 64 << 20;
/// How long that may take.
pub(crate) const LEFT_MAX: Duration = Duration::from_secs(5);
/// Connections that were asked to make room and are not gone yet, at most; meanwhile no other
/// is accepted.
pub(crate) const LEAVING_MAX: usize = 64;
/// How many connections that have asked for something are passed over when one is to make room.
pub(crate) const SECOND_CHANCES_MAX: usize = 32;
/// How often the error log says that connections have to make room.
pub(crate) const CROWD_SAID_EVERY: Duration = Duration::from_secs(60);
/// For how long a peer may read nothing of an entry of which it has a part: at least this, at most twice
/// this.
pub(crate) const ENTRY_STALL_MAX: Duration = Duration::from_secs(10);
/// How long accepting pauses when the system has no more descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Send buffer that the system keeps for each connection, in bytes. For a slow reader we
/// hold this and [`Limits::unread_answer_bytes_max`].
pub(crate) const SEND_BUFFER_BYTES: usize = 256 << 10;
/// Connections that `cn=monitor` shows, each as an entry.
pub(crate) const MONITORED_CONNECTIONS_MAX: usize = 10_000;
/// Requests of one connection that are counted as read and not begun; there may be more.
pub(crate) const QUEUED_COUNTED_MAX: u64 = 1_000;
/// How long an operation must be under way to be shown as slow.
pub(crate) const RUNNING_SHOWN_MIN: Duration = Duration::from_millis(100);
/// Connections of proxies that have not said yet whose they are, of each listener. One more is closed.
pub(crate) const PROXY_HEADERS_WAITING_MAX: usize = 1_024;

/// Operations that are kept as the slowest of a minute, and minutes for which they are kept.
pub const SLOWEST_MAX: usize = 32;

/// See [`SLOWEST_MAX`].
pub const SLOWEST_MINUTES: usize = 5;

/// Operations under way that are shown, the oldest first.
pub const RUNNING_SHOWN_MAX: usize = 256;
