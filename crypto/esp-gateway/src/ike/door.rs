//! The way to charon for what it did not ask for. Threads that carry packets use it as well: they never wait here.

use crate::ike::message;
use keyway_esp::InnerPacket;
use keyway_lock::Unpoisoned;
use rustix::net::{SendFlags, send};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

/// The connection for events, while there is one.
#[derive(Default)]
pub struct Door(Mutex<Option<OwnedFd>>);

impl Door {
    /// Events go there from now on.
    pub fn open(&self, events: OwnedFd) {
        *self.0.lock().unpoisoned() = Some(events);
    }

    /// They go nowhere.
    pub fn close(&self) {
        *self.0.lock().unpoisoned() = None;
    }

    /// Hands charon a packet of IKE, with its marker if it has one. Returns whether charon has it.
    pub fn deliver(&self, source: SocketAddr, destination: SocketAddr, payload: &[u8]) -> bool {
        self.send(&message::arrived(source, destination, payload))
    }

    /// Asks for an association for this packet. Returns whether charon was asked.
    pub fn acquire(&self, reqid: u32, inner: &InnerPacket<'_>) -> bool {
        let addresses = (inner.source(), inner.destination());
        self.send(&message::acquire(reqid, inner.protocol(), addresses, inner.ports()))
    }

    /// Sends a message. A charon that does not read loses it, and is none for the caller.
    pub fn send(&self, message: &[u8]) -> bool {
        let events = self.0.lock().unpoisoned();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        events.as_ref().is_some_and(|events| send(events, message, flags).is_ok())
    }
}
