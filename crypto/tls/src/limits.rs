//! Every bound of this room, named, with its unit.

/// Longest plaintext of a record, in bytes (RFC 8446 § 5.1, RFC 5246 § 6.2.1).
pub const FRAGMENT_BYTES_MAX: usize = 1 << 14;
/// Most records sealed under one AES-GCM key before rustls asks for a new one or closes
/// (draft-irtf-cfrg-aead-limits § 5.1.1, records of full size, one chance in 2^60).
pub const GCM_RECORDS_MAX: u64 = 1 << 24;
/// How long one key seals session tickets, in seconds. It opens them for as long again.
pub const TICKET_KEY_SECONDS: u32 = 6 * 60 * 60;
