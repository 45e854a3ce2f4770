//! A thread that carries packets from the network to the device.

use crate::figures::Reason;
use crate::limits::{BATCH_PACKETS, TROUBLE_PAUSE};
use crate::stop::{Stop, Waited};
use crate::tables::{Sockets, View};
use keyway_engine::Engine;
use keyway_esp::{Cause, Dispatch, Encapsulated, Opener, Outer, encapsulated};
use keyway_packet_io::{Received, TunQueue};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

/// The thread's things.
pub struct Inward {
    sockets: Sockets,
    work: Work,
}

struct Work {
    view: View,
    queue: TunQueue,
    opener: Opener,
    /// The lengths of the packets that are being opened.
    lengths: Vec<usize>,
}

impl Inward {
    /// Carries what comes to these sockets.
    pub fn new(engine: &Engine, view: View, queue: TunQueue, sockets: Sockets) -> Inward {
        let opener = Opener::new(engine, Dispatch::Queued);
        Inward { sockets, work: Work { view, queue, opener, lengths: Vec::new() } }
    }

    /// Works until it is to stop.
    pub fn run(mut self, stop: &Stop) {
        loop {
            let (mut packets, mut is_troubled) = (0, false);
            self.work.view.refresh();
            let Inward { sockets: Sockets { udp, raw }, work } = &mut self;
            let mut count = |received: io::Result<usize>| match received {
                Ok(count) => packets += count,
                Err(_) => is_troubled = true,
            };
            if let Some(socket) = udp {
                count(socket.receive(|datagram, it| work.take_datagram(datagram, it)));
            }
            for (_, socket) in raw {
                count(socket.receive(|packet, it| work.take(packet, it)));
            }
            self.work.open();
            let written = self.work.queue.flush();
            if written.dropped > 0 {
                let figures = &self.work.view.shared().figures;
                figures.inbound.many_dropped(Reason::System, written.dropped, 0);
            }
            let waited = match (packets, is_troubled) {
                (1.., _) if !stop.is_asked() => continue,
                (0, false) => {
                    let Sockets { udp, raw } = &self.sockets;
                    let all = udp.iter().chain(raw.iter().map(|(_, socket)| socket));
                    let all: Vec<&dyn AsFd> = all.map(|it| it as &dyn AsFd).collect();
                    stop.wait(&all, None)
                }
                // An error that comes again and again is no reason to turn in a circle.
                _ => stop.wait(&[], Some(TROUBLE_PAUSE)),
            };
            if waited == Waited::Stopped {
                return;
            }
        }
    }
}

impl Work {
    /// Takes a datagram of UDP.
    fn take_datagram(&mut self, datagram: &[u8], received: Received) {
        let reason = match encapsulated(datagram) {
            Encapsulated::Esp(packet) => return self.take(packet, received),
            Encapsulated::Keepalive => return,
            Encapsulated::Ike(_) => Reason::Ike,
            Encapsulated::Malformed => Cause::Malformed.into(),
        };
        self.view.shared().figures.inbound.dropped(reason, datagram.len());
    }

    /// Takes an ESP packet.
    fn take(&mut self, packet: &[u8], received: Received) {
        if self.opener.len() >= BATCH_PACKETS {
            self.open();
        }
        let source = received.source.ip();
        let unknown = match source {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let destination = received.destination.unwrap_or(unknown);
        let outer = Outer { source, destination, ecn: received.ecn };
        match self.opener.push(&self.view.tables().inbound, packet, outer) {
            Ok(()) => self.lengths.push(packet.len()),
            Err(cause) => self.view.shared().figures.inbound.dropped(cause, packet.len()),
        }
    }

    /// Opens what waits, and hands it to the device.
    fn open(&mut self) {
        if self.opener.len() == 0 {
            return;
        }
        let Work { view, queue, opener, lengths } = self;
        let figures = &view.shared().figures.inbound;
        let (mut packets, mut bytes) = (0, 0);
        let mut lengths = lengths.drain(..);
        opener.open(view.shared().clock.now(), |opened, _| {
            let length = lengths.next().unwrap_or(0);
            match opened {
                Ok(packet) => {
                    (packets, bytes) = (packets + 1, bytes + packet.len() as u64);
                    queue.push(packet);
                }
                Err(cause) => figures.dropped(cause, length),
            }
        });
        figures.gone(packets, bytes);
    }
}
