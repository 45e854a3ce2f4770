//! The bounds of the state that is kept of accounts, with units.

/// Earlier passwords that are kept and compared: each takes as long to compare as a bind.
pub const HISTORY_MAX: usize = 24;
/// Failed binds that a policy can ask for before it locks.
pub const FAILURES_MAX: usize = 1_000;
/// Longest time in a policy, in seconds: some 68 years.
pub const SECONDS_MAX: u64 = i32::MAX as u64;
/// Policies that are remembered between binds.
pub const POLICIES_KEPT_MAX: usize = 64;
/// Accounts of which something is known that is not on the disk yet; of more, nothing is noted.
pub const PENDING_ACCOUNTS_MAX: usize = 4_096;
/// How exact pwdLastSuccess is, in seconds: a day's binds make a few writes, not thousands.
pub const LAST_SUCCESS_S: u64 = 3_600;
/// Fewest different characters of a password whose quality is checked.
pub const DIFFERENT_CHARACTERS_MIN: usize = 4;
/// Fewest characters of a name that may not be in its owner's password.
pub const NAME_CHARACTERS_MIN: usize = 4;
