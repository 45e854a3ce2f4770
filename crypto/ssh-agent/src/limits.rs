//! Every bound of an agent, named, with its unit.

use std::time::Duration;

/// Longest message, in bytes without its length: OpenSSH's agent has this one too.
pub const MESSAGE_BYTES_MAX: usize = 256 << 10;
/// Most keys that an answer lists: OpenSSH's clients take no more.
pub const KEYS_MAX: usize = 2_048;
/// Most connections at a time: sshd has one for each of its sessions.
pub const CONNECTIONS_MAX: usize = 256;
/// The stack of a connection's thread, in bytes.
pub const STACK_BYTES: usize = 512 << 10;
/// How long a message may take from its first byte to its last, and an answer to be taken. Between two messages a
/// connection may be idle for ever, as sshd's is.
pub const MESSAGE_TIME: Duration = Duration::from_secs(10);
/// The pause before the agent accepts again where the system has no room for another connection.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
