//! Every bound of this crate, named, with its unit.

/// Longest plaintext of a record, in bytes (RFC 8446 § 5.1, RFC 5246 § 6.2.1).
pub const FRAGMENT_BYTES_MAX: usize = 1 << 14;
/// Most records sealed under one AES-GCM key before rustls asks for a new one or closes
/// (draft-irtf-cfrg-aead-limits § 5.1.1, records of full size, one chance in 2^60).
pub const GCM_RECORDS_MAX: u64 = 1 << 24;
/// Most QUIC packets sealed under one AES-GCM key (RFC 9001 § 6.6).
pub const GCM_PACKETS_MAX: u64 = 1 << 23;
/// Most QUIC packets that may fail to open under one AES-GCM key before the connection closes (RFC
/// 9001 § 6.6).
pub const GCM_PACKETS_FORGED_MAX: u64 = 1 << 52;
/// With ChaCha20-Poly1305 more QUIC packets than there are packet numbers stay safe (RFC 9001 §
/// 6.6).
pub const CHACHA20_PACKETS_MAX: u64 = u64::MAX;
/// [`GCM_PACKETS_FORGED_MAX`] for ChaCha20-Poly1305.
pub const CHACHA20_PACKETS_FORGED_MAX: u64 = 1 << 36;
/// How long one key seals session tickets, in seconds. It opens them for as long again.
pub const TICKET_KEY_SECONDS: u32 = 6 * 60 * 60;
