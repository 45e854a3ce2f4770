//! How much is taken from a server and from a collector of metrics.

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
