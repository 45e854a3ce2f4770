//! Bounds on what the module keeps, with their units.

/// Sessions in one piece of their table.
pub const SEGMENT: usize = 64;
/// Pieces of a table.
pub const SEGMENTS: usize = 1024;
/// Most secrets that a process has derived and not forgotten.
pub const SECRETS_MAX: usize = 64 << 10;
/// Longest message that is kept to its end, in bytes: of mechanisms that do not hash it here.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Most configurations that one process gives the module, one after the other.
pub const CONFIGURATIONS_MAX: u64 = 1024;
