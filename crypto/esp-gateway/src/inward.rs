//! A thread that carries packets from the network to the device.

use crate::figures::Reason;
use crate::limits::{BATCH_PACKETS, TROUBLE_PAUSE};
use crate::stop::{Stop, Waited};
use crate::tables::{Sockets, View};
use keyway_engine::Engine;
use keyway_esp::{Cause, Dispatch, Encapsulated, Opener, Outer, encapsulated};
use keyway_packet_io::{Received, TunQueue};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, SyncSender};

/// An ESP packet, and where it came from.
pub type Packet = (Vec<u8>, Received);

/// The thread's things.
pub struct Inward {
    view: View,
    queue: TunQueue,
    opener: Opener,
    /// The lengths of the packets that are being opened.
    lengths: Vec<usize>,
    /// The thread for packets whose keys a daemon has.
    aside: Option<SyncSender<Packet>>,
}

impl Inward {
    /// Gives packets to this queue. Those whose keys a daemon has go to `aside`, if there is one: the daemon may hang, and
    /// others do not wait for it.
    pub fn new(
        engine: &Engine,
        view: View,
        queue: TunQueue,
        aside: Option<SyncSender<Packet>>,
    ) -> Inward {
        let opener = Opener::new(engine, Dispatch::Queued);
        Inward { view, queue, opener, lengths: Vec::new(), aside }
    }

    /// Carries what another thread puts aside, until that one ends.
    pub fn run_aside(mut self, packets: &Receiver<Packet>) {
        while let Ok((packet, received)) = packets.recv() {
            self.refresh();
            self.take(&packet, received);
            for (packet, received) in packets.try_iter().take(BATCH_PACKETS - 1) {
                self.take(&packet, received);
            }
            self.pass_on();
        }
    }

    /// Carries what comes to these sockets, until it is to stop.
    pub fn run(mut self, mut sockets: Sockets, stop: &Stop) {
        loop {
            let (mut packets, mut is_troubled) = (0, false);
            self.refresh();
            let Sockets { udp, raw } = &mut sockets;
            let mut count = |received: io::Result<usize>| match received {
                Ok(count) => packets += count,
                Err(_) => is_troubled = true,
            };
            if let Some(socket) = udp {
                count(socket.receive(|datagram, it| self.take_datagram(datagram, it)));
            }
            for (_, socket) in raw.iter_mut() {
                count(socket.receive(|packet, it| self.take(packet, it)));
            }
            self.pass_on();
            let waited = match (packets, is_troubled) {
                (1.., _) if !stop.is_asked() => continue,
                (0, false) => {
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

    /// Looks at the tables of now.
    fn refresh(&mut self) {
        if self.view.refresh() {
            self.opener.release();
        }
    }

    /// Opens what waits, and gives it to the device.
    fn pass_on(&mut self) {
        self.open();
        let written = self.queue.flush();
        if written.dropped > 0 {
            let figures = &self.view.shared().figures;
            figures.inbound.many_dropped(Reason::System, written.dropped, 0);
        }
    }

    /// Takes a datagram of UDP.
    fn take_datagram(&mut self, datagram: &[u8], received: Received) {
        let reason = match encapsulated(datagram) {
            Encapsulated::Esp(packet) => return self.take(packet, received),
            Encapsulated::Keepalive => return,
            Encapsulated::Ike(_) => {
                let shared = self.view.shared();
                let to = received.destination.map(|to| SocketAddr::new(to, shared.port));
                // charon wants the marker as well.
                if to.is_some_and(|to| shared.door.deliver(received.source, to, datagram)) {
                    return;
                }
                Reason::Ike
            }
            Encapsulated::Malformed => Cause::Malformed.into(),
        };
        self.view.shared().figures.inbound.dropped(reason, datagram.len());
    }

    /// Takes an ESP packet.
    fn take(&mut self, packet: &[u8], received: Received) {
        let inbound = &self.view.tables().inbound;
        if let Some(aside) = &self.aside
            && inbound.of_packet(packet).is_some_and(|sa| sa.is_named())
        {
            if aside.try_send((packet.to_vec(), received)).is_err() {
                let figures = &self.view.shared().figures;
                figures.inbound.dropped(Cause::QueueFull, packet.len());
            }
            return;
        }
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
        if self.opener.is_empty() {
            return;
        }
        let Inward { view, queue, opener, lengths, .. } = self;
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
