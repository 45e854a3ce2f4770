//! Every bound of this room, named, with its unit.

/// Largest single data buffer a request may carry, in bytes.
pub const REQUEST_BYTES_MAX: usize = 1 << 30;
/// Largest secret a key derivation may return, in bytes.
pub const DERIVED_BYTES_MAX: usize = 1024;
/// Longest password a derivation takes, in bytes; longer ones only cost time.
pub const PASSWORD_BYTES_MAX: usize = 4096;
/// Longest salt a derivation takes, in bytes.
pub const SALT_BYTES_MAX: usize = 1024;
/// Most PBKDF2 iterations: about two seconds of one core.
pub const PBKDF2_ITERATIONS_MAX: u32 = 20_000_000;
/// Most Argon2 memory, in KiB: 1 GiB.
pub const ARGON2_MEMORY_KIB_MAX: u32 = 1 << 20;
/// Most Argon2 passes over its memory.
pub const ARGON2_PASSES_MAX: u32 = 64;
/// Most Argon2 lanes.
pub const ARGON2_LANES_MAX: u32 = 64;
/// Fewest and most SHA-crypt rounds; the upper one is a hundredth of what the format allows.
pub const SHA_CRYPT_ROUNDS_MIN: u32 = 1_000;
/// See [`SHA_CRYPT_ROUNDS_MIN`].
pub const SHA_CRYPT_ROUNDS_MAX: u32 = 9_999_999;
/// Most drivers one engine holds.
pub const DRIVERS_MAX: usize = 16;
