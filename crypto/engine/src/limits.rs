//! Every bound of this crate, named, with its unit.

use std::time::Duration;

/// Largest single data buffer a request may carry, in bytes.
pub const REQUEST_BYTES_MAX: usize = 1 << 30;
/// Largest secret a key derivation may return, in bytes.
pub const DERIVED_BYTES_MAX: usize = 1024;
/// Longest password a derivation takes, in bytes; longer ones only cost time.
pub const PASSWORD_BYTES_MAX: usize = 4096;
/// Longest salt a derivation takes, in bytes.
pub const SALT_BYTES_MAX: usize = 1024;
/// Longest name of an entry whose password is verified, in bytes.
pub const ENTRY_BYTES_MAX: usize = 1024;
/// Shortest pepper that a session of a password algorithm is opened with, in bytes.
pub const PEPPER_BYTES_MIN: usize = 16;
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
/// Fewest and most rounds of bcrypt, as binary logarithms; the upper one is about a minute of one
/// core.
pub const BCRYPT_LOG_ROUNDS_MIN: u32 = 4;
/// See [`BCRYPT_LOG_ROUNDS_MIN`].
pub const BCRYPT_LOG_ROUNDS_MAX: u32 = 20;
/// The salt that bcrypt takes, in bytes: exactly so many.
pub const BCRYPT_SALT_BYTES: usize = 16;
/// Most memory scrypt may take, in bytes: 1 GiB.
pub const SCRYPT_MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Largest scrypt block size `r`.
pub const SCRYPT_R_MAX: u32 = 64;
/// Largest scrypt parallelisation `p`.
pub const SCRYPT_P_MAX: u32 = 64;
/// Most drivers one engine holds at a time.
pub const DRIVERS_MAX: usize = 32;
/// Most steps of a chain.
pub const CHAIN_STEPS_MAX: usize = 4;
/// Shortest tag a chain may cut a MAC to, in bytes (SP 800-107 § 5.3.3 asks for 32 bits at least,
/// IPsec uses 96).
pub const CHAIN_TAG_BYTES_MIN: usize = 4;
/// Most requests one queue may have accepted and not yet handed back.
pub const QUEUE_DEPTH_MAX: usize = 65_536;
/// Sessions of which a queue remembers where their tasks go; a power of two.
pub const ROUTES: usize = 64;
/// How long a waiting queue polls before it sleeps; about what a wake-up costs.
pub const SPIN: Duration = Duration::from_micros(20);
/// How long a queue that is dropped waits for what drivers have begun.
pub const CLOSE: Duration = Duration::from_secs(5);
/// How long an engine that is dropped waits for slow requests that were begun. After that they end by themselves,
/// each with its completion, while the process lives.
pub const SLOW_CLOSE: Duration = Duration::from_millis(500);
/// Most requests that the executor thread has in flight: awaited, and not of the slow class.
pub const EXECUTOR_IN_FLIGHT_MAX: usize = 4_096;
/// How deep the stack is overwritten on which a key was opened or used, in bytes: half as much
/// again as any driver's way with a key takes. Code that is not optimised has larger frames.
pub const STACK_BYTES: usize = if cfg!(debug_assertions) { 96 << 10 } else { 48 << 10 };
/// That depth where drivers are known to stay far above. Handshakes open such keys by the dozen,
/// and to overwrite more would empty the processor's nearest cache each time.
pub const STACK_SHALLOW_BYTES: usize = if cfg!(debug_assertions) { STACK_BYTES } else { 16 << 10 };
/// Longest label of RSAES-OAEP, in bytes.
pub const LABEL_BYTES_MAX: usize = 1024;
/// Longest public key of a signature algorithm, in bytes: ML-DSA-87, in its encoding.
pub const PUBLIC_KEY_BYTES_MAX: usize = 2_600;
/// Longest name of a driver or a client, in bytes.
pub const NAME_BYTES_MAX: usize = 32;
/// Longest name of a key that a driver holds, in bytes.
pub const KEY_NAME_BYTES_MAX: usize = 64;
/// QUIC's packet numbers end before this (RFC 9000 § 12.3).
pub const PACKET_NUMBERS: u64 = 1 << 62;
