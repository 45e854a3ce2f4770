//! The bounds of the page in memory, in count and in time.

use std::time::Duration;

/// Servers that one page watches.
pub const HOSTS_MAX: usize = 16;
/// How often a server is looked at.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks at one server that are kept: ten minutes of them.
pub const POINTS_MAX: usize = 600;
/// Names that one look keeps a number of.
pub const NAMES_MAX: usize = 512;
/// Names that one answer has.
pub const ANSWER_NAMES_MAX: usize = 20_000;

/// Connections of browsers that are open at a time. One more takes the place of the oldest without a
/// session, or waits.
pub const CONNECTIONS_MAX: usize = 64;
/// A request's line and header, in bytes.
pub const HEADER_BYTES_MAX: usize = 16 << 10;
/// A request's body, in bytes.
pub const BODY_BYTES_MAX: usize = 16 << 10;
/// How long a TLS handshake may take.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long a request's header may take to come in, and a connection be idle.
pub const HEADER_WAIT: Duration = Duration::from_secs(20);
/// How long a request may take, its body's coming in and its answer's making.
pub const REQUEST_MAX: Duration = Duration::from_secs(30);
/// How long a connection may be used; browsers open another one.
pub const CONNECTION_MAX: Duration = Duration::from_secs(600);
/// How long an end waits for what is under way.
pub const CLOSE_MAX: Duration = Duration::from_secs(3);

/// Browsers that are let in at a time; the one that has not been seen for longest makes room.
pub const SESSIONS_MAX: usize = 32;
/// How long one stays let in.
pub const SESSION_MAX: Duration = Duration::from_secs(12 * 3600);
/// How long one stays let in that asks for nothing.
pub const SESSION_IDLE_MAX: Duration = Duration::from_secs(3600);
/// Logins that the directory is asked about at a time. Others hear that they should try again.
pub const LOGINS_MAX: usize = 4;

/// Servers that are raced at a time.
pub const LANES_MAX: usize = 2;
/// Seconds of a run that are kept for its graph; the first ones go.
pub const RUN_SECONDS_MAX: usize = 1_200;
/// The longest run that the page may start.
pub const RUN_MAX: Duration = Duration::from_secs(24 * 3600);
/// The highest rate that the page may ask for, in sequences a second.
pub const RATE_MAX: f64 = 1e6;
/// Connections that the page may ask for.
pub const RUN_CONNECTIONS_MAX: u64 = 1_000;
/// Operations in flight on each.
pub const IN_FLIGHT_MAX: u64 = 1_000;
/// A text that the page may give a run, in bytes.
pub const TEXT_BYTES_MAX: usize = 1_000;

/// How many of the last imports, exports and checks a page shows.
pub const BACKUPS_SHOWN_MAX: usize = 200;
