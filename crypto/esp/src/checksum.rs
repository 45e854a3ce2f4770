//! The Internet checksum (RFC 1071).

/// The sum of these bytes as words of 16 bits in ones' complement, added to another such sum. Only the last piece of
/// a sum may have an odd number of bytes.
pub(crate) fn sum(bytes: &[u8], before: u16) -> u16 {
    let mut sum = u64::from(before);
    let (words, rest) = bytes.as_chunks();
    for word in words {
        sum += u64::from(u16::from_be_bytes(*word));
    }
    if let [last] = rest {
        sum += u64::from(*last) << 8;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum of bytes in which its own field is zero.
pub(crate) fn checksum(bytes: &[u8], before: u16) -> [u8; 2] {
    (!sum(bytes, before)).to_be_bytes()
}

/// The checksum after one word of what it covers has changed (RFC 1624).
pub(crate) fn updated(checksum: [u8; 2], old: [u8; 2], new: [u8; 2]) -> [u8; 2] {
    let word = |bytes: [u8; 2]| u16::from_be_bytes(bytes);
    let parts = [!word(checksum), !word(old), word(new)].map(u16::to_be_bytes);
    (!sum(parts.as_flattened(), 0)).to_be_bytes()
}
