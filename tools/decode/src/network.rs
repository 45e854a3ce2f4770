//! From a frame of some link layer to a TCP segment, or a datagram of UDP.

mod content;
mod fragments;
mod internet;
mod link;

use crate::capture::Packet;
use content::Octets;
pub use content::{Content, Datagram, Segment};
use fragments::Fragments;
pub(crate) use link::named;

/// Takes packets apart, and puts fragments together.
#[derive(Debug, Default)]
pub struct Network {
    fragments: Fragments,
}

impl Network {
    /// The content of a packet.
    pub fn content<'a>(&'a mut self, packet: &Packet<'a>) -> Content<'a> {
        match link::strip(packet) {
            Ok(Some(datagram)) => internet::content(&mut self.fragments, datagram),
            Ok(None) => Content::Other,
            Err(unknown) => unknown,
        }
    }
}
