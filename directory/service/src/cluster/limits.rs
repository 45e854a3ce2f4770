//! Limits of what members do for each other.

use std::time::Duration;

/// How long the first request may take, and one after another.
pub const REQUEST_WAIT: Duration = Duration::from_secs(10);
/// How long an answer may take to be taken.
pub const SEND_WAIT: Duration = Duration::from_secs(10);
/// How long a connection to a member may take to be made, and its answer.
pub const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How long a member that is asked how it is, or told who writes, may take for it all: one that hangs holds up no other.
pub const TOLD_WAIT: Duration = Duration::from_secs(3);
/// How often a member is asked again whether this one may write that has promised it to another.
pub const PREPARE_AGAIN_EVERY: Duration = Duration::from_millis(100);
/// How long a peer that is waited for may be silent: the other end has to look at its disk, perhaps.
pub const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// How long a follower may acknowledge nothing: it answers each heartbeat, unless its disk is slow.
pub const FOLLOWER_WAIT: Duration = Duration::from_secs(60);
/// How long a writer that stops waits for its followers to have all that it has, and how often it looks.
pub const FOLLOWED_WAIT: Duration = Duration::from_secs(2);
/// See [`FOLLOWED_WAIT`].
pub const FOLLOWED_EVERY: Duration = Duration::from_millis(5);
/// Requests of one connection.
pub const REQUESTS_MAX: usize = 64;
/// Bases that are sent at one time: each keeps a state of the store.
pub const BASES_MAX: usize = 2;
/// Octets of a base that are sent at once.
pub const BASE_PIECE_BYTES: usize = 1 << 20;
/// How long a joiner may take for such a piece, so that it cannot keep a state of the store for ever.
pub const BASE_PIECE_WAIT: Duration = Duration::from_secs(30);
/// How long a joiner may take to bring a base to its disk, when all of it is sent.
pub const KEPT_WAIT: Duration = Duration::from_secs(600);
/// How long a writer is waited for that has just started, and how often it is looked at.
pub const WRITER_WAIT: Duration = Duration::from_secs(30);
/// See [`WRITER_WAIT`].
pub const WRITER_LOOK_EVERY: Duration = Duration::from_millis(500);
/// Octets of all files of a base beside the store.
pub const BASE_FILES_BYTES_MAX: u64 = 64 << 20;
/// Octets of the store of a base that is taken.
pub const BASE_STORE_BYTES_MAX: u64 = 1 << 44;
/// How long a join takes at least whose token is wrong; others wait meanwhile.
pub const WRONG_TOKEN_PAUSE: Duration = Duration::from_millis(250);
/// Joins that wait for each other.
pub const JOINS_WAITING_MAX: usize = 16;
