//! The cost of a new password value.

use keyway_engine::Cost;

/// The cost of making a new value, and of checking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argon2Cost {
    /// Memory, in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl Default for Argon2Cost {
    /// 19 MiB, two passes, one lane: OWASP's first choice, about 20 ms of one core.
    fn default() -> Self {
        Argon2Cost { memory_kib: 19 << 10, passes: 2, lanes: 1 }
    }
}

impl From<Argon2Cost> for Cost {
    fn from(cost: Argon2Cost) -> Self {
        let Argon2Cost { memory_kib, passes, lanes } = cost;
        Cost::Argon2 { memory_kib, passes, lanes }
    }
}
