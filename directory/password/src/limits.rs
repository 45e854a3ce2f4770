//! Bounds on what a stored password value may cost us to check, with their units.
//!
//! A stored value names its own cost, and its writer chose that cost. A value beyond
//! these bounds is refused when it is written and matches nothing when it is found. None of them
//! lies beyond the engine's own.

use keyway_engine::limits as engine;

/// Longest password taken, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Longest stored value looked at, in bytes.
pub const STORED_BYTES_MAX: usize = 2048;
/// Longest name of a scheme that is told, in bytes.
pub const SCHEME_NAME_BYTES_MAX: usize = 32;
/// Shortest digest or derived key that counts as one, in bytes.
pub const DIGEST_BYTES_MIN: usize = 16;
/// Most values of one entry that one bind looks at.
pub const STORED_VALUES_MAX: usize = 8;
/// Longest derived key of a stored value, in bytes.
pub const DERIVED_BYTES_MAX: usize = engine::DERIVED_BYTES_MAX;
/// Longest salt of a stored value, in bytes.
pub const SALT_BYTES_MAX: usize = engine::SALT_BYTES_MAX;
/// Most PBKDF2 iterations of a stored value: about two seconds of one core.
pub const PBKDF2_ITERATIONS_MAX: u32 = 5_000_000;
/// Most Argon2 memory of a stored value, in KiB: 256 MiB.
pub const ARGON2_MEMORY_KIB_MAX: u32 = 256 << 10;
/// Most Argon2 passes of a stored value.
pub const ARGON2_PASSES_MAX: u32 = engine::ARGON2_PASSES_MAX;
/// Shortest Argon2 salt, in bytes, as in the reference implementation.
pub const ARGON2_SALT_BYTES_MIN: usize = 8;
/// Most Argon2 lanes of a stored value.
pub const ARGON2_LANES_MAX: u32 = 16;
/// Most Argon2 memory times passes of a stored value, in KiB: about two seconds of one core.
pub const ARGON2_WORK_KIB_MAX: u64 = 2 << 20;
/// Most SHA-crypt rounds of a stored value.
pub const SHA_CRYPT_ROUNDS_MAX: u32 = 1_000_000;
/// Fewest SHA-crypt rounds; a value that asks for fewer gets these.
pub const SHA_CRYPT_ROUNDS_MIN: u32 = engine::SHA_CRYPT_ROUNDS_MIN;
/// SHA-crypt rounds of a value that names none.
pub const SHA_CRYPT_ROUNDS_DEFAULT: u32 = 5_000;
/// Most SHA-crypt rounds times password bytes: each round hashes the password.
pub const SHA_CRYPT_WORK_BYTES_MAX: u64 = 64 << 20;
/// Fewest bcrypt rounds of a stored value, as a binary logarithm.
pub const BCRYPT_LOG_ROUNDS_MIN: u32 = engine::BCRYPT_LOG_ROUNDS_MIN;
/// Most bcrypt rounds of a stored value, as a binary logarithm: about two seconds of one core.
pub const BCRYPT_LOG_ROUNDS_MAX: u32 = 15;
/// Bytes of a password that bcrypt looks at.
pub const BCRYPT_PASSWORD_BYTES: usize = 72;
/// Salt of a value that we make, in bytes.
pub const SALT_BYTES: usize = 16;
/// Derived key of a value that we make, in bytes.
pub const DERIVED_BYTES: usize = 32;
/// Most sessions for verifying and making that are kept open: one for each algorithm and pepper.
pub const SESSIONS_MAX: usize = 32;
/// Most attempts that wait for their turn, unless the settings say otherwise.
pub const CHECKS_WAITING_MAX: usize = 4_096;
/// Length of a generated password, in characters of five bits each.
pub const GENERATED_CHARACTERS: usize = 24;

const _: () = assert!(PASSWORD_BYTES_MAX <= engine::PASSWORD_BYTES_MAX);
const _: () = assert!(PBKDF2_ITERATIONS_MAX <= engine::PBKDF2_ITERATIONS_MAX);
const _: () = assert!(ARGON2_MEMORY_KIB_MAX <= engine::ARGON2_MEMORY_KIB_MAX);
const _: () = assert!(ARGON2_LANES_MAX <= engine::ARGON2_LANES_MAX);
const _: () = assert!(BCRYPT_LOG_ROUNDS_MAX <= engine::BCRYPT_LOG_ROUNDS_MAX);
const _: () = assert!(SHA_CRYPT_ROUNDS_MAX <= engine::SHA_CRYPT_ROUNDS_MAX);
