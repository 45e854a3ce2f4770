//! The Internet checksum (RFC 1071).

/// The one's complement sum of the bytes as 16-bit words, a last odd byte padded with zero.
///
/// The words are added as they lie in memory: the order of the bytes changes the sum's in the same way.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let mut lanes = [0_u64; 8];
    let (chunks, rest) = bytes.as_chunks::<32>();
    for chunk in chunks {
        add(&mut lanes, chunk);
    }
    // A lane grows by less than 2^32 for each 32 bytes: no sum of a packet's comes near 2^64.
    let mut total: u64 = lanes.iter().sum();
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        total += u64::from(u32::from_ne_bytes(*word));
    }
    let mut last = [0; 4];
    for (padded, byte) in last.iter_mut().zip(rest) {
        *padded = *byte;
    }
    total += u64::from(u32::from_ne_bytes(last));
    // Below 2^33, 2^18, and then 2^16 and what it carries.
    total = (total & 0xffff_ffff) + (total >> 32);
    total = (total & 0xffff) + (total >> 16 & 0xffff) + (total >> 32);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    u16::from_be(total as u16)
}

fn add(lanes: &mut [u64; 8], chunk: &[u8; 32]) {
    for (lane, word) in lanes.iter_mut().zip(chunk.as_chunks::<4>().0) {
        *lane += u64::from(u32::from_ne_bytes(*word));
    }
}

/// The one's complement sum of the words.
pub(crate) fn fold(words: &[u16]) -> u16 {
    let mut total: u32 = words.iter().map(|&word| u32::from(word)).sum();
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// What the field has for this sum. Zero would say in UDP that there is none; its other form is as good everywhere.
pub(crate) fn field(sum: u16) -> u16 {
    match !sum {
        0 => 0xffff,
        field => field,
    }
}

/// The sum of the pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1): both addresses, protocol and length of
/// TCP or UDP with its header.
pub(crate) fn pseudo_header(addresses: &[u8], protocol: u8, bytes: usize) -> u16 {
    fold(&[sum(addresses), u16::from(protocol), (bytes >> 16) as u16, bytes as u16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_the_sum_word_by_word(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut total = 0_u32;
            for pair in bytes.chunks(2) {
                total += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
                total = (total & 0xffff) + (total >> 16);
            }
            prop_assert_eq!(u32::from(sum(&bytes)), total);
        }
    }

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }
}
