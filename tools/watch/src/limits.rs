//! How much is taken from a server and from a collector of metrics, and how long either is waited for.

use std::time::Duration;

/// The longest message of a server, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// All messages that answer one request, in bytes.
pub const ANSWER_BYTES_MAX: usize = 256 << 20;
/// How much of a connection is read at a time, in bytes.
pub const READ_BYTES: usize = 64 << 10;

/// How long a push of metrics may take, from the connection to the collector's answer.
pub const OTLP_PUSH_MAX: Duration = Duration::from_secs(10);
/// For how long a collector may ask to be left alone.
pub const OTLP_RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);
/// How much of a collector's answer is read, in bytes.
pub const OTLP_ANSWER_BYTES_MAX: usize = 64 << 10;
/// How much of a collector's reason is repeated, in characters.
pub const OTLP_REASON_CHARS_MAX: usize = 200;

/// Looks that pass before a server of this machine that refused a login is asked for lists again.
pub const LISTS_AGAIN: u32 = 60;
/// How long is waited for the page of a server that is started again.
pub const PAGE_AGAIN_MAX: Duration = Duration::from_secs(10);
/// How often that page is looked for.
pub const PAGE_AGAIN_LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a connection to the server of a data folder may take.
pub const OWN_CONNECT_WAIT: Duration = Duration::from_secs(5);

/// How long that server may take to answer: a change is answered when it is on the disk, and others may come before it.
pub const OWN_ANSWER_WAIT: Duration = Duration::from_secs(60);
