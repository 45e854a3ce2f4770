//! Limits on the process's use of the system.

use std::time::Duration;

/// How often a terminal is looked at, and drawn again if something came.
pub const TUI_LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long a decoder that was asked to end may take, before that is not waited for.
pub const DECODE_END_WAIT: Duration = Duration::from_secs(2);

/// Bytes that `keyway key` has signed, encrypted or authenticated at a time. The daemon bounds a request too.
pub const KEY_INPUT_BYTES_MAX: usize = 16 << 20;
