//! Bounds on what a program can have kept, with their units.

/// Most sessions of a device that was opened.
pub const SESSIONS_MAX: usize = 4096;
/// Longest text of a request, and longest message of several, in bytes: what cryptod takes in one request.
pub const TEXT_BYTES_MAX: usize = 64 << 20;
/// Longest key of a cipher, in bytes, as cryptodev-linux has it.
pub const CIPHER_KEY_BYTES_MAX: usize = 64;
/// Longest key of a MAC, in bytes, as cryptodev-linux has it.
pub const MAC_KEY_BYTES_MAX: usize = 512;
/// Longest data of a request that are only authenticated, in bytes: cryptodev-linux takes a page.
pub const AUTHENTICATED_BYTES_MAX: usize = 4096;
