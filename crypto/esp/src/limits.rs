//! Every bound of this crate, named, with its unit.

use std::ops::RangeInclusive;

/// Most packets of a batch.
pub const BATCH_PACKETS_MAX: usize = 256;
/// Longest ESP packet, in bytes: the most that one UDP datagram over IPv4 takes.
pub const SEALED_BYTES_MAX: usize = 65_507;
/// Widths that a window may have, in packets.
pub const WINDOW_PACKETS: RangeInclusive<u32> = 32..=8192;
/// The lowest SPI that may be used (RFC 4303 § 2.1).
pub const SPI_MIN: u32 = 256;
/// Most extension headers of an IPv6 packet that are looked behind.
pub const EXTENSION_HEADERS_MAX: usize = 16;
/// Largest buffer that is kept from one batch to the next, in bytes.
pub const KEPT_BYTES_MAX: usize = 16 << 10;
/// The smallest MTU of a link with IPv6, in bytes (RFC 8200 § 5).
pub const IPV6_MTU_MIN: u32 = 1280;
