//! The padding and what is behind it (RFC 4303 § 2.4 to 2.6).

use crate::suite::{Suite, TRAILER_BYTES};

/// The bytes of padding: 1, 2, 3 and so on.
const PADDING: [u8; 255] = {
    let mut padding = [0; 255];
    let mut at = 0;
    while at < padding.len() {
        padding[at] = at as u8 + 1;
        at += 1;
    }
    padding
};

/// Puts the trailer behind a text of so many bytes, which ends where `packet` does.
#[inline]
pub(crate) fn append(packet: &mut Vec<u8>, suite: Suite, inner_bytes: usize, next_header: u8) {
    let padding = suite.padded_bytes(inner_bytes) - inner_bytes - TRAILER_BYTES;
    packet.extend(PADDING.iter().take(padding));
    packet.extend([padding as u8, next_header]);
}

/// The length of an authentic text without its trailer, in bytes, and the next header. `None` if the padding is not as
/// it has to be.
#[inline]
pub(crate) fn read(text: &[u8]) -> Option<(usize, u8)> {
    let (padded, &[padding, next_header]) = text.split_last_chunk()?;
    let bytes = padded.len().checked_sub(padding.into())?;
    let (_, found) = padded.split_at_checked(bytes)?;
    (found == PADDING.get(..found.len())?).then_some((bytes, next_header))
}
