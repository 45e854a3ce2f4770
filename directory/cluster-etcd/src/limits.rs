//! Bounds on all that is sent to etcd, taken from it and waited for.

use std::time::Duration;

/// The largest group of changes that the committer should put into one row.
pub const GROUP_BYTES_MAX: usize = 512 * 1024;
/// The largest row: etcd takes requests of 1.5 MiB unless it is told otherwise, and a request has keys beside the row.
pub const ROW_BYTES_MAX: usize = 1536 * 1024 - 4096;
/// Endpoints that may be named.
pub const ENDPOINTS_MAX: usize = 16;
/// Bytes of a member's row.
pub const MEMBER_BYTES_MAX: usize = 4096;
/// Members that are listed.
pub const MEMBERS_MAX: usize = 256;

/// Bytes of an answer.
pub(crate) const ANSWER_BYTES_MAX: usize = 24 * 1024 * 1024;
/// Bytes of one message of a watch: etcd cuts longer ones into fragments, but for a single row.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Characters of etcd's words that become part of an error.
pub(crate) const WORDS_CHARS_MAX: usize = 200;
/// Bytes of the head of an answer.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Connections to one endpoint that are kept for the next call.
pub(crate) const IDLE_CONNECTIONS_MAX: usize = 4;
/// Rows that are asked for at once, at first and where rows are large: eight of the largest fit into an answer.
pub(crate) const ROWS_MIN: usize = 8;
/// Rows that are asked for at once where rows are small.
pub(crate) const ROWS_MAX: usize = 512;
/// Bytes of rows that one question should bring.
pub(crate) const ROWS_BYTES_AIM: usize = 4 * 1024 * 1024;

/// The shortest and longest lease. etcd makes a shorter one longer: its own least is one and a half times its election
/// time-out, 2 s by default.
pub(crate) const LEASE_S: std::ops::RangeInclusive<u64> = 2..=600;
/// Before the next try of a call, where every endpoint has failed.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);
