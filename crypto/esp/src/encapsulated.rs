//! UDP encapsulation (RFC 3948).

/// The bytes that are in front of IKE's messages, where an SPI would be (RFC 3948 § 2.2).
pub const NON_ESP_MARKER: [u8; 4] = [0; 4];
/// The payload of a datagram that keeps a NAT's mapping alive (RFC 3948 § 2.3).
pub const KEEPALIVE: [u8; 1] = [0xff];

/// The payload of a UDP datagram of port 4500.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulated<'a> {
    /// An ESP packet, from its SPI.
    Esp(&'a [u8]),
    /// A message of IKE, behind its marker.
    Ike(&'a [u8]),
    /// It keeps a NAT's mapping alive, and has no other meaning.
    Keepalive,
    /// None of these.
    Malformed,
}

/// Tells what a UDP datagram of port 4500 has in it.
pub fn encapsulated(payload: &[u8]) -> Encapsulated<'_> {
    match payload.split_first_chunk() {
        Some((&NON_ESP_MARKER, message)) => Encapsulated::Ike(message),
        Some(_) => Encapsulated::Esp(payload),
        None if payload == KEEPALIVE => Encapsulated::Keepalive,
        None => Encapsulated::Malformed,
    }
}
